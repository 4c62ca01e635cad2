//! Each gate from its input to a verdict with its checks.

use super::activation::assess_activation_memory_scope;
use super::candidate::{Candidate, named};
use super::closure::closure_decision;
use super::identity::{PROFILE_FIELDS, mismatching_fields};
use super::json::{Json, object};
use super::number::{python_list, python_repr};
use super::optimization::{
    EndToEnd, OptimizationSummary, recommend_optimization_decision, summarize_optimization_result,
};
use super::qualification::qualify_memory_candidates;
use super::regression::{
    AdoptionDecision, build_regression_evidence, decide_regression_adoption,
    validate_regression_contract, workload_records,
};
use super::report::{BudgetEvaluations, ProfileReport, StrategyReport, artifact};
use super::screening::{
    HandedCandidate, ScreeningBudget, decide_budget_sensitivity, evaluate_budget_candidates,
    validate_budget_evidence,
};
use super::sensitivity::{SensitivityRow, sensitivity_rows, summarize_sensitivity};
use super::strategies::{Evaluation, decide_memory_budget_project, summarize_memory_strategies};
use super::thresholds::Thresholds;
use super::verdict::{Decision, Outcome};
use crate::error::{Error, ErrorKind, Result};

/// Schema of a verdict.
pub const VERDICT_SCHEMA: &str = "tracekit.gate/v1";

/// What a gate says about its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which gate.
    pub gate: &'static str,
    /// The decision, by which a program ends.
    pub decision: Decision,
    /// The decision in the gate's own word, such as `accept_for_activation_memory_scope`.
    pub word: String,
    /// Why, as a code or sentence.
    pub reason: String,
    /// The code for a reason that is a sentence.
    pub reason_code: Option<&'static str>,
    /// What to do now.
    pub next_action: Option<String>,
    /// What was looked at, one by one.
    pub checks: Vec<Check>,
    /// The gate's own record.
    pub result: Json,
    /// Files that were read, as artefacts.
    pub inputs: Vec<Json>,
    /// Repeats as samples, when that was asked for; stands beside the decision and never replaces it.
    pub statistics: Option<Json>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What: a candidate, a workload, a metric.
    pub subject: String,
    /// What became of it.
    pub status: String,
    /// It stands against the candidate.
    pub failed: bool,
    /// Why, as codes.
    pub codes: Vec<String>,
    /// The numbers.
    pub detail: String,
}

impl Verdict {
    fn new(gate: &'static str, outcome: &Outcome, checks: Vec<Check>, result: Json) -> Self {
        Self {
            gate,
            decision: outcome.decision,
            word: outcome.decision.as_str().to_owned(),
            reason: outcome.reason.to_owned(),
            reason_code: None,
            next_action: outcome.next_action.map(str::to_owned),
            checks,
            result,
            inputs: Vec::new(),
            statistics: None,
        }
    }

    /// The verdict in one line: decision, reason, next action.
    pub fn headline(&self) -> String {
        headline(&self.to_json())
    }

    /// As a record.
    pub fn to_json(&self) -> Json {
        let checks: Vec<Json> = self
            .checks
            .iter()
            .map(|check| {
                object! {
                    "subject" => check.subject.as_str(),
                    "status" => check.status.as_str(),
                    "failed" => check.failed,
                    "codes" => check.codes.clone(),
                    "detail" => check.detail.as_str(),
                }
            })
            .collect();
        let mut record = object! {
            "schema_version" => VERDICT_SCHEMA,
            "tool" => object! {"name" => "tracekit", "version" => env!("CARGO_PKG_VERSION")},
            "gate" => self.gate,
            "decision" => self.word.as_str(),
            "reason" => self.reason.as_str(),
            "next_action" => self.next_action.clone(),
            "checks" => checks,
            "result" => &self.result,
            "inputs" => self.inputs.clone(),
        };
        if let Some(code) = self.reason_code {
            record.set("reason_code", code);
        }
        if let Some(statistics) = &self.statistics {
            record.set("statistics", statistics);
        }
        record
    }
}

/// Decision, reason and next action of a record in one line. A reason that is a sentence stands behind its code.
pub fn headline(record: &Json) -> String {
    let text = |key: &str| record.at(&[key]).as_str();
    let mut line = text("decision").unwrap_or("no decision").to_owned();
    match (text("reason_code"), text("reason")) {
        (Some(code), Some(reason)) => line += &format!(": {code} ({reason})"),
        (None, Some(reason)) => line += &format!(": {reason}"),
        _ => {}
    }
    if let Some(next) = text("next_action") {
        line += &format!("; next: {next}");
    }
    line
}

fn check(subject: &str, status: &str, failed: bool, codes: &[&str], detail: String) -> Check {
    Check {
        subject: subject.to_owned(),
        status: status.to_owned(),
        failed,
        codes: codes.iter().map(|code| (*code).to_owned()).collect(),
        detail,
    }
}

fn shown(name: &Json) -> String {
    name.as_str().map_or_else(|| name.to_line(), str::to_owned)
}

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
    super::role::refuse_profiled(input)?;
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
        .ok_or_else(|| super::optimization::missing_key("original_bottleneck"))?;
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
            super::number::round(row.time_gain_ms, 3),
            least,
            super::number::round(row.quality_delta, 6),
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

fn evaluation_checks(evaluations: &[Evaluation]) -> Vec<Check> {
    evaluations
        .iter()
        .map(|evaluation| {
            let failed = evaluation.status != "feasible";
            let name = shown(&evaluation.name);
            check(
                &name,
                evaluation.status,
                failed,
                &evaluation.reasons,
                String::new(),
            )
        })
        .collect()
}

/// Whether a hand-off of strategies fits a budget, also a stricter one. The input is the hand-off, or has
/// it under `handoff`; it may have its own `budget` and a list of `stricter_budgets`. `workload` and
/// `hardware`, else `workload_id` and `hardware_id` beside the hand-off, say what the budget is for.
///
/// # Errors
/// When the budget or the hand-off cannot be read, or nothing says what the budget is for.
pub fn judge_budget(
    input: &Json,
    workload: Option<&str>,
    hardware: Option<&str>,
    thresholds: &Thresholds,
) -> Result<Verdict> {
    let nested = input.get("handoff");
    let handoff = nested.unwrap_or(input);
    super::role::refuse_profiled(handoff)?;
    let wanted = |given: Option<&str>, key: &'static str| {
        let beside = nested.and_then(|_| input.at(&[key]).as_name());
        given.or(beside).map(str::to_owned).ok_or_else(|| {
            let own = handoff.at(&[key]).as_name().unwrap_or("nothing");
            let message = format!(
                "nothing says which {key} the budget is for: give it by a flag (--workload, --hardware), or as \
                 '{key}' beside the hand-off; what the hand-off says of itself ('{own}') is what is checked"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    };
    let (workload, hardware) = (
        wanted(workload, "workload_id")?,
        wanted(hardware, "hardware_id")?,
    );
    let issues = validate_budget_evidence(handoff, &workload, &hardware);
    let budget = match input.get("budget") {
        Some(budget) => ScreeningBudget::read(budget)?,
        None => thresholds.screening,
    };
    let mut checks = vec![check(
        "hand-off",
        if issues.is_empty() {
            "applicable"
        } else {
            "not applicable"
        },
        !issues.is_empty(),
        &issues,
        format!("{workload} on {hardware}"),
    )];
    let mut result = object! {
        "evidence" => object! {"is_applicable" => issues.is_empty(), "issues" => issues.clone()},
    };
    if let Some(first) = issues.first().copied() {
        let outcome = Outcome::new(Decision::Reject, first, "rework_strategy_or_budget");
        result.set("decision", outcome.to_json());
        return Ok(Verdict::new("budget", &outcome, checks, result));
    }
    let candidates: Vec<HandedCandidate> = workload_records(handoff, "candidates")?
        .iter()
        .map(HandedCandidate::read)
        .collect::<Result<_>>()?;
    let base = evaluate_budget_candidates(&candidates, &budget);
    let stricter: Vec<_> = input
        .at(&["stricter_budgets"])
        .items()
        .iter()
        .map(|budget| {
            Ok(evaluate_budget_candidates(
                &candidates,
                &ScreeningBudget::read(budget)?,
            ))
        })
        .collect::<Result<_>>()?;
    let best: Vec<Option<Json>> = stricter
        .iter()
        .map(|result| result.best_candidate.clone())
        .collect();
    let selection = decide_budget_sensitivity(base.best_candidate.as_ref(), &best);
    checks.extend(evaluation_checks(&base.evaluations));
    for (number, other) in best.iter().enumerate() {
        let same = other.is_some() && *other == base.best_candidate;
        let detail = format!("best: {}", other.as_ref().map_or("none".to_owned(), shown));
        let status = if same { "same" } else { "differs" };
        let subject = format!("stricter budget {}", number + 1);
        let codes: &[&str] = if same {
            &[]
        } else {
            &["selection_is_threshold_sensitive"]
        };
        checks.push(check(&subject, status, !same, codes, detail));
    }
    result.set("base_result", base.to_json());
    let stricter: Vec<Json> = stricter
        .iter()
        .map(super::screening::ScreeningResult::to_json)
        .collect();
    result.set("stricter_results", stricter);
    result.set("decision", selection.to_json());
    Ok(Verdict::new("budget", &selection.outcome, checks, result))
}

/// Whether a strategy of a report fits the budget, and is worth its cost.
///
/// # Errors
/// When the report cannot be read or was measured under a profiler, or no limit of loss is known.
pub fn judge_strategies(report: &Json, thresholds: &Thresholds) -> Result<Verdict> {
    let candidates = Candidate::read_all(report)?;
    let loss = named(&candidates, "baseline").and_then(|one| one.eval_loss.value());
    let budget = thresholds.budget.budget(loss)?;
    let summary = summarize_memory_strategies(&candidates, &budget);
    let outcome = decide_memory_budget_project(&summary.facts());
    let mut checks = evaluation_checks(&summary.evaluations);
    for (row, candidate) in checks.iter_mut().zip(&candidates) {
        if candidate.status.as_deref() == Some("partial_oom") {
            row.codes.push("partial_oom".to_owned());
        }
        let told = |measure: super::measure::Measure, unit: &str| match measure {
            super::measure::Measure::Value(value) => format!("{}{unit}", python_repr(value)),
            super::measure::Measure::NotMeasured => "not measured".to_owned(),
            super::measure::Measure::NotApplicable => "not applicable".to_owned(),
            super::measure::Measure::Invalid => "invalid".to_owned(),
        };
        row.detail = format!(
            "peak {}, {}, loss {}",
            told(candidate.peak_memory_mb, " MB"),
            told(candidate.samples_per_s, " samples/s"),
            told(candidate.eval_loss, "")
        );
    }
    let result = object! {
        "budget" => budget.to_json(),
        "quality_floor" => object! {"max_val_loss" => budget.max_val_loss},
        "summary" => summary.to_json(),
        "decision" => outcome.to_json(),
    };
    Ok(Verdict::new("strategies", &outcome, checks, result))
}

/// Whether the decision about the strategies of a report hangs on a threshold; `relative` takes the grid
/// that is relative to the baseline.
///
/// # Errors
/// As [`judge_strategies`], and when a relative grid has no baseline to be relative to.
pub fn judge_sensitivity(
    report: &Json,
    relative: bool,
    thresholds: &Thresholds,
) -> Result<Verdict> {
    let candidates = Candidate::read_all(report)?;
    let baseline = named(&candidates, "baseline");
    let loss = baseline.and_then(|one| one.eval_loss.value());
    let budget = thresholds.budget.budget(loss)?;
    let relative_grid;
    let grid = if relative {
        let pace = baseline.and_then(|one| one.samples_per_s.value());
        let (Some(pace), Some(loss)) = (pace, loss) else {
            let message = "the baseline has no throughput and loss to be relative to";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        relative_grid = thresholds.relative_sensitivity.of(pace, loss);
        &relative_grid
    } else {
        &thresholds.sensitivity
    };
    let rows = sensitivity_rows(&candidates, &budget, grid);
    let records: Vec<Json> = rows.iter().map(SensitivityRow::to_json).collect();
    let summary = summarize_sensitivity(&records);
    let outcome = summary.outcome();
    let checks = rows
        .iter()
        .map(|row| {
            let subject = format!(
                "cap {} MB, {} samples/s, loss {}",
                python_repr(row.memory_cap_mb),
                python_repr(super::number::round(row.min_samples_per_s, 6)),
                python_repr(super::number::round(row.max_val_loss, 6))
            );
            let best = row.best_candidate.as_deref().unwrap_or("none");
            let detail = format!("best: {best}; fit: {}", row.feasible_names.join(", "));
            let failed = row.decision != Decision::Accept;
            check(
                &subject,
                row.decision.as_str(),
                failed,
                &[row.reason],
                detail,
            )
        })
        .collect();
    let result = object! {
        "sensitivity" => records,
        "sensitivity_summary" => summary.to_json(),
        "decision" => outcome.to_json(),
    };
    Ok(Verdict::new("sensitivity", &outcome, checks, result))
}

/// Whether checkpointing saves activation memory by the ladder of lengths `report`, which belongs to the
/// strategies in `strategy`.
///
/// # Errors
/// When the ladder breaks a rule.
pub fn judge_activation_scope(
    report: &Json,
    strategy: &Json,
    evidence: &Json,
    thresholds: &Thresholds,
) -> Result<Verdict> {
    let config = strategy.at(&["config"]);
    let scope = assess_activation_memory_scope(report, config, &thresholds.activation)?;
    let gates = &scope.gates;
    let row = |subject, code, value: f64, holds, wanted: String| {
        let status = if holds { "holds" } else { "fails" };
        let detail = format!("{} of {wanted}", python_repr(value));
        let codes = if holds { Vec::new() } else { vec![code] };
        check(subject, status, !holds, &codes, detail)
    };
    let checks = vec![
        row(
            "memory saving, MB",
            "memory_saving",
            scope.memory_saving_mb,
            scope.memory_saving_mb >= gates.minimum_memory_saving_mb,
            format!("at least {}", gates.minimum_memory_saving_mb),
        ),
        row(
            "throughput ratio",
            "throughput_ratio",
            scope.throughput_ratio,
            scope.throughput_ratio >= gates.minimum_throughput_ratio,
            format!("at least {}", gates.minimum_throughput_ratio),
        ),
        row(
            "loss delta",
            "loss_delta",
            scope.loss_delta,
            scope.loss_delta <= gates.maximum_loss_delta,
            format!("at most {}", gates.maximum_loss_delta),
        ),
    ];
    let outcome = Outcome {
        decision: if scope.passed {
            Decision::Accept
        } else {
            Decision::Tune
        },
        reason: scope.reason(),
        next_action: None,
    };
    let mut verdict = Verdict::new(
        "activation-scope",
        &outcome,
        checks,
        scope.to_json(evidence),
    );
    scope.decision().clone_into(&mut verdict.word);
    Ok(verdict)
}

/// Whether profiled strategies may go on by their unprofiled measurements: `strategy` and `budget` decide,
/// of `profile` only names and the presence of traces count.
///
/// # Errors
/// When a report cannot be read, the strategies were measured under a profiler, or the profile is of
/// another model, batch or length.
pub fn judge_qualification(
    strategy: &Json,
    budget: &Json,
    profile: &Json,
    has_phase_report: bool,
    thresholds: &Thresholds,
) -> Result<Verdict> {
    let fields = mismatching_fields(
        profile.at(&["config"]),
        strategy.at(&["config"]),
        &PROFILE_FIELDS,
        false,
    );
    if !fields.is_empty() {
        let message = format!("profile_identity {}", python_list(&fields));
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    super::role::refuse_profiled(budget)?;
    let summary = [&["summary"][..], &["result", "summary"]]
        .into_iter()
        .map(|path| budget.at(path))
        .find(|summary| summary.get("evaluations").is_some())
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "the budget has no summary with evaluations",
            )
        })?;
    let qualification = qualify_memory_candidates(
        &StrategyReport::read(strategy)?,
        &BudgetEvaluations::read(summary),
        &ProfileReport::read(profile)?.coverage(),
        &thresholds.qualification,
    );
    let outcome = closure_decision(&qualification, has_phase_report);
    let checks = qualification
        .candidate_records
        .iter()
        .map(|record| {
            let codes: Vec<&str> = record
                .failed_gates
                .iter()
                .chain(&record.missing_evidence)
                .map(String::as_str)
                .collect();
            let number = |value: Option<f64>| value.map_or("not measured".to_owned(), python_repr);
            let detail = record.metrics.map_or_else(String::new, |metrics| {
                format!(
                    "saves {} MB, throughput ratio {}, loss delta {}",
                    number(metrics.memory_saving_mb),
                    number(metrics.throughput_ratio),
                    number(metrics.loss_delta)
                )
            });
            let failed = record.decision != Decision::Accept;
            check(
                &record.name,
                record.decision.as_str(),
                failed,
                &codes,
                detail,
            )
        })
        .collect();
    let mut result = qualification.to_json();
    result.set("decision", outcome.to_json());
    Ok(Verdict::new("qualify", &outcome, checks, result))
}

/// An artefact for a file that a gate read, by the hash of its bytes.
pub fn input_artifact(path: &str, bytes: &[u8]) -> Json {
    use sha2::{Digest as _, Sha256};
    use std::fmt::Write as _;
    let mut sha256 = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(sha256, "{byte:02x}");
    }
    artifact(path, &sha256)
}
