//! Where rows of tables are: the file that one is about, and its times on the axis of a picture.

use super::super::document::{Column, Table, Value};
use super::super::inspection::{self, Several};
use crate::attribute::RunResult;
use crate::inspect::{Entry, Frame, Survey, Unit};
use crate::units::Ns;

/// The rows `rows` of `frame`, which must not be empty, with moments counted from the `origin` of each row.
///
/// A moment on the clock of a trace tells nobody anything: what is beside it on the page starts at zero. Where the
/// origin of a row is not known the moments stay as they are, and the table says so; else it says `told`.
pub(super) fn table(
    survey: &Survey,
    frame: &Frame,
    rows: &[usize],
    told: &str,
    origin: impl Fn(usize) -> Option<Ns>,
) -> Table {
    let several = Several::of(&survey.attribution);
    let mut table = inspection::table(frame, rows.iter().copied(), several);
    let columns = inspection::columns(frame, several);
    let moments: Vec<usize> = (0..columns.len())
        .filter(|place| columns[*place].unit == Unit::At)
        .collect();
    if moments.is_empty() {
        return table;
    }
    let origins: Option<Vec<Ns>> = rows.iter().map(|row| origin(*row)).collect();
    let Some(origins) = origins else {
        table.caption = format!("{} Moments are on the clock of their trace.", table.caption);
        return table;
    };
    table.caption = format!("{} {told}.", table.caption);
    for column in moments {
        if table.columns[column].name == "start" {
            table.columns[column] = Column::ms("at");
        }
        for (row, origin) in table.rows.iter_mut().zip(&origins) {
            if let Value::Ns(moment) = &mut row.cells[column] {
                *moment -= *origin;
            }
        }
    }
    table
}

/// The number in the column `name` of a row.
pub(super) fn number(frame: &Frame, name: &str, row: usize) -> Option<i64> {
    match frame.column(name)?.values.get(row) {
        Entry::Int(number) => Some(number),
        _ => None,
    }
}

/// The text in the column `name` of a row.
pub(super) fn text<'a>(frame: &'a Frame, name: &str, row: usize) -> Option<&'a str> {
    match frame.column(name)?.values.get(row) {
        Entry::Text(text) => Some(text),
        _ => None,
    }
}

/// The run that a row is about.
pub(super) fn run_of<'a>(survey: &'a Survey, frame: &Frame, row: usize) -> Option<&'a RunResult> {
    let name = text(frame, "run", row)?;
    let runs = &survey.attribution.runs;
    runs.iter().find(|run| run.name == name)
}

/// The one file that a row is about, by run, rank and window; nothing where there may be several.
pub(super) fn file_of(survey: &Survey, frame: &Frame, row: usize) -> Option<usize> {
    let (rank, window) = (number(frame, "rank", row), number(frame, "window", row));
    let files = &run_of(survey, frame, row)?.ranks;
    let mut fitting = files.iter().filter(|file| {
        let file = &survey.attribution.ranks[**file];
        file.rank == rank && window.is_none_or(|window| usize::try_from(window) == Ok(file.window))
    });
    let file = fitting.next()?;
    fitting.next().is_none().then_some(*file)
}
