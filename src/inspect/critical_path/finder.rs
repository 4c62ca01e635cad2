//! The graphs of ranges of a trace, and the path through each.

use crate::attribute::{NONE, Work};
use crate::error::Result;
use crate::inspect::dependency::{Edge, EdgeType, Graph, NodeId, Owner};
use crate::inspect::host_event::{HostEvent, host_events};
use crate::inspect::synchronization::{Awaited, Waits, waits};
use crate::inspect::view::View;
use crate::model::{EventId, Ident};
use crate::units::{Ns, Span};

/// A range of time to look at.
pub(super) struct Range<'a> {
    pub(super) name: &'a str,
    /// Which one of those that are asked for.
    pub(super) instance: usize,
    pub(super) span: Span,
    /// The process whose threads count; `None` for all.
    pub(super) process: Option<usize>,
}

/// Name of the range that a trace without steps is.
const WHOLE: &str = "(whole trace)";

/// The ranges that are asked for: annotations by name, else the selected steps, else all.
pub(super) fn ranges<'a>(view: &View<'a>, parts: &Parts<'a>) -> Vec<Range<'a>> {
    let dissection = view.dissection;
    let trace = view.trace();
    if let Some(wanted) = &view.options.range {
        let mut found: Vec<Range<'a>> = Vec::new();
        for (thread, phases) in dissection
            .host
            .threads
            .iter()
            .zip(&dissection.processes.threads)
        {
            let named = thread
                .annotations
                .iter()
                .filter(|annotation| trace.name(annotation.event).contains(wanted.as_str()));
            found.extend(named.map(|annotation| Range {
                name: trace.name(annotation.event),
                instance: 0,
                span: annotation.span,
                process: Some(phases.process),
            }));
        }
        found.sort_by_key(|range| {
            (
                range.span.start,
                std::cmp::Reverse(range.span.end),
                range.name,
            )
        });
        for (instance, range) in found.iter_mut().enumerate() {
            range.instance = instance;
        }
        if let Some(instance) = view.options.instance {
            found.retain(|range| range.instance == instance);
        }
        return found;
    }
    let steps = dissection.steps.all.iter().enumerate();
    let mut found: Vec<Range<'a>> = steps
        .filter(|(number, _)| dissection.selected[*number])
        .map(|(number, step)| Range {
            name: &step.name,
            instance: number,
            span: step.span,
            process: Some(step.process),
        })
        .collect();
    let ends = parts.host.iter().map(|event| event.span.end).max();
    if dissection.steps.all.is_empty()
        && let (Some(first), Some(last)) = (parts.host.first(), ends)
    {
        found.push(Range {
            name: WHOLE,
            instance: 0,
            span: Span::new(first.span.start, last + Ns(1)),
            process: None,
        });
    }
    found
}

/// What graphs are made of.
pub(super) struct Parts<'a> {
    pub(super) host: Vec<HostEvent>,
    /// Numbers of host events by event.
    pub(super) by_event: Vec<(EventId, u32)>,
    /// All device work by stream and start.
    pub(super) works: Vec<&'a Work>,
    /// By work: when what is before it on its stream has ended.
    pub(super) free: Vec<Option<Ns>>,
    /// Numbers of work that has a launch, by its time.
    pub(super) by_launch: Vec<(Ns, u32)>,
    /// Calls that launched work.
    pub(super) launches: Vec<EventId>,
    pub(super) waits: Waits,
    /// By host thread: its place in an order that does not depend on the order of events.
    pub(super) rank: Vec<usize>,
}

/// A `pid`, `tid` or stream in a form that can be put in order.
fn ordered<'a>(view: &View<'a>, ident: Ident) -> (u8, i64, &'a str) {
    match ident {
        Ident::Missing => (0, 0, ""),
        Ident::Int(number) => (1, number, ""),
        Ident::Text(text) => (2, 0, view.trace().strings.get(text)),
    }
}

impl<'a> Parts<'a> {
    pub(super) fn new(view: &View<'a>) -> Result<Self> {
        let dissection = view.dissection;
        let trace = view.trace();
        let host = host_events(view);
        let mut by_event: Vec<(EventId, u32)> =
            host.iter().map(|event| event.event).zip(0u32..).collect();
        by_event.sort_unstable();
        let mut works: Vec<&Work> = dissection.work.iter().collect();
        let lane = |work: &Work| {
            let track = trace.events.track(work.event);
            (
                work.device,
                ordered(view, work.stream),
                trace.row_text(track)[0],
            )
        };
        let correlation = |work: &Work| {
            let args = trace.events.device_args(work.event);
            args.map_or(0, |args| args.correlation)
        };
        works.sort_by(|a, b| {
            lane(a)
                .cmp(&lane(b))
                .then_with(|| a.span.cmp(&b.span))
                .then_with(|| correlation(a).cmp(&correlation(b)))
                .then_with(|| trace.name(a.event).cmp(trace.name(b.event)))
        });
        let mut free = Vec::with_capacity(works.len());
        for same in works.chunk_by(|a, b| a.lane == b.lane) {
            let mut end: Option<Ns> = None;
            for work in same {
                free.push(end);
                end = end.max(Some(work.span.end));
            }
        }
        let launch_of = |work: &&Work| Some(view.launch(work)?.at);
        let mut by_launch: Vec<(Ns, u32)> = (0u32..)
            .zip(&works)
            .filter_map(|(number, work)| Some((launch_of(work)?, number)))
            .collect();
        by_launch.sort_unstable();
        let mut launches: Vec<EventId> = works
            .iter()
            .filter_map(|work| Some(view.launch(work)?.event))
            .collect();
        launches.sort_unstable();
        launches.dedup();
        let waits = waits(view, &works)?;
        let threads = &dissection.host.threads;
        let mut in_order: Vec<usize> = (0..threads.len()).collect();
        in_order.sort_by_key(|thread| {
            let thread = &threads[*thread];
            (ordered(view, thread.pid), ordered(view, thread.tid))
        });
        let mut rank = vec![0; threads.len()];
        for (place, thread) in in_order.into_iter().enumerate() {
            rank[thread] = place;
        }
        Ok(Self {
            host,
            by_event,
            works,
            free,
            by_launch,
            launches,
            waits,
            rank,
        })
    }

    /// The number of the host event that `event` is.
    fn host_number(&self, event: EventId) -> Option<u32> {
        let found = self.by_event.binary_search_by_key(&event, |entry| entry.0);
        Some(self.by_event[found.ok()?].1)
    }

    /// Numbers of the host events that start within `span`.
    fn host_in(&self, span: Span) -> std::ops::Range<usize> {
        let before = |at: Ns| self.host.partition_point(|event| event.span.start < at);
        before(span.start)..before(span.end).max(before(span.start))
    }

    /// The entries of [`by_launch`](Self::by_launch) within `span`.
    fn launches_in(&self, span: Span) -> &[(Ns, u32)] {
        let before = |at: Ns| self.by_launch.partition_point(|entry| entry.0 < at);
        let from = before(span.start);
        &self.by_launch[from..before(span.end).max(from)]
    }

    /// What `work` waits for by the order of a stream.
    fn awaited(&self, work: u32) -> &[(u32, u32)] {
        let waits = &self.waits.of_work;
        let from = waits.partition_point(|wait| wait.0 < work);
        let to = waits.partition_point(|wait| wait.0 <= work);
        &waits[from..to]
    }
}

/// The critical path of a range.
pub(super) struct Found<'a> {
    pub(super) range: Range<'a>,
    /// False when the range was left out: too much lies in several ranges.
    pub(super) examined: bool,
    pub(super) nodes: usize,
    pub(super) left_out: u64,
    /// By type.
    pub(super) counts: [u64; EdgeType::ALL.len()],
    pub(super) extent: Ns,
    /// The edges of the path, in order, with the times at which they start.
    pub(super) path: Vec<(Ns, Edge)>,
    /// Their time.
    pub(super) length: Ns,
}

/// Finds the paths of one range after the other.
pub(super) struct Finder<'a, 'p> {
    view: &'p View<'a>,
    parts: &'p Parts<'a>,
    graph: Graph,
    /// Nodes of host events and of work; [`NONE`] outside of the range.
    host: Vec<[NodeId; 2]>,
    work: Vec<[NodeId; 2]>,
    /// How many events may still be looked at: ranges that lie in one another must not make it take
    /// quadratic time.
    budget: usize,
}

const NOWHERE: [NodeId; 2] = [NONE; 2];

impl<'a, 'p> Finder<'a, 'p> {
    pub(super) fn new(view: &'p View<'a>, parts: &'p Parts<'a>) -> Self {
        let (host, works) = (parts.host.len(), parts.works.len());
        Self {
            view,
            parts,
            graph: Graph::default(),
            host: vec![NOWHERE; host],
            work: vec![NOWHERE; works],
            budget: (host + works).saturating_mul(16).saturating_add(1000),
        }
    }

    pub(super) fn find(&mut self, range: Range<'a>) -> Found<'a> {
        let host = self.parts.host_in(range.span);
        let launches = self.parts.launches_in(range.span);
        let size = host.len() + launches.len();
        let examined = size <= self.budget;
        if !examined {
            return Found {
                range,
                examined,
                nodes: 0,
                left_out: 0,
                counts: [0; EdgeType::ALL.len()],
                extent: Ns::ZERO,
                path: Vec::new(),
                length: Ns::ZERO,
            };
        }
        self.budget -= size;
        self.graph = Graph::default();
        let numbers = self.on_host(host, range.process);
        let works = self.on_devices(launches);
        self.host_waits(range.span, &works);
        let graph = &self.graph;
        let mut counts = [0; EdgeType::ALL.len()];
        for edge in &graph.edges {
            counts[edge.kind as usize] += 1;
        }
        let path = graph.longest_path().into_iter().map(|number| {
            let edge = graph.edges[number];
            (graph.times[edge.from as usize], edge)
        });
        let path: Vec<(Ns, Edge)> = path.collect();
        let found = Found {
            range,
            examined,
            nodes: graph.times.len(),
            left_out: graph.left_out,
            counts,
            extent: graph.extent(),
            length: path.iter().map(|(_, edge)| edge.weight).sum(),
            path,
        };
        for number in numbers {
            self.host[number as usize] = NOWHERE;
        }
        for number in works {
            self.work[number as usize] = NOWHERE;
        }
        found
    }

    /// Adds host events; gives those that are in the graph.
    fn on_host(&mut self, range: std::ops::Range<usize>, process: Option<usize>) -> Vec<u32> {
        let parts = self.parts;
        let threads = &self.view.dissection.processes.threads;
        // What takes no time and launches nothing is nobody's cause.
        let counts = |number: &u32| {
            let event = &parts.host[*number as usize];
            let of_process =
                process.is_none_or(|process| threads[event.thread as usize].process == process);
            of_process
                && (!event.span.is_empty() || parts.launches.binary_search(&event.event).is_ok())
        };
        let mut numbers: Vec<u32> = range
            .filter_map(|number| u32::try_from(number).ok())
            .filter(counts)
            .collect();
        let thread = |number: &u32| parts.host[*number as usize].thread;
        numbers.sort_by_key(|number| parts.rank[thread(number) as usize]);
        for same in numbers.chunk_by(|a, b| thread(a) == thread(b)) {
            self.chain(same);
        }
        numbers
    }

    /// Adds the nodes of one thread, each with an edge from the one before it.
    fn chain(&mut self, numbers: &[u32]) {
        let mut points: Vec<Point> = Vec::with_capacity(numbers.len() * 2);
        for number in numbers {
            points.extend(Point::of(*number, self.parts.host[*number as usize].span));
        }
        points.sort_unstable();
        let mut open: Vec<u32> = Vec::new();
        let (mut depth, mut loading) = (0_usize, 0_usize);
        let mut last: Option<NodeId> = None;
        for point in points {
            let event = self.parts.host[point.number as usize];
            let node = self.graph.node(point.at);
            self.host[point.number as usize][usize::from(point.is_end)] = node;
            // The innermost one that is open: it started last.
            while let Some(top) = open.last()
                && self.host[*top as usize][1] != NONE
                && *top != point.number
            {
                open.pop();
            }
            let owner = open
                .last()
                .map_or(Owner::Nobody, |top| Owner::Host(*top, loading > 0));
            if let Some(last) = last {
                if depth == 0 {
                    self.graph
                        .untimed(last, node, EdgeType::Dependency, Owner::Nobody);
                } else if point.is_end && event.blocking {
                    self.graph
                        .untimed(last, node, EdgeType::OperatorKernel, owner);
                } else {
                    self.graph
                        .timed(last, node, EdgeType::OperatorKernel, owner);
                }
            }
            if point.is_end {
                depth -= 1;
                loading -= usize::from(event.is_loading());
            } else {
                open.push(point.number);
                depth += 1;
                loading += usize::from(event.is_loading());
            }
            last = Some(node);
        }
    }

    /// Adds the work of `launches` whose call is in the graph; gives it by stream and start.
    fn on_devices(&mut self, launches: &[(Ns, u32)]) -> Vec<u32> {
        let parts = self.parts;
        let launch_node = |finder: &Self, work: u32| {
            let launch = finder.view.launch(parts.works[work as usize])?;
            let call = parts.host_number(launch.event)?;
            let node = finder.host[call as usize][0];
            (node != NONE).then_some((node, launch.at))
        };
        let mut numbers: Vec<u32> = launches
            .iter()
            .map(|entry| entry.1)
            .filter(|work| launch_node(self, *work).is_some())
            .collect();
        numbers.sort_unstable();
        for number in &numbers {
            let span = parts.works[*number as usize].span;
            self.work[*number as usize] = [self.graph.node(span.start), self.graph.node(span.end)];
        }
        let lane = |number: u32| parts.works[number as usize].lane;
        for same in numbers.chunk_by(|a, b| lane(*a) == lane(*b)) {
            let mut last: Option<u32> = None;
            for number in same {
                if let Some((call, at)) = launch_node(self, *number) {
                    self.one_work(*number, call, at, last);
                }
                let end = |number: u32| parts.works[number as usize].span.end;
                if last.is_none_or(|last| end(*number) >= end(last)) {
                    last = Some(*number);
                }
            }
        }
        numbers
    }

    /// Adds the edges of one piece of work: `call` launched it at `launched`, and `last` is what ended last
    /// before it on its stream.
    fn one_work(&mut self, number: u32, call: NodeId, launched: Ns, last: Option<u32>) {
        let parts = self.parts;
        let [start, end] = self.work[number as usize];
        let kind = EdgeType::OperatorKernel;
        self.graph.timed(start, end, kind, Owner::Work(number));
        let mut synced: Option<Ns> = None;
        for (_, source) in parts.awaited(number) {
            let node = self.work[*source as usize][1];
            if node != NONE {
                let kind = EdgeType::SyncDependency;
                self.graph.untimed(node, start, kind, Owner::Nobody);
                synced = synced.max(Some(parts.works[*source as usize].span.end));
            }
        }
        let before = |end: Option<Ns>, at: Ns| end.is_none_or(|end| end < at);
        if before(parts.free[number as usize], launched) && before(synced, launched) {
            let kind = EdgeType::KernelLaunchDelay;
            self.graph.timed(call, start, kind, Owner::Work(number));
            return;
        }
        let Some(last) = last else {
            return;
        };
        let [last_start, last_end] = self.work[last as usize];
        let times = &self.graph.times;
        if !before(synced, times[last_end as usize]) {
            return;
        }
        if times[last_end as usize] <= times[start as usize] {
            let kind = EdgeType::KernelKernelDelay;
            self.graph.timed(last_end, start, kind, Owner::Work(number));
        } else {
            self.graph.timed(last_start, start, kind, Owner::Work(last));
        }
    }

    /// Adds the edges from `works` to the calls within `span` that wait for them.
    fn host_waits(&mut self, span: Span, works: &[u32]) {
        let parts = self.parts;
        let mut lanes: Vec<Lane> = Vec::new();
        for same in
            works.chunk_by(|a, b| parts.works[*a as usize].lane == parts.works[*b as usize].lane)
        {
            lanes.push(Lane::new(parts, same));
        }
        let waits = &parts.waits.of_host;
        let before = |at: Ns| waits.partition_point(|wait| wait.called < at);
        let from = before(span.start);
        // Every wait for a device has an edge from each of its streams.
        let mut most = self
            .graph
            .times
            .len()
            .saturating_mul(8)
            .saturating_add(1000);
        for wait in &waits[from..before(span.end).max(from)] {
            let call = parts.host_number(wait.call);
            let Some(node) = call.map(|call| self.host[call as usize][1]) else {
                continue;
            };
            if node == NONE {
                continue;
            }
            let awaited: Vec<u32> = match wait.awaited {
                Awaited::Work(work) => vec![work],
                Awaited::Device(device) => {
                    let of_device = Lane::among(&lanes, |lane| lane.key.0.cmp(&device));
                    of_device
                        .iter()
                        .filter_map(|lane| lane.last(wait.at))
                        .collect()
                }
                Awaited::Stream(device, stream) => {
                    let key = (device, 1, stream);
                    let of_stream = Lane::among(&lanes, |lane| lane.key.cmp(&key));
                    of_stream
                        .iter()
                        .filter_map(|lane| lane.last(wait.at))
                        .collect()
                }
            };
            for work in awaited {
                let from = self.work[work as usize][1];
                if from != NONE {
                    let kind = EdgeType::SyncDependency;
                    self.graph.untimed(from, node, kind, Owner::Nobody);
                    most = most.saturating_sub(1);
                }
            }
            if most == 0 {
                break;
            }
        }
    }
}

/// The start or end of a host event, in the order in which a thread gets there.
///
/// At one instant, first end those that started before (the inner ones first), then others start (the
/// outer ones first), and what takes no time starts and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    at: Ns,
    order: u8,
    tie: i64,
    place: i64,
    is_end: bool,
    number: u32,
}

impl Point {
    fn of(number: u32, span: Span) -> [Self; 2] {
        let place = i64::from(number);
        let (start, end) = if span.is_empty() {
            ((2, 0, place), (2, 0, place))
        } else {
            ((1, -span.end.0, place), (0, -span.start.0, -place))
        };
        let point = |at, (order, tie, place), is_end| Self {
            at,
            order,
            tie,
            place,
            is_end,
            number,
        };
        [
            point(span.start, start, false),
            point(span.end.max(span.start), end, true),
        ]
    }
}

/// The work of one stream.
struct Lane {
    /// Device, kind of the stream's number (1: an integer) and the number: work is in this order.
    key: (i64, u8, i64),
    starts: Vec<Ns>,
    /// Of the work so far, the number of the piece that ends last.
    ends_last: Vec<u32>,
}

impl Lane {
    fn new(parts: &Parts<'_>, numbers: &[u32]) -> Self {
        let work = |number: u32| parts.works[number as usize];
        let mut ends_last: Vec<u32> = Vec::with_capacity(numbers.len());
        for number in numbers {
            let best = ends_last
                .last()
                .copied()
                .filter(|last| work(*last).span.end > work(*number).span.end);
            ends_last.push(best.unwrap_or(*number));
        }
        let first = work(numbers[0]);
        let (kind, stream) = match first.stream {
            Ident::Missing => (0, 0),
            Ident::Int(number) => (1, number),
            Ident::Text(_) => (2, 0),
        };
        Self {
            key: (first.device, kind, stream),
            starts: numbers
                .iter()
                .map(|number| work(*number).span.start)
                .collect(),
            ends_last,
        }
    }

    /// The lanes, which are in order, that `order` finds equal.
    fn among(lanes: &[Self], order: impl Fn(&Self) -> std::cmp::Ordering) -> &[Self] {
        let from = lanes.partition_point(|lane| order(lane).is_lt());
        let to = lanes.partition_point(|lane| order(lane).is_le());
        &lanes[from..to]
    }

    /// Of what started before `at`, the number of the piece that ends last.
    fn last(&self, at: Ns) -> Option<u32> {
        let before = self.starts.partition_point(|start| *start < at);
        self.ends_last[..before].last().copied()
    }
}
