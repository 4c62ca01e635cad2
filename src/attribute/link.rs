//! Links: which launch put a piece of device work on its device.
//!
//! Correlation first, then launch flows, then `External id`. Everything is scoped by file.

use std::cell::OnceCell;
use std::cmp::Ordering;

use rayon::prelude::*;

use super::host::span_of;
use crate::health::{Health, HealthCode};
use crate::model::{ActivityType, EventId, LaunchArgs, Ph, Trace, TrackId};
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
        let mut calls = Calls::new(trace);
        let mut late: Option<Late> = None;
        let mut find = |event: EventId| {
            let args = trace
                .events
                .device_args(event)
                .expect("device work has device arguments");
            match calls.find(args.correlation, args.external) {
                Found::One(call) => return Link::Correlation(call.0),
                Found::Ambiguous => {
                    trace.note(health, HealthCode::AmbiguousLaunch, event);
                    return Link::None;
                }
                Found::None if args.correlation != 0 && args.correlation < calls.first => {
                    return Link::PreWindow;
                }
                Found::None => {}
            }
            let late = late.get_or_insert_with(|| Late::new(trace));
            if let Some(start) = late.by_flow(trace, event) {
                return Link::Flow(start.0);
            }
            match late.by_external(args.external, args.correlation) {
                Some(op) => Link::External(op.0),
                None => Link::None,
            }
        };
        // To events at first, then to their numbers among the launches.
        let mut links: Vec<Link> = device_events.iter().map(|event| find(*event)).collect();
        let mut launches: Vec<EventId> = links
            .iter()
            .filter_map(|link| link.launch().map(EventId))
            .collect();
        launches.sort();
        launches.dedup();
        let mut near = 0;
        for link in &mut links {
            if let Link::Correlation(launch) | Link::Flow(launch) | Link::External(launch) = link {
                near = place_near(&launches, near, EventId(*launch), |event| *event)
                    .expect("every launch found is there");
                *launch = u32::try_from(near).expect("no more launches than events");
            }
        }
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
}

enum Found {
    One(EventId),
    Ambiguous,
    None,
}

/// Runtime and driver calls by correlation.
struct Calls<'a> {
    trace: &'a Trace,
    by_correlation: Vec<Group<u64>>,
    /// By correlation and External id; made when correlation alone does not do.
    by_both: OnceCell<Vec<Group<(u64, u64)>>>,
    /// The smallest correlation of any call.
    first: u64,
    /// Where the last one was found.
    near: usize,
}

/// The calls that share a key.
struct Group<K> {
    key: K,
    earliest: EventId,
    one_process: bool,
}

impl<'a> Calls<'a> {
    fn new(trace: &'a Trace) -> Self {
        let by_correlation = groups(trace, |args| args.correlation);
        let first = by_correlation.first().map_or(0, |group| group.key);
        Self {
            trace,
            by_correlation,
            by_both: OnceCell::new(),
            first,
            near: 0,
        }
    }

    /// The call that has this correlation: of several in one process the earliest, of several
    /// processes the one whose External id matches.
    fn find(&mut self, correlation: u64, external: u64) -> Found {
        if correlation == 0 {
            return Found::None;
        }
        // Work that comes one after the other was launched so, mostly.
        let calls = &self.by_correlation;
        let Some(place) = place_near(calls, self.near, correlation, |group| group.key) else {
            return Found::None;
        };
        self.near = place;
        let group = &calls[place];
        if group.one_process {
            return Found::One(group.earliest);
        }
        let by_both = self
            .by_both
            .get_or_init(|| groups(self.trace, |args| (args.correlation, args.external)));
        let both = by_both.binary_search_by_key(&(correlation, external), |group| group.key);
        match both {
            Ok(place) if external != 0 && by_both[place].one_process => {
                Found::One(by_both[place].earliest)
            }
            _ => Found::Ambiguous,
        }
    }
}

/// The calls that have a correlation, in groups of equal keys, in order of key.
fn groups<K: Ord + Copy + Send>(trace: &Trace, key_of: impl Fn(&LaunchArgs) -> K) -> Vec<Group<K>> {
    let events = &trace.events;
    let mut calls: Vec<(K, EventId)> = Vec::with_capacity(events.launch_args.len());
    calls.extend(
        events
            .ids()
            .filter(|id| events.activity(*id).is_launch() && events.is_complete(*id))
            .filter_map(|id| Some((events.launch_args(id)?, id)))
            .filter(|(args, _)| args.correlation != 0)
            .map(|(args, id)| (key_of(&args), id)),
    );
    // Files have calls in order, or nearly: this sort makes use of that.
    calls.par_sort_by_key(|(key, _)| *key);
    let pid = |id: EventId| trace.tracks.get(events.track(id)).pid;
    let mut groups: Vec<Group<K>> = Vec::with_capacity(calls.len());
    for (key, event) in calls {
        match groups.last_mut() {
            Some(group) if group.key == key => {
                group.one_process &= pid(group.earliest) == pid(event);
                if in_time(trace, event, group.earliest).is_lt() {
                    group.earliest = event;
                }
            }
            _ => groups.push(Group {
                key,
                earliest: event,
                one_process: true,
            }),
        }
    }
    groups
}

/// The order of calls of one correlation. Which of several equal calls counts must not depend on the
/// order of events.
fn in_time(trace: &Trace, a: EventId, b: EventId) -> Ordering {
    let events = &trace.events;
    let external = |id| events.launch_args(id).map_or(0, |args| args.external);
    let row = |id| trace.row_text(events.track(id));
    (events.ts(a), external(a))
        .cmp(&(events.ts(b), external(b)))
        .then_with(|| trace.name(a).cmp(trace.name(b)))
        .then_with(|| row(a).cmp(&row(b)))
        .then_with(|| a.cmp(&b))
}

/// Where `key` is in `sorted`: a search that goes outwards from `near`, in steps that double.
fn place_near<T, K: Ord>(
    sorted: &[T],
    near: usize,
    key: K,
    key_of: impl Fn(&T) -> K,
) -> Option<usize> {
    let mut from = near.min(sorted.len());
    let mut to = from;
    let mut step = 1;
    while from > 0 && key_of(&sorted[from - 1]) >= key {
        from = from.saturating_sub(step);
        step *= 2;
    }
    step = 1;
    while to < sorted.len() && key_of(&sorted[to]) < key {
        to = sorted.len().min(to + step);
        step *= 2;
    }
    let place = from + sorted[from..to].partition_point(|entry| key_of(entry) < key);
    sorted
        .get(place)
        .filter(|entry| key_of(entry) == key)
        .map(|_| place)
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
        // In order already, or nearly, in most files.
        flow_ends.sort();
        flow_starts.sort();
        operators.sort();
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
