//! Processes: which phase annotations are open where, which thread is the main one, and what the
//! order of engine runs, optimizer ranges and steps says where no annotation does.

use foldhash::fast::RandomState;

use super::host::{Annotation, Host, HostThread, NONE, Op};
use super::interval::{Piece, find, innermost, piece_at, union};
use super::names::Names;
use super::options::{AttributeOptions, RecomputeEvidence};
use super::phase::{Marker, Phase};
use super::table::OtherKind;
use crate::model::{Ident, Trace};
use crate::units::{Ns, Span};

/// Phase annotations of one thread.
pub(crate) struct ThreadPhases {
    /// Phase annotations, innermost first.
    pub(crate) phases: Vec<Piece<Marker>>,
    /// `zero_grad` and data-loading ranges.
    pub(crate) other: Vec<Piece<OtherKind>>,
    /// The process of the thread.
    pub(crate) process: usize,
}

/// One process.
pub(crate) struct Process {
    /// Its main thread: the one with the step and optimizer ranges.
    pub(crate) main: usize,
    /// Some operator has a sequence number.
    records_sequence: bool,
    /// It has host operators.
    has_operators: bool,
    /// It has an explicit forward or backward annotation.
    pub(crate) annotated: bool,
    /// Where exactly one phase (or the main thread's, of several) is annotated over its threads.
    anywhere: Vec<Piece<Option<Phase>>>,
    /// Engine runs, optimizer ranges and steps in order of time.
    order: Order,
}

/// The order of events that the fallback goes by.
struct Order {
    /// Times during which the engine runs one backward pass.
    runs: Vec<Span>,
    /// Optimizer ranges that are not inside a backward pass.
    optimizers: Vec<Span>,
    /// Starts of steps.
    steps: Vec<Ns>,
    /// Operators that make the first gradient of a run.
    seeds: Vec<Ns>,
    /// Starts of outermost operators of the main thread that record sequence numbers.
    forwards: Vec<Ns>,
}

/// All processes of one trace.
pub(crate) struct Processes {
    pub(crate) threads: Vec<ThreadPhases>,
    pub(crate) processes: Vec<Process>,
}

/// Why a moment is in its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) phase: Phase,
    /// More about [`Phase::Other`].
    pub(crate) other: OtherKind,
    /// Found by the fallback.
    pub(crate) inferred: bool,
}

impl Placement {
    pub(crate) fn of(phase: Phase) -> Self {
        Self {
            phase,
            other: OtherKind::Rest,
            inferred: false,
        }
    }
}

impl Processes {
    pub(crate) fn new(
        trace: &Trace,
        host: &Host,
        names: &Names,
        options: &AttributeOptions,
    ) -> Self {
        let mut pids: Vec<Ident> = Vec::new();
        let mut threads: Vec<ThreadPhases> = Vec::with_capacity(host.threads.len());
        let mut number_of = std::collections::HashMap::<Ident, usize, RandomState>::default();
        for thread in &host.threads {
            let process = *number_of.entry(thread.pid).or_insert_with(|| {
                pids.push(thread.pid);
                pids.len() - 1
            });
            threads.push(ThreadPhases::new(thread, process, options));
        }
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); pids.len()];
        for (thread, phases) in threads.iter().enumerate() {
            members[phases.process].push(thread);
        }
        let processes = members
            .iter()
            .map(|members| Process::new(trace, host, names, &threads, members))
            .collect();
        Self { threads, processes }
    }

    /// The phase at a moment of a thread whose innermost operator is `op` (or [`NONE`]), by
    /// annotations, autograd nodes and, without annotations, by order. Recompute regions are the
    /// caller's, and come first.
    pub(crate) fn place(
        &self,
        host: &Host,
        names: &Names,
        at: Ns,
        thread: usize,
        op: u32,
    ) -> Placement {
        let own = &self.threads[thread];
        let process = &self.processes[own.process];
        let ops = &host.threads[thread].ops;
        let node = if op == NONE {
            NONE
        } else {
            ops[op as usize].node
        };
        if let Some(piece) = piece_at(&own.phases, at) {
            let phase = piece.value.phase();
            // A nested engine run inside a recompute annotation is backward again.
            let nested = phase == Phase::Recompute
                && node != NONE
                && ops[node as usize].span.start >= piece.opened;
            return Placement::of(if nested { Phase::Backward } else { phase });
        }
        if node != NONE {
            return Placement::of(Phase::Backward);
        }
        if let Some(Some(phase)) = piece_at(&process.anywhere, at).map(|piece| piece.value) {
            return Placement::of(phase);
        }
        let other = piece_at(&own.other, at).map(|piece| piece.value);
        if process.annotated {
            return Placement {
                phase: Phase::Other,
                other: other.unwrap_or(OtherKind::Rest),
                inferred: false,
            };
        }
        let (phase, other) = match other {
            Some(kind) => (Phase::Other, kind),
            None => process.infer(host, names, at, thread, op),
        };
        Placement {
            phase,
            other,
            inferred: true,
        }
    }
}

impl ThreadPhases {
    fn new(thread: &HostThread, process: usize, options: &AttributeOptions) -> Self {
        let recompute_counts = matches!(
            options.recompute_evidence,
            RecomputeEvidence::Auto | RecomputeEvidence::Annotation
        );
        let marker_of = |annotation: &Annotation| {
            annotation.marker.filter(|marker| match marker {
                Marker::Explicit(_) if options.ignore_annotations => false,
                Marker::Explicit(Phase::Recompute) => recompute_counts,
                _ => true,
            })
        };
        let markers: Vec<_> = thread
            .annotations
            .iter()
            .filter_map(|annotation| Some((annotation.span, marker_of(annotation)?)))
            .collect();
        let other: Vec<_> = thread
            .annotations
            .iter()
            .filter_map(|annotation| Some((annotation.span, annotation.other?)))
            .collect();
        Self {
            phases: innermost(&markers),
            other: innermost(&other),
            process,
        }
    }

    fn is_annotated(&self) -> bool {
        self.phases.iter().any(|piece| {
            matches!(
                piece.value,
                Marker::Explicit(Phase::Forward | Phase::Backward)
            )
        })
    }
}

impl Process {
    fn new(
        trace: &Trace,
        host: &Host,
        names: &Names,
        threads: &[ThreadPhases],
        members: &[usize],
    ) -> Self {
        let main = main_thread(trace, host, threads, members);
        let annotated = members.iter().any(|member| threads[*member].is_annotated());
        Self {
            main,
            has_operators: members
                .iter()
                .any(|member| !host.threads[*member].ops.is_empty()),
            records_sequence: members
                .iter()
                .any(|member| host.threads[*member].ops.iter().any(|op| op.sequence >= 0)),
            annotated,
            anywhere: anywhere(threads, members, main),
            order: Order::new(host, names, members, main),
        }
    }

    /// Optimizer ranges and backward passes, in order of time.
    pub(crate) fn optimizers_and_runs(&self) -> (&[Span], &[Span]) {
        (&self.order.optimizers, &self.order.runs)
    }

    /// The fallback: what the order of events says about a moment under no annotation and no node.
    fn infer(
        &self,
        host: &Host,
        names: &Names,
        at: Ns,
        thread: usize,
        op: u32,
    ) -> (Phase, OtherKind) {
        let own = &host.threads[thread];
        let order = &self.order;
        let root: Option<&Op> = (op != NONE).then(|| &own.ops[own.ops[op as usize].root as usize]);
        let has_sequence = op != NONE && own.root_has_sequence[own.ops[op as usize].root as usize];
        if !self.has_operators {
            // Launches alone have no order to go by.
            return (Phase::Other, OtherKind::Rest);
        }
        if thread != self.main {
            // Engine threads do backward work only, DDP's bucket copies included.
            return if own.has_engine {
                (Phase::Backward, OtherKind::Rest)
            } else if has_sequence {
                (Phase::Forward, OtherKind::Rest)
            } else {
                (Phase::Other, OtherKind::Rest)
            };
        }
        if find(&order.runs, at).is_some()
            || root.is_some_and(|root| {
                names.get(root.name).bucket_copy
                    || order.seeds.binary_search(&root.span.start).is_ok()
            })
        {
            return (Phase::Backward, OtherKind::Rest);
        }
        let next_run = after(&order.runs, at).map(|run| run.start);
        let next_optimizer = after(&order.optimizers, at).map(|range| range.start);
        let last_run = before(&order.runs, at).map(|run| run.end);
        let last_optimizer = before(&order.optimizers, at).map(|range| range.end);
        let steps_before = order.steps.partition_point(|step| *step <= at);
        let next_step = order.steps.get(steps_before).copied();
        let this_step = order.steps[..steps_before].last().copied();
        // A step begins with its forward: what was before it says nothing.
        let in_step = |end: &Ns| this_step.is_none_or(|step| *end > step);
        let last_optimizer = last_optimizer.filter(in_step);
        let last_run = last_run.filter(in_step);
        let is_next = |at: Ns, other: Option<Ns>| other.is_none_or(|other| at < other);
        let run_is_next =
            next_run.is_some_and(|run| is_next(run, next_optimizer) && is_next(run, next_step));
        let optimizer_is_next = next_optimizer
            .is_some_and(|start| is_next(start, next_run) && is_next(start, next_step));
        match (last_run, last_optimizer) {
            (None, None) => (Phase::Forward, OtherKind::Rest),
            (Some(run), optimizer)
                if optimizer_is_next && optimizer.is_none_or(|end| run > end) =>
            {
                (Phase::Other, OtherKind::PostBackward)
            }
            _ if !run_is_next && next_step.is_some() => (Phase::Other, OtherKind::Rest),
            // Without steps, the forward after the last run or optimizer begins with the first
            // operator that records a sequence number; files too old to record them cannot tell.
            (run, optimizer) if self.records_sequence => {
                let since = run.max(optimizer);
                let begun = order.forwards.partition_point(|start| Some(*start) < since);
                let begun = order
                    .forwards
                    .get(begun)
                    .is_some_and(|start| *start <= root.map_or(at, |root| root.span.start));
                let after_run = run > optimizer && run_is_next;
                let phase = if begun || after_run {
                    Phase::Forward
                } else {
                    Phase::Other
                };
                (phase, OtherKind::Rest)
            }
            _ => (Phase::Forward, OtherKind::Rest),
        }
    }
}

fn after(sorted: &[Span], at: Ns) -> Option<Span> {
    sorted
        .get(sorted.partition_point(|span| span.start <= at))
        .copied()
}

fn before(sorted: &[Span], at: Ns) -> Option<Span> {
    sorted[..sorted.partition_point(|span| span.end <= at)]
        .last()
        .copied()
}

/// The thread with the step and optimizer ranges, else with phase annotations, else with the most
/// operators outside autograd nodes.
fn main_thread(trace: &Trace, host: &Host, threads: &[ThreadPhases], members: &[usize]) -> usize {
    let ident = |ident: Ident| match ident {
        Ident::Missing => (0, 0, ""),
        Ident::Int(number) => (1, number, ""),
        Ident::Text(text) => (2, 0, trace.strings.get(text)),
    };
    members
        .iter()
        .copied()
        .max_by_key(|member| {
            let thread = &host.threads[*member];
            let ranges = thread
                .annotations
                .iter()
                .filter(|annotation| annotation.step.is_some() || annotation.optimizer_range)
                .count();
            let outside = thread.ops.iter().filter(|op| op.node == NONE).count();
            (
                ranges,
                threads[*member].phases.len(),
                outside,
                std::cmp::Reverse(ident(thread.tid)),
            )
        })
        .expect("a process has a thread")
}

/// Where exactly one phase is annotated over the threads of a process, or the main thread's where
/// several are.
fn anywhere(threads: &[ThreadPhases], members: &[usize], main: usize) -> Vec<Piece<Option<Phase>>> {
    let mut borders: Vec<(Ns, bool, Phase, bool)> = Vec::new();
    for member in members {
        for piece in &threads[*member].phases {
            let phase = piece.value.phase();
            borders.push((piece.span.start, true, phase, *member == main));
            borders.push((piece.span.end, false, phase, *member == main));
        }
    }
    borders.sort_unstable();
    let mut open = [0_u32; Phase::ALL.len()];
    let mut on_main: Option<Phase> = None;
    let mut pieces: Vec<Piece<Option<Phase>>> = Vec::new();
    for (place, (at, opens, phase, is_main)) in borders.iter().copied().enumerate() {
        let count = &mut open[phase as usize];
        *count = if opens { *count + 1 } else { *count - 1 };
        if is_main {
            on_main = opens.then_some(phase);
        }
        let Some(next) = borders
            .get(place + 1)
            .map(|border| border.0)
            .filter(|next| *next > at)
        else {
            continue;
        };
        let mut phases = Phase::ALL
            .into_iter()
            .filter(|phase| open[*phase as usize] > 0);
        let value = match (phases.next(), phases.next()) {
            (Some(only), None) => Some(only),
            (Some(_), Some(_)) => on_main,
            _ => None,
        };
        pieces.push(Piece {
            span: Span::new(at, next),
            value,
            opened: at,
        });
    }
    pieces
}

impl Order {
    fn new(host: &Host, names: &Names, members: &[usize], main: usize) -> Self {
        let mut optimizers = Vec::new();
        let mut steps = Vec::new();
        // What ends a run: (start, end, is engine).
        let mut marks: Vec<(Span, bool)> = Vec::new();
        for member in members {
            let thread = &host.threads[*member];
            let nodes: Vec<Span> = union(
                thread
                    .ops
                    .iter()
                    .filter(|op| is_outermost_node(thread, op))
                    .map(|op| op.span),
            );
            for annotation in &thread.annotations {
                if matches!(annotation.marker, Some(Marker::Framework(Phase::Optimizer)))
                    && find(&nodes, annotation.span.start).is_none()
                {
                    optimizers.push(annotation.span);
                    marks.push((annotation.span, false));
                }
                if annotation.step.is_some() {
                    steps.push(annotation.span.start);
                    marks.push((
                        Span::new(annotation.span.start, annotation.span.start),
                        false,
                    ));
                }
            }
            marks.extend(nodes.into_iter().map(|span| (span, true)));
        }
        let thread = &host.threads[main];
        let mut forwards = Vec::new();
        for (place, op) in thread.ops.iter().enumerate() {
            if op.root as usize == place && op.node == NONE && thread.root_has_sequence[place] {
                marks.push((op.span, false));
                // A detached loss has a number too.
                if Some(op.name) != names.detach {
                    forwards.push(op.span.start);
                }
            }
        }
        marks.sort_unstable();
        let mut runs: Vec<Span> = Vec::new();
        let mut running = false;
        for (span, is_engine) in marks {
            match runs.last_mut() {
                Some(run) if is_engine && running => run.end = run.end.max(span.end),
                _ if is_engine => runs.push(span),
                _ => {}
            }
            running = is_engine;
        }
        steps.sort_unstable();
        let runs = union(runs);
        let seeds = seeds(thread, names, &runs);
        Self {
            runs,
            optimizers: union(optimizers),
            steps,
            seeds,
            forwards,
        }
    }
}

fn is_outermost_node(thread: &HostThread, op: &Op) -> bool {
    op.node != NONE
        && thread.ops[op.node as usize].event == op.event
        && (op.parent == NONE || thread.ops[op.parent as usize].node == NONE)
}

/// Starts of the `aten::ones_like` directly before each run.
fn seeds(thread: &HostThread, names: &Names, runs: &[Span]) -> Vec<Ns> {
    let roots: Vec<&Op> = thread
        .ops
        .iter()
        .enumerate()
        .filter(|(place, op)| op.root as usize == *place && op.node == NONE)
        .map(|(_, op)| op)
        .collect();
    runs.iter()
        .filter_map(|run| {
            let last = roots[..roots.partition_point(|op| op.span.start < run.start)].last()?;
            (Some(last.name) == names.ones_like).then_some(last.span.start)
        })
        .collect()
}
