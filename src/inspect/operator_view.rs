//! Operators as PyTorch's TensorBoard plugin shows them in its operator view.
//!
//! Differences to tracekit's own definition, each with what makes it:
//! - *Host self* is the time that neither operators or annotations inside nor API calls in it take. Calls are
//!   those with its External id, so a call that has none (its correlation stands there) takes no time.
//! - An operator that has one operator inside, of the same name, is one call with it. Any other operator
//!   inside one of its name counts in totals again.
//! - Work that no operator launched is in no row, and neither are data loading, optimizers and the wrappers
//!   of data-parallel models.
//! - Tensor cores go by the plugin's own words, which know kernels up to 2021.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::frame::{Frame, Unit};
use super::tensor_core;
use super::view::View;
use crate::attribute::{HostThread, Moment, NONE, Op, span_of};
use crate::model::EventId;
use crate::units::{Ns, Span};

/// So many operators around an annotation are looked through for the one that it lies in.
const DEEPEST: u32 = 512;

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    calls: u64,
    device_self: Ns,
    device_total: Ns,
    host_self: Ns,
    host_total: Ns,
    tensor_core_self: Ns,
    tensor_core_total: Ns,
}

/// What one operator launched itself, and how long its API calls took.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    device: Ns,
    tensor_core: Ns,
    calls: Ns,
}

/// One row an operator.
pub(super) fn operators(view: &View<'_>) -> Frame {
    let trace = view.trace();
    let threads = &view.dissection.host.threads;
    let mut own = calls(view);
    for work in view.work() {
        if let Some(launcher) = view.launcher(work.launch)
            && let Some(op) = launcher.op
        {
            let own = &mut own[launcher.thread][op as usize];
            own.device += work.span.len();
            if tensor_core::is_used_by_plugin(trace.name(work.event)) {
                own.tensor_core += work.span.len();
            }
        }
    }
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for (number, (thread, own)) in threads.iter().zip(own).enumerate() {
        let mut calls = Calls::new(thread, own);
        calls.add_up(thread);
        for (place, op) in thread.ops.iter().enumerate() {
            let name = trace.strings.get(op.name);
            if calls.merged[place]
                || !is_shown(name)
                || !view.wants(view.step_at(number, op.span.start))
            {
                continue;
            }
            let (own, total) = (calls.own[place], calls.total[place]);
            let row = rows.entry(name).or_default();
            row.calls += 1;
            row.device_self += own.device;
            row.device_total += total.device;
            row.host_total += op.span.len();
            row.host_self += op.span.len() - calls.inside[place] - own.calls;
            row.tensor_core_self += own.tensor_core;
            row.tensor_core_total += total.tensor_core;
        }
    }
    let mut rows: Vec<(&str, Row)> = rows.into_iter().collect();
    rows.sort_by_key(|(name, row)| (Reverse((row.device_total, row.host_total)), *name));
    Frame::new(
        "operators",
        "Operators as the TensorBoard plugin shows them.",
    )
    .text("operator", &rows, |row| Some(row.0))
    .count("calls", &rows, |row| Some(row.1.calls))
    .ns("device_self_ns", &rows, |row| Some(row.1.device_self))
    .ns("device_total_ns", &rows, |row| Some(row.1.device_total))
    .ns("host_self_ns", &rows, |row| Some(row.1.host_self))
    .ns("host_total_ns", &rows, |row| Some(row.1.host_total))
    .float("tensor_core_self", Unit::Ratio, &rows, |row| {
        row.1.tensor_core_self.ratio(row.1.device_self)
    })
    .float("tensor_core_total", Unit::Ratio, &rows, |row| {
        row.1.tensor_core_total.ratio(row.1.device_total)
    })
}

/// True for the name of what the plugin takes for an operator.
pub(super) fn is_shown(operator: &str) -> bool {
    let loads = operator.starts_with("enumerate(DataLoader)#") && operator.ends_with(".__next__");
    !loads
        && !operator.starts_with("enumerate(DataPipe)#")
        && !operator.starts_with("Optimizer.")
        && !["DataParallel.forward", "DistributedDataParallel.forward"].contains(&operator)
}

/// By operator of a thread: it is one call with the operator around it, for it is the only one in there, and
/// of the same name.
pub(super) fn merged(ops: &[Op]) -> Vec<bool> {
    let mut children = vec![0_u32; ops.len()];
    for op in ops.iter().filter(|op| op.parent != NONE) {
        children[op.parent as usize] += 1;
    }
    ops.iter()
        .map(|op| {
            op.parent != NONE
                && children[op.parent as usize] == 1
                && ops[op.parent as usize].name == op.name
        })
        .collect()
}

/// By thread, by operator: how long the API calls in it took.
fn calls(view: &View<'_>) -> Vec<Vec<Own>> {
    let trace = view.trace();
    let host = view.dissection.host;
    let mut moments: Vec<Vec<Moment>> = vec![Vec::new(); host.threads.len()];
    let mut keys: Vec<Vec<EventId>> = vec![Vec::new(); host.threads.len()];
    for id in trace.events.ids() {
        if trace.events.activity(id).is_launch()
            && trace.events.is_complete(id)
            && has_external_id(view, id)
            && let Some(thread) = host.thread(trace.events.track(id))
        {
            let at = span_of(trace, id).start;
            keys[thread].push(id);
            let key = u32::try_from(moments[thread].len()).unwrap_or(NONE);
            moments[thread].push(Moment { at, key });
        }
    }
    let mut calls = Vec::new();
    for ((thread, mut moments), keys) in host.threads.iter().zip(moments).zip(keys) {
        moments.sort_unstable_by_key(|moment| (moment.at, moment.key));
        let mut own = vec![Own::default(); thread.ops.len()];
        for (moment, op) in moments.iter().zip(thread.innermost_at(&moments)) {
            if op != NONE {
                let call = span_of(trace, keys[moment.key as usize]);
                own[op as usize].calls += call.len();
            }
        }
        calls.push(own);
    }
    calls
}

/// False for a call whose External id only repeats its correlation: its writer knew none.
fn has_external_id(view: &View<'_>, id: EventId) -> bool {
    let args = view.trace().events.launch_args(id);
    args.is_none_or(|args| args.external == 0 || args.external != args.correlation)
}

/// The annotations of one thread directly inside an operator, as pairs of both; in order, disjoint.
fn annotations_inside(thread: &HostThread) -> Vec<(u32, Span)> {
    let spans = thread.annotations.iter().map(|annotation| annotation.span);
    let moments: Vec<Moment> = (0u32..)
        .zip(spans)
        .map(|(key, span)| Moment {
            at: span.start,
            key,
        })
        .collect();
    let mut inside: Vec<(u32, Span)> = Vec::new();
    let innermost = thread.innermost_at(&moments);
    for (annotation, mut op) in thread.annotations.iter().zip(innermost) {
        // One that starts with it may lie in it.
        let mut steps = 0;
        while op != NONE && thread.ops[op as usize].span.end < annotation.span.end {
            steps += 1;
            op = if steps < DEEPEST {
                thread.ops[op as usize].parent
            } else {
                NONE
            };
        }
        if op != NONE {
            inside.push((op, annotation.span));
        }
    }
    inside.sort_by_key(|(op, span)| (*op, span.start, Reverse(span.end)));
    inside.dedup_by(|later, earlier| later.0 == earlier.0 && later.1.start < earlier.1.end);
    inside
}

/// The operators of one thread, with those that are one call put together.
struct Calls {
    merged: Vec<bool>,
    own: Vec<Own>,
    /// With all inside.
    total: Vec<Own>,
    /// Time of the operators directly inside.
    inside: Vec<Ns>,
}

impl Calls {
    fn new(thread: &HostThread, mut own: Vec<Own>) -> Self {
        let ops = &thread.ops;
        let merged = merged(ops);
        // A call has the API calls of the innermost that it is one with; those around are lost.
        for place in (0..ops.len()).rev().filter(|place| merged[*place]) {
            own[ops[place].parent as usize] = own[place];
        }
        Self {
            merged,
            total: own.clone(),
            own,
            inside: vec![Ns::ZERO; ops.len()],
        }
    }

    fn add_up(&mut self, thread: &HostThread) {
        let annotations = annotations_inside(thread);
        let in_annotation = |op: &Op| {
            let after = annotations
                .partition_point(|other| (other.0, other.1.start) <= (op.parent, op.span.start));
            let before = annotations[..after].last();
            before.is_some_and(|(parent, span)| *parent == op.parent && op.span.end <= span.end)
        };
        for (op, span) in &annotations {
            self.inside[*op as usize] += span.len();
        }
        for (place, op) in thread.ops.iter().enumerate().rev() {
            if op.parent == NONE {
                continue;
            }
            let parent = op.parent as usize;
            if self.merged[place] {
                self.total[parent] = self.total[place];
                self.inside[parent] = self.inside[place];
                continue;
            }
            let total = self.total[place];
            self.total[parent].device += total.device;
            self.total[parent].tensor_core += total.tensor_core;
            if !in_annotation(op) {
                self.inside[parent] += op.span.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cells, frames};
    use super::super::{Definition, InspectOptions, Topic};
    use crate::attribute::trace_in_lines;

    #[test]
    fn host_self_leaves_out_calls_and_a_single_namesake_is_one_call() {
        let trace = trace_in_lines(
            r"
            op 1/1 0 50 aten::outer
            note 1/1 5 20 nccl:all_reduce
            op 1/1 6 10 aten::mm
            launch 1/1 7 2 cudaLaunchKernel corr=11 ext=4
            launch 1/1 10 3 cudaStreamSynchronize corr=12 ext=12
            op 1/1 30 10 aten::sum
            op 1/1 31 5 aten::sum
            launch 1/1 32 1 cudaLaunchKernel corr=13 ext=5
            kernel 0/7 20 8 gemm_hmma corr=11
            kernel 0/7 40 4 reduce corr=13",
        );
        let options = InspectOptions {
            definition: Definition::Tensorboard,
            ..InspectOptions::default()
        };
        let seen = frames(&trace, Topic::Operators, &options);
        let columns = [
            "operator",
            "calls",
            "device_self_ns",
            "device_total_ns",
            "host_self_ns",
            "host_total_ns",
            "tensor_core_total",
        ];
        // outer: 50 − 20 of the annotation − 10 of aten::sum; mm: 10 − 2; sum: 10 − 1.
        assert_eq!(
            cells(&seen, "operators", &columns),
            [
                "aten::outer 1 0 12000 20000 50000 0.6667",
                "aten::mm 1 8000 8000 8000 10000 1.0000",
                "aten::sum 1 4000 4000 9000 10000 0.0000",
            ]
        );
    }
}
