//! An attribution as a frame of tidy rows: one a run, rank, file, device, step and bucket.
//!
//! Rows with `step` = `all` hold whole captures, the others single steps: select one kind before
//! adding up. Device rows have a `device`; host rows have none. Bucket `idle` completes the
//! timeline of a device: `timeline_ns` adds up to the window. Bucket `unattributed` does the same
//! for the host time of a step.

use super::frame::Frame;
use crate::attribute::{Attribution, Bucket, Cell, Phase, RankResult, Table, Timeline};
use crate::units::Ns;

/// `attribution` in rows.
pub fn attribution_frame(attribution: &Attribution) -> Frame {
    let mut rows = Vec::new();
    for file in &attribution.ranks {
        device_rows(attribution, file, &mut rows);
        host_rows(attribution, file, &mut rows);
    }
    let device = |of: fn(&Cell) -> Ns| move |row: &Row<'_>| row.cell.as_ref().map(of);
    let count = |of: fn(&Cell) -> u64| move |row: &Row<'_>| row.cell.as_ref().map(of);
    Frame::new(
        "attribution",
        "Time of one bucket (phase, idle, …) of one device or host, whole or in one step.",
    )
    .text("run", &rows, |row| Some(row.place.run))
    .id("rank", &rows, |row| row.place.file.rank)
    .text("input", &rows, |row| Some(row.place.input))
    .id("window", &rows, |row| {
        i64::try_from(row.place.file.window).ok()
    })
    .id("device", &rows, |row| row.place.device)
    .text("step", &rows, |row| {
        Some(row.place.step.map_or("all", |(name, _)| name))
    })
    .flag("partial", &rows, |row| {
        row.place.step.map(|(_, partial)| partial)
    })
    .text("bucket", &rows, |row| Some(row.bucket))
    .ns("sum_ns", &rows, device(|cell| cell.sum_ns))
    .ns("busy_ns", &rows, device(|cell| cell.busy_ns))
    .count("events", &rows, count(|cell| cell.events))
    .count("launches", &rows, count(|cell| cell.launches))
    .ns("compute_ns", &rows, device(|cell| cell.compute_ns))
    .ns(
        "communication_ns",
        &rows,
        device(|cell| cell.communication_ns),
    )
    .ns("memcpy_ns", &rows, device(|cell| cell.memcpy_ns))
    .ns("memset_ns", &rows, device(|cell| cell.memset_ns))
    .ns("timeline_ns", &rows, |row| row.timeline)
    .ns("host_wall_ns", &rows, |row| row.host_wall)
    .ns("host_self_ns", &rows, |row| row.host_self)
}

/// What a row is about, apart from its bucket.
#[derive(Clone, Copy)]
struct Place<'a> {
    run: &'a str,
    input: &'a str,
    file: &'a RankResult,
    device: Option<i64>,
    step: Option<(&'a str, bool)>,
}

struct Row<'a> {
    place: Place<'a>,
    bucket: &'static str,
    cell: Option<Cell>,
    timeline: Option<Ns>,
    host_wall: Option<Ns>,
    host_self: Option<Ns>,
}

impl<'a> Place<'a> {
    fn of(attribution: &'a Attribution, file: &'a RankResult) -> Self {
        Self {
            run: &attribution.runs[file.run].name,
            input: &attribution.inputs[file.input].path,
            file,
            device: None,
            step: None,
        }
    }

    fn row(self, bucket: &'static str) -> Row<'a> {
        Row {
            place: self,
            bucket,
            cell: None,
            timeline: None,
            host_wall: None,
            host_self: None,
        }
    }
}

fn device_rows<'a>(attribution: &'a Attribution, file: &'a RankResult, rows: &mut Vec<Row<'a>>) {
    for device in &file.devices {
        let place = Place {
            device: Some(device.device),
            ..Place::of(attribution, file)
        };
        buckets(place, &device.totals, &device.timeline, rows);
        for step in &device.steps {
            let place = Place {
                step: Some((&step.name, step.partial)),
                ..place
            };
            buckets(place, &step.totals, &step.timeline, rows);
        }
    }
}

fn buckets<'a>(place: Place<'a>, table: &Table, line: &Timeline, rows: &mut Vec<Row<'a>>) {
    rows.extend(Bucket::ALL.map(|bucket| Row {
        cell: Some(*table.bucket(bucket)),
        timeline: Some(line.phases[bucket.index()]),
        ..place.row(bucket.as_str())
    }));
    rows.push(Row {
        timeline: Some(line.idle_ns),
        ..place.row("idle")
    });
}

fn host_rows<'a>(attribution: &'a Attribution, file: &'a RankResult, rows: &mut Vec<Row<'a>>) {
    let place = Place::of(attribution, file);
    // Some traces have no host operators at all.
    let mut times = file.host.phases.values();
    let has_operators = times.any(|time| time.self_ns > Ns::ZERO);
    rows.extend(Phase::ALL.map(|phase| {
        let time = file.host.phases.get(&phase).copied().unwrap_or_default();
        Row {
            host_wall: time.wall_ns,
            host_self: has_operators.then_some(time.self_ns),
            ..place.row(phase.as_str())
        }
    }));
    for step in &file.host.steps {
        let place = Place {
            step: Some((&step.name, step.partial)),
            ..place
        };
        rows.extend(step.phases.iter().map(|(phase, time)| Row {
            host_wall: Some(time.wall_ns),
            ..place.row(phase.as_str())
        }));
        rows.push(Row {
            host_wall: Some(step.unattributed_ns),
            ..place.row("unattributed")
        });
    }
}
