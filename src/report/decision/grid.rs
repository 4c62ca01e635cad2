//! The decisions of a grid of thresholds: as a picture, and as a table with every number.

use super::super::chart::{Chart, Picture};
use super::super::document::{Block, Column, Note, Row, Table, Value};
use super::super::number;
use super::decision_of;
use super::picture::{DecisionCell, DecisionGrid};
use super::table::{cell, word, words};
use crate::gate::{Decision, Json};

/// Cells of a picture in each direction: grids of files may have any size.
const MOST_COLUMNS: usize = 12;
const MOST_LINES: usize = 60;

/// Picture, table and stability of a grid; nothing without cells. `reasons` are those of the cells, when
/// they are known.
pub(super) fn blocks(rows: &[Json], summary: &Json, reasons: &[String]) -> Vec<Block> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    blocks.extend(picture(rows, summary).map(Block::Chart));
    blocks.push(Block::Table(table(rows, reasons)));
    let mut notes = Vec::new();
    if let Some(text) = summary.at(&["interpretation"]).as_str() {
        notes.push(Note::new("stability", text));
    }
    for (key, label) in [
        ("decision_counts", "decisions"),
        ("best_candidate_counts", "best candidates"),
        ("feasible_set_counts", "candidates that fit"),
    ] {
        let counts: Vec<String> = summary
            .at(&[key])
            .fields()
            .map(|(name, count)| format!("{name} {}", count.to_line()))
            .collect();
        if !counts.is_empty() {
            notes.push(Note::new(label, counts.join("; ")));
        }
    }
    blocks.extend((!notes.is_empty()).then_some(Block::Notes(notes)));
    blocks
}

fn table(rows: &[Json], reasons: &[String]) -> Table {
    let told = rows.iter().zip(0..).map(|(row, place)| {
        Row::new(vec![
            cell(row.at(&["memory_cap_mb"])),
            cell(row.at(&["min_samples_per_s"])),
            cell(row.at(&["max_val_loss"])),
            word(row.at(&["decision"])),
            match row.at(&["best_candidate"]).as_str() {
                Some(best) => Value::text(best),
                None => Value::text("none"),
            },
            Value::text(words(row.at(&["feasible_names"]))),
            of_best(row, "memory_saving_mb"),
            of_best(row, "throughput_ratio"),
            reasons.get(place).map_or(Value::Blank, Value::text),
        ])
    });
    let mut columns = vec![
        Column::number("memory cap (MiB)"),
        Column::number("least samples/s"),
        Column::number("most loss"),
        Column::text("decision"),
        Column::text("best"),
        Column::text("fit").starting_group(),
        Column::number("saved (MiB)"),
        Column::number("throughput ratio"),
        Column::text("reasons"),
    ];
    let mut rows_told: Vec<Row> = told.collect();
    if reasons.is_empty() {
        columns.pop();
        for row in &mut rows_told {
            row.cells.pop();
        }
    }
    Table {
        caption: "Decisions over a grid of thresholds".to_owned(),
        keys: 3,
        columns,
        rows: rows_told,
    }
}

/// What the best candidate saves or keeps: without one there is none, though records say that it saves 0.
fn of_best(row: &Json, key: &str) -> Value {
    if row.at(&["best_candidate"]).is_null() {
        Value::NotApplicable
    } else {
        cell(row.at(&[key]))
    }
}

/// The grid as a picture; nothing when it is too large for one, or a cell is no cell.
fn picture(rows: &[Json], summary: &Json) -> Option<Chart> {
    type Line = (f64, f64, Vec<Option<DecisionCell>>);
    let mut columns: Vec<f64> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let number = |key: &str| row.at(&[key]).as_f64();
        let (cap, floor) = (number("memory_cap_mb")?, number("min_samples_per_s")?);
        let loss = number("max_val_loss")?;
        let column = place(&mut columns, |known| same(*known, loss), || loss);
        let line = place(
            &mut lines,
            |known| same(known.0, cap) && same(known.1, floor),
            || (cap, floor, Vec::new()),
        );
        if columns.len() > MOST_COLUMNS || lines.len() > MOST_LINES {
            return None;
        }
        let cells = &mut lines[line].2;
        cells.resize(cells.len().max(column + 1), None);
        cells[column] = Some(cell_of(row, [cap, floor, loss])?);
    }
    let count = columns.len();
    let lines: Vec<_> = lines
        .into_iter()
        .map(|(cap, floor, mut cells)| {
            cells.resize(count, None);
            let name = format!("{} MiB, {} samples/s", threshold(cap), threshold(floor));
            (name, cells)
        })
        .collect();
    let counts: Vec<String> = [Decision::Accept, Decision::Tune, Decision::Reject]
        .into_iter()
        .map(|decision| {
            let cells = lines.iter().flat_map(|(_, cells)| cells).flatten();
            let own = cells.filter(|cell| cell.decision == decision).count();
            format!("{decision} {own}")
        })
        .collect();
    let stability = summary.at(&["interpretation"]).as_str();
    let stability = stability.map_or_else(String::new, |text| format!(" The choice is {text}."));
    Some(Chart {
        name: "sensitivity-grid".to_owned(),
        caption: "Decision and best candidate by memory cap, least throughput and most loss"
            .to_owned(),
        about: format!("Cells by decision: {}.{stability}", counts.join(", ")),
        picture: Picture::Grid(DecisionGrid {
            columns: columns
                .into_iter()
                .map(|loss| format!("loss \u{2264} {}", threshold(loss)))
                .collect(),
            rows: lines,
        }),
    })
}

fn cell_of(row: &Json, [cap, floor, loss]: [f64; 3]) -> Option<DecisionCell> {
    let decision = decision_of(row.at(&["decision"]))?;
    let best = row.at(&["best_candidate"]).as_str().unwrap_or("none");
    let fit = words(row.at(&["feasible_names"]));
    Some(DecisionCell {
        decision,
        best: best.to_owned(),
        about: format!(
            "at most {} MiB, at least {} samples/s, loss at most {}: {decision}, best {best}, fit: {}",
            threshold(cap),
            threshold(floor),
            threshold(loss),
            if fit.is_empty() { "none" } else { &fit }
        ),
    })
}

/// A threshold as people write it: without zeros behind the point.
fn threshold(value: f64) -> String {
    let text = number::spelled(&Value::Number(value));
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Where the item is that `is` finds; a new one at the end when there is none.
fn place<T>(items: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    items.iter().position(is).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    })
}

/// The same threshold, as it is written.
fn same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}
