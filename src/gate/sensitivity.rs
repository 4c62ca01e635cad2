//! The same decision over a grid of thresholds: does it hang on one of them?

use serde::Deserialize;

use super::candidate::Candidate;
use super::json::{Json, object};
use super::role::Unprofiled;
use super::strategies::{MemoryBudget, decide_memory_budget_project, summarize_memory_strategies};
use super::verdict::{Decision, Outcome};

/// The key of nothing in counts.
const NONE: &str = "<none>";

/// Thresholds to try, all with all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// Most memory, MiB.
    pub memory_caps_mb: Vec<f64>,
    /// Least throughput, samples a second.
    pub min_samples_per_s: Vec<f64>,
    /// Highest loss.
    pub max_val_loss: Vec<f64>,
}

impl Default for Grid {
    /// 18 cells.
    fn default() -> Self {
        Self {
            memory_caps_mb: vec![9600.0, 11200.0],
            min_samples_per_s: vec![1.0, 1.5, 2.0],
            max_val_loss: vec![12.20, 12.45, 12.80],
        }
    }
}

/// Thresholds to try, by what the baseline measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelativeGrid {
    /// Most memory, MiB.
    pub memory_caps_mb: Vec<f64>,
    /// Shares of the baseline's throughput.
    pub throughput_factors: Vec<f64>,
    /// Multiples of the baseline's loss.
    pub loss_factors: Vec<f64>,
}

impl Default for RelativeGrid {
    /// 27 cells.
    fn default() -> Self {
        Self {
            memory_caps_mb: vec![9500.0, 10000.0, 11200.0],
            throughput_factors: vec![0.5, 0.7, 0.9],
            loss_factors: vec![1.01, 1.02, 1.05],
        }
    }
}

impl RelativeGrid {
    /// The grid for a baseline with this throughput (samples a second) and loss.
    pub fn of(&self, samples_per_s: f64, loss: f64) -> Grid {
        let times = |factors: &[f64], value| factors.iter().map(|factor| value * factor).collect();
        Grid {
            memory_caps_mb: self.memory_caps_mb.clone(),
            min_samples_per_s: times(&self.throughput_factors, samples_per_s),
            max_val_loss: times(&self.loss_factors, loss),
        }
    }
}

/// One cell of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct SensitivityRow {
    /// Most memory, MiB.
    pub memory_cap_mb: f64,
    /// Least throughput, samples a second.
    pub min_samples_per_s: f64,
    /// Highest loss.
    pub max_val_loss: f64,
    /// Strategies that fit, best first.
    pub feasible_names: Vec<String>,
    /// The best of them.
    pub best_candidate: Option<String>,
    /// What is decided here.
    pub decision: Decision,
    /// Why.
    pub reason: &'static str,
    /// What the best saves, MiB.
    pub memory_saving_mb: f64,
    /// Share of the baseline's throughput that it keeps.
    pub throughput_ratio: Option<f64>,
}

impl SensitivityRow {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "memory_cap_mb" => self.memory_cap_mb,
            "min_samples_per_s" => self.min_samples_per_s,
            "max_val_loss" => self.max_val_loss,
            "feasible_names" => self.feasible_names.clone(),
            "best_candidate" => self.best_candidate.clone(),
            "decision" => self.decision,
            "memory_saving_mb" => self.memory_saving_mb,
            "throughput_ratio" => self.throughput_ratio,
        }
    }
}

/// Every cell of `grid`: caps, within them floors of throughput, within them limits of loss. What a
/// strategy has to save and to keep stays as in `budget`.
pub fn sensitivity_rows(
    candidates: &[Candidate<Unprofiled>],
    budget: &MemoryBudget,
    grid: &Grid,
) -> Vec<SensitivityRow> {
    let mut rows = Vec::new();
    for &memory_cap_mb in &grid.memory_caps_mb {
        for &min_samples_per_s in &grid.min_samples_per_s {
            for &max_val_loss in &grid.max_val_loss {
                let cell = MemoryBudget {
                    memory_cap_mb,
                    min_samples_per_s,
                    max_val_loss,
                    ..*budget
                };
                let summary = summarize_memory_strategies(candidates, &cell);
                let outcome = decide_memory_budget_project(&summary.facts());
                rows.push(SensitivityRow {
                    memory_cap_mb,
                    min_samples_per_s,
                    max_val_loss,
                    feasible_names: summary.feasible_names,
                    best_candidate: summary.best_candidate,
                    decision: outcome.decision,
                    reason: outcome.reason,
                    memory_saving_mb: summary.memory_saving_mb,
                    throughput_ratio: summary.throughput_ratio,
                });
            }
        }
    }
    rows
}

/// How much the cells of a grid differ. Counts are in order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SensitivitySummary {
    /// Number of cells.
    pub scenario_count: usize,
    /// Cells by decision.
    pub decision_counts: Vec<(String, usize)>,
    /// Cells by best strategy.
    pub best_candidate_counts: Vec<(String, usize)>,
    /// Cells by the strategies that fit, ranked.
    pub feasible_set_counts: Vec<(String, usize)>,
}

impl SensitivitySummary {
    /// The same strategy is best in every cell.
    pub fn best_candidate_stable(&self) -> bool {
        self.best_candidate_counts.len() == 1
    }

    /// The same strategies fit in every cell.
    pub fn feasible_set_stable(&self) -> bool {
        self.feasible_set_counts.len() == 1
    }

    /// The same is decided in every cell.
    pub fn decision_stable(&self) -> bool {
        self.decision_counts.len() == 1
    }

    /// `stable` when best and set are; decisions are not asked.
    pub fn interpretation(&self) -> &'static str {
        if self.best_candidate_stable() && self.feasible_set_stable() {
            "stable"
        } else {
            "sensitive_to_thresholds"
        }
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        let counts = |counts: &[(String, usize)]| {
            let mut object = Json::object();
            for (key, count) in counts {
                object.set(key.as_str(), *count);
            }
            object
        };
        object! {
            "scenario_count" => self.scenario_count,
            "decision_counts" => counts(&self.decision_counts),
            "best_candidate_counts" => counts(&self.best_candidate_counts),
            "feasible_set_counts" => counts(&self.feasible_set_counts),
            "best_candidate_stable" => self.best_candidate_stable(),
            "feasible_set_stable" => self.feasible_set_stable(),
            "decision_stable" => self.decision_stable(),
            "interpretation" => self.interpretation(),
        }
    }

    /// The decision over all cells: theirs when they agree, else `tune`, because it hangs on thresholds
    /// that nobody measured.
    pub fn outcome(&self) -> Outcome {
        let only = match self.decision_counts.as_slice() {
            [(only, _)] => Decision::from_name(only),
            _ => None,
        };
        match only {
            Some(Decision::Accept) => Outcome::new(
                Decision::Accept,
                "selection_stable_across_thresholds",
                "send_to_regression_acceptance",
            ),
            Some(Decision::Reject) => Outcome::new(
                Decision::Reject,
                "no_candidate_meets_base_budget",
                "rework_strategy_or_budget",
            ),
            Some(Decision::Tune) => Outcome::new(
                Decision::Tune,
                "no_scenario_accepts",
                "test_larger_pressure_or_optimizer_compression",
            ),
            None => Outcome::new(
                Decision::Tune,
                "selection_is_threshold_sensitive",
                "collect_boundary_evidence",
            ),
        }
    }
}

/// Counts the cells. Takes records of cells, so that stored grids can be checked.
pub fn summarize_sensitivity(rows: &[Json]) -> SensitivitySummary {
    let mut summary = SensitivitySummary {
        scenario_count: rows.len(),
        decision_counts: Vec::new(),
        best_candidate_counts: Vec::new(),
        feasible_set_counts: Vec::new(),
    };
    for row in rows {
        let names: Vec<&str> = row
            .at(&["feasible_names"])
            .items()
            .iter()
            .filter_map(Json::as_str)
            .collect();
        let set = if names.is_empty() {
            NONE.to_owned()
        } else {
            names.join(",")
        };
        let text = |key| row.at(&[key]).as_str().unwrap_or(NONE).to_owned();
        count(&mut summary.decision_counts, text("decision"));
        count(&mut summary.best_candidate_counts, text("best_candidate"));
        count(&mut summary.feasible_set_counts, set);
    }
    summary
}

fn count(counts: &mut Vec<(String, usize)>, key: String) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}
