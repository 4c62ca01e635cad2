//! Potential stragglers as HolisticTraceAnalysis (HTA) 0.6 finds them.
//!
//! Of each rank, step, stream and kernel called `ncclKernel…` that takes at least 1 % of a mean step, the
//! last call is looked at. The stream and kernel whose durations differ most over ranks (mean over the steps
//! of their standard deviation) decides: in each step, the ranks on which it starts latest are stragglers.
//! So one kernel a step decides, clocks have to be the same, and kernels called `ncclDevKernel…` (NCCL 2.19)
//! are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::frame::Frame;
use super::hta::{last_start, rounded, steps, work};
use super::rank::{Seen, grouped, with_file};
use super::subject::Inspected;
use super::view::View;
use crate::attribute::span_of;
use crate::model::Ident;
use crate::units::{Ns, Span};

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct Late {
    names: Vec<String>,
    kernels: Vec<Kernel>,
    /// From the first to the last moment of what belongs to a step.
    extent: Option<Span>,
    steps: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Kernel {
    step: u64,
    stream: i64,
    name: u32,
    span: Span,
}

/// The kernels of `view` that may tell.
pub(super) fn kernels(view: &View<'_>) -> Late {
    let trace = view.trace();
    let events = &trace.events;
    let all = steps(view);
    let last = last_start(&all).unwrap_or(Ns(i64::MAX));
    let wanted: Vec<_> = all.iter().filter(|step| step.span.start < last).collect();
    let step_at = |at: Ns| {
        let after = wanted.partition_point(|step| step.span.start <= at);
        let step = wanted[..after].last()?;
        (at <= step.span.end).then_some(step.number)
    };
    let mut late = Late {
        steps: wanted.iter().map(|step| step.number).collect(),
        ..Late::default()
    };
    let mut launches: BTreeMap<u64, u64> = BTreeMap::new();
    for id in events.ids() {
        let activity = events.activity(id);
        if activity.is_device_work() || !events.is_complete(id) {
            continue;
        }
        let span = rounded(span_of(trace, id));
        let Some(step) = step_at(span.start) else {
            continue;
        };
        if let Some(args) = events.launch_args(id) {
            launches.insert(args.correlation, step);
        }
        late.extend(span);
    }
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for work in work(view) {
        let args = events.device_args(work.event);
        let Some(step) = args.and_then(|args| launches.get(&args.correlation)) else {
            continue;
        };
        let span = rounded(span_of(trace, work.event));
        late.extend(span);
        let name = trace.name(work.event);
        let stream = match work.stream {
            Ident::Int(stream) if stream > 0 => stream,
            _ => continue,
        };
        if *step == 0 || !name.starts_with("ncclKernel") {
            continue;
        }
        let next = u32::try_from(numbers.len()).expect("no more names than events");
        late.kernels.push(Kernel {
            step: *step,
            stream,
            name: *numbers.entry(name).or_insert(next),
            span,
        });
    }
    late.names = vec![String::new(); numbers.len()];
    for (name, number) in numbers {
        name.clone_into(&mut late.names[number as usize]);
    }
    late
}

impl Late {
    fn extend(&mut self, span: Span) {
        let extent = self.extent.get_or_insert(span);
        extent.start = extent.start.min(span.start);
        extent.end = extent.end.max(span.end);
    }
}

/// Stream, kernel and step.
type Place<'a> = (i64, &'a str, u64);

/// How often each rank starts last, or among the last two, in the kernel that tells.
struct Row<'a> {
    file: &'a Inspected<'a, Seen>,
    kernel: Option<&'a str>,
    stream: Option<i64>,
    steps: u64,
    last: u64,
    last_two: u64,
}

/// One row a file.
pub(super) fn frame(files: &[Inspected<'_, Seen>]) -> Frame {
    let runs = grouped(files).into_iter();
    let rows: Vec<Row<'_>> = runs.flat_map(|run| rows(&run)).collect();
    let frame = Frame::new(
        "potential_stragglers",
        "How often each rank starts the kernel that tells last, as HTA finds stragglers.",
    );
    with_file(frame, &rows, |row| row.file)
        .text("kernel", &rows, |row| row.kernel.map(str::to_owned))
        .id("stream", &rows, |row| row.stream)
        .count("steps", &rows, |row| row.kernel.map(|_| row.steps))
        .count("times_last", &rows, |row| row.kernel.map(|_| row.last))
        .count("times_among_last_two", &rows, |row| {
            row.kernel.map(|_| row.last_two)
        })
}

fn rows<'a>(files: &[&'a Inspected<'a, Seen>]) -> Vec<Row<'a>> {
    let candidates = candidates(files);
    let told = telling(&candidates);
    let mut rows: Vec<Row<'a>> = files
        .iter()
        .map(|file| Row {
            file,
            kernel: told.map(|(_, name)| name),
            stream: told.map(|(stream, _)| stream),
            steps: 0,
            last: 0,
            last_two: 0,
        })
        .collect();
    for ((stream, name, _), spans) in &candidates {
        if told != Some((*stream, *name)) {
            continue;
        }
        let mut starts: Vec<Ns> = spans.values().map(|span| span.start).collect();
        starts.sort_unstable_by_key(|start| std::cmp::Reverse(*start));
        let threshold = |count: usize| starts.get(count - 1).or(starts.last()).copied();
        for (file, span) in spans {
            let row = &mut rows[*file];
            row.steps += 1;
            row.last += u64::from(Some(span.start) >= threshold(1));
            row.last_two += u64::from(Some(span.start) >= threshold(2));
        }
    }
    rows
}

/// The last long call of each stream, kernel and step, by file.
fn candidates<'a>(files: &[&'a Inspected<'a, Seen>]) -> BTreeMap<Place<'a>, BTreeMap<usize, Span>> {
    let all = || {
        files
            .iter()
            .filter_map(|file| Some((file, file.seen.late.as_ref()?)))
    };
    let bases = files.iter().map(|file| file.seen.base).min();
    let base = bases.unwrap_or_default();
    let shift = |file: &Inspected<'_, Seen>, span: Span| {
        let by = file.seen.base.0.saturating_sub(base.0);
        let [start, end] = [span.start, span.end].map(|at| Ns(at.0.saturating_add(by)));
        Span::new(start, end)
    };
    let extents: Vec<Span> = all()
        .filter_map(|(file, late)| Some(shift(file, late.extent?)))
        .collect();
    let steps: BTreeSet<u64> = all()
        .flat_map(|(_, late)| late.steps.iter().copied())
        .collect();
    let first = extents.iter().map(|span| span.start).min();
    let last = extents.iter().map(|span| span.end).max();
    let (Some((first, last)), false) = (first.zip(last), steps.is_empty()) else {
        return BTreeMap::new();
    };
    let whole = i128::from(last.0) - i128::from(first.0);
    let mut found: BTreeMap<Place<'a>, BTreeMap<usize, Span>> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        let Some(late) = &file.seen.late else {
            continue;
        };
        for kernel in &late.kernels {
            // At least a hundredth of the mean step.
            let len = i128::from(kernel.span.end.0) - i128::from(kernel.span.start.0);
            if len * 100 * steps.len() as i128 >= whole {
                let place = (
                    kernel.stream,
                    late.names[kernel.name as usize].as_str(),
                    kernel.step,
                );
                let span = shift(file, kernel.span);
                let known = found
                    .entry(place)
                    .or_default()
                    .entry(number)
                    .or_insert(span);
                if (span.start, span.end) > (known.start, known.end) {
                    *known = span;
                }
            }
        }
    }
    found
}

/// The stream and kernel whose durations differ most over ranks.
fn telling<'a>(candidates: &BTreeMap<Place<'a>, BTreeMap<usize, Span>>) -> Option<(i64, &'a str)> {
    let mut deviations: BTreeMap<(i64, &'a str), Vec<f64>> = BTreeMap::new();
    for ((stream, name, _), spans) in candidates {
        let durations: Vec<f64> = spans.values().map(|span| span.len().0 as f64).collect();
        if durations.len() > 1 {
            let count = durations.len() as f64;
            let mean = durations.iter().sum::<f64>() / count;
            let squares: f64 = durations.iter().map(|own| (own - mean).powi(2)).sum();
            let deviation = (squares / (count - 1.0)).sqrt();
            deviations
                .entry((*stream, name))
                .or_default()
                .push(deviation);
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let mut best: Option<((i64, &'a str), f64)> = None;
    for (place, all) in deviations {
        let mean = mean(&all);
        if best.is_none_or(|(_, known)| mean > known) {
            best = Some((place, mean));
        }
    }
    best.map(|(place, _)| place)
}
