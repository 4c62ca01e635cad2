//! The events of one trace, in columns, in file order.

use super::offset::Offsets;
use super::side::{NarrowDevice, NarrowLaunch, NarrowOp, SideTable};
use super::{ActivityType, StrId, TrackId};
use crate::units::Ns;

/// An event, by its place in the file's event array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub(crate) u32);

impl EventId {
    /// Position in the columns.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The letter in `"ph"`, which the trace format calls "phase"; here *phase* means training phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ph(pub u8);

impl Ph {
    /// `X`: an event with a start and a length.
    pub const COMPLETE: Self = Self(b'X');
    /// `B`: start of an event.
    pub const BEGIN: Self = Self(b'B');
    /// `E`: end of an event.
    pub const END: Self = Self(b'E');
    /// `M`: name of a process or thread.
    pub const METADATA: Self = Self(b'M');
    /// `s`: start of a flow.
    pub const FLOW_START: Self = Self(b's');
    /// `f`: end of a flow.
    pub const FLOW_END: Self = Self(b'f');
    /// The key is missing, empty or no string.
    pub const MISSING: Self = Self(0);

    /// True for letters that the trace format defines.
    pub fn is_known(self) -> bool {
        matches!(
            self.0,
            b'X' | b'B'
                | b'E'
                | b'M'
                | b's'
                | b'f'
                | b't'
                | b'i'
                | b'I'
                | b'C'
                | b'b'
                | b'n'
                | b'e'
                | b'S'
                | b'T'
                | b'p'
                | b'F'
                | b'P'
                | b'N'
                | b'O'
                | b'D'
                | b'R'
                | b'c'
                | b'v'
                | b'V'
                | b'('
                | b')'
                | b','
                | b'='
                | b'a'
        )
    }
}

/// Facts about one event that are rare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventFlags(pub(crate) u8);

impl EventFlags {
    /// `ts` is there and a number of nanoseconds.
    pub const HAS_TS: Self = Self(1);
    /// `dur` is there and a number of nanoseconds, or was found by pairing `B` with `E`.
    pub const HAS_DUR: Self = Self(2);
    /// `args.finished` is `false`.
    pub const UNFINISHED: Self = Self(4);
    /// Left out of every sum and window: negative or absurd time, or a lost record.
    pub const EXCLUDED: Self = Self(8);

    /// True when every flag of `other` is set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the flags of `other`.
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Arguments of host operators and annotations that later stages use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpArgs {
    /// `External id`; 0 when absent.
    pub external: u64,
    /// `Sequence number`; negative when absent.
    pub sequence: i64,
    /// `Fwd thread id`; 0 when absent, the nearest of 32 bits when larger.
    pub fwd_thread: i32,
    /// `Ev Idx` or `Profiler Event Index`; `u32::MAX` when absent, negative or larger.
    pub index: u32,
    /// `Input Dims` as text without white space; empty when absent.
    pub dims: StrId,
}

/// Arguments of runtime and driver calls and of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchArgs {
    /// `correlation` of a call, `id` of a flow; 0 when absent.
    pub correlation: u64,
    /// `External id`; 0 when absent.
    pub external: u64,
}

/// Arguments of device events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceArgs {
    /// `correlation`; 0 when absent.
    pub correlation: u64,
    /// `External id`; 0 when absent.
    pub external: u64,
    /// `device` (peer copies: `inDevice`).
    pub device: Option<i64>,
    /// `stream`.
    pub stream: Option<i64>,
}

/// The events of one trace.
///
/// All columns have one entry an element of the event array, in file order. Which side table an
/// event has a row in follows from its [`ActivityType`]: device work in `device_args`, runtime and
/// driver calls and flows in `launch_args`, operators and annotations in `op_args` when they have such
/// arguments.
#[derive(Debug, Clone, Default)]
pub struct EventTable {
    pub(crate) ph: Vec<Ph>,
    pub(crate) activity: Vec<ActivityType>,
    pub(crate) flags: Vec<EventFlags>,
    pub(crate) name: Vec<StrId>,
    pub(crate) cat: Vec<StrId>,
    pub(crate) track: Vec<TrackId>,
    pub(crate) ts: Vec<i64>,
    pub(crate) dur: SideTable<u32>,
    pub(crate) offset: Offsets,
    pub(crate) side: Vec<u32>,
    pub(crate) op_args: SideTable<NarrowOp>,
    pub(crate) launch_args: SideTable<NarrowLaunch>,
    pub(crate) device_args: SideTable<NarrowDevice>,
}

/// No row in a side table.
pub(crate) const NO_SIDE: u32 = u32::MAX;

impl EventTable {
    /// Makes space for `additional` more events, without their arguments. It is a guess: where there is not so
    /// much memory, none is reserved.
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.ph.try_reserve(additional).ok();
        self.activity.try_reserve(additional).ok();
        self.flags.try_reserve(additional).ok();
        self.name.try_reserve(additional).ok();
        self.cat.try_reserve(additional).ok();
        self.track.try_reserve(additional).ok();
        self.ts.try_reserve(additional).ok();
        self.dur.reserve(additional);
        self.offset.reserve(additional);
        self.side.try_reserve(additional).ok();
    }

    /// Makes space for as many times the events that there are, and their arguments.
    pub(crate) fn reserve_times(&mut self, times: usize) {
        let space = |len: usize| len.saturating_mul(times);
        self.reserve(space(self.len()));
        self.op_args.reserve(space(self.op_args.len()));
        self.launch_args.reserve(space(self.launch_args.len()));
        self.device_args.reserve(space(self.device_args.len()));
    }

    /// Moves over the events that follow; `later` keeps its space. Their rows in side tables must be
    /// numbered from those that are here.
    pub(crate) fn append(&mut self, later: &mut Self) {
        self.ph.append(&mut later.ph);
        self.activity.append(&mut later.activity);
        self.flags.append(&mut later.flags);
        self.name.append(&mut later.name);
        self.cat.append(&mut later.cat);
        self.track.append(&mut later.track);
        self.ts.append(&mut later.ts);
        self.dur.append(&mut later.dur);
        self.offset.append(&mut later.offset);
        self.side.append(&mut later.side);
        self.op_args.append(&mut later.op_args);
        self.launch_args.append(&mut later.launch_args);
        self.device_args.append(&mut later.device_args);
    }

    /// Takes back every event from number `len` on, without their arguments.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.ph.truncate(len);
        self.activity.truncate(len);
        self.flags.truncate(len);
        self.name.truncate(len);
        self.cat.truncate(len);
        self.track.truncate(len);
        self.ts.truncate(len);
        self.dur.truncate(len);
        self.offset.truncate(len);
        self.side.truncate(len);
    }

    /// How many elements the event array has.
    pub fn len(&self) -> usize {
        self.ph.len()
    }

    /// True when the event array is empty.
    pub fn is_empty(&self) -> bool {
        self.ph.is_empty()
    }

    /// All events in file order.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "ingest refuses more than 2^32 - 2 events"
    )]
    pub fn ids(&self) -> impl Iterator<Item = EventId> + use<> {
        (0..self.len() as u32).map(EventId)
    }

    /// The letter in `"ph"`.
    pub fn ph(&self, id: EventId) -> Ph {
        self.ph[id.index()]
    }

    /// The kind of event.
    pub fn activity(&self, id: EventId) -> ActivityType {
        self.activity[id.index()]
    }

    /// Rare facts.
    pub fn flags(&self, id: EventId) -> EventFlags {
        self.flags[id.index()]
    }

    /// The name.
    pub fn name(&self, id: EventId) -> StrId {
        self.name[id.index()]
    }

    /// The text of `cat`.
    pub fn cat(&self, id: EventId) -> StrId {
        self.cat[id.index()]
    }

    /// The (pid, tid) row.
    pub fn track(&self, id: EventId) -> TrackId {
        self.track[id.index()]
    }

    /// `ts` in nanoseconds as in the file (without the base time).
    pub fn ts(&self, id: EventId) -> Option<Ns> {
        self.flags(id)
            .has(EventFlags::HAS_TS)
            .then(|| Ns(self.ts[id.index()]))
    }

    /// `dur` in nanoseconds.
    pub fn dur(&self, id: EventId) -> Option<Ns> {
        self.flags(id)
            .has(EventFlags::HAS_DUR)
            .then(|| Ns(self.length(id)))
    }

    /// `dur` in nanoseconds, 0 without one.
    pub(crate) fn length(&self, id: EventId) -> i64 {
        self.dur.get(id.index()).unwrap_or(0)
    }

    /// Byte offset of the event in the decompressed content.
    pub fn offset(&self, id: EventId) -> u64 {
        self.offset.get(id.index())
    }

    /// Arguments of an operator or annotation, when it has any.
    pub fn op_args(&self, id: EventId) -> Option<OpArgs> {
        if self.activity(id).is_device_work() || self.activity(id).has_launch_args() {
            return None;
        }
        self.op_args.get(self.side[id.index()] as usize)
    }

    /// Arguments of a runtime or driver call or of a flow.
    pub fn launch_args(&self, id: EventId) -> Option<LaunchArgs> {
        if !self.activity(id).has_launch_args() {
            return None;
        }
        self.launch_args.get(self.side[id.index()] as usize)
    }

    /// Arguments of device work.
    pub fn device_args(&self, id: EventId) -> Option<DeviceArgs> {
        if !self.activity(id).is_device_work() {
            return None;
        }
        self.device_args.get(self.side[id.index()] as usize)
    }

    /// True for an event with a usable start and length: `X`, or `B` paired with its `E`.
    pub fn is_complete(&self, id: EventId) -> bool {
        let flags = self.flags(id);
        matches!(self.ph(id), Ph::COMPLETE | Ph::BEGIN)
            && flags.has(EventFlags::HAS_TS)
            && flags.has(EventFlags::HAS_DUR)
            && !flags.has(EventFlags::EXCLUDED)
    }
}
