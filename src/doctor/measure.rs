//! How much of a file findings concern.

use super::diagnosis::{Basis, Facts};
use crate::attribute::FileAttribution;
use crate::health::{HealthCode, HealthEntry};
use crate::model::{ActivityType, EventFlags, Trace};
use crate::units::{Ns, Span};

/// What the shares of findings are shares of, and the times that only the events tell.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    /// Events with a start and a length.
    events: u64,
    /// Device events, those left out of the numbers included.
    device_events: u64,
    /// From the first start to the last end on the host.
    host_window: Option<Span>,
    /// Host time during which operators run that the capture cut off.
    unfinished: Ns,
}

impl Measures {
    /// Looks through the events of a trace.
    pub(crate) fn new(trace: &Trace) -> Self {
        let events = &trace.events;
        let mut measures = Self::default();
        let mut unfinished: Vec<Span> = Vec::new();
        for id in events.ids() {
            let activity = events.activity(id);
            measures.device_events += u64::from(activity.is_device_work());
            let (true, Some(start), Some(dur)) =
                (events.is_complete(id), events.ts(id), events.dur(id))
            else {
                continue;
            };
            measures.events += 1;
            let span = Span::new(start, start + dur);
            let is_range = matches!(activity, ActivityType::CpuOp | ActivityType::UserAnnotation);
            if !is_range && activity != ActivityType::PythonFunction && !activity.is_launch() {
                continue;
            }
            let window = measures.host_window.get_or_insert(span);
            window.start = window.start.min(span.start);
            window.end = window.end.max(span.end);
            // Frames of Python that outlive the capture are normal: the program goes on.
            if is_range && events.flags(id).has(EventFlags::UNFINISHED) {
                unfinished.push(span);
            }
        }
        measures.unfinished = covered(unfinished);
        measures
    }

    /// What is in the file.
    pub(super) fn facts(&self, events: u64, file: &FileAttribution) -> Facts {
        let total = &file.totals.total;
        Facts {
            events,
            device_events: total.events,
            device_time_ns: (total.events > 0).then_some(total.sum_ns),
            host_window_ns: self.host_window.map(Span::len),
            launches: file.launches,
            steps: file.host.steps.len() as u64,
            steps_inferred: file.steps_inferred,
            phases: file.coverage.phases,
            recompute_observable: file.recompute.observable,
        }
    }

    /// The time that a finding concerns, how much that is, and of what.
    pub(super) fn of(
        &self,
        code: HealthCode,
        entry: &HealthEntry,
        file: &FileAttribution,
    ) -> Measured {
        let time = entry.time_ns.map(Ns);
        let device_time = file.totals.total.sum_ns;
        match code {
            HealthCode::UnlinkedDeviceWork
            | HealthCode::PreWindow
            | HealthCode::GraphReplay
            | HealthCode::RepeatedWork
            | HealthCode::WorkBeforeLaunch
            | HealthCode::LaneOverlap => Measured::time(time, device_time, Basis::DeviceTime),
            HealthCode::LaneOverlapRepaired => {
                let raw = Ns(entry.raw_ns.unwrap_or(0));
                Measured::time(entry.repaired_ns.map(Ns), raw, Basis::DeviceTime)
            }
            // Before it was clipped, as above.
            HealthCode::Repaired => {
                let clipped = time.unwrap_or_default();
                let raw = Ns(device_time.0.saturating_add(clipped.0));
                Measured::time(time, raw, Basis::DeviceTime)
            }
            HealthCode::OutlierCollective | HealthCode::StartSkew => {
                let windows = file.devices.iter().map(|device| device.timeline.window_ns);
                let window = windows.max().unwrap_or_default();
                Measured::time(time, window, Basis::DeviceWindow)
            }
            HealthCode::UnfinishedOperation => {
                let window = self.host_window.map(Span::len).unwrap_or_default();
                Measured::time(Some(self.unfinished), window, Basis::HostWindow)
            }
            HealthCode::PartialSteps => {
                let all = file.host.steps.iter().map(|step| step.wall_ns).sum();
                Measured::time(time, all, Basis::StepTime)
            }
            HealthCode::AmbiguousLaunch
            | HealthCode::WorkWithoutLength
            | HealthCode::ZeroTimestamp => {
                Measured::count(entry.count, self.device_events, Basis::DeviceEvents)
            }
            HealthCode::LaunchesWithoutWork | HealthCode::CaptureOnly => {
                Measured::count(entry.count, file.launches, Basis::Launches)
            }
            HealthCode::MissingSteps => {
                let steps = file.host.steps.len() as u64;
                Measured::count(entry.count, steps.saturating_add(entry.count), Basis::Steps)
            }
            HealthCode::MissingTimestamp
            | HealthCode::InvalidTimestamp
            | HealthCode::NegativeDuration
            | HealthCode::AbsurdTime => {
                let all = self.events.saturating_add(entry.count);
                Measured::count(entry.count, all, Basis::Events)
            }
            HealthCode::MissingDuration
            | HealthCode::UnclosedBegin
            | HealthCode::UnpaddedFractions
            | HealthCode::RoundedTimestamps => {
                Measured::count(entry.count, self.events.max(entry.count), Basis::Events)
            }
            _ => Measured::default(),
        }
    }
}

/// How much a finding concerns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) time: Option<Ns>,
    pub(super) share: Option<f64>,
    pub(super) of: Option<Basis>,
}

impl Measured {
    fn time(time: Option<Ns>, whole: Ns, basis: Basis) -> Self {
        let share = time.and_then(|time| time.ratio(whole));
        Self {
            time,
            share,
            of: share.map(|_| basis),
        }
    }

    /// So many of so many things.
    pub(super) fn count(count: u64, whole: u64, basis: Basis) -> Self {
        let share = (whole > 0).then(|| count as f64 / whole as f64);
        Self {
            time: None,
            share,
            of: share.map(|_| basis),
        }
    }
}

/// The length of what `spans` cover.
fn covered(mut spans: Vec<Span>) -> Ns {
    spans.sort_unstable();
    let mut sum = Ns::ZERO;
    let mut end = Ns(i64::MIN);
    for span in spans {
        let start = span.start.max(end);
        if span.end > start {
            sum += span.end - start;
            end = span.end;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_covered_once() {
        let span = |start, end| Span::new(Ns(start), Ns(end));
        assert_eq!(
            covered(vec![
                span(5, 9),
                span(0, 4),
                span(1, 2),
                span(8, 12),
                span(3, 3)
            ]),
            Ns(11)
        );
    }

    #[test]
    fn a_share_of_nothing_is_none() {
        let none = Measured::time(Some(Ns(3)), Ns::ZERO, Basis::DeviceTime);
        assert_eq!((none.time, none.share, none.of), (Some(Ns(3)), None, None));
        let half = Measured::count(1, 2, Basis::Launches);
        assert_eq!((half.share, half.of), (Some(0.5), Some(Basis::Launches)));
    }
}
