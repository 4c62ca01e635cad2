//! The hand-off of strategies to a budget: is it applicable, who fits, does the choice hold?

use serde::Deserialize;

use super::json::{Json, object};
use super::measure::Measure;
use super::role::refuse_profiled;
use super::strategies::{Evaluation, rank};
use super::verdict::{Decision, Outcome};
use crate::error::{Error, ErrorKind, Result};

/// What is wrong with the hand-off for this workload and hardware, as codes in a fixed order; nothing
/// when it is applicable.
pub fn validate_budget_evidence(
    handoff: &Json,
    workload_id: &str,
    hardware_id: &str,
) -> Vec<&'static str> {
    let is = |key: &str, wanted: &str| handoff.at(&[key]).as_str() == Some(wanted);
    let eligible = handoff.at(&["eligible_candidates"]);
    [
        (is("status", "ready_for_budget_review"), "handoff_not_ready"),
        (is("workload_id", workload_id), "workload_mismatch"),
        (is("hardware_id", hardware_id), "hardware_mismatch"),
        (!eligible.items().is_empty(), "eligible_candidates_missing"),
    ]
    .into_iter()
    .filter(|(holds, _)| !holds)
    .map(|(_, issue)| issue)
    .collect()
}

/// What a handed-off candidate may take and has to give.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScreeningBudget {
    /// Most memory, MiB.
    pub memory_cap_mb: f64,
    /// Least memory that it has to save, MiB.
    pub min_memory_saving_mb: f64,
    /// Least share of the baseline's throughput that it has to keep.
    pub min_throughput_ratio: f64,
    /// How much worse quality may get.
    pub max_quality_delta: f64,
}

impl ScreeningBudget {
    /// Reads the four fields.
    ///
    /// # Errors
    /// When one is missing, no number or out of range.
    pub fn read(budget: &Json) -> Result<Self> {
        let field = |key: &str, is_in_range: fn(f64) -> bool| {
            budget
                .at(&[key])
                .as_f64()
                .filter(|value| is_in_range(*value))
                .ok_or_else(|| {
                    let message = format!("预算字段缺失或取值非法: {key}");
                    Error::new(ErrorKind::Invalid, message)
                })
        };
        Ok(Self {
            memory_cap_mb: field("memory_cap_mb", |value| value > 0.0)?,
            min_memory_saving_mb: field("min_memory_saving_mb", |value| value >= 0.0)?,
            min_throughput_ratio: field("min_throughput_ratio", |value| {
                (0.0..=1.0).contains(&value)
            })?,
            max_quality_delta: field("max_quality_delta", |value| value >= 0.0)?,
        })
    }
}

/// A candidate of a hand-off. What is missing is worse than any limit.
#[derive(Debug, Clone, PartialEq)]
pub struct HandedCandidate {
    /// What its record calls it.
    pub name: Json,
    /// Its evidence can be compared with the baseline's.
    pub comparable: bool,
    /// Peak of allocated memory, MiB.
    pub candidate_peak_memory_mb: Option<f64>,
    /// Memory saved, MiB.
    pub memory_saving_mb: Option<f64>,
    /// Share of the baseline's throughput that it keeps.
    pub throughput_ratio: Option<f64>,
    /// How much worse quality is.
    pub quality_delta: Option<f64>,
}

impl HandedCandidate {
    /// Reads a candidate.
    ///
    /// # Errors
    /// When it says that it was measured under a profiler.
    pub fn read(record: &Json) -> Result<Self> {
        refuse_profiled(record)?;
        let number = |key| record.at(&[key]).as_f64();
        let amount = |key| Measure::amount(record, &[key]).value();
        Ok(Self {
            name: record.at(&["name"]).clone(),
            comparable: record.at(&["status"]).as_str() == Some("comparable"),
            candidate_peak_memory_mb: amount("candidate_peak_memory_mb"),
            memory_saving_mb: number("memory_saving_mb"),
            throughput_ratio: amount("throughput_ratio"),
            quality_delta: number("quality_delta"),
        })
    }
}

/// Who fits a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct ScreeningResult {
    /// The best, as its record calls it.
    pub best_candidate: Option<Json>,
    /// Those that fit, best first.
    pub feasible_names: Vec<Json>,
    /// Each candidate, in order.
    pub evaluations: Vec<Evaluation>,
}

impl ScreeningResult {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        let evaluations: Vec<Json> = self.evaluations.iter().map(Evaluation::to_json).collect();
        object! {
            "best_candidate" => self.best_candidate.clone(),
            "feasible_names" => self.feasible_names.clone(),
            "evaluations" => evaluations,
        }
    }

    /// The best of a stored result.
    ///
    /// # Errors
    /// When it has no such field.
    pub fn best_of(record: &Json) -> Result<Option<Json>> {
        let best = record
            .get("best_candidate")
            .ok_or_else(|| super::optimization::missing_key("best_candidate"))?;
        Ok((!best.is_null()).then(|| best.clone()))
    }
}

/// Weighs handed-off candidates against `budget`. Limits are inclusive; ranking as for strategies.
pub fn evaluate_budget_candidates(
    candidates: &[HandedCandidate],
    budget: &ScreeningBudget,
) -> ScreeningResult {
    let mut evaluations = Vec::new();
    let mut fitting = Vec::new();
    for candidate in candidates {
        if !candidate.comparable {
            evaluations.push(Evaluation {
                name: candidate.name.clone(),
                status: "excluded",
                reasons: vec!["evidence_not_comparable"],
            });
            continue;
        }
        let peak = candidate.candidate_peak_memory_mb.unwrap_or(f64::INFINITY);
        let saving = candidate.memory_saving_mb.unwrap_or(f64::NEG_INFINITY);
        let ratio = candidate.throughput_ratio.unwrap_or(f64::NEG_INFINITY);
        let quality = candidate.quality_delta.unwrap_or(f64::INFINITY);
        let reasons: Vec<&'static str> = [
            (peak > budget.memory_cap_mb, "memory_over_budget"),
            (
                saving < budget.min_memory_saving_mb,
                "memory_saving_below_floor",
            ),
            (
                ratio < budget.min_throughput_ratio,
                "throughput_below_floor",
            ),
            (
                quality > budget.max_quality_delta,
                "quality_delta_over_limit",
            ),
        ]
        .into_iter()
        .filter(|(fails, _)| *fails)
        .map(|(_, reason)| reason)
        .collect();
        let status = if reasons.is_empty() {
            fitting.push((candidate.name.clone(), [peak, ratio, quality]));
            "feasible"
        } else {
            "rejected"
        };
        evaluations.push(Evaluation {
            name: candidate.name.clone(),
            status,
            reasons,
        });
    }
    rank(&mut fitting);
    ScreeningResult {
        best_candidate: fitting.first().map(|(name, _)| name.clone()),
        feasible_names: fitting.into_iter().map(|(name, _)| name).collect(),
        evaluations,
    }
}

/// A choice, and whether stricter budgets would choose the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Decision, reason and next action.
    pub outcome: Outcome,
    /// Who is chosen under the base budget.
    pub selected_candidate: Option<Json>,
}

impl Selection {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "decision" => self.outcome.decision,
            "reason" => self.outcome.reason,
            "selected_candidate" => self.selected_candidate.clone(),
            "next_action" => self.outcome.next_action,
        }
    }
}

/// Decides whether the best candidate under the base budget is also the best under stricter ones; without
/// stricter ones it is.
pub fn decide_budget_sensitivity(base: Option<&Json>, stricter: &[Option<Json>]) -> Selection {
    let outcome = match base {
        None => Outcome::new(
            Decision::Reject,
            "no_candidate_meets_base_budget",
            "rework_strategy_or_budget",
        ),
        Some(best) if stricter.iter().any(|other| other.as_ref() != Some(best)) => Outcome::new(
            Decision::Tune,
            "selection_is_threshold_sensitive",
            "collect_boundary_evidence",
        ),
        Some(_) => Outcome::new(
            Decision::Accept,
            "selection_stable_across_thresholds",
            "send_to_regression_acceptance",
        ),
    };
    Selection {
        outcome,
        selected_candidate: base.cloned(),
    }
}
