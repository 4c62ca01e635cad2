//! Two sides compared: whether training became faster, what changed, and where a saving was paid for.
//!
//! ```text
//! base paths ─ attribute ─┐                      ┌─ verdict on the step time
//!                         ├─ steps ─ quantities ─┼─ bottleneck of the base, before and after
//! cand paths ─ attribute ─┘  (whole)  by step    └─ tables: phases, costs, operators, kernels, …
//! ```
//! - A **repeat** is one capture of the program with all its ranks: the files of one folder, where every
//!   rank comes once. A rank that comes again, with another name or with step numbers that start anew, is
//!   a further repeat; files whose step numbers go on are further windows of the same repeat.
//!   Repeats of one side that do not do the same (strategies, say) are told: [`Mixture`].
//! - Only **whole steps** count, those that the capture does not cut. The time of a step is its time on the
//!   device where both sides have device work (from its start to the end of its work, on the slowest
//!   device of the slowest rank), else the time of its range on the host (of the slowest rank). A quantity
//!   of a step is its sum over the devices of a rank, averaged over ranks.
//! - **Units** of the test are the medians of repeats where both sides have three or more, else single steps.
//!   Steps of one run say nothing about the noise between runs; so the smallest effect that counts is
//!   larger then. Of more than 100 steps a side, consecutive ones are put together in 100 groups, each
//!   with its median: steps that follow one another are alike, and the test takes them for independent.
//! - A side may be the JSON of `tracekit attribute`: what it does not hold is not compared.

mod captures;
mod contract;
mod cost;
mod folder;
mod judgement;
mod mixture;
mod names;
mod observed;
mod options;
mod pace;
mod phases;
mod quantity;
mod result;
mod saved;
mod side;

pub use folder::compare_paths;
pub use judgement::{Judgement, Reason, Verdict, judge};
pub use mixture::Mixture;
pub use options::CompareOptions;
pub use result::{
    Absent, Bottleneck, Comparison, CostShift, SCHEMA_VERSION, SideFinding, SideSummary,
    StepVerdict,
};
