//! Records of the evidence chain as documents: one fact a line, tables for lists of objects.

use super::document::{Block, Column, Document, Row, Section, Table, Value};
use crate::gate::Json;

/// How deep a record is laid out; what is deeper is one line of JSON.
const DEEPEST: usize = 4;

/// `record` as a report: its status or chain first, then its facts, then its lists.
pub fn evidence_document(record: &Json) -> Document {
    let text = |keys: &[&str]| record.first(keys).as_str().map(str::to_owned);
    let mut lead = text(&["status", "chain"]).unwrap_or_else(|| "record".to_owned());
    if record.at(&["measurement_role"]).as_str() == Some("bottleneck_attribution_only") {
        "attribution only: these numbers explain and do not decide".clone_into(&mut lead);
    }
    let decision = record.at(&["decision"]);
    if let Some(word) = decision.at(&["decision"]).as_str() {
        lead = format!("{lead}: {word}");
        if let Some(reason) = decision.at(&["reason"]).as_str() {
            lead = format!("{lead}, {reason}");
        }
    }
    let mut facts = Vec::new();
    let mut tables = Vec::new();
    collect(record, "", 0, &mut facts, &mut tables);
    let mut blocks = Vec::new();
    if !facts.is_empty() {
        let rows = facts
            .into_iter()
            .map(|(key, value)| Row::new(vec![Value::text(key), Value::text(value)]));
        blocks.push(Block::Table(Table {
            caption: "Facts".to_owned(),
            keys: 1,
            columns: vec![Column::text("what"), Column::text("value")],
            rows: rows.collect(),
        }));
    }
    blocks.extend(tables.into_iter().map(Block::Table));
    Document {
        title: "Evidence".to_owned(),
        lead,
        sections: vec![Section {
            title: None,
            blocks,
        }],
    }
}

fn collect(
    value: &Json,
    name: &str,
    depth: usize,
    facts: &mut Vec<(String, String)>,
    tables: &mut Vec<Table>,
) {
    match value {
        Json::Object(fields) if depth < DEEPEST && !fields.is_empty() => {
            for (key, value) in fields {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                collect(value, &name, depth + 1, facts, tables);
            }
        }
        Json::List(items) if !items.is_empty() && items.iter().all(Json::is_object) => {
            tables.push(table(name, items));
        }
        Json::List(items) if items.is_empty() => facts.push((name.to_owned(), "none".to_owned())),
        other => facts.push((name.to_owned(), shown(other))),
    }
}

fn shown(value: &Json) -> String {
    match value {
        Json::Null => "not measured".to_owned(),
        Json::Text(text) => text.clone(),
        Json::List(items)
            if items
                .iter()
                .all(|item| !item.is_object() && !item.is_list()) =>
        {
            items.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        other => other.to_line(),
    }
}

/// A list of objects: a column a field, in the order in which fields come first.
fn table(name: &str, items: &[Json]) -> Table {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in items.iter().flat_map(Json::fields) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let rows = items.iter().map(|item| {
        let cell = |key: &&str| match item.get(key) {
            None => Value::Blank,
            Some(value) => Value::text(shown(value)),
        };
        Row::new(keys.iter().map(cell).collect())
    });
    Table {
        caption: name.to_owned(),
        keys: 1,
        columns: keys.iter().map(|key| Column::text(*key)).collect(),
        rows: rows.collect(),
    }
}
