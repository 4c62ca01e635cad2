//! Rows that are added: phases and idle time of devices, recompute on host threads, repaired events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde_json::{Value, json};

use super::event::micros;
use super::lanes::Lanes;
use super::{Processes, spelled};
use crate::attribute::{Activity, Dissection, HostThread, NONE, Stretch, span_of};
use crate::inspect::idle_gaps;
use crate::model::{Ident, Trace};
use crate::units::{Ns, Span};

/// Category of everything that is added.
const CATEGORY: &str = "tracekit";

/// The rows that are added to one trace.
pub(super) struct Tracks {
    rows: Vec<Row>,
    /// Names of lanes: process, thread, name, as JSON.
    lanes: Vec<(Value, i64, String)>,
}

/// A row.
struct Row {
    pid: Value,
    tid: i64,
    name: String,
    /// Place among the rows of its process.
    order: i64,
    slices: Vec<Slice>,
}

struct Slice {
    span: Span,
    name: String,
    args: Option<Value>,
}

impl Tracks {
    pub(super) fn new(
        dissection: &Dissection<'_>,
        lanes: &mut Lanes<'_>,
        processes: &Processes,
    ) -> Self {
        let trace = dissection.trace;
        let mut tracks = Self {
            rows: Vec::new(),
            lanes: lane_names(trace, lanes, processes),
        };
        for work in dissection.work.chunk_by(|a, b| a.device == b.device) {
            let pid = process(
                trace,
                trace.tracks.get(trace.events.track(work[0].event)).pid,
                processes,
            );
            let phases = phases(Activity::new(work).stretches());
            tracks.push(&pid, lanes, "tracekit: phases", -3, phases);
            let repaired = work.iter().filter_map(|work| {
                let raw = span_of(trace, work.event);
                (raw != work.span).then(|| Slice {
                    span: work.span,
                    name: format!("repaired: {}", trace.name(work.event)),
                    args: Some(json!({"raw_dur_ns": raw.len(), "dur_ns": work.span.len()})),
                })
            });
            // Those of several streams may overlap.
            for slices in apart(repaired.collect()) {
                tracks.push(&pid, lanes, "tracekit: repaired", -1, slices);
            }
        }
        for (device, gaps) in idle_gaps(dissection) {
            // Work is in order of devices.
            let place = dissection.work.partition_point(|work| work.device < device);
            let Some(work) = dissection.work.get(place) else {
                continue;
            };
            let pid = process(
                trace,
                trace.tracks.get(trace.events.track(work.event)).pid,
                processes,
            );
            let slices = gaps.into_iter().map(|(span, cause)| Slice {
                span,
                name: format!("idle: {}", cause.replace('_', " ")),
                args: None,
            });
            tracks.push(&pid, lanes, "tracekit: idle", -2, slices.collect());
        }
        for (number, thread) in dissection.host.threads.iter().enumerate() {
            let slices = recompute(dissection, number, thread);
            if slices.is_empty() {
                continue;
            }
            let pid = process(trace, thread.pid, processes);
            let name = format!("tracekit: recompute on thread {}", plain(trace, thread.tid));
            for slices in apart(slices) {
                tracks.push(&pid, lanes, &name, -1, slices);
            }
        }
        tracks
    }

    fn push(
        &mut self,
        pid: &Value,
        lanes: &mut Lanes<'_>,
        name: &str,
        order: i64,
        slices: Vec<Slice>,
    ) {
        if !slices.is_empty() {
            self.rows.push(Row {
                pid: pid.clone(),
                tid: lanes.fresh(),
                name: name.to_owned(),
                order,
                slices,
            });
        }
    }

    /// How many slices are added.
    pub(super) fn slices(&self) -> u64 {
        self.rows.iter().map(|row| row.slices.len() as u64).sum()
    }

    /// Everything as events, with `shift` added to times.
    pub(super) fn events(&self, shift: Ns) -> impl Iterator<Item = String> {
        let lanes = self.lanes.iter().map(|(pid, tid, name)| {
            json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
                .to_string()
        });
        let rows = self.rows.iter().flat_map(move |row| {
            let named = [("thread_name", json!({"name": row.name})), ("thread_sort_index", json!({"sort_index": row.order}))];
            let named = named.map(|(name, args)| {
                json!({"ph": "M", "name": name, "pid": row.pid, "tid": row.tid, "args": args})
                    .to_string()
            });
            let slices = row.slices.iter().map(move |slice| {
                // Numbers are written with all their digits, which a number of JSON here would not keep.
                let args = slice.args.as_ref().map_or_else(String::new, |args| format!(",\"args\":{args}"));
                format!(
                    "{{\"ph\":\"X\",\"cat\":\"{CATEGORY}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}{args}}}",
                    Value::String(slice.name.clone()),
                    row.pid,
                    row.tid,
                    micros(slice.span.start + shift),
                    micros(slice.span.len()),
                )
            });
            named.into_iter().chain(slices)
        });
        lanes.chain(rows)
    }
}

fn process(trace: &Trace, pid: Ident, processes: &Processes) -> Value {
    let text = spelled(trace, pid);
    match processes.number(&text) {
        Some(number) => json!(number),
        None => serde_json::from_str(&text).unwrap_or(Value::Null),
    }
}

fn plain(trace: &Trace, ident: Ident) -> String {
    match ident {
        Ident::Missing => "(none)".to_owned(),
        Ident::Int(number) => number.to_string(),
        Ident::Text(text) => trace.strings.get(text).to_owned(),
    }
}

fn lane_names(
    trace: &Trace,
    lanes: &Lanes<'_>,
    processes: &Processes,
) -> Vec<(Value, i64, String)> {
    lanes
        .rows
        .iter()
        .zip(&lanes.tids)
        .map(|((row, lane), tid)| {
            let track = trace.tracks.get(*row);
            let name = format!("{}, lane {lane} (overlapping)", plain(trace, track.tid));
            (process(trace, track.pid, processes), *tid, name)
        })
        .collect()
}

/// Stretches of one phase, whatever their class.
fn phases(stretches: &[Stretch]) -> Vec<Slice> {
    let together = stretches.chunk_by(|a, b| a.bucket == b.bucket && a.span.end == b.span.start);
    together
        .map(|stretches| {
            let (first, last) = (stretches[0], stretches[stretches.len() - 1]);
            Slice {
                span: Span::new(first.span.start, last.span.end),
                name: first.bucket.as_str().to_owned(),
                args: None,
            }
        })
        .collect()
}

/// Recomputed operators of a thread: the outermost ones, neighbours together.
fn recompute(dissection: &Dissection<'_>, number: usize, thread: &HostThread) -> Vec<Slice> {
    let evidence = |op: u32| {
        let at = thread.ops[op as usize].span.start;
        dissection.judge.verdict(at, number, op).evidence
    };
    let mut slices: Vec<(Slice, u32, &'static str)> = Vec::new();
    let mut inside = vec![false; thread.ops.len()];
    for (place, op) in (0u32..).zip(&thread.ops) {
        let Some(kind) = evidence(place) else {
            continue;
        };
        inside[place as usize] = true;
        if op.parent != NONE && inside[op.parent as usize] {
            continue;
        }
        match slices.last_mut() {
            Some((slice, parent, of))
                if *parent == op.parent && *of == kind.as_str() && op.parent != NONE =>
            {
                slice.span.end = slice.span.end.max(op.span.end);
            }
            _ => {
                let slice = Slice {
                    span: op.span,
                    name: "recompute".to_owned(),
                    args: Some(json!({"evidence": kind.as_str()})),
                };
                slices.push((slice, op.parent, kind.as_str()));
            }
        }
    }
    slices.into_iter().map(|(slice, _, _)| slice).collect()
}

/// `slices` in rows in which none overlaps another: each in the row that has been free for longest.
fn apart(mut slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    slices.sort_by(|a, b| (a.span, &a.name).cmp(&(b.span, &b.name)));
    let mut rows: Vec<Vec<Slice>> = Vec::new();
    let mut ends: BinaryHeap<Reverse<(Ns, usize)>> = BinaryHeap::new();
    for slice in slices {
        let (start, end) = (slice.span.start, slice.span.end);
        let free = ends.peek().filter(|free| free.0.0 <= start);
        let row = if let Some(Reverse((_, row))) = free.copied() {
            ends.pop();
            row
        } else {
            rows.push(Vec::new());
            rows.len() - 1
        };
        rows[row].push(slice);
        ends.push(Reverse((end, row)));
    }
    rows
}
