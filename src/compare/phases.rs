//! Time by phase, on devices and on the host.

use std::collections::BTreeMap;

use super::observed::OUTSIDE;
use super::pace::{Basis, Pace, StepsByName};
use super::quantity::{Line, Quantity, Scale, judged, lines, means, with_line};
use super::saved::{SavedTable, SavedTimeline};
use super::side::Side;
use crate::attribute::{Bucket, Phase};
use crate::inspect::Frame;
use crate::units::Ns;

/// Device time of a side, by step.
#[derive(Debug, Default)]
pub(super) struct DeviceTimes {
    /// Sum of durations by bucket.
    pub(super) buckets: BTreeMap<&'static str, Quantity>,
    /// Time in which the device recomputes, each instant counted once.
    pub(super) recompute: Quantity,
    /// The same for the optimizer.
    pub(super) optimizer: Quantity,
    pub(super) exposed_communication: Quantity,
    pub(super) exposed_copies: Quantity,
    pub(super) exposed_fills: Quantity,
    pub(super) idle: Quantity,
    /// Everything: the steps as they are on the devices.
    pub(super) window: Quantity,
}

impl DeviceTimes {
    /// `None` when no file has device work.
    pub(super) fn of(side: &Side, pace: &Pace, basis: Basis) -> Option<Self> {
        if !side.has_device_work() {
            return None;
        }
        let mut times = Self::default();
        for (number, file) in side.saved.ranks.iter().enumerate() {
            for device in &file.devices {
                if basis == Basis::Captures {
                    if let Some(step) = pace.step(number, OUTSIDE) {
                        times.add(step, &device.totals, &device.timeline);
                    }
                    continue;
                }
                let mut steps = StepsByName::new(&device.steps);
                for (place, step) in (0u32..).zip(&file.host.steps) {
                    let found = steps.next(&step.name);
                    if let (Some(found), Some(step)) = (found, pace.step(number, place)) {
                        times.add(step, &found.totals, &found.timeline);
                    }
                }
            }
        }
        Some(times)
    }

    fn add(&mut self, step: u32, table: &SavedTable, timeline: &SavedTimeline) {
        for bucket in Bucket::ALL {
            let bucket = bucket.as_str();
            let time = table.get(bucket).copied().unwrap_or_default().sum_ns;
            self.buckets.entry(bucket).or_default().add(step, Ns(time));
        }
        let phase = |phase: Phase| timeline.phases.get(phase.as_str()).copied().unwrap_or(0);
        for (quantity, time) in [
            (&mut self.recompute, phase(Phase::Recompute)),
            (&mut self.optimizer, phase(Phase::Optimizer)),
            (
                &mut self.exposed_communication,
                timeline.exposed_communication_ns,
            ),
            (&mut self.exposed_copies, timeline.exposed_memcpy_ns),
            (&mut self.exposed_fills, timeline.exposed_memset_ns),
            (&mut self.idle, timeline.idle_ns),
            (&mut self.window, timeline.window_ns),
        ] {
            quantity.add(step, Ns(time));
        }
    }
}

/// Self time of host operators of a side, by phase and step; `None` when that is not known by step.
pub(super) fn host_times(side: &Side, pace: &Pace) -> Option<[Quantity; Phase::ALL.len()]> {
    let observed = side.observed.as_ref()?;
    let mut times: [Quantity; Phase::ALL.len()] = Default::default();
    let mut measured = false;
    for (number, file) in observed.iter().enumerate() {
        for (place, phases) in &file.host_phases {
            measured = true;
            if let Some(step) = pace.step(number, *place) {
                for (quantity, time) in times.iter_mut().zip(phases) {
                    quantity.add(step, *time);
                }
            }
        }
    }
    measured.then_some(times)
}

/// The same over whole captures, divided by their steps: all that a saved attribution holds.
pub(super) fn host_means(side: &Side) -> Vec<Option<Ns>> {
    let files = &side.saved.ranks;
    let steps: usize = files.iter().map(|file| file.host.steps.len()).sum();
    let count = if steps == 0 { files.len() } else { steps };
    let measured = files.iter().any(|file| !file.host.phases.is_empty());
    let totals = Phase::ALL.map(|phase| {
        let of_file = files
            .iter()
            .filter_map(|file| file.host.phases.get(phase.as_str()));
        measured.then(|| of_file.map(|time| Ns(time.self_ns)).sum())
    });
    means(&totals, count as u64)
}

/// One row: a phase on devices or on the host.
struct Row {
    place: &'static str,
    phase: &'static str,
    line: Line,
}

/// Device and host time of both sides by phase.
pub(super) fn phases_frame(
    sides: [&Side; 2],
    devices: &[Option<DeviceTimes>; 2],
    scale: Scale<'_>,
) -> Frame {
    let mut rows = Vec::new();
    if devices.iter().any(Option::is_some) {
        let of = |side: usize, bucket| devices[side].as_ref().map(|times| &times.buckets[bucket]);
        let pairs = Bucket::ALL.map(|bucket| {
            let bucket = bucket.as_str();
            [of(0, bucket), of(1, bucket)]
        });
        let names = Bucket::ALL.map(Bucket::as_str);
        push(&mut rows, "device", &names, &pairs, scale);
    }
    let [ours, theirs] = [0, 1].map(|side| host_times(sides[side], &scale.paces[side]));
    let names = Phase::ALL.map(Phase::as_str);
    if sides.iter().all(|side| side.observed.is_some()) {
        let of = |times: &'_ Option<[Quantity; 5]>, phase: usize| -> Option<Quantity> {
            times.as_ref().map(|times| times[phase].clone())
        };
        let owned: Vec<[Option<Quantity>; 2]> = (0..names.len())
            .map(|phase| [of(&ours, phase), of(&theirs, phase)])
            .collect();
        let pairs: Vec<[Option<&Quantity>; 2]> = owned
            .iter()
            .map(|pair| [pair[0].as_ref(), pair[1].as_ref()])
            .collect();
        push(&mut rows, "host", &names, &pairs, scale);
    } else {
        let [ours, theirs] = sides.map(host_means);
        for ((phase, base), candidate) in names.into_iter().zip(ours).zip(theirs) {
            let line = Line {
                base,
                candidate,
                judgement: None,
            };
            rows.push(Row {
                place: "host",
                phase,
                line,
            });
        }
    }
    rows.retain(|row| row.line.base.is_some() || row.line.candidate.is_some());
    let frame = Frame::new(
        "phases",
        "Device time (sum of durations) and host time (self time of operators) of the mean step, by phase.",
    )
    .text("place", &rows, |row| Some(row.place))
    .text("phase", &rows, |row| Some(row.phase));
    with_line(frame, &rows, |row| &row.line)
}

/// Adds a row a phase and one for all.
fn push(
    rows: &mut Vec<Row>,
    place: &'static str,
    names: &[&'static str],
    pairs: &[[Option<&Quantity>; 2]],
    scale: Scale<'_>,
) {
    let lines = lines(pairs, scale);
    let sum = |of: fn(&Line) -> Option<Ns>| {
        let mut times = lines.iter().filter_map(of).peekable();
        times.peek()?;
        Some(times.sum())
    };
    let whole = |side: usize| -> Option<Quantity> {
        let mut sum = None;
        for quantity in pairs.iter().filter_map(|pair| pair[side]) {
            sum.get_or_insert_with(Quantity::default).append(quantity);
        }
        sum
    };
    let (base, candidate) = (whole(0), whole(1));
    let total = Line {
        base: sum(|line| line.base),
        candidate: sum(|line| line.candidate),
        judgement: base
            .zip(candidate)
            .map(|(base, candidate)| judged(&base, &candidate, scale)),
    };
    let row = |(phase, line): (&&'static str, Line)| Row { place, phase, line };
    rows.extend(names.iter().zip(lines).map(row));
    rows.push(Row {
        place,
        phase: "total",
        line: total,
    });
}
