//! One event as a reader hands it over, and the columns it becomes.
//!
//! Both readers fill the same [`RawEvent`] and everything about the meaning of a value happens
//! here, so that they cannot disagree.

use foldhash::HashMap;

use super::escape;
use super::key::Key;
use super::number::{self, Time};
use super::quirk::Quirks;
use crate::health::{Health, HealthCode};
use crate::model::{
    ActivityType, DeviceArgs, EventFlags, EventTable, Ident, LaunchArgs, NO_SIDE, OpArgs, Ph,
    StrId, Strings, Track, Tracks,
};

/// Times at or beyond ±2⁶² ns (146 years) are refused, so that no sum or difference of two times
/// overflows in any later stage.
const TIME_LIMIT: i64 = 1 << 62;

/// One JSON value, as far as the columns need it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Value<'a> {
    /// The key is not there.
    #[default]
    Absent,
    /// `null`, or a lenient spelling of a number that is none.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number in integer spelling that fits.
    Int(i64),
    /// The text of any number.
    Number(&'a [u8]),
    /// A string without escapes, or already decoded.
    Text(&'a str),
    /// What stands between the quotes of a string that is still to be decoded.
    Quoted(&'a [u8]),
    /// The text of an array.
    Array(&'a [u8]),
    /// The text of an object.
    Object(&'a [u8]),
}

/// The values of one event that the columns need.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RawEvent<'a> {
    pub(super) ph: Value<'a>,
    pub(super) cat: Value<'a>,
    pub(super) name: Value<'a>,
    pub(super) pid: Value<'a>,
    pub(super) tid: Value<'a>,
    pub(super) ts: Value<'a>,
    pub(super) dur: Value<'a>,
    pub(super) id: Value<'a>,
    pub(super) args: RawArgs<'a>,
}

/// The values inside `args` that the columns need.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RawArgs<'a> {
    pub(super) external: Value<'a>,
    pub(super) correlation: Value<'a>,
    pub(super) device: Value<'a>,
    pub(super) in_device: Value<'a>,
    pub(super) stream: Value<'a>,
    pub(super) sequence: Value<'a>,
    pub(super) fwd_thread: Value<'a>,
    pub(super) index: Value<'a>,
    pub(super) dims: Value<'a>,
    pub(super) finished: Value<'a>,
}

impl<'a> RawEvent<'a> {
    /// Where the value of `key` belongs; nowhere, if it is `args`.
    #[inline]
    pub(super) fn slot(&mut self, key: Key) -> Option<&mut Value<'a>> {
        let args = &mut self.args;
        Some(match key {
            Key::Ph => &mut self.ph,
            Key::Cat => &mut self.cat,
            Key::Name => &mut self.name,
            Key::Pid => &mut self.pid,
            Key::Tid => &mut self.tid,
            Key::Ts => &mut self.ts,
            Key::Dur => &mut self.dur,
            Key::Id => &mut self.id,
            Key::Args => return None,
            Key::External => &mut args.external,
            Key::Correlation => &mut args.correlation,
            Key::Device => &mut args.device,
            Key::InDevice => &mut args.in_device,
            Key::Stream => &mut args.stream,
            Key::Sequence => &mut args.sequence,
            Key::FwdThread => &mut args.fwd_thread,
            Key::Index => &mut args.index,
            Key::Dims => &mut args.dims,
            Key::Finished => &mut args.finished,
        })
    }
}

/// The values of one event as the columns hold them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolved {
    pub(super) ph: Ph,
    pub(super) cat: StrId,
    /// What `cat` names.
    pub(super) activity: ActivityType,
    pub(super) name: StrId,
    pub(super) pid: Ident,
    pub(super) tid: Ident,
    pub(super) ts: Time,
    pub(super) dur: Time,
    pub(super) id: u64,
    pub(super) external: u64,
    pub(super) correlation: u64,
    pub(super) device: Option<i64>,
    pub(super) in_device: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) sequence: Option<i64>,
    pub(super) fwd_thread: Option<i64>,
    pub(super) index: Option<i64>,
    pub(super) dims: StrId,
    pub(super) unfinished: bool,
}

impl Resolved {
    /// No value at all.
    pub(super) const NONE: Self = Self {
        ph: Ph::MISSING,
        cat: StrId::EMPTY,
        activity: ActivityType::Missing,
        name: StrId::EMPTY,
        pid: Ident::Missing,
        tid: Ident::Missing,
        ts: Time::NotANumber,
        dur: Time::NotANumber,
        id: 0,
        external: 0,
        correlation: 0,
        device: None,
        in_device: None,
        stream: None,
        sequence: None,
        fwd_thread: None,
        index: None,
        dims: StrId::EMPTY,
        unfinished: false,
    };

    /// Forgets all values, one by one: a whole new event would be made in small pieces and moved in large
    /// ones, which has to wait for the pieces.
    #[inline]
    pub(super) fn clear(&mut self) {
        let none = Self::NONE;
        self.ph = none.ph;
        self.cat = none.cat;
        self.activity = none.activity;
        self.name = none.name;
        self.pid = none.pid;
        self.tid = none.tid;
        self.ts = none.ts;
        self.dur = none.dur;
        self.id = none.id;
        self.clear_args();
    }

    /// Forgets the values inside `args`; a second `args` replaces the first.
    #[inline]
    pub(super) fn clear_args(&mut self) {
        let none = Self::NONE;
        self.external = none.external;
        self.correlation = none.correlation;
        self.device = none.device;
        self.in_device = none.in_device;
        self.stream = none.stream;
        self.sequence = none.sequence;
        self.fwd_thread = none.fwd_thread;
        self.index = none.index;
        self.dims = none.dims;
        self.unfinished = none.unfinished;
    }
}

/// What the later checks need to know about a set of rows without looking at each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Earliest start of the timed `X` and `B` events.
    pub(super) first: i64,
    /// Latest start of them.
    pub(super) last: i64,
    /// The longest `dur`.
    pub(super) longest: i64,
    /// How many `B` and `E` events there are.
    pub(super) pairs: usize,
}

impl Default for Extent {
    fn default() -> Self {
        Self {
            first: i64::MAX,
            last: i64::MIN,
            longest: 0,
            pairs: 0,
        }
    }
}

impl Extent {
    /// The extent of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            longest: self.longest.max(other.longest),
            pairs: self.pairs + other.pairs,
        }
    }
}

/// The columns of one stretch of events, with their own strings and tracks.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) events: EventTable,
    pub(super) strings: Strings,
    pub(super) tracks: Tracks,
    pub(super) health: Health,
    pub(super) extent: Extent,
    activities: HashMap<StrId, ActivityType>,
    last_cat: Option<(StrId, ActivityType)>,
    scratch: String,
}

/// How many rows there were at some moment; see [`Rows::rewind`].
#[derive(Debug)]
pub(super) struct Mark {
    rows: usize,
    op_args: usize,
    launch_args: usize,
    device_args: usize,
    health: Health,
    extent: Extent,
}

impl Rows {
    /// Makes space for the events of about `bytes` bytes of text in empty columns, those of `space`.
    pub(super) fn start(&mut self, bytes: usize, mut space: EventTable) {
        space.reserve(bytes / 192);
        self.events = space;
    }

    /// Notes how many rows there are now.
    pub(super) fn mark(&self) -> Mark {
        let Self {
            events,
            health,
            extent,
            ..
        } = self;
        Mark {
            rows: events.len(),
            op_args: events.op_args.len(),
            launch_args: events.launch_args.len(),
            device_args: events.device_args.len(),
            health: health.clone(),
            extent: *extent,
        }
    }

    /// Takes back every row since `mark`. Their strings stay.
    pub(super) fn rewind(&mut self, mark: Mark) {
        let events = &mut self.events;
        events.truncate(mark.rows);
        events.op_args.truncate(mark.op_args);
        events.launch_args.truncate(mark.launch_args);
        events.device_args.truncate(mark.device_args);
        self.health = mark.health;
        self.extent = mark.extent;
    }

    /// Adds the row of the event at byte `offset`.
    pub(super) fn push(&mut self, offset: u64, raw: &RawEvent<'_>) {
        let args = &raw.args;
        let (cat, activity) = self.cat(raw.cat);
        let event = Resolved {
            ph: self.ph(raw.ph),
            cat,
            activity,
            name: self.text(raw.name),
            pid: self.ident(raw.pid),
            tid: self.ident(raw.tid),
            ts: time(raw.ts, &mut self.scratch),
            dur: time(raw.dur, &mut self.scratch),
            id: id_bits(raw.id, &mut self.scratch),
            external: id_bits(args.external, &mut self.scratch),
            correlation: id_bits(args.correlation, &mut self.scratch),
            device: signed(args.device, &mut self.scratch),
            in_device: signed(args.in_device, &mut self.scratch),
            stream: signed(args.stream, &mut self.scratch),
            sequence: signed(args.sequence, &mut self.scratch),
            fwd_thread: signed(args.fwd_thread, &mut self.scratch),
            index: signed(args.index, &mut self.scratch),
            dims: match args.dims {
                Value::Array(text) => self.strings.intern(&escape::compact(text)),
                _ => StrId::EMPTY,
            },
            unfinished: unfinished(args.finished, &mut self.scratch),
        };
        self.push_resolved(offset, &event);
    }

    /// The letter of a `ph`.
    pub(super) fn ph(&mut self, value: Value<'_>) -> Ph {
        match text_of(value, &mut self.scratch).map(str::as_bytes) {
            None | Some([]) => Ph::MISSING,
            Some([letter]) => Ph(*letter),
            Some(_) => Ph(b'?'),
        }
    }

    /// A `cat` and the kind of event it names.
    pub(super) fn cat(&mut self, value: Value<'_>) -> (StrId, ActivityType) {
        let cat = self.text(value);
        if let Some((last, activity)) = self.last_cat
            && last == cat
        {
            return (cat, activity);
        }
        let strings = &self.strings;
        let activity = *self
            .activities
            .entry(cat)
            .or_insert_with(|| ActivityType::from_cat(strings.get(cat)));
        self.last_cat = Some((cat, activity));
        (cat, activity)
    }

    /// A `pid` or `tid`.
    pub(super) fn ident(&mut self, value: Value<'_>) -> Ident {
        ident(&mut self.strings, value, &mut self.scratch)
    }

    /// Whether `finished` says that the operation was still running.
    pub(super) fn unfinished(&mut self, value: Value<'_>) -> bool {
        unfinished(value, &mut self.scratch)
    }

    fn text(&mut self, value: Value<'_>) -> StrId {
        intern(&mut self.strings, value, &mut self.scratch)
    }

    /// Adds the row of the event at byte `offset`, its values resolved.
    ///
    /// Never inlined: inside the loop over the shapes it takes registers from it, which costs 8 % of
    /// reading, and whether the compiler does so changes with code far away.
    #[inline(never)]
    pub(super) fn push_resolved(&mut self, offset: u64, event: &Resolved) {
        let Self {
            events,
            strings,
            tracks,
            health,
            ..
        } = self;
        let Resolved {
            ph,
            name,
            cat,
            mut activity,
            ..
        } = *event;
        let track = tracks.intern(Track {
            pid: event.pid,
            tid: event.tid,
        });
        let mut note = |code| health.count(code, offset, strings.get(name));

        if ph == Ph::MISSING {
            note(HealthCode::MissingPh);
        } else if !ph.is_known() {
            note(HealthCode::UnknownPh);
        }
        if activity == ActivityType::Missing && ph == Ph::COMPLETE {
            activity = legacy_activity(strings, event.pid);
        }
        if activity == ActivityType::Unknown && matches!(ph, Ph::COMPLETE | Ph::BEGIN) {
            note(HealthCode::UnknownCategory);
        }

        let mut flags = EventFlags::default();
        let mut ts = 0;
        let mut dur = 0;
        if let Time::Ns(ns) = event.ts {
            ts = ns;
            flags.set(EventFlags::HAS_TS);
        }
        if let Time::Ns(ns) = event.dur {
            dur = ns;
            flags.set(EventFlags::HAS_DUR);
        }
        let complete = ph == Ph::COMPLETE;
        // Instants such as `[memory]` say `false` always.
        if complete && event.unfinished {
            flags.set(EventFlags::UNFINISHED);
            note(HealthCode::UnfinishedOperation);
        }
        match (event.ts, event.dur) {
            (Time::TooBig, _) => note(HealthCode::InvalidTimestamp),
            (_, Time::TooBig) if complete => note(HealthCode::InvalidTimestamp),
            (Time::NotANumber, _) if complete || matches!(ph, Ph::BEGIN | Ph::END) => {
                note(HealthCode::MissingTimestamp);
            }
            (Time::Ns(_), Time::NotANumber) if complete => note(HealthCode::MissingDuration),
            (Time::Ns(_), Time::Ns(..0)) if complete => {
                flags.set(EventFlags::EXCLUDED);
                note(HealthCode::NegativeDuration);
            }
            (Time::Ns(0), Time::Ns(0)) if complete && activity.is_device_work() => {
                flags.set(EventFlags::EXCLUDED);
                note(HealthCode::ZeroTimestamp);
            }
            _ => {}
        }
        if !flags.has(EventFlags::EXCLUDED)
            && flags.has(EventFlags::HAS_TS)
            && (complete || ph == Ph::BEGIN)
        {
            self.extent.first = self.extent.first.min(ts);
            self.extent.last = self.extent.last.max(ts);
            if complete {
                self.extent.longest = self.extent.longest.max(dur);
            }
        }
        self.extent.pairs += usize::from(matches!(ph, Ph::BEGIN | Ph::END));

        let side = push_side(events, activity, event);
        events.ph.push(ph);
        events.activity.push(activity);
        events.flags.push(flags);
        events.name.push(name);
        events.cat.push(cat);
        events.track.push(track);
        events.ts.push(ts);
        events.dur.push(dur);
        events.offset.push(offset);
        events.side.push(side);
    }

    /// Adds the row of an element at byte `offset` that is no object.
    pub(super) fn push_other(&mut self, offset: u64) {
        self.health.count(HealthCode::NonObjectEvent, offset, "");
        let track = self.tracks.intern(Track {
            pid: Ident::Missing,
            tid: Ident::Missing,
        });
        let events = &mut self.events;
        events.ph.push(Ph::MISSING);
        events.activity.push(ActivityType::Missing);
        events.flags.push(EventFlags::default());
        events.name.push(StrId::EMPTY);
        events.cat.push(StrId::EMPTY);
        events.track.push(track);
        events.ts.push(0);
        events.dur.push(0);
        events.offset.push(offset);
        events.side.push(NO_SIDE);
    }

    /// Counts what is unusual in the text of the row added last.
    pub(super) fn note_quirks(&mut self, quirks: &Quirks) {
        let name = self
            .events
            .name
            .last()
            .map_or("", |name| self.strings.get(*name));
        quirks.count_into(&mut self.health, name);
    }
}

/// Adds the arguments of an event to the table that its kind of event uses.
#[inline]
fn push_side(events: &mut EventTable, activity: ActivityType, event: &Resolved) -> u32 {
    let external = event.external;
    if activity.is_device_work() {
        let row = DeviceArgs {
            correlation: event.correlation,
            external,
            device: event.device.or(event.in_device),
            stream: event.stream,
        };
        return events.device_args.push(row);
    }
    if activity.has_launch_args() {
        let correlation = if activity.is_launch() {
            event.correlation
        } else {
            event.id
        };
        return events.launch_args.push(LaunchArgs {
            correlation,
            external,
        });
    }
    if !activity.has_op_args() {
        return NO_SIDE;
    }
    let Resolved {
        sequence,
        fwd_thread,
        index,
        dims,
        ..
    } = *event;
    if external == 0
        && sequence.is_none()
        && fwd_thread.is_none()
        && index.is_none()
        && dims.is_empty()
    {
        return NO_SIDE;
    }
    let row = OpArgs {
        external,
        sequence: sequence.unwrap_or(-1),
        fwd_thread: narrow(fwd_thread.unwrap_or(0)),
        index: index
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(u32::MAX),
        dims,
    };
    events.op_args.push(row)
}

/// The nearest of 32 bits.
fn narrow(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

/// The kind of an event without `cat` in files of exporters before Kineto.
fn legacy_activity(strings: &Strings, pid: Ident) -> ActivityType {
    match pid {
        Ident::Text(id) => match strings.get(id) {
            "CPU functions" => ActivityType::CpuOp,
            "CUDA functions" => ActivityType::Kernel,
            _ => ActivityType::Missing,
        },
        _ => ActivityType::Missing,
    }
}

/// The text of a string value, decoded into `scratch` where it has to be.
pub(super) fn text_of<'b>(value: Value<'b>, scratch: &'b mut String) -> Option<&'b str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Quoted(raw) => {
            scratch.clear();
            escape::decode_into(raw, scratch);
            Some(scratch)
        }
        _ => None,
    }
}

fn intern(strings: &mut Strings, value: Value<'_>, scratch: &mut String) -> StrId {
    text_of(value, scratch).map_or(StrId::EMPTY, |text| strings.intern(text))
}

/// A `pid` or `tid`.
fn ident(strings: &mut Strings, value: Value<'_>, scratch: &mut String) -> Ident {
    let text = match value {
        Value::Int(number) => return Ident::Int(number),
        Value::Absent | Value::Null => return Ident::Missing,
        Value::Number(text) => {
            if let Some(number) = plain_integer(text) {
                return Ident::Int(number);
            }
            text
        }
        Value::Bool(true) => b"true",
        Value::Bool(false) => b"false",
        Value::Array(text) | Value::Object(text) => {
            return Ident::Text(strings.intern(&escape::compact(text)));
        }
        Value::Text(_) | Value::Quoted(_) => {
            return Ident::Text(intern(strings, value, scratch));
        }
    };
    Ident::Text(strings.intern(&String::from_utf8_lossy(text)))
}

/// The value of a number in integer spelling, when it fits.
pub(super) fn plain_integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A `ts` or `dur`; some writers put the number into a string.
fn time(value: Value<'_>, scratch: &mut String) -> Time {
    let time = match value {
        Value::Int(microseconds) => microseconds
            .checked_mul(1000)
            .map_or(Time::TooBig, Time::Ns),
        Value::Number(text) => number::nanoseconds(text),
        Value::Text(_) | Value::Quoted(_) => {
            let text = text_of(value, scratch).unwrap_or("");
            number::nanoseconds(text.trim_ascii().as_bytes())
        }
        _ => Time::NotANumber,
    };
    match time {
        Time::Ns(ns) if ns <= -TIME_LIMIT || ns >= TIME_LIMIT => Time::TooBig,
        time => time,
    }
}

/// The bits of an id; 0 when there is none.
pub(super) fn id_bits(value: Value<'_>, scratch: &mut String) -> u64 {
    match value {
        Value::Int(number) => number.cast_unsigned(),
        Value::Number(text) => number::bits(text).unwrap_or(0),
        Value::Text(_) | Value::Quoted(_) => text_of(value, scratch).map_or(0, number::text_bits),
        _ => 0,
    }
}

/// A signed integer argument, also in a string.
pub(super) fn signed(value: Value<'_>, scratch: &mut String) -> Option<i64> {
    match value {
        Value::Int(number) => Some(number),
        Value::Number(text) => i64::try_from(number::integer(text)?).ok(),
        Value::Text(_) | Value::Quoted(_) => {
            let text = text_of(value, scratch)?.trim_ascii();
            i64::try_from(number::integer(text.as_bytes())?).ok()
        }
        _ => None,
    }
}

/// True when `finished` says that the operation was still running.
fn unfinished(value: Value<'_>, scratch: &mut String) -> bool {
    match value {
        Value::Bool(finished) => !finished,
        Value::Absent => false,
        value => text_of(value, scratch) == Some("false"),
    }
}

#[cfg(test)]
mod tests;
