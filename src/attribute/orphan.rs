//! Launches without device work: what the profiler lost, and what went into graphs instead.

use super::host::{Host, span_of};
use super::interval::{find, union};
use super::link::{Link, Links};
use super::names::Names;
use super::process::Processes;
use super::step::Steps;
use crate::health::{Health, HealthCode};
use crate::model::{EventId, Trace};
use crate::units::{Ns, Span};

/// The kernel launches of one trace, by whether their device work is in it.
///
/// ```text
/// thread   launch 1   BeginCapture   launch 2   EndCapture   launch 3
/// device      ├─ kernel 1 ─┤
///          has work                  captured                lost
/// ```
/// Launches of copies and fills are not looked at: those of nothing have no work in sound traces.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// How many kernel launches there are.
    pub(crate) launches: u64,
    /// Those that went into a graph, and the first of them.
    pub(crate) captured: u64,
    first_captured: Option<EventId>,
    /// True when a graph is replayed.
    pub(crate) replays: bool,
    /// Those whose device work is missing, with the step they are in.
    pub(crate) lost: Vec<(EventId, Option<u32>)>,
}

impl Orphans {
    pub(crate) fn new(
        trace: &Trace,
        names: &Names,
        host: &Host,
        processes: &Processes,
        steps: &Steps,
        links: &Links,
    ) -> Self {
        let events = &trace.events;
        let mut orphans = Self::default();
        // Where other links had to be found, correlation says nothing about a launch.
        let linked = |link: &Link| matches!(link, Link::Correlation(_));
        let by_correlation = links.links.is_empty() || links.links.iter().any(linked);
        let mut without: Vec<EventId> = Vec::new();
        let mut borders: Vec<(Ns, bool)> = Vec::new();
        let mut owners = links.launches.iter().map(|launch| launch.event).peekable();
        for event in events.ids() {
            if !events.activity(event).is_launch() || !events.is_complete(event) {
                continue;
            }
            let facts = names.get(events.name(event));
            if facts.kernel_launch {
                orphans.launches += 1;
                let correlation = events.launch_args(event).map_or(0, |args| args.correlation);
                while owners.next_if(|owner| *owner < event).is_some() {}
                let owns_work = owners.peek() == Some(&event);
                if correlation != 0 && by_correlation && !owns_work {
                    without.push(event);
                }
            } else if facts.capture_begin {
                borders.push((span_of(trace, event).start, true));
            } else if facts.capture_end {
                borders.push((span_of(trace, event).end, false));
            } else {
                orphans.replays |= facts.graph_launch;
            }
        }
        if without.is_empty() {
            return orphans;
        }
        // The work may be there and left out of the numbers, or be that of another launch.
        let args = events.device_args.iter();
        let mut known: Vec<u64> = args.map(|args| args.correlation).collect();
        known.sort_unstable();
        without.retain(|event| {
            let args = events.launch_args(*event);
            args.is_some_and(|args| known.binary_search(&args.correlation).is_err())
        });
        let captures = captures(borders);
        for event in without {
            let at = span_of(trace, event).start;
            if find(&captures, at).is_some() {
                orphans.captured += 1;
                orphans.first_captured.get_or_insert(event);
                continue;
            }
            let process = host
                .thread(events.track(event))
                .map(|thread| processes.threads[thread].process);
            let step = process.and_then(|process| steps.at(process, at));
            orphans.lost.push((event, step));
        }
        orphans
    }

    /// How many launches of each step lost their work.
    pub(crate) fn by_step(&self, steps: usize) -> Vec<u64> {
        let mut counts = vec![0; steps];
        for step in self.lost.iter().filter_map(|(_, step)| *step) {
            counts[step as usize] += 1;
        }
        counts
    }

    /// Counts the launches whose work is missing, of those in steps that `wants` wants.
    pub(crate) fn note(
        &self,
        trace: &Trace,
        wants: impl Fn(Option<u32>) -> bool,
        health: &mut Health,
    ) {
        for (event, step) in &self.lost {
            if wants(*step) {
                trace.note(health, HealthCode::LaunchesWithoutWork, *event);
            }
        }
        if let Some(first) = self.first_captured
            && !self.replays
        {
            let offset = trace.events.offset(first);
            health.count_many(HealthCode::CaptureOnly, self.captured, offset, "");
        }
    }
}

/// The times during which launches go into a graph. A capture that does not end lasts for ever, and
/// one that does not begin was always there: the borders are cut off by the capture of the trace.
fn captures(mut borders: Vec<(Ns, bool)>) -> Vec<Span> {
    borders.sort_unstable();
    let mut spans = Vec::new();
    let mut begin = None;
    for (at, begins) in borders {
        if begins {
            begin.get_or_insert(at);
        } else if begin.is_some() || spans.is_empty() {
            spans.push(Span::new(begin.take().unwrap_or(Ns(i64::MIN)), at));
        }
    }
    spans.extend(begin.map(|begin| Span::new(begin, Ns(i64::MAX))));
    union(spans)
}
