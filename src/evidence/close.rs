//! The closing record and the hand-off that follows from it.

use std::path::Path;

use super::budget::{StageReport, standard_metrics};
use super::closure::{ClosureInputs, ClosureProject};
use super::manifest::SOURCES;
use super::profile::PROFILE_SCHEMA;
use super::record::{Saved, is_same, save_json_record_once};
use super::root::hash;
use super::stage::{ClosureStage, Label};
use super::trace_folder::inspect_profile_trace;
use super::workspace::{Paths, tool};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    ActivationScope, Assessment, BudgetEvaluations, CLOSURE_SCHEMA, FULL_TRAINING, Json, Outcome,
    PHASE_SCHEMA, ProfileReport, Qualification, StrategyReport, assess_activation_memory_scope,
    build_workload_identity, closure_decision, evidence_roles, infer_bottleneck_assessments,
    object, qualify_memory_candidates, standard_experiment_config, validate_phase_memory_result,
    validate_result,
};

/// Schema of the hand-off.
pub const HANDOFF_SCHEMA: &str = "performance-handoff/v1";

/// The records that a closing decision is explained by.
struct Explained {
    profile: Json,
    /// The record of memory by phase; `None` when it is not there and not required.
    phase: Option<Json>,
}

/// What a closing decision came to.
struct Closing {
    qualification: Qualification,
    outcome: Outcome,
    report: Json,
}

impl ClosureProject {
    /// Looks at everything and writes nothing: what the stage is about, whether the evidence is ready,
    /// and what the profiles show.
    ///
    /// # Errors
    /// At the first rule that does not hold.
    pub fn prepare(&self, label: &str) -> Result<StageReport> {
        let inputs = self.inputs(ClosureStage::Prepare)?;
        let review = self.review(&inputs)?;
        let profile = inputs.manifest.profile.as_ref();
        let profile = profile
            .map(|entry| Json::read_object(&entry.path))
            .transpose()?;
        let closure = Label::new(label)
            .ok()
            .map(|label| Paths::new(&self.root, &label).closure())
            .filter(|path| path.exists())
            .map(|path| Json::read_object(&path))
            .transpose()?;
        Ok(StageReport {
            record: object! {
                "status" => "prepared",
                "preflight" => &inputs.preflight,
                "profile_identity" => self.identity(ClosureStage::Prepare, label, &inputs),
                "evidence_review" => review,
                "attribution" => profile.as_ref().map(attribution_table),
                "closure_decision" => closure.map(|closure| closure.at(&["decision"]).clone()),
            },
            decision: None,
        })
    }

    /// Whether the evidence of the manifest is ready to decide by.
    ///
    /// # Errors
    /// When the workload differs or the activation ladder breaks a rule.
    pub fn review(&self, inputs: &ClosureInputs) -> Result<Json> {
        let identity = build_workload_identity(&inputs.baseline, &inputs.strategy, self.strict)?;
        let profile = inputs.manifest.profile.as_ref();
        let (profile_path, profile_record) = match profile {
            Some(entry) => (
                entry.artifact.at(&["path"]).clone(),
                Json::read_object(&entry.path)?,
            ),
            None => (Json::Null, Json::Null),
        };
        let schema = profile_record.at(&["schema_version"]).as_str();
        let profile_ok = schema == Some(PROFILE_SCHEMA);
        let required = self.thresholds.phase.require_phase_memory;
        let phase = inputs
            .manifest
            .phase
            .as_ref()
            .filter(|entry| entry.path.exists());
        let (phase_path, phase_record) = match phase {
            Some(entry) => (
                entry.artifact.at(&["path"]).clone(),
                Some(Json::read_object(&entry.path)?),
            ),
            None => (Json::Null, None),
        };
        let phase_errors = match &phase_record {
            Some(record) => validate_phase_memory_result(record),
            None => vec!["phase report missing".to_owned()],
        };
        let phase_schema = phase_record
            .as_ref()
            .is_some_and(|record| record.at(&["schema_version"]).as_str() == Some(PHASE_SCHEMA));
        let scope = self.activation_scope(inputs)?;
        let ready = profile_ok && (!required || phase_errors.is_empty());
        Ok(object! {
            "workload_identity" => identity,
            "profile" => object! {
                "path" => profile_path,
                "schema_ok" => profile_ok,
                "evidence_level" => profile_record.at(&["profile", "measurement_role"]),
            },
            "phase_memory" => object! {
                "path" => phase_path,
                "schema_ok" => phase_schema,
                "errors" => phase_errors,
                "evidence_level" => phase_record
                    .as_ref()
                    .map(|record| record.at(&["evidence_level"]).clone()),
            },
            "activation_memory_scope" => object! {
                "path" => inputs.manifest.sources[3].artifact.at(&["path"]),
                "decision" => scope.decision(),
                "promotable_to_full_training" => false,
            },
            "ready_for_decision" => ready,
        })
    }

    fn activation_scope(&self, inputs: &ClosureInputs) -> Result<ActivationScope> {
        let config = inputs.strategy.at(&["config"]);
        assess_activation_memory_scope(&inputs.activation, config, &self.thresholds.activation)
            .map_err(|error| Error::new(error.kind(), format!("activation_{error}")))
    }

    /// Decides and writes the closing record, then the hand-off; what is there and equal is complete.
    ///
    /// # Errors
    /// When a rule does not hold, the evidence is not ready, the hand-off is there without its closing
    /// record, or one of them is there with other content, which stays as it is.
    pub fn close(&self, label: &Label) -> Result<StageReport> {
        let inputs = self.inputs(ClosureStage::Close)?;
        let review = self.review(&inputs)?;
        if !review.at(&["ready_for_decision"]).is_true() {
            let mut short = review.clone();
            short.remove("workload_identity");
            let message = format!("evidence_not_ready {}", short.to_line());
            return Err(Error::new(ErrorKind::State, message));
        }
        let closing = self.closing(label, &inputs)?;
        let paths = Paths::new(&self.root, label);
        let (closure_path, handoff_path) = (paths.closure(), paths.handoff());
        if !closure_path.exists() && handoff_path.exists() {
            let message = "broken_chain: the hand-off is there and its closing record is not";
            return Err(Error::new(ErrorKind::State, message).in_file(&handoff_path));
        }
        let report_status = confirm(&closure_path, &closing.report)?;
        let handoff = self.handoff(label, &inputs, &closing, &closure_path)?;
        let handoff_status = confirm(&handoff_path, &handoff)?;
        let status = match (report_status, handoff_status) {
            (Saved::AlreadyComplete, Saved::AlreadyComplete) => "already_complete",
            _ => "completed",
        };
        Ok(StageReport {
            record: object! {
                "status" => status,
                "report_status" => report_status.as_str(),
                "handoff_status" => handoff_status.as_str(),
                "decision" => closing.outcome.to_json(),
                "decision_scopes" => closing.report.at(&["decision_scopes"]),
                "result_path" => self.root.relative(&closure_path)?,
                "handoff_path" => self.root.relative(&handoff_path)?,
            },
            decision: Some(closing.outcome.decision),
        })
    }

    /// Reads what explains the decision and checks what the review, which comes before, has not.
    fn explained(&self, inputs: &ClosureInputs) -> Result<Explained> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        let Some(entry) = &inputs.manifest.profile else {
            let message = "profile report missing";
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        let profile = Json::read_object(&entry.path)?;
        for (path, wanted) in profile.at(&["profile", "trace_sha256"]).fields() {
            let place = self.root.join(path);
            self.root.relative(&place)?;
            let found = hash(&place)?;
            if wanted.as_str() != Some(&found) {
                let wanted = wanted.to_line();
                return invalid(format!(
                    "trace_hash: {path} has sha256 {found}, not {wanted}"
                ));
            }
        }
        let required = self.thresholds.phase.require_phase_memory;
        let Some(entry) = &inputs.manifest.phase else {
            if required {
                return Err(Error::new(ErrorKind::NotFound, "phase report missing"));
            }
            return Ok(Explained {
                profile,
                phase: None,
            });
        };
        let phase = Json::read_object(&entry.path)?;
        let schema = phase.at(&["schema_version"]);
        if schema.as_str() != Some(PHASE_SCHEMA) {
            let schema = schema.to_line();
            return invalid(format!("phase_schema: {schema} is not {PHASE_SCHEMA}"));
        }
        let errors = validate_phase_memory_result(&phase);
        if !errors.is_empty() {
            return invalid(format!("phase_report_invalid: {}", errors.join("; ")));
        }
        if required {
            for name in &self.thresholds.phase.strategies {
                let ok = phase.at(&["candidates"]).items().iter().any(|candidate| {
                    candidate.at(&["name"]).as_str() == Some(name)
                        && candidate.at(&["status"]).as_str() == Some("ok")
                });
                if !ok {
                    return invalid(format!("phase_candidate_not_ok: {name}"));
                }
            }
        }
        Ok(Explained {
            profile,
            phase: Some(phase),
        })
    }

    fn closing(&self, label: &Label, inputs: &ClosureInputs) -> Result<Closing> {
        let explained = self.explained(inputs)?;
        let strategy = StrategyReport::read(&inputs.strategy)?;
        let profile = ProfileReport::read(&explained.profile)?;
        let budget = BudgetEvaluations::read(inputs.budget.at(&["summary"]));
        let qualification = qualify_memory_candidates(
            &strategy,
            &budget,
            &profile.coverage(),
            &self.thresholds.qualification,
        );
        let outcome = closure_decision(&qualification, explained.phase.is_some());
        let report = self.closing_report(
            label,
            inputs,
            &explained,
            &profile,
            &qualification,
            &outcome,
        )?;
        let errors = validate_result(&report);
        if !errors.is_empty() {
            let message = format!("closure_invalid: {}", errors.join("; "));
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(Closing {
            qualification,
            outcome,
            report,
        })
    }

    fn closing_report(
        &self,
        label: &Label,
        inputs: &ClosureInputs,
        explained: &Explained,
        profile: &ProfileReport,
        qualification: &Qualification,
        outcome: &Outcome,
    ) -> Result<Json> {
        let manifest = &inputs.manifest;
        let config = inputs.strategy.at(&["config"]);
        let profile_artifact = manifest
            .profile
            .as_ref()
            .map(|entry| entry.artifact.clone());
        let phase_artifact = manifest.phase.as_ref().map(|entry| entry.artifact.clone());
        let path_of = |artifact: &Option<Json>| {
            let path = artifact
                .as_ref()
                .and_then(|artifact| artifact.at(&["path"]).as_str());
            path.unwrap_or_default().to_owned()
        };
        let (profile_path, phase_path) = (path_of(&profile_artifact), path_of(&phase_artifact));
        let phase = explained
            .phase
            .as_ref()
            .map(|phase| (phase, phase_path.as_str()));
        let assessments = infer_bottleneck_assessments(profile, &profile_path, phase);
        let names: Vec<String> = profile
            .coverage()
            .strategies
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let trace_dir = inputs.trace_dir.as_deref().unwrap_or(Path::new(""));
        let mut profile_section = inspect_profile_trace(&self.root, trace_dir, &names);
        profile_section.set("report", profile_artifact);
        let mut tables = Json::object();
        for candidate in explained.profile.at(&["candidates"]).items() {
            if let Some(name) = candidate.at(&["name"]).as_name() {
                tables.set(name, candidate.at(&["top_operators"]));
            }
        }
        profile_section.set("top_operators", tables);
        profile_section.set(
            "phase_memory",
            if explained.phase.is_some() {
                object! {
                    "status" => "collected",
                    "report" => phase_artifact,
                    "timing_for_adoption" => false,
                }
            } else {
                object! {"status" => "not_collected"}
            },
        );
        profile_section.set("attribution", explained.profile.at(&["attribution"]));
        let mut artifacts = source_artifacts(inputs);
        if explained.phase.is_some() {
            artifacts.set(
                "phase_memory",
                manifest.phase.as_ref().map(|one| one.artifact.clone()),
            );
        }
        let scope = self.activation_scope(inputs)?;
        let mut full = object! {"scope" => FULL_TRAINING};
        for (key, value) in outcome.to_json().fields() {
            full.set(key, value);
        }
        full.set("optimizer", config.at(&["optimizer"]));
        full.set("seq_len", config.at(&["seq_len"]));
        Ok(object! {
            "schema_version" => CLOSURE_SCHEMA,
            "semantic_id" => super::manifest::CLOSURE_ID,
            "run_label" => label.as_str(),
            "project" => "74",
            "stage" => "profiling_driven_optimization",
            "config" => standard_experiment_config(config),
            "candidates" => qualification.records_json(),
            "profile" => profile_section,
            "bottleneck" => assessments.iter().map(Assessment::to_json).collect::<Vec<_>>(),
            "validation" => object! {
                "workload_identity" =>
                    build_workload_identity(&inputs.baseline, &inputs.strategy, self.strict)?,
                "pressure_validation" => self.pressure_validation(&inputs.strategy)?,
                "source_artifacts" => artifacts,
                "evidence_roles" => evidence_roles(),
                "scope_boundary" => object! {
                    "top_level_decision_scope" => FULL_TRAINING,
                    "activation_scope_promotable_to_full_training" => false,
                },
            },
            "decision" => outcome.to_json(),
            "decision_scopes" => object! {
                FULL_TRAINING => full,
                "activation_memory_mechanism" => scope.to_json(&manifest.sources[3].artifact),
            },
            "standard_metrics" => standard_metrics(inputs.strategy.at(&["candidates"]).items()),
            "tool" => tool(),
        })
    }

    fn handoff(
        &self,
        label: &Label,
        inputs: &ClosureInputs,
        closing: &Closing,
        closure_path: &Path,
    ) -> Result<Json> {
        let mut artifacts = closing
            .report
            .at(&["validation", "source_artifacts"])
            .clone();
        let profile = inputs.manifest.profile.as_ref();
        artifacts.set("profile_trace", profile.map(|entry| entry.artifact.clone()));
        artifacts.set("closure", self.root.artifact(closure_path)?);
        let path = |entry: &Json| entry.at(&["path"]).as_str().unwrap_or_default().to_owned();
        let profile_path = profile
            .map(|entry| path(&entry.artifact))
            .unwrap_or_default();
        Ok(build_performance_handoff(
            label.as_str(),
            closing.report.at(&["validation", "workload_identity"]),
            &path(&inputs.manifest.sources[0].artifact),
            &profile_path,
            &closing.qualification,
            &artifacts,
            closing.report.at(&["decision_scopes"]),
        ))
    }
}

fn source_artifacts(inputs: &ClosureInputs) -> Json {
    let mut artifacts = Json::object();
    for (name, entry) in SOURCES.iter().zip(&inputs.manifest.sources) {
        artifacts.set(*name, &entry.artifact);
    }
    artifacts
}

/// The hand-off to the combined test. Depends on nothing but its arguments.
pub fn build_performance_handoff(
    run_label: &str,
    workload: &Json,
    baseline_path: &str,
    profiling_report_path: &str,
    qualification: &Qualification,
    source_artifacts: &Json,
    decision_scopes: &Json,
) -> Json {
    let ready = !qualification.qualified_candidates.is_empty();
    object! {
        "schema_version" => HANDOFF_SCHEMA,
        "semantic_id" => super::manifest::CLOSURE_ID,
        "run_label" => run_label,
        "workload" => workload,
        "baseline" => object! {"path" => baseline_path},
        "profiling_report" => object! {"path" => profiling_report_path},
        "qualified_candidates" => qualification.qualified_candidates.clone(),
        "candidate_records" => qualification.records_json(),
        "decision_scopes" => decision_scopes,
        "source_artifacts" => source_artifacts,
        "evidence_roles" => evidence_roles(),
        "status" => if ready { "ready_for_part05" } else { "not_qualified" },
        "limitations" => vec!["accept_means_admission_to_part05_combined_retest_only"],
        "tool" => tool(),
    }
}

/// Writes a record unless an equal one is there.
fn confirm(path: &Path, record: &Json) -> Result<Saved> {
    if path.exists() {
        if is_same(&Json::read_object(path)?, record) {
            return Ok(Saved::AlreadyComplete);
        }
        let message = "is there with other content and is not overwritten; change the label";
        return Err(Error::new(ErrorKind::State, message).in_file(path));
    }
    save_json_record_once(path, record)?;
    Ok(Saved::Written)
}

/// What a profile report shows, strategy by strategy, and from the first to the second. It explains only.
pub fn attribution_table(profile: &Json) -> Json {
    let candidates = profile.at(&["candidates"]).items();
    let rows: Vec<Json> = candidates
        .iter()
        .map(|candidate| {
            let status = candidate.get("status").cloned();
            let reserved = candidate.at(&["peak_reserved_mb"]).as_f64();
            let allocated = candidate.at(&["peak_memory_mb"]).as_f64();
            let slack = candidate.get("allocator_slack_mb").cloned().or_else(|| {
                let both = reserved.zip(allocated);
                both.map(|(reserved, allocated)| crate::gate::round(reserved - allocated, 2).into())
            });
            object! {
                "name" => candidate.at(&["name"]),
                "profile_step_time_ms" => candidate.at(&["step_time_ms"]),
                "profile_samples_per_s" => candidate.at(&["samples_per_s"]),
                "peak_allocated_mb" => candidate.at(&["peak_memory_mb"]),
                "peak_reserved_mb" => candidate.at(&["peak_reserved_mb"]),
                "allocator_slack_mb" => slack,
                "status" => status.unwrap_or_else(|| "ok".into()),
                "trace_dir" => candidate.at(&["trace_dir"]),
            }
        })
        .collect();
    let ok: Vec<&Json> = rows
        .iter()
        .filter(|row| row.at(&["status"]).as_str() == Some("ok"))
        .collect();
    let mut transitions = Json::object();
    if let [first, second] = ok.as_slice() {
        for key in [
            "peak_allocated_mb",
            "peak_reserved_mb",
            "profile_step_time_ms",
        ] {
            let both = first.at(&[key]).as_f64().zip(second.at(&[key]).as_f64());
            let shown = both.map(|(from, to)| format!("{from:.2} -> {to:.2}"));
            transitions.set(key, shown);
        }
    }
    object! {
        "measurement_role" => "bottleneck_attribution_only",
        "rows" => rows,
        "transitions" => transitions,
        "look_at" => vec![
            "phase.forward, phase.backward and phase.optimizer in the traces",
            "recompute inside phase.backward of checkpoint",
        ],
    }
}
