//! Data frames, and which tables there are, as tables for people and programs.

use polars::prelude::{AnyValue, DataFrame};
use serde_json::{Map, Number, Value as Json};

use super::document::{Block, Column, Document, Note, Row, Section, Table, Value};
use super::number::count;
use crate::frame::TableSchema;

/// Up to `most` rows of `frame` from row `first` on, with its own column names, for CSV.
pub fn data_frame_rows(frame: &DataFrame, first: usize, most: usize) -> Table {
    let part = frame.slice(i64::try_from(first).unwrap_or(i64::MAX), most);
    let columns = part.columns();
    let rows = (0..part.height()).map(|row| {
        let cells = columns
            .iter()
            .map(|column| column.get(row).map_or(Value::Missing, |value| cell(&value)));
        Row::new(cells.collect())
    });
    Table {
        caption: String::new(),
        keys: 1,
        columns: columns
            .iter()
            .map(|column| {
                let name = column.name().as_str();
                if column.dtype().is_primitive_numeric() {
                    Column::number(name)
                } else {
                    Column::text(name)
                }
            })
            .collect(),
        rows: rows.collect(),
    }
}

fn cell(value: &AnyValue<'_>) -> Value {
    match json(value) {
        Json::Null => Value::Missing,
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Id(integer),
            None => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(text),
        other => Value::text(other.to_string()),
    }
}

/// `frame` as an array of rows, each an object with the columns in order.
pub fn data_frame_json(frame: &DataFrame) -> Json {
    let columns = frame.columns();
    let rows = (0..frame.height()).map(|row| {
        let members = columns.iter().map(|column| {
            let value = column.get(row).map_or(Json::Null, |value| json(&value));
            (column.name().to_string(), value)
        });
        Json::Object(members.collect::<Map<_, _>>())
    });
    Json::Array(rows.collect())
}

/// The value in JSON; what JSON has no word for, as text.
fn json(value: &AnyValue<'_>) -> Json {
    match value {
        AnyValue::Null => Json::Null,
        AnyValue::Boolean(flag) => Json::Bool(*flag),
        AnyValue::String(text) => Json::String((*text).to_owned()),
        AnyValue::StringOwned(text) => Json::String(text.to_string()),
        AnyValue::Float64(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        AnyValue::Float32(number) => {
            Number::from_f64(f64::from(*number)).map_or(Json::Null, Json::Number)
        }
        AnyValue::UInt64(number) => Json::from(*number),
        AnyValue::List(series) => Json::Array(series.iter().map(|value| json(&value)).collect()),
        other => match other.extract::<i64>() {
            Some(number) if other.is_primitive_numeric() => Json::from(number),
            _ => Json::String(other.to_string()),
        },
    }
}

/// `frame` as a report.
pub fn data_frame_document(frame: &DataFrame) -> Document {
    let rows = frame.height();
    let table = data_frame_rows(frame, 0, rows);
    let noun = if rows == 1 { "row" } else { "rows" };
    Document {
        title: "Result".to_owned(),
        lead: format!("{} {noun}", count(rows as u64)),
        sections: vec![Section {
            title: None,
            blocks: vec![Block::Table(table)],
        }],
    }
}

/// Which tables there are.
pub fn tables_document(tables: &[TableSchema]) -> Document {
    let described = tables.iter().map(|table| {
        let notes = table.columns.iter().map(|column| {
            let text = format!("{}: {}", column.dtype.as_str(), column.about);
            Note::new(column.name, text)
        });
        (table.name, table.about, notes.collect())
    });
    described_tables(format!("{} tables", tables.len()), described)
}

/// Tables by name, what a row of each is and a note on every column.
pub(crate) fn described_tables<'t>(
    lead: String,
    tables: impl Iterator<Item = (&'t str, &'t str, Vec<Note>)>,
) -> Document {
    let sections = tables.map(|(name, about, columns)| Section {
        title: Some(name.to_owned()),
        blocks: vec![
            Block::Paragraph(format!("A row is {about}.")),
            Block::Notes(columns),
        ],
    });
    Document {
        title: "Tables".to_owned(),
        lead,
        sections: sections.collect(),
    }
}
