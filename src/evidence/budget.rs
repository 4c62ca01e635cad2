//! The memory budget (project 75): from the report of strategies to a decision under a budget.
//!
//! | stage | looks at | writes |
//! |---|---|---|
//! | prepare | the report of strategies, the approved decision | nothing |
//! | analyze | the report of strategies | the evidence, once |
//! | close | the evidence of the label | the decision; an equal one is complete |

use std::path::{Path, PathBuf};

use super::manifest::BUDGET_MANIFEST;
use super::record::{Saved, save_json_record_once, save_or_confirm};
use super::root::{RESULTS, Root, hash};
use super::stage::{BudgetStage, Label};
use super::workspace::{Paths, is_writable, tool};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    Candidate, Decision, Json, MemoryBudget, SensitivityRow, SummaryFacts, Thresholds, artifact,
    decide_memory_budget_project, object, refuse_profiled, sensitivity_rows,
    standard_experiment_config, standard_training_metrics, summarize_memory_strategies,
    summarize_sensitivity,
};

/// What the budget is.
pub const BUDGET_ID: &str = "PERF-MEMORY-BUDGET";
/// Schema of its evidence.
pub const BUDGET_EVIDENCE_SCHEMA: &str = "memory-budget-evidence/v1";
/// Schema of training baselines, strategies and budget decisions.
pub const PROJECT_SCHEMA: &str = "training-performance-project/v1";

/// Fields of the configuration that the report of strategies must have.
const SOURCE_FIELDS: [&str; 6] = [
    "model_id",
    "workload",
    "batch_size",
    "seq_len",
    "dtype",
    "optimizer",
];

/// A budget project: where it is and what it decides by.
#[derive(Debug, Clone)]
pub struct BudgetProject {
    /// The root of the project.
    pub root: Root,
    /// The input manifest.
    pub manifest: PathBuf,
    /// What decisions are compared with.
    pub thresholds: Thresholds,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq)]
pub struct StageReport {
    /// What it tells, starting with its status.
    pub record: Json,
    /// The decision it came to, if it came to one.
    pub decision: Option<Decision>,
}

/// The report of strategies with where it is from.
struct Source {
    record: Json,
    artifact: Json,
}

impl BudgetProject {
    /// The project at `root` with its manifest where it is by default.
    pub fn new(root: Root, thresholds: Thresholds) -> Self {
        let manifest = root.join(BUDGET_MANIFEST);
        Self {
            root,
            manifest,
            thresholds,
        }
    }

    /// Whether the source is what the manifest says, and results can be written. Reads only.
    ///
    /// # Errors
    /// When the manifest is not there or no record, or the source lies outside of the root.
    pub fn preflight(&self, stage: BudgetStage) -> Result<Json> {
        Ok(self.checked(stage)?.0)
    }

    fn checked(&self, stage: BudgetStage) -> Result<(Json, Option<Source>)> {
        let manifest = Json::read_object(&self.manifest)?;
        let wanted = manifest.at(&["source"]);
        let Some(relative) = wanted.at(&["path"]).as_name() else {
            let message = "manifest_entry source: must have a path and a sha256";
            return Err(Error::new(ErrorKind::Invalid, message).in_file(&self.manifest));
        };
        let path = self.root.join(relative);
        self.root.relative(&path)?;
        let exists = path.is_file();
        let sha256 = exists.then(|| hash(&path)).transpose()?;
        let matches = sha256.as_deref() == wanted.at(&["sha256"]).as_name() && sha256.is_some();
        let record = if exists {
            Json::read_object(&path)?
        } else {
            Json::Null
        };
        let same = |key| {
            let found = record.at(&[key]);
            !found.is_null() && found == wanted.at(&[key])
        };
        let output = self.root.join(RESULTS);
        let writable = is_writable(&output);
        let ready = matches && same("schema_version") && same("semantic_id") && writable;
        let report = object! {
            "project_root" => self.root.path().display().to_string(),
            "run_stage" => stage.as_str(),
            "source_path" => relative,
            "source_exists" => exists,
            "source_sha256" => sha256.clone(),
            "source_hash_matches" => matches,
            "source_schema" => record.at(&["schema_version"]),
            "source_semantic_id" => record.at(&["semantic_id"]),
            "output_parent_exists" => output.exists(),
            "output_parent_writable" => writable,
            "ready" => ready,
        };
        let source = sha256.map(|sha256| Source {
            artifact: artifact(relative, &sha256),
            record,
        });
        Ok((report, source))
    }

    fn ready_source(&self, stage: BudgetStage) -> Result<(Json, Source)> {
        let (report, source) = self.checked(stage)?;
        match source {
            Some(source) if report.at(&["ready"]).is_true() => Ok((report, source)),
            _ => {
                let message = format!("preflight_not_ready {}", report.to_line());
                Err(Error::new(ErrorKind::State, message))
            }
        }
    }

    /// Checks the source and the approved decision, and writes nothing.
    ///
    /// # Errors
    /// When the source is not ready, breaks the contract, or the approved decision is not.
    pub fn prepare(&self) -> Result<StageReport> {
        let (preflight, source) = self.ready_source(BudgetStage::Prepare)?;
        let candidates = check_input_contract(&source.record)?;
        let budget = self.budget(&candidates)?;
        let manifest = Json::read_object(&self.manifest)?;
        let approved = manifest.at(&["approved_result"]);
        let (Some(path), Some(sha256)) = (
            approved.at(&["path"]).as_name(),
            approved.at(&["sha256"]).as_name(),
        ) else {
            let message = "manifest_entry approved_result: must have a path and a sha256";
            return Err(Error::new(ErrorKind::Invalid, message).in_file(&self.manifest));
        };
        let (review, record) = self.reviewed(&self.root.join(path), Some(sha256))?;
        Ok(StageReport {
            record: object! {
                "status" => "prepared",
                "approved_result" => approved,
                "decision" => record.at(&["decision"]),
                "preflight" => preflight,
                "decision_identity" => self.identity(BudgetStage::Prepare, None, &budget, &source),
                "evidence_review" => review,
            },
            decision: None,
        })
    }

    /// Weighs the strategies under the budget and a grid of others, and writes the evidence, once.
    ///
    /// # Errors
    /// When the source is not ready or breaks the contract, or the evidence of this label is there.
    pub fn analyze(&self, label: &Label) -> Result<StageReport> {
        let (_, source) = self.ready_source(BudgetStage::Analyze)?;
        check_input_contract(&source.record)?;
        let mapped = mapped_report(&source.record);
        let candidates = Candidate::read_all(&mapped)?;
        let budget = self.budget(&candidates)?;
        let path = Paths::new(&self.root, label).budget_evidence();
        let evidence = self.evidence(label, &source, &candidates, &budget);
        save_json_record_once(&path, &evidence)?;
        Ok(StageReport {
            record: object! {
                "status" => "analyzed",
                "evidence" => self.root.relative(&path)?,
                "next_stage" => "close",
                "decision_identity" =>
                    self.identity(BudgetStage::Analyze, Some(label), &budget, &source),
                "sensitivity_summary" => evidence.at(&["sensitivity_summary"]),
            },
            decision: None,
        })
    }

    /// Decides by the evidence of the label and writes the decision.
    ///
    /// # Errors
    /// When the source or the evidence is not ready, the stored summary does not follow from the stored
    /// candidates, or another decision of this label is there.
    pub fn close(&self, label: &Label) -> Result<StageReport> {
        self.ready_source(BudgetStage::Close)?;
        let paths = Paths::new(&self.root, label);
        let path = paths.budget_evidence();
        let (review, evidence) = self.reviewed(&path, None)?;
        check_stored_summary(&evidence)?;
        let facts = SummaryFacts::read(evidence.at(&["summary"]))?;
        let outcome = decide_memory_budget_project(&facts);
        let mut result = evidence;
        result.set("schema_version", PROJECT_SCHEMA);
        result.set("stage", "memory_budget_decision");
        result.set("decision", outcome.to_json());
        result.set("source_evidence", self.root.artifact(&path)?);
        let decision_path = paths.budget_decision();
        let saved = save_or_confirm(&decision_path, &result)?;
        let status = match saved {
            Saved::Written => "saved",
            Saved::AlreadyComplete => Saved::AlreadyComplete.as_str(),
        };
        Ok(StageReport {
            record: object! {
                "status" => status,
                "decision" => outcome.to_json(),
                "result_path" => self.root.relative(&decision_path)?,
                "evidence_review" => review,
            },
            decision: Some(outcome.decision),
        })
    }

    fn budget(&self, candidates: &[Candidate<crate::gate::Unprofiled>]) -> Result<MemoryBudget> {
        let is_baseline = |one: &&Candidate<_>| one.name() == Some("baseline");
        let baseline = candidates.iter().find(is_baseline);
        let loss = baseline.and_then(|one| one.eval_loss.value());
        self.thresholds.budget.budget(loss)
    }

    fn identity(
        &self,
        stage: BudgetStage,
        label: Option<&Label>,
        budget: &MemoryBudget,
        source: &Source,
    ) -> Json {
        let grid = &self.thresholds.sensitivity;
        let scenarios =
            grid.memory_caps_mb.len() * grid.min_samples_per_s.len() * grid.max_val_loss.len();
        let shown = |path: PathBuf| self.root.relative(&path).ok();
        object! {
            "run_label" => label.map(Label::as_str),
            "run_stage" => stage.as_str(),
            "budget" => budget.to_json(),
            "source" => source.artifact.at(&["path"]),
            "sensitivity_scenarios" => scenarios,
            "evidence_path" =>
                label.and_then(|label| shown(Paths::new(&self.root, label).budget_evidence())),
            "decision_path" =>
                label.and_then(|label| shown(Paths::new(&self.root, label).budget_decision())),
        }
    }

    fn evidence(
        &self,
        label: &Label,
        source: &Source,
        candidates: &[Candidate<crate::gate::Unprofiled>],
        budget: &MemoryBudget,
    ) -> Json {
        let report = &source.record;
        let config = report.at(&["config"]);
        let summary = summarize_memory_strategies(candidates, budget);
        let rows = sensitivity_rows(candidates, budget, &self.thresholds.sensitivity);
        let rows: Vec<Json> = rows.iter().map(SensitivityRow::to_json).collect();
        let sensitivity = summarize_sensitivity(&rows);
        let records = report.at(&["candidates"]).items();
        object! {
            "schema_version" => BUDGET_EVIDENCE_SCHEMA,
            "semantic_id" => BUDGET_ID,
            "run_mode" => "measured_read_only",
            "run_label" => label.as_str(),
            "task" => "task3_training_memory_optimization",
            "stage" => "memory_budget_evidence",
            "source" => source.artifact.at(&["path"]),
            "budget" => budget.to_json(),
            "quality_floor" => object! {"max_val_loss" => budget.max_val_loss},
            "evidence_mode" => "measured",
            "planning_context" => object! {
                "model" => self.thresholds.model.to_json(),
                "hardware_target" => self.thresholds.hardware.to_json(),
                "note" => "The hardware target is for planning; only the hardware and the workload in \
                           the report of strategies are measured evidence.",
                "measured_hardware" => config.at(&["device"]),
                "hardware_comparison" => "same_hardware_required_for_performance_claim",
            },
            "candidates" => records.iter().map(mapped).collect::<Vec<_>>(),
            "summary" => summary.to_json(),
            "sensitivity" => rows,
            "sensitivity_summary" => sensitivity.to_json(),
            "experiment" => standard_experiment_config(config),
            "standard_metrics" => standard_metrics(records),
            "inputs" => vec![source.artifact.clone()],
            "tool" => tool(),
        }
    }

    /// Whether the record at `path` is ready to decide by.
    ///
    /// # Errors
    /// When it is not there or no record.
    pub fn review(&self, path: &Path, expected_sha256: Option<&str>) -> Result<Json> {
        Ok(self.review_and_record(path, expected_sha256)?.0)
    }

    fn review_and_record(&self, path: &Path, expected: Option<&str>) -> Result<(Json, Json)> {
        let record = Json::read_object(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let message = "there is no such evidence; run the stages before this one";
                Error::new(ErrorKind::NotFound, message).in_file(path)
            }
            _ => error,
        })?;
        refuse_profiled(&record).map_err(|error| error.in_file(path))?;
        let sha256 = hash(path)?;
        let hash_matches = expected.is_none_or(|expected| expected == sha256);
        let schema = record.at(&["schema_version"]).as_str();
        let known = [BUDGET_EVIDENCE_SCHEMA, PROJECT_SCHEMA];
        let candidates = record.at(&["candidates"]).items();
        let names: Vec<Json> = candidates
            .iter()
            .map(|candidate| candidate.at(&["name"]).clone())
            .collect();
        let ready = hash_matches
            && schema.is_some_and(|schema| known.contains(&schema))
            && record.at(&["semantic_id"]).as_str() == Some(BUDGET_ID)
            && !candidates.is_empty()
            && record.at(&["summary"]).is_object();
        let review = object! {
            "path" => self.root.relative(path)?,
            "sha256" => sha256,
            "hash_matches" => hash_matches,
            "schema_version" => record.at(&["schema_version"]),
            "semantic_id" => record.at(&["semantic_id"]),
            "run_label" => record.at(&["run_label"]),
            "candidate_names" => names,
            "summary" => record.at(&["summary"]),
            "sensitivity_summary" => record.at(&["sensitivity_summary"]),
            "final_asset" => schema == Some(PROJECT_SCHEMA),
            "ready_for_decision" => ready,
        };
        Ok((review, record))
    }

    fn reviewed(&self, path: &Path, expected: Option<&str>) -> Result<(Json, Json)> {
        let (review, record) = self.review_and_record(path, expected)?;
        if !review.at(&["ready_for_decision"]).is_true() {
            let mut short = review.clone();
            for key in ["summary", "sensitivity_summary"] {
                short.remove(key);
            }
            let message = format!("evidence_not_ready {}", short.to_line());
            return Err(Error::new(ErrorKind::State, message));
        }
        Ok((review, record))
    }
}

/// Checks what a report of strategies must have to be weighed, and reads its candidates.
///
/// # Errors
/// `input_contract` with all that is missing; or the report was measured under a profiler.
pub fn check_input_contract(report: &Json) -> Result<Vec<Candidate<crate::gate::Unprofiled>>> {
    let config = report.at(&["config"]);
    let is_missing = |field: &&str| {
        let value = config.at(&[field]);
        value.is_null() || value.as_str() == Some("")
    };
    let missing: Vec<&str> = SOURCE_FIELDS
        .into_iter()
        .filter(|field| is_missing(field))
        .collect();
    let candidates = match report.get("candidates") {
        Some(Json::List(_)) => Candidate::read_all(report)?,
        _ => Vec::new(),
    };
    let names: Vec<Json> = candidates.iter().map(|one| one.name.clone()).collect();
    let few: Vec<Json> = report
        .at(&["candidates"])
        .items()
        .iter()
        .filter(|candidate| candidate.at(&["runs"]).items().len() < 3)
        .map(|candidate| candidate.at(&["name"]).clone())
        .collect();
    let has_baseline = candidates.iter().any(|one| one.name() == Some("baseline"));
    if !missing.is_empty() || !has_baseline || !few.is_empty() {
        let problems = object! {
            "missing_source_fields" => missing,
            "candidate_names" => names,
            "missing_three_repeats" => few,
        };
        let message = format!("input_contract {}", problems.to_line());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(candidates)
}

/// The candidates of a report as the evidence has them.
fn mapped_report(report: &Json) -> Json {
    let candidates = report.at(&["candidates"]).items();
    object! {"candidates" => candidates.iter().map(mapped).collect::<Vec<_>>()}
}

/// A candidate as the evidence has it.
fn mapped(candidate: &Json) -> Json {
    let status = candidate.get("status").cloned();
    object! {
        "name" => candidate.at(&["name"]),
        "status" => status.unwrap_or_else(|| "ok".into()),
        "step_time_ms" => candidate.at(&["step_time_ms"]),
        "samples_per_s" => candidate.at(&["samples_per_s"]),
        "peak_memory_mb" => candidate.first(&["peak_memory_mb", "peak_mem_mb"]),
        "peak_reserved_mb" => candidate.at(&["peak_reserved_mb"]),
        "loss" => candidate.at(&["loss"]),
        "eval_loss" => candidate.first(&["eval_loss", "val_loss"]),
        "val_loss" => candidate.first(&["val_loss", "eval_loss"]),
        "error" => candidate.at(&["error"]),
    }
}

/// The standard metrics of all candidates, by name.
pub(crate) fn standard_metrics(candidates: &[Json]) -> Json {
    let mut metrics = Json::object();
    for (number, candidate) in candidates.iter().enumerate() {
        let name = match candidate.at(&["name"]).as_name() {
            Some(name) => name.to_owned(),
            None => format!("candidate_{number}"),
        };
        metrics.set(name, standard_training_metrics(candidate));
    }
    metrics
}

/// Checks that the stored summary follows from the stored candidates and budget.
fn check_stored_summary(evidence: &Json) -> Result<()> {
    let candidates = Candidate::read_all(evidence)?;
    let budget = MemoryBudget::read(evidence.at(&["budget"]), evidence.at(&["quality_floor"]))?;
    let expected = summarize_memory_strategies(&candidates, &budget).to_json();
    let stored = evidence.at(&["summary"]);
    let differing: Vec<&str> = expected
        .fields()
        .filter(|(key, value)| stored.at(&[key]) != *value)
        .map(|(key, _)| key)
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    let differing = crate::gate::python_list(&differing);
    let message = format!("stored_summary: does not follow from the candidates in {differing}");
    Err(Error::new(ErrorKind::State, message))
}
