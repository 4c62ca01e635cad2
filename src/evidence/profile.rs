//! The record of profiled runs: traces, and what was measured under the profiler.

use std::fs;
use std::path::{Path, PathBuf};

use super::attribution::{attribute_strategies, phase_peaks, top_operators};
use super::budget::{StageReport, standard_metrics};
use super::closure::{ClosureInputs, ClosureProject, check_three_repeats, parameter};
use super::collected::{COLLECTOR, PROFILER, Recorded, without_trace};
use super::measurement::{MeasuredFor, Measurement, read_measurements};
use super::record::{exists, save_json_record_once};
use super::root::hash;
use super::stage::{ClosureStage, Label};
use super::trace_folder::traces_in;
use super::workspace::{Paths, tool};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    Json, PROFILE_FIELDS, PROFILER_METRICS, mismatching_fields, object, python_list, round,
    standard_experiment_config,
};

/// Schema of the record.
pub const PROFILE_SCHEMA: &str = "profiling-trace-evidence/v1";

/// Checks that baseline and strategies are of the model, batch and length that are profiled.
pub(crate) fn check_profile_identity(inputs: &ClosureInputs, strict: bool) -> Result<()> {
    let configs = [&inputs.baseline, &inputs.strategy].map(|record| record.at(&["config"]));
    let mismatches = mismatching_fields(configs[0], configs[1], &PROFILE_FIELDS, strict);
    if mismatches.is_empty() {
        return Ok(());
    }
    let message = format!("profile_identity {}", python_list(&mismatches));
    Err(Error::new(ErrorKind::Invalid, message))
}

impl ClosureProject {
    /// Takes the traces under `traces` (a folder a strategy) into the project under `label`, attributes
    /// them, and writes the record of profiled runs, once. `measurements` are files of what the training
    /// loop measured under the profiler; what they do not have is not measured.
    ///
    /// # Errors
    /// When a rule does not hold, a strategy has no trace, or the record or the traces of this label are
    /// there.
    pub fn profile(
        &self,
        label: &Label,
        traces: &Path,
        measurements: &[PathBuf],
    ) -> Result<StageReport> {
        let inputs = self.inputs(ClosureStage::Profile)?;
        let paths = Paths::new(&self.root, label);
        let (output, trace_root) = (paths.profile(), paths.trace_root());
        let given = self.root.path().join(traces);
        let in_place = fs::canonicalize(&given).ok() == fs::canonicalize(&trace_root).ok()
            && trace_root.exists();
        if output.exists() {
            return Err(exists(&output, ""));
        }
        if trace_root.exists() && !in_place {
            // A run that was killed between the two leaves the traces, whole.
            return Err(exists(&trace_root, ", or finish it with these as --traces"));
        }
        check_three_repeats(&inputs.strategy)?;
        check_profile_identity(&inputs, self.strict)?;
        let strategies = &self.thresholds.phase.strategies;
        for name in strategies {
            if traces_in(&given.join(name)).is_empty() {
                let mut message = format!("trace_missing: there is no *.pt.trace.json for {name}");
                if let Some(why) = without_trace(&given.join(name)) {
                    message = format!("{message}; {why}");
                }
                return Err(Error::new(ErrorKind::State, message).in_file(&given));
            }
        }
        let recorded = Recorded::read(&given, strategies)?;
        let config = inputs.strategy.at(&["config"]);
        let measured = read_measurements(&self.root, measurements, MeasuredFor::Profile)?;
        for measurement in &measured {
            measurement.check_identity(config, &PROFILE_FIELDS)?;
        }
        // Everything that can fail by what is in the files does so before anything is written.
        let attribution = attribute_strategies(&given, strategies)?;
        let mut tables = Vec::new();
        let mut peaks = Json::object();
        for name in strategies {
            let folder = given.join(name);
            let told = measured
                .iter()
                .find(|one| one.strategy == *name)
                .and_then(|one| {
                    one.runs[0]
                        .at(&["top_operators"])
                        .as_name()
                        .map(str::to_owned)
                });
            tables.push(told.map_or_else(|| top_operators(&folder), Ok)?);
            peaks.set(name.as_str(), phase_peaks(&folder)?);
        }
        if !in_place {
            copy_traces(&given, &trace_root, strategies)?;
        }
        let record = self.profile_record(
            label,
            &inputs,
            &measured,
            &Traced {
                root: trace_root,
                attribution,
                tables,
                peaks,
                recorded,
            },
        )?;
        save_json_record_once(&output, &record)?;
        Ok(StageReport {
            record: object! {
                "status" => "profiled",
                "report" => self.root.artifact(&output)?,
                "trace_dir" => record.at(&["trace_root"]),
                "next_stage" => "phase",
                "profile_identity" =>
                    self.identity(ClosureStage::Profile, label.as_str(), &inputs),
            },
            decision: None,
        })
    }

    fn profile_record(
        &self,
        label: &Label,
        inputs: &ClosureInputs,
        measured: &[Measurement],
        traced: &Traced,
    ) -> Result<Json> {
        let config = inputs.strategy.at(&["config"]);
        let strategies = &self.thresholds.phase.strategies;
        let iters = parameter(config, "iters", 5);
        let mut files = Json::object();
        let mut hashes = Json::object();
        let mut candidates = Vec::new();
        for (name, table) in strategies.iter().zip(&traced.tables) {
            let folder = traced.root.join(name);
            let mut paths = Vec::new();
            for path in traces_in(&folder) {
                let relative = self.root.relative(&path)?;
                hashes.set(relative.as_str(), hash(&path)?);
                paths.push(relative);
            }
            files.set(name.as_str(), paths);
            let run = measured
                .iter()
                .find(|one| one.strategy == *name)
                .map_or(&Json::Null, |one| &one.runs[0]);
            candidates.push(candidate(name, run, &self.root.relative(&folder)?, table));
        }
        let steps_wanted = iters.as_int().map_or(1, |iters| (iters - 1).max(1));
        let mut attribution = traced.attribution.clone();
        let mut agree = Json::object();
        for name in strategies {
            let steps = attribution.at(&["by_strategy", name, "steps"]).as_int();
            agree.set(name.as_str(), steps.map(|steps| steps == steps_wanted));
        }
        attribution.set("active_steps_agree", agree);
        attribution.set("phase_peaks", &traced.peaks);
        let recorded = &traced.recorded;
        if recorded.tool == COLLECTOR {
            let mut processes = Json::object();
            for (name, of_strategy) in strategies.iter().zip(&recorded.processes) {
                processes.set(name.as_str(), of_strategy);
            }
            attribution.set("processes", processes);
        }
        let mut run_config = object! {
            "model_id" => config.at(&["model_id"]),
            "batch_size" => config.at(&["batch_size"]),
            "seq_len" => config.at(&["seq_len"]),
            "dtype" => "float32",
            "strategies" => strategies.clone(),
            "warmup" => parameter(config, "warmup", 2),
            "iters" => &iters,
        };
        if let Some(dtype) = config.get("dtype") {
            run_config.set("dtype", dtype);
        }
        let mut experiment = run_config.clone();
        experiment.set("backend", recorded.tool);
        experiment.set("optimizer", "AdamW");
        experiment.set("seed", 42_i64);
        let first = measured.first().map(|one| &one.config);
        for key in ["device", "torch", "torch_cuda"] {
            experiment.set(key, first.unwrap_or(config).at(&[key]));
        }
        for key in ["optimizer", "seed"] {
            if let Some(value) = config.get(key) {
                experiment.set(key, value);
            }
        }
        let mut record = object! {
            "schema_version" => PROFILE_SCHEMA,
            "semantic_id" => super::manifest::CLOSURE_ID,
            "run_mode" => "real_gpu",
            "run_label" => label.as_str(),
            "task" => "profiling_driven_optimization",
            "stage" => "real_profiler_trace",
            "config" => run_config,
            "sources" => object! {
                "baseline" => &inputs.manifest.sources[0].artifact,
                "strategy" => &inputs.manifest.sources[1].artifact,
            },
            "trace_root" => self.root.relative(&traced.root)?,
            "candidates" => candidates.clone(),
            "profile" => object! {
                "tool" => recorded.tool,
                "activities" => recorded.activities(),
                "status" => "collected",
                "measurement_role" => PROFILER_METRICS,
                "timing_for_adoption" => false,
                "active_steps" => steps_wanted,
                "repeat" => 1_i64,
                "trace_files_by_strategy" => files,
                "trace_sha256" => hashes,
            },
            "experiment" => standard_experiment_config(&experiment),
            "standard_metrics" => standard_metrics(&candidates),
            "attribution" => attribution,
            "inputs" => measured.iter().map(|one| one.artifact.clone()).collect::<Vec<_>>(),
            "tool" => tool(),
        };
        let on_host = strategies.iter().all(|name| {
            let place = record.at(&["attribution", "by_strategy", name, "place"]);
            place.as_str() == Some("host")
        });
        if on_host {
            record.set("run_mode", "real_cpu");
            if let Some(profile) = record
                .get_mut("profile")
                .filter(|_| traced.recorded.tool == PROFILER)
            {
                profile.set("activities", vec!["CPU"]);
            }
        }
        Ok(record)
    }
}

/// The traces of a project with what is in them.
struct Traced {
    root: PathBuf,
    attribution: Json,
    /// Operators of each strategy, in order.
    tables: Vec<String>,
    /// Peaks of memory by phase and strategy, where the traces tell.
    peaks: Json,
    /// By which tool.
    recorded: Recorded,
}

/// A profiled strategy. What was not measured is `null`; the slack of the allocator is what it holds beyond
/// what is allocated.
pub(crate) fn candidate(name: &str, run: &Json, trace_dir: &str, top_operators: &str) -> Json {
    let peak = run.first(&["peak_memory_mb", "peak_mem_mb"]);
    let reserved = run.at(&["peak_reserved_mb"]);
    let slack = run.get("allocator_slack_mb").cloned().or_else(|| {
        let both = reserved.as_f64().zip(peak.as_f64());
        both.map(|(reserved, peak)| round(reserved - peak, 2).into())
    });
    object! {
        "name" => name,
        "status" => "ok",
        "step_time_ms" => run.at(&["step_time_ms"]),
        "samples_per_s" => run.at(&["samples_per_s"]),
        "loss" => run.at(&["loss"]),
        "peak_memory_mb" => peak,
        "peak_reserved_mb" => reserved,
        "allocator_slack_mb" => slack,
        "trace_dir" => trace_dir,
        "top_operators" => top_operators,
    }
}

/// Copies the traces of each strategy; a folder that is only half filled has no name yet.
fn copy_traces(from: &Path, to: &Path, strategies: &[String]) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| Error::io(path, error)
    };
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let partial = new_folder(folder).map_err(failed(folder))?;
    let copied = strategies.iter().try_for_each(|name| {
        let target = partial.join(name);
        fs::create_dir_all(&target).map_err(failed(&target))?;
        for path in traces_in(&from.join(name)) {
            let copy = target.join(path.file_name().unwrap_or_default());
            fs::copy(&path, &copy).map_err(failed(&path))?;
        }
        Ok(())
    });
    let placed = copied.and_then(|()| fs::rename(&partial, to).map_err(failed(to)));
    if placed.is_err() {
        // The failure to tell is the first one.
        let _ = fs::remove_dir_all(&partial);
    }
    placed
}

/// A new folder in `folder`: one that a killed process left behind may hold anything.
fn new_folder(folder: &Path) -> std::io::Result<PathBuf> {
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!(".tracekit-{process}-{number}-traces.tmp"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            created => return created.map(|()| path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slack_is_what_is_held_and_not_allocated() {
        let run = object! {"peak_memory_mb" => 9782.73, "peak_reserved_mb" => 10750.0};
        let slack = |run: &Json| {
            candidate("b", run, "", "")
                .at(&["allocator_slack_mb"])
                .as_f64()
        };
        assert_eq!(slack(&run), Some(967.27));
        let mut told = run.clone();
        told.set("allocator_slack_mb", 3.0);
        assert_eq!(slack(&told), Some(3.0));
        assert_eq!(slack(&Json::Null), None);
    }
}
