//! The document piece by piece: each top-level member and each event is handed to an [`Edit`], and
//! what becomes of it is written. Everything between the pieces stays as it is.
//!
//! ```text
//! { "schemaVersion": 1, "traceEvents": [ {…}, {…}, {… , {…} ], "traceName": "…" }
//!   member                               event     lost  event    member
//! ```

use std::io::Write;

use foldhash::{HashMap, HashSet};

use super::json::Tokens;
use super::{OUTPUT, Progress};
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::ingest::{Content, Piece, Resume, Trouble, decode_into, mend, quote_into};

type Step<T> = std::result::Result<T, Trouble>;

/// What becomes of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays.
    Keep,
    /// It goes.
    Drop,
    /// It is replaced by what was put into the buffer.
    Replace,
}

/// What to do with a document.
pub(super) trait Edit {
    /// An event array starts. Of several, the last one counts.
    fn begin(&mut self) {}

    /// Decides about an element of the event array: `text` is JSON, from `offset` of the content.
    fn event(&mut self, offset: u64, text: &[u8], out: &mut Vec<u8>) -> Fate;

    /// Decides about a top-level key, with its quotes, that is not to go as a whole. Whatever becomes
    /// of it, [`member`](Self::member) gets the key as it was read.
    fn key(&mut self, _text: &[u8], _out: &mut Vec<u8>) -> Fate {
        Fate::Keep
    }

    /// Decides about the value of a top-level member.
    fn member(&mut self, _key: &str, _text: &[u8], _out: &mut Vec<u8>) -> Fate {
        Fate::Keep
    }

    /// A member to add at the end of the object form: a key and a value.
    fn extra_member(&mut self) -> Option<(String, String)> {
        None
    }

    /// All members to add at the end of the object form.
    fn extra_members(&mut self) -> Vec<(String, String)> {
        self.extra_member().into_iter().collect()
    }

    /// An event to add at the end of the array form.
    fn extra_event(&mut self) -> Option<String> {
        None
    }
}

/// Leaves everything as it is.
pub(super) struct Nothing;

impl Edit for Nothing {
    fn event(&mut self, _: u64, _: &[u8], _: &mut Vec<u8>) -> Fate {
        Fate::Keep
    }
}

/// How to go through a document.
#[derive(Clone, Copy)]
pub(super) struct Tour<'a> {
    /// The file as stored.
    pub(super) stored: &'a [u8],
    /// Skip what cannot be read.
    pub(super) salvage: bool,
    /// Which pass over the content this is, and of how many.
    pub(super) pass: (u64, u64),
    pub(super) progress: Progress<'a>,
}

/// Keys that occur more than once, and how often.
pub(super) type Repeated = HashMap<Box<[u8]>, u32>;

/// What was found in a document.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Elements of the event array; of the last, when there are several.
    pub(super) events: u64,
    /// What is no JSON or not as it should be, and was read all the same.
    pub(super) health: Health,
    /// Closing brackets that were missing at the end.
    pub(super) brackets: u64,
    /// Commas that were missing between events or before their array.
    pub(super) commas: u64,
    /// What was skipped.
    pub(super) lost: Lost,
    /// How compressed data is damaged.
    pub(super) damage: Option<String>,
    pub(super) repeated: Repeated,
}

impl Found {
    /// True when the content is a valid trace as it is.
    pub(super) fn is_clean(&self) -> bool {
        self.health.worst().is_none()
            && self.brackets == 0
            && self.commas == 0
            && self.lost.count == 0
            && self.damage.is_none()
    }
}

/// Ranges of bytes of the content that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The first ranges, from an offset to the one behind the last byte; a thousand at most.
    pub ranges: Vec<(u64, u64)>,
    /// How many ranges there are.
    pub count: u64,
    /// How many bytes are in them.
    pub bytes: u64,
    /// About how many events that is, by the mean length of the elements that were read; `None` when
    /// the content ends inside of the event array, for nobody knows what came behind.
    pub events_estimated: Option<u64>,
    /// The content ends inside of the event array, where the form of the trace or damage before the end
    /// says that something is missing there.
    pub ends_open: bool,
}

/// So many ranges are named one by one.
const MAX_RANGES: usize = 1000;

impl Lost {
    fn add(&mut self, from: u64, to: u64) {
        if to <= from {
            return;
        }
        self.bytes += to - from;
        if let Some(last) = self.ranges.last_mut()
            && last.1 == from
        {
            last.1 = to;
            return;
        }
        self.count += 1;
        if self.ranges.len() < MAX_RANGES {
            self.ranges.push((from, to));
        }
    }
}

impl Tour<'_> {
    /// Goes through the document only to see what is in it.
    pub(super) fn survey(&self, edit: &mut dyn Edit) -> Result<Found> {
        self.copy(edit, &Repeated::default(), &mut std::io::sink())
    }

    /// Copies the document as `edit` wants it to `out`. Of the `repeated` keys, the last one stays.
    pub(super) fn copy(
        &self,
        edit: &mut dyn Edit,
        repeated: &Repeated,
        out: &mut dyn Write,
    ) -> Result<Found> {
        let content = Content::new(self.stored, self.salvage);
        let total = content.expected_len();
        let mut walk = Walk {
            tour: self,
            total,
            told: 0,
            content,
            edit,
            repeated,
            out,
            found: Found::default(),
            seen: HashMap::default(),
            replaced: HashSet::default(),
            array: Err("no traceEvents array"),
            is_object: false,
            is_open: false,
            looked: 0,
            reach: 0,
            text: Vec::new(),
            edited: Vec::new(),
        };
        walk.document()?;
        Ok(walk.finish())
    }

    /// Copies the content byte for byte.
    pub(super) fn copy_all(&self, out: &mut dyn Write) -> Result<()> {
        let mut content = Content::new(self.stored, false);
        let total = content.expected_len();
        let mut done = 0;
        content.rest(|bytes| {
            done += bytes.len() as u64;
            self.tell(done, total);
            out.write_all(bytes).map_err(failed_write)
        })
    }

    fn tell(&self, done: u64, total: u64) {
        let (pass, passes) = self.pass;
        (self.progress)(pass * total + done.min(total), passes * total);
    }
}

fn failed_write(error: std::io::Error) -> Error {
    Error::io(OUTPUT, error)
}

/// How much is done between two reports of progress.
const TELL: u64 = 1 << 20;

struct Walk<'a, 'e> {
    tour: &'a Tour<'a>,
    total: u64,
    told: u64,
    content: Content<'a>,
    edit: &'e mut dyn Edit,
    repeated: &'e Repeated,
    out: &'e mut dyn Write,
    found: Found,
    /// How often each top-level key has occurred.
    seen: HashMap<Box<[u8]>, u32>,
    /// What top-level keys were replaced by.
    replaced: HashSet<String>,
    /// Whether there is an event array, or what is there instead.
    array: std::result::Result<(), &'static str>,
    /// It is the object form.
    is_object: bool,
    /// The event array has no closing bracket.
    is_open: bool,
    /// How many bytes were looked at in vain, those looked at again counted again.
    looked: u64,
    /// Up to which offset.
    reach: u64,
    /// The current piece as JSON.
    text: Vec<u8>,
    edited: Vec<u8>,
}

impl Walk<'_, '_> {
    fn document(&mut self) -> Result<()> {
        if self.content.pass_mark()? {
            self.content.health.count(HealthCode::ByteOrderMark, 0, "");
        }
        let mut gap = Vec::new();
        let first = self.content.space(&mut gap)?;
        self.write(&gap)?;
        match first {
            Some(b'{') => {
                self.is_object = true;
                self.object()?;
            }
            Some(b'[') => {
                self.array = Ok(());
                if !self.events(true, true)? {
                    let end = self.content.offset();
                    let health = &mut self.content.health;
                    health.count(HealthCode::UnterminatedArray, end, "");
                }
            }
            _ => return Err(self.content.refusal()),
        }
        if let Err(reason) = self.array {
            let message = format!("not a Chrome/Kineto trace: {reason}");
            return Err(Error::new(ErrorKind::NotATrace, message));
        }
        if self.content.space(&mut gap)?.is_some() {
            let at = self.content.offset();
            if !self.tour.salvage {
                let message = "text behind the end of the document";
                return Err(Error::new(ErrorKind::Json, message).at(at));
            }
            self.content.rest(|_| Ok(()))?;
            self.found.lost.add(at, self.content.offset());
            gap = b"\n".to_vec();
        }
        self.write(&gap)?;
        self.out.flush().map_err(failed_write)
    }

    fn finish(self) -> Found {
        let mut found = self.found;
        found.health = self.content.health.clone();
        let kept = self.content.offset().saturating_sub(found.lost.bytes);
        let mean = kept.checked_div(found.events).unwrap_or(0).max(1);
        found.damage = self.content.damage().map(ToString::to_string);
        // A bare array may end without its bracket.
        let is_lost = self.is_object || found.lost.count > 0 || found.damage.is_some();
        found.lost.ends_open = self.is_open && is_lost;
        let estimated = found.lost.bytes.div_ceil(mean);
        found.lost.events_estimated = (!found.lost.ends_open).then_some(estimated);
        found.repeated = self
            .seen
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .collect();
        (self.tour.progress)(
            (self.tour.pass.0 + 1) * self.total,
            self.tour.pass.1 * self.total,
        );
        found
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(failed_write)
    }

    /// The object form: events under `traceEvents`, with other keys on both sides.
    fn object(&mut self) -> Step<()> {
        self.content.pass(1);
        self.write(b"{")?;
        let mut between = Between::default();
        loop {
            match self.content.space(&mut between.after)? {
                Some(b'"') => {}
                Some(b'}') => {
                    self.note_comma(&between);
                    self.content.pass(1);
                    break;
                }
                Some(_) => {
                    let trouble = self.content.unexpected("expected a key or `}`");
                    self.recover(trouble, self.content.offset())?;
                    continue;
                }
                None => {
                    self.found.brackets += 1;
                    break;
                }
            }
            let start = self.content.offset();
            if let Err(trouble) = self.member(&mut between) {
                self.recover(trouble, start)?;
                continue;
            }
            match self.content.space(&mut between.before)? {
                Some(b',') => between.pass_comma(&mut self.content),
                Some(b'}') => {
                    std::mem::swap(&mut between.before, &mut between.after);
                    self.content.pass(1);
                    break;
                }
                Some(_) => {
                    let trouble = self.content.unexpected("expected `,` or `}`");
                    self.recover(trouble, self.content.offset())?;
                }
                None => {
                    self.found.brackets += 1;
                    break;
                }
            }
        }
        for (key, value) in self.edit.extra_members() {
            let comma = if std::mem::replace(&mut between.any, true) {
                ","
            } else {
                ""
            };
            let key = self.unused(&key);
            self.write(format!("{comma}\n  \"{key}\": {value}").as_bytes())?;
        }
        self.write(&between.after)?;
        self.write(b"}")?;
        Ok(())
    }

    /// `key`, or that with a number behind it when there is such a key already.
    fn unused(&self, key: &str) -> String {
        let numbered = (2..).map(|number: u32| format!("{key}_{number}"));
        std::iter::once(key.to_owned())
            .chain(numbered)
            .find(|key| !self.seen.contains_key(key.as_bytes()) && !self.replaced.contains(key))
            .unwrap_or_default()
    }

    /// Goes on at the event array, when that is still to come, behind text that cannot be read from
    /// `start` on; else what is left is lost.
    fn recover(&mut self, trouble: Trouble, start: u64) -> Step<()> {
        let reach = match trouble {
            Trouble::Text { reach, .. } if self.tour.salvage => reach,
            trouble => return Err(trouble),
        };
        self.looked(start, reach);
        let found = self.array.is_err() && self.content.find_events()?;
        if !found {
            self.content.rest(|_| Ok(()))?;
        }
        let end = self.content.offset();
        // When nothing is lost, only the comma before the event array is missing.
        self.found.commas += u64::from(end == start);
        self.found.lost.add(start, end);
        Ok(())
    }

    fn member(&mut self, between: &mut Between) -> Step<()> {
        let at = self.content.offset();
        let key = self.content.value()?;
        self.as_json(key);
        let mut head = std::mem::take(&mut self.text);
        let mut name = String::new();
        decode_into(&head[1..head.len() - 1], &mut name);
        let mut gap = Vec::new();
        if self.content.space(&mut gap)? != Some(b':') {
            return Err(self.content.unexpected("expected `:`"));
        }
        self.content.pass(1);
        head.append(&mut gap);
        head.push(b':');
        let first = self.content.space(&mut gap)?;
        head.append(&mut gap);
        let is_events = name == "traceEvents";
        if is_events && first == Some(b'[') {
            let keep = self.occurs(&name, at);
            if keep && self.array.is_ok() {
                let replaced = self.found.events;
                let health = &mut self.content.health;
                health.add(HealthCode::ReplacedEvents, replaced, None);
            }
            self.array = Ok(());
            if keep {
                between.write(self.out)?;
                self.write(&head)?;
            }
            self.events(keep, false)?;
            return Ok(());
        }
        let value = self.content.value()?;
        let keep = self.occurs(&name, at);
        if is_events {
            self.array = Err(match first {
                Some(b'{') => "traceEvents is an object, not an array",
                Some(b'"') => "traceEvents is a string, not an array",
                Some(b'-' | b'0'..=b'9') => "traceEvents is a number, not an array",
                Some(b't' | b'f') => "traceEvents is a boolean, not an array",
                _ => "traceEvents is null, not an array",
            });
        }
        if !keep {
            return Ok(());
        }
        self.as_json(value);
        self.edited.clear();
        let fate = self.edit.member(&name, &self.text, &mut self.edited);
        if fate == Fate::Drop {
            return Ok(());
        }
        self.edit_key(&mut head);
        between.write(self.out)?;
        self.out.write_all(&head).map_err(failed_write)?;
        let text = if fate == Fate::Keep {
            &self.text
        } else {
            &self.edited
        };
        self.out.write_all(text).map_err(failed_write)?;
        self.tell();
        Ok(())
    }

    /// Replaces the key at the start of `head` when it has to be.
    fn edit_key(&mut self, head: &mut Vec<u8>) {
        let end = Tokens::new(head).next().map_or(0, |key| key.end);
        let mut key = Vec::new();
        let fate = self.edit.key(&head[..end], &mut key);
        if fate != Fate::Replace {
            key.extend_from_slice(&head[..end]);
        }
        let mut name = String::new();
        decode_into(&key[1..key.len() - 1], &mut name);
        if fate != Fate::Replace && !self.replaced.contains(&name) {
            return;
        }
        // Two keys that become the same would hide one of the values.
        let name = self.unused(&name);
        key.clear();
        quote_into(&name, &mut key);
        self.replaced.insert(name);
        head.splice(..end, key);
    }

    /// Counts the key `name`; true when it is its last time in the document.
    fn occurs(&mut self, name: &str, at: u64) -> bool {
        let count = self.seen.entry(name.as_bytes().into()).or_insert(0);
        *count += 1;
        if *count > 1 {
            let health = &mut self.content.health;
            health.count(HealthCode::DuplicateKey, at, name);
        }
        let times = self.repeated.get(name.as_bytes());
        times.is_none_or(|times| times == count)
    }

    /// The event array; false when it has no closing bracket. It is written when `keep`.
    fn events(&mut self, keep: bool, whole: bool) -> Step<bool> {
        self.content.pass(1);
        if keep {
            self.write(b"[")?;
            self.edit.begin();
            self.found.events = 0;
        }
        let mut between = Between::default();
        let mut resumed = None;
        let closed = loop {
            let piece = if let Some(piece) = resumed.take() {
                between.after = b"\n".to_vec();
                piece
            } else {
                match self.content.space(&mut between.after)? {
                    Some(b']') if self.tour.salvage && !self.content.can_end(whole)? => {}
                    Some(b']') => {
                        self.note_comma(&between);
                        self.content.pass(1);
                        break true;
                    }
                    // A comma too many hides no event.
                    Some(b',') if self.tour.salvage => {
                        let at = self.content.offset();
                        self.content.pass(1);
                        self.found.lost.add(at, at + 1);
                        continue;
                    }
                    None => break false,
                    Some(_) => {}
                }
                match self.content.value() {
                    Ok(piece) => piece,
                    Err(Trouble::Text { reach, .. }) if self.tour.salvage => {
                        between.comma = None;
                        let from = self.content.offset();
                        self.content.pass(1);
                        resumed = self.resume(from, reach, whole)?;
                        continue;
                    }
                    Err(trouble) => return Err(trouble),
                }
            };
            if keep {
                self.element(piece, &mut between)?;
            }
            match self.content.space(&mut between.before)? {
                Some(b',') => between.pass_comma(&mut self.content),
                Some(b']') if !self.tour.salvage || self.content.can_end(whole)? => {
                    std::mem::swap(&mut between.before, &mut between.after);
                    self.content.pass(1);
                    break true;
                }
                None => {
                    std::mem::swap(&mut between.before, &mut between.after);
                    break false;
                }
                Some(byte) if self.tour.salvage => {
                    between.comma = None;
                    if byte == b'{' {
                        self.found.commas += 1;
                        continue;
                    }
                    let from = self.content.offset();
                    resumed = self.resume(from, from, whole)?;
                }
                Some(_) => return Err(self.content.unexpected("expected `,` or `]`")),
            }
        };
        if !closed {
            self.found.brackets += 1;
        }
        if keep {
            self.is_open = !closed;
            if whole && let Some(event) = self.edit.extra_event() {
                let comma = if between.any { "," } else { "" };
                self.write(format!("{comma}\n{event}").as_bytes())?;
            }
            self.write(&between.after)?;
            self.write(b"]")?;
        }
        Ok(closed)
    }

    fn element(&mut self, piece: Piece, between: &mut Between) -> Step<()> {
        self.found.events += 1;
        let text = if piece.odd {
            self.text.clear();
            mend(self.content.text(piece), &mut self.text);
            &self.text
        } else {
            self.content.text(piece)
        };
        self.edited.clear();
        let fate = self.edit.event(piece.offset, text, &mut self.edited);
        if fate != Fate::Drop {
            between.write(self.out)?;
            let text = if fate == Fate::Keep {
                text
            } else {
                &self.edited
            };
            self.out.write_all(text).map_err(failed_write)?;
        }
        self.tell();
        Ok(())
    }

    /// Passes text that cannot be read, from `from` on, up to the next event that can be read as a
    /// whole, which is passed as well; or up to the end of the array. The text was looked at up to
    /// `reach`.
    ///
    /// An event that seems to start inside what was read already is tried as well, for a missing
    /// bracket makes the reader swallow many whole events before it finds out. When the text around
    /// it says that it is inside of an event all the same, it is lost with that.
    fn resume(&mut self, from: u64, reach: u64, whole: bool) -> Step<Option<Piece>> {
        self.looked(from, reach);
        loop {
            let found = self.content.resume(whole)?;
            let at = self.content.offset();
            self.tell();
            if found.is_some() && !self.is_costly() {
                let (behind, reach) = self.content.is_inside_event(whole)?;
                self.looked += reach - at;
                if let Some(behind) = behind {
                    self.content.seek(behind);
                    continue;
                }
            }
            match found {
                Some(Resume::Event) => {}
                Some(Resume::End) | None => {
                    self.found.lost.add(from, at);
                    return Ok(None);
                }
            }
            match self.content.event() {
                Ok(piece) => {
                    self.found.lost.add(from, at);
                    return Ok(Some(piece));
                }
                Err(Trouble::Text { reach, .. }) => {
                    self.content.pass(1);
                    self.looked(at, reach);
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Notes that text from `from` on was looked at up to `reach`, in vain.
    ///
    /// So that no file makes reading take long, that may cost so many times what was read in all; then
    /// reading goes on behind all that was looked at.
    fn looked(&mut self, from: u64, reach: u64) {
        self.looked += reach.saturating_sub(from);
        self.reach = self.reach.max(reach);
        if self.is_costly() && self.reach > self.content.offset() {
            self.content.seek(self.reach);
        }
    }

    /// True when so much was looked at in vain that it would soon take too long.
    fn is_costly(&self) -> bool {
        const FREE: u64 = 1 << 20;
        const TIMES: u64 = 16;
        self.looked > FREE + TIMES * self.reach
    }

    /// Puts a piece into `text` as JSON.
    fn as_json(&mut self, piece: Piece) {
        self.text.clear();
        let text = self.content.text(piece);
        if piece.odd {
            mend(text, &mut self.text);
        } else {
            self.text.extend_from_slice(text);
        }
    }

    fn note_comma(&mut self, between: &Between) {
        if let Some(at) = between.comma {
            let health = &mut self.content.health;
            health.count(HealthCode::TrailingComma, at, "");
        }
    }

    fn tell(&mut self) {
        let done = self.content.offset();
        if done - self.told >= TELL {
            self.told = done;
            self.tour.tell(done, self.total);
        }
    }
}

/// What stands between two pieces of an object or array.
#[derive(Default)]
struct Between {
    /// A piece was written.
    any: bool,
    /// White space before the comma.
    before: Vec<u8>,
    /// White space behind it.
    after: Vec<u8>,
    /// Where the comma is, when there is one.
    comma: Option<u64>,
}

impl Between {
    fn pass_comma(&mut self, content: &mut Content<'_>) {
        self.comma = Some(content.offset());
        content.pass(1);
    }

    /// Writes what stands before a piece that stays.
    fn write(&mut self, out: &mut dyn Write) -> Result<()> {
        let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(failed_write);
        if self.any {
            write(&self.before)?;
            write(b",")?;
        }
        self.any = true;
        write(&self.after)
    }
}
