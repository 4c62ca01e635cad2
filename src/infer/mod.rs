//! What limits a run: hypotheses, each tested on tables and left with its evidence.
//!
//! ```text
//! files ─→ rows of tables ─ rules ─→ inferences   supported, refuted, insufficient evidence, not applicable;
//!                           one a hypothesis      numbers with their queries, confidence, effect, next action
//! ```
//! A rule asks for rows and sums of tables by conditions that are a test of rows and SQL in one, so that anybody can
//! ask for its numbers again with `tracekit query` over the files of the run. Its limits are in
//! `thresholds.toml`, each with its source, and can be replaced. Effects are the most that could be
//! won by removing one cause; causes overlap, so effects do not add up.

mod case;
mod condition;
#[cfg(feature = "frames")]
mod custom;
mod inference;
mod overlap;
mod plan;
mod ratios;
mod rules;
mod run;
mod sum;
mod table;
mod thresholds;

#[cfg(feature = "frames")]
pub use custom::{CustomRule, Operator};
pub use inference::{
    Category, Confidence, Effect, EventReference, Evidence, Inference, Level, Number, Verdict,
};
#[cfg(any(feature = "batch", feature = "cli"))]
pub(crate) use plan::Plan;
#[cfg(feature = "batch")]
pub(crate) use plan::Taken;
pub use ratios::{Ratio, Ratios};
pub use rules::{RuleText, explanations};
#[cfg(feature = "cli")]
pub(crate) use run::inferences;
pub use run::{Inferences, RunInferences, SCHEMA_VERSION, infer_paths};
pub use thresholds::Thresholds;
