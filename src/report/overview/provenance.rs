//! What the numbers are made from.

use super::super::document::{Block, Column, Note, Row, Section, Table, Value};
use super::{OverviewParts, only_compared};

/// The files with their hashes, the program, the options in force.
pub(super) fn section(parts: OverviewParts<'_>) -> Section {
    let attribution = &parts.survey.attribution;
    let tool = attribution.tool;
    let options: Vec<String> = attribution
        .options
        .iter()
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => format!("{name} = {text}"),
            other => format!("{name} = {other}"),
        })
        .collect();
    let notes = vec![
        Note::new("made by", format!("{} {}", tool.name, tool.version)),
        Note::new("schema", attribution.schema_version),
        Note::new("options", options.join(", ")),
    ];
    Section {
        title: Some("Provenance".to_owned()),
        blocks: vec![Block::Notes(notes), Block::Table(inputs(parts))],
    }
}

fn inputs(parts: OverviewParts<'_>) -> Table {
    let size = |bytes: u64| i64::try_from(bytes).map_or(Value::Missing, Value::Bytes);
    let rows = parts.survey.attribution.inputs.iter().map(|input| {
        Row::new(vec![
            Value::text(&input.path),
            input.rank.map_or(Value::Missing, Value::Id),
            size(input.bytes),
            Value::Count(input.events),
            Value::text(if input.compressed { "yes" } else { "no" }),
            Value::text(if input.partial { "yes" } else { "no" }),
            input.sha256.as_ref().map_or(Value::Missing, Value::text),
        ])
    });
    // Of these the comparison has but numbers.
    let compared = only_compared(parts).map(|path| {
        let mut cells = vec![Value::text(path)];
        cells.resize(7, Value::Missing);
        Row::new(cells)
    });
    let size_column = Column {
        unit: Some("MiB"),
        ..Column::number("size")
    };
    Table {
        caption: "Files read".to_owned(),
        keys: 1,
        columns: vec![
            Column::text("file"),
            Column::number("rank"),
            size_column,
            Column::number("events"),
            Column::text("compressed"),
            Column::text("partial"),
            Column::text("SHA-256"),
        ],
        rows: rows.chain(compared).collect(),
    }
}
