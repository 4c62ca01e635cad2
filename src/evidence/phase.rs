//! The record of memory by phase, out of runs that were measured at phase borders.

use std::path::PathBuf;

use super::admission::{Admission, FreeMemory, check_memory_fraction, gpu_memory};
use super::budget::{StageReport, standard_metrics};
use super::closure::{ClosureInputs, ClosureProject, check_three_repeats, parameter};
use super::measurement::{MeasuredFor, Measurement, read_measurements};
use super::profile::check_profile_identity;
use super::record::{exists, save_json_record_once};
use super::stage::{ClosureStage, Label};
use super::workspace::{Paths, tool};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    Json, PHASE_EVIDENCE_LEVEL, PHASE_METRICS, PHASE_SCHEMA, PROFILE_FIELDS, object, python_list,
    standard_experiment_config, summarize_phase_candidates, summarize_phase_memory_runs,
    validate_phase_memory_result,
};

impl ClosureProject {
    /// Puts the runs of `measurements`, one file a strategy, together to the record of memory by phase and
    /// writes it, once. What was free before is `free`, else the least that the files say, else what the
    /// driver says now. Runs out of memory are counted.
    ///
    /// # Errors
    /// When a rule does not hold, there was not memory enough, or the record of this label is there.
    pub fn phase(
        &self,
        label: &Label,
        measurements: &[PathBuf],
        free: Option<FreeMemory>,
    ) -> Result<StageReport> {
        let inputs = self.inputs(ClosureStage::Phase)?;
        let wanted = &self.thresholds.phase;
        check_memory_fraction(wanted.process_memory_fraction)?;
        let output = Paths::new(&self.root, label).phase();
        if output.exists() {
            return Err(exists(&output, ""));
        }
        check_three_repeats(&inputs.strategy)?;
        check_profile_identity(&inputs, self.strict)?;
        let measured = read_measurements(&self.root, measurements, MeasuredFor::Phase)?;
        let config = inputs.strategy.at(&["config"]);
        for measurement in &measured {
            measurement.check_identity(config, &PROFILE_FIELDS)?;
        }
        let memory = free
            .or_else(|| least_stated(&measured))
            .or_else(gpu_memory)
            .ok_or_else(|| {
                let message = "memory_admission: nothing says how much memory was free";
                Error::new(ErrorKind::State, message)
            })?;
        let admission = Admission::new(&inputs.strategy, memory, wanted.min_free_margin_mb)?;
        admission.check()?;
        let mut chosen = Vec::new();
        let mut absent = Vec::new();
        for name in &wanted.strategies {
            match measured.iter().find(|one| one.strategy == *name) {
                Some(measurement) => chosen.push(measurement),
                None => absent.push(name.as_str()),
            }
        }
        if !absent.is_empty() {
            let message = format!("phase_measurement_missing {}", python_list(&absent));
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let record = self.phase_record(label, &inputs, &chosen, &admission)?;
        let errors = validate_phase_memory_result(&record);
        if !errors.is_empty() {
            let message = format!("phase_report_invalid: {}", errors.join("; "));
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        save_json_record_once(&output, &record)?;
        Ok(StageReport {
            record: object! {
                "status" => "measured",
                "report" => self.root.artifact(&output)?,
                "next_stage" => "close",
                "summary" => record.at(&["summary"]),
                "profile_identity" => self.identity(ClosureStage::Phase, label.as_str(), &inputs),
            },
            decision: None,
        })
    }

    fn phase_record(
        &self,
        label: &Label,
        inputs: &ClosureInputs,
        measured: &[&Measurement],
        admission: &Admission,
    ) -> Result<Json> {
        let config = inputs.strategy.at(&["config"]);
        let wanted = &self.thresholds.phase;
        let candidates: Vec<Json> = measured
            .iter()
            .map(|one| summarize_phase_memory_runs(&one.strategy, &numbered(&one.runs)))
            .collect::<Result<_>>()?;
        let own = measured.first().map_or(config, |one| &one.config);
        let or = |key: &str, default: Json| config.get(key).cloned().unwrap_or(default);
        let run_config = object! {
            "model_id" => config.at(&["model_id"]),
            "batch_size" => config.at(&["batch_size"]),
            "seq_len" => config.at(&["seq_len"]),
            "dtype" => or("dtype", "float32".into()),
            "optimizer" => or("optimizer", "AdamW".into()),
            "strategies" => wanted.strategies.clone(),
            "warmup" => parameter(config, "warmup", 2),
            "iters" => parameter(config, "iters", 5),
            "repeats" => wanted.repeats,
            "seed" => or("seed", 42_i64.into()),
            "process_memory_fraction" => wanted.process_memory_fraction,
            "minimum_free_margin_mb" => wanted.min_free_margin_mb,
            "torch" => own.at(&["torch"]),
            "torch_cuda" => own.at(&["torch_cuda"]),
            "device" => own.at(&["device"]),
        };
        let on_gpu = !own.at(&["torch_cuda"]).is_null();
        let profile = inputs.manifest.profile.as_ref();
        Ok(object! {
            "schema_version" => PHASE_SCHEMA,
            "semantic_id" => super::manifest::CLOSURE_ID,
            "run_mode" => if on_gpu { "real_gpu" } else { "real_cpu" },
            "run_label" => label.as_str(),
            "task" => "profiling_driven_optimization",
            "stage" => "phase_memory_attribution",
            "evidence_level" => PHASE_EVIDENCE_LEVEL,
            "config" => &run_config,
            "sources" => object! {
                "baseline" => &inputs.manifest.sources[0].artifact,
                "strategy" => &inputs.manifest.sources[1].artifact,
                "profile_trace" => profile.map(|entry| entry.artifact.clone()),
            },
            "measurement" => object! {
                "role" => PHASE_METRICS,
                "timing_for_adoption" => false,
                "synchronize_at_phase_boundaries" => true,
            },
            "safety" => admission.to_json(),
            "candidates" => candidates.clone(),
            "summary" => summarize_phase_candidates(&candidates),
            "experiment" => standard_experiment_config(&run_config),
            "standard_metrics" => standard_metrics(&candidates),
            "inputs" => measured.iter().map(|one| one.artifact.clone()).collect::<Vec<_>>(),
            "tool" => tool(),
        })
    }
}

/// Runs that say which one they are, from 1, first.
fn numbered(runs: &[Json]) -> Vec<Json> {
    let number = |(place, run): (usize, &Json)| {
        let mut record = object! {"repeat" => place + 1};
        for (key, value) in run.fields() {
            record.set(key, value);
        }
        if record.get("status").is_none() {
            record.set("status", "ok");
        }
        record
    };
    runs.iter().enumerate().map(number).collect()
}

/// The least that the files of measurements say was free.
fn least_stated(measured: &[Measurement]) -> Option<FreeMemory> {
    let stated = measured.iter().filter_map(|one| stated_memory(&one.safety));
    stated.min_by(|a, b| a.free_mb.total_cmp(&b.free_mb))
}

/// What a file of measurements says was free.
fn stated_memory(safety: &Json) -> Option<FreeMemory> {
    Some(FreeMemory {
        free_mb: safety.at(&["free_memory_mb_before_load"]).as_f64()?,
        total_mb: safety.at(&["total_memory_mb"]).as_f64()?,
    })
}
