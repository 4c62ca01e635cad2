//! The records of a folder as tables: one row a record, a candidate, a run, a cell of a grid, …
//!
//! What a row is from is told by its file. Numbers keep the role that they were measured in, so that a query
//! can leave out what only explains.

use std::path::Path;

use super::folder::{Found, records_in};
use super::legacy::Form;
use super::normalize::raw_candidates;
use crate::error::Result;
use crate::gate::{ADOPTION_METRICS, Json, PHASE_METRICS, PROFILER_METRICS};
use crate::inspect::{Frame, Unit};

/// The tables of a folder of records, and the files that are none.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordTables {
    /// `records`, `candidates`, `runs`, `scenarios`, `checks`, `judged`, `hypotheses`, `artifacts`.
    pub frames: Vec<Frame>,
    /// Files that are no records, as `file` and `reason`.
    pub skipped: Vec<Json>,
}

/// A part of a record with the file that it is from.
struct Part<'a> {
    from: &'a Found,
    /// The candidate that it belongs to, where it does not say so itself.
    of: Option<&'a str>,
    value: &'a Json,
}

/// A text field of a row.
fn text(value: &Json, keys: &[&str]) -> Option<String> {
    match value.first(keys) {
        Json::Null => None,
        Json::Text(text) => Some(text.clone()),
        Json::List(items) => {
            let items = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_line(), str::to_owned));
            Some(items.collect::<Vec<_>>().join(","))
        }
        other => Some(other.to_line()),
    }
}

fn number(value: &Json, keys: &[&str]) -> Option<f64> {
    value.first(keys).as_f64()
}

fn count(value: &Json) -> Option<u64> {
    value.is_list().then(|| value.items().len() as u64)
}

/// What the numbers of a form were measured for.
fn role(form: Form) -> Option<&'static str> {
    match form {
        Form::Baseline
        | Form::Probe
        | Form::Strategy
        | Form::ActivationLadder
        | Form::BudgetEvidence
        | Form::BudgetDecision => Some(ADOPTION_METRICS),
        Form::Profile => Some(PROFILER_METRICS),
        Form::PhaseMemory => Some(PHASE_METRICS),
        _ => None,
    }
}

/// The records in `folder`, not below it, as tables.
///
/// # Errors
/// When the folder cannot be read or holds no record.
pub fn record_tables(folder: &Path) -> Result<RecordTables> {
    let (found, skipped) = records_in(folder)?;
    let measured: Vec<(usize, Vec<Json>)> = found
        .iter()
        .enumerate()
        .filter(|(_, one)| role(one.form).is_some())
        .map(|(place, one)| (place, raw_candidates(&one.record)))
        .collect();
    let candidates: Vec<Part> = measured
        .iter()
        .flat_map(|(place, candidates)| {
            let from = &found[*place];
            candidates.iter().map(move |value| Part {
                from,
                of: None,
                value,
            })
        })
        .collect();
    let runs: Vec<Part> = candidates
        .iter()
        .flat_map(|part| {
            let runs = part.value.at(&["runs"]).items();
            runs.iter().map(|value| Part {
                from: part.from,
                of: part.value.at(&["name"]).as_str(),
                value,
            })
        })
        .collect();
    Ok(RecordTables {
        frames: vec![
            records(&found),
            candidate_frame(&candidates),
            run_frame(&runs),
            scenarios(&found),
            checks(&found),
            judged(&found),
            hypotheses(&found),
            artifacts(&found),
        ],
        skipped,
    })
}

fn records(found: &[Found]) -> Frame {
    // A verdict says at its top what records of the chain say under `decision`.
    let decision = |one: &Found, key: &str| match one.form {
        Form::Verdict => text(&one.record, &[key]),
        _ => text(one.record.at(&["decision"]), &[key]),
    };
    Frame::new("records", "One row a record.")
        .text("file", found, |one| Some(one.name.clone()))
        .text("form", found, |one| Some(one.form.as_str()))
        .text("project", found, |one| one.form.project())
        .text("run_label", found, |one| text(&one.record, &["run_label"]))
        .text("stage", found, |one| text(&one.record, &["stage"]))
        .text("schema_version", found, |one| {
            text(&one.record, &["schema_version"])
        })
        .text("decision", found, |one| decision(one, "decision"))
        .text("reason", found, |one| decision(one, "reason"))
        .text("next_action", found, |one| decision(one, "next_action"))
}

/// The metrics that every measured thing may have.
fn with_metrics(frame: Frame, rows: &[Part]) -> Frame {
    let metrics: [(&'static str, &[&str]); 6] = [
        ("step_time_ms", &["step_time_ms"]),
        ("samples_per_s", &["samples_per_s"]),
        ("peak_memory_mb", &["peak_memory_mb", "peak_mem_mb"]),
        ("peak_reserved_mb", &["peak_reserved_mb"]),
        ("loss", &["loss"]),
        ("eval_loss", &["eval_loss", "val_loss"]),
    ];
    metrics.into_iter().fold(frame, |frame, (name, keys)| {
        frame.float(name, Unit::Number, rows, |row| number(row.value, keys))
    })
}

fn candidate_frame(rows: &[Part]) -> Frame {
    let evaluation = |row: &Part, key: &str| {
        let evaluations = row.from.record.at(&["summary", "evaluations"]).items();
        let name = row.value.at(&["name"]);
        let found = evaluations.iter().find(|one| one.at(&["name"]) == name)?;
        text(found, &[key])
    };
    let frame = Frame::new(
        "candidates",
        "One row a candidate of a record that measured some.",
    )
    .text("file", rows, |row| Some(row.from.name.clone()))
    .text("role", rows, |row| role(row.from.form))
    .text("candidate", rows, |row| text(row.value, &["name"]))
    .text("status", rows, |row| text(row.value, &["status"]));
    with_metrics(frame, rows)
        .count("runs", rows, |row| count(row.value.at(&["runs"])))
        .text("budget_status", rows, |row| evaluation(row, "status"))
        .text("budget_reasons", rows, |row| evaluation(row, "reasons"))
        .text("global_peak_phase", rows, |row| {
            text(row.value, &["global_peak_phase"])
        })
}

fn run_frame(rows: &[Part]) -> Frame {
    let frame = Frame::new("runs", "One row a repeat of a candidate.")
        .text("file", rows, |row| Some(row.from.name.clone()))
        .text("role", rows, |row| role(row.from.form))
        .text("candidate", rows, |row| row.of)
        .id("repeat", rows, |row| row.value.at(&["repeat"]).as_int())
        .text("status", rows, |row| text(row.value, &["status"]));
    with_metrics(frame, rows)
}

fn parts<'a>(found: &'a [Found], path: &[&str]) -> Vec<Part<'a>> {
    let parts = found.iter().flat_map(|from| {
        let items = from.record.at(path).items();
        items.iter().map(move |value| Part {
            from,
            of: None,
            value,
        })
    });
    parts.collect()
}

fn scenarios(found: &[Found]) -> Frame {
    let rows: Vec<Part> = [&["sensitivity"][..], &["result", "sensitivity"]]
        .into_iter()
        .flat_map(|path| parts(found, path))
        .collect();
    let mut frame = Frame::new("scenarios", "One row a cell of a grid of thresholds.").text(
        "file",
        &rows,
        |row| Some(row.from.name.clone()),
    );
    for key in ["memory_cap_mb", "min_samples_per_s", "max_val_loss"] {
        frame = frame.float(key, Unit::Number, &rows, |row| number(row.value, &[key]));
    }
    for key in ["decision", "best_candidate", "feasible_names"] {
        frame = frame.text(key, &rows, |row| text(row.value, &[key]));
    }
    for key in ["memory_saving_mb", "throughput_ratio"] {
        frame = frame.float(key, Unit::Number, &rows, |row| number(row.value, &[key]));
    }
    frame
}

fn checks(found: &[Found]) -> Frame {
    let rows = parts(found, &["checks"]);
    let mut frame = Frame::new("checks", "One row a thing that a gate looked at.")
        .text("file", &rows, |row| Some(row.from.name.clone()))
        .text("gate", &rows, |row| text(&row.from.record, &["gate"]));
    for key in ["subject", "status", "codes", "detail"] {
        frame = frame.text(key, &rows, |row| text(row.value, &[key]));
    }
    frame.flag("failed", &rows, |row| match row.value.at(&["failed"]) {
        Json::Bool(failed) => Some(*failed),
        _ => None,
    })
}

fn judged(found: &[Found]) -> Frame {
    let rows: Vec<Part> = ["candidates", "candidate_records"]
        .into_iter()
        .flat_map(|key| parts(found, &[key]))
        .filter(|row| row.value.get("failed_gates").is_some())
        .collect();
    let mut frame = Frame::new(
        "judged",
        "One row a profiled candidate that a closure judged.",
    )
    .text("file", &rows, |row| Some(row.from.name.clone()))
    .text("candidate", &rows, |row| text(row.value, &["name"]));
    for key in ["decision", "failed_gates", "missing_evidence"] {
        frame = frame.text(key, &rows, |row| text(row.value, &[key]));
    }
    for key in ["memory_saving_mb", "throughput_ratio", "loss_delta"] {
        frame = frame.float(key, Unit::Number, &rows, |row| {
            number(row.value.at(&["metrics"]), &[key])
        });
    }
    frame
}

fn hypotheses(found: &[Found]) -> Frame {
    let rows = parts(found, &["bottleneck"]);
    let mut frame = Frame::new(
        "hypotheses",
        "One row a hypothesis of a closure; they explain and do not decide.",
    )
    .text("file", &rows, |row| Some(row.from.name.clone()));
    for (name, key) in [
        ("hypothesis", "id"),
        ("category", "category"),
        ("status", "status"),
        ("observations", "observations"),
        ("optimization", "optimization"),
    ] {
        frame = frame.text(name, &rows, |row| text(row.value, &[key]));
    }
    frame
}

/// Every object with a path and a hash, at any depth.
fn artifacts(found: &[Found]) -> Frame {
    let mut rows: Vec<(&Found, String, &Json)> = Vec::new();
    for from in found {
        collect(from, String::new(), &from.record, &mut rows);
    }
    Frame::new(
        "artifacts",
        "One row a file that a record names with its hash.",
    )
    .text("file", &rows, |(from, ..)| Some(from.name.clone()))
    .text("field", &rows, |(_, field, _)| Some(field.clone()))
    .text("path", &rows, |(.., value)| text(value, &["path"]))
    .text("sha256", &rows, |(.., value)| text(value, &["sha256"]))
}

fn collect<'a>(
    from: &'a Found,
    field: String,
    value: &'a Json,
    rows: &mut Vec<(&'a Found, String, &'a Json)>,
) {
    let inside = |key: &str| match field.as_str() {
        "" => key.to_owned(),
        field => format!("{field}.{key}"),
    };
    match value {
        Json::Object(fields) => {
            if value.at(&["path"]).as_str().is_some() && value.at(&["sha256"]).as_str().is_some() {
                rows.push((from, field, value));
                return;
            }
            for (key, value) in fields {
                collect(from, inside(key), value, rows);
            }
        }
        Json::List(items) => {
            for (place, value) in items.iter().enumerate() {
                collect(from, inside(&place.to_string()), value, rows);
            }
        }
        _ => {}
    }
}
