//! The closure (project 74): what has to hold before any of its stages.
//!
//! | stage | looks at | writes |
//! |---|---|---|
//! | prepare | everything the manifest names | nothing |
//! | profile | sources, traces, what was measured under the profiler | the record of profiled runs, once |
//! | phase | sources, what was measured at phase borders | the record of memory by phase, once |
//! | close | everything the manifest names | the closing record, then the hand-off |

use std::path::PathBuf;

use super::manifest::{CLOSURE_MANIFEST, ClosureManifest, Needed, check_trace_dir};
use super::root::{RESULTS, Root};
use super::stage::{ClosureStage, Label};
use super::workspace::{Paths, is_writable};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    ADOPTION_METRICS, IDENTITY_FIELDS, Json, PROFILER_METRICS, Thresholds, check_activation_ids,
    check_activation_optimizer, check_activation_scope, check_pressure_config, check_semantic_ids,
    check_shared_identity, mismatching_fields, object, python_list,
};

/// A closure project: where it is and what it decides by.
#[derive(Debug, Clone)]
pub struct ClosureProject {
    /// The root of the project.
    pub root: Root,
    /// The manifest.
    pub manifest: PathBuf,
    /// What decisions are compared with.
    pub thresholds: Thresholds,
    /// A run of the same training at a greater length, when there is one.
    pub pressure: Option<PathBuf>,
    /// Fields of the identity that neither of two records has count as different.
    pub strict: bool,
}

/// What the stages of a closure build on, after every check.
#[derive(Debug, Clone)]
pub struct ClosureInputs {
    /// The manifest with its artefacts.
    pub manifest: ClosureManifest,
    /// The training baseline (73).
    pub baseline: Json,
    /// The strategies (76).
    pub strategy: Json,
    /// The budget decision (75).
    pub budget: Json,
    /// The activation ladder.
    pub activation: Json,
    /// The folder of traces; `None` before there is one.
    pub trace_dir: Option<PathBuf>,
    /// What was checked before anything else.
    pub preflight: Json,
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

impl ClosureProject {
    /// The project at `root` with its manifest where it is by default.
    pub fn new(root: Root, thresholds: Thresholds) -> Self {
        let manifest = root.join(CLOSURE_MANIFEST);
        Self {
            root,
            manifest,
            thresholds,
            pressure: None,
            strict: false,
        }
    }

    /// Reads the manifest and everything it names, and checks that all of it belongs together. Writes
    /// nothing.
    ///
    /// # Errors
    /// At the first rule that does not hold.
    pub fn inputs(&self, stage: ClosureStage) -> Result<ClosureInputs> {
        let needed = match stage {
            ClosureStage::Profile => Needed::Sources,
            ClosureStage::Phase => Needed::Profile,
            ClosureStage::Prepare | ClosureStage::Close => Needed::All,
        };
        let manifest = ClosureManifest::read(&self.root, &self.manifest, needed)?;
        let preflight = self.preflight(stage, &manifest)?;
        let [baseline, strategy, budget, activation] =
            [0, 1, 2, 3].map(|place| Json::read_object(&manifest.sources[place].path));
        let (baseline, strategy, budget, activation) = (baseline?, strategy?, budget?, activation?);
        check_semantic_ids(&baseline, &strategy, &budget)?;
        let of_activation = |error: Error| invalid(format!("activation_{error}"));
        check_activation_ids(&activation).map_err(of_activation)?;
        let config = strategy.at(&["config"]);
        let mismatches = mismatching_fields(
            baseline.at(&["config"]),
            config,
            &IDENTITY_FIELDS,
            self.strict,
        );
        if !mismatches.is_empty() {
            let message = format!("workload_identity_mismatch {}", python_list(&mismatches));
            return Err(invalid(message));
        }
        check_shared_identity(&activation, config).map_err(of_activation)?;
        check_activation_optimizer(&activation).map_err(of_activation)?;
        check_activation_scope(&activation).map_err(of_activation)?;
        let trace_dir = match (&manifest.profile, stage) {
            (None, _) | (_, ClosureStage::Profile) => None,
            (Some(_), _) => {
                let folder = check_trace_dir(&manifest.trace_dir)?;
                let path = self.root.join(folder);
                if !path.is_dir() {
                    let message = format!("trace_dir: there is no folder {folder}");
                    return Err(Error::new(ErrorKind::NotFound, message));
                }
                self.root.relative(&path)?;
                Some(path)
            }
        };
        check_parameters(config)?;
        check_strategies(&self.thresholds.phase.strategies, &strategy)?;
        Ok(ClosureInputs {
            manifest,
            baseline,
            strategy,
            budget,
            activation,
            trace_dir,
            preflight,
        })
    }

    fn preflight(&self, stage: ClosureStage, manifest: &ClosureManifest) -> Result<Json> {
        let output = self.root.join(RESULTS);
        let writable = is_writable(&output);
        let mut sources = Json::object();
        for (name, entry) in super::manifest::SOURCES
            .iter()
            .zip(&manifest.sources)
            .take(3)
        {
            sources.set(*name, entry.artifact.at(&["path"]));
        }
        let report = object! {
            "project_root" => self.root.path().display().to_string(),
            "run_stage" => stage.as_str(),
            "evidence_manifest" => manifest.artifact.at(&["path"]),
            "manifest_sha256" => manifest.artifact.at(&["sha256"]),
            "sources" => sources,
            "activation_scope" => manifest.sources[3].artifact.at(&["path"]),
            "output_parent" => RESULTS,
            "output_parent_writable" => writable,
            // Traces and measurements come from outside: no stage trains.
            "training_runtime_required" => false,
            "ready" => writable,
        };
        if !writable {
            let message = format!("preflight_not_ready {}", report.to_line());
            return Err(Error::new(ErrorKind::State, message));
        }
        Ok(report)
    }

    /// The pressure run, when there is one.
    ///
    /// # Errors
    /// When it is named and not there, of another training, or not longer.
    pub fn pressure_validation(&self, strategy: &Json) -> Result<Json> {
        let Some(path) = &self.pressure else {
            return Ok(object! {
                "status" => "not_collected",
                "reason" => "optional_pressure_validation_path_not_set",
            });
        };
        let place = self.root.path().join(path);
        let record = Json::read_object(&place)?;
        let config = record.at(&["config"]);
        check_pressure_config(strategy.at(&["config"]), config)?;
        Ok(object! {
            "status" => "collected",
            "artifact" => self.root.artifact(&place)?,
            "config" => config,
        })
    }

    /// What a stage is about, in one record.
    pub fn identity(&self, stage: ClosureStage, label: &str, inputs: &ClosureInputs) -> Json {
        let config = inputs.strategy.at(&["config"]);
        let ladder = &inputs.activation;
        let path = |entry: &Option<super::manifest::Entry>| {
            let entry = entry.as_ref();
            entry.map_or(Json::Null, |entry| entry.artifact.at(&["path"]).clone())
        };
        let label_of_paths = Label::new(label).ok();
        let paths = label_of_paths
            .as_ref()
            .map(|label| Paths::new(&self.root, label));
        let exists = |path: Option<PathBuf>| path.is_some_and(|path| path.exists());
        object! {
            "model_id" => config.at(&["model_id"]),
            "batch_size" => config.at(&["batch_size"]),
            "seq_len" => config.at(&["seq_len"]),
            "strategies" => self.thresholds.phase.strategies.clone(),
            "warmup" => parameter(config, "warmup", 2),
            "iters" => parameter(config, "iters", 5),
            "phase_repeats" => self.thresholds.phase.repeats,
            "run_label" => label,
            "run_stage" => stage.as_str(),
            "evidence_manifest" => inputs.manifest.artifact.at(&["path"]),
            "adoption_metrics" => ADOPTION_METRICS,
            "profiler_metrics" => PROFILER_METRICS,
            "pressure_validation" =>
                self.pressure.as_ref().map(|path| path.to_string_lossy().into_owned()),
            "decision_scopes" => object! {
                "full_training_adoption" => object! {
                    "optimizer" => config.at(&["optimizer"]),
                    "seq_len" => config.at(&["seq_len"]),
                },
                "activation_memory_isolation" => object! {
                    "optimizer" => ladder.at(&["config", "optimizer"]),
                    "tested_seq_lens" => ladder.at(&["summary", "tested_seq_lens"]),
                },
            },
            "resolved_profile_report" => path(&inputs.manifest.profile),
            "resolved_trace_dir" => &inputs.manifest.trace_dir,
            "resolved_phase_report" => path(&inputs.manifest.phase),
            "activation_scope_source" => inputs.manifest.sources[3].artifact.at(&["path"]),
            "output_exists" => object! {
                "profile" => exists(paths.as_ref().map(Paths::profile)),
                "phase" => exists(paths.as_ref().map(Paths::phase)),
                "closure" => exists(paths.as_ref().map(Paths::closure)),
            },
        }
    }
}

/// An integer of the configuration, with its default when it is absent.
pub(crate) fn parameter(config: &Json, key: &str, default: i64) -> Json {
    config.get(key).cloned().unwrap_or_else(|| default.into())
}

/// Sizes and counts of the configuration.
fn check_parameters(config: &Json) -> Result<()> {
    for (key, least, default) in [
        ("batch_size", 1_i64, None),
        ("seq_len", 1, None),
        ("warmup", 0, Some(2_i64)),
        ("iters", 1, Some(5)),
    ] {
        let value = match (config.get(key), default) {
            (None, Some(default)) => default.into(),
            (found, _) => found.cloned().unwrap_or(Json::Null),
        };
        if value.as_int().is_none_or(|value| value < least) {
            let value = value.to_line();
            let message = format!("{key}: must be an integer of {least} or more, not {value}");
            return Err(invalid(message));
        }
    }
    Ok(())
}

/// The profiled strategies: some, each once, of those that are profiled, and measured.
fn check_strategies(strategies: &[String], report: &Json) -> Result<()> {
    if strategies.is_empty() {
        return Err(invalid("profile_strategies: there are none".to_owned()));
    }
    let repeated =
        (1..strategies.len()).any(|place| strategies[..place].contains(&strategies[place]));
    if repeated {
        let message = format!(
            "profile_strategies: {} repeats one",
            python_list(strategies)
        );
        return Err(invalid(message));
    }
    let foreign: Vec<&String> = strategies
        .iter()
        .filter(|name| !["baseline", "checkpoint"].contains(&name.as_str()))
        .collect();
    if !foreign.is_empty() {
        let message = format!(
            "profile_strategies: {} are left to the budget gate",
            python_list(&foreign)
        );
        return Err(invalid(message));
    }
    let candidates = report.at(&["candidates"]).items();
    let is_measured = |name: &str| {
        candidates
            .iter()
            .any(|candidate| candidate.at(&["name"]).as_str() == Some(name))
    };
    let absent: Vec<&String> = strategies
        .iter()
        .filter(|name| !is_measured(name))
        .collect();
    if !absent.is_empty() {
        let message = format!("strategy_not_in_report {}", python_list(&absent));
        return Err(invalid(message));
    }
    Ok(())
}

/// Checks that every strategy has at least three runs.
///
/// # Errors
/// `missing_three_repeats` with the names.
pub fn check_three_repeats(strategy: &Json) -> Result<()> {
    let few: Vec<String> = strategy
        .at(&["candidates"])
        .items()
        .iter()
        .filter(|candidate| candidate.at(&["runs"]).items().len() < 3)
        .map(|candidate| candidate.at(&["name"]).as_str().unwrap_or("?").to_owned())
        .collect();
    if few.is_empty() {
        return Ok(());
    }
    Err(invalid(format!(
        "missing_three_repeats {}",
        python_list(&few)
    )))
}
