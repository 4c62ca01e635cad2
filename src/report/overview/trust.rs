//! How far the numbers can be trusted.

use super::super::attribution::{coverage, health};
use super::super::document::{Block, Column, Note, Row, Section, Table, Value};
use crate::attribute::Attribution;
use crate::doctor::codes;
use crate::health::{HealthCode, HealthEntry, Severity};
use crate::units::Ns;

/// Coverage, findings and files left out, in a line each.
pub(super) fn notes(attribution: &Attribution) -> Vec<Note> {
    let mut notes = vec![covered(attribution)];
    notes.extend(health::notes(attribution, false));
    notes
}

fn covered(attribution: &Attribution) -> Note {
    let placed = coverage::described(
        &attribution.coverage,
        &attribution.totals,
        &attribution.runs,
    );
    let dropped = coverage::dropped(attribution);
    Note::new("coverage", format!("{placed}; {dropped}"))
}

/// The same with a table of the findings.
pub(super) fn section(attribution: &Attribution, verbose: bool) -> Section {
    let mut notes = vec![covered(attribution)];
    let shown: Vec<&HealthEntry> = attribution
        .health
        .iter()
        .filter(|entry| verbose || entry.severity > Severity::Info)
        .collect();
    // What is in the table is not said twice.
    let told = health::notes(attribution, verbose);
    notes.extend(
        told.into_iter()
            .filter(|note| shown.is_empty() || note.label != "health"),
    );
    let mut blocks = vec![Block::Notes(notes)];
    if !shown.is_empty() {
        blocks.push(Block::Table(findings(attribution, &shown)));
    }
    Section {
        title: Some("Health and coverage".to_owned()),
        blocks,
    }
}

fn findings(attribution: &Attribution, shown: &[&HealthEntry]) -> Table {
    let text = |entry: &HealthEntry, of: fn(&crate::doctor::Code) -> &'static str| {
        let code = HealthCode::from_name(entry.code).and_then(|code| codes(Some(code)).codes.pop());
        code.map_or(Value::Missing, |code| Value::text(of(&code)))
    };
    let rows = shown.iter().map(|entry| {
        let input = entry
            .first_input
            .and_then(|input| attribution.inputs.get(input));
        Row::new(vec![
            Value::text(entry.code),
            Value::text(entry.severity.as_str()),
            Value::Count(entry.count),
            entry
                .time_ns
                .map_or(Value::Missing, |time| Value::Ns(Ns(time))),
            Value::text(entry.help),
            text(entry, |code| code.action),
            entry
                .first_name
                .as_ref()
                .map_or(Value::Missing, Value::text),
            entry.first_offset.map_or(Value::Missing, |offset| {
                i64::try_from(offset).map_or(Value::Missing, Value::Id)
            }),
            input.map_or(Value::Missing, |input| Value::text(&input.path)),
        ])
    });
    Table {
        caption: "What is wrong or unusual".to_owned(),
        keys: 1,
        columns: vec![
            Column::text("finding"),
            Column::text("severity"),
            Column::number("count"),
            Column::ms("time"),
            Column::sentences("meaning"),
            Column::sentences("what to do"),
            Column::text("first"),
            Column::number("at byte"),
            Column::text("in"),
        ],
        rows: rows.collect(),
    }
}
