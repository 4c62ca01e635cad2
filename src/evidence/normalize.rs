//! Raw results under one schema, beside the raw ones.

use std::path::{Path, PathBuf};

use super::record::replace_json;
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, object, round};

/// Schema of normalised results.
pub const NORMALIZED_SCHEMA: &str = "training-memory-benchmark/v1";

fn number(value: &Json) -> Json {
    value.as_f64().map_or(Json::Null, |_| value.clone())
}

/// `report` under the schema `training-memory-benchmark/v1`. `source` is told as where it is from; the
/// part of its file name before the first `_` is the project.
pub fn normalize_report(report: &Json, source: Option<&str>) -> Json {
    let config = report.at(&["config"]);
    let object_or_empty = |value: &Json| {
        if value.is_object() {
            value.clone()
        } else {
            Json::object()
        }
    };
    let project = source.map(|source| {
        let stem = Path::new(source).file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy().into_owned();
        stem.split('_').next().unwrap_or_default().to_owned()
    });
    let raw = raw_candidates(report);
    let baseline = raw
        .iter()
        .find(|candidate| candidate.at(&["name"]).as_str() == Some("baseline"));
    let candidates: Vec<Json> = raw
        .iter()
        .enumerate()
        .map(|(place, candidate)| normalized(place, candidate, baseline))
        .collect();
    let decision = report.get("decision").cloned();
    let budget = report.get("budget").cloned();
    let floor = report.get("quality_floor").cloned();
    let mut record = object! {
        "schema_version" => NORMALIZED_SCHEMA,
        "project" => project,
        "stage" => report.at(&["stage"]),
        "config" => object! {
            "model" => config.first(&["model_id", "model"]),
            "device" => config.at(&["device"]),
            "torch" => config.at(&["torch"]),
            "cuda" => config.first(&["torch_cuda", "cuda"]),
            "dtype" => config.first(&["amp_dtype", "dtype"]),
            "batch_size" => config.at(&["batch_size"]),
            "seq_len" => config.at(&["seq_len"]),
            "warmup" => config.at(&["warmup"]),
            "iters" => config.at(&["iters"]),
            "workload" => config.at(&["workload"]),
        },
        "budget" => budget.unwrap_or_else(Json::object),
        "quality_floor" => floor.unwrap_or_else(Json::object),
        "candidates" => candidates,
        "summary" => object_or_empty(report.at(&["summary"])),
        "decision" => decision.unwrap_or_else(|| object! {"decision" => "not_evaluated"}),
        "legacy_source" => source,
    };
    let source_baseline = report.at(&["source_baseline"]);
    if !source_baseline.is_null() {
        record.set("source_baseline", source_baseline);
    }
    record
}

/// The objects of the list of candidates, else those at `baseline` and `tuned` with their names.
pub(crate) fn raw_candidates(report: &Json) -> Vec<Json> {
    if let Some(Json::List(items)) = report.get("candidates") {
        return items
            .iter()
            .filter(|item| item.is_object())
            .cloned()
            .collect();
    }
    ["baseline", "tuned"]
        .into_iter()
        .filter_map(|name| {
            let found = report.get(name).filter(|found| found.is_object())?;
            let mut candidate = object! {"name" => name};
            for (key, value) in found.fields() {
                candidate.set(key, value);
            }
            Some(candidate)
        })
        .collect()
}

fn peak(candidate: &Json) -> &Json {
    candidate.first(&["peak_memory_mb", "peak_mem_mb"])
}

fn normalized(place: usize, candidate: &Json, baseline: Option<&Json>) -> Json {
    let of_baseline = |of: fn(&Json) -> &Json| baseline.map(of).and_then(Json::as_f64);
    let saving = of_baseline(peak).zip(peak(candidate).as_f64());
    let pace = |candidate: &Json| candidate.at(&["samples_per_s"]).as_f64();
    let ratio = baseline
        .and_then(pace)
        .filter(|pace| *pace != 0.0)
        .zip(pace(candidate));
    let status = candidate.get("status").cloned();
    let status = status.unwrap_or_else(|| "ok".into());
    let is_oom = status.as_str() == Some("oom");
    let name = candidate.get("name").cloned();
    let metric = |key: &str| number(candidate.at(&[key]));
    object! {
        "name" => name.unwrap_or_else(|| format!("strategy_{place}").into()),
        "status" => status,
        "metrics" => object! {
            "step_time_ms" => metric("step_time_ms"),
            "samples_per_s" => metric("samples_per_s"),
            "peak_memory_mb" => number(peak(candidate)),
            "peak_reserved_mb" => metric("peak_reserved_mb"),
            "memory_saving_mb" => saving.map(|(base, own)| round(base - own, 6)),
            "throughput_ratio" => ratio.map(|(base, own)| round(own / base, 6)),
            "oom" => if is_oom { Json::Bool(true) } else { candidate.at(&["oom"]).clone() },
        },
        "quality" => object! {
            "loss" => candidate.at(&["loss"]),
            "eval_loss" => candidate.at(&["eval_loss"]),
            "val_loss" => candidate.first(&["val_loss", "eval_loss"]),
            "quality_status" => candidate.at(&["quality_status"]),
        },
        "legacy_fields" => candidate,
    }
}

/// Writes the normalised form of the file at `input` as `NAME_v1.json`, beside it or in `folder`, and
/// says where. The input stays as it is; an older normalised form is replaced.
///
/// # Errors
/// When the input is not there or no record, or is itself a normalised form of that name.
pub fn normalize_file(input: &Path, folder: Option<&Path>) -> Result<PathBuf> {
    let report = Json::read_object(input)?;
    let stem = input.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}_v1.json");
    let output = match folder {
        Some(folder) => folder.join(name),
        None => input.with_file_name(name),
    };
    if report.at(&["schema_version"]).as_str() == Some(NORMALIZED_SCHEMA) {
        let message = "is normalised already";
        return Err(Error::new(ErrorKind::Invalid, message).in_file(input));
    }
    let source = input.to_string_lossy();
    replace_json(&output, &normalize_report(&report, Some(&source)))?;
    Ok(output)
}
