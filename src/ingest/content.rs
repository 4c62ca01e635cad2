//! Content piece by piece, for those who copy it: what was passed need not stay in memory.
//!
//! Mapped content is one window over all of it. Compressed content is seen through a window that
//! moves on; it holds at least the piece that is being read, so that a piece is always one slice.

use super::assemble::limited;
use super::escape::is_space;
use super::inflate::{Compression, Inflater};
use super::row::{Rows, Value};
use super::text::{Fault, Scan, Scanner};
use super::{IngestOptions, document, split};
use crate::error::{Error, ErrorKind, Result};
use crate::health::Health;
use crate::model::{Metadata, Trace};

/// How many bytes are inflated at a time, unless a piece needs more.
const BLOCK: usize = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The longest piece of compressed content. A few megabytes can inflate to a piece that no memory
/// holds.
const MAX_PIECE: usize = 256 << 20;

/// White space that is longer than this between two pieces is cut: it means nothing.
const MAX_GAP: usize = 4096;

/// How far a guess where reading can go on may look to both sides.
const LOOK: usize = 4096;

/// How much text is looked at to find out whether a list is inside of an event.
const LONGEST_LIST: usize = 1 << 20;

/// Keys of Kineto and of the trace format behind an event array.
const KEYS: [&[u8]; 22] = [
    b"traceName\"",
    b"displayTimeUnit\"",
    b"baseTimeNanoseconds\"",
    b"schemaVersion\"",
    b"deviceProperties\"",
    b"computeProperties\"",
    b"distributedInfo\"",
    b"cupti_version\"",
    b"cuda_runtime_version\"",
    b"cuda_driver_version\"",
    b"roctracer_version\"",
    b"hip_runtime_version\"",
    b"hip_driver_version\"",
    b"record_shapes\"",
    b"with_stack\"",
    b"with_modules\"",
    b"with_flops\"",
    b"profile_memory\"",
    b"trace_id\"",
    b"host_name\"",
    b"otherData\"",
    b"stackFrames\"",
];

/// Content that is passed from front to back.
pub(crate) struct Content<'a> {
    stored: &'a [u8],
    inflater: Option<Inflater<'a>>,
    /// The window of compressed content: the first `len` bytes.
    buffer: Vec<u8>,
    len: usize,
    /// Offset in the content of the first byte of the window.
    base: u64,
    /// Offset in the window of the next byte.
    at: usize,
    /// The content ends with the window.
    last: bool,
    /// Damage of the compressed data ends the content.
    lenient: bool,
    damage: Option<Error>,
    /// The oddities in the pieces that were passed.
    pub(crate) health: Health,
}

/// A piece that was passed: a value, or a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// Offset of its first byte in the content.
    pub(crate) offset: u64,
    start: usize,
    end: usize,
    /// It is JSON only after [`mend`](super::mend).
    pub(crate) odd: bool,
}

/// Why a piece could not be passed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The text is wrong.
    Text {
        error: Error,
        /// Up to which offset it was looked at.
        reach: u64,
    },
    /// The content cannot be had.
    Content(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Content(error)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Text { error, .. } | Trouble::Content(error) => error,
        }
    }
}

/// Where reading may go on behind wrong text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// At what looks like an event.
    Event,
    /// At what looks like the closing bracket of the event array.
    End,
}

impl<'a> Content<'a> {
    /// The content of a file that is stored as `stored`. When `lenient`, compressed data may be
    /// damaged: the content ends there.
    pub(crate) fn new(stored: &'a [u8], lenient: bool) -> Self {
        let inflater =
            Compression::of(stored).map(|compression| Inflater::new(stored, compression, u64::MAX));
        Self {
            stored,
            last: inflater.is_none(),
            inflater,
            buffer: Vec::new(),
            len: 0,
            base: 0,
            at: 0,
            lenient,
            damage: None,
            health: Health::default(),
        }
    }

    /// About how many bytes of content there are.
    pub(crate) fn expected_len(&self) -> u64 {
        match &self.inflater {
            Some(inflater) => inflater.expected_len() as u64,
            None => self.stored.len() as u64,
        }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Where compressed data is damaged, and how.
    pub(crate) fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    fn window(&self) -> &[u8] {
        match self.inflater {
            Some(_) => &self.buffer[..self.len],
            None => self.stored,
        }
    }

    /// The text of a piece; good until something else is passed.
    pub(crate) fn text(&self, piece: Piece) -> &[u8] {
        &self.window()[piece.start..piece.end]
    }

    /// Moves the window on, so that more content comes into it; false at the end of the content.
    fn more(&mut self) -> Result<bool> {
        let keep = self.at.saturating_sub(LOOK);
        let Some(inflater) = &mut self.inflater else {
            return Ok(false);
        };
        if self.last {
            return Ok(false);
        }
        self.buffer.copy_within(keep..self.len, 0);
        self.base += keep as u64;
        self.at -= keep;
        self.len -= keep;
        if self.buffer.len() - self.len < BLOCK / 2 {
            self.buffer.resize((2 * self.len).max(BLOCK), 0);
        }
        // What is inflated together with damage is lost with it.
        let most = if self.lenient { LOOK } else { BLOCK };
        while self.len < self.buffer.len() {
            let end = self.buffer.len().min(self.len + most);
            match inflater.read(&mut self.buffer[self.len..end]) {
                Ok(0) => self.last = true,
                Ok(read) => {
                    self.len += read;
                    continue;
                }
                Err(error) if self.lenient => {
                    self.last = true;
                    self.damage = Some(error);
                }
                Err(error) => return Err(error),
            }
            break;
        }
        Ok(true)
    }

    /// The next byte.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            if let Some(byte) = self.window().get(self.at) {
                return Ok(Some(*byte));
            }
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    /// Passes `count` bytes that were seen.
    pub(crate) fn pass(&mut self, count: usize) {
        self.at += count;
    }

    /// Passes everything before `offset`, or the whole content when that ends earlier.
    pub(super) fn pass_to(&mut self, offset: u64) -> Result<()> {
        loop {
            let missing = offset.saturating_sub(self.offset());
            let here = self.window().len() - self.at;
            self.at += usize::try_from(missing).map_or(here, |missing| missing.min(here));
            if self.offset() >= offset || !self.more()? {
                return Ok(());
            }
        }
    }

    /// Passes a byte order mark.
    pub(crate) fn pass_mark(&mut self) -> Result<bool> {
        self.peek()?;
        let marked = self.window()[self.at..].starts_with(BYTE_ORDER_MARK);
        if marked {
            self.at += BYTE_ORDER_MARK.len();
        }
        Ok(marked)
    }

    /// Passes white space into `gap` and gives the byte behind it.
    pub(crate) fn space(&mut self, gap: &mut Vec<u8>) -> Result<Option<u8>> {
        gap.clear();
        loop {
            let rest = &self.window()[self.at..];
            let len = rest.iter().take_while(|byte| is_space(**byte)).count();
            let next = rest.get(len).copied();
            gap.extend_from_slice(&rest[..len.min(MAX_GAP - gap.len())]);
            self.at += len;
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    /// Passes the value that starts here.
    pub(crate) fn value(&mut self) -> std::result::Result<Piece, Trouble> {
        self.piece(|scanner| {
            scanner.skip()?;
            Ok(())
        })
    }

    /// Passes the value that starts here, if it is an event: an object with a `ph`.
    pub(crate) fn event(&mut self) -> std::result::Result<Piece, Trouble> {
        self.piece(|scanner| {
            let start = scanner.pos;
            let is_event = scanner
                .element()?
                .is_some_and(|event| matches!(event.ph, Value::Text(_)));
            if is_event {
                Ok(())
            } else {
                Err(Fault::Unexpected(start, "expected an event"))
            }
        })
    }

    fn piece(
        &mut self,
        pass: impl for<'s> Fn(&mut Scanner<'s>) -> Scan<()>,
    ) -> std::result::Result<Piece, Trouble> {
        loop {
            let (start, base) = (self.at, self.base);
            let window = self.window();
            let len = window.len();
            let mut scanner = Scanner::new(window, start);
            let passed = pass(&mut scanner);
            let end = scanner.pos;
            match passed {
                // A number may go on behind the window.
                Ok(()) if end < len || self.last => {
                    let odd = !scanner.quirks.is_empty();
                    if odd {
                        let mut found = Health::default();
                        scanner.quirks.count_into(&mut found, "");
                        found.shift(0, base);
                        self.health.merge(&found);
                    }
                    self.at = end;
                    return Ok(Piece {
                        offset: base + start as u64,
                        start,
                        end,
                        odd,
                    });
                }
                Err(fault @ Fault::Unexpected(at, _)) => {
                    return Err(Trouble::Text {
                        error: self.error(fault),
                        reach: base + at as u64,
                    });
                }
                Err(fault) if self.last => {
                    return Err(Trouble::Text {
                        error: self.error(fault),
                        reach: base + len as u64,
                    });
                }
                Ok(()) | Err(_) if len - start > MAX_PIECE => {
                    let message = format!("a value of more than {} MiB", MAX_PIECE >> 20);
                    return Err(Trouble::Text {
                        error: Error::new(ErrorKind::Json, message).at(base + start as u64),
                        reach: base + len as u64,
                    });
                }
                Ok(()) | Err(_) => {
                    self.more()?;
                }
            }
        }
    }

    fn error(&self, fault: Fault) -> Error {
        let fault = match fault {
            Fault::Unexpected(at, message) => {
                let at = usize::try_from(self.base).map_or(usize::MAX, |base| base + at);
                Fault::Unexpected(at, message)
            }
            Fault::End => Fault::End,
        };
        let end = self.base + self.window().len() as u64;
        fault.into_error(usize::try_from(end).unwrap_or(usize::MAX))
    }

    /// The error that the text goes on here with something other than `expected`, or ends.
    pub(crate) fn unexpected(&mut self, expected: &'static str) -> Trouble {
        match self.peek() {
            Ok(Some(_)) => Trouble::Text {
                error: self.error(Fault::Unexpected(self.at, expected)),
                reach: self.offset() + 1,
            },
            Ok(None) => Trouble::Text {
                error: self.error(Fault::End),
                reach: self.offset(),
            },
            Err(error) => Trouble::Content(error),
        }
    }

    /// Why content that does not start as a document is no trace.
    pub(crate) fn refusal(&self) -> Error {
        let front = &self.window()[..self.window().len().min(64)];
        match document::read(front, &IngestOptions::default()) {
            Err(error) => error,
            Ok(_) => Error::new(ErrorKind::NotATrace, "not a Chrome/Kineto trace"),
        }
    }

    /// Goes to `offset`, which is still in the window.
    pub(crate) fn seek(&mut self, offset: u64) {
        debug_assert!(offset >= self.base, "what was passed is gone");
        let at = usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.at = at.min(self.window().len());
    }

    /// True when the bracket that is next can be the end of the event array: the document ends
    /// behind it, or goes on with a key when the array is not the `whole` of it. Content that is cut
    /// behind the bracket can have gone on so.
    pub(crate) fn can_end(&mut self, whole: bool) -> Result<bool> {
        self.see(LOOK)?;
        Ok(can_end(&self.near(self.at), whole))
    }

    /// Sees to it that so many bytes from here on are in the window, or all that are left.
    fn see(&mut self, count: usize) -> Result<()> {
        while self.window().len() - self.at < count && self.more()? {}
        Ok(())
    }

    /// What is seen from a bracket or brace. It is as much in mapped content as in compressed content,
    /// so that both are read alike.
    fn near(&self, at: usize) -> Near<'_> {
        Near::new(self.window(), at, self.last)
    }

    /// Goes to the next place from here on where an event seems to start, or the event array seems
    /// to end; `None` is the end of the content. It costs what is passed.
    pub(crate) fn resume(&mut self, whole: bool) -> Result<Option<Resume>> {
        self.search(LOOK, |window, from, until, last| {
            memchr::memchr2_iter(b'{', b']', &window[from..until]).find_map(|at| {
                let near = Near::new(window, from + at, last);
                let found = if window[from + at] == b'{' {
                    near.looks_like_event().then_some(Resume::Event)
                } else {
                    (looks_like_end(&near) && can_end(&near, whole)).then_some(Resume::End)
                };
                Some((from + at, found?))
            })
        })
    }

    /// Finds out whether the element, or the closing bracket, that is next is inside of an event that
    /// could not be read: whether the text from there on closes a list, and then the event around it.
    /// Gives also up to which offset the text was looked at.
    ///
    /// Text behind damage is no proof of what is around it. What closes an event, with the next event
    /// or the end of the array behind it, was inside of it; whatever else follows, a stray bracket, the
    /// end of cut content, is taken for the event array, so that nothing whole is lost.
    pub(crate) fn is_inside_event(&mut self, whole: bool) -> Result<(Option<u64>, u64)> {
        self.see(LONGEST_LIST)?;
        let window = self.window();
        let seen = &window[..window.len().min(self.at + LONGEST_LIST)];
        let last = self.last && seen.len() == window.len();
        let mut scanner = Scanner::new(seen, self.at);
        let (behind, reach) = match list_inside_event(&mut scanner, seen, last, whole) {
            Ok(behind) => (behind, scanner.pos),
            Err(Fault::Unexpected(at, _)) => (None, at),
            Err(Fault::End) => (None, seen.len()),
        };
        let offset = |at: usize| self.base + at as u64;
        Ok((behind.map(offset), offset(reach)))
    }

    /// Goes to the key of the event array from here on; false at the end of the content.
    pub(crate) fn find_events(&mut self) -> Result<bool> {
        let found = self.search(LOOK, |window, from, until, _| {
            memchr::memmem::find_iter(&window[from..], b"\"traceEvents\"")
                .map(|at| from + at)
                .take_while(|at| *at < until)
                .find(|at| {
                    let behind = trim_start(&window[at + 13..]);
                    let value = behind.strip_prefix(b":").map(trim_start);
                    value.is_some_and(|value| value.starts_with(b"["))
                })
                .map(|at| (at, ()))
        })?;
        Ok(found.is_some())
    }

    /// Goes to the first place that `find` finds. It gets the window, where to look in it, and
    /// whether the content ends with the window; so many bytes behind are to be seen otherwise.
    fn search<T>(
        &mut self,
        behind: usize,
        find: impl Fn(&[u8], usize, usize, bool) -> Option<(usize, T)>,
    ) -> Result<Option<T>> {
        loop {
            let window = self.window();
            let until = if self.last {
                window.len()
            } else {
                window.len().saturating_sub(behind)
            };
            if self.at < until
                && let Some((at, found)) = find(window, self.at, until, self.last)
            {
                self.at = at;
                return Ok(Some(found));
            }
            self.at = self.at.max(until);
            if !self.more()? {
                self.at = self.window().len();
                return Ok(None);
            }
        }
    }

    /// Passes what is left, handing it to `take` in parts.
    pub(crate) fn rest(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        loop {
            let rest = &self.window()[self.at..];
            let len = rest.len().min(BLOCK);
            take(&rest[..len])?;
            self.at += len;
            if self.at == self.window().len() && !self.more()? {
                return Ok(());
            }
        }
    }
}

/// What is around a bracket or brace, as far as guesses look.
struct Near<'a> {
    text: &'a [u8],
    /// Where the bracket is in the text.
    at: usize,
    /// The content ends with the text.
    last: bool,
}

impl<'a> Near<'a> {
    fn new(window: &'a [u8], at: usize, last: bool) -> Self {
        let start = at.saturating_sub(LOOK);
        let end = window.len().min(at + LOOK);
        Self {
            text: &window[start..end],
            at: at - start,
            last: last && end == window.len(),
        }
    }

    fn looks_like_event(&self) -> bool {
        split::looks_like_event(self.text, self.at)
    }

    /// What comes behind the bracket.
    fn behind(&self) -> &'a [u8] {
        trim_start(&self.text[self.at + 1..])
    }
}

/// True when the bracket can be the end of the event array, which is the `whole` of the document or not.
fn can_end(near: &Near<'_>, whole: bool) -> bool {
    let ends = |rest: &[u8]| near.last && trim_start(rest).is_empty();
    match near.behind().split_first() {
        // Cut there, or white space without end.
        None => true,
        Some(_) if whole => false,
        Some((b'}', rest)) => ends(rest),
        Some((b',', rest)) => match trim_start(rest).split_first() {
            Some((b'"', key)) => match super::escape::read(key) {
                Some(text) => {
                    let behind = trim_start(&key[text.raw.len() + 1..]);
                    behind.starts_with(b":") || ends(behind)
                }
                None => near.last,
            },
            // A comma too many.
            Some((b'}', rest)) => ends(rest),
            Some(_) => false,
            None => near.last,
        },
        Some(_) => false,
    }
}

/// True for a bracket behind an event with a known key, or the end of the document, behind it.
fn looks_like_end(near: &Near<'_>) -> bool {
    let before = &near.text[..near.at];
    let spaces = before.iter().rev().take_while(|byte| is_space(**byte));
    let event = before.len() - spaces.count();
    if !before[..event].ends_with(b"}") {
        return false;
    }
    match near.behind().split_first() {
        None => near.last,
        Some((b'}', rest)) => near.last && trim_start(rest).is_empty(),
        Some((b',', rest)) => trim_start(rest)
            .strip_prefix(b"\"")
            .is_some_and(|key| KEYS.iter().any(|known| key.starts_with(known))),
        Some(_) => false,
    }
}

/// Passes the rest of a list, from an element or the closing bracket on, and what closes the event
/// around it: where the list ends when there is one.
///
/// ```text
/// {"name":"the "op"","args":{"list":[{"a":1},{"ph":"X"}],"b":2}},{"ph":"X"},…
///                                           └ from here  ├──────┘└ an event: it was inside
///                                                        └ the list ends
/// ```
fn list_inside_event(
    scanner: &mut Scanner<'_>,
    seen: &[u8],
    last: bool,
    whole: bool,
) -> Scan<Option<usize>> {
    while scanner.peek() != Some(b']') {
        scanner.skip()?;
        match scanner.space() {
            Some(b',') => {
                scanner.pos += 1;
                scanner.space();
            }
            Some(b']') => {}
            _ => return Ok(None),
        }
    }
    scanner.pos += 1;
    let behind = scanner.pos;
    let mut closed = false;
    loop {
        match scanner.space() {
            Some(b'}') => {
                scanner.pos += 1;
                closed = true;
            }
            Some(b']') => {
                let near = Near::new(seen, scanner.pos, last);
                let ends = !near.behind().is_empty() || (whole && near.last);
                if closed && ends && can_end(&near, whole) {
                    return Ok(Some(behind));
                }
                scanner.pos += 1;
            }
            Some(b',') => {
                scanner.pos += 1;
                match scanner.space() {
                    Some(b'{')
                        if closed && Near::new(seen, scanner.pos, last).looks_like_event() =>
                    {
                        return Ok(Some(behind));
                    }
                    // A comma too many.
                    Some(b'}' | b']') => {}
                    Some(_) => {
                        scanner.skip()?;
                        if scanner.space() == Some(b':') {
                            scanner.pos += 1;
                            scanner.space();
                            scanner.skip()?;
                        }
                    }
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        }
    }
}

fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[spaces..]
}

/// The events that were passed, as columns.
#[derive(Default)]
pub(crate) struct Columns(Rows);

impl Columns {
    /// Adds the event or other element `text`, which was passed at `offset`.
    pub(crate) fn push(&mut self, offset: u64, text: &[u8]) {
        match Scanner::new(text, 0).element() {
            Ok(Some(event)) => self.0.push(offset, &event),
            _ => self.0.push_other(offset),
        }
    }

    /// The trace that has these events.
    pub(crate) fn trace(self) -> Result<Trace> {
        Ok(super::finish(document::Document {
            rows: limited(self.0)?,
            metadata: Metadata::default(),
            health: Health::default(),
        }))
    }
}
