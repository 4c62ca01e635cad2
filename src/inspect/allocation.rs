//! Allocations: the `[memory]` instants of a trace, by device and time, with who made them.
//!
//! ```text
//! addmm  ├──────────────┤
//!           ↑ +512 at 0x7f…0   ↑ −512 at 0x7f…0
//! level  1024 │ 1536           │ 1024       Total Allocated
//! ```
//! PyTorch writes one instant an allocation and one a free: the device, the address, the bytes
//! (negative when freed) and, since 2022, the totals after it.

use super::view::View;
use crate::attribute::{Moment, NONE, Phase};
use crate::error::Result;
use crate::ingest::Args;
use crate::model::{EventFlags, EventId, Ident, Ph, StrId, Trace, TrackId};
use crate::units::Ns;

/// Name of the instants.
const NAME: &str = "[memory]";

/// One allocation or free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: Ns,
    /// Negative when freed.
    pub(super) bytes: i64,
    /// 0 when the trace does not say.
    pub(super) address: u64,
    /// Total allocated afterwards.
    pub(super) allocated: Option<i64>,
    /// Total held from the driver afterwards.
    pub(super) reserved: Option<i64>,
    /// The innermost operator open on the thread; `None` outside of operators.
    pub(super) operator: Option<StrId>,
    /// Input dimensions of the operator.
    pub(super) shape: StrId,
    /// `None` on a thread without any operator or call.
    pub(super) phase: Option<Phase>,
    /// Number of the step, or [`NONE`].
    pub(super) step: u32,
}

/// Memory of one device as one process sees it, with what happened to it in order of time.
#[derive(Debug)]
pub(super) struct Pool {
    /// `c10::DeviceType`.
    pub(super) kind: i64,
    /// Index of the device; negative for the host.
    pub(super) index: i64,
    /// The process, where the trace has allocations of several.
    pub(super) process: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// Names of `c10::DeviceType`, as in `torch.device`.
const KINDS: [&str; 21] = [
    "cpu",
    "cuda",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "fpga",
    "maia",
    "xla",
    "vulkan",
    "metal",
    "xpu",
    "mps",
    "meta",
    "hpu",
    "ve",
    "lazy",
    "ipu",
    "mtia",
    "privateuseone",
];

impl Pool {
    /// `cpu`, `cuda`; by number where PyTorch has no name.
    pub(super) fn kind_name(&self) -> String {
        let kind = usize::try_from(self.kind)
            .ok()
            .and_then(|kind| KINDS.get(kind));
        kind.map_or_else(
            || format!("device type {}", self.kind),
            |kind| (*kind).to_owned(),
        )
    }

    /// `cpu`, `cuda:0`.
    pub(super) fn name(&self) -> String {
        let kind = self.kind_name();
        if self.index < 0 {
            kind
        } else {
            format!("{kind}:{}", self.index)
        }
    }

    /// True for memory of the host, which has no caching allocator: its reserved total is always 0.
    pub(super) fn is_host(&self) -> bool {
        self.kind == 0
    }
}

/// One instant before it is placed.
struct Instant {
    kind: i64,
    index: i64,
    event: EventId,
    /// `Ev Idx`: the order of events that start at one instant.
    order: i64,
    change: Change,
}

/// The pools of a trace in order of device; each with its changes in order of time.
pub(super) fn pools(view: &View<'_>) -> Result<Vec<Pool>> {
    let trace = view.trace();
    let events = &trace.events;
    let Some(name) = trace.strings.find(NAME) else {
        return Ok(Vec::new());
    };
    let is_change = |id: &EventId| {
        events.name(*id) == name
            && matches!(events.ph(*id), Ph(b'i' | b'I'))
            && events.flags(*id).has(EventFlags::HAS_TS)
            && !events.flags(*id).has(EventFlags::EXCLUDED)
    };
    let wanted: Vec<EventId> = events.ids().filter(is_change).collect();
    let instant = |event, args: &Args<'_>| instant(view, event, args);
    let mut instants: Vec<Instant> = view
        .arguments(&wanted, &KEYS, instant)?
        .into_iter()
        .flatten()
        .collect();
    let places = places_of_rows(trace);
    let place_of = |event| places[events.track(event).index()];
    let process = |event| place_of(event).process;
    instants.sort_unstable_by_key(|instant| {
        let Place { process, row } = place_of(instant.event);
        (instant.kind, instant.index, process, rank(instant), row)
    });
    place(view, &mut instants);
    let several = instants
        .iter()
        .any(|instant| process(instant.event) != process(instants[0].event));
    let same = |a: &Instant, b: &Instant| {
        (a.kind, a.index) == (b.kind, b.index) && process(a.event) == process(b.event)
    };
    let pool = |instants: &[Instant]| Pool {
        kind: instants[0].kind,
        index: instants[0].index,
        process: several
            .then(|| view.ident(trace.tracks.get(events.track(instants[0].event)).pid))
            .flatten(),
        changes: instants.iter().map(|instant| instant.change).collect(),
    };
    Ok(instants.chunk_by(same).map(pool).collect())
}

/// Where a row stands among all.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Its process among the processes.
    process: u32,
    row: u32,
}

/// The place of each track by its texts, which do not depend on the order of events. Rows of one text share a place.
fn places_of_rows(trace: &Trace) -> Vec<Place> {
    let tracks = trace.tracks.iter();
    let mut rows: Vec<(TrackId, _)> = tracks.map(|(it, _)| (it, trace.row_text(it))).collect();
    rows.sort_unstable_by_key(|(_, text)| *text);
    let mut places = vec![Place::default(); rows.len()];
    let mut place = Place::default();
    for (number, (track, text)) in rows.iter().enumerate() {
        if let Some((_, before)) = number.checked_sub(1).map(|before| &rows[before]) {
            place.process += u32::from(before[0] != text[0]);
            place.row += u32::from(before != text);
        }
        places[track.index()] = place;
    }
    places
}

/// Order within a pool. What no index of the writer orders within an instant is ordered by content:
/// frees first.
fn rank(instant: &Instant) -> (Ns, i64, i64, u64, Option<i64>, Option<i64>) {
    let change = &instant.change;
    (
        change.at,
        instant.order,
        change.bytes,
        change.address,
        change.allocated,
        change.reserved,
    )
}

const KEYS: [&str; 8] = [
    "Device Type",
    "Device Id",
    "Addr",
    "Bytes",
    "Total Allocated",
    "Total Reserved",
    "Ev Idx",
    "Profiler Event Index",
];

/// `None` when it does not say how many bytes of what.
fn instant(view: &View<'_>, event: EventId, args: &Args<'_>) -> Option<Instant> {
    let order = args
        .int("Ev Idx")
        .or_else(|| args.int("Profiler Event Index"));
    Some(Instant {
        kind: args.int("Device Type")?,
        index: args.int("Device Id").unwrap_or(-1),
        event,
        order: order.unwrap_or(i64::MAX),
        change: Change {
            at: view.trace().events.ts(event)?,
            bytes: args.int("Bytes")?,
            address: args.bits("Addr"),
            allocated: args.int("Total Allocated"),
            reserved: args.int("Total Reserved"),
            operator: None,
            shape: StrId::EMPTY,
            phase: None,
            step: NONE,
        },
    })
}

/// Finds the operator, phase and step of each.
fn place(view: &View<'_>, instants: &mut [Instant]) {
    let dissection = view.dissection;
    let (host, processes) = (dissection.host, dissection.processes);
    let tracks = &view.trace().tracks;
    let mut by_thread: Vec<Vec<Moment>> = vec![Vec::new(); host.threads.len()];
    let mut pids: Vec<(Ident, usize)> = host
        .threads
        .iter()
        .zip(&processes.threads)
        .map(|(thread, phases)| (thread.pid, phases.process))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    for (key, instant) in (0u32..).zip(instants.iter_mut()) {
        let track = view.trace().events.track(instant.event);
        let at = instant.change.at;
        if let Some(thread) = host.thread(track) {
            by_thread[thread].push(Moment { at, key });
        }
        let pid = tracks.get(track).pid;
        let process = pids
            .binary_search_by_key(&pid, |(pid, _)| *pid)
            .map_or(usize::MAX, |found| pids[found].1);
        if let Some(step) = dissection.steps.at(process, at) {
            instant.change.step = step;
        }
    }
    for (thread, mut moments) in by_thread.into_iter().enumerate() {
        moments.sort_unstable_by_key(|moment| (moment.at, moment.key));
        let own = &host.threads[thread];
        for (moment, op) in moments.iter().zip(own.innermost_at(&moments)) {
            let change = &mut instants[moment.key as usize].change;
            let verdict = dissection.judge.verdict(moment.at, thread, op);
            change.phase = Some(verdict.placement.phase);
            if op != NONE {
                change.operator = Some(own.ops[op as usize].name);
                change.shape = own.ops[op as usize].dims;
            }
        }
    }
}
