//! Annotations (`record_function` ranges): their time on the host, and the device work launched under
//! them.
//!
//! ```text
//! main thread      ── "## backward ##" ───────────┐
//! backward thread     ↓ launch        ↓ launch    │
//! device                 ├─ a ──┤        ├── b ───┼────┤   "## backward ##": a + b
//! ```
//! - Work counts under an annotation when its launch lies in it, on its own thread; and when the launch
//!   lies in a node of the backward pass on another thread of the process, and the annotation is on the
//!   main thread and has no namesake on those others. (*Other threads* is that part.)
//! - Annotations of one name on one thread that overlap count once.
//!
//! Rows of different names overlap. HTA sums the mirrors of annotations that Kineto writes on device rows,
//! which exist only for the thread of the annotation: `## backward ##` has nothing of the backward pass.

use std::collections::{BTreeMap, BTreeSet};

use super::frame::{Frame, Unit};
use super::view::View;
use crate::attribute::{NONE, union};
use crate::model::StrId;
use crate::units::{Ns, Span};

/// Launches of one thread, or of several, in order of time.
#[derive(Default)]
struct Launches {
    /// Moment, and duration of the work.
    all: Vec<(Ns, Ns)>,
    /// Work and its time before each.
    before: Vec<Device>,
}

/// Device work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Device {
    events: u64,
    sum: Ns,
}

impl Launches {
    fn finish(&mut self) {
        self.all.sort_unstable();
        let mut sum = Device::default();
        self.before.push(sum);
        for (_, dur) in &self.all {
            sum.events += 1;
            sum.sum += *dur;
            self.before.push(sum);
        }
    }

    /// Work launched inside disjoint spans.
    fn inside(&self, spans: &[Span]) -> Device {
        let mut sum = Device::default();
        for span in spans {
            let place = |at| self.all.partition_point(|launch| launch.0 < at);
            let (from, to) = (self.before[place(span.start)], self.before[place(span.end)]);
            sum.events += to.events - from.events;
            sum.sum += to.sum - from.sum;
        }
        sum
    }
}

/// One row of the table.
#[derive(Debug, Clone, Default)]
struct Row {
    name: String,
    calls: u64,
    sum: Ns,
    min: Ns,
    max: Ns,
    /// Union on each thread.
    host: Ns,
    own: Device,
    others: Device,
}

/// Host and device time by annotation.
pub(super) fn annotations(view: &View<'_>) -> Frame {
    let rows = rows(view);
    let has_device_work = !view.dissection.work.is_empty();
    let device = |time: Ns| has_device_work.then_some(time);
    Frame::new(
        "annotations",
        "Annotations by host time, with the device work launched under them.",
    )
    .text("annotation", &rows, |row| Some(row.name.clone()))
    .count("calls", &rows, |row| Some(row.calls))
    .ns("host_total_ns", &rows, |row| Some(row.host))
    .ns("mean_ns", &rows, |row| {
        let calls = i64::try_from(row.calls).ok()?;
        row.sum.0.checked_div(calls).map(Ns)
    })
    .ns("min_ns", &rows, |row| Some(row.min))
    .ns("max_ns", &rows, |row| Some(row.max))
    .count("device_events", &rows, |row| {
        has_device_work.then_some(row.own.events + row.others.events)
    })
    .ns("device_ns", &rows, |row| {
        device(row.own.sum + row.others.sum)
    })
    .ns("device_other_threads_ns", &rows, |row| {
        device(row.others.sum)
    })
    .float("device_per_host", Unit::Number, &rows, |row| {
        device(row.own.sum + row.others.sum)?.ratio(row.host)
    })
}

fn rows(view: &View<'_>) -> Vec<Row> {
    let dissection = view.dissection;
    let processes = &dissection.processes.processes;
    let process_of = |thread: usize| dissection.processes.threads[thread].process;
    let threads = &dissection.host.threads;
    let mut own: Vec<Launches> = threads.iter().map(|_| Launches::default()).collect();
    let mut backward: Vec<Launches> = processes.iter().map(|_| Launches::default()).collect();
    for work in view.work() {
        let (Some(launch), Some(launcher)) = (view.launch(work), view.launcher(work.launch)) else {
            continue;
        };
        let entry = (launch.at, work.span.len());
        own[launcher.thread].all.push(entry);
        let process = process_of(launcher.thread);
        let in_node = view.op(launcher).is_some_and(|op| op.node != NONE);
        if in_node && processes[process].main != launcher.thread {
            backward[process].all.push(entry);
        }
    }
    own.iter_mut()
        .chain(&mut backward)
        .for_each(Launches::finish);

    let mut by_name: BTreeMap<(StrId, usize), Vec<Span>> = BTreeMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for annotation in &thread.annotations {
            if view.wants(view.step_at(number, annotation.span.start)) {
                let name = view.trace().events.name(annotation.event);
                by_name
                    .entry((name, number))
                    .or_default()
                    .push(annotation.span);
            }
        }
    }
    // Processes in which a name is on another thread than the main one.
    let elsewhere: BTreeSet<(StrId, usize)> = by_name
        .keys()
        .map(|(name, thread)| (*name, *thread, process_of(*thread)))
        .filter(|(_, thread, process)| processes[*process].main != *thread)
        .map(|(name, _, process)| (name, process))
        .collect();
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for ((name, thread), spans) in by_name {
        let text = view.trace().strings.get(name);
        let row = rows.entry(text).or_default();
        let lengths = || spans.iter().map(|span| span.len());
        let shortest = lengths().min().unwrap_or_default();
        row.min = if row.calls == 0 {
            shortest
        } else {
            row.min.min(shortest)
        };
        row.max = row.max.max(lengths().max().unwrap_or_default());
        row.calls += spans.len() as u64;
        row.sum += lengths().sum();
        let spans = union(spans);
        row.host += spans.iter().map(|span| span.len()).sum();
        let add = |sum: &mut Device, more: Device| {
            sum.events += more.events;
            sum.sum += more.sum;
        };
        add(&mut row.own, own[thread].inside(&spans));
        let process = process_of(thread);
        if processes[process].main == thread && !elsewhere.contains(&(name, process)) {
            add(&mut row.others, backward[process].inside(&spans));
        }
    }
    let mut rows: Vec<Row> = rows
        .into_iter()
        .map(|(name, row)| Row {
            name: name.to_owned(),
            ..row
        })
        .collect();
    rows.sort_by(|a, b| (b.host, &a.name).cmp(&(a.host, &b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cells, frames};
    use super::super::{InspectOptions, Topic};
    use crate::attribute::trace_in_lines;

    #[test]
    fn work_of_backward_threads_counts_under_the_annotation_of_the_main_thread() {
        let trace = trace_in_lines(
            r"
            note 1/1 0 100 ProfilerStep#4
            note 1/1 0 20 ## forward ##
            op 1/1 1 9 aten::mm seq=7
            launch 1/1 2 1 cudaLaunchKernel corr=11
            note 1/1 30 40 ## backward ##
            note 1/1 50 30 ## backward ##
            op 1/2 35 20 autograd::engine::evaluate_function: MmBackward0 seq=7 fwd=1
            note 1/2 36 10 inner
            launch 1/2 40 1 cudaLaunchKernel corr=12
            launch 1/2 90 1 cudaLaunchKernel corr=13
            note 1/1 85 10 inner
            note 1/1 96 3 Optimizer.step#SGD.step
            kernel 0/7 10 5 a corr=11
            kernel 0/7 45 6 b corr=12
            kernel 0/7 95 2 c corr=13",
        );
        let seen = frames(&trace, Topic::Operators, &InspectOptions::default());
        let columns = [
            "annotation",
            "calls",
            "host_total_ns",
            "device_events",
            "device_ns",
            "device_other_threads_ns",
        ];
        // The launch at 90 is in no node, and "inner" is on both threads.
        assert_eq!(
            cells(&seen, "annotations", &columns),
            [
                "ProfilerStep#4 1 100000 2 11000 6000",
                "## backward ## 2 50000 1 6000 6000",
                "## forward ## 1 20000 1 5000 0",
                "inner 2 20000 1 6000 0",
                "Optimizer.step#SGD.step 1 3000 0 0 0",
            ]
        );
    }
}
