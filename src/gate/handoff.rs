//! The hand-off of measured strategies to a budget.

use super::candidate::{Candidate, named};
use super::json::{Json, object};
use super::role::Unprofiled;
use crate::error::Result;

/// A name for the workload of a configuration: `Qwen/Qwen2.5-0.5B-Instruct-b1-s768-float32-AdamW`.
pub fn workload_id(config: &Json) -> String {
    let shown = |key: &str| match config.at(&[key]) {
        Json::Text(text) => text.clone(),
        Json::Null => "unknown".to_owned(),
        other => other.to_line(),
    };
    format!(
        "{}-b{}-s{}-{}-{}",
        shown("model_id"),
        shown("batch_size"),
        shown("seq_len"),
        shown("dtype"),
        shown("optimizer")
    )
}

/// The hand-off of a strategy report. A strategy is comparable when it and the baseline ran well at least
/// three times with a peak, a throughput and a loss; only such ones are eligible, and without any the
/// hand-off stays a draft.
///
/// # Errors
/// When the report cannot be read or was measured under a profiler.
pub fn build_budget_handoff(report: &Json, workload_id: &str, hardware_id: &str) -> Result<Json> {
    let candidates = Candidate::read_all(report)?;
    let numbers = |side: &Candidate<Unprofiled>| {
        let repeated = side.is_ok() && side.ok_runs.is_some_and(|runs| runs >= 3);
        let pace = side.samples_per_s.value().filter(|pace| *pace > 0.0)?;
        let peak = side.peak_allocated_mb.value()?;
        let loss = side.eval_loss.value()?;
        repeated.then_some([peak, pace, loss])
    };
    let baseline = named(&candidates, "baseline").and_then(numbers);
    let mut eligible = Vec::new();
    let mut records = Vec::new();
    for candidate in &candidates {
        let Some(name) = candidate.name().filter(|name| *name != "baseline") else {
            continue;
        };
        let compared = baseline.zip(numbers(candidate));
        if compared.is_some() {
            eligible.push(name);
        }
        let [peak, saving, ratio, quality] = match compared {
            Some((base, own)) => [
                Some(own[0]),
                Some(base[0] - own[0]),
                Some(own[1] / base[1]),
                Some(own[2] - base[2]),
            ],
            None => [candidate.peak_allocated_mb.value(), None, None, None],
        };
        let status = if compared.is_some() {
            "comparable"
        } else {
            "not_comparable"
        };
        records.push(object! {
            "name" => name,
            "status" => status,
            "candidate_peak_memory_mb" => peak,
            "memory_saving_mb" => saving,
            "throughput_ratio" => ratio,
            "quality_delta" => quality,
        });
    }
    let status = if eligible.is_empty() {
        "draft"
    } else {
        "ready_for_budget_review"
    };
    Ok(object! {
        "status" => status,
        "workload_id" => workload_id,
        "hardware_id" => hardware_id,
        "eligible_candidates" => eligible,
        "candidates" => records,
    })
}
