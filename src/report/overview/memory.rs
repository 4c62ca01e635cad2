//! Memory by phase, and over time.

use super::super::attribution::label;
use super::super::chart::{Chart, LevelLine, Levels, Paint, Picture};
use super::super::document::{Block, Section, Table};
use super::super::number::mib;
use super::{MOST_ROWS, MOST_ROWS_OF_STEPS, first_rows, first_told, place};
use crate::inspect::{Frame, LevelCurve, Survey, Topic};
use crate::units::Ns;

/// Devices that have a picture.
const MOST_CURVES: usize = 16;

/// Peaks by phase, who holds the memory then, levels over time; nothing where memory was not recorded.
pub(super) fn section(survey: &Survey) -> Option<Section> {
    let mut blocks: Vec<Block> = charts(survey).into_iter().map(Block::Chart).collect();
    for name in ["memory", "at_peak", "memory_steps"] {
        let frame = survey.frame(Topic::Memory, name);
        let frame = frame.filter(|frame| !frame.is_empty());
        blocks.extend(frame.map(|frame| Block::Table(table(survey, frame))));
    }
    (!blocks.is_empty()).then(|| Section {
        title: Some("Memory by phase".to_owned()),
        blocks,
    })
}

/// A table of memory, with its moments as the pictures have them.
fn table(survey: &Survey, frame: &Frame) -> Table {
    let files = survey.attribution.ranks.len();
    let most = if files > 1 {
        MOST_ROWS_OF_STEPS
    } else {
        MOST_ROWS
    };
    let (rows, each) = first_rows(frame, files, most);
    let mut table = place::table(
        survey,
        frame,
        &rows,
        "Times are counted from the first change of the memory of the device",
        |row| {
            let file = place::file_of(survey, frame, row)?;
            let device = place::text(frame, "device", row)?;
            let device = LevelCurve::device_of(device, place::text(frame, "process", row));
            let mut curves = survey.files[file].memory.iter();
            Some(curves.find(|curve| curve.device == device)?.start)
        },
    );
    if rows.len() < frame.len() {
        table.caption = format!("{} {}", table.caption, first_told(each));
    }
    table
}

/// One picture a device.
fn charts(survey: &Survey) -> Vec<Chart> {
    let attribution = &survey.attribution;
    let curves: Vec<(usize, &LevelCurve)> = survey
        .files
        .iter()
        .enumerate()
        .flat_map(|(file, seen)| seen.memory.iter().map(move |curve| (file, curve)))
        .filter(|(_, curve)| !curve.allocated.is_empty())
        .take(MOST_CURVES)
        .collect();
    let several = attribution.ranks.len() > 1;
    curves
        .iter()
        .enumerate()
        .map(|(number, (file, curve))| {
            let rank = &attribution.ranks[*file];
            let of = match (several, attribution.runs.len()) {
                (false, _) => curve.device.clone(),
                (true, 1) => format!("{}, {}", label::rank(attribution, rank), curve.device),
                (true, _) => format!(
                    "{}, {}, {}",
                    attribution.runs[rank.run].name,
                    label::rank(attribution, rank),
                    curve.device
                ),
            };
            let name = match curves.len() {
                1 => "memory".to_owned(),
                _ => format!("memory-{number}"),
            };
            chart(name, &of, curve)
        })
        .filter(
            |chart| !matches!(&chart.picture, Picture::Levels(levels) if levels.lines.is_empty()),
        )
        .collect()
}

fn chart(name: String, of: &str, curve: &LevelCurve) -> Chart {
    let start = curve.start;
    let times = curve.allocated.iter().chain(&curve.reserved);
    let end = times.map(|(at, _)| *at).max().unwrap_or(start);
    let line = |points: &[(Ns, i64)], paint: Paint| {
        let peak = points.iter().map(|(_, bytes)| *bytes).max()?;
        // The host holds nothing from a driver.
        if peak <= 0 {
            return None;
        }
        Some(LevelLine {
            label: paint.name().to_owned(),
            paint,
            points: points
                .iter()
                .map(|(at, bytes)| (*at - start, *bytes))
                .collect(),
            peak,
        })
    };
    let lines: Vec<LevelLine> = [
        line(&curve.reserved, Paint::Reserved),
        line(&curve.allocated, Paint::Allocated),
    ]
    .into_iter()
    .flatten()
    .collect();
    let peaks: Vec<String> = lines
        .iter()
        .map(|line| format!("{} peaks at {} MiB", line.label, mib(line.peak)))
        .collect();
    Chart {
        name,
        caption: format!("Memory of {of} over time"),
        about: format!("Levels as PyTorch recorded them: {}.", peaks.join(", ")),
        picture: Picture::Levels(Levels {
            lines,
            end: end - start,
        }),
    }
}
