//! Events as HolisticTraceAnalysis (0.6.1) sees them, for those who compare with its numbers.
//!
//! It differs from the rest of this program in what it takes for device work and in time:
//! - Only events with `dur` and `cat`; an event is on a device when it has a `stream`, whatever it is.
//! - When times have fractions of a microsecond, starts are rounded up and ends down to whole ones.
//! - With two steps or more the last is dropped: host events that start in it, and device events whose
//!   correlation no earlier host event has, such as those launched before the window. A device event
//!   that several host events have the correlation of is there several times.
//!
//! Not followed: a kernel whose launch is not there gets the time of the file's first event there, which
//! depends on the order of the file; and of host events of one correlation at most [`MAX_TWINS`] count.

use foldhash::HashMap;

use super::view::View;
use crate::error::Result;
use crate::model::{ActivityType, EventId, Ph, StrId};
use crate::units::Ns;

/// So many host events of one correlation count; real traces have one or two.
const MAX_TWINS: usize = 8;

/// The events of one trace, as far as HTA has them.
pub(super) struct HtaEvents {
    /// With a stream; by stream and start.
    pub(super) device: Vec<HtaEvent>,
    /// Without; by start.
    pub(super) host: Vec<HtaEvent>,
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub(super) struct HtaEvent {
    pub(super) name: StrId,
    pub(super) activity: ActivityType,
    pub(super) start: Ns,
    /// May be negative for an event shorter than a microsecond.
    pub(super) dur: Ns,
    pub(super) stream: Option<i64>,
    pub(super) correlation: Option<i64>,
    /// `memory bandwidth (GB/s)`; -1 when absent.
    pub(super) bandwidth: f64,
    /// For a device event: the start of the last host event of the same correlation.
    pub(super) launched: Option<Ns>,
}

const KEYS: &[&str] = &["stream", "correlation", "memory bandwidth (GB/s)"];

impl HtaEvents {
    /// Reads them.
    ///
    /// # Errors
    /// When the content is not what it was when the trace was read.
    pub(super) fn new(view: &View<'_>) -> Result<Self> {
        let trace = view.trace();
        let events = &trace.events;
        let wanted: Vec<EventId> = events
            .ids()
            .filter(|id| events.is_complete(*id) && events.ph(*id) == Ph::COMPLETE)
            .filter(|id| {
                let cat = trace.strings.get(events.cat(*id));
                events.activity(*id) != ActivityType::Missing && cat != "Trace"
            })
            .collect();
        let fractions = events
            .ids()
            .any(|id| events.ts(id).is_some_and(|ts| ts.0 % 1000 != 0));
        let all = view.arguments(&wanted, KEYS, |id, args| {
            let (start, dur) = times(view, id, fractions);
            let int = |key| args.int(key).filter(|number| *number != -1);
            HtaEvent {
                name: events.name(id),
                activity: events.activity(id),
                start,
                dur,
                stream: int("stream"),
                correlation: int("correlation"),
                bandwidth: args.float("memory bandwidth (GB/s)").unwrap_or(-1.0),
                launched: None,
            }
        })?;
        let (device, host) = all.into_iter().partition(|event| event.stream.is_some());
        let mut table = Self { device, host };
        table.sort(view);
        table.link();
        table.drop_last_step(view);
        Ok(table)
    }

    /// Puts the events in order of time; ties by content.
    fn sort(&mut self, view: &View<'_>) {
        let text = |event: &HtaEvent| view.trace().strings.get(event.name);
        let key = |event: &HtaEvent| (event.stream, event.start, event.dur, event.correlation);
        for events in [&mut self.device, &mut self.host] {
            events.sort_by(|a, b| {
                key(a)
                    .cmp(&key(b))
                    .then_with(|| text(a).cmp(text(b)))
                    .then_with(|| a.bandwidth.total_cmp(&b.bandwidth))
            });
        }
    }

    /// The host events of each correlation, in order of time.
    pub(super) fn twins(&self) -> HashMap<i64, Vec<HtaEvent>> {
        let mut twins: HashMap<i64, Vec<HtaEvent>> = HashMap::default();
        for event in &self.host {
            if let Some(correlation) = event.correlation {
                let known = twins.entry(correlation).or_default();
                if known.len() < MAX_TWINS {
                    known.push(*event);
                }
            }
        }
        twins
    }

    fn link(&mut self) {
        let twins = self.twins();
        for event in &mut self.device {
            let known = event.correlation.filter(|_| event.stream >= Some(0));
            let known = known.and_then(|correlation| twins.get(&correlation));
            event.launched = known.and_then(|twins| Some(twins.last()?.start));
        }
    }

    fn drop_last_step(&mut self, view: &View<'_>) {
        let is_step = |name: StrId| view.trace().strings.get(name).starts_with("ProfilerStep#");
        let all = self.device.iter().chain(&self.host);
        let mut names: Vec<StrId> = all
            .map(|event| event.name)
            .filter(|name| is_step(*name))
            .collect();
        names.sort_unstable();
        names.dedup();
        let steps = self.host.iter().filter(|event| is_step(event.name));
        let (2.., Some(last)) = (names.len(), steps.map(|step| step.start).max()) else {
            return;
        };
        self.host.retain(|event| event.start < last);
        let twins = self.twins();
        let copies = |event: &HtaEvent| {
            let known = event.correlation.filter(|_| event.stream >= Some(0));
            let known = known.and_then(|correlation| twins.get(&correlation));
            std::iter::repeat_n(*event, known.map_or(0, Vec::len))
        };
        self.device = self.device.iter().flat_map(copies).collect();
    }
}

/// Start and length of an event.
fn times(view: &View<'_>, id: EventId, fractions: bool) -> (Ns, Ns) {
    let events = &view.trace().events;
    let ts = events.ts(id).unwrap_or_default();
    let dur = events.dur(id).unwrap_or_default();
    if !fractions {
        return (ts, dur);
    }
    // HTA adds in floating point; that decides on which side of a microsecond an end is.
    let us = |time: Ns| time.0 as f64 / 1000.0;
    #[expect(clippy::cast_possible_truncation, reason = "times are far below 2^63")]
    let ns = |us: f64| Ns((us as i64).saturating_mul(1000));
    let start = ns(us(ts).ceil());
    (start, ns((us(ts) + us(dur)).floor()) - start)
}

impl HtaEvent {
    /// True for what HTA takes for kernels, copies and fills.
    pub(super) fn is_kernel(&self) -> bool {
        self.activity.is_device_work()
    }

    /// When it ends.
    pub(super) fn end(&self) -> Ns {
        self.start + self.dur
    }
}

/// Microseconds, in which HTA counts.
pub(super) fn us(time: Ns) -> f64 {
    time.0 as f64 / 1000.0
}

/// A share as HTA prints it, with two decimals.
pub(super) fn rounded(share: f64) -> f64 {
    (share * 100.0).round_ties_even() / 100.0
}
