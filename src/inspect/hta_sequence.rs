//! Which kernels operators launch one after the other, as HolisticTraceAnalysis (0.6.1) has them
//! (`get_aten_op_kernels_and_delay`).
//!
//! ```text
//! aten::linear ├──────────────────────────────────────┤
//! aten::addmm     ├──────────────────────────────┤          the deepest: it starts last
//! launches              ├ 1 ┤      ├ 2 ┤
//! kernels                      ├─ a ─┤    ├─ b ─┤           aten::addmm: a, b
//! delays          ├ op ─┤      (to the first launch)
//!                       ├─ 1 ──┤   ├─ 2 ──┤                 (from the start of a launch to its kernel)
//! ```
//! Threads do not matter: an operator that starts last before a launch, and ends with or after it, has it,
//! whatever thread it is on; of several that start at once the longest. Only operators called `aten::…` count.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::HashMap;

use super::frame::{Frame, Unit};
use super::hta_event::{HtaEvent, HtaEvents, us};
use super::view::View;
use crate::model::{ActivityType, StrId};
use crate::units::Ns;

/// One kernel: when it starts, its name, and when it was launched.
type Kernel = (Ns, StrId, Ns);

/// Times that an operator launched one sequence.
#[derive(Default)]
struct Sum {
    count: u64,
    /// In microseconds.
    op_delay: f64,
    runtime_delay: f64,
}

struct Row {
    operator: StrId,
    kernels: Vec<StrId>,
    sum: Sum,
}

/// The frame: the most frequent sequences.
pub(super) fn frame(view: &View<'_>, events: &HtaEvents) -> Frame {
    let strings = &view.trace().strings;
    let ops: Vec<&HtaEvent> = events
        .host
        .iter()
        .filter(|event| event.activity == ActivityType::CpuOp)
        .filter(|event| strings.get(event.name).starts_with("aten::"))
        .collect();
    let rows = shown(view, rows(view, events, &ops));
    let mean = |row: &Row, sum: f64| Some(sum / row.sum.count as f64);
    Frame::new(
        "aten_op_kernels",
        "What HTA's get_aten_op_kernels_and_delay says, in microseconds.",
    )
    .text("operator", &rows, |row| Some(strings.get(row.operator)))
    .text("kernel_sequence", &rows, |row| {
        let names: Vec<&str> = row.kernels.iter().map(|name| strings.get(*name)).collect();
        Some(names.join(", "))
    })
    .count("count", &rows, |row| Some(row.sum.count))
    .float("avg_op_launch_delay_us", Unit::Number, &rows, |row| {
        mean(row, row.sum.op_delay)
    })
    .float("avg_runtime_delay_us", Unit::Number, &rows, |row| {
        mean(row, row.sum.runtime_delay)
    })
}

/// By operator (its place in `ops`): the kernels that it launched.
fn launched(events: &HtaEvents, ops: &[&HtaEvent]) -> BTreeMap<usize, Vec<Kernel>> {
    let twins = events.twins();
    let mut launches: Vec<(HtaEvent, &HtaEvent)> = Vec::new();
    for kernel in events.device.iter().filter(|event| event.is_kernel()) {
        let calls = kernel.correlation.and_then(|number| twins.get(&number));
        let calls = calls.into_iter().flatten();
        let calls = calls.filter(|call| call.activity.is_launch());
        launches.extend(calls.map(|call| (*call, kernel)));
    }
    launches.sort_by_key(|(call, _)| (call.start, call.end()));
    let mut launched: BTreeMap<usize, Vec<Kernel>> = BTreeMap::new();
    let mut next = 0;
    // What may still have a launch: those that start later end earlier, for others are worse in both.
    let mut open: Vec<usize> = Vec::new();
    for (call, kernel) in launches {
        while let Some(op) = ops.get(next).filter(|op| op.start <= call.start) {
            while open.last().is_some_and(|last| ops[*last].end() <= op.end()) {
                open.pop();
            }
            open.push(next);
            next += 1;
        }
        let around = open.partition_point(|op| ops[*op].end() >= call.end());
        if let Some(op) = open[..around].last() {
            let kernel = (kernel.start, kernel.name, call.start);
            launched.entry(*op).or_default().push(kernel);
        }
    }
    launched
}

fn rows(view: &View<'_>, events: &HtaEvents, ops: &[&HtaEvent]) -> Vec<Row> {
    let strings = &view.trace().strings;
    let mut sums: HashMap<(StrId, Vec<StrId>), Sum> = HashMap::default();
    for (op, mut kernels) in launched(events, ops) {
        kernels.sort_by_key(|(at, name, launched)| (*at, strings.get(*name), *launched));
        let first = kernels.iter().map(|kernel| kernel.2).min();
        let names = kernels.iter().map(|kernel| kernel.1).collect();
        let delays: f64 = kernels
            .iter()
            .map(|(at, _, launched)| us(*at - *launched))
            .sum();
        let sum = sums.entry((ops[op].name, names)).or_default();
        sum.count += 1;
        sum.op_delay += us(first.unwrap_or_default() - ops[op].start);
        sum.runtime_delay += delays / kernels.len() as f64;
    }
    let mut rows: Vec<Row> = Vec::with_capacity(sums.len());
    #[expect(clippy::iter_over_hash_type, reason = "sorted by content below")]
    for ((operator, kernels), sum) in sums {
        rows.push(Row {
            operator,
            kernels,
            sum,
        });
    }
    let text = |row: &Row| {
        let kernels = row.kernels.iter().map(|name| strings.get(*name));
        kernels.collect::<Vec<&str>>()
    };
    rows.sort_by(|a, b| {
        let key = |row: &Row| (Reverse(row.sum.count), strings.get(row.operator));
        key(a).cmp(&key(b)).then_with(|| text(a).cmp(&text(b)))
    });
    rows
}

/// The most frequent ones, as many as names are asked for.
fn shown(view: &View<'_>, mut rows: Vec<Row>) -> Vec<Row> {
    if view.options.top > 0 {
        rows.truncate(view.options.top);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cells, frames};
    use super::super::{Definition, InspectOptions, Topic};
    use crate::attribute::trace_in_lines;

    #[test]
    fn the_deepest_operator_on_any_thread_has_the_launch() {
        let lines = "
            op     1/1   0 100 aten::linear
            op     1/1  10  60 aten::addmm
            op     1/1  12  50 record_param_comms
            launch 1/1  20   5 cudaLaunchKernel corr=1
            launch 1/1  40   5 cudaLaunchKernel corr=2
            op     1/2  50   4 aten::add
            launch 1/1  51   2 cudaLaunchKernel corr=3
            launch 1/1  80   5 cudaLaunchKernel corr=4
            launch 1/1 200   5 cudaLaunchKernel corr=5
            kernel 0/7  30   5 a corr=1
            kernel 0/7  60   5 b corr=2
            kernel 0/7  70   5 c corr=3
            kernel 0/7  90   5 d corr=4
            kernel 0/7 210   5 e corr=5
        ";
        let options = InspectOptions {
            definition: Definition::Hta,
            ..InspectOptions::default()
        };
        let frames = frames(&trace_in_lines(lines), Topic::Launches, &options);
        let columns = [
            "operator",
            "kernel_sequence",
            "count",
            "avg_op_launch_delay_us",
            "avg_runtime_delay_us",
        ];
        assert_eq!(
            cells(&frames, "aten_op_kernels", &columns),
            [
                "aten::add c 1 1.0000 19.0000",
                "aten::addmm a, b 1 10.0000 15.0000",
                "aten::linear d 1 80.0000 10.0000",
            ]
        );
    }
}
