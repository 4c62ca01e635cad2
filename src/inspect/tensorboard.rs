//! Overlap of communication as PyTorch's TensorBoard plugin shows it in its distributed view.
//!
//! Differences to tracekit's own definition, each with what makes it:
//! - A row is a step, extended on the device as in `attribute`; all devices are put together. A last step
//!   that launched less than 80 % of the device work of the one before is left out.
//! - Communication is what annotations of five operations of NCCL and of Gloo cover, on the host and as
//!   mirrored on the device (`gpu_user_annotation`): launching counts, too.
//! - A kernel communicates when it has the External id of such an annotation, which it had up to
//!   PyTorch 1.11; in later files all kernels compute, so nearly all communication is overlapped.
//! - What is neither is other: idle time, copies, everything on the host.

use std::collections::BTreeSet;

use super::communication::union_len;
use super::frame::{Frame, Unit};
use super::hta::common;
use super::view::View;
use crate::attribute::{NONE, overlap as inside, span_of};
use crate::model::ActivityType;
use crate::units::{Ns, Span};

const OPERATIONS: [&str; 5] = [
    "nccl:broadcast",
    "nccl:reduce",
    "nccl:all_reduce",
    "nccl:all_gather",
    "nccl:reduce_scatter",
];

fn communicates(name: &str) -> bool {
    OPERATIONS.contains(&name) || name.starts_with("gloo:")
}

/// One step.
struct Row<'a> {
    step: &'a str,
    total: Ns,
    computation: Ns,
    communication: Ns,
    overlap: Ns,
}

/// How much of `window` is computation, communication and both.
fn parts(window: Span, compute: &[Span], communicate: &[Span]) -> [Ns; 3] {
    let compute = cut(compute, window);
    let communicate = cut(communicate, window);
    let len = |spans: &[Span]| spans.iter().map(|span| span.len()).sum();
    [
        len(&compute),
        len(&communicate),
        common(&compute, &communicate),
    ]
}

/// Computation, communication and their overlap in each step.
pub(super) fn overlap(view: &View<'_>) -> Frame {
    let trace = view.trace();
    let events = &trace.events;
    let mut external: BTreeSet<u64> = BTreeSet::new();
    let mut communicate: Vec<Span> = Vec::new();
    for id in events.ids() {
        let activity = events.activity(id);
        let is_range = matches!(
            activity,
            ActivityType::UserAnnotation | ActivityType::GpuUserAnnotation
        );
        if !is_range || !events.is_complete(id) || !communicates(trace.name(id)) {
            continue;
        }
        communicate.push(span_of(trace, id));
        if activity == ActivityType::UserAnnotation {
            external.extend(events.op_args(id).map(|args| args.external));
        }
    }
    let mut compute: Vec<Span> = Vec::new();
    for work in &view.dissection.work {
        let id = work.event;
        if events.activity(id) != ActivityType::Kernel {
            continue;
        }
        let args = events.device_args(id);
        let is_comm =
            args.is_some_and(|args| args.external != 0 && external.contains(&args.external));
        if is_comm {
            communicate.push(span_of(trace, id));
        } else {
            compute.push(span_of(trace, id));
        }
    }
    let (compute, _) = union_len(compute);
    let (communicate, _) = union_len(communicate);
    let rows: Vec<Row<'_>> = windows(view)
        .into_iter()
        .map(|(step, window)| {
            let [computation, communication, overlap] = parts(window, &compute, &communicate);
            Row {
                step,
                total: window.len(),
                computation,
                communication,
                overlap,
            }
        })
        .collect();
    Frame::new(
        "communication",
        "Overlap of communication and computation as the TensorBoard plugin defines it.",
    )
    .text("step", &rows, |row| Some(row.step))
    .ns("window_ns", &rows, |row| Some(row.total))
    .ns("computation_ns", &rows, |row| Some(row.computation))
    .ns("communication_ns", &rows, |row| Some(row.communication))
    .ns("overlapped_ns", &rows, |row| Some(row.overlap))
    .ns("other_ns", &rows, |row| {
        Some(row.total + row.overlap - row.computation - row.communication)
    })
    .float("overlap_ratio", Unit::Ratio, &rows, |row| {
        row.overlap.ratio(row.communication)
    })
}

/// The steps that count, with their names and where they are on the devices.
pub(super) fn windows<'a>(view: &View<'a>) -> Vec<(&'a str, Span)> {
    let dissection = view.dissection;
    let steps = &dissection.steps.all;
    let mut last_end = vec![Ns(i64::MIN); steps.len()];
    let mut launched = vec![0_u64; steps.len()];
    for work in dissection.work.iter().filter(|work| work.step != NONE) {
        let end = &mut last_end[work.step as usize];
        *end = work.span.end.max(*end);
        launched[work.step as usize] += 1;
    }
    let mut before = Ns(i64::MIN);
    let mut windows: Vec<(&str, Span)> = Vec::new();
    let mut keep = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let start = step.span.start.max(before);
        let end = step.span.end.max(last_end[number]).max(start);
        before = end;
        if dissection.selected[number] {
            windows.push((&step.name, Span::new(start, end)));
            keep.push(launched[number]);
        }
    }
    if let [.., before, last] = keep.as_slice()
        && last * 5 < before * 4
    {
        windows.pop();
    }
    windows
}

/// The part of disjoint `spans` inside `window`.
fn cut(spans: &[Span], window: Span) -> Vec<Span> {
    let from = spans.partition_point(|span| span.end <= window.start);
    spans[from..]
        .iter()
        .take_while(|span| span.start < window.end)
        .filter(|span| inside(**span, window) > Ns::ZERO)
        .map(|span| Span::new(span.start.max(window.start), span.end.min(window.end)))
        .collect()
}
