//! Whether a profiled strategy may go on: its unprofiled measurements against the gates.

use serde::Deserialize;

use super::candidate::Candidate;
use super::json::{Json, object};
use super::number::round;
use super::report::{BudgetEvaluations, ProfileCoverage, StrategyReport};
use super::role::{ADOPTION_METRICS, Unprofiled};
use super::verdict::Decision;

/// What a strategy has to save and to keep.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QualificationGates {
    /// Least memory saved, MiB.
    pub minimum_memory_saving_mb: f64,
    /// Least share of the baseline's throughput kept.
    pub minimum_throughput_ratio: f64,
    /// Largest difference of losses.
    pub maximum_loss_delta: f64,
}

impl Default for QualificationGates {
    fn default() -> Self {
        Self {
            minimum_memory_saving_mb: 512.0,
            minimum_throughput_ratio: 0.70,
            maximum_loss_delta: 0.01,
        }
    }
}

impl QualificationGates {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "minimum_memory_saving_mb" => self.minimum_memory_saving_mb,
            "minimum_throughput_ratio" => self.minimum_throughput_ratio,
            "maximum_loss_delta" => self.maximum_loss_delta,
        }
    }
}

/// What is said about one strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateRecord {
    /// Which strategy.
    pub name: String,
    /// Reject when a hard gate failed, tune when another did or evidence is missing, else accept.
    pub decision: Decision,
    /// Gates that failed, as codes.
    pub failed_gates: Vec<String>,
    /// Evidence that is not there, as codes.
    pub missing_evidence: Vec<String>,
    /// What was compared; `None` when the strategy did not run well.
    pub metrics: Option<QualificationMetrics>,
    /// What it was compared with; `None` in records that do not say.
    pub gates: Option<QualificationGates>,
}

/// What was compared, rounded for the record; gates see the numbers before that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QualificationMetrics {
    /// Memory saved, MiB, three decimals.
    pub memory_saving_mb: Option<f64>,
    /// Share of throughput kept, six decimals.
    pub throughput_ratio: Option<f64>,
    /// Difference of losses, eight decimals.
    pub loss_delta: Option<f64>,
}

impl CandidateRecord {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        let metrics = self.metrics.map_or_else(Json::object, |metrics| {
            object! {
                "memory_saving_mb" => metrics.memory_saving_mb,
                "throughput_ratio" => metrics.throughput_ratio,
                "loss_delta" => metrics.loss_delta,
            }
        });
        object! {
            "name" => self.name.as_str(),
            "decision" => self.decision,
            "failed_gates" => self.failed_gates.clone(),
            "missing_evidence" => self.missing_evidence.clone(),
            "metrics" => metrics,
            "gates" => self.gates.map(|gates| gates.to_json()),
            "metrics_role" => ADOPTION_METRICS,
        }
    }

    /// Reads what a closing decision needs.
    fn read(record: &Json) -> Option<Self> {
        let words = |key| {
            let items = record.at(&[key]).items().iter();
            items
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        };
        Some(Self {
            name: record.at(&["name"]).as_str()?.to_owned(),
            decision: Decision::from_name(record.at(&["decision"]).as_str()?)?,
            failed_gates: words("failed_gates"),
            missing_evidence: words("missing_evidence"),
            metrics: None,
            gates: None,
        })
    }
}

/// What is said about all profiled strategies.
#[derive(Debug, Clone, PartialEq)]
pub struct Qualification {
    /// Those that passed, in order.
    pub qualified_candidates: Vec<String>,
    /// Each, in order.
    pub candidate_records: Vec<CandidateRecord>,
}

impl Qualification {
    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "qualified_candidates" => self.qualified_candidates.clone(),
            "candidate_records" => self.records_json(),
        }
    }

    /// Only the records.
    pub fn records_json(&self) -> Vec<Json> {
        self.candidate_records
            .iter()
            .map(CandidateRecord::to_json)
            .collect()
    }

    /// Reads a stored qualification; `None` when a record has no name or decision.
    pub fn read(record: &Json) -> Option<Self> {
        let names = record.at(&["qualified_candidates"]).items().iter();
        let records = record.at(&["candidate_records"]).items().iter();
        Some(Self {
            qualified_candidates: names
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            candidate_records: records.map(CandidateRecord::read).collect::<Option<_>>()?,
        })
    }
}

/// Judges every profiled strategy but the baseline by what it measured without the profiler.
///
/// Of the profile, only names and the presence of traces come in.
pub fn qualify_memory_candidates(
    strategy: &StrategyReport,
    budget: &BudgetEvaluations,
    profile: &ProfileCoverage,
    gates: &QualificationGates,
) -> Qualification {
    let baseline = strategy.candidate("baseline");
    let records: Vec<CandidateRecord> = profile
        .strategies
        .iter()
        .filter(|(name, _)| name != "baseline")
        .map(|(name, traced)| {
            let candidate = strategy.candidate(name);
            qualify(
                name,
                [baseline, candidate],
                budget.is_feasible(name),
                *traced,
                gates,
            )
        })
        .collect();
    Qualification {
        qualified_candidates: records
            .iter()
            .filter(|record| record.decision == Decision::Accept)
            .map(|record| record.name.clone())
            .collect(),
        candidate_records: records,
    }
}

fn qualify(
    name: &str,
    [baseline, candidate]: [Option<&Candidate<Unprofiled>>; 2],
    feasible: Option<bool>,
    traced: bool,
    gates: &QualificationGates,
) -> CandidateRecord {
    let record = |decision, failed: Vec<&str>, missing: Vec<&str>, metrics| CandidateRecord {
        name: name.to_owned(),
        decision,
        failed_gates: failed.into_iter().map(str::to_owned).collect(),
        missing_evidence: missing.into_iter().map(str::to_owned).collect(),
        metrics,
        gates: Some(*gates),
    };
    if candidate.is_some_and(|candidate| !candidate.is_ok()) {
        return record(Decision::Reject, vec!["candidate_status"], Vec::new(), None);
    }
    let mut missing = Vec::new();
    if candidate.is_none() {
        missing.push("strategy_measurement");
    }
    let baseline = baseline.filter(|baseline| baseline.is_ok());
    if baseline.is_none() {
        missing.push("baseline_measurement");
    }
    let is_repeated = |side: Option<&Candidate<Unprofiled>>| {
        side.is_none_or(|side| side.ok_runs.is_some_and(|runs| runs >= 3))
    };
    if !is_repeated(candidate) || !is_repeated(baseline) {
        missing.push("repeated_measurements");
    }
    let pair = baseline.zip(candidate);
    let mut compared = |what, of: fn(&Candidate<Unprofiled>) -> Option<f64>| {
        let (baseline, candidate) = pair?;
        let both = of(baseline).zip(of(candidate));
        if both.is_none() {
            missing.push(what);
        }
        both
    };
    let memory = compared("peak_memory_mb", |side| side.peak_allocated_mb.value());
    let pace = compared("samples_per_s", |side| {
        side.samples_per_s.value().filter(|pace| *pace > 0.0)
    });
    let loss = compared("eval_loss", |side| side.eval_or_train_loss.value());
    let saving = memory.map(|(baseline, candidate)| baseline - candidate);
    let ratio = pace.map(|(baseline, candidate)| candidate / baseline);
    let loss_delta = loss.map(|(baseline, candidate)| (baseline - candidate).abs());
    if feasible.is_none() {
        missing.push("budget_evaluation");
    }
    if !traced {
        missing.push("profile_trace");
    }
    let mut failed = Vec::new();
    let mut hard = false;
    if saving.is_some_and(|saving| saving < gates.minimum_memory_saving_mb) {
        failed.push("memory_saving");
    }
    if ratio.is_some_and(|ratio| ratio < gates.minimum_throughput_ratio) {
        failed.push("throughput_ratio");
    }
    if loss_delta.is_some_and(|delta| delta > gates.maximum_loss_delta) {
        failed.push("loss_delta");
        hard = true;
    }
    if feasible == Some(false) {
        failed.push("budget_feasibility");
        hard = true;
    }
    let decision = if hard {
        Decision::Reject
    } else if failed.is_empty() && missing.is_empty() {
        Decision::Accept
    } else {
        Decision::Tune
    };
    let metrics = QualificationMetrics {
        memory_saving_mb: saving.map(|saving| round(saving, 3)),
        throughput_ratio: ratio.map(|ratio| round(ratio, 6)),
        loss_delta: loss_delta.map(|delta| round(delta, 8)),
    };
    record(decision, failed, missing, Some(metrics))
}
