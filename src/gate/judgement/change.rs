//! Gates about one change: is it worth keeping, may it be adopted over several workloads?

use super::super::json::{Json, object};
use super::super::number::python_repr;
use super::super::optimization::{
    EndToEnd, OptimizationSummary, recommend_optimization_decision, summarize_optimization_result,
};
use super::super::regression::{
    AdoptionDecision, build_regression_evidence, decide_regression_adoption,
    validate_regression_contract, workload_records,
};
use super::super::thresholds::Thresholds;
use super::super::verdict::Decision;
use super::{Verdict, check, shown};
use crate::error::{Error, ErrorKind, Result};

/// Whether one change is worth keeping. The input has `base` (or `baseline`) and `tuned`, or a `summary`.
///
/// # Errors
/// When a number is missing or was measured under a profiler.
pub fn judge_recommendation(input: &Json, thresholds: &Thresholds) -> Result<Verdict> {
    let summary = recommendation_summary(input)?;
    let gates = &thresholds.recommend;
    let outcome = recommend_optimization_decision(&summary, gates);
    let row = |subject, code, delta: f64, least: f64, unit: &str| {
        let status = if delta >= least {
            "reached"
        } else if delta > 0.0 {
            "improved"
        } else {
            "not improved"
        };
        let detail = format!(
            "{}{unit} gained, {}{unit} wanted",
            python_repr(delta),
            python_repr(least)
        );
        let codes = if delta < least {
            vec![code]
        } else {
            Vec::new()
        };
        check(subject, status, delta < least, &codes, detail)
    };
    let checks = vec![
        row(
            "step time",
            "time_gain_below_threshold",
            summary.step_time_delta_ms,
            gates.min_time_delta_ms,
            " ms",
        ),
        row(
            "peak memory",
            "memory_gain_below_threshold",
            summary.peak_mem_delta_mb,
            gates.min_memory_delta_mb,
            " MB",
        ),
        row(
            "throughput",
            "throughput_gain_below_threshold",
            summary.throughput_delta,
            gates.min_throughput_delta,
            "",
        ),
    ];
    let result = object! {"summary" => summary.to_json(), "decision" => outcome.to_json()};
    let mut verdict = Verdict::new("recommend", &outcome, checks, result);
    verdict.reason_code = Some(match outcome.decision {
        Decision::Accept => "time_and_resource_gains_reached",
        Decision::Tune => "time_gain_without_resource_gain",
        Decision::Reject => "no_stable_gain",
    });
    Ok(verdict)
}

/// The summary that a recommendation is about.
///
/// # Errors
/// When a number is missing or was measured under a profiler.
pub fn recommendation_summary(input: &Json) -> Result<OptimizationSummary> {
    super::super::role::refuse_profiled(input)?;
    let base = ["base", "baseline"].iter().find_map(|key| input.get(key));
    match (base, input.get("tuned")) {
        (Some(base), Some(tuned)) => Ok(summarize_optimization_result(
            &EndToEnd::read(base)?,
            &EndToEnd::read(tuned)?,
        )),
        _ if input.at(&["summary"]).is_object() => {
            OptimizationSummary::read(input.at(&["summary"]))
        }
        _ => Err(Error::new(
            ErrorKind::Invalid,
            "has neither base and tuned nor a summary",
        )),
    }
}

/// Whether a change may be adopted over several workloads. The input has `contract`,
/// `workload_records` and `original_bottleneck`.
///
/// # Errors
/// When a workload that ended well lacks a number or was measured under a profiler.
pub fn judge_regression(input: &Json, thresholds: &Thresholds) -> Result<Verdict> {
    let records = workload_records(input, "workload_records")?;
    let contract = validate_regression_contract(input.at(&["contract"]), records);
    let bottleneck = input
        .at(&["original_bottleneck"])
        .as_name()
        .ok_or_else(|| super::super::optimization::missing_key("original_bottleneck"))?;
    let gates = &thresholds.regression;
    let evidence = build_regression_evidence(records, bottleneck)?;
    let adoption = if contract.is_valid() {
        decide_regression_adoption(&evidence, gates)
    } else {
        AdoptionDecision::rejected("pairing_invalid")
    };
    let mut checks = vec![check(
        "contract",
        if contract.is_valid() {
            "valid"
        } else {
            "invalid"
        },
        !contract.is_valid(),
        &contract.issues,
        String::new(),
    )];
    for failure in &evidence.hard_failures {
        let codes = ["hard_failure_or_primary_missing"];
        checks.push(check(
            &shown(failure),
            "failed",
            true,
            &codes,
            String::new(),
        ));
    }
    for row in evidence.primary.iter().chain(&evidence.adjacent) {
        let least = match row.role.as_str() {
            Some("primary") => gates.min_primary_time_gain_ms,
            _ => -gates.max_adjacent_slowdown_ms,
        };
        let worse = row.quality_delta > gates.max_quality_delta;
        let slow = row.time_gain_ms < least;
        let mut codes = Vec::new();
        if worse {
            codes.push("quality_guardrail_failed");
        }
        if slow {
            codes.push("benefit_or_bottleneck_evidence_incomplete");
        }
        if gates.costs_memory(row) {
            codes.push("memory_growth_over_limit");
        }
        if gates.costs_throughput(row) {
            codes.push("throughput_loss_over_limit");
        }
        let status = if codes.is_empty() { "holds" } else { "fails" };
        let detail = format!(
            "{}: time {:+} ms of {:+} ms, quality {:+} of at most {}",
            shown(&row.role),
            super::super::number::round(row.time_gain_ms, 3),
            least,
            super::super::number::round(row.quality_delta, 6),
            gates.max_quality_delta
        );
        checks.push(check(
            &shown(&row.workload_id),
            status,
            !codes.is_empty(),
            &codes,
            detail,
        ));
    }
    if gates.lacks_adjacent(&evidence) {
        let codes = ["adjacent_workload_missing"];
        checks.push(check(
            "adjacent workloads",
            "missing",
            true,
            &codes,
            String::new(),
        ));
    }
    let reduced = evidence.original_bottleneck_reduced;
    let codes: &[&str] = if reduced {
        &[]
    } else {
        &["original_bottleneck_not_reduced"]
    };
    checks.push(check(
        &format!("bottleneck {bottleneck}"),
        if reduced { "smaller" } else { "not smaller" },
        !reduced,
        codes,
        format!(
            "longest stage now: {}",
            evidence
                .candidate_bottleneck
                .as_deref()
                .unwrap_or("unknown")
        ),
    ));
    let result = object! {
        "contract" => contract.to_json(),
        "evidence" => evidence.to_json(),
        "decision" => adoption.to_json(),
    };
    Ok(Verdict::new(
        "regression",
        &adoption.outcome,
        checks,
        result,
    ))
}
