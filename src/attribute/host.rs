//! Host threads: operators nested by containment, annotations, launches.
//!
//! ```text
//! thread ──┬─ aten::linear ───────────────┐        parent: none
//!          │   ├─ aten::t ─┐              │        parent: linear
//!          │   └───────────┘ ├─ addmm ──┐ │        parent: linear
//!          │                 └──────────┘ │
//!          └──────────────────────────────┘
//! ```
//! Children start inside their parent; they may end up to 1 µs after it (clocks bleed in real
//! files). An operator that ends later than that is no child: it lies beside, and what starts in
//! both belongs to the one that ends first.

use rayon::prelude::*;

use super::names::Names;
use super::phase::Marker;
use super::table::OtherKind;
use crate::model::{ActivityType, EventId, Ident, Ph, StrId, Trace, TrackId};
use crate::units::{Ns, Span};

/// How far a child may end after its parent.
const BLEED: Ns = Ns(1000);

/// How many open operators are looked through for a parent. Real threads nest some dozens deep;
/// the bound keeps threads that are made to overlap from taking quadratic time.
const MAX_WALK: usize = 512;

/// No parent, no node.
pub(crate) const NONE: u32 = u32::MAX;

/// A host operator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op {
    pub(crate) event: EventId,
    pub(crate) span: Span,
    pub(crate) name: StrId,
    pub(crate) dims: StrId,
    /// `Sequence number`; negative when absent.
    pub(crate) sequence: i64,
    /// `Fwd thread id`; 0 when absent.
    pub(crate) fwd_thread: i32,
    /// The operator around it on its thread.
    pub(crate) parent: u32,
    /// The innermost autograd node around it or itself.
    pub(crate) node: u32,
    /// The outermost operator around it or itself.
    pub(crate) root: u32,
    pub(crate) self_ns: Ns,
}

/// A `record_function` range that later stages use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Annotation {
    pub(crate) event: EventId,
    pub(crate) span: Span,
    pub(crate) marker: Option<Marker>,
    pub(crate) other: Option<OtherKind>,
    pub(crate) step: Option<u64>,
    pub(crate) optimizer_range: bool,
}

/// A moment on a thread at which device work was launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Ns,
    /// The caller's number for it.
    pub(crate) key: u32,
}

/// One host thread.
#[derive(Debug)]
pub(crate) struct HostThread {
    pub(crate) pid: Ident,
    pub(crate) tid: Ident,
    /// Sorted by start, longest first.
    pub(crate) ops: Vec<Op>,
    /// Sorted by start, longest first.
    pub(crate) annotations: Vec<Annotation>,
    /// Spans of Python frames that re-run checkpointed bodies.
    pub(crate) recompute_frames: Vec<Span>,
    /// True when an operator's subtree (by root) has a sequence number.
    pub(crate) root_has_sequence: Vec<bool>,
    /// True when the engine ran nodes here.
    pub(crate) has_engine: bool,
}

/// Every host thread of one trace.
pub(crate) struct Host {
    pub(crate) threads: Vec<HostThread>,
    /// Thread of a track, or [`NONE`].
    thread_of: Vec<u32>,
    /// Some operator has a sequence number.
    pub(crate) records_sequence: bool,
    /// Some operator is an engine event.
    pub(crate) records_engine: bool,
    /// Marks of code compiled by Dynamo.
    pub(crate) has_compiled: bool,
}

impl Host {
    pub(crate) fn new(trace: &Trace, names: &Names) -> Self {
        let events = &trace.events;
        let mut threads: Vec<HostThread> = Vec::new();
        let mut thread_of = vec![NONE; trace.tracks.len()];
        let mut frames: Vec<Vec<(Span, super::names::CheckpointFrame)>> = Vec::new();
        let mut recompute_fn = false;
        let mut has_compiled = false;
        let mut records_engine = false;
        for id in events.ids() {
            let activity = events.activity(id);
            let starts_flow =
                activity == ActivityType::LaunchFlow && events.ph(id) == Ph::FLOW_START;
            if activity.is_launch() || starts_flow {
                // A thread that only launches still has the phases of its process.
                let slot = &mut thread_of[events.track(id).index()];
                if *slot == NONE {
                    *slot = u32::try_from(threads.len()).expect("no more threads than tracks");
                    threads.push(HostThread::new(trace, events.track(id)));
                    frames.push(Vec::new());
                }
                continue;
            }
            let wanted = matches!(
                activity,
                ActivityType::CpuOp | ActivityType::UserAnnotation | ActivityType::PythonFunction
            );
            if !wanted || !events.is_complete(id) {
                continue;
            }
            let facts = names.get(events.name(id));
            if activity == ActivityType::PythonFunction && facts.checkpoint_frame.is_none() {
                continue;
            }
            let track = events.track(id);
            let slot = &mut thread_of[track.index()];
            if *slot == NONE {
                *slot = u32::try_from(threads.len()).expect("no more threads than tracks");
                threads.push(HostThread::new(trace, track));
                frames.push(Vec::new());
            }
            let place = *slot as usize;
            let thread = &mut threads[place];
            let span = span_of(trace, id);
            has_compiled |= facts.compiled;
            if let Some(frame) = facts.checkpoint_frame {
                recompute_fn |= frame == super::names::CheckpointFrame::RecomputeFn;
                frames[place].push((span, frame));
            } else if activity == ActivityType::CpuOp
                && facts.step.is_none()
                && !facts.optimizer_range
            {
                records_engine |= facts.engine.is_some();
                thread.ops.push(op_of(trace, id, span));
            } else {
                thread.annotations.push(Annotation {
                    event: id,
                    span,
                    marker: facts.marker,
                    other: facts.other,
                    step: facts.step,
                    optimizer_range: facts.optimizer_range,
                });
            }
        }
        for (thread, frames) in threads.iter_mut().zip(frames) {
            let wanted = if recompute_fn {
                super::names::CheckpointFrame::RecomputeFn
            } else {
                super::names::CheckpointFrame::UnpackHook
            };
            thread.recompute_frames = super::interval::union(
                frames
                    .into_iter()
                    .filter(|(_, frame)| *frame == wanted)
                    .map(|(span, _)| span),
            );
        }
        threads
            .par_iter_mut()
            .for_each(|thread| thread.nest(trace, names, records_engine));
        let records_sequence = threads
            .iter()
            .any(|thread| thread.ops.iter().any(|op| op.sequence >= 0));
        Self {
            threads,
            thread_of,
            records_sequence,
            records_engine,
            has_compiled,
        }
    }

    /// The thread that has the row `track`.
    pub(crate) fn thread(&self, track: TrackId) -> Option<usize> {
        let place = self.thread_of[track.index()];
        (place != NONE).then_some(place as usize)
    }
}

impl HostThread {
    fn new(trace: &Trace, track: TrackId) -> Self {
        let track = trace.tracks.get(track);
        Self {
            pid: track.pid,
            tid: track.tid,
            ops: Vec::new(),
            annotations: Vec::new(),
            recompute_frames: Vec::new(),
            root_has_sequence: Vec::new(),
            has_engine: false,
        }
    }

    /// Sorts the operators and finds parents, nodes, roots and self times.
    fn nest(&mut self, trace: &Trace, names: &Names, records_engine: bool) {
        // What is unlike about operators of one span; absent counts as nought.
        let numbers = |op: &Op| {
            let args = trace.events.op_args(op.event);
            let index = args.map_or(0, |args| args.index.wrapping_add(1));
            let external = args.map_or(0, |args| args.external);
            (index, external, op.sequence, op.fwd_thread)
        };
        let text = |op: &Op| (trace.strings.get(op.name), trace.strings.get(op.dims));
        // Files have the operators of a thread in order, or nearly: this sort makes use of that.
        self.ops.par_sort_by(|a, b| {
            (a.span.start, b.span.end)
                .cmp(&(b.span.start, a.span.end))
                .then_with(|| numbers(a).cmp(&numbers(b)))
                .then_with(|| text(a).cmp(&text(b)))
        });
        self.annotations.sort_unstable_by(|a, b| {
            (a.span.start, b.span.end)
                .cmp(&(b.span.start, a.span.end))
                .then_with(|| trace.name(a.event).cmp(trace.name(b.event)))
        });
        let mut open = OpenOps::default();
        for place in 0..self.ops.len() {
            let start = self.ops[place].span.start;
            open.close_until(&mut self.ops, start);
            open.open(&mut self.ops, place);
        }
        open.close_until(&mut self.ops, Ns(i64::MAX));
        self.root_has_sequence = vec![false; self.ops.len()];
        for place in 0..self.ops.len() {
            let op = self.ops[place];
            let own = u32::try_from(place).expect("fewer than 2^32 operators");
            let facts = names.get(op.name);
            let is_node = op.fwd_thread > 0
                || facts.engine.is_some()
                || facts.accumulate_grad
                || (!records_engine && facts.backward_node);
            let (node, root) = match op.parent {
                NONE => (NONE, own),
                parent => (
                    self.ops[parent as usize].node,
                    self.ops[parent as usize].root,
                ),
            };
            self.ops[place].node = if is_node { own } else { node };
            self.ops[place].root = root;
            self.root_has_sequence[root as usize] |= op.sequence >= 0;
            self.has_engine |= facts.engine.is_some();
        }
    }

    /// The innermost operator open at each moment. `moments` must be sorted by time.
    pub(crate) fn innermost_at(&self, moments: &[Moment]) -> Vec<u32> {
        let mut open = Vec::<u32>::new();
        let mut next = 0;
        let mut found = Vec::with_capacity(moments.len());
        let end_of = |op: u32| self.ops[op as usize].span.end;
        for moment in moments {
            while next < self.ops.len() && self.ops[next].span.start <= moment.at {
                let span = self.ops[next].span;
                while open.last().is_some_and(|top| end_of(*top) <= span.start) {
                    open.pop();
                }
                let place = place_among(&open, span, end_of);
                if let Some(place) = place {
                    open.insert(
                        place,
                        u32::try_from(next).expect("fewer than 2^32 operators"),
                    );
                }
                next += 1;
            }
            while open.last().is_some_and(|top| end_of(*top) <= moment.at) {
                open.pop();
            }
            found.push(open.last().copied().unwrap_or(NONE));
        }
        found
    }
}

/// Where an operator goes among the open ones, which end ever sooner: below those that end more
/// than [`BLEED`] before it. `None` when that is too far down.
fn place_among(open: &[u32], span: Span, end_of: impl Fn(u32) -> Ns) -> Option<usize> {
    let floor = open.len().saturating_sub(MAX_WALK);
    let mut place = open.len();
    while place > floor && span.end > end_of(open[place - 1]) + BLEED {
        place -= 1;
    }
    (place == 0 || span.end <= end_of(open[place - 1]) + BLEED).then_some(place)
}

/// The operators open at the point a sweep has reached.
#[derive(Default)]
struct OpenOps {
    open: Vec<u32>,
    cursor: Ns,
}

impl OpenOps {
    /// Gives the time up to `until` to the innermost open operators and closes those that end.
    fn close_until(&mut self, ops: &mut [Op], until: Ns) {
        while let Some(top) = self.open.last() {
            let op = &mut ops[*top as usize];
            let end = op.span.end.min(until);
            if end > self.cursor {
                op.self_ns += end - self.cursor;
                self.cursor = end;
            }
            if op.span.end > until {
                break;
            }
            self.open.pop();
        }
        self.cursor = self.cursor.max(until);
    }

    fn open(&mut self, ops: &mut [Op], place: usize) {
        let span = ops[place].span;
        let Some(among) = place_among(&self.open, span, |op| ops[op as usize].span.end) else {
            // Too far down to be seen from here: it keeps to itself.
            ops[place].parent = NONE;
            return;
        };
        // A bleeding child may have outlived the operator below it.
        ops[place].parent = self.open[..among]
            .iter()
            .rev()
            .copied()
            .find(|below| ops[*below as usize].span.end > span.start)
            .unwrap_or(NONE);
        self.open.insert(
            among,
            u32::try_from(place).expect("fewer than 2^32 operators"),
        );
    }
}

pub(crate) fn span_of(trace: &Trace, id: EventId) -> Span {
    let start = trace.events.ts(id).unwrap_or_default();
    let dur = trace.events.dur(id).unwrap_or_default();
    Span::new(start, start + dur)
}

fn op_of(trace: &Trace, id: EventId, span: Span) -> Op {
    let args = trace.events.op_args(id);
    Op {
        event: id,
        span,
        name: trace.events.name(id),
        dims: args.map_or(StrId::EMPTY, |args| args.dims),
        sequence: args.map_or(-1, |args| args.sequence),
        fwd_thread: args.map_or(0, |args| args.fwd_thread),
        parent: NONE,
        node: NONE,
        root: NONE,
        self_ns: Ns::ZERO,
    }
}
