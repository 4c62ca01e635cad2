//! Strategies under a memory budget: which fit, which is best, and whether it is worth its cost.

use super::candidate::Candidate;
use super::json::{Json, object};
use super::optimization::missing_key;
use super::role::Unprofiled;
use super::verdict::{Decision, Outcome};
use crate::error::{Error, ErrorKind, Result};

/// What a strategy may take and has to give. Memory in MiB, throughput in samples a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryBudget {
    /// Most memory allocated.
    pub memory_cap_mb: f64,
    /// Least throughput.
    pub min_samples_per_s: f64,
    /// Least memory that a strategy has to save.
    pub min_memory_saving_mb: f64,
    /// Least share of the baseline's throughput that it has to keep.
    pub min_throughput_ratio: f64,
    /// Highest loss of evaluation. Records call it a floor of quality.
    pub max_val_loss: f64,
}

const BUDGET_KEYS: [&str; 5] = [
    "memory_cap_mb",
    "min_samples_per_s",
    "min_memory_saving_mb",
    "min_throughput_ratio",
    "max_val_loss",
];

/// Whether a budget is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetCheck {
    /// Fields that are not there.
    pub missing_keys: Vec<&'static str>,
    /// Fields that hold no number, then fields out of range.
    pub invalid_keys: Vec<&'static str>,
}

impl BudgetCheck {
    /// True when nothing is missing or invalid.
    pub fn is_valid(&self) -> bool {
        self.missing_keys.is_empty() && self.invalid_keys.is_empty()
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "is_valid" => self.is_valid(),
            "missing_keys" => self.missing_keys.clone(),
            "invalid_keys" => self.invalid_keys.clone(),
        }
    }
}

fn budget_field<'a>(budget: &'a Json, quality_floor: &'a Json, key: &str) -> Option<&'a Json> {
    let record = if key == "max_val_loss" {
        quality_floor
    } else {
        budget
    };
    record.get(key)
}

/// Checks the four fields of a budget and the one of its quality floor. Nothing has a default here.
pub fn validate_memory_budget(budget: &Json, quality_floor: &Json) -> BudgetCheck {
    let mut check = BudgetCheck {
        missing_keys: Vec::new(),
        invalid_keys: Vec::new(),
    };
    for key in BUDGET_KEYS {
        match budget_field(budget, quality_floor, key) {
            None => check.missing_keys.push(key),
            Some(value) if value.as_f64().is_none() => check.invalid_keys.push(key),
            Some(_) => {}
        }
    }
    for key in BUDGET_KEYS {
        let value = budget_field(budget, quality_floor, key).and_then(Json::as_f64);
        let is_in_range = value.is_none_or(|value| match key {
            "memory_cap_mb" => value > 0.0,
            "min_throughput_ratio" => (0.0..=1.0).contains(&value),
            _ => value >= 0.0,
        });
        if !is_in_range && !check.invalid_keys.contains(&key) {
            check.invalid_keys.push(key);
        }
    }
    check
}

impl MemoryBudget {
    /// Reads a budget and its quality floor.
    ///
    /// # Errors
    /// When a field is missing or out of range; all of them are named.
    pub fn read(budget: &Json, quality_floor: &Json) -> Result<Self> {
        let check = validate_memory_budget(budget, quality_floor);
        if !check.is_valid() {
            let message = format!("invalid_memory_budget {}", check.to_json().to_line());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let field = |key| {
            budget_field(budget, quality_floor, key)
                .and_then(Json::as_f64)
                .ok_or_else(|| missing_key(key))
        };
        Ok(Self {
            memory_cap_mb: field("memory_cap_mb")?,
            min_samples_per_s: field("min_samples_per_s")?,
            min_memory_saving_mb: field("min_memory_saving_mb")?,
            min_throughput_ratio: field("min_throughput_ratio")?,
            max_val_loss: field("max_val_loss")?,
        })
    }

    /// The four fields of the budget, without the quality floor.
    pub fn to_json(&self) -> Json {
        object! {
            "memory_cap_mb" => self.memory_cap_mb,
            "min_samples_per_s" => self.min_samples_per_s,
            "min_memory_saving_mb" => self.min_memory_saving_mb,
            "min_throughput_ratio" => self.min_throughput_ratio,
        }
    }
}

/// What became of one strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// What its record calls it.
    pub name: Json,
    /// `feasible`, `rejected`, `oom`, `invalid` or `excluded`.
    pub status: &'static str,
    /// Why, as codes.
    pub reasons: Vec<&'static str>,
}

impl Evaluation {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "name" => &self.name,
            "status" => self.status,
            "reasons" => self.reasons.clone(),
        }
    }
}

/// All strategies under one budget.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategySummary {
    /// How many there are.
    pub candidate_count: usize,
    /// How many have all numbers.
    pub measured_count: usize,
    /// How many ran out of memory.
    pub oom_count: usize,
    /// How many have no name of their own or lack a number.
    pub invalid_count: usize,
    /// How many fit the budget.
    pub feasible_count: usize,
    /// The best of those.
    pub best_candidate: Option<String>,
    /// How many are above the highest loss.
    pub quality_failed_count: usize,
    /// Those that fit, best first.
    pub feasible_names: Vec<String>,
    /// Peak of the baseline, MiB.
    pub baseline_peak_memory_mb: Option<f64>,
    /// Throughput of the best over that of the baseline.
    pub throughput_ratio: Option<f64>,
    /// There is a baseline that ran well.
    pub baseline_available: bool,
    /// Peak of the best, MiB.
    pub best_peak_memory_mb: Option<f64>,
    /// What the best saves over the baseline, MiB; 0 when either is not there.
    pub memory_saving_mb: f64,
    /// What it has to save, from the budget.
    pub min_memory_saving_mb: f64,
    /// What share of throughput it has to keep, from the budget.
    pub min_throughput_ratio: f64,
    /// Each strategy, in order.
    pub evaluations: Vec<Evaluation>,
}

impl StrategySummary {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        let evaluations: Vec<Json> = self.evaluations.iter().map(Evaluation::to_json).collect();
        object! {
            "candidate_count" => self.candidate_count,
            "measured_count" => self.measured_count,
            "oom_count" => self.oom_count,
            "invalid_count" => self.invalid_count,
            "feasible_count" => self.feasible_count,
            "best_candidate" => self.best_candidate.clone(),
            "quality_failed_count" => self.quality_failed_count,
            "feasible_names" => self.feasible_names.clone(),
            "baseline_peak_memory_mb" => self.baseline_peak_memory_mb,
            "throughput_ratio" => self.throughput_ratio,
            "baseline_available" => self.baseline_available,
            "best_peak_memory_mb" => self.best_peak_memory_mb,
            "memory_saving_mb" => self.memory_saving_mb,
            "min_memory_saving_mb" => self.min_memory_saving_mb,
            "min_throughput_ratio" => self.min_throughput_ratio,
            "evaluations" => evaluations,
        }
    }

    /// What of it decides.
    pub fn facts(&self) -> SummaryFacts {
        SummaryFacts {
            baseline_available: self.baseline_available,
            feasible_count: self.feasible_count,
            best_candidate: self.best_candidate.clone(),
            memory_saving_mb: self.memory_saving_mb,
            min_memory_saving_mb: self.min_memory_saving_mb,
            throughput_ratio: self.throughput_ratio,
            min_throughput_ratio: self.min_throughput_ratio,
            quality_failed_count: self.quality_failed_count,
        }
    }
}

/// What of a summary decides.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryFacts {
    /// There is a baseline that ran well.
    pub baseline_available: bool,
    /// How many strategies fit the budget.
    pub feasible_count: usize,
    /// The best of those.
    pub best_candidate: Option<String>,
    /// What it saves, MiB.
    pub memory_saving_mb: f64,
    /// What it has to save.
    pub min_memory_saving_mb: f64,
    /// Share of the baseline's throughput that it keeps.
    pub throughput_ratio: Option<f64>,
    /// What it has to keep.
    pub min_throughput_ratio: f64,
    /// How many strategies are above the highest loss.
    pub quality_failed_count: usize,
}

impl SummaryFacts {
    /// Reads them from a stored summary; an absent `baseline_available` is false.
    ///
    /// # Errors
    /// When a field is missing or of the wrong kind.
    pub fn read(summary: &Json) -> Result<Self> {
        let number = |key| super::optimization::required_number(summary, &[key]);
        let count = |key: &str| {
            let value = summary.get(key).ok_or_else(|| missing_key(key))?;
            let count = value.as_int().and_then(|count| usize::try_from(count).ok());
            count.ok_or_else(|| Error::new(ErrorKind::Invalid, format!("{key} is no count")))
        };
        let best = summary
            .get("best_candidate")
            .ok_or_else(|| missing_key("best_candidate"))?;
        Ok(Self {
            baseline_available: summary.at(&["baseline_available"]).is_true(),
            feasible_count: count("feasible_count")?,
            best_candidate: best.as_str().map(str::to_owned),
            memory_saving_mb: number("memory_saving_mb")?,
            min_memory_saving_mb: number("min_memory_saving_mb")?,
            throughput_ratio: summary.at(&["throughput_ratio"]).as_f64(),
            min_throughput_ratio: number("min_throughput_ratio")?,
            quality_failed_count: count("quality_failed_count")?,
        })
    }
}

/// Weighs `candidates` against `budget`. Limits are inclusive and nothing is rounded.
///
/// Those that fit are ranked by less memory, then more throughput, then lower loss, then order; the
/// baseline is one of them. A baseline counts as available when it ran well and has a peak and a
/// throughput above zero.
pub fn summarize_memory_strategies(
    candidates: &[Candidate<Unprofiled>],
    budget: &MemoryBudget,
) -> StrategySummary {
    let mut seen: Vec<&str> = Vec::new();
    let mut evaluations = Vec::new();
    let mut fitting: Vec<(&str, [f64; 3])> = Vec::new();
    let (mut oom_count, mut invalid_count, mut quality_failed_count) = (0, 0, 0);
    for candidate in candidates {
        let mut evaluated = |status, reasons| {
            evaluations.push(Evaluation {
                name: candidate.name.clone(),
                status,
                reasons,
            });
        };
        let Some(name) = candidate.name().filter(|name| !seen.contains(name)) else {
            invalid_count += 1;
            evaluated("invalid", vec!["missing_or_duplicate_name"]);
            continue;
        };
        seen.push(name);
        if candidate.status.as_deref() == Some("oom") {
            oom_count += 1;
            evaluated("oom", vec!["oom"]);
            continue;
        }
        let numbers = (
            candidate.peak_memory_mb.value(),
            candidate.samples_per_s.value(),
            candidate.eval_loss.value(),
        );
        let (Some(memory), Some(throughput), Some(loss)) = numbers else {
            invalid_count += 1;
            evaluated("invalid", vec!["missing_or_non_numeric_metric"]);
            continue;
        };
        let mut reasons = Vec::new();
        if memory > budget.memory_cap_mb {
            reasons.push("memory_over_budget");
        }
        if throughput < budget.min_samples_per_s {
            reasons.push("throughput_below_floor");
        }
        if loss > budget.max_val_loss {
            reasons.push("quality_over_floor");
            quality_failed_count += 1;
        }
        if reasons.is_empty() {
            fitting.push((name, [memory, throughput, loss]));
            evaluated("feasible", reasons);
        } else {
            evaluated("rejected", reasons);
        }
    }
    rank(&mut fitting);
    let best = fitting.first();
    let baseline = candidates
        .iter()
        .filter(|candidate| candidate.name() == Some("baseline") && candidate.is_ok())
        .find_map(|baseline| {
            let throughput = baseline.samples_per_s.value()?;
            Some((baseline.peak_memory_mb.value()?, throughput))
        })
        .filter(|(_, throughput)| *throughput > 0.0);
    let both = baseline.zip(best);
    StrategySummary {
        candidate_count: candidates.len(),
        measured_count: candidates.len() - oom_count - invalid_count,
        oom_count,
        invalid_count,
        feasible_count: fitting.len(),
        best_candidate: best.map(|(name, _)| (*name).to_owned()),
        quality_failed_count,
        feasible_names: fitting.iter().map(|(name, _)| (*name).to_owned()).collect(),
        baseline_peak_memory_mb: baseline.map(|(memory, _)| memory),
        throughput_ratio: both
            .map(|((_, throughput), (_, [_, best_throughput, _]))| best_throughput / throughput),
        baseline_available: baseline.is_some(),
        best_peak_memory_mb: best.map(|(_, [memory, ..])| *memory),
        memory_saving_mb: both.map_or(0.0, |((memory, _), (_, [best_memory, ..]))| {
            memory - best_memory
        }),
        min_memory_saving_mb: budget.min_memory_saving_mb,
        min_throughput_ratio: budget.min_throughput_ratio,
        evaluations,
    }
}

/// Less memory, more throughput, lower loss; stable.
pub(crate) fn rank<T>(fitting: &mut [(T, [f64; 3])]) {
    fitting.sort_by(|(_, a), (_, b)| {
        a[0].total_cmp(&b[0])
            .then(b[1].total_cmp(&a[1]))
            .then(a[2].total_cmp(&b[2]))
    });
}

/// Whose words a decision about a summary is told in; the rules are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    /// The memory budget.
    Budget,
    /// The comparison of strategies.
    Strategy,
}

/// Decides about a summary by the first rule that holds.
pub fn decide_memory_budget_project(facts: &SummaryFacts) -> Outcome {
    decide(facts, Wording::Budget)
}

/// The same rules in the words of the comparison of strategies.
pub fn decide_memory_strategy_project(facts: &SummaryFacts) -> Outcome {
    decide(facts, Wording::Strategy)
}

fn decide(facts: &SummaryFacts, wording: Wording) -> Outcome {
    let words = |budget: &'static str, strategy: &'static str| match wording {
        Wording::Budget => budget,
        Wording::Strategy => strategy,
    };
    let saves = facts.memory_saving_mb >= facts.min_memory_saving_mb;
    let keeps_pace = facts
        .throughput_ratio
        .is_some_and(|ratio| ratio >= facts.min_throughput_ratio);
    let is_strategy = facts.best_candidate.as_deref() != Some("baseline");
    if !facts.baseline_available {
        Outcome::new(
            Decision::Reject,
            "baseline_missing_or_invalid",
            "rerun_baseline_before_comparing_candidates",
        )
    } else if facts.feasible_count == 0 {
        Outcome::new(
            Decision::Reject,
            "no_strategy_meets_budget_and_quality",
            words(
                "tighten_batch_or_rework_memory_plan",
                "rework_checkpoint_or_offload_scope",
            ),
        )
    } else if is_strategy && saves && keeps_pace {
        Outcome::new(
            Decision::Accept,
            words(
                "compression_strategy_is_best_feasible_option",
                "strategy_is_best_feasible_option",
            ),
            "promote_to_training_run",
        )
    } else if facts.quality_failed_count > 0 {
        Outcome::new(
            Decision::Tune,
            words(
                "compression_needs_quality_recovery",
                "strategy_needs_quality_recovery",
            ),
            words(
                "adjust_checkpoint_scope_or_batch_plan",
                "adjust_checkpoint_granularity_or_offload_scope",
            ),
        )
    } else if !saves {
        Outcome::new(
            Decision::Tune,
            "memory_saving_below_meaningful_threshold",
            words(
                "test_larger_pressure_or_optimizer_compression",
                "test_pressure_or_offload_scope",
            ),
        )
    } else if !keeps_pace {
        Outcome::new(
            Decision::Tune,
            "throughput_loss_exceeds_budget",
            words(
                "reduce_compression_scope",
                "reduce_checkpoint_or_offload_scope",
            ),
        )
    } else {
        Outcome::new(
            Decision::Tune,
            "baseline_still_best_under_current_budget",
            words("revisit_memory_strategy_mix", "revisit_strategy_mix"),
        )
    }
}
