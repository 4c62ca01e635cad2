//! Gates about memory strategies: under a budget, over a grid, within a scope, after profiling.

use super::super::activation::assess_activation_memory_scope;
use super::super::candidate::{Candidate, named};
use super::super::closure::closure_decision;
use super::super::identity::{PROFILE_FIELDS, mismatching_fields};
use super::super::json::{Json, object};
use super::super::number::{python_list, python_repr};
use super::super::qualification::qualify_memory_candidates;
use super::super::regression::workload_records;
use super::super::report::{BudgetEvaluations, ProfileReport, StrategyReport};
use super::super::screening::{
    HandedCandidate, ScreeningBudget, decide_budget_sensitivity, evaluate_budget_candidates,
    validate_budget_evidence,
};
use super::super::sensitivity::{SensitivityRow, sensitivity_rows, summarize_sensitivity};
use super::super::strategies::{
    Evaluation, decide_memory_budget_project, summarize_memory_strategies,
};
use super::super::thresholds::Thresholds;
use super::super::verdict::{Decision, Outcome};
use super::{Check, Verdict, check, shown};
use crate::error::{Error, ErrorKind, Result};

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
    super::super::role::refuse_profiled(handoff)?;
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
        .map(super::super::screening::ScreeningResult::to_json)
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
        let told = |measure: super::super::measure::Measure, unit: &str| match measure {
            super::super::measure::Measure::Value(value) => format!("{}{unit}", python_repr(value)),
            super::super::measure::Measure::NotMeasured => "not measured".to_owned(),
            super::super::measure::Measure::NotApplicable => "not applicable".to_owned(),
            super::super::measure::Measure::Invalid => "invalid".to_owned(),
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
                python_repr(super::super::number::round(row.min_samples_per_s, 6)),
                python_repr(super::super::number::round(row.max_val_loss, 6))
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
    super::super::role::refuse_profiled(budget)?;
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
