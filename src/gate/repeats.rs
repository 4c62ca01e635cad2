//! Repeated runs put together to one candidate.

use super::json::{Json, object};
use super::number::round;
use crate::error::{Error, ErrorKind, Result};

/// Metrics that are averaged over runs.
const METRICS: [&str; 7] = [
    "step_time_ms",
    "samples_per_s",
    "loss",
    "eval_loss",
    "peak_memory_mb",
    "peak_mem_mb",
    "peak_reserved_mb",
];

/// How runs ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStatus {
    /// `ok`, `partial_oom` or what the first run says.
    pub status: String,
    /// Runs that ended well.
    pub successful: usize,
    /// Runs that did not.
    pub oom: usize,
}

fn is_ok(run: &Json) -> bool {
    match run.get("status") {
        None => run.is_object(),
        Some(status) => status.as_str() == Some("ok"),
    }
}

/// How `runs` ended; a run that does not say ended well.
///
/// # Errors
/// Without runs.
pub fn run_status(runs: &[Json]) -> Result<RunStatus> {
    let Some(first) = runs.first() else {
        return Err(Error::new(ErrorKind::Invalid, "there are no runs"));
    };
    let successful = runs.iter().filter(|run| is_ok(run)).count();
    let status = if successful == runs.len() {
        "ok"
    } else if successful > 0 {
        "partial_oom"
    } else {
        first.at(&["status"]).as_str().unwrap_or("oom")
    };
    Ok(RunStatus {
        status: status.to_owned(),
        successful,
        oom: runs.len() - successful,
    })
}

/// The mean of the numbers at `path` of the runs that ended well, unrounded; `None` when one of those runs
/// lacks it.
pub(crate) fn mean_of_runs(runs: &[Json], path: &[&str]) -> Option<f64> {
    let ok = runs.iter().filter(|run| is_ok(run));
    let values: Option<Vec<f64>> = ok.map(|run| run.at(path).as_f64()).collect();
    crate::stats::mean(&values?)
}

/// One candidate of repeated runs: means of those that ended well, three decimals, and the runs themselves.
///
/// # Errors
/// Without runs.
pub fn aggregate_repeats(name: &str, runs: &[Json]) -> Result<Json> {
    let status = run_status(runs)?;
    let mut candidate = object! {"name" => name, "status" => status.status};
    for metric in METRICS {
        let is_there = runs.iter().any(|run| run.get(metric).is_some());
        if is_there {
            let mean = mean_of_runs(runs, &[metric]);
            candidate.set(metric, mean.map(|mean| round(mean, 3)));
        }
    }
    candidate.set("runs", runs);
    candidate.set("successful_runs", status.successful);
    candidate.set("oom_runs", status.oom);
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_runs_out_of_memory_are_counted_not_averaged() {
        let runs = [
            object! {"status" => "ok", "step_time_ms" => 1.0},
            object! {"status" => "oom", "error" => "CUDA out of memory"},
            object! {"status" => "ok", "step_time_ms" => 2.0005},
        ];
        let candidate = aggregate_repeats("checkpoint", &runs).unwrap();
        assert_eq!(candidate.at(&["status"]).as_str(), Some("partial_oom"));
        assert_eq!(candidate.at(&["step_time_ms"]).as_f64(), Some(1.5));
        assert_eq!(candidate.at(&["oom_runs"]).as_int(), Some(1));
        let all = aggregate_repeats("checkpoint", &runs[1..2]).unwrap();
        assert_eq!(all.at(&["status"]).as_str(), Some("oom"));
        assert!(all.get("step_time_ms").is_none());
        assert!(aggregate_repeats("checkpoint", &[]).is_err());
    }
}
