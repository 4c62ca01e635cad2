//! A change under several workloads: contract, evidence and adoption.

use serde::Deserialize;

use super::json::{Json, object};
use super::optimization::{missing_key, required_amount, required_number};
use super::role::refuse_profiled;
use super::verdict::{Decision, Outcome};
use crate::error::{Error, ErrorKind, Result};

/// Whether a pairing is what it says it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ContractCheck {
    /// What is wrong, as codes, in a fixed order.
    pub issues: Vec<&'static str>,
    /// What the record calls the primary workload, when there is exactly one.
    pub primary_workload: Option<Json>,
}

impl ContractCheck {
    /// True without issues.
    pub fn is_valid(&self) -> bool {
        self.issues.is_empty()
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "is_valid" => self.is_valid(),
            "issues" => self.issues.clone(),
            "primary_workload" => self.primary_workload.clone(),
        }
    }
}

/// Checks that a contract names its two sides and the one thing that differs, and that its workloads are
/// one primary and others, each once.
pub fn validate_regression_contract(contract: &Json, records: &[Json]) -> ContractCheck {
    let mut issues = Vec::new();
    for (key, issue) in [
        ("baseline_id", "baseline_id_missing"),
        ("candidate_id", "candidate_id_missing"),
        ("changed_variable", "changed_variable_missing"),
    ] {
        if contract.at(&[key]).as_name().is_none() {
            issues.push(issue);
        }
    }
    let is_primary = |record: &&Json| record.at(&["role"]).as_str() == Some("primary");
    let primaries: Vec<&Json> = records.iter().filter(is_primary).collect();
    if primaries.len() != 1 {
        issues.push("primary_workload_count_invalid");
    }
    let ids: Vec<&Json> = records
        .iter()
        .map(|record| record.at(&["workload_id"]))
        .collect();
    let repeated = ids
        .iter()
        .enumerate()
        .any(|(place, id)| ids[..place].contains(id));
    if repeated {
        issues.push("duplicate_workload_id");
    }
    let primary_workload = match primaries.as_slice() {
        [only] => Some(only.at(&["workload_id"]).clone()),
        _ => None,
    };
    ContractCheck {
        issues,
        primary_workload,
    }
}

/// What one workload shows about a change. Gains are positive when the candidate is better.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionRow {
    /// Which workload.
    pub workload_id: Json,
    /// `primary`, `adjacent` or another word.
    pub role: Json,
    /// Time saved a step, milliseconds.
    pub time_gain_ms: f64,
    /// Memory saved, MiB; `None` in evidence that lacks it.
    pub memory_gain_mb: Option<f64>,
    /// Throughput gained, samples a second.
    pub throughput_gain: Option<f64>,
    /// Loss-like quality, candidate less baseline: higher is worse.
    pub quality_delta: f64,
    /// Time saved in the stage that was the bottleneck, milliseconds.
    pub original_bottleneck_delta_ms: Option<f64>,
    /// The candidate's longest stage.
    pub candidate_bottleneck: Option<String>,
}

impl RegressionRow {
    fn read(record: &Json) -> Result<Self> {
        let optional = |key| record.at(&[key]).as_f64();
        Ok(Self {
            workload_id: record.at(&["workload_id"]).clone(),
            role: record.at(&["role"]).clone(),
            time_gain_ms: required_number(record, &["time_gain_ms"])?,
            memory_gain_mb: optional("memory_gain_mb"),
            throughput_gain: optional("throughput_gain"),
            quality_delta: required_number(record, &["quality_delta"])?,
            original_bottleneck_delta_ms: optional("original_bottleneck_delta_ms"),
            candidate_bottleneck: record
                .at(&["candidate_bottleneck"])
                .as_str()
                .map(str::to_owned),
        })
    }

    fn to_json(&self) -> Json {
        object! {
            "workload_id" => &self.workload_id,
            "role" => &self.role,
            "time_gain_ms" => self.time_gain_ms,
            "memory_gain_mb" => self.memory_gain_mb,
            "throughput_gain" => self.throughput_gain,
            "quality_delta" => self.quality_delta,
            "original_bottleneck_delta_ms" => self.original_bottleneck_delta_ms,
            "candidate_bottleneck" => self.candidate_bottleneck.clone(),
        }
    }
}

/// What all workloads show about a change.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionEvidence {
    /// The primary workload; `None` when it is not there or failed.
    pub primary: Option<RegressionRow>,
    /// Adjacent workloads, in order.
    pub adjacent: Vec<RegressionRow>,
    /// Workloads that did not end well.
    pub hard_failures: Vec<Json>,
    /// The stage that was the bottleneck.
    pub original_bottleneck: String,
    /// It takes less time than before, in the primary workload.
    pub original_bottleneck_reduced: bool,
    /// The longest stage of the candidate in the primary workload.
    pub candidate_bottleneck: Option<String>,
}

impl RegressionEvidence {
    /// Reads evidence that was built before.
    ///
    /// # Errors
    /// When a row lacks a number that decides, or it says that it was profiled.
    pub fn read(record: &Json) -> Result<Self> {
        refuse_profiled(record)?;
        let primary = match record.get("primary") {
            None => return Err(missing_key("primary")),
            Some(Json::Null) => None,
            Some(row) => Some(RegressionRow::read(row)?),
        };
        let adjacent = record.at(&["adjacent"]).items();
        Ok(Self {
            primary,
            adjacent: adjacent
                .iter()
                .map(RegressionRow::read)
                .collect::<Result<_>>()?,
            hard_failures: record.at(&["hard_failures"]).items().to_vec(),
            original_bottleneck: record
                .at(&["original_bottleneck"])
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            original_bottleneck_reduced: record.at(&["original_bottleneck_reduced"]).is_true(),
            candidate_bottleneck: record
                .at(&["candidate_bottleneck"])
                .as_str()
                .map(str::to_owned),
        })
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        let adjacent: Vec<Json> = self.adjacent.iter().map(RegressionRow::to_json).collect();
        object! {
            "primary" => self.primary.as_ref().map(RegressionRow::to_json),
            "adjacent" => adjacent,
            "hard_failures" => self.hard_failures.clone(),
            "original_bottleneck" => self.original_bottleneck.as_str(),
            "original_bottleneck_reduced" => self.original_bottleneck_reduced,
            "candidate_bottleneck" => self.candidate_bottleneck.clone(),
        }
    }
}

/// The time of `stage`; `update` and `optimizer` are two words for one.
fn stage_ms(stages: &Json, stage: &str) -> Result<f64> {
    let alias = match stage {
        "update" => "optimizer",
        "optimizer" => "update",
        other => other,
    };
    if stages.get(stage).is_none() && stages.get(alias).is_none() {
        return Err(missing_key(stage));
    }
    required_amount(stages, &[stage, alias])
}

fn longest_stage(stages: &Json) -> Result<Option<String>> {
    let mut longest: Option<(&str, f64)> = None;
    for (stage, _) in stages.fields() {
        let time = required_amount(stages, &[stage])?;
        if longest.is_none_or(|(_, most)| time > most) {
            longest = Some((stage, time));
        }
    }
    Ok(longest.map(|(stage, _)| stage.to_owned()))
}

/// Compares both sides of every workload. Nothing is rounded.
///
/// # Errors
/// When a workload that ended well lacks a number or the stage `original_bottleneck`.
pub fn build_regression_evidence(
    records: &[Json],
    original_bottleneck: &str,
) -> Result<RegressionEvidence> {
    let mut rows = Vec::new();
    let mut hard_failures = Vec::new();
    for record in records {
        refuse_profiled(record)?;
        if record.at(&["status"]).as_str() != Some("ok") {
            hard_failures.push(record.at(&["workload_id"]).clone());
            continue;
        }
        let side = |key: &str| record.get(key).ok_or_else(|| missing_key(key));
        let (base, candidate) = (side("baseline")?, side("candidate")?);
        let stages = [side("baseline_stages_ms")?, side("candidate_stages_ms")?];
        let amount = |side: &Json, key| required_amount(side, &[key]);
        let saved = |key| Ok::<_, Error>(amount(base, key)? - amount(candidate, key)?);
        let quality = |side: &Json| required_number(side, &["quality"]);
        let throughput = |side: &Json| amount(side, "throughput");
        rows.push(RegressionRow {
            workload_id: record.at(&["workload_id"]).clone(),
            role: record.at(&["role"]).clone(),
            time_gain_ms: saved("step_time_ms")?,
            memory_gain_mb: Some(saved("peak_mem_mb")?),
            throughput_gain: Some(throughput(candidate)? - throughput(base)?),
            quality_delta: quality(candidate)? - quality(base)?,
            original_bottleneck_delta_ms: Some(
                stage_ms(stages[0], original_bottleneck)?
                    - stage_ms(stages[1], original_bottleneck)?,
            ),
            candidate_bottleneck: longest_stage(stages[1])?,
        });
    }
    let has_role = |row: &&RegressionRow, role| row.role.as_str() == Some(role);
    let primary = rows.iter().find(|row| has_role(row, "primary")).cloned();
    let adjacent = rows.iter().filter(|row| has_role(row, "adjacent"));
    Ok(RegressionEvidence {
        adjacent: adjacent.cloned().collect(),
        hard_failures,
        original_bottleneck: original_bottleneck.to_owned(),
        original_bottleneck_reduced: primary
            .as_ref()
            .and_then(|row| row.original_bottleneck_delta_ms)
            .is_some_and(|delta| delta > 0.0),
        candidate_bottleneck: primary
            .as_ref()
            .and_then(|row| row.candidate_bottleneck.clone()),
        primary,
    })
}

/// What a change has to gain, and may cost, over several workloads.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegressionGates {
    /// Time saved a step in the primary workload, milliseconds.
    pub min_primary_time_gain_ms: f64,
    /// Time that a step of an adjacent workload may take longer, milliseconds.
    pub max_adjacent_slowdown_ms: f64,
    /// How much worse quality may get in any workload.
    pub max_quality_delta: f64,
    /// Memory that any workload may take more, MiB; `None`: not gated.
    pub max_memory_growth_mb: Option<f64>,
    /// Throughput that any workload may lose, samples a second; `None`: not gated.
    pub max_throughput_loss: Option<f64>,
    /// At least one adjacent workload has to be there.
    pub require_adjacent: bool,
}

impl Default for RegressionGates {
    fn default() -> Self {
        Self {
            min_primary_time_gain_ms: 10.0,
            max_adjacent_slowdown_ms: 3.0,
            max_quality_delta: 0.02,
            max_memory_growth_mb: None,
            max_throughput_loss: None,
            require_adjacent: false,
        }
    }
}

impl RegressionGates {
    /// Reads the three gates, and those of the optional ones that are there.
    ///
    /// # Errors
    /// When one is missing or no finite number.
    pub fn read(record: &Json) -> Result<Self> {
        let optional = |key| match record.at(&[key]) {
            Json::Null => Ok(None),
            _ => required_number(record, &[key]).map(Some),
        };
        Ok(Self {
            min_primary_time_gain_ms: required_number(record, &["min_primary_time_gain_ms"])?,
            max_adjacent_slowdown_ms: required_number(record, &["max_adjacent_slowdown_ms"])?,
            max_quality_delta: required_number(record, &["max_quality_delta"])?,
            max_memory_growth_mb: optional("max_memory_growth_mb")?,
            max_throughput_loss: optional("max_throughput_loss")?,
            require_adjacent: record.at(&["require_adjacent"]).is_true(),
        })
    }
}

/// Whether something fell by more than `limit`, where there is a limit; what was not measured did.
fn falls(gain: Option<f64>, limit: Option<f64>) -> bool {
    limit.is_some_and(|limit| gain.is_none_or(|gain| gain < -limit))
}

impl RegressionGates {
    /// Whether a workload takes more memory than it may.
    pub(crate) fn costs_memory(&self, row: &RegressionRow) -> bool {
        falls(row.memory_gain_mb, self.max_memory_growth_mb)
    }

    /// Whether a workload loses more throughput than it may.
    pub(crate) fn costs_throughput(&self, row: &RegressionRow) -> bool {
        falls(row.throughput_gain, self.max_throughput_loss)
    }

    /// Whether an adjacent workload is wanted and none is there.
    pub(crate) fn lacks_adjacent(&self, evidence: &RegressionEvidence) -> bool {
        self.require_adjacent && evidence.adjacent.is_empty()
    }
}

/// Whether to adopt a change, and whether to go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionDecision {
    /// Decision, reason and next action.
    pub outcome: Outcome,
    /// The baseline is to be restored.
    pub rollback: bool,
}

impl AdoptionDecision {
    /// A rejection that restores the baseline.
    pub(crate) fn rejected(reason: &'static str) -> Self {
        Self {
            outcome: Outcome::new(Decision::Reject, reason, "restore_baseline"),
            rollback: true,
        }
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        object! {
            "decision" => self.outcome.decision,
            "reason" => self.outcome.reason,
            "rollback" => self.rollback,
            "next_action" => self.outcome.next_action,
        }
    }
}

/// Decides about adoption: failures first, then quality, then gain, slowdown and bottleneck.
pub fn decide_regression_adoption(
    evidence: &RegressionEvidence,
    gates: &RegressionGates,
) -> AdoptionDecision {
    let Some(primary) = evidence
        .primary
        .as_ref()
        .filter(|_| evidence.hard_failures.is_empty())
    else {
        return AdoptionDecision::rejected("hard_failure_or_primary_missing");
    };
    let rows = || std::iter::once(primary).chain(&evidence.adjacent);
    if rows().any(|row| row.quality_delta > gates.max_quality_delta) {
        return AdoptionDecision::rejected("quality_guardrail_failed");
    }
    let gained = primary.time_gain_ms >= gates.min_primary_time_gain_ms;
    let slowed = evidence
        .adjacent
        .iter()
        .any(|row| row.time_gain_ms < -gates.max_adjacent_slowdown_ms);
    let costs = rows().any(|row| gates.costs_memory(row) || gates.costs_throughput(row));
    let alone = gates.lacks_adjacent(evidence);
    if !gained || slowed || costs || alone || !evidence.original_bottleneck_reduced {
        return AdoptionDecision {
            outcome: Outcome::new(
                Decision::Tune,
                "benefit_or_bottleneck_evidence_incomplete",
                "adjust_and_rerun_regression",
            ),
            rollback: false,
        };
    }
    AdoptionDecision {
        outcome: Outcome::new(
            Decision::Accept,
            "benefit_and_guardrails_passed",
            "freeze_candidate_and_thresholds",
        ),
        rollback: false,
    }
}

/// The records under `key`.
///
/// # Errors
/// When there is no such list.
pub fn workload_records<'a>(input: &'a Json, key: &str) -> Result<&'a [Json]> {
    match input.get(key) {
        Some(Json::List(records)) => Ok(records),
        Some(_) => Err(Error::new(ErrorKind::Invalid, format!("{key} is no list"))),
        None => Err(missing_key(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Json> {
        let side = |time: f64, memory: f64| {
            object! {"step_time_ms" => time, "peak_mem_mb" => memory, "throughput" => 1.0, "quality" => 1.0}
        };
        vec![object! {
            "workload_id" => "w", "role" => "primary", "status" => "ok",
            "baseline" => side(100.0, 10.0), "candidate" => side(80.0, 14.0),
            "baseline_stages_ms" => object! {"forward" => 40.0, "update" => 60.0},
            "candidate_stages_ms" => object! {"forward" => 40.0, "update" => 40.0},
        }]
    }

    #[test]
    fn update_and_optimizer_are_one_stage() {
        let evidence = build_regression_evidence(&records(), "optimizer").unwrap();
        assert!(evidence.original_bottleneck_reduced);
        assert_eq!(evidence.candidate_bottleneck.as_deref(), Some("forward"));
    }

    #[test]
    fn optional_gates_hold_when_they_are_set() {
        let evidence = build_regression_evidence(&records(), "update").unwrap();
        let decide = |gates: RegressionGates| {
            decide_regression_adoption(&evidence, &gates)
                .outcome
                .decision
        };
        let gates = RegressionGates::default();
        assert_eq!(decide(gates), Decision::Accept);
        for gates in [
            RegressionGates {
                max_memory_growth_mb: Some(3.0),
                ..gates
            },
            RegressionGates {
                require_adjacent: true,
                ..gates
            },
        ] {
            assert_eq!(decide(gates), Decision::Tune);
        }
        let wide = RegressionGates {
            max_memory_growth_mb: Some(4.0),
            ..gates
        };
        assert_eq!(decide(wide), Decision::Accept);
    }
}
