//! Device work: kernels, copies and fills, by device and lane, with impossible overlaps repaired.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rayon::prelude::*;
use regex::Regex;

use super::class::DeviceClass;
use super::host::span_of;
use super::phase::Phase;
use super::table::{Bucket, OtherKind};
use crate::health::{Health, HealthCode};
use crate::model::{ActivityType, EventId, Ident, Ph, Trace};
use crate::units::{Ns, Span};

/// No step, no launch.
pub(crate) const NONE: u32 = u32::MAX;

/// One piece of device work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) event: EventId,
    /// Index of the device.
    pub(crate) device: i64,
    pub(crate) stream: Ident,
    /// Number of its lane, in order of lanes.
    pub(crate) lane: u32,
    /// After repair.
    pub(crate) span: Span,
    pub(crate) class: DeviceClass,
    pub(crate) bucket: Bucket,
    pub(crate) other: OtherKind,
    /// Step of its launch, or [`NONE`].
    pub(crate) step: u32,
    /// Its launch, or [`NONE`].
    pub(crate) launch: u32,
    /// The first of its launch on its device.
    pub(crate) first_of_launch: bool,
}

/// A stream of a device as one writer numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Lane {
    device: i64,
    pid: Ident,
    stream: Ident,
}

/// The lanes of a trace, numbered as they are met.
#[derive(Default)]
struct Lanes {
    all: Vec<Lane>,
    /// Seeded by chance: streams may be numbered to collide.
    numbers: HashMap<Lane, u32, RandomState>,
    last: Option<(Lane, u32)>,
}

impl Lanes {
    fn number(&mut self, lane: Lane) -> u32 {
        if let Some((last, number)) = self.last
            && last == lane
        {
            return number;
        }
        let number = *self.numbers.entry(lane).or_insert_with(|| {
            self.all.push(lane);
            u32::try_from(self.all.len() - 1).expect("no more lanes than events")
        });
        self.last = Some((lane, number));
        number
    }

    /// By number: the place in order.
    fn places(&self) -> Vec<u32> {
        let mut order: Vec<(Lane, u32)> = self.all.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        for (place, (_, number)) in (0..).zip(order) {
            places[number as usize] = place;
        }
        places
    }
}

/// All device work of a trace, by lane and start; overlaps on lanes counted and repaired.
pub(crate) fn collect(trace: &Trace, comm: &[Regex], health: &mut Health) -> Vec<Work> {
    let events = &trace.events;
    let mut classes: Vec<Option<DeviceClass>> = vec![None; trace.strings.len()];
    let mut work: Vec<Work> = Vec::with_capacity(events.device_args.len());
    let mut lanes = Lanes::default();
    let mut kernels = 0;
    let mut lengthless = Vec::new();
    for event in events.ids() {
        let activity = events.activity(event);
        if !activity.is_device_work() || !events.is_complete(event) {
            continue;
        }
        let Some(args) = events.device_args(event) else {
            continue;
        };
        let name = events.name(event);
        let class_of = || DeviceClass::of(activity, trace.strings.get(name), comm);
        let class = if matches!(activity, ActivityType::Kernel | ActivityType::MtiaCcp) {
            *classes[name.index()].get_or_insert_with(class_of)
        } else {
            class_of()
        };
        let track = trace.tracks.get(events.track(event));
        let device = args.device.unwrap_or(match track.pid {
            Ident::Int(pid) => pid,
            Ident::Missing | Ident::Text(_) => 0,
        });
        let stream = args.stream.map_or(track.tid, Ident::Int);
        let span = span_of(trace, event);
        if activity == ActivityType::Kernel {
            kernels += 1;
            // Kineto writes a length of 0 where the end comes before the start.
            if span.len() == Ns::ZERO {
                lengthless.push(event);
            }
        }
        work.push(Work {
            event,
            device,
            stream,
            lane: lanes.number(Lane {
                device,
                pid: track.pid,
                stream,
            }),
            span,
            class,
            bucket: Bucket::Phase(Phase::Other),
            other: OtherKind::Rest,
            step: NONE,
            launch: NONE,
            first_of_launch: false,
        });
    }
    if lengthless.len() * FEW >= kernels {
        for event in lengthless {
            trace.note(health, HealthCode::WorkWithoutLength, event);
        }
    }
    let places = lanes.places();
    for work in &mut work {
        work.lane = places[work.lane as usize];
    }
    // Files have the work of a lane in order, or nearly: this sort makes use of that.
    work.par_sort_by_key(|work| (work.lane, work.span, work.event));
    note_repeated(trace, &work, health);
    repair(trace, &mut work, health);
    work
}

/// Counts what is there again: one stream does nothing twice at a time, and a launch does not, either.
fn note_repeated(trace: &Trace, work: &[Work], health: &mut Health) {
    let events = &trace.events;
    let correlation = |work: &Work| {
        let args = events.device_args(work.event);
        args.map(|args| args.correlation).filter(|id| *id != 0)
    };
    for at_once in work.chunk_by(|a, b| (a.lane, a.span) == (b.lane, b.span)) {
        if at_once.len() == 1 || at_once[0].span.len() == Ns::ZERO {
            continue;
        }
        let mut known: Vec<_> = at_once
            .iter()
            .filter_map(|work| Some((correlation(work)?, events.name(work.event), work.event)))
            .collect();
        known.sort_unstable();
        for [one, other] in known.array_windows() {
            if (one.0, one.1) == (other.0, other.1) {
                let time = at_once[0].span.len();
                trace.note(health, HealthCode::RepeatedWork, other.2);
                health.add_time(HealthCode::RepeatedWork, time, Some(time));
            }
        }
    }
}

/// Fewer kernels without a length than one in so many are normal: older profilers rounded to microseconds.
const FEW: usize = 10;

/// Overlaps up to this length are left alone: programmatic dependent launch and clock noise make
/// them in real traces.
const SMALL_OVERLAP: Ns = Ns(5_000);

/// Clips impossible overlaps to the next start on the lane.
///
/// ```text
/// lane   ├─── a ───────────┤
///               ├─ b ─┤
/// after  ├─ a ─┤├─ b ─┤
/// ```
/// Only on a lane where overlaps longer than 5 µs take more than 1 % of its summed time; events
/// with equal starts are never clipped against each other.
fn repair(trace: &Trace, work: &mut [Work], health: &mut Health) {
    let raw: Ns = work.iter().map(|work| work.span.len()).sum();
    let mut clipped_ns = Ns::ZERO;
    for lane in work.chunk_by_mut(|a, b| a.lane == b.lane) {
        let summed: Ns = lane.iter().map(|work| work.span.len()).sum();
        let mut long: Vec<(usize, Ns)> = Vec::new();
        let mut next = None;
        for place in (0..lane.len()).rev() {
            let span = lane[place].span;
            if let Some(after) = lane.get(place + 1).map(|after| after.span.start)
                && after > span.start
            {
                next = Some(after);
            }
            let Some(overlap) = next.map(|next: Ns| span.end - next) else {
                continue;
            };
            if overlap > Ns::ZERO {
                trace.note(health, HealthCode::LaneOverlap, lane[place].event);
                health.add_time(HealthCode::LaneOverlap, overlap, Some(overlap));
            }
            if overlap > SMALL_OVERLAP {
                long.push((place, overlap));
            }
        }
        let overlapping: Ns = long.iter().map(|(_, overlap)| *overlap).sum();
        if i128::from(overlapping.0) * 100 <= i128::from(summed.0) {
            continue;
        }
        for (place, overlap) in long {
            lane[place].span.end -= overlap;
            clipped_ns += overlap;
            trace.note(health, HealthCode::LaneOverlapRepaired, lane[place].event);
        }
    }
    if clipped_ns > Ns::ZERO {
        health.add_repair(HealthCode::LaneOverlapRepaired, raw.0, clipped_ns.0);
    }
}

/// The events that [`collect`] clips, with the lengths that it gives them.
///
/// A lane on which an event to clip is a `B` with its `E` is left out whole: such an event has no
/// length of its own to write, and without all of them clipped a lane may seem sane that is not.
pub(crate) fn clipped(trace: &Trace) -> Vec<(EventId, Ns)> {
    let mut clipped = Vec::new();
    let work = collect(trace, &[], &mut Health::default());
    for lane in work.chunk_by(|a, b| a.lane == b.lane) {
        let before = clipped.len();
        for work in lane {
            if work.span == span_of(trace, work.event) {
                continue;
            }
            if trace.events.ph(work.event) != Ph::COMPLETE {
                clipped.truncate(before);
                break;
            }
            clipped.push((work.event, work.span.len()));
        }
    }
    clipped
}

#[cfg(test)]
impl Work {
    pub(crate) fn for_test(event: EventId, span: Span, class: DeviceClass, bucket: Bucket) -> Self {
        let other = OtherKind::Rest;
        Self {
            event,
            device: 0,
            stream: Ident::Int(7),
            lane: 0,
            span,
            class,
            bucket,
            other,
            step: NONE,
            launch: NONE,
            first_of_launch: false,
        }
    }
}
