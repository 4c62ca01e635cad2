//! Queues: work that was launched on a stream and has not started yet.
//!
//! ```text
//! host     launch a   launch b   launch c
//!             │          │          │
//! stream      ·    ├─ a ─·──────────·────┤├─ b ─┤├─ c ─┤
//! length   0  1    0     1          2     1      0
//! ```
//! Its length goes up by one when the call of a launch starts, for each piece of work it launches on the
//! stream, and down by one when that work starts. What happens at one instant happens at once. Work whose
//! launch is not known does not count; work that starts before its launch was never in the queue.
//!
//! A host that runs ahead blocks when a queue is full, at [`FULL`] launches; that number, like the rest,
//! is HTA's (`get_queue_length_summary`, `get_time_spent_blocked_on_full_queue`).

use super::distribution::Description;
use super::frame::{Frame, Unit};
use super::hta_event::HtaEvents;
use super::lane::{Stream, streams};
use super::view::View;
use crate::attribute::Work;
use crate::units::Ns;

/// So many launches fit into the queue of a CUDA stream.
const FULL: i64 = 1024;

/// Into so many pieces the time of a series is cut.
const PIECES: i64 = 100;

/// The queue of one stream.
struct Queue {
    device: i64,
    stream: Option<String>,
    launched: u64,
    max: i64,
    start: Ns,
    end: Ns,
    /// Length times time.
    area: i128,
    waiting: Ns,
    full: Ns,
    series: Vec<Piece>,
}

/// A piece of the time of a queue.
#[derive(Clone, Copy)]
struct Piece {
    start: Ns,
    end: Ns,
    max: i64,
    area: i128,
}

impl Queue {
    fn new(view: &View<'_>, device: i64, stream: Stream<'_>) -> Option<Self> {
        let mut changes: Vec<(Ns, i64)> = Vec::with_capacity(stream.work.len() * 2);
        let mut launched = 0;
        for work in &stream.work {
            if let Some(launch) = view.launch(work) {
                launched += 1;
                changes.push((launch.at.min(work.span.start), 1));
                changes.push((work.span.start, -1));
            }
        }
        changes.sort_unstable();
        let (start, end) = (changes.first()?.0, changes.last()?.0);
        let mut queue = Self {
            device,
            stream: stream.name,
            launched,
            max: 0,
            start,
            end,
            area: 0,
            waiting: Ns::ZERO,
            full: Ns::ZERO,
            series: pieces(start, end),
        };
        let mut length = 0;
        let mut since = start;
        for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
            queue.hold(since, at_once[0].0, length);
            since = at_once[0].0;
            length += at_once.iter().map(|(_, change)| change).sum::<i64>();
        }
        Some(queue)
    }

    /// Counts a stretch of one length; stretches come in order of time.
    fn hold(&mut self, start: Ns, end: Ns, length: i64) {
        let time = end - start;
        if time <= Ns::ZERO {
            return;
        }
        self.max = self.max.max(length);
        self.area += i128::from(length) * i128::from(time.0);
        if length > 0 {
            self.waiting += time;
        }
        if length >= FULL {
            self.full += time;
        }
        let from = self.series.partition_point(|piece| piece.end <= start);
        for piece in &mut self.series[from..] {
            if piece.start >= end {
                break;
            }
            let part = piece.end.min(end) - piece.start.max(start);
            piece.max = piece.max.max(length);
            piece.area += i128::from(length) * i128::from(part.0);
        }
    }
}

/// The time from `start` to `end` in pieces of one length; the last may be shorter.
fn pieces(start: Ns, end: Ns) -> Vec<Piece> {
    let length = (end - start).0.div_euclid(PIECES) + 1;
    let cut = |number: i64| (start + Ns(length.saturating_mul(number))).min(end);
    (0..PIECES)
        .map(|number| Piece {
            start: cut(number),
            end: cut(number + 1),
            max: 0,
            area: 0,
        })
        .take_while(|piece| piece.start < piece.end)
        .collect()
}

/// The mean length over a stretch of time.
fn mean(area: i128, start: Ns, end: Ns) -> Option<f64> {
    let time = (end - start).0;
    (time > 0).then(|| area as f64 / time as f64)
}

/// The tables of queues.
pub(super) fn frames(view: &View<'_>) -> [Frame; 2] {
    let mut queues: Vec<Queue> = Vec::new();
    for (device, work) in view.devices() {
        let work: Vec<&Work> = work;
        let streams = streams(view, work).into_iter();
        queues.extend(streams.filter_map(|stream| Queue::new(view, device, stream)));
    }
    let summary = Frame::new(
        "queue",
        "Work launched on a stream that has not started yet.",
    )
    .id("device", &queues, |queue| Some(queue.device))
    .text("stream", &queues, |queue| queue.stream.clone())
    .count("launched", &queues, |queue| Some(queue.launched))
    .count("max_length", &queues, |queue| u64::try_from(queue.max).ok())
    .float("mean_length", Unit::Number, &queues, |queue| {
        mean(queue.area, queue.start, queue.end)
    })
    .ns("time_ns", &queues, |queue| Some(queue.end - queue.start))
    .ns("not_empty_ns", &queues, |queue| Some(queue.waiting))
    .ns("full_ns", &queues, |queue| Some(queue.full));
    let mut busiest: Vec<usize> = (0..queues.len()).collect();
    busiest.sort_by_key(|place| std::cmp::Reverse(queues[*place].launched));
    if view.options.top > 0 {
        busiest.truncate(view.options.top);
    }
    busiest.sort_unstable();
    let rows: Vec<(&Queue, &Piece)> = busiest
        .into_iter()
        .map(|place| &queues[place])
        .flat_map(|queue| queue.series.iter().map(move |piece| (queue, piece)))
        .collect();
    let series = Frame::new(
        "queue_series",
        "How long the queue of a stream is in each hundredth of its time.",
    )
    .id("device", &rows, |row| Some(row.0.device))
    .text("stream", &rows, |row| row.0.stream.clone())
    .at("start_ns", &rows, |row| Some(row.1.start))
    .count("max_length", &rows, |row| u64::try_from(row.1.max).ok())
    .float("mean_length", Unit::Number, &rows, |row| {
        mean(row.1.area, row.1.start, row.1.end)
    });
    [summary, series]
}

/// Calls that HTA takes for launches here.
const HTA_LAUNCHES: [&str; 12] = [
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipMemcpyAsync",
    "hipMemcpyWithStream",
    "hipMemsetAsync",
    "runFunction - job_prep_and_submit_for_execution",
];

/// HTA's `get_queue_length_summary`: the length after each change, every change counting once. Where
/// several happen at one time, HTA's sort leaves them in any order; here work starts first.
pub(super) fn as_hta(view: &View<'_>, events: &HtaEvents) -> Frame {
    let twins = events.twins();
    let text = |name| view.trace().strings.get(name);
    let mut changes: Vec<(i64, Ns, i64)> = Vec::new();
    for event in &events.device {
        let Some((stream, correlation)) = event.stream.zip(event.correlation) else {
            continue;
        };
        let calls = twins.get(&correlation).into_iter().flatten();
        let calls = calls.filter(|call| HTA_LAUNCHES.contains(&text(call.name)));
        let starts = changes.len();
        changes.extend(calls.map(|call| (stream, call.start, 1)));
        if changes.len() > starts {
            changes.push((stream, event.start, -1));
        }
    }
    changes.sort_unstable();
    let rows: Vec<(i64, Description)> = changes
        .chunk_by(|a, b| a.0 == b.0)
        .map(|changes| {
            let mut length = 0;
            let lengths = changes.iter().map(|(_, _, change)| {
                length += change;
                length as f64
            });
            (changes[0].0, Description::of(lengths.collect()))
        })
        .collect();
    let frame = Frame::new(
        "queue_length_summary",
        "What HTA's get_queue_length_summary says.",
    )
    .id("stream", &rows, |row| Some(row.0));
    described(frame, &rows, |row| row.1)
}

/// Adds the columns of `describe` to a frame.
pub(super) fn described<R>(frame: Frame, rows: &[R], of: impl Fn(&R) -> Description) -> Frame {
    let mut frame = frame
        .count("count", rows, |row| Some(of(row).count))
        .float("mean", Unit::Number, rows, |row| of(row).mean)
        .float("std", Unit::Number, rows, |row| of(row).std);
    for (place, name) in ["min", "p25", "p50", "p75", "max"].into_iter().enumerate() {
        frame = frame.float(name, Unit::Number, rows, |row| of(row).quartiles[place]);
    }
    frame
}
