//! Synchronisation: which device work the host or a stream waits for, from `cuda_sync` records.
//!
//! ```text
//! host      … record ──────────────── wait event ── launch c ──
//! stream 7  ├─ a ─┤├─ b ─┤ ← recorded behind b
//! stream 20              └──────────────→ ├─ c ─┤      c starts after b
//! ```
//! A stream that waits for an event holds up what is launched on it next (by the thread that made it
//! wait); the event is what was launched last, on the stream that it was recorded on, before it was recorded.

use super::view::View;
use crate::attribute::{NONE, Work};
use crate::error::Result;
use crate::ingest::Args;
use crate::model::{ActivityType, EventId, Ident, TrackId};
use crate::units::Ns;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Awaited {
    /// All work of a device.
    Device(i64),
    /// All work of a stream of a device.
    Stream(i64, i64),
    /// One piece of work, by its number.
    Work(u32),
}

/// A wait of the host: the call that ends when `awaited` is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostWait {
    /// Start of the call.
    pub(super) called: Ns,
    /// End of the record.
    pub(super) at: Ns,
    pub(super) call: EventId,
    pub(super) awaited: Awaited,
}

/// All waits of a trace.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// True when the trace has synchronisation records at all.
    pub(super) recorded: bool,
    /// In order of the calls.
    pub(super) of_host: Vec<HostWait>,
    /// What waits, and for what: numbers of work, in order.
    pub(super) of_work: Vec<(u32, u32)>,
}

/// A `cuda_sync` record.
struct Record {
    kind: Kind,
    at: Ns,
    correlation: u64,
    device: i64,
    stream: Option<i64>,
    /// Stream and correlation of the record of the event.
    event: Option<(i64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Context,
    Stream,
    Event,
    StreamWait,
}

const KEYS: [&str; 6] = [
    "cuda_sync_kind",
    "device",
    "stream",
    "correlation",
    "wait_on_stream",
    "wait_on_cuda_event_record_corr_id",
];

impl Record {
    fn of(view: &View<'_>, event: EventId, args: &Args<'_>) -> Option<Self> {
        let trace = view.trace();
        let kind = args.text("cuda_sync_kind");
        let kind = match kind.as_deref().unwrap_or(trace.name(event)) {
            "Context Sync" | "Context Synchronize" => Kind::Context,
            "Stream Sync" | "Stream Synchronize" => Kind::Stream,
            "Event Sync" | "Event Synchronize" => Kind::Event,
            "Stream Wait Event" => Kind::StreamWait,
            _ => return None,
        };
        let pid = match trace.tracks.get(trace.events.track(event)).pid {
            Ident::Int(pid) => Some(pid),
            Ident::Missing | Ident::Text(_) => None,
        };
        let recorded = args
            .int("wait_on_cuda_event_record_corr_id")
            .and_then(|correlation| u64::try_from(correlation).ok());
        let stream = args.int("wait_on_stream").filter(|stream| *stream >= 0);
        Some(Self {
            kind,
            at: trace.events.ts(event)? + trace.events.dur(event)?,
            correlation: args.bits("correlation"),
            device: args.int("device").or(pid)?,
            stream: args.int("stream"),
            event: stream.zip(recorded),
        })
    }
}

/// The calls of a trace by correlation.
struct Calls(Vec<(u64, Ns, EventId)>);

impl Calls {
    fn new(view: &View<'_>) -> Self {
        let events = &view.trace().events;
        let mut calls: Vec<_> = events
            .ids()
            .filter(|id| events.activity(*id).is_launch() && events.is_complete(*id))
            .filter_map(|id| Some((events.launch_args(id)?.correlation, events.ts(id)?, id)))
            .filter(|call| call.0 != 0)
            .collect();
        calls.sort_unstable();
        Self(calls)
    }

    /// The call of this correlation; `None` also when there are several.
    fn find(&self, correlation: u64) -> Option<(Ns, EventId)> {
        let from = self.0.partition_point(|call| call.0 < correlation);
        let found = self.0.get(from).filter(|call| call.0 == correlation)?;
        let alone = self
            .0
            .get(from + 1)
            .is_none_or(|next| next.0 != correlation);
        alone.then_some((found.1, found.2))
    }
}

/// A launch on a stream: of which thread (for what waits), when, and the number of its work.
type OnStream<T> = Vec<(T, Ns, Ns, u32)>;

/// The waits of a trace; `works` is its device work as it is numbered.
pub(super) fn waits(view: &View<'_>, works: &[&Work]) -> Result<Waits> {
    let events = &view.trace().events;
    let wanted: Vec<EventId> = events
        .ids()
        .filter(|id| events.activity(*id) == ActivityType::CudaSync && events.is_complete(*id))
        .collect();
    let mut waits = Waits {
        recorded: !wanted.is_empty(),
        ..Waits::default()
    };
    if wanted.is_empty() {
        return Ok(waits);
    }
    let of = |event, args: &Args<'_>| Record::of(view, event, args);
    let records = view.arguments(&wanted, &KEYS, of)?;
    let calls = Calls::new(view);
    // By stream (and thread), in order of launch; of one launch, by the end and by the start of its work.
    let mut sources: OnStream<(i64, i64)> = Vec::new();
    let mut targets: OnStream<(TrackId, i64, i64)> = Vec::new();
    for (number, work) in (0u32..).zip(works) {
        let (Ident::Int(stream), Some(launch)) = (work.stream, view.launch(work)) else {
            continue;
        };
        if work.launch != NONE {
            sources.push(((work.device, stream), launch.at, work.span.end, number));
            let key = (launch.track, work.device, stream);
            targets.push((key, launch.at, work.span.start, number));
        }
    }
    sources.sort_unstable();
    targets.sort_unstable();
    for record in records.into_iter().flatten() {
        let Some((at, call)) = calls.find(record.correlation) else {
            continue;
        };
        let source = || {
            let (stream, recorded) = record.event?;
            let (recorded, _) = calls.find(recorded)?;
            let key = (record.device, stream);
            let before = sources.partition_point(|entry| (entry.0, entry.1) <= (key, recorded));
            let last = sources[..before].last().filter(|last| last.0 == key)?;
            Some(last.3)
        };
        let awaited = match record.kind {
            Kind::Context => Some(Awaited::Device(record.device)),
            Kind::Stream => record
                .stream
                .map(|stream| Awaited::Stream(record.device, stream)),
            Kind::Event => source().map(Awaited::Work),
            Kind::StreamWait => {
                let (Some(source), Some(stream)) = (source(), record.stream) else {
                    continue;
                };
                let key = (events.track(call), record.device, stream);
                let next = targets.partition_point(|entry| (entry.0, entry.1) < (key, at));
                let next = targets.get(next).filter(|next| next.0 == key);
                waits.of_work.extend(next.map(|next| (next.3, source)));
                continue;
            }
        };
        waits.of_host.extend(awaited.map(|awaited| HostWait {
            called: at,
            at: record.at,
            call,
            awaited,
        }));
    }
    waits.of_host.sort_unstable();
    waits.of_work.sort_unstable();
    waits.of_work.dedup();
    Ok(waits)
}
