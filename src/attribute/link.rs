//! Links: which launch put a piece of device work on its device.
//!
//! Correlation first, then launch flows, then `External id`. Everything is scoped by file.

use super::host::span_of;
use crate::health::{Health, HealthCode};
use crate::model::{ActivityType, EventId, Ph, Trace, TrackId};
use crate::units::Ns;

/// How a piece of device work was linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// To `launches[i]`, by equal correlation.
    Correlation(u32),
    /// To `launches[i]`, by a launch flow.
    Flow(u32),
    /// To `launches[i]`, by equal `External id`.
    External(u32),
    /// Launched before profiling started.
    PreWindow,
    /// Its launch is not in the file.
    None,
}

impl Link {
    pub(crate) fn launch(self) -> Option<u32> {
        match self {
            Self::Correlation(launch) | Self::Flow(launch) | Self::External(launch) => Some(launch),
            Self::PreWindow | Self::None => None,
        }
    }
}

/// A launch that owns device work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The call, the flow's start, or the operator.
    pub(crate) event: EventId,
    pub(crate) track: TrackId,
    pub(crate) at: Ns,
}

/// The links of all device work of one trace.
pub(crate) struct Links {
    /// One entry a device event, in the order given.
    pub(crate) links: Vec<Link>,
    /// In file order, each once.
    pub(crate) launches: Vec<Launch>,
}

impl Links {
    pub(crate) fn new(trace: &Trace, device_events: &[EventId], health: &mut Health) -> Self {
        let calls = Calls::new(trace);
        let mut late: Option<Late> = None;
        let mut find = |event: EventId| {
            let args = trace
                .events
                .device_args(event)
                .expect("device work has device arguments");
            match calls.find(args.correlation, args.external) {
                Found::One(call) => return Ok((call, Link::Correlation as fn(u32) -> Link)),
                Found::Ambiguous => {
                    trace.note(health, HealthCode::AmbiguousLaunch, event);
                    return Err(Link::None);
                }
                Found::None if args.correlation != 0 && args.correlation < calls.first => {
                    return Err(Link::PreWindow);
                }
                Found::None => {}
            }
            let late = late.get_or_insert_with(|| Late::new(trace));
            if let Some(start) = late.by_flow(trace, event) {
                return Ok((start, Link::Flow));
            }
            match late.by_external(args.external, args.correlation) {
                Some(op) => Ok((op, Link::External)),
                None => Err(Link::None),
            }
        };
        let found: Vec<_> = device_events.iter().map(|event| find(*event)).collect();
        let mut launches: Vec<EventId> = found
            .iter()
            .filter_map(|found| Some(found.as_ref().ok()?.0))
            .collect();
        launches.sort_unstable();
        launches.dedup();
        let number_of = |launch: EventId| {
            let number = launches
                .binary_search(&launch)
                .expect("every launch found is there");
            u32::try_from(number).expect("no more launches than events")
        };
        let links = found
            .into_iter()
            .map(|found| found.map_or_else(|link| link, |(launch, link)| link(number_of(launch))))
            .collect();
        let launch_at = |event: &EventId| Launch {
            event: *event,
            track: trace.events.track(*event),
            at: trace.events.ts(*event).unwrap_or_default(),
        };
        Self {
            links,
            launches: launches.iter().map(launch_at).collect(),
        }
    }

    /// True for an event that launched device work.
    pub(crate) fn owns_work(&self, event: EventId) -> bool {
        self.launches
            .binary_search_by_key(&event, |launch| launch.event)
            .is_ok()
    }
}

enum Found {
    One(EventId),
    Ambiguous,
    None,
}

/// Runtime and driver calls by correlation.
struct Calls {
    by_correlation: Vec<Group<u64>>,
    /// By correlation and External id.
    by_both: Vec<Group<(u64, u64)>>,
    /// The smallest correlation of any call.
    first: u64,
}

/// The calls that share a key.
struct Group<K> {
    key: K,
    earliest: EventId,
    one_process: bool,
}

impl Calls {
    fn new(trace: &Trace) -> Self {
        let events = &trace.events;
        let mut calls: Vec<((u64, u64), Ns, EventId)> = events
            .ids()
            .filter(|id| events.activity(*id).is_launch() && events.is_complete(*id))
            .filter_map(|id| {
                let args = events.launch_args(id)?;
                let key = (args.correlation, args.external);
                (args.correlation != 0).then_some((key, events.ts(id)?, id))
            })
            .collect();
        // Which of several equal calls counts must not depend on the order of events.
        let row = |id| trace.row_text(trace.events.track(id));
        calls.sort_unstable_by(|a, b| {
            (a.0, a.1)
                .cmp(&(b.0, b.1))
                .then_with(|| trace.name(a.2).cmp(trace.name(b.2)))
                .then_with(|| row(a.2).cmp(&row(b.2)))
                .then_with(|| a.2.cmp(&b.2))
        });
        let by_correlation = groups(trace, calls.iter().map(|call| (call.0.0, call.1, call.2)));
        let by_both = groups(trace, calls.iter().copied());
        let first = by_correlation.first().map_or(0, |group| group.key);
        Self {
            by_correlation,
            by_both,
            first,
        }
    }

    /// The call that has this correlation: of several in one process the earliest, of several
    /// processes the one whose External id matches.
    fn find(&self, correlation: u64, external: u64) -> Found {
        if correlation == 0 {
            return Found::None;
        }
        let Ok(place) = self
            .by_correlation
            .binary_search_by_key(&correlation, |group| group.key)
        else {
            return Found::None;
        };
        let group = &self.by_correlation[place];
        if group.one_process {
            return Found::One(group.earliest);
        }
        let both = self
            .by_both
            .binary_search_by_key(&(correlation, external), |group| group.key);
        match both {
            Ok(place) if external != 0 && self.by_both[place].one_process => {
                Found::One(self.by_both[place].earliest)
            }
            _ => Found::Ambiguous,
        }
    }
}

/// Groups calls, which must be sorted by key.
fn groups<K: PartialEq>(
    trace: &Trace,
    calls: impl Iterator<Item = (K, Ns, EventId)>,
) -> Vec<Group<K>> {
    let pid = |id: EventId| trace.tracks.get(trace.events.track(id)).pid;
    let mut groups: Vec<(Group<K>, Ns)> = Vec::new();
    for (key, at, event) in calls {
        match groups.last_mut() {
            Some((group, start)) if group.key == key => {
                group.one_process &= pid(group.earliest) == pid(event);
                if at < *start {
                    *start = at;
                    group.earliest = event;
                }
            }
            _ => groups.push((
                Group {
                    key,
                    earliest: event,
                    one_process: true,
                },
                at,
            )),
        }
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

/// The ways that are tried when correlation fails; built when first needed.
struct Late {
    /// Ends of launch flows by (row, time), with the flow's id.
    flow_ends: Vec<(TrackId, Ns, u64)>,
    /// Starts of launch flows by id.
    flow_starts: Vec<(u64, Ns, EventId)>,
    /// Operators by External id.
    operators: Vec<(u64, Ns, EventId)>,
}

impl Late {
    fn new(trace: &Trace) -> Self {
        let events = &trace.events;
        let mut flow_ends = Vec::new();
        let mut flow_starts = Vec::new();
        let mut operators = Vec::new();
        for id in events.ids() {
            let Some(ts) = events.ts(id) else { continue };
            match events.activity(id) {
                ActivityType::LaunchFlow => {
                    let Some(args) = events.launch_args(id) else {
                        continue;
                    };
                    match events.ph(id) {
                        _ if args.correlation == 0 => {}
                        Ph::FLOW_START => flow_starts.push((args.correlation, ts, id)),
                        Ph::FLOW_END => flow_ends.push((events.track(id), ts, args.correlation)),
                        _ => {}
                    }
                }
                ActivityType::CpuOp if events.is_complete(id) => {
                    if let Some(args) = events.op_args(id)
                        && args.external != 0
                    {
                        operators.push((args.external, ts, id));
                    }
                }
                _ => {}
            }
        }
        flow_ends.sort_unstable();
        flow_starts.sort_unstable();
        operators.sort_unstable();
        Self {
            flow_ends,
            flow_starts,
            operators,
        }
    }

    /// The start of the one flow that ends at the start of `event` on its row.
    fn by_flow(&self, trace: &Trace, event: EventId) -> Option<EventId> {
        let track = trace.events.track(event);
        let at = span_of(trace, event).start;
        let from = self
            .flow_ends
            .partition_point(|end| (end.0, end.1) < (track, at));
        let end = self
            .flow_ends
            .get(from)
            .filter(|end| (end.0, end.1) == (track, at))?;
        only(&self.flow_starts, end.2)
    }

    /// The one operator with this External id. Writers of 2022 to 2024 put the correlation there
    /// when they knew no id; that links nothing.
    fn by_external(&self, external: u64, correlation: u64) -> Option<EventId> {
        if external == 0 || external == correlation {
            return None;
        }
        only(&self.operators, external)
    }
}

/// The only entry with this key.
fn only(sorted: &[(u64, Ns, EventId)], key: u64) -> Option<EventId> {
    let from = sorted.partition_point(|entry| entry.0 < key);
    let entry = sorted.get(from).filter(|entry| entry.0 == key)?;
    let alone = sorted.get(from + 1).is_none_or(|next| next.0 != key);
    alone.then_some(entry.2)
}
