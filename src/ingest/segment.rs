//! The event array, read in segments that are parsed at once and checked in order.
//!
//! Segments start at guesses. The result of a segment counts only when the reader of the events
//! before it arrived exactly at its start; otherwise its stretch is read again from where that
//! reader arrived. So the rows are those of one reader that went through the file from front to
//! back, whatever was guessed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::assemble::{Joined, limited};
use super::order::InOrder;
use super::row::Rows;
use super::shape::Outcome;
use super::split;
use super::text::{Fault, Scan, Scanner};
use super::worker::{Part, Worker};
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
        if count == 1 {
            return self.read_whole();
        }
        let tasks = count.min(rayon::current_num_threads());
        let first = AtomicUsize::new(0);
        let done = AtomicBool::new(false);
        let space = Mutex::new(Vec::new());
        let space = || space.lock().unwrap_or_else(PoisonError::into_inner);
        let order = InOrder::new(Taken {
            joined: Joined::default(),
            next: self.starts[0],
            end: None,
            worker: Worker::new(tasks),
        });
        let work = |worker: usize| {
            let mut worker = Worker::new(worker);
            while !done.load(Ordering::Relaxed) {
                let number = first.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                let free = space().pop().unwrap_or_default();
                let segment = self.read_one(number, free, &mut worker);
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
            for worker in 0..tasks {
                let work = &work;
                scope.spawn(move |_| work(worker));
            }
        });
        let Taken { joined, end, .. } = order.into_taker();
        let end = end
            .unwrap_or(Err(Fault::End))
            .map_err(|fault| fault.into_error(self.data.len()))?;
        let rows = joined.finish()?;
        Ok(Events { rows, end })
    }

    /// Reads them when there is one: its rows are all.
    fn read_whole(&self) -> Result<Events> {
        let mut worker = Worker::default();
        let stop = self.read_into(&mut worker, 0, EventTable::default());
        let end = match stop {
            Stop::At(_) | Stop::Undecided(_) => Err(Fault::End),
            Stop::End(end) => Ok(end),
            Stop::Fault(fault) => Err(fault),
        };
        let end = end.map_err(|fault| fault.into_error(self.data.len()))?;
        let rows = limited(worker.rows)?;
        Ok(Events { rows, end })
    }

    /// Where the next segment starts.
    fn limit(&self, number: usize) -> usize {
        self.starts.get(number + 1).copied().unwrap_or(usize::MAX)
    }

    fn read_one(&self, number: usize, space: EventTable, worker: &mut Worker) -> Segment {
        let stop = self.read_into(worker, number, space);
        let part = worker.hand_over();
        Segment { part, stop }
    }

    /// Reads segment `number`. It may look a little beyond its end, where the event that crosses it ends. One that
    /// started at a wrong guess would otherwise read to the end of the file, as would all others.
    fn read_into(&self, worker: &mut Worker, number: usize, space: EventTable) -> Stop {
        let reach = self.limit(number).saturating_add(self.size);
        let reach = reach.min(self.data.len());
        let view = View {
            data: &self.data[..reach],
            cut: reach < self.data.len(),
            form: self.form,
        };
        let (start, limit) = (self.starts[number], self.limit(number));
        view.read(start, limit, &self.options, worker, space)
    }
}

/// The segments that count, up to where the reader of them arrived.
struct Taken {
    joined: Joined,
    /// Where the next event starts.
    next: usize,
    /// Behind the closing bracket, or what is wrong before.
    end: Option<std::result::Result<usize, Fault>>,
    /// Reads again what was read from a wrong start.
    worker: Worker,
}

impl Taken {
    /// Takes segment `number` as far as it counts; gives back space for columns.
    fn take(&mut self, of: &Segments<'_>, number: usize, mut segment: Segment) -> Vec<EventTable> {
        let mut space = Vec::new();
        let limit = of.limit(number);
        if self.end.is_some() {
            return space;
        }
        let wrong = of.starts[number] != self.next;
        if wrong {
            self.joined.learn(&segment.part);
        }
        if self.next >= limit {
            return space;
        }
        let whole = View {
            data: of.data,
            cut: false,
            form: of.form,
        };
        let mut again = |at| {
            let worker = &mut self.worker;
            let stop = whole.read(at, limit, &of.options, worker, EventTable::default());
            let part = worker.hand_over();
            Segment { part, stop }
        };
        if wrong {
            segment = again(self.next);
        }
        let parts = of.starts.len();
        if let Stop::Undecided(at) = segment.stop {
            space.extend(self.joined.add(segment.part, parts));
            segment = again(at);
        }
        space.extend(self.joined.add(segment.part, parts));
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
    pub(super) fn read(
        &self,
        options: &IngestOptions,
        worker: &mut Worker,
        space: EventTable,
    ) -> Option<(Part, usize)> {
        let view = View {
            data: self.data,
            cut: self.next.is_some(),
            form: self.form,
        };
        let limit = self.next.unwrap_or(usize::MAX);
        let stop = view.read(self.start, limit, options, worker, space);
        let mut part = worker.hand_over();
        let end = match (stop, self.next) {
            (Stop::At(at), Some(next)) if at == next => at,
            (Stop::End(end), None) => end,
            _ => return None,
        };
        part.events.offset.shift(self.base);
        part.health.shift(0, self.base);
        Some((part, end))
    }
}

/// So many events without shape say nothing about a segment yet.
const FREE_MISSES: usize = 64;

/// The outcome of reading one segment.
struct Segment {
    part: Part,
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
struct View<'a> {
    data: &'a [u8],
    /// True when the content goes on behind it.
    cut: bool,
    form: Form,
}

impl View<'_> {
    /// Reads the events from the one at `start` on, until one starts at or after `limit`.
    fn read(
        &self,
        start: usize,
        limit: usize,
        options: &IngestOptions,
        worker: &mut Worker,
        space: EventTable,
    ) -> Stop {
        let bytes = limit.min(self.data.len()) - start.min(self.data.len());
        worker.start(bytes, space);
        let mut scanner = Scanner::new(self.data, start);
        if options.reader == Reader::Auto && worker.expects_shapes() {
            if let Some(stop) = self.by_shape(limit, &mut scanner, worker) {
                return stop;
            }
            worker.note_shapeless();
        }
        let Worker { rows, decoder, .. } = worker;
        // True once no guess is left in this segment: do not search it again.
        let mut last = options.reader == Reader::Text;
        loop {
            if scanner.pos >= limit {
                return Stop::At(scanner.pos);
            }
            let mut end = limit;
            if !last {
                end = self.chunk_end(scanner.pos, limit, options.chunk_bytes, &mut last);
                if end <= self.data.len() && decoder.chunk(self.data, scanner.pos, end, rows) {
                    scanner.pos = end;
                    continue;
                }
            }
            while scanner.pos < end {
                if let Some(stop) = self.step(&mut scanner, rows) {
                    return stop;
                }
            }
        }
    }

    /// Reads by shape as far as the events have one, and the others one by one; `None` when too
    /// many have none.
    fn by_shape(
        &self,
        limit: usize,
        scanner: &mut Scanner<'_>,
        worker: &mut Worker,
    ) -> Option<Stop> {
        let Worker { rows, shapes, .. } = worker;
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
