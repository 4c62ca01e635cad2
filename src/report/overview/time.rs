//! What devices did, over time.

use super::super::attribution::label;
use super::super::chart::{Chart, Picture, Timeline, TimelineBin, TimelineLane};
use super::super::document::{Block, Section};
use super::super::number::{counted, ms};
use super::run_title;
use crate::attribute::{Attribution, RunResult};
use crate::inspect::{DeviceLine, Survey};
use crate::units::{Ns, Span};

/// Lanes that one picture shows; a page of hundreds helps nobody.
const MOST_LANES: usize = 64;
/// Runs that have a picture each.
const MOST_RUNS: usize = 6;
/// Steps that a lane is marked with; of more, every second, third, …
const MOST_STEPS: usize = 500;

/// A picture a run; nothing without device work.
pub(super) fn section(survey: &Survey) -> Option<Section> {
    let attribution = &survey.attribution;
    let mut blocks = Vec::new();
    for (number, run) in attribution.runs.iter().take(MOST_RUNS).enumerate() {
        let Some((timeline, hidden)) = timeline(survey, run) else {
            continue;
        };
        let name = match attribution.runs.len() {
            1 => "timeline".to_owned(),
            _ => format!("timeline-{number}"),
        };
        let merged = timeline.lanes.iter().any(|lane| lane.merged);
        let mut about = format!(
            "{} over {} ms: above by class of work, below by phase; empty where the device idles",
            counted(timeline.lanes.len() as u64, "device"),
            ms(timeline.end),
        );
        if merged {
            about += "; where many pieces of work fall together, their shares are shown, not their order";
        }
        if lines(survey, run).any(|(_, line)| marked(line) > 1) {
            about += "; of the many steps, some are marked";
        }
        about.push('.');
        blocks.push(Block::Chart(Chart {
            name,
            caption: run_title(attribution, run, "Device timeline"),
            about,
            picture: Picture::Timeline(timeline),
        }));
        if hidden > 0 {
            blocks.push(Block::Paragraph(format!(
                "{} more are not drawn.",
                counted(hidden as u64, "device")
            )));
        }
    }
    (!blocks.is_empty()).then(|| Section {
        title: Some("Devices over time".to_owned()),
        blocks,
    })
}

/// Where the axis of a run starts.
///
/// Ranks share the axis by their clocks. Where that would leave it mostly empty (windows of a profiler far
/// apart, clocks that have nothing to do with each other), each device starts at zero.
pub(super) struct Axis {
    /// The first work of all devices, since the epoch where the traces say so.
    first: i128,
    apart: bool,
}

impl Axis {
    /// The axis of `run`; none without device work.
    pub(super) fn of(survey: &Survey, run: &RunResult) -> Option<Self> {
        let (mut first, mut last, mut longest) = (i128::MAX, i128::MIN, 0);
        for (file, line) in lines(survey, run) {
            let base = i128::from(survey.files[file].base.0);
            first = first.min(base + i128::from(line.window.start.0));
            last = last.max(base + i128::from(line.window.end.0));
            longest = longest.max(i128::from(line.window.len().0));
        }
        (first <= last).then(|| Self {
            first,
            apart: last - first > longest * 4,
        })
    }

    /// The time on the clock of `file` at which the axis starts, for a device of it.
    pub(super) fn origin(&self, survey: &Survey, file: usize, line: &DeviceLine) -> Ns {
        if self.apart {
            return line.window.start;
        }
        let origin = self.first - i128::from(survey.files[file].base.0);
        Ns(i64::try_from(origin).unwrap_or(line.window.start.0))
    }
}

/// The devices of `run` that did something, with their files.
pub(super) fn lines<'a>(
    survey: &'a Survey,
    run: &'a RunResult,
) -> impl Iterator<Item = (usize, &'a DeviceLine)> {
    let devices = run.ranks.iter().flat_map(|file| {
        let devices = survey.files[*file].devices.iter();
        devices.map(move |line| (*file, line))
    });
    devices.filter(|(_, line)| !line.window.is_empty())
}

/// The devices of `run` on one axis, and how many there are beyond those shown.
fn timeline(survey: &Survey, run: &RunResult) -> Option<(Timeline, usize)> {
    let axis = Axis::of(survey, run)?;
    let lanes: Vec<TimelineLane> = lines(survey, run)
        .take(MOST_LANES)
        .map(|(file, line)| {
            let origin = axis.origin(survey, file, line);
            lane(line, origin, label_of(&survey.attribution, file, line))
        })
        .collect();
    let end = lanes
        .iter()
        .filter_map(|lane| lane.bins.last())
        .map(|bin| bin.span.end)
        .max()?;
    let hidden = lines(survey, run).count() - lanes.len();
    Some((Timeline { lanes, end }, hidden))
}

fn label_of(attribution: &Attribution, file: usize, line: &DeviceLine) -> String {
    let rank = &attribution.ranks[file];
    let device = format!("device {}", line.device);
    match (rank.rank, attribution.ranks.len()) {
        (None, 1) => device,
        _ => format!("{}, {device}", label::rank(attribution, rank)),
    }
}

/// Every how many-th step of `line` is marked.
fn marked(line: &DeviceLine) -> usize {
    line.steps.len().div_ceil(MOST_STEPS).max(1)
}

fn lane(line: &DeviceLine, origin: Ns, label: String) -> TimelineLane {
    let moved = |span: Span| Span::new(span.start - origin, span.end - origin);
    TimelineLane {
        label,
        bins: line
            .bins
            .iter()
            .map(|bin| TimelineBin {
                span: moved(bin.span),
                classes: bin.classes,
                buckets: bin.buckets,
            })
            .collect(),
        merged: line.merged,
        steps: line
            .steps
            .iter()
            .step_by(marked(line))
            .map(|(name, span)| (name.clone(), moved(*span)))
            .collect(),
    }
}
