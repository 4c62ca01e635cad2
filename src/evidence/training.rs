//! Training baseline (project 73) and memory strategies (project 76) out of measured runs.

use super::budget::PROJECT_SCHEMA;
use super::measurement::Measurement;
use super::stage::Label;
use super::workspace::tool;
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    Candidate, IDENTITY_FIELDS, Json, SummaryFacts, Thresholds, aggregate_repeats,
    build_workload_identity, decide_memory_strategy_project, decide_training_baseline,
    mismatching_fields, object, python_list, round, summarize_memory_strategies,
    summarize_training_baseline,
};

/// What the training baseline is.
pub const BASELINE_ID: &str = "PERF-TRAINING-BASELINE";
/// What the comparison of strategies is.
pub const STRATEGY_ID: &str = "PERF-MEMORY-STRATEGY";
/// Runs that every side must have.
const REPEATS: usize = 3;

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn check_repeats(measurements: &[&Measurement]) -> Result<()> {
    let few: Vec<&str> = measurements
        .iter()
        .filter(|measurement| measurement.runs.len() < REPEATS)
        .map(|measurement| measurement.strategy.as_str())
        .collect();
    if few.is_empty() {
        Ok(())
    } else {
        Err(invalid(format!(
            "missing_three_repeats {}",
            python_list(&few)
        )))
    }
}

/// The record of a training baseline: the baseline and one change, three runs each.
///
/// # Errors
/// When a side has fewer runs, or the configurations do not differ in exactly one field.
pub fn build_training_baseline(
    label: &Label,
    baseline: &Measurement,
    tuned: &Measurement,
    thresholds: &Thresholds,
) -> Result<Json> {
    check_repeats(&[baseline, tuned])?;
    let fields: Vec<&str> = baseline
        .config
        .fields()
        .chain(tuned.config.fields())
        .map(|(key, _)| key)
        .collect();
    let mut changed = mismatching_fields(&baseline.config, &tuned.config, &fields, false);
    changed.sort_unstable();
    changed.dedup();
    if changed.len() != 1 {
        let changed = python_list(&changed);
        return Err(invalid(format!(
            "changed_variable: the two sides must differ in one field, not in {changed}"
        )));
    }
    let aggregated = |side: &Measurement| {
        let mut record = aggregate_repeats(&side.strategy, &side.runs)?;
        record.remove("name");
        Ok::<_, Error>(record)
    };
    let (base, other) = (aggregated(baseline)?, aggregated(tuned)?);
    let number = |side: &Json, keys: &[&str]| {
        let missing = || invalid(format!("{}: a side has no such mean", keys[0]));
        side.first(keys).as_f64().ok_or_else(missing)
    };
    let pair = |side: &Json| {
        Ok::<_, Error>((
            number(side, &["step_time_ms"])?,
            number(side, &["peak_memory_mb", "peak_mem_mb"])?,
        ))
    };
    let summary = summarize_training_baseline(pair(&base)?, pair(&other)?);
    let outcome = decide_training_baseline(&summary, &thresholds.recommend);
    let loss = |side: &Json| side.at(&["loss"]).as_f64();
    let loss_delta = loss(&other)
        .zip(loss(&base))
        .map(|(own, base)| round(own - base, 6));
    Ok(object! {
        "schema_version" => PROJECT_SCHEMA,
        "semantic_id" => BASELINE_ID,
        "run_label" => label.as_str(),
        "task" => "task3_training_memory_optimization",
        "stage" => "measurement_baseline",
        "next_stage" => "76_activation_checkpoint_offload_benchmark",
        "config" => &baseline.config,
        "changed_variable" => changed[0],
        "baseline" => base,
        "tuned" => other,
        "summary" => object! {
            "step_time_delta_ms" => summary.step_time_delta_ms,
            "peak_mem_delta_mb" => summary.peak_mem_delta_mb,
            "time_improved" => summary.time_improved,
            "memory_improved" => summary.memory_improved,
        },
        "loss_delta_tuned_minus_baseline" => loss_delta,
        "evidence_level" => "unprofiled_repeated_measurements",
        "decision" => outcome.to_json(),
        "inputs" => vec![baseline.artifact.clone(), tuned.artifact.clone()],
        "tool" => tool(),
    })
}

/// The record of memory strategies measured under the workload of the training baseline `record` (its
/// artefact is `artifact`), three runs each. Runs out of memory are counted.
///
/// # Errors
/// When there is no baseline, a side has fewer runs, or the workload is another.
pub fn build_strategy_report(
    label: &Label,
    (record, artifact): (&Json, &Json),
    measurements: &[Measurement],
    thresholds: &Thresholds,
) -> Result<Json> {
    check_repeats(&measurements.iter().collect::<Vec<_>>())?;
    let is_baseline = |one: &&Measurement| one.strategy == "baseline";
    let Some(baseline) = measurements.iter().find(is_baseline) else {
        return Err(invalid("strategies: baseline is not among them".to_owned()));
    };
    for measurement in measurements {
        measurement.check_identity(&baseline.config, &IDENTITY_FIELDS)?;
    }
    let mut config = baseline.config.clone();
    let names: Vec<&str> = measurements
        .iter()
        .map(|one| one.strategy.as_str())
        .collect();
    config.set("strategies", names);
    let candidates: Vec<Json> = measurements
        .iter()
        .map(|one| aggregate_repeats(&one.strategy, &one.runs))
        .collect::<Result<_>>()?;
    let mut report = object! {"config" => &config, "candidates" => candidates.clone()};
    let identity = build_workload_identity(record, &report, false)?;
    let read = Candidate::read_all(&report)?;
    let base = read.iter().find(|one| one.name() == Some("baseline"));
    let loss = base.and_then(|one| one.eval_loss.value());
    let budget = thresholds.budget.budget(loss)?;
    let summary = summarize_memory_strategies(&read, &budget);
    let facts: SummaryFacts = summary.facts();
    report = object! {
        "schema_version" => PROJECT_SCHEMA,
        "semantic_id" => STRATEGY_ID,
        "run_label" => label.as_str(),
        "task" => "task3_training_memory_optimization",
        "stage" => "activation_checkpoint_offload_benchmark",
        "source_baseline" => artifact,
        "baseline_validation" => identity,
        "evidence_level" => "unprofiled_repeated_measurements",
        "config" => config,
        "budget" => budget.to_json(),
        "quality_floor" => object! {"max_val_loss" => budget.max_val_loss},
        "candidates" => candidates,
        "summary" => summary.to_json(),
        "decision" => decide_memory_strategy_project(&facts).to_json(),
        "inputs" => measurements.iter().map(|one| one.artifact.clone()).collect::<Vec<_>>(),
        "tool" => tool(),
    };
    Ok(report)
}
