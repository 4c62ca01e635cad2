//! What limits a run: hypotheses, each tested on tables and left with its evidence.
//!
//! ```text
//! tables ─ rules ─→ inferences   supported, refuted, insufficient evidence, not applicable
//!          one a hypothesis      numbers with their queries, confidence, effect, next action
//! ```
//! A rule reads tables only, by SQL that anybody can ask again with `tracekit query`. Its limits are in
//! `thresholds.toml`, each with its source, and can be replaced. Effects are the most that could be
//! won by removing one cause; causes overlap, so effects do not add up.

mod case;
mod custom;
mod inference;
mod overlap;
mod ratios;
mod rules;
mod run;
mod thresholds;

pub use custom::{CustomRule, Operator};
pub use inference::{
    Category, Confidence, Effect, EventReference, Evidence, Inference, Level, Number, Verdict,
};
pub use ratios::{Ratio, Ratios};
pub use rules::{RuleText, explanations};
#[cfg(feature = "batch")]
pub(crate) use run::infer_tables;
#[cfg(feature = "cli")]
pub(crate) use run::inferences;
#[cfg(any(feature = "batch", feature = "cli"))]
pub(crate) use run::tables_of_rules;
pub use run::{Inferences, RunInferences, SCHEMA_VERSION, infer_paths};
pub use thresholds::Thresholds;
