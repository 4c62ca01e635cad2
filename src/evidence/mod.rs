//! The evidence chain: records on disk, from measurements to a closing decision.
//!
//! ```text
//! 73 training baseline ─┐
//! 76 memory strategies ─┼─→ 75 memory budget ─┐
//! activation ladder ────┤                     ├─→ 74 closure ─→ hand-off
//! traces, phase memory ─┴─────────────────────┘
//! ```
//! A record names what it was made from by path and hash, is written once under a label and never over
//! another; the same label and content is complete already. What decides is in [`gate`](crate::gate).

mod manifest;
mod record;
mod root;
mod stage;
mod trace_folder;

pub use manifest::{
    BUDGET_MANIFEST, CLOSURE_ID, CLOSURE_MANIFEST, ClosureArtifacts, ClosureManifest, Entry,
    MANIFEST_SCHEMA, Needed, create_budget_manifest, create_closure_manifest, verify_entry,
};
pub use record::{Saved, replace_json, save_json_record_once, save_or_confirm};
pub use root::{RESULTS, ROOT_VARIABLE, Root, hash};
pub use stage::{BudgetStage, ClosureStage, Label, PLACEHOLDER_LABEL};
pub use trace_folder::{inspect_profile_trace, traces_in};
