//! An inspection as a document, and its frames as plain tables.

use super::document::{Block, Column, Document, Note, Row, Section, Table, Value};
use super::findings::{in_brief, left_out};
use super::number::{count, counted, ms};
use crate::attribute::{Attribution, RankResult};
use crate::inspect::{Entry, Frame, Inspection, Remark, Series, Unit, Values};
use crate::units::Ns;

/// Rows of a table that are shown unless everything is asked for.
const SHOWN_ROWS: usize = 40;

/// Of what a report has several: columns that tell them apart stay, even where all rows of a table are of one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Several {
    runs: bool,
    ranks: bool,
    windows: bool,
}

impl Several {
    /// Of the files of `attribution`.
    pub(super) fn of(attribution: &Attribution) -> Self {
        let files = &attribution.ranks;
        let differ =
            |of: fn(&RankResult) -> Option<i64>| files.iter().any(|file| of(file) != of(&files[0]));
        Self {
            runs: attribution.runs.len() > 1,
            ranks: differ(|file| file.rank),
            windows: differ(|file| i64::try_from(file.window).ok()),
        }
    }

    /// Of the files of `inspection`: as its tables and the ranks of its files tell.
    fn inspected(inspection: &Inspection) -> Self {
        let mut ranks: Vec<Option<i64>> = inspection.inputs.iter().map(|it| it.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        // Files of one rank are of several runs, or windows of one.
        let alike = ranks.len() < inspection.inputs.len();
        let of_frames = |name: &str| {
            let columns = inspection.frames.iter().filter_map(|it| it.column(name));
            let mut values = columns
                .flat_map(|column| (0..column.values.len()).map(|row| column.values.get(row)));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        Self {
            runs: alike || of_frames("run"),
            ranks: ranks.len() > 1 || of_frames("rank"),
            windows: of_frames("window"),
        }
    }

    fn tells(self, column: &Series) -> bool {
        match column.name {
            "run" => self.runs,
            "rank" => self.ranks,
            "window" => self.windows,
            _ => false,
        }
    }
}

/// `inspection` as a report; all rows and findings when `verbose`.
pub fn inspection_document(inspection: &Inspection, verbose: bool) -> Document {
    let topic = inspection.topic.name();
    let lead = match inspection.inputs.as_slice() {
        [input] => format!("{}: {}", input.path, inspection.topic.about()),
        inputs => format!(
            "{} files: {}",
            count(inputs.len() as u64),
            inspection.topic.about()
        ),
    };
    let several = Several::inspected(inspection);
    let mut sections: Vec<Section> = inspection
        .frames
        .iter()
        .map(|frame| section(frame, verbose, several))
        .collect();
    sections.push(Section {
        title: None,
        blocks: vec![Block::Notes(notes(inspection, verbose))],
    });
    Document {
        title: format!("Inspection: {topic}"),
        lead,
        sections,
    }
}

/// `frames` as a report; all rows when `verbose`.
pub fn frames_document(lead: String, frames: &[&Frame], verbose: bool) -> Document {
    let sections = frames.iter();
    let sections = sections.map(|frame| section(frame, verbose, Several::default()));
    Document {
        title: "Tables".to_owned(),
        lead,
        sections: sections.collect(),
    }
}

/// A table, or that there is nothing to show; all rows when `verbose`.
pub(super) fn section(frame: &Frame, verbose: bool, several: Several) -> Section {
    let title = Some(heading(frame.name));
    if frame.is_empty() {
        let text = format!("{} There is none here.", frame.about);
        return Section {
            title,
            blocks: vec![Block::Paragraph(text)],
        };
    }
    let shown = if verbose {
        frame.len()
    } else {
        frame.len().min(SHOWN_ROWS)
    };
    let table = table(frame, 0..shown, several);
    let mut blocks = vec![Block::Table(table)];
    if shown < frame.len() {
        let more = count((frame.len() - shown) as u64);
        let text = format!("… and {more} more rows: -v, JSON and CSV have all.");
        blocks.push(Block::Paragraph(text));
    }
    Section { title, blocks }
}

/// The rows `shown` of `frame`, which must not be empty, without columns that say nothing.
pub(super) fn table(
    frame: &Frame,
    shown: impl IntoIterator<Item = usize>,
    several: Several,
) -> Table {
    let columns = columns(frame, several);
    let mut table = Table {
        caption: frame.about.to_owned(),
        keys: 1,
        columns: columns.iter().map(|column| titled(column)).collect(),
        rows: Vec::new(),
    };
    for row in shown {
        let cells = columns.iter().map(|column| match value(column, row) {
            Value::Missing if is_without_base(frame, column, row) => Value::NotApplicable,
            value => value,
        });
        table.rows.push(Row::new(cells.collect()));
    }
    table
}

/// The columns of `frame` that say something, as [`table`] has them.
pub(super) fn columns(frame: &Frame, several: Several) -> Vec<&Series> {
    let columns = frame.columns.iter();
    columns
        .filter(|column| !is_silent(column, several))
        .collect()
}

/// True for a column that says nothing: null everywhere, or the one file that the report is about.
fn is_silent(column: &Series, several: Several) -> bool {
    let first = column.values.get(0);
    let same = || (1..column.values.len()).all(|row| column.values.get(row) == first);
    let of_file = matches!(column.name, "run" | "rank" | "window") && !several.tells(column);
    (first == Entry::Null || of_file) && same()
}

fn heading(name: &str) -> String {
    name.replace('_', " ")
}

/// The column as people read it: its unit under its name.
fn titled(column: &Series) -> Column {
    let without = |unit: &str| heading(column.name.strip_suffix(unit).unwrap_or(column.name));
    let with_unit = |name, unit| Column {
        unit: Some(unit),
        ..Column::number(name)
    };
    match (column.unit, &column.values) {
        (Unit::None, Values::Text(_) | Values::Name(_) | Values::Bool(_)) => {
            Column::text(heading(column.name))
        }
        (Unit::None | Unit::Count | Unit::Number, _) => Column::number(heading(column.name)),
        (Unit::Ns | Unit::At, _) => Column::ms(without("_ns")),
        (Unit::Bytes, _) => with_unit(without("_bytes"), "MiB"),
        (Unit::Ratio, _) => Column::percent(heading(column.name)),
        (Unit::GbPerS, _) => with_unit(without("_gbps"), "GB/s"),
        (Unit::TflopPerS, _) => with_unit(without("_tflops"), "TFLOP/s"),
    }
}

/// True for the change of what was measured on both sides, from nothing: it has no size in percent.
fn is_without_base(frame: &Frame, column: &Series, row: usize) -> bool {
    let measured = |name: &str| {
        let column = frame.column(name);
        column.is_some_and(|column| column.values.get(row) != Entry::Null)
    };
    column.name == "change" && measured("base_ns") && measured("candidate_ns")
}

fn value(column: &Series, row: usize) -> Value {
    // Differences have a sign.
    let is_difference = column.name.starts_with("delta") || column.name.starts_with("change");
    match (column.values.get(row), column.unit) {
        (Entry::Int(number), Unit::Ns) if is_difference => Value::NsChange(Ns(number)),
        (Entry::Float(number), Unit::Ratio) if is_difference => Value::PercentChange(number),
        (Entry::Null, _) => Value::Missing,
        (Entry::Text(text), _) => Value::text(text),
        (Entry::Bool(flag), _) => Value::text(if flag { "yes" } else { "no" }),
        (Entry::Int(number), Unit::Ns | Unit::At) => Value::Ns(Ns(number)),
        (Entry::Int(number), Unit::Bytes) => Value::Bytes(number),
        (Entry::Int(number), Unit::Count) => {
            u64::try_from(number).map_or(Value::Id(number), Value::Count)
        }
        (Entry::Int(number), _) => Value::Id(number),
        (Entry::Float(number), Unit::Ratio) => Value::Percent(number),
        (Entry::Float(number), _) => Value::Number(number),
    }
}

/// The rows of `frame` with its own column names, for CSV.
pub fn frame_rows(frame: &Frame) -> Table {
    let rows = (0..frame.len()).map(|row| {
        let cells = frame.columns.iter().map(|column| match value(column, row) {
            Value::Text(_) if matches!(column.values.get(row), Entry::Bool(true)) => {
                Value::text("true")
            }
            Value::Text(_) if matches!(column.values.get(row), Entry::Bool(false)) => {
                Value::text("false")
            }
            value => value,
        });
        Row::new(cells.collect())
    });
    Table {
        caption: frame.about.to_owned(),
        keys: 0,
        columns: frame
            .columns
            .iter()
            .map(|column| Column::text(column.name))
            .collect(),
        rows: rows.collect(),
    }
}

/// A remark about the tables, in a line.
fn remark(remark: &Remark) -> Note {
    let time = remark.time_ns.filter(|time| *time > Ns::ZERO);
    let time = time.map_or_else(String::new, |time| format!(", {} ms", ms(time)));
    let rows = counted(remark.count, "row");
    Note::new(
        "note",
        format!("{} ({rows}{time}): {}", remark.code, remark.message),
    )
}

/// Files left out, and what is wrong or unusual, in a line each.
fn notes(inspection: &Inspection, verbose: bool) -> Vec<Note> {
    let mut notes = left_out(&inspection.skipped, verbose);
    notes.extend(inspection.remarks.iter().map(remark));
    let text = in_brief(&inspection.health, verbose);
    let text = text.unwrap_or_else(|| "nothing unusual".to_owned());
    notes.push(Note::new("health", text));
    notes
}
