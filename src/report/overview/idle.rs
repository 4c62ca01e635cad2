//! Why devices idle, with the gaps at the places that they have in the picture over time.

use super::super::attribution::label;
use super::super::attribution::timeline::Windows;
use super::super::document::{Block, Column, Row, Section, Table, Value};
use super::place::{self, number};
use super::time::{Axis, lines};
use super::topic;
use crate::attribute::RunResult;
use crate::inspect::{Entry, Frame, Survey, Topic};
use crate::units::Ns;

/// Gaps that are shown, of all devices together.
const MOST_GAPS: usize = 100;

/// Causes of idle time and the longest gaps.
pub(super) fn section(survey: &Survey) -> Option<Section> {
    let mut section = topic(survey, Topic::Idle, "Idle", &["idle_causes"])?;
    section.blocks.extend(in_steps(survey).map(Block::Table));
    let frame = survey.frame(Topic::Idle, "gaps");
    let frame = frame.filter(|frame| !frame.is_empty());
    section
        .blocks
        .extend(frame.map(|frame| Block::Table(gaps(survey, frame))));
    Some(section)
}

/// The causes of idle time in steps: their windows begin and end without work, which captures do not.
fn in_steps(survey: &Survey) -> Option<Table> {
    let attribution = &survey.attribution;
    let several = attribution.runs.len() > 1;
    let with_steps = |run: &&RunResult| Windows::of_steps(attribution, run).is_some();
    let mut rows = Vec::new();
    for run in attribution.runs.iter().filter(with_steps) {
        let causes = causes(survey, run);
        let all: Ns = causes.iter().map(|(_, time)| *time).sum();
        for (cause, time) in causes {
            let mut cells = Vec::new();
            cells.extend(several.then(|| Value::text(label::run(&attribution.runs, run))));
            cells.extend([Value::text(cause), Value::Ns(time), Value::share(time, all)]);
            rows.push(Row::new(cells));
        }
    }
    let mut columns: Vec<Column> = Vec::new();
    columns.extend(several.then(|| Column::text("run")));
    columns.push(Column::text("cause"));
    let keys = columns.len();
    columns.extend([Column::ms("idle"), Column::percent("share")]);
    (!rows.is_empty()).then(|| Table {
        caption: "Why devices idle in the steps that count, all together.".to_owned(),
        keys,
        columns,
        rows,
    })
}

/// The causes of idle time of `run`, the largest first: in the steps that step times are about, else in captures.
pub(super) fn causes<'a>(survey: &'a Survey, run: &RunResult) -> Vec<(&'a str, Ns)> {
    let of_steps = Windows::of_steps(&survey.attribution, run).is_some();
    let frame = if of_steps {
        survey.step_idle.as_ref()
    } else {
        survey.frame(Topic::Idle, "idle_causes")
    };
    let Some(frame) = frame else {
        return Vec::new();
    };
    let column = |name| frame.column(name);
    let [Some(runs), Some(causes), Some(idle)] = ["run", "cause", "idle_ns"].map(column) else {
        return Vec::new();
    };
    let partial = column("partial");
    let mut sums: Vec<(&str, Ns)> = Vec::new();
    for row in 0..frame.len() {
        let (Entry::Text(of), Entry::Text(cause), Entry::Int(time)) = (
            runs.values.get(row),
            causes.values.get(row),
            idle.values.get(row),
        ) else {
            continue;
        };
        let is_cut = partial.is_some_and(|it| matches!(it.values.get(row), Entry::Bool(true)));
        if of != run.name || run.step_time.is_some_and(|times| !times.counts(is_cut)) {
            continue;
        }
        match sums.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += Ns(time),
            None => sums.push((cause, Ns(time))),
        }
    }
    sums.retain(|(_, time)| *time > Ns::ZERO);
    sums.sort_by_key(|(cause, time)| (std::cmp::Reverse(*time), *cause));
    sums
}

/// The longest gaps of all devices, the longest first.
fn gaps(survey: &Survey, frame: &Frame) -> Table {
    let mut rows: Vec<usize> = (0..frame.len()).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(number(frame, "gap_ns", *row)));
    rows.truncate(MOST_GAPS);
    place::table(
        survey,
        frame,
        &rows,
        "They are at the time that they have in the picture of devices over time",
        |row| origin(survey, frame, row),
    )
}

/// Where the axis of the run of a gap starts, on the clock of its file; nothing where it may be of several files.
fn origin(survey: &Survey, frame: &Frame, row: usize) -> Option<Ns> {
    let run = place::run_of(survey, frame, row)?;
    let file = place::file_of(survey, frame, row)?;
    let device = number(frame, "device", row)?;
    let (_, line) = lines(survey, run).find(|(of, line)| (*of, line.device) == (file, device))?;
    Some(Axis::of(survey, run)?.origin(survey, file, line))
}
