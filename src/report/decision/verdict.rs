//! The verdict of a gate as a report: the headline first, then what was looked at.

use super::super::document::{Block, Column, Document, Row, Section, Table, Value};
use super::table::{cell, inputs, word, words};
use super::{decision_of, grid, scope};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, Verdict, headline};

/// `verdict` as a report of its own.
pub fn verdict_document(verdict: &Verdict) -> Document {
    let record = verdict.to_json();
    let mut sections = vec![Section {
        title: None,
        blocks: blocks(&record),
    }];
    sections.extend(statistics(record.at(&["statistics"])));
    sections.push(Section {
        title: None,
        blocks: vec![Block::Notes(inputs(&record).unwrap_or_default())],
    });
    Document {
        title: format!("Gate {}", verdict.gate),
        lead: verdict.headline(),
        sections,
    }
}

/// The stored verdict `record` as sections of a report.
pub(super) fn sections(record: &Json) -> Result<Vec<Section>> {
    if decision_of(record.at(&["decision"])).is_none() {
        let message = "holds no decision";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let gate = record.at(&["gate"]).as_str().unwrap_or_default();
    let mut first = vec![Block::Paragraph(headline(record))];
    first.extend(blocks(record));
    first.extend(inputs(record).map(Block::Notes));
    let mut sections = vec![Section {
        title: Some(format!("Gate {gate}")),
        blocks: first,
    }];
    sections.extend(statistics(record.at(&["statistics"])));
    Ok(sections)
}

fn blocks(record: &Json) -> Vec<Block> {
    let result = record.at(&["result"]);
    let checks = record.at(&["checks"]).items();
    let cells = result.at(&["sensitivity"]).items();
    if !cells.is_empty() {
        let reasons: Vec<String> = checks.iter().map(|one| words(one.at(&["codes"]))).collect();
        return grid::blocks(cells, result.at(&["sensitivity_summary"]), &reasons);
    }
    let mut blocks = Vec::new();
    blocks.extend(checked(checks).map(Block::Table));
    match record.at(&["gate"]).as_str() {
        Some("qualify") => blocks.extend(scope::qualification(result)),
        Some("activation-scope") => blocks.extend(scope::activation(result)),
        _ => {}
    }
    blocks
}

fn checked(checks: &[Json]) -> Option<Table> {
    let rows = checks.iter().map(|check| {
        Row::new(vec![
            word(check.at(&["subject"])),
            word(check.at(&["status"])),
            Value::text(words(check.at(&["codes"]))),
            word(check.at(&["detail"])),
        ])
    });
    (!checks.is_empty()).then(|| Table {
        caption: "Checks".to_owned(),
        keys: 1,
        columns: ["subject", "status", "reasons", "numbers"]
            .map(Column::text)
            .to_vec(),
        rows: rows.collect(),
    })
}

/// What repeats say as samples.
fn statistics(statistics: &Json) -> Option<Section> {
    if !statistics.is_object() {
        return None;
    }
    let rows = statistics.at(&["metrics"]).items().iter().map(|metric| {
        Row::new(vec![
            word(metric.at(&["subject"])),
            word(metric.at(&["metric"])),
            cell(metric.at(&["difference"])),
            cell(metric.at(&["interval", "low"])),
            cell(metric.at(&["interval", "high"])),
            cell(metric.at(&["threshold"])),
            word(metric.at(&["decision"])),
            Value::text(words(metric.at(&["codes"]))),
        ])
    });
    Some(Section {
        title: Some("Repeats as samples".to_owned()),
        blocks: vec![
            Block::Paragraph(headline(statistics)),
            Block::Table(Table {
                caption: "Gain of the candidate, with its confidence interval".to_owned(),
                keys: 2,
                columns: vec![
                    Column::text("subject"),
                    Column::text("metric"),
                    Column::number("gain"),
                    Column::number("low"),
                    Column::number("high"),
                    Column::number("wanted"),
                    Column::text("decision"),
                    Column::text("remarks"),
                ],
                rows: rows.collect(),
            }),
        ],
    })
}
