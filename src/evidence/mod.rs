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

mod admission;
mod attribution;
mod budget;
mod checklist;
mod close;
mod closure;
mod collected;
mod environment;
mod folder;
mod legacy;
mod manifest;
mod measurement;
mod normalize;
mod phase;
mod profile;
mod record;
mod root;
mod stage;
mod tables;
mod trace_folder;
mod training;
mod workspace;

pub use admission::{Admission, FreeMemory, check_memory_fraction, gpu_memory};
pub use attribution::{attribute_strategies, phase_peaks, top_operators};
pub use budget::{
    BUDGET_EVIDENCE_SCHEMA, BUDGET_ID, BudgetProject, PROJECT_SCHEMA, StageReport,
    check_input_contract,
};
pub use checklist::{ChainVerdict, checklist};
pub use close::{HANDOFF_SCHEMA, attribution_table, build_performance_handoff};
pub use closure::{ClosureInputs, ClosureProject, check_three_repeats};
pub use environment::{Requirements, RuntimeFacts, environment_preflight, probe_runtime};
pub use legacy::{Form, Identified, identify, modernized};
pub use manifest::{
    BUDGET_MANIFEST, CLOSURE_ID, CLOSURE_MANIFEST, ClosureArtifacts, ClosureManifest, Entry,
    MANIFEST_SCHEMA, Needed, create_budget_manifest, create_closure_manifest, verify_entry,
};
pub use measurement::{MEASUREMENT_SCHEMA, MeasuredFor, Measurement, read_measurements};
pub use normalize::{NORMALIZED_SCHEMA, normalize_file, normalize_report};
pub use profile::PROFILE_SCHEMA;
pub use record::{Saved, replace_json, save_json_record_once, save_or_confirm};
pub use root::{RESULTS, ROOT_VARIABLE, Root, hash};
pub use stage::{BudgetStage, ClosureStage, Label, PLACEHOLDER_LABEL};
pub use tables::{RecordTables, record_tables};
pub use trace_folder::{inspect_profile_trace, traces_in};
pub use training::{BASELINE_ID, STRATEGY_ID, build_strategy_report, build_training_baseline};
#[cfg(feature = "cli")]
pub(crate) use workspace::tool;
