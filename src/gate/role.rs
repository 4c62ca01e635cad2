//! Which numbers may decide, as types.
//!
//! | role | what | may decide |
//! |---|---|---|
//! | [`Unprofiled`] | repeated runs without a profiler | adoption |
//! | [`Profiled`] | runs under a profiler, traces | nothing; explains bottlenecks |
//! | [`PhasePeaks`] | memory measured with synchronisation at phase borders | nothing; explains bottlenecks |
//! | [`ScopeLimited`] | the activation ladder | its own scope only |
//!
//! Gates take candidates of the role that may decide. A profiled one does not compile:
//!
//! ```compile_fail
//! use tracekit::gate::{Candidate, MemoryBudget, Profiled, summarize_memory_strategies};
//! fn adopt(profiled: &[Candidate<Profiled>], budget: &MemoryBudget) {
//!     summarize_memory_strategies(profiled, budget);
//! }
//! ```
//!
//! ```
//! use tracekit::gate::{Candidate, MemoryBudget, Unprofiled, summarize_memory_strategies};
//! fn adopt(measured: &[Candidate<Unprofiled>], budget: &MemoryBudget) {
//!     summarize_memory_strategies(measured, budget);
//! }
//! ```
//! and a record that says it was profiled is refused when it is read as measurements.

use super::json::{Json, object};
use crate::error::{Error, ErrorKind, Result};

/// Role of the numbers that decide about adoption.
pub const ADOPTION_METRICS: &str = "unprofiled_repeated_measurements";
/// Role of the numbers of a profiler.
pub const PROFILER_METRICS: &str = "bottleneck_attribution_only";
/// Role of memory measured by phase.
pub const PHASE_METRICS: &str = "phase_memory_attribution_only";
/// Role of the numbers of the activation ladder.
pub const ACTIVATION_METRICS: &str = "scope_limited_unprofiled_repeated_measurements";

mod sealed {
    pub trait Sealed {}
}

/// What a number was measured for.
pub trait Role: sealed::Sealed {
    /// The spelling in records.
    const NAME: &'static str;
}

/// Repeated runs without a profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unprofiled;
/// Runs under a profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profiled;
/// Memory measured at phase borders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhasePeaks;
/// Runs of the activation ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeLimited;

macro_rules! roles {
    ($($role:ident = $name:expr),*) => {$(
        impl sealed::Sealed for $role {}
        impl Role for $role {
            const NAME: &'static str = $name;
        }
    )*};
}
roles!(
    Unprofiled = ADOPTION_METRICS,
    Profiled = PROFILER_METRICS,
    PhasePeaks = PHASE_METRICS,
    ScopeLimited = ACTIVATION_METRICS
);

/// The roles that a closing record states.
pub fn evidence_roles() -> Json {
    object! {
        "adoption_metrics" => ADOPTION_METRICS,
        "profiler_metrics" => PROFILER_METRICS,
        "activation_scope_metrics" => ACTIVATION_METRICS,
    }
}

/// Fails when `record` says that its numbers were measured under a profiler or at phase borders.
///
/// # Errors
/// Naming what says so.
pub fn refuse_profiled(record: &Json) -> Result<()> {
    let said = |path: &[&str]| record.at(path).as_str().map(str::to_owned);
    let says = [
        (&["schema_version"][..], "profiling-trace-evidence/v1"),
        (&["schema_version"], "training-phase-memory/v1"),
        (&["measurement_role"], PROFILER_METRICS),
        (&["profile", "measurement_role"], PROFILER_METRICS),
        (&["measurement_role"], PHASE_METRICS),
        (&["measurement", "role"], PHASE_METRICS),
        (&["stage"], "real_profiler_trace"),
    ];
    let profiled = says
        .iter()
        .find(|(path, value)| said(path).as_deref() == Some(*value))
        .map(|(path, value)| format!("{} is {value}", path.join(".")));
    let timed = [
        &["timing_for_adoption"][..],
        &["profile", "timing_for_adoption"],
        &["measurement", "timing_for_adoption"],
    ]
    .iter()
    .find(|path| matches!(record.at(path), Json::Bool(false)))
    .map(|path| format!("{} is false", path.join(".")));
    match profiled.or(timed) {
        Some(reason) => Err(Error::new(
            ErrorKind::Invalid,
            format!("evidence_role: {reason}; such numbers explain and do not decide"),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_profilers_are_no_measurements() {
        for (text, reason) in [
            (
                "{\"schema_version\":\"profiling-trace-evidence/v1\"}",
                "evidence_role: schema_version is profiling-trace-evidence/v1; such numbers explain and do not decide",
            ),
            (
                "{\"profile\":{\"timing_for_adoption\":false}}",
                "evidence_role: profile.timing_for_adoption is false; such numbers explain and do not decide",
            ),
            (
                "{\"measurement\":{\"role\":\"phase_memory_attribution_only\"}}",
                "evidence_role: measurement.role is phase_memory_attribution_only; such numbers explain and do not decide",
            ),
        ] {
            let error = refuse_profiled(&Json::parse(text).unwrap()).unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
        refuse_profiled(&Json::parse("{\"candidates\":[]}").unwrap()).unwrap();
    }
}
