//! Results of every age: what a file is, and what today's tools can do with it.
//!
//! Older files have no schema or another one. They are told apart by their stage and what is in them, and
//! given today's envelope where nothing has to be made up for it: what was not measured stays out.

use super::budget::{BUDGET_EVIDENCE_SCHEMA, BUDGET_ID, PROJECT_SCHEMA};
use super::close::HANDOFF_SCHEMA;
use super::manifest::{CLOSURE_ID, MANIFEST_SCHEMA};
use super::measurement::MEASUREMENT_SCHEMA;
use super::normalize::NORMALIZED_SCHEMA;
use super::profile::PROFILE_SCHEMA;
use super::training::{BASELINE_ID, STRATEGY_ID};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{CLOSURE_SCHEMA, Json, PHASE_SCHEMA, VERDICT_SCHEMA, object};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// A training baseline (73).
    Baseline,
    /// A probe of one candidate of 73, without a baseline to compare with.
    Probe,
    /// Memory strategies (76).
    Strategy,
    /// The ladder of lengths that isolates activation memory (76).
    ActivationLadder,
    /// Evidence of a memory budget (75).
    BudgetEvidence,
    /// A decision under a memory budget (75).
    BudgetDecision,
    /// Profiled runs (74).
    Profile,
    /// Memory by phase (74).
    PhaseMemory,
    /// The closing record (74).
    Closure,
    /// The merged reports that came before closing records (74).
    Merge,
    /// The hand-off to the combined test.
    Handoff,
    /// The hand-off of strategies to a budget.
    BudgetHandoff,
    /// A normalised result.
    Normalized,
    /// A manifest.
    Manifest,
    /// A file of measurements.
    Measurement,
    /// The verdict of a gate.
    Verdict,
}

impl Form {
    /// The spelling in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "training_baseline",
            Self::Probe => "capacity_probe",
            Self::Strategy => "memory_strategies",
            Self::ActivationLadder => "activation_ladder",
            Self::BudgetEvidence => "budget_evidence",
            Self::BudgetDecision => "budget_decision",
            Self::Profile => "profiled_runs",
            Self::PhaseMemory => "phase_memory",
            Self::Closure => "closure",
            Self::Merge => "upstream_merge",
            Self::Handoff => "handoff",
            Self::BudgetHandoff => "budget_handoff",
            Self::Normalized => "normalized",
            Self::Manifest => "manifest",
            Self::Measurement => "measurement",
            Self::Verdict => "verdict",
        }
    }

    /// The project it belongs to.
    pub fn project(self) -> Option<&'static str> {
        match self {
            Self::Baseline | Self::Probe => Some("73"),
            Self::Strategy | Self::ActivationLadder | Self::BudgetHandoff => Some("76"),
            Self::BudgetEvidence | Self::BudgetDecision => Some("75"),
            Self::Profile | Self::PhaseMemory | Self::Closure | Self::Merge | Self::Handoff => {
                Some("74")
            }
            Self::Normalized | Self::Manifest | Self::Measurement | Self::Verdict => None,
        }
    }
}

/// What a file is, and what it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identified {
    /// What it is.
    pub form: Form,
    /// It has no schema, or an older one.
    pub legacy: bool,
    /// What today's tools would miss in it, one sentence each.
    pub missing: Vec<String>,
}

impl Identified {
    /// As JSON.
    pub fn to_json(&self) -> Json {
        object! {
            "form" => self.form.as_str(),
            "project" => self.form.project(),
            "legacy" => self.legacy,
            "missing" => self.missing.clone(),
        }
    }
}

/// Tells what `record` is.
///
/// # Errors
/// When it is none of the results of the chain, with what it says it is.
pub fn identify(record: &Json) -> Result<Identified> {
    let schema = record.at(&["schema_version"]).as_str();
    let id = record.at(&["semantic_id"]).as_str();
    let stage = record.at(&["stage"]).as_str();
    let is_ladder =
        record.at(&["config", "comparison_scope"]).as_str() == Some("activation_memory_isolation");
    let form = match (schema, id) {
        (Some(PROJECT_SCHEMA), Some(BASELINE_ID)) => Form::Baseline,
        (Some(PROJECT_SCHEMA), Some(STRATEGY_ID)) if is_ladder => Form::ActivationLadder,
        (Some(PROJECT_SCHEMA), Some(STRATEGY_ID)) => Form::Strategy,
        (Some(PROJECT_SCHEMA), Some(BUDGET_ID)) => Form::BudgetDecision,
        (Some(BUDGET_EVIDENCE_SCHEMA), _) => Form::BudgetEvidence,
        (Some(PROFILE_SCHEMA), _) => Form::Profile,
        (Some(PHASE_SCHEMA), _) => Form::PhaseMemory,
        (Some(CLOSURE_SCHEMA | "profiling-optimization/v1"), _) => Form::Closure,
        (Some("profiling-project/v1"), _) => Form::Merge,
        (Some(HANDOFF_SCHEMA), _) => Form::Handoff,
        (Some(NORMALIZED_SCHEMA), _) => Form::Normalized,
        (Some(MANIFEST_SCHEMA), _) => Form::Manifest,
        (Some(MEASUREMENT_SCHEMA), _) => Form::Measurement,
        (Some(VERDICT_SCHEMA), _) => Form::Verdict,
        (Some(other), _) => {
            let id = record.at(&["semantic_id"]).to_line();
            let message = format!("schema_version: '{other}' with semantic_id {id} is not known");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        (None, _) => by_stage(record, stage)?,
    };
    let today = [
        PROJECT_SCHEMA,
        BUDGET_EVIDENCE_SCHEMA,
        PROFILE_SCHEMA,
        PHASE_SCHEMA,
        CLOSURE_SCHEMA,
        HANDOFF_SCHEMA,
        NORMALIZED_SCHEMA,
        MANIFEST_SCHEMA,
        MEASUREMENT_SCHEMA,
        VERDICT_SCHEMA,
    ];
    Ok(Identified {
        form,
        legacy: schema.is_none_or(|schema| !today.contains(&schema))
            && ![Form::Manifest, Form::BudgetHandoff].contains(&form),
        missing: missing(record, form),
    })
}

fn by_stage(record: &Json, stage: Option<&str>) -> Result<Form> {
    let has = |key: &str| record.get(key).is_some();
    Ok(match stage {
        Some("measurement_baseline") if has("baseline") && has("tuned") => Form::Baseline,
        Some("measurement_baseline" | "bf16_capacity_probe") if has("candidate") => Form::Probe,
        Some("activation_checkpoint_offload_benchmark") if has("candidates") => Form::Strategy,
        Some("memory_budget_decision") if has("candidates") => Form::BudgetDecision,
        Some("real_profiler_trace") if has("candidates") => Form::Profile,
        _ if has("eligible_candidates") && has("workload_id") => Form::BudgetHandoff,
        _ if has("source") && has("approved_result") => Form::Manifest,
        _ if has("candidate") && has("config") => Form::Probe,
        _ => {
            let stage = record.at(&["stage"]).to_line();
            let message = format!(
                "has no schema_version, and stage {stage} with these fields is no result of the chain"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    })
}

fn missing(record: &Json, form: Form) -> Vec<String> {
    let mut missing = Vec::new();
    let mut lacks = |holds: bool, what: &str| {
        if !holds {
            missing.push(what.to_owned());
        }
    };
    match form {
        Form::Strategy => {
            let repeated = |candidate: &Json| candidate.at(&["runs"]).items().len() >= 3;
            let candidates = record.at(&["candidates"]).items();
            lacks(
                candidates.iter().all(repeated),
                "three runs of every candidate; a budget and a closure need them",
            );
            for field in ["dtype", "optimizer"] {
                let value = record.at(&["config", field]);
                lacks(
                    !value.is_null(),
                    &format!("config.{field}; a budget and a closure need it"),
                );
            }
        }
        Form::Baseline => {
            for field in ["dtype", "optimizer", "workload", "seed"] {
                let value = record.at(&["config", field]);
                lacks(
                    !value.is_null(),
                    &format!("config.{field}; an identity needs it"),
                );
            }
            let runs = record.at(&["baseline", "runs"]).items().len();
            lacks(runs >= 3, "three runs of the baseline");
        }
        Form::Probe => lacks(false, "a baseline to compare with"),
        Form::BudgetDecision => {
            for key in ["min_memory_saving_mb", "min_throughput_ratio"] {
                let value = record.at(&["budget", key]);
                lacks(
                    value.as_f64().is_some(),
                    &format!("budget.{key}; it was a constant of the program"),
                );
            }
            lacks(
                record.at(&["summary", "evaluations"]).is_list(),
                "summary.evaluations; a closure needs them",
            );
        }
        Form::Profile => lacks(
            record
                .at(&["profile", "measurement_role"])
                .as_str()
                .is_some(),
            "profile.measurement_role; a closure needs it",
        ),
        Form::Merge => lacks(
            record.at(&["profiling", "status"]).as_str() == Some("collected"),
            "profiling evidence; it merges upstream reports only",
        ),
        _ => {}
    }
    missing
}

/// `record` in today's envelope. Fields are added that say what it is; measurements are never made up.
///
/// # Errors
/// When it is no result of the chain, or of a form that today's envelope has no place for.
pub fn modernized(record: &Json) -> Result<Json> {
    let found = identify(record)?;
    let (schema, id) = match found.form {
        _ if !found.legacy => return Ok(record.clone()),
        Form::Baseline => (PROJECT_SCHEMA, BASELINE_ID),
        Form::Strategy | Form::ActivationLadder => (PROJECT_SCHEMA, STRATEGY_ID),
        Form::BudgetDecision => (PROJECT_SCHEMA, BUDGET_ID),
        Form::Profile => (PROFILE_SCHEMA, CLOSURE_ID),
        other => {
            let message = format!(
                "is a {} of an older form, which has no place in today's envelope",
                other.as_str()
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    };
    let mut modern = object! {"schema_version" => schema, "semantic_id" => id};
    for (key, value) in record.fields() {
        modern.set(key, value);
    }
    if found.form == Form::Profile
        && let Some(profile) = modern.get_mut("profile")
    {
        profile.set("measurement_role", crate::gate::PROFILER_METRICS);
        profile.set("timing_for_adoption", false);
    }
    modern.set("legacy_form", true);
    Ok(modern)
}
