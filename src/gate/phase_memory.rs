//! Peak memory by phase of training over repeated runs. It explains a peak and decides nothing.

use super::json::{Json, object};
use super::number::{python_list, round};
use super::repeats::{mean_of_runs, run_status};
use super::role::PHASE_METRICS;
use crate::error::Result;

/// Schema of the record.
pub const PHASE_SCHEMA: &str = "training-phase-memory/v1";
/// How the record says that it is repeated.
pub const PHASE_EVIDENCE_LEVEL: &str = "repeated_phase_memory_measurement";
/// How peaks out of the memory events of traces are labelled.
pub const TRACE_EVIDENCE_LEVEL: &str = "trace_memory_events";
/// The phases, in the order in which they run.
pub const PHASES: [&str; 3] = ["forward", "backward", "optimizer"];

const PHASE_METRIC_KEYS: [&str; 3] = ["peak_allocated_mb", "peak_reserved_mb", "time_ms"];

/// One strategy of repeated runs: means by phase, three decimals, and the phase with the highest peak, the
/// earlier of equal ones.
///
/// # Errors
/// Without runs.
pub fn summarize_phase_memory_runs(strategy: &str, runs: &[Json]) -> Result<Json> {
    let status = run_status(runs)?;
    let mut record = object! {
        "name" => strategy,
        "status" => status.status,
        "runs" => runs,
        "successful_runs" => status.successful,
        "oom_runs" => status.oom,
    };
    if status.successful == 0 {
        return Ok(record);
    }
    let mean = |path: &[&str]| mean_of_runs(runs, path);
    for metric in [
        "step_time_ms",
        "samples_per_s",
        "loss",
        "peak_memory_mb",
        "peak_reserved_mb",
    ] {
        record.set(metric, mean(&[metric]).map(|mean| round(mean, 3)));
    }
    let mut phases = Json::object();
    let mut highest: Option<(&str, f64)> = None;
    for phase in PHASES {
        let mut metrics = Json::object();
        for key in PHASE_METRIC_KEYS {
            let mean = mean(&["phase_metrics", phase, key]);
            metrics.set(key, mean.map(|mean| round(mean, 3)));
        }
        phases.set(phase, metrics);
        if let Some(peak) = mean(&["phase_metrics", phase, "peak_allocated_mb"])
            && highest.is_none_or(|(_, most)| peak > most)
        {
            highest = Some((phase, peak));
        }
    }
    record.set("phase_metrics", phases);
    record.set("global_peak_phase", highest.map(|(phase, _)| phase));
    Ok(record)
}

/// The summary of all strategies: savings and peak phases only when every one ran well.
pub fn summarize_phase_candidates(candidates: &[Json]) -> Json {
    let name = |candidate: &Json| candidate.at(&["name"]).clone();
    let is_ok = |candidate: &&Json| candidate.at(&["status"]).as_str() == Some("ok");
    let successful: Vec<Json> = candidates.iter().filter(is_ok).map(name).collect();
    let all_ok = !candidates.is_empty() && successful.len() == candidates.len();
    let mut summary = object! {
        "candidate_count" => candidates.len(),
        "successful_candidates" => successful,
    };
    if !all_ok {
        return summary;
    }
    if let Some(savings) = savings(candidates) {
        summary.set("allocated_memory_saving_mb", savings);
    }
    let mut peaks = Json::object();
    for candidate in candidates {
        if let Some(name) = candidate.at(&["name"]).as_str() {
            peaks.set(name, candidate.at(&["global_peak_phase"]));
        }
    }
    summary.set("global_peak_phase", peaks);
    summary
}

/// What checkpointing saves over the baseline in each phase, MiB, three decimals.
fn savings(candidates: &[Json]) -> Option<Json> {
    let of = |wanted: &str| {
        candidates
            .iter()
            .find(|candidate| candidate.at(&["name"]).as_str() == Some(wanted))
    };
    let (baseline, checkpoint) = (of("baseline")?, of("checkpoint")?);
    let mut savings = Json::object();
    for phase in PHASES {
        let peak = |side: &Json| {
            side.at(&["phase_metrics", phase, "peak_allocated_mb"])
                .as_f64()
        };
        let saved = peak(baseline).zip(peak(checkpoint));
        savings.set(phase, saved.map(|(base, other)| round(base - other, 3)));
    }
    Some(savings)
}

/// What is wrong with a record of phase memory, one sentence each; nothing when it is valid.
pub fn validate_phase_memory_result(report: &Json) -> Vec<String> {
    let mut errors = Vec::new();
    for (path, wanted) in [
        (&["schema_version"][..], PHASE_SCHEMA),
        (&["semantic_id"], "PERF-PROFILING-CLOSURE"),
        (&["stage"], "phase_memory_attribution"),
        (&["evidence_level"], PHASE_EVIDENCE_LEVEL),
        (&["measurement", "role"], PHASE_METRICS),
    ] {
        let found = report.at(path);
        if found.as_str() != Some(wanted) {
            let found = found.to_line();
            errors.push(format!("{} must be {wanted}, not {found}", path.join(".")));
        }
    }
    for (path, wanted) in [
        (&["measurement", "timing_for_adoption"][..], false),
        (&["measurement", "synchronize_at_phase_boundaries"], true),
        (&["safety", "admitted"], true),
    ] {
        if *report.at(path) != Json::Bool(wanted) {
            errors.push(format!("{} must be {wanted}", path.join(".")));
        }
    }
    let repeats = report.at(&["config", "repeats"]).as_int().unwrap_or(0);
    if repeats < 3 {
        errors.push(format!("config.repeats must be 3 or more, not {repeats}"));
    }
    let candidates = report.at(&["candidates"]).items();
    let names: Vec<&str> = candidates
        .iter()
        .map(|candidate| candidate.at(&["name"]).as_str().unwrap_or_default())
        .collect();
    let repeated = (1..names.len()).any(|place| names[..place].contains(&names[place]));
    if names.contains(&"") || repeated {
        errors.push("candidates must have names, each once".to_owned());
    }
    let strategies = report.at(&["config", "strategies"]).items();
    let absent: Vec<&str> = strategies
        .iter()
        .filter_map(Json::as_str)
        .filter(|strategy| !names.contains(strategy))
        .collect();
    if strategies.is_empty() || !absent.is_empty() {
        let absent = python_list(&absent);
        errors.push(format!(
            "candidates must cover config.strategies, not {absent}"
        ));
    }
    for candidate in candidates {
        errors.extend(candidate_errors(candidate, repeats));
    }
    let summary = report.at(&["summary"]);
    let expected = summarize_phase_candidates(candidates);
    if summary.at(&["candidate_count"]) != expected.at(&["candidate_count"]) {
        errors.push(format!(
            "summary.candidate_count must be {}",
            candidates.len()
        ));
    }
    if summary.at(&["successful_candidates"]) != expected.at(&["successful_candidates"]) {
        errors.push("summary.successful_candidates must be those with status ok".to_owned());
    }
    for phase in PHASES {
        let path = ["allocated_memory_saving_mb", phase];
        let sides = [summary.at(&path).as_f64(), expected.at(&path).as_f64()];
        let is_same = match sides {
            [Some(found), Some(wanted)] => (found - wanted).abs() <= 0.001 + 1e-9,
            [found, wanted] => found.is_none() && wanted.is_none(),
        };
        if !is_same {
            errors.push(format!(
                "summary.allocated_memory_saving_mb.{phase} must follow from the candidates"
            ));
        }
    }
    errors
}

fn candidate_errors(candidate: &Json, repeats: i64) -> Vec<String> {
    let name = candidate.at(&["name"]).as_str().unwrap_or("a candidate");
    let mut errors = Vec::new();
    let runs = candidate.at(&["runs"]).items();
    if i64::try_from(runs.len()) != Ok(repeats) {
        errors.push(format!(
            "{name}: must have config.repeats runs, not {}",
            runs.len()
        ));
    }
    if candidate.at(&["status"]).as_str() != Some("ok") {
        return errors;
    }
    let mut highest: Option<(&str, f64)> = None;
    for phase in PHASES {
        let path = ["phase_metrics", phase, "peak_allocated_mb"];
        match candidate.at(&path).as_f64().filter(|peak| *peak >= 0.0) {
            None => errors.push(format!(
                "{name}: phase_metrics.{phase}.peak_allocated_mb must be a number of 0 or more"
            )),
            Some(peak) if highest.is_none_or(|(_, most)| peak > most) => {
                highest = Some((phase, peak));
            }
            Some(_) => {}
        }
    }
    // The record's peaks are rounded, so what was highest may be equal here: ask for the peak, not the name.
    let told = candidate.at(&["global_peak_phase"]).as_str();
    let peak_of_told = told.filter(|told| PHASES.contains(told)).and_then(|told| {
        candidate
            .at(&["phase_metrics", told, "peak_allocated_mb"])
            .as_f64()
    });
    let is_highest = highest
        .zip(peak_of_told)
        .is_some_and(|((_, most), peak)| peak >= most);
    if !is_highest {
        errors.push(format!(
            "{name}: global_peak_phase must be the phase with the highest peak"
        ));
    }
    errors
}
