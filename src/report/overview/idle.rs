//! Why devices idle, with the gaps at the places that they have in the picture over time.

use super::super::document::{Block, Column, Section, Table, Value};
use super::super::inspection;
use super::time::{Axis, lines};
use super::topic;
use crate::attribute::Attribution;
use crate::inspect::{Entry, Frame, Survey, Topic};
use crate::units::Ns;

/// Gaps that are shown, of all devices together.
const MOST_GAPS: usize = 100;

/// Causes of idle time and the longest gaps.
pub(super) fn section(survey: &Survey) -> Option<Section> {
    let mut section = topic(survey, Topic::Idle, "Idle", &["idle_causes"])?;
    let frame = survey.frame(Topic::Idle, "gaps");
    let frame = frame.filter(|frame| !frame.is_empty());
    section
        .blocks
        .extend(frame.map(|frame| Block::Table(gaps(survey, frame))));
    Some(section)
}

/// The longest gaps of all devices, the longest first.
fn gaps(survey: &Survey, frame: &Frame) -> Table {
    let mut rows: Vec<usize> = (0..frame.len()).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(number(frame, "gap_ns", *row)));
    rows.truncate(MOST_GAPS);
    let mut table = inspection::table(frame, rows.iter().copied());
    let start = table.columns.iter().position(|it| it.name == "start");
    let places: Option<Vec<Ns>> = rows.iter().map(|row| place(survey, frame, *row)).collect();
    if let Some((start, places)) = start.zip(places) {
        table.caption = format!(
            "{} They are at the time that they have in the picture of devices over time.",
            table.caption
        );
        table.columns[start] = Column::ms("at");
        for (row, place) in table.rows.iter_mut().zip(places) {
            row.cells[start] = Value::Ns(place);
        }
    }
    table
}

fn number(frame: &Frame, name: &str, row: usize) -> Option<i64> {
    match frame.column(name)?.values.get(row) {
        Entry::Int(number) => Some(number),
        _ => None,
    }
}

/// Where a gap starts on the axis of its run; nothing where it may be of several files.
fn place(survey: &Survey, frame: &Frame, row: usize) -> Option<Ns> {
    let number = |name: &str| number(frame, name, row);
    let run = match frame.column("run")?.values.get(row) {
        Entry::Text(name) => survey
            .attribution
            .runs
            .iter()
            .find(|run| run.name == name)?,
        _ => return None,
    };
    let of = (number("rank"), number("window"));
    let file = only_file(&survey.attribution, &run.ranks, of)?;
    let device = number("device")?;
    let (_, line) = lines(survey, run).find(|(of, line)| (*of, line.device) == (file, device))?;
    Some(Ns(number("start_ns")?) - Axis::of(survey, run)?.origin(survey, file, line))
}

/// The one file of a rank and window.
fn only_file(
    attribution: &Attribution,
    files: &[usize],
    (rank, window): (Option<i64>, Option<i64>),
) -> Option<usize> {
    let mut fitting = files.iter().filter(|file| {
        let file = &attribution.ranks[**file];
        file.rank == rank && window.is_none_or(|window| usize::try_from(window) == Ok(file.window))
    });
    let file = fitting.next()?;
    fitting.next().is_none().then_some(*file)
}
