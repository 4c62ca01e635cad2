//! The `nn.Module` and the line of Python that an operator was called from.
//!
//! PyTorch records Python frames (`with_stack` or `with_modules`) as events of kind `python_function`
//! on the thread that ran them; a call of a module is one named `nn.Module: Linear_0`.
//!
//! ```text
//! train.py(20): step ───────────────────────────────┐
//!   nn.Module: Net_0 ─────────────────────────────┐ │
//!     net.py(7): forward ───────────────────────┐ │ │
//!       nn.Module: Linear_0 ─────────────┐      │ │ │
//!         torch/nn/modules/linear.py(…) ┐│      │ │ │
//!           aten::linear                        module Net_0.Linear_0, line net.py(7): forward
//! ```
//! - The module of an operator is the path of modules open when it starts; the line is the innermost
//!   frame outside of PyTorch's own files.
//! - Operators of the backward pass run where no such frame is open. They take the module and line of
//!   the forward operator that made their autograd node: the last one to start before the node with the
//!   node's sequence number. Sequence numbers count by thread: where operators of several threads
//!   have one, `Fwd thread id` decides, which stands for the thread that has most of its other numbers.
//! - Operators that a backward node runs again under checkpointing have frames of their own, opened
//!   inside the node; those count.
//! - Of more than [`DEEPEST`] modules in one another, the outer ones count.

use foldhash::HashMap;

use super::view::View;
use crate::attribute::{HostThread, NONE, Op, span_of};
use crate::model::{ActivityType, Ident, StrId};
use crate::units::{Ns, Span};

/// So many modules in one another are told apart.
const DEEPEST: u32 = 64;

const MODULE: &str = "nn.Module: ";

/// Where an operator was called from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// Number of the module in [`Modules`], or [`NONE`].
    pub(super) module: u32,
    /// The line as PyTorch writes it, `net.py(7): forward`; empty when there is none.
    pub(super) line: StrId,
}

impl Place {
    pub(super) const NOWHERE: Self = Self {
        module: NONE,
        line: StrId::EMPTY,
    };
}

/// The modules of a trace, each with the one around it, and the place of each operator.
#[derive(Default)]
pub(super) struct Modules {
    /// Module around, name, and how many are around.
    nodes: Vec<(u32, StrId, u32)>,
    numbers: HashMap<(u32, StrId), u32>,
    /// By thread, by operator.
    places: Vec<Vec<Place>>,
}

/// A Python frame that is open.
#[derive(Clone, Copy)]
struct Open {
    end: Ns,
    place: Place,
    /// When the innermost module and the line were opened.
    module_since: Ns,
    line_since: Ns,
}

impl Modules {
    /// The places of all operators of a trace.
    pub(super) fn new(view: &View<'_>) -> Self {
        let threads = &view.dissection.host.threads;
        let mut modules = Self::default();
        let mut backward = Vec::new();
        for (thread, frames) in frames(view).into_iter().enumerate() {
            let (places, nodes) = modules.places_on(view, &threads[thread], &frames);
            modules.places.push(places);
            backward.push(nodes);
        }
        let forward = Forward::new(threads);
        for (thread, nodes) in backward.iter().enumerate() {
            for op in nodes {
                let own = &threads[thread];
                let node = &own.ops[own.ops[*op as usize].node as usize];
                if let Some((thread_of, maker)) = forward.maker(own.pid, node) {
                    let place = modules.places[thread_of][maker as usize];
                    modules.places[thread][*op as usize] = place;
                }
            }
        }
        modules
    }

    /// Where operator number `op` of host thread `thread` was called from.
    pub(super) fn place(&self, thread: usize, op: usize) -> Place {
        self.places[thread][op]
    }

    /// The path of a module, from the outside in: `Net_0.Linear_0`.
    pub(super) fn path(&self, view: &View<'_>, mut module: u32) -> Option<String> {
        let mut names = Vec::new();
        while let Some((outer, name, _)) = self.nodes.get(module as usize) {
            names.push(&view.trace().strings.get(*name)[MODULE.len()..]);
            module = *outer;
        }
        names.reverse();
        (!names.is_empty()).then(|| names.join("."))
    }

    /// The places of the operators of one thread by its own frames, and the operators of backward nodes
    /// that no frame in their node speaks for.
    fn places_on(
        &mut self,
        view: &View<'_>,
        thread: &HostThread,
        frames: &[(Span, StrId)],
    ) -> (Vec<Place>, Vec<u32>) {
        let mut places = Vec::with_capacity(thread.ops.len());
        let mut backward = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        let mut frames = frames.iter().peekable();
        for (number, op) in (0u32..).zip(&thread.ops) {
            while let Some((span, name)) = frames.next_if(|(span, _)| span.start <= op.span.start) {
                close(&mut open, span.start);
                let inside = self.opened(view, open.last(), *span, *name);
                open.push(inside);
            }
            close(&mut open, op.span.start);
            let innermost = open.last();
            places.push(innermost.map_or(Place::NOWHERE, |open| open.place));
            if is_backward(thread, op) {
                let node = thread.ops[op.node as usize].span.start;
                let again =
                    |open: &Open| open.module_since.max(open.line_since) >= node && open.end > node;
                if !innermost.is_some_and(again) {
                    backward.push(number);
                }
            }
        }
        (places, backward)
    }

    fn opened(&mut self, view: &View<'_>, around: Option<&Open>, span: Span, name: StrId) -> Open {
        let mut open = Open {
            end: span.end,
            place: around.map_or(Place::NOWHERE, |open| open.place),
            module_since: around.map_or(Ns(i64::MIN), |open| open.module_since),
            line_since: around.map_or(Ns(i64::MIN), |open| open.line_since),
        };
        let text = view.trace().strings.get(name);
        if text.starts_with(MODULE) {
            open.place.module = self.inside(open.place.module, name);
            open.module_since = span.start;
        } else if is_own_line(text) {
            open.place.line = name;
            open.line_since = span.start;
        }
        open
    }

    /// The number of the module `name` inside module `outer`.
    fn inside(&mut self, outer: u32, name: StrId) -> u32 {
        let depth = self.nodes.get(outer as usize).map_or(0, |node| node.2 + 1);
        if depth >= DEEPEST {
            return outer;
        }
        let next = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let number = *self.numbers.entry((outer, name)).or_insert(next);
        if number == next {
            self.nodes.push((outer, name, depth));
        }
        number
    }
}

fn close(open: &mut Vec<Open>, until: Ns) {
    while open.last().is_some_and(|frame| frame.end <= until) {
        open.pop();
    }
}

/// By host thread: its Python frames, in order of start, the longest first.
fn frames(view: &View<'_>) -> Vec<Vec<(Span, StrId)>> {
    let trace = view.trace();
    let host = view.dissection.host;
    let mut frames = vec![Vec::new(); host.threads.len()];
    for id in trace.events.ids() {
        if trace.events.activity(id) == ActivityType::PythonFunction
            && trace.events.is_complete(id)
            && let Some(thread) = host.thread(trace.events.track(id))
        {
            frames[thread].push((span_of(trace, id), trace.events.name(id)));
        }
    }
    for frames in &mut frames {
        frames.sort_unstable_by(|a, b| {
            (a.0.start, b.0.end)
                .cmp(&(b.0.start, a.0.end))
                .then_with(|| trace.strings.get(a.1).cmp(trace.strings.get(b.1)))
        });
    }
    frames
}

/// True for `net.py(7): forward` outside of PyTorch's own files.
fn is_own_line(name: &str) -> bool {
    let Some((file, _)) = name.split_once(".py(") else {
        return false;
    };
    let mut folders = file.split(['/', '\\']);
    !folders.any(|folder| folder == "torch") && !file.starts_with('<')
}

/// True for an operator inside a backward node that is not run forward again in it.
fn is_backward(thread: &HostThread, op: &Op) -> bool {
    op.node != NONE && thread.ops[op.node as usize].sequence >= 0
}

/// Forward operators by process and sequence number.
struct Forward {
    /// Process, number, thread, start, operator; in this order.
    makers: Vec<(Ident, i64, usize, Ns, u32)>,
    /// Thread that a `Fwd thread id` of a process stands for.
    threads: HashMap<(Ident, i32), usize>,
}

impl Forward {
    fn new(threads: &[HostThread]) -> Self {
        let mut makers = Vec::new();
        for (number, thread) in threads.iter().enumerate() {
            for (place, op) in (0u32..).zip(&thread.ops) {
                if op.sequence >= 0 && op.fwd_thread == 0 && op.node != place {
                    makers.push((thread.pid, op.sequence, number, op.span.start, place));
                }
            }
        }
        makers.sort_unstable();
        let mut forward = Self {
            makers,
            threads: HashMap::default(),
        };
        forward.vote(threads);
        forward
    }

    /// Finds the thread of each `Fwd thread id`: of those whose numbers only one thread has, the one
    /// that most nodes name; none when two have equally many.
    fn vote(&mut self, threads: &[HostThread]) {
        let mut votes: HashMap<(Ident, i32, usize), u64> = HashMap::default();
        for thread in threads {
            for op in thread.ops.iter().filter(|op| op.fwd_thread > 0) {
                if let Some(only) = self.only_thread(thread.pid, op.sequence) {
                    *votes.entry((thread.pid, op.fwd_thread, only)).or_default() += 1;
                }
            }
        }
        let mut votes: Vec<_> = votes.into_iter().collect();
        votes.sort_unstable();
        for of_id in votes.chunk_by(|a, b| (a.0.0, a.0.1) == (b.0.0, b.0.1)) {
            let most = of_id.iter().map(|vote| vote.1).max();
            let mut first = of_id.iter().filter(|vote| Some(vote.1) == most);
            if let (Some((key, _)), None) = (first.next(), first.next()) {
                self.threads.insert((key.0, key.1), key.2);
            }
        }
    }

    /// The thread that alone has operators with this number.
    fn only_thread(&self, pid: Ident, sequence: i64) -> Option<usize> {
        let from = self
            .makers
            .partition_point(|maker| (maker.0, maker.1) < (pid, sequence));
        let to = self
            .makers
            .partition_point(|maker| (maker.0, maker.1) <= (pid, sequence));
        let of_number = self.makers.get(from..to)?;
        let (first, last) = (of_number.first()?.2, of_number.last()?.2);
        (first == last).then_some(first)
    }

    /// The forward operator that made `node`: its thread, and its number there.
    fn maker(&self, pid: Ident, node: &Op) -> Option<(usize, u32)> {
        let thread = match self.only_thread(pid, node.sequence) {
            Some(only) => only,
            None => *self.threads.get(&(pid, node.fwd_thread))?,
        };
        let key = (pid, node.sequence, thread);
        let to = self.makers.partition_point(|maker| {
            (maker.0, maker.1, maker.2, maker.3) < (key.0, key.1, key.2, node.span.start)
        });
        let maker = self.makers[..to].last()?;
        ((maker.0, maker.1, maker.2) == key).then_some((maker.2, maker.4))
    }
}
