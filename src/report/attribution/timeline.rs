//! Device timelines, added over devices, and their table.

use std::collections::BTreeSet;

use super::super::document::{Column, Row, Table, Value};
use super::super::number::counted;
use crate::attribute::{
    Attribution, Bucket, DeviceResult, DeviceStep, RankResult, RunResult, StepTime, Timeline,
};
use crate::units::Ns;

/// One of the times of a timeline.
type TimeOf = fn(&Timeline) -> Ns;

/// Windows of devices, added up.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Windows {
    /// How many.
    pub(in super::super) count: u64,
    /// Their times, added; start and end mean nothing.
    pub(in super::super) sum: Timeline,
}

impl Windows {
    /// The whole capture of every device of `run`; `None` without device work.
    pub(in super::super) fn of_captures(
        attribution: &Attribution,
        run: &RunResult,
    ) -> Option<Self> {
        Self::added(devices(attribution, run).map(|device| &device.timeline))
    }

    /// The steps of every device of `run` that step times are about.
    pub(in super::super) fn of_steps(attribution: &Attribution, run: &RunResult) -> Option<Self> {
        Self::added(counting_steps(attribution, run).map(|step| &step.timeline))
    }

    /// Median, shortest and longest of the steps of every device of `run`.
    pub(in super::super) fn spread_of_steps(
        attribution: &Attribution,
        run: &RunResult,
    ) -> Option<(Ns, Ns, Ns)> {
        let steps = counting_steps(attribution, run);
        StepTime::spread(steps.map(|step| step.timeline.window_ns).collect())
    }

    fn added<'a>(timelines: impl Iterator<Item = &'a Timeline>) -> Option<Self> {
        let mut windows = Self::default();
        for timeline in timelines {
            windows.add(timeline);
        }
        (windows.sum.window_ns > Ns::ZERO).then_some(windows)
    }

    fn add(&mut self, other: &Timeline) {
        let sum = &mut self.sum;
        self.count += 1;
        sum.window_ns += other.window_ns;
        sum.compute_ns += other.compute_ns;
        sum.communication_ns += other.communication_ns;
        sum.overlap_ns += other.overlap_ns;
        sum.exposed_communication_ns += other.exposed_communication_ns;
        sum.exposed_memcpy_ns += other.exposed_memcpy_ns;
        sum.exposed_memset_ns += other.exposed_memset_ns;
        sum.idle_ns += other.idle_ns;
        for (ours, theirs) in sum.phases.iter_mut().zip(other.phases) {
            *ours += theirs;
        }
    }

    /// Time in which work of `bucket` holds the device.
    pub(in super::super) fn phase(&self, bucket: Bucket) -> Ns {
        self.sum.phases[bucket.index()]
    }
}

/// The steps of every device of `run` that step times are about.
pub(in super::super) fn counting_steps<'a>(
    attribution: &'a Attribution,
    run: &'a RunResult,
) -> impl Iterator<Item = &'a DeviceStep> {
    let times = run.step_time;
    devices(attribution, run)
        .flat_map(|device| &device.steps)
        .filter(move |step| times.is_some_and(|times| times.counts(step.partial)))
}

/// How many devices with work `run` has: one that is in several windows of its rank counts once.
pub(in super::super) fn device_count(attribution: &Attribution, run: &RunResult) -> u64 {
    let ranks = RankResult::by_rank(&attribution.ranks, &run.ranks);
    let devices = ranks.map(|windows| {
        let devices = windows
            .iter()
            .flat_map(|file| &attribution.ranks[*file].devices);
        let distinct: BTreeSet<i64> = devices.map(|device| device.device).collect();
        distinct.len() as u64
    });
    devices.sum()
}

/// Every device with work in `run`, once for every window of its rank.
pub(in super::super) fn devices<'a>(
    attribution: &'a Attribution,
    run: &'a RunResult,
) -> impl Iterator<Item = &'a DeviceResult> {
    run.ranks
        .iter()
        .flat_map(|rank| &attribution.ranks[*rank].devices)
}

/// What devices did, instant by instant: in their steps and over the whole capture.
pub(in super::super) fn table(attribution: &Attribution, run: &RunResult) -> Option<Table> {
    let capture = Windows::of_captures(attribution, run)?;
    let steps = Windows::of_steps(attribution, run);
    let mut columns = vec![Column::text("")];
    let mut windows = Vec::new();
    if let Some(steps) = steps {
        let several = device_count(attribution, run) > 1;
        let noun = if several { "device step" } else { "step" };
        columns.extend([Column::ms(counted(steps.count, noun)), Column::percent("")]);
        windows.push(steps);
    }
    let name = match devices(attribution, run).count() as u64 {
        1 => "capture".to_owned(),
        several => counted(several, "capture"),
    };
    columns.extend([Column::ms(name), Column::percent("")]);
    windows.push(capture);
    let parts: [(&str, TimeOf, bool); 5] = [
        ("compute", |line| line.compute_ns, true),
        (
            "exposed communication",
            |line| line.exposed_communication_ns,
            false,
        ),
        ("exposed copies", |line| line.exposed_memcpy_ns, false),
        ("exposed fills", |line| line.exposed_memset_ns, false),
        ("idle", |line| line.idle_ns, true),
    ];
    let row = |name: &str, time: TimeOf| {
        let mut cells = vec![Value::text(name)];
        for window in &windows {
            let time = time(&window.sum);
            cells.extend([Value::Ns(time), Value::share(time, window.sum.window_ns)]);
        }
        cells
    };
    let mut rows: Vec<Row> = parts
        .into_iter()
        .filter(|(_, time, always)| {
            *always || windows.iter().any(|window| time(&window.sum) != Ns::ZERO)
        })
        .map(|(name, time, _)| Row::new(row(name, time)))
        .collect();
    rows.push(Row::total(row("window", |line| line.window_ns)));
    Some(Table {
        caption: "Device timeline, each instant counted once".to_owned(),
        keys: 1,
        columns,
        rows,
    })
}
