//! Why devices idle, with the gaps at the places that they have in the picture over time.

use super::super::document::{Block, Section, Table};
use super::place::{self, number};
use super::time::{Axis, lines};
use super::topic;
use crate::inspect::{Frame, Survey, Topic};
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
