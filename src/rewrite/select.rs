//! Which events belong to a part of a trace.
//!
//! ```text
//!                  ├───── part ─────┤
//! host    ├── train ─────────────────────────┤     open at the start: kept whole
//!           ├ step 3 ┤├─ step 4 ───┤├ step 5 ┤
//!               launch   launch launch   launch
//!                   └──┐     └──┐   └──────┐
//! device         ├─ a ─┤├─ b ──┤├─ c ─┤      ├ d ┤
//!                          kept    kept
//! ```
//! Device work goes with its launch, whenever it runs, so that the part has the same work as the
//! attribution counts for it.

use foldhash::{HashMap, HashSet};

use super::link::Chain;
use super::slice::SliceOptions;
use crate::attribute::{Anchors, NOWHERE};
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::pairs;
use crate::model::{ActivityType, EventFlags, EventId, Ph, StrId, Trace, TrackId};
use crate::units::{Ns, Span};

/// The events to keep, by their number in the event array.
pub(super) struct Selection {
    keep: Vec<bool>,
    pub(super) device_events: u64,
    /// Numbers of the steps in it.
    pub(super) steps: Vec<u64>,
}

impl Selection {
    /// The events of `trace` that `options` ask for.
    /// `chains` are those of [`Links`](super::link::Links).
    pub(super) fn new(trace: &Trace, options: &SliceOptions, chains: &[Chain]) -> Result<Self> {
        let anchors = Anchors::new(trace);
        let mut steps = Vec::new();
        let part = if let Some(range) = options.steps {
            let wanted = |number: u64| (range.first..=range.last).contains(&number);
            let selected: Vec<bool> = anchors.steps.iter().map(|it| wanted(it.number)).collect();
            let numbers = anchors.steps.iter().map(|step| step.number);
            steps.extend(numbers.filter(|number| wanted(*number)));
            steps.sort_unstable();
            steps.dedup();
            if steps.is_empty() {
                return Err(no_steps(&anchors));
            }
            Part::of_steps(trace, &anchors, selected)
        } else {
            match options.time {
                Some(time) if !time.is_all() => {
                    let first = first_start(trace);
                    Part::Time(Span::new(first + time.start, first + time.end))
                }
                _ => Part::All,
            }
        };
        let mut chosen = Chosen {
            trace,
            anchors: &anchors,
            part: &part,
            keep: vec![false; trace.events.len()],
            categories: categories(trace, &options.categories)?,
        };
        chosen.choose(chains);
        let selection = Self {
            device_events: anchors
                .work
                .iter()
                .filter(|work| chosen.keep[work.event.index()])
                .count() as u64,
            keep: chosen.keep,
            steps,
        };
        let is_empty = trace
            .events
            .ids()
            .all(|id| !selection.keeps(id.index()) || trace.events.ph(id) == Ph::METADATA);
        let is_whole = matches!(part, Part::All) && options.categories.is_empty();
        if is_empty && !is_whole {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("no event is in that part; {}", length(trace)),
            ));
        }
        Ok(selection)
    }

    /// True for an event to keep.
    pub(super) fn keeps(&self, number: usize) -> bool {
        self.keep.get(number).copied().unwrap_or(false)
    }

    /// How many events are kept.
    pub(super) fn count(&self) -> u64 {
        self.keep.iter().filter(|keep| **keep).count() as u64
    }
}

fn no_steps(anchors: &Anchors) -> Error {
    let numbers = || anchors.steps.iter().map(|step| step.number);
    let message = match (numbers().min(), numbers().max()) {
        (Some(first), Some(last)) => {
            format!("no such step; the trace has ProfilerStep#{first} to ProfilerStep#{last}")
        }
        _ => "the trace has no ProfilerStep annotations; ask for a time instead".to_owned(),
    };
    Error::new(ErrorKind::Usage, message)
}

/// The start of the first event.
fn first_start(trace: &Trace) -> Ns {
    let events = &trace.events;
    let starts = events.ids().filter(|id| is_timed(trace, *id));
    starts
        .filter_map(|id| events.ts(id))
        .min()
        .unwrap_or_default()
}

/// How long the trace is, in words.
fn length(trace: &Trace) -> String {
    let events = &trace.events;
    let ends = events.ids().filter(|id| is_timed(trace, *id));
    let end = ends
        .filter_map(|id| Some(events.ts(id)? + events.dur(id).unwrap_or_default()))
        .max()
        .unwrap_or_default();
    let length = end - first_start(trace);
    format!("the trace is {:.6} s long", length.0 as f64 / 1e9)
}

fn is_timed(trace: &Trace, id: EventId) -> bool {
    let events = &trace.events;
    matches!(events.ph(id), Ph::COMPLETE | Ph::BEGIN) && !events.flags(id).has(EventFlags::EXCLUDED)
}

/// By string: it names one of the categories to keep; `None` keeps all.
fn categories(trace: &Trace, names: &[String]) -> Result<Option<Vec<bool>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut used = vec![false; trace.strings.len()];
    for id in trace.events.ids() {
        used[trace.events.cat(id).index()] = true;
    }
    let mut wanted = vec![false; used.len()];
    for name in names {
        let mut found = false;
        for (id, text) in trace.strings.iter() {
            if used[id.index()] && !text.is_empty() && text.eq_ignore_ascii_case(name) {
                wanted[id.index()] = true;
                found = true;
            }
        }
        if !found {
            let message = format!("no event is of category '{name}'");
            return Err(Error::new(ErrorKind::Usage, message));
        }
    }
    Ok(Some(wanted))
}

/// A part of a trace.
enum Part {
    All,
    Time(Span),
    Steps {
        selected: Vec<bool>,
        /// Annotations of steps.
        events: HashMap<EventId, bool>,
        /// By process that has steps: when the selected ones start.
        starts: HashMap<usize, Vec<Ns>>,
        /// When they start for the other processes.
        default: Vec<Ns>,
    },
}

impl Part {
    fn of_steps(trace: &Trace, anchors: &Anchors, selected: Vec<bool>) -> Self {
        let mut events = HashMap::default();
        let mut starts = HashMap::<usize, Vec<Ns>>::default();
        let mut default = Vec::new();
        for (number, (step, selected)) in anchors.steps.iter().zip(&selected).enumerate() {
            events.insert(step.event, *selected);
            let process = anchors.process(trace, trace.events.track(step.event));
            let own = starts.entry(process).or_default();
            if !selected {
                continue;
            }
            let start = step.span.start;
            if anchors.step_at(process, start) == Some(number) {
                own.push(start);
            }
            if anchors.step_at(NOWHERE, start) == Some(number) {
                default.push(start);
            }
        }
        // Steps are in order of time.
        Self::Steps {
            selected,
            events,
            starts,
            default,
        }
    }

    /// True when an event of `track` that starts at `at` starts in the part.
    fn holds(&self, trace: &Trace, anchors: &Anchors, track: TrackId, at: Ns) -> bool {
        match self {
            Self::All => true,
            Self::Time(span) => span.contains(at),
            Self::Steps { selected, .. } => anchors
                .step_at(anchors.process(trace, track), at)
                .is_some_and(|step| selected[step]),
        }
    }

    /// True when the part, or a step of it, starts inside `span`.
    fn starts_inside(&self, trace: &Trace, anchors: &Anchors, track: TrackId, span: Span) -> bool {
        match self {
            Self::All => true,
            Self::Time(part) => span.start < part.start && part.start < span.end,
            Self::Steps {
                starts, default, ..
            } => {
                let process = anchors.process(trace, track);
                let starts = starts.get(&process).unwrap_or(default);
                let next = starts.partition_point(|start| *start <= span.start);
                starts.get(next).is_some_and(|start| *start < span.end)
            }
        }
    }

    /// True for the annotation of a step that was not asked for.
    fn is_other_step(&self, event: EventId) -> bool {
        match self {
            Self::Steps { events, .. } => events.get(&event) == Some(&false),
            Self::All | Self::Time(_) => false,
        }
    }
}

struct Chosen<'a> {
    trace: &'a Trace,
    anchors: &'a Anchors,
    part: &'a Part,
    keep: Vec<bool>,
    categories: Option<Vec<bool>>,
}

impl Chosen<'_> {
    fn choose(&mut self, chains: &[Chain]) {
        if matches!(self.part, Part::All) {
            self.keep.fill(true);
        } else {
            self.host();
            self.device();
            if self.anchors.inferred {
                self.next_steps();
            }
        }
        self.filter();
        if !matches!(self.part, Part::All) {
            self.chains(chains);
        }
        if !matches!(self.part, Part::All) || self.categories.is_some() {
            self.ends();
            self.flows();
        }
    }

    /// Events of the host that start in the part, and ranges that are open at its start.
    fn host(&mut self) {
        let events = &self.trace.events;
        for id in events.ids() {
            let activity = events.activity(id);
            let keep = match events.ph(id) {
                Ph::METADATA => true,
                Ph::END => false,
                _ if activity.is_device_work() || is_on_device_row(activity) => false,
                _ => match events.ts(id) {
                    Some(at) => self.is_in_part(id, at) || self.is_open(id, activity),
                    None => false,
                },
            };
            self.keep[id.index()] = keep;
        }
    }

    fn is_in_part(&self, id: EventId, at: Ns) -> bool {
        let track = self.trace.events.track(id);
        self.part.holds(self.trace, self.anchors, track, at)
    }

    fn is_open(&self, id: EventId, activity: ActivityType) -> bool {
        let events = &self.trace.events;
        // The work of a call from before is not kept, so neither is the call.
        if activity.is_launch() || !events.is_complete(id) || self.part.is_other_step(id) {
            return false;
        }
        let span = self.span(id);
        let track = events.track(id);
        self.part
            .starts_inside(self.trace, self.anchors, track, span)
    }

    fn span(&self, id: EventId) -> Span {
        let events = &self.trace.events;
        let start = events.ts(id).unwrap_or_default();
        Span::new(start, start + events.dur(id).unwrap_or_default())
    }

    /// Device work whose launch is in the part, and what else is on device rows meanwhile.
    fn device(&mut self) {
        let events = &self.trace.events;
        let mut extent: Option<Span> = None;
        let mut needs_first_call = false;
        for work in &self.anchors.work {
            let keep = match work.launch {
                Some(launch) => {
                    let at = events.ts(launch).unwrap_or_default();
                    self.is_in_part(launch, at)
                }
                None => match self.part {
                    Part::Time(span) => span.contains(work.span.start),
                    Part::All | Part::Steps { .. } => false,
                },
            };
            if !keep {
                continue;
            }
            self.keep[work.event.index()] = true;
            needs_first_call |= !work.by_correlation;
            let whole = extent.get_or_insert(work.span);
            *whole = Span::new(
                whole.start.min(work.span.start),
                whole.end.max(work.span.end),
            );
        }
        if needs_first_call {
            self.keep_first_call();
        }
        for id in events.ids() {
            if !is_on_device_row(events.activity(id)) || events.ph(id) == Ph::METADATA {
                continue;
            }
            let Some(at) = events.ts(id) else { continue };
            let span = self.span(id);
            let during = extent.is_some_and(|extent| at <= extent.end && span.end >= extent.start);
            let inside = matches!(self.part, Part::Time(span) if span.contains(at));
            self.keep[id.index()] = during || (extent.is_none() && inside);
        }
    }

    /// Keeps the call with the smallest correlation: it tells work that was launched before the
    /// capture from work that has lost its launch.
    fn keep_first_call(&mut self) {
        let events = &self.trace.events;
        let first = events
            .ids()
            .filter(|id| events.activity(*id).is_launch() && events.is_complete(*id))
            .filter_map(|id| Some((events.launch_args(id)?.correlation, id)))
            .filter(|(correlation, _)| *correlation != 0)
            .min();
        if let Some((_, id)) = first {
            self.keep[id.index()] = true;
        }
    }

    /// Keeps the annotation of the step behind each selected one, where phases follow from the order
    /// of events: what is behind the optimizer is forward work or not by whether a step follows.
    fn next_steps(&mut self) {
        let Part::Steps { selected, .. } = self.part else {
            return;
        };
        let steps = &self.anchors.steps;
        let mut last = HashMap::<usize, bool>::default();
        for (step, selected) in steps.iter().zip(selected) {
            let track = self.trace.events.track(step.event);
            let process = self.anchors.process(self.trace, track);
            if last.insert(process, *selected) == Some(true) {
                self.keep[step.event.index()] = true;
            }
        }
    }

    /// Keeps only events of the wanted categories. What has none of its own goes with others.
    fn filter(&mut self) {
        let Some(wanted) = &self.categories else {
            return;
        };
        let events = &self.trace.events;
        for id in events.ids() {
            let follows = matches!(events.ph(id), Ph::METADATA | Ph::END);
            self.keep[id.index()] &= follows || wanted[events.cat(id).index()];
        }
    }

    /// What belongs together by an id is kept as a whole or not at all: flows whose ends are both in the
    /// part, and ranges that start in it or are open at its start.
    fn chains(&mut self, chains: &[Chain]) {
        let events = &self.trace.events;
        for chain in chains {
            let keep = match (chain.first, &*chain.last) {
                (Some(first), [last, ..]) if chain.is_range => {
                    let at = |id: EventId| events.ts(id).unwrap_or_default();
                    let span = Span::new(at(first), at(*last).max(at(first)));
                    let track = events.track(first);
                    self.keep[first.index()]
                        || (self.is_wanted(first)
                            && self
                                .part
                                .starts_inside(self.trace, self.anchors, track, span))
                }
                (Some(first), []) if chain.is_range => self.keep[first.index()],
                (Some(first), last) => {
                    self.keep[first.index()] && last.iter().any(|id| self.keep[id.index()])
                }
                (None, _) => false,
            };
            for id in &chain.between {
                self.keep[id.index()] &= keep;
            }
            if let Some(first) = chain.first {
                self.keep[first.index()] = keep;
            }
            for id in &chain.last {
                let own = chain.is_range || self.keep[id.index()];
                self.keep[id.index()] = keep && own;
            }
        }
    }

    /// True when the category of an event is one to keep.
    fn is_wanted(&self, id: EventId) -> bool {
        let cat = self.trace.events.cat(id);
        self.categories
            .as_ref()
            .is_none_or(|wanted| wanted[cat.index()])
    }

    /// `E` events go with their `B`.
    fn ends(&mut self) {
        let events = &self.trace.events;
        for id in events.ids().filter(|id| events.ph(*id) == Ph::END) {
            self.keep[id.index()] = false;
        }
        for (begin, end) in pairs(events) {
            if let (Some(begin), Some(end)) = (begin, end) {
                self.keep[end.index()] = self.keep[begin.index()];
            }
        }
    }

    /// Flows are kept where both ends are at events that are.
    fn flows(&mut self) {
        let events = &self.trace.events;
        let mut points: Vec<Point> = events
            .ids()
            .filter(|id| is_flow(events.activity(*id), events.ph(*id)))
            .map(|id| Point {
                track: events.track(id),
                at: events.ts(id).unwrap_or(Ns(i64::MIN)),
                id,
                end: End::Free,
            })
            .collect();
        points.sort_unstable_by_key(|point| (point.track, point.at, point.id));
        self.bind(&mut points);
        let launches: HashSet<EventId> = self
            .anchors
            .work
            .iter()
            .filter(|work| self.keep[work.event.index()])
            .filter_map(|work| work.launch)
            .collect();
        let listed = |cat: StrId| {
            matches!(self.part, Part::All)
                && self
                    .categories
                    .as_ref()
                    .is_some_and(|wanted| wanted[cat.index()])
        };
        let key = |id: EventId| {
            let flow = events.launch_args(id).map_or(0, |args| args.correlation);
            (events.cat(id), flow)
        };
        for point in &mut points {
            if launches.contains(&point.id) {
                point.end = End::Kept;
            }
        }
        let mut sides = HashMap::<(StrId, u64), (bool, bool)>::default();
        for point in points.iter().filter(|point| point.end == End::Kept) {
            let sides = sides.entry(key(point.id)).or_default();
            match events.ph(point.id) {
                Ph::FLOW_START => sides.0 = true,
                Ph::FLOW_END => sides.1 = true,
                _ => {}
            }
        }
        for point in points {
            let whole = sides.get(&key(point.id)) == Some(&(true, true));
            self.keep[point.id.index()] =
                (whole && point.end == End::Kept) || listed(events.cat(point.id));
        }
    }

    /// Finds out which flow points, sorted by row and time, are at events that are kept: at one that
    /// starts there, else inside one.
    fn bind(&self, points: &mut [Point]) {
        let events = &self.trace.events;
        let complete = || {
            let ids = events.ids().filter(|id| events.is_complete(*id));
            ids.map(|id| (id, events.track(id), self.span(id)))
        };
        for (id, track, span) in complete() {
            let from =
                points.partition_point(|point| (point.track, point.at) < (track, span.start));
            let keep = self.keep[id.index()];
            for point in &mut points[from..] {
                if (point.track, point.at) != (track, span.start) {
                    break;
                }
                if point.end == End::Kept || (point.end == End::Dropped && !keep) {
                    // Nothing changes here, nor at the other points of this place.
                    break;
                }
                point.end = if keep { End::Kept } else { End::Dropped };
            }
        }
        let free: HashSet<TrackId> = points
            .iter()
            .filter(|point| point.end == End::Free)
            .map(|point| point.track)
            .collect();
        let mut kept: Vec<(TrackId, Ns, Ns)> = complete()
            .filter(|(id, track, _)| self.keep[id.index()] && free.contains(track))
            .map(|(_, track, span)| (track, span.start, span.end))
            .collect();
        kept.sort_unstable();
        // The latest end of those that start up to here on the row.
        for place in 1..kept.len() {
            if kept[place].0 == kept[place - 1].0 {
                kept[place].2 = kept[place].2.max(kept[place - 1].2);
            }
        }
        for point in points.iter_mut().filter(|point| point.end == End::Free) {
            let behind = kept.partition_point(|kept| (kept.0, kept.1) <= (point.track, point.at));
            let around = kept[..behind].last();
            if around.is_some_and(|kept| kept.0 == point.track && point.at <= kept.2) {
                point.end = End::Kept;
            }
        }
    }
}

/// One end of a flow.
struct Point {
    track: TrackId,
    at: Ns,
    id: EventId,
    end: End,
}

/// What the events say that an end of a flow is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// No event starts there.
    Free,
    /// None of those that start there is kept.
    Dropped,
    /// One is kept.
    Kept,
}

fn is_flow(activity: ActivityType, ph: Ph) -> bool {
    matches!(
        activity,
        ActivityType::LaunchFlow | ActivityType::ForwardBackwardFlow
    ) && matches!(ph.0, b's' | b't' | b'f')
}

/// True for events on the rows of devices that are no work.
fn is_on_device_row(activity: ActivityType) -> bool {
    matches!(
        activity,
        ActivityType::GpuUserAnnotation
            | ActivityType::CudaSync
            | ActivityType::CudaEvent
            | ActivityType::ProfilerRange
    )
}
