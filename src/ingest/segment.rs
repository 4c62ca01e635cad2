//! The event array, read in segments that are parsed at once and checked in order.
//!
//! Segments start at guesses. The result of a segment counts only when the reader of the events
//! before it arrived exactly at its start; otherwise its stretch is read again from where that
//! reader arrived. So the rows are those of one reader that went through the file from front to
//! back, whatever was guessed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::assemble::Joined;
use super::decode::Decoder;
use super::order::InOrder;
use super::row::Rows;
use super::shape::{Outcome, Shapes};
use super::split;
use super::text::{Fault, Scan, Scanner};
use super::{IngestOptions, Reader};
use crate::error::Result;
use crate::health::HealthCode;
use crate::model::EventTable;

/// What stands around the event array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The array is the value of `traceEvents`.
    Object,
    /// The array is the whole document; its closing bracket may be missing.
    Array,
}

/// The events of an array.
pub(super) struct Events {
    /// The rows, in file order.
    pub(super) rows: Rows,
    /// Offset behind the closing bracket.
    pub(super) end: usize,
}

/// Reads the event array whose opening bracket is at `open`.
///
/// Only the `first` array of a file is read as if it went on to the end of the file, in segments
/// and chunks: many short ones would make the same guesses about the same bytes again and again.
pub(super) fn read(
    data: &[u8],
    open: usize,
    form: Form,
    first: bool,
    options: &IngestOptions,
) -> Result<Events> {
    let mut scanner = Scanner::new(data, open + 1);
    match scanner.space() {
        Some(b']') => {
            return Ok(Events {
                rows: Rows::default(),
                end: scanner.pos + 1,
            });
        }
        None if form == Form::Array => {
            let mut rows = Rows::default();
            rows.health
                .count(HealthCode::UnterminatedArray, data.len() as u64, "");
            return Ok(Events {
                rows,
                end: data.len(),
            });
        }
        _ => {}
    }

    let size = options
        .segment_bytes
        .min(data.len() / (4 * rayon::current_num_threads()))
        .max(options.chunk_bytes);
    let (starts, reader) = if first {
        (
            split::segment_starts(data, scanner.pos, size),
            options.reader,
        )
    } else {
        (vec![scanner.pos], Reader::Text)
    };
    let segments = Segments {
        data,
        form,
        options: IngestOptions { reader, ..*options },
        starts,
        size,
    };
    segments.read()
}

/// The segments of an array.
struct Segments<'a> {
    data: &'a [u8],
    form: Form,
    options: IngestOptions,
    /// Guesses, but for the first.
    starts: Vec<usize>,
    /// About how long one is.
    size: usize,
}

impl Segments<'_> {
    /// Reads them at once, each task the first that no other has, and joins them in order meanwhile.
    fn read(&self) -> Result<Events> {
        let count = self.starts.len();
        let first = AtomicUsize::new(0);
        let done = AtomicBool::new(false);
        let space = Mutex::new(Vec::new());
        let space = || space.lock().unwrap_or_else(PoisonError::into_inner);
        let order = InOrder::new(Taken {
            joined: Joined::default(),
            next: self.starts[0],
            end: None,
            decoder: Decoder::default(),
        });
        let work = || {
            let mut decoder = Decoder::default();
            while !done.load(Ordering::Relaxed) {
                let number = first.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                let free = space().pop().unwrap_or_default();
                let segment = self.read_one(number, free, &mut decoder);
                order.put(number, segment, |taken, number, segment| {
                    let free = taken.take(self, number, segment);
                    space().extend(free);
                    if taken.end.is_some() {
                        done.store(true, Ordering::Relaxed);
                    }
                });
            }
        };
        rayon::scope(|scope| {
            for _ in 0..count.min(rayon::current_num_threads()) {
                scope.spawn(|_| work());
            }
        });
        let Taken { joined, end, .. } = order.into_taker();
        let end = end
            .unwrap_or(Err(Fault::End))
            .map_err(|fault| fault.into_error(self.data.len()))?;
        let rows = joined.finish()?;
        Ok(Events { rows, end })
    }

    /// Where the next segment starts.
    fn limit(&self, number: usize) -> usize {
        self.starts.get(number + 1).copied().unwrap_or(usize::MAX)
    }

    /// A segment may look a little beyond its end, where the event that crosses it ends. One that
    /// started at a wrong guess would otherwise read to the end of the file, as would all others.
    fn read_one(&self, number: usize, space: EventTable, decoder: &mut Decoder) -> Segment {
        let reach = self.limit(number).saturating_add(self.size);
        let reach = reach.min(self.data.len());
        let part = Part {
            data: &self.data[..reach],
            cut: reach < self.data.len(),
            form: self.form,
        };
        let (start, limit) = (self.starts[number], self.limit(number));
        part.read(start, limit, &self.options, decoder, space)
    }
}

/// The segments that count, up to where the reader of them arrived.
struct Taken {
    joined: Joined,
    /// Where the next event starts.
    next: usize,
    /// Behind the closing bracket, or what is wrong before.
    end: Option<std::result::Result<usize, Fault>>,
    decoder: Decoder,
}

impl Taken {
    /// Takes segment `number` as far as it counts; gives back space for columns.
    fn take(&mut self, of: &Segments<'_>, number: usize, mut segment: Segment) -> Vec<EventTable> {
        let mut space = Vec::new();
        let limit = of.limit(number);
        if self.end.is_some() || self.next >= limit {
            return space;
        }
        let whole = Part {
            data: of.data,
            cut: false,
            form: of.form,
        };
        let mut again = |at| {
            let decoder = &mut self.decoder;
            whole.read(at, limit, &of.options, decoder, EventTable::default())
        };
        if of.starts[number] != self.next {
            segment = again(self.next);
        }
        let parts = of.starts.len();
        if let Stop::Undecided(at) = segment.stop {
            space.extend(self.joined.add(segment.rows, parts));
            segment = again(at);
        }
        space.extend(self.joined.add(segment.rows, parts));
        match segment.stop {
            Stop::At(at) => self.next = at,
            Stop::End(end) => self.end = Some(Ok(end)),
            Stop::Fault(fault) => self.end = Some(Err(fault)),
            Stop::Undecided(_) => self.end = Some(Err(Fault::End)),
        }
        space
    }
}

/// A stretch of the events of an array, which is read when the rest of the content is not there.
pub(super) struct Stretch<'a> {
    /// The content from somewhere before the first event to somewhere behind the last.
    pub(super) data: &'a [u8],
    /// Offset of `data` in the content.
    pub(super) base: u64,
    /// Where in `data` the first event starts.
    pub(super) start: usize,
    /// Where in `data` the first event of the next stretch starts; `None` when `data` holds all
    /// that is left of the content.
    pub(super) next: Option<usize>,
    /// What stands around the array.
    pub(super) form: Form,
}

impl Stretch<'_> {
    /// The rows, and where in the data the next stretch starts or the array ends; `None` when the
    /// stretch does not end there or has faults.
    /// `space` is for the columns.
    pub(super) fn read(&self, options: &IngestOptions, space: EventTable) -> Option<(Rows, usize)> {
        let part = Part {
            data: self.data,
            cut: self.next.is_some(),
            form: self.form,
        };
        let limit = self.next.unwrap_or(usize::MAX);
        let Segment { mut rows, stop } =
            part.read(self.start, limit, options, &mut Decoder::default(), space);
        let end = match (stop, self.next) {
            (Stop::At(at), Some(next)) if at == next => at,
            (Stop::End(end), None) => end,
            _ => return None,
        };
        rows.events.offset.shift(self.base);
        rows.health.shift(0, self.base);
        Some((rows, end))
    }
}

/// So many events without shape say nothing about a segment yet.
const FREE_MISSES: usize = 64;

/// The outcome of reading one segment.
struct Segment {
    rows: Rows,
    stop: Stop,
}

/// Where reading stopped, and why.
enum Stop {
    /// At the start of the first event that belongs to the next segment.
    At(usize),
    /// Behind the closing bracket of the array.
    End(usize),
    /// At invalid text.
    Fault(Fault),
    /// At the start of an element that does not end in the part of the file that may be seen.
    Undecided(usize),
}

/// As much of the content as a reader may see.
struct Part<'a> {
    data: &'a [u8],
    /// True when the content goes on behind it.
    cut: bool,
    form: Form,
}

impl Part<'_> {
    /// Reads the events from the one at `start` on, until one starts at or after `limit`.
    fn read(
        &self,
        start: usize,
        limit: usize,
        options: &IngestOptions,
        decoder: &mut Decoder,
        space: EventTable,
    ) -> Segment {
        let bytes = limit.min(self.data.len()) - start.min(self.data.len());
        let mut rows = Rows::with_capacity_for(bytes, space);
        let mut scanner = Scanner::new(self.data, start);
        if options.reader == Reader::Auto
            && let Some(stop) = self.by_shape(limit, &mut scanner, &mut rows)
        {
            return Segment { rows, stop };
        }
        // True once no guess is left in this segment: do not search it again.
        let mut last = options.reader == Reader::Text;
        loop {
            if scanner.pos >= limit {
                return Segment {
                    rows,
                    stop: Stop::At(scanner.pos),
                };
            }
            let mut end = limit;
            if !last {
                end = self.chunk_end(scanner.pos, limit, options.chunk_bytes, &mut last);
                if end <= self.data.len() && decoder.chunk(self.data, scanner.pos, end, &mut rows) {
                    scanner.pos = end;
                    continue;
                }
            }
            while scanner.pos < end {
                if let Some(stop) = self.step(&mut scanner, &mut rows) {
                    return Segment { rows, stop };
                }
            }
        }
    }

    /// Reads by shape as far as the events have one, and the others one by one; `None` when too
    /// many have none.
    fn by_shape(&self, limit: usize, scanner: &mut Scanner<'_>, rows: &mut Rows) -> Option<Stop> {
        let mut shapes = Shapes::default();
        let mut others = 0;
        while scanner.pos < limit {
            match shapes.read(self.data, scanner.pos, limit, rows) {
                Outcome::Limit(at) => return Some(Stop::At(at)),
                Outcome::Event(at) => scanner.pos = at,
            }
            if let Some(stop) = self.step(scanner, rows) {
                return Some(stop);
            }
            others += 1;
            if others > FREE_MISSES && (shapes.is_shapeless() || others * 4 > rows.events.len()) {
                return None;
            }
        }
        Some(Stop::At(scanner.pos))
    }

    /// Where the chunk that starts at `start` ends: at a guess about `size` bytes on, else at the
    /// last guess before, else at `limit`.
    fn chunk_end(&self, start: usize, limit: usize, size: usize, last: &mut bool) -> usize {
        let target = start.saturating_add(size.max(1));
        if let Some(guess) = split::next_event(self.data, target, limit) {
            return guess;
        }
        if limit <= self.data.len() {
            return limit;
        }
        *last = true;
        split::last_event(self.data, start + 1, target).unwrap_or(limit)
    }

    /// Reads one element and what separates it from the next.
    fn step(&self, scanner: &mut Scanner<'_>, rows: &mut Rows) -> Option<Stop> {
        let start = scanner.pos;
        let end_of_part = |fault| match fault {
            Fault::End if self.cut => Stop::Undecided(start),
            fault => Stop::Fault(fault),
        };
        let element = match scanner.element() {
            Ok(element) => element,
            Err(fault) => return Some(end_of_part(fault)),
        };
        let mut unterminated = false;
        let stop = match Self::separator(scanner) {
            Ok(false) => None,
            Ok(true) => Some(Stop::End(scanner.pos)),
            Err(Fault::End) if self.form == Form::Array && !self.cut => {
                unterminated = true;
                Some(Stop::End(self.data.len()))
            }
            Err(fault) => return Some(end_of_part(fault)),
        };
        match element {
            Some(event) => rows.push(start as u64, &event),
            None => rows.push_other(start as u64),
        }
        if !scanner.quirks.is_empty() {
            rows.note_quirks(&std::mem::take(&mut scanner.quirks));
        }
        if unterminated {
            rows.health
                .count(HealthCode::UnterminatedArray, self.data.len() as u64, "");
        }
        stop
    }

    /// Passes what is behind an element; true when that ends the array.
    fn separator(scanner: &mut Scanner<'_>) -> Scan<bool> {
        let comma = match scanner.space() {
            Some(b',') => Some(scanner.pos),
            Some(b']') => None,
            Some(_) => return Err(Fault::Unexpected(scanner.pos, "expected `,` or `]`")),
            None => return Err(Fault::End),
        };
        scanner.pos += 1;
        if comma.is_none() {
            return Ok(true);
        }
        match scanner.space() {
            Some(b']') => {
                scanner.pos += 1;
                scanner.note_comma(comma);
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(Fault::End),
        }
    }
}
