//! The shape reader: text between two values is learned once and then only compared.
//!
//! A writer prints the same few kinds of events over and over; what differs from one to the next
//! is a handful of values:
//!
//! ```text
//! {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":12.345,"dur":6.789,"args":{…
//! ╰───────── literal ────────────╯╰─value─╯╰── literal ──────────╯╰value╯╰─ literal ╯
//! ```
//! A literal is learned by reading it strictly, keys and constant values with it (`ph`, `cat`,
//! `pid`, `tid` and others that hardly differ). Wherever the same state is reached again, comparing
//! bytes is enough. Values are read by strict fast paths that take only plain spellings. So
//! whatever this reader accepts is valid and means the same as to the scalar reader; anything else
//! it hands over, an event at a time.

use foldhash::HashMap;

use super::key::{Key, Keys};
use super::number::Time;
use super::plain;
use super::row::{Resolved, Rows, Value};
use super::text::Scanner;
use crate::model::{ActivityType, Ident, Ph, StrId, Strings};

/// Candidates kept for a state, the latest used first.
const MAX_CANDIDATES: usize = 16;
/// More literals than this are no shape any more.
const MAX_LINKS: usize = 4096;
/// Constants taken into one literal; more would multiply its variants.
const MAX_CONSTANTS: usize = 4;
/// A literal is cut at the first value after this many bytes.
const LONG_LITERAL: usize = 160;

/// How a run of the shape reader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// At the start of the first event at or after the limit.
    Limit(usize),
    /// The event that starts here is for another reader.
    Event(usize),
}

/// Where in an event a literal starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// At the brace of an event.
    Event,
    /// Behind a value of an event.
    Member,
    /// Behind a value of `args`.
    Argument,
}

/// What follows a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Name,
    Ts,
    Dur,
    Id,
    External,
    Correlation,
    Sequence,
    Index,
    Dims,
    /// A string that no column needs.
    Text,
    /// A number that no column needs.
    Number,
    /// An array or object that no column needs.
    Container,
    /// Nothing: the literal was cut.
    Cut,
}

/// A value that is part of a literal.
#[derive(Debug, Clone, Copy)]
enum Constant {
    Ph(Ph),
    Cat(StrId, ActivityType),
    Pid(Ident),
    Tid(Ident),
    Arguments,
    Device(i64),
    InDevice(i64),
    Stream(i64),
    FwdThread(i64),
    Unfinished(bool),
    /// No column needs it.
    Nothing,
}

/// Where an event ends inside a literal.
#[derive(Debug, Clone, Copy)]
struct End {
    /// How many of the constants belong to the event that ends.
    constants: usize,
    /// Which keys of that event are in the literal.
    keys: Keys,
    /// Where the next event starts, from the start of the literal.
    next: usize,
}

#[derive(Debug)]
struct Link {
    literal: Box<[u8]>,
    constants: Box<[Constant]>,
    end: Option<End>,
    /// Which keys are in the literal, behind the end if there is one.
    keys: Keys,
    slot: Slot,
    /// The state behind the slot.
    next: u32,
}

#[derive(Debug)]
struct State {
    place: Place,
    cat: StrId,
    ph: Ph,
    candidates: Vec<u32>,
}

/// The shapes learned so far in one segment.
#[derive(Debug)]
pub(super) struct Shapes {
    links: Vec<Link>,
    states: Vec<State>,
    state_of: HashMap<(Place, Vec<u8>, StrId, Ph), u32>,
    /// Distinct spellings of `Input Dims`, with the text each stands for.
    dims: Strings,
    dims_text: Vec<StrId>,
}

/// The state at the brace of an event when nothing is known.
const START: u32 = 0;

impl Default for Shapes {
    fn default() -> Self {
        let start = State {
            place: Place::Event,
            cat: StrId::EMPTY,
            ph: Ph::MISSING,
            candidates: Vec::new(),
        };
        Self {
            links: Vec::new(),
            states: vec![start],
            state_of: HashMap::default(),
            dims: Strings::default(),
            dims_text: vec![StrId::EMPTY],
        }
    }
}

impl Resolved {
    #[inline]
    fn set(&mut self, constants: &[Constant]) {
        for constant in constants {
            match *constant {
                Constant::Ph(ph) => self.ph = ph,
                Constant::Cat(cat, activity) => (self.cat, self.activity) = (cat, activity),
                Constant::Pid(pid) => self.pid = pid,
                Constant::Tid(tid) => self.tid = tid,
                Constant::Arguments => self.clear_args(),
                Constant::Device(device) => self.device = Some(device),
                Constant::InDevice(device) => self.in_device = Some(device),
                Constant::Stream(stream) => self.stream = Some(stream),
                Constant::FwdThread(thread) => self.fwd_thread = Some(thread),
                Constant::Unfinished(unfinished) => self.unfinished = unfinished,
                Constant::Nothing => {}
            }
        }
    }
}

impl Shapes {
    /// Too many different literals: another reader is faster.
    pub(super) fn is_shapeless(&self) -> bool {
        self.links.len() >= MAX_LINKS
    }

    /// How many spellings of `Input Dims` were met.
    pub(super) fn spellings(&self) -> usize {
        self.dims.len()
    }

    /// Adds the rows of the events from the one at `start` to the last before `limit`, as far as
    /// they have shape.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        start: usize,
        limit: usize,
        rows: &mut Rows,
    ) -> Outcome {
        let mut event_at = start;
        let mut pos = start;
        let mut state = START;
        let mut event = Resolved::NONE;
        let mut keys = Keys::default();
        loop {
            let Some(link) = self
                .find(data, pos, state)
                .or_else(|| self.learn(data, pos, state, rows))
            else {
                return Outcome::Event(event_at);
            };
            let link = &self.links[link as usize];
            let mut constants = &link.constants[..];
            if let Some(end) = link.end {
                if !keys.extend(end.keys) {
                    return Outcome::Event(event_at);
                }
                keys = Keys::default();
                let (own, next) = constants.split_at(end.constants);
                event.set(own);
                rows.push_resolved(event_at as u64, &event);
                event_at = pos + end.next;
                if event_at >= limit {
                    return Outcome::Limit(event_at);
                }
                event.clear();
                constants = next;
            }
            // A key that the event has had is counted by another reader.
            if !keys.extend(link.keys) {
                return Outcome::Event(event_at);
            }
            event.set(constants);
            pos += link.literal.len();
            state = link.next;
            let slot = link.slot;
            let Some(end) = self.value(data, pos, slot, &mut event, rows) else {
                return Outcome::Event(event_at);
            };
            pos = end;
        }
    }

    /// The link of `state` whose literal stands at `pos`.
    #[inline]
    fn find(&mut self, data: &[u8], pos: usize, state: u32) -> Option<u32> {
        let rest = data.get(pos..)?;
        let candidates = &mut self.states[state as usize].candidates;
        for place in 0..candidates.len() {
            let link = candidates[place];
            if plain::starts_with(rest, &self.links[link as usize].literal) {
                if place > 0 {
                    candidates.swap(place, place - 1);
                }
                return Some(link);
            }
        }
        None
    }

    /// Reads the value at `pos` into its slot; where it ends, or `None` when it is not plain.
    #[inline]
    fn value(
        &mut self,
        data: &[u8],
        pos: usize,
        slot: Slot,
        event: &mut Resolved,
        rows: &mut Rows,
    ) -> Option<usize> {
        match slot {
            Slot::Cut => return Some(pos),
            Slot::Name => {
                let end = plain::string_end(data, pos)?;
                event.name = rows.strings.intern_ascii(&data[pos..end]);
                return Some(end + 1);
            }
            Slot::Ts | Slot::Dur => {
                let (time, end) = plain::time(data, pos)?;
                if slot == Slot::Ts {
                    event.ts = Time::Ns(time);
                } else {
                    event.dur = Time::Ns(time);
                }
                return Some(end);
            }
            Slot::Text => return Some(plain::string_end(data, pos)? + 1),
            Slot::Number => return plain::number_end(data, pos),
            Slot::Container => return plain::array_end(data, pos),
            Slot::Dims => {
                let end = plain::array_end(data, pos)?;
                let spelling = self.dims.intern_ascii(&data[pos..end]);
                if spelling.index() == self.dims_text.len() {
                    let text = super::escape::compact(&data[pos..end]);
                    self.dims_text.push(rows.strings.intern(&text));
                }
                event.dims = self.dims_text[spelling.index()];
                return Some(end);
            }
            _ => {}
        }
        let (number, end) = plain::integer(data, pos)?;
        match slot {
            Slot::Id => event.id = number.cast_unsigned(),
            Slot::External => event.external = number.cast_unsigned(),
            Slot::Correlation => event.correlation = number.cast_unsigned(),
            Slot::Sequence => event.sequence = Some(number),
            _ => event.index = Some(number),
        }
        Some(end)
    }

    /// Learns the literal at `pos`, behind the last value of `state`; `None` when what stands
    /// there is not plain.
    #[cold]
    fn learn(&mut self, data: &[u8], pos: usize, state: u32, rows: &mut Rows) -> Option<u32> {
        if self.is_shapeless() {
            return None;
        }
        let State { place, cat, ph, .. } = self.states[state as usize];
        let mut lesson = Lesson {
            scanner: Scanner::new(data, pos),
            rows,
            place,
            cat,
            ph,
            constants: Vec::new(),
            keys: Keys::default(),
            end: None,
            pos,
        };
        let (slot, key) = lesson.run()?;
        let len = lesson.scanner.pos - pos;
        let (cat, ph, place) = (lesson.cat, lesson.ph, lesson.place);
        let (end, keys) = (lesson.end, lesson.keys);
        let constants = lesson.constants.into_boxed_slice();
        if !lesson.scanner.quirks.is_empty() || len == 0 {
            return None;
        }
        let states = &mut self.states;
        let next = *self
            .state_of
            .entry((place, key, cat, ph))
            .or_insert_with(|| {
                states.push(State {
                    place,
                    cat,
                    ph,
                    candidates: Vec::new(),
                });
                u32::try_from(states.len() - 1).unwrap_or(START)
            });
        let number = u32::try_from(self.links.len()).ok()?;
        self.links.push(Link {
            literal: data[pos..pos + len].into(),
            constants,
            end,
            keys,
            slot,
            next,
        });
        let candidates = &mut self.states[state as usize].candidates;
        if candidates.len() == MAX_CANDIDATES {
            candidates.pop();
        }
        candidates.insert(candidates.len() / 2, number);
        Some(number)
    }
}

/// What a lesson finds under a key.
enum Found {
    /// A value that belongs to the literal; it is passed.
    Constant,
    /// The value that follows the literal.
    Value(Slot),
    /// Something that is not plain.
    Odd,
}

/// The strict reading of one literal.
struct Lesson<'a, 'r> {
    scanner: Scanner<'a>,
    rows: &'r mut Rows,
    place: Place,
    cat: StrId,
    ph: Ph,
    constants: Vec<Constant>,
    keys: Keys,
    end: Option<End>,
    /// Where the literal starts.
    pos: usize,
}

impl<'a> Lesson<'a, '_> {
    /// Reads up to the next value that differs from event to event: its slot and key.
    fn run(&mut self) -> Option<(Slot, Vec<u8>)> {
        let mut first = false;
        loop {
            let before = self.scanner.pos;
            match (self.place, self.scanner.space()?) {
                (_, b'"') if first => {}
                (Place::Event, b'{') => {
                    self.scanner.pos += 1;
                    self.place = Place::Member;
                }
                (Place::Member | Place::Argument, b',') if !first => self.scanner.pos += 1,
                (Place::Argument, b'}') => {
                    self.scanner.pos += 1;
                    self.place = Place::Member;
                    first = false;
                    continue;
                }
                (Place::Member, b'}') if !first => {
                    if self.end.is_some() {
                        // One end a literal: a second event this short gets its own.
                        self.scanner.pos = before;
                        return Some((Slot::Cut, b"}".to_vec()));
                    }
                    self.event_end()?;
                    first = true;
                    continue;
                }
                _ => return None,
            }
            first = false;
            if self.scanner.space()? != b'"' {
                return None;
            }
            let text = self.scanner.plain_key()?;
            let key = match self.place {
                Place::Argument => Key::of_args(text),
                _ => Key::of_event(text),
            };
            if key.is_some_and(|key| !self.keys.insert(key)) {
                return None;
            }
            if key == Some(Key::Args) && self.scanner.peek()? == b'{' {
                self.scanner.pos += 1;
                self.place = Place::Argument;
                self.constants.push(Constant::Arguments);
                first = true;
                continue;
            }
            match self.member(key, text) {
                Found::Constant => {}
                Found::Odd => return None,
                Found::Value(slot) => {
                    if matches!(slot, Slot::Name | Slot::Text) {
                        self.scanner.pos += 1;
                    }
                    return Some((slot, text.to_vec()));
                }
            }
            if self.scanner.pos - self.pos > LONG_LITERAL || self.constants.len() >= MAX_CONSTANTS {
                return Some((Slot::Cut, text.to_vec()));
            }
        }
    }

    /// Passes the end of an event, the comma and the brace of the next.
    fn event_end(&mut self) -> Option<()> {
        self.scanner.pos += 1;
        if self.scanner.space()? != b',' {
            return None;
        }
        self.scanner.pos += 1;
        if self.scanner.space()? != b'{' {
            return None;
        }
        let next = self.scanner.pos - self.pos;
        self.end = Some(End {
            constants: self.constants.len(),
            keys: std::mem::take(&mut self.keys),
            next,
        });
        self.scanner.pos += 1;
        (self.cat, self.ph) = (StrId::EMPTY, Ph::MISSING);
        Some(())
    }

    /// Passes the value of `key`, spelled `text`, when it is a constant; else says what slot it is.
    fn member(&mut self, key: Option<Key>, text: &[u8]) -> Found {
        let other = match self.scanner.peek() {
            Some(b'"') => Slot::Text,
            Some(b'[') => Slot::Container,
            Some(b'-' | b'0'..=b'9') => Slot::Number,
            _ => return Found::Odd,
        };
        let Some(key) = key else {
            return match (self.place, text) {
                (Place::Argument, b"queued" | b"context") => {
                    self.constant(|_, _| Some(Constant::Nothing))
                }
                (Place::Member, b"bp" | b"s") if other == Slot::Text => {
                    self.constant(|_, _| Some(Constant::Nothing))
                }
                _ => Found::Value(other),
            };
        };
        let (slot, plain) = match key {
            Key::Name => (Slot::Name, Slot::Text),
            Key::Dims => (Slot::Dims, Slot::Container),
            Key::Ts => (Slot::Ts, Slot::Number),
            Key::Dur => (Slot::Dur, Slot::Number),
            Key::Id => (Slot::Id, Slot::Number),
            Key::External => (Slot::External, Slot::Number),
            Key::Correlation => (Slot::Correlation, Slot::Number),
            Key::Sequence => (Slot::Sequence, Slot::Number),
            Key::Index => (Slot::Index, Slot::Number),
            Key::Args => return Found::Odd,
            Key::Ph | Key::Cat | Key::Pid | Key::Tid => {
                return self.constant(|lesson, value| Some(lesson.of_event(key, value)));
            }
            Key::Finished => {
                return self.constant(|lesson, value| {
                    Some(Constant::Unfinished(lesson.rows.unfinished(value)))
                });
            }
            Key::Device | Key::InDevice | Key::Stream | Key::FwdThread => {
                return self.constant(|_, value| {
                    let Value::Int(value) = value else {
                        return None;
                    };
                    Some(match key {
                        Key::Device => Constant::Device(value),
                        Key::InDevice => Constant::InDevice(value),
                        Key::Stream => Constant::Stream(value),
                        _ => Constant::FwdThread(value),
                    })
                });
            }
        };
        // Anything else under such a key is another reader's.
        if other == plain {
            Found::Value(slot)
        } else {
            Found::Odd
        }
    }

    /// The constant of a `ph`, `cat`, `pid` or `tid`.
    fn of_event(&mut self, key: Key, value: Value<'_>) -> Constant {
        match key {
            Key::Ph => {
                self.ph = self.rows.ph(value);
                Constant::Ph(self.ph)
            }
            Key::Cat => {
                let (cat, activity) = self.rows.cat(value);
                self.cat = cat;
                Constant::Cat(cat, activity)
            }
            Key::Pid => Constant::Pid(self.rows.ident(value)),
            _ => Constant::Tid(self.rows.ident(value)),
        }
    }

    /// Passes a value that `make` takes as a constant.
    fn constant(&mut self, make: impl FnOnce(&mut Self, Value<'a>) -> Option<Constant>) -> Found {
        let Ok(value) = self.scanner.value() else {
            return Found::Odd;
        };
        let Some(constant) = make(self, value) else {
            return Found::Odd;
        };
        self.constants.push(constant);
        Found::Constant
    }
}
