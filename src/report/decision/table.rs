//! Tables of what records measured, were limited by, and are made from.

use super::super::document::{Column, Note, Row, Table, Value};
use crate::gate::Json;

/// A field of a record as a value: numbers stay numbers, what is not there was not measured.
pub(super) fn cell(value: &Json) -> Value {
    match value {
        Json::Null => Value::Missing,
        Json::Text(text) if text == "not_applicable" => Value::NotApplicable,
        Json::Int(int) => i64::try_from(*int).map_or(Value::Number(*int as f64), Value::Id),
        Json::Float(_) => value.as_f64().map_or(Value::Missing, Value::Number),
        Json::Text(text) => Value::text(text),
        other => Value::text(other.to_line()),
    }
}

/// A field of text; nothing is said where it is not there.
pub(super) fn word(value: &Json) -> Value {
    match value {
        Json::Null => Value::Blank,
        Json::Text(text) => Value::text(text),
        other => cell(other),
    }
}

/// A list of words.
pub(super) fn words(value: &Json) -> String {
    let words: Vec<String> = value
        .items()
        .iter()
        .map(|item| item.as_str().map_or_else(|| item.to_line(), str::to_owned))
        .collect();
    words.join(", ")
}

/// What was measured of each candidate, with what became of it under the budget.
pub(super) fn measured<'a>(
    candidates: &[&'a Json],
    evaluations: &[Json],
    sides: impl Iterator<Item = (&'static str, &'a Json)>,
) -> Option<Table> {
    let named = candidates
        .iter()
        .map(|candidate| (word(candidate.at(&["name"])), *candidate));
    let sides = sides.map(|(name, side)| (Value::text(name), side));
    let judged = !evaluations.is_empty();
    let rows: Vec<Row> = named
        .chain(sides)
        .enumerate()
        .map(|(place, (name, record))| {
            let mut cells = vec![name, word(record.at(&["status"]))];
            if judged {
                let evaluation = evaluations.get(place).unwrap_or(&Json::Null);
                cells.push(word(evaluation.at(&["status"])));
                cells.push(Value::text(words(evaluation.at(&["reasons"]))));
            }
            for keys in [
                &["step_time_ms"][..],
                &["samples_per_s"],
                &["peak_memory_mb", "peak_mem_mb"],
                &["peak_reserved_mb"],
                &["eval_loss", "val_loss", "loss"],
            ] {
                cells.push(cell(record.first(keys)));
            }
            Row::new(cells)
        })
        .collect();
    let mut columns = vec![Column::text("candidate"), Column::text("status")];
    if judged {
        columns.extend(["budget", "reasons"].map(Column::text));
    }
    // Records have milliseconds as numbers, not times in nanoseconds.
    columns.push(Column::number("step (ms)").starting_group());
    columns.extend(["samples/s", "allocated (MiB)", "reserved (MiB)", "loss"].map(Column::number));
    (!rows.is_empty()).then(|| Table {
        caption: "Measured without a profiler".to_owned(),
        keys: 1,
        columns,
        rows,
    })
}

/// What a decision was compared with.
pub(super) fn limits(budget: &Json, floor: &Json) -> Option<Table> {
    let rows: Vec<Row> = budget
        .fields()
        .chain(floor.fields())
        .map(|(key, value)| Row::new(vec![Value::text(key), cell(value)]))
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Limits".to_owned(),
        keys: 1,
        columns: vec![Column::text("limit"), Column::number("value")],
        rows,
    })
}

/// What profiles and phase memory say about hypotheses.
pub(super) fn hypotheses(assessments: &[Json]) -> Option<Table> {
    let rows: Vec<Row> = assessments
        .iter()
        .map(|one| {
            let seen: Vec<String> = one
                .at(&["observations"])
                .fields()
                .map(|(key, value)| match value.as_str() {
                    Some(text) => format!("{key} {text}"),
                    None => format!("{key} {}", value.to_line()),
                })
                .collect();
            Row::new(vec![
                word(one.at(&["id"])),
                word(one.at(&["category"])),
                word(one.at(&["status"])),
                Value::text(seen.join("; ")),
                word(one.at(&["optimization"])),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Hypotheses, for attribution only: they explain and do not decide".to_owned(),
        keys: 1,
        columns: ["hypothesis", "category", "finding", "seen", "what helps"]
            .map(Column::text)
            .to_vec(),
        rows,
    })
}

/// The four questions at the end of the chain.
pub(super) fn answers(answers: &[Json]) -> Table {
    let rows = answers.iter().map(|one| {
        Row::new(vec![
            word(one.at(&["question"])),
            word(one.at(&["answer"])),
            Value::text(words(one.at(&["evidence"]))),
            Value::text(words(one.at(&["missing"]))),
        ])
    });
    Table {
        caption: "Questions at the end of the chain".to_owned(),
        keys: 1,
        columns: ["question", "answer", "evidence", "missing"]
            .map(Column::text)
            .to_vec(),
        rows: rows.collect(),
    }
}

/// The files that a record is made from, with their hashes.
pub(super) fn inputs(record: &Json) -> Option<Vec<Note>> {
    let named = |name: &str, artifact: &Json| {
        let (path, sha256) = (artifact.at(&["path"]), artifact.at(&["sha256"]));
        let (path, sha256) = (path.as_str()?, sha256.as_str()?);
        let name = match name {
            "" => String::new(),
            name => format!("{name} "),
        };
        Some(Note::new(
            "input",
            format!("{name}{path} (sha256 {sha256})"),
        ))
    };
    let listed = record.at(&["inputs"]).items().iter();
    let mut notes: Vec<Note> = listed.filter_map(|one| named("", one)).collect();
    for path in [
        &["validation", "source_artifacts"][..],
        &["source_artifacts"],
    ] {
        let artifacts = record.at(path).fields();
        notes.extend(artifacts.filter_map(|(name, one)| named(name, one)));
    }
    notes.extend(named("evidence", record.at(&["source_evidence"])));
    (!notes.is_empty()).then_some(notes)
}
