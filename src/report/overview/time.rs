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
/// Steps that a lane is marked with.
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
        let detail = if merged {
            "; where many pieces of work fall together, their shares are shown, not their order"
        } else {
            ""
        };
        let about = format!(
            "{} over {} ms: above by class of work, below by phase; empty where the device idles{detail}.",
            counted(timeline.lanes.len() as u64, "device"),
            ms(timeline.end),
        );
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

/// The devices of `run` on one axis, and how many there are beyond those shown.
///
/// Ranks share the axis by their clocks. Where that would leave it mostly empty (windows of a profiler far
/// apart, clocks that have nothing to do with each other), each device starts at zero.
fn timeline(survey: &Survey, run: &RunResult) -> Option<(Timeline, usize)> {
    let attribution = &survey.attribution;
    let lines: Vec<(usize, &DeviceLine)> = run
        .ranks
        .iter()
        .flat_map(|file| {
            survey.files[*file]
                .devices
                .iter()
                .map(move |line| (*file, line))
        })
        .filter(|(_, line)| !line.window.is_empty())
        .collect();
    let at = |file: usize, time: Ns| i128::from(survey.files[file].base.0) + i128::from(time.0);
    let starts = lines
        .iter()
        .map(|(file, line)| at(*file, line.window.start));
    let first = starts.min()?;
    let ends = lines.iter().map(|(file, line)| at(*file, line.window.end));
    let whole = ends.max()? - first;
    let longest = lines.iter().map(|(_, line)| line.window.len()).max()?;
    let apart = whole > i128::from(longest.0).saturating_mul(4);
    let shown = lines.len().min(MOST_LANES);
    let lanes: Vec<TimelineLane> = lines[..shown]
        .iter()
        .map(|(file, line)| {
            let origin = if apart {
                line.window.start
            } else {
                let origin = first - i128::from(survey.files[*file].base.0);
                Ns(i64::try_from(origin).unwrap_or(line.window.start.0))
            };
            lane(line, origin, label_of(attribution, *file, line))
        })
        .collect();
    let end = lanes
        .iter()
        .filter_map(|lane| lane.bins.last())
        .map(|bin| bin.span.end)
        .max()?;
    Some((Timeline { lanes, end }, lines.len() - shown))
}

fn label_of(attribution: &Attribution, file: usize, line: &DeviceLine) -> String {
    let rank = &attribution.ranks[file];
    let device = format!("device {}", line.device);
    match (rank.rank, attribution.ranks.len()) {
        (None, 1) => device,
        _ => format!("{}, {device}", label::rank(attribution, rank)),
    }
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
            .take(MOST_STEPS)
            .map(|(name, span)| (name.clone(), moved(*span)))
            .collect(),
    }
}
