//! Compressed content, read in blocks while the rest of it is still being inflated.
//!
//! ```text
//! producer    inflates │ block 0 │ block 1 │ block 2 │ …
//! the pool    reads              │ block 0 │ block 1 │ …
//! ```
//! A block ends at the last guess in it (see [`split`]); what is behind the guess is the front of
//! the next block. The rows of the blocks count only when the reader of each arrived exactly at the
//! next, so that they are those of one reader that went from front to back. The keys on both sides
//! of the array are read at the end, from the head in the first block and the tail in the last one
//! put together.
//!
//! Whatever is irregular is left to the reader of whole content: a head, a tail or an event that
//! does not fit into a block, a wrong guess, a second event array, every fault. So there is one
//! answer and one text for each fault.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::Scope;

use super::assemble::Joined;
use super::document::{self, Document, Opening};
use super::inflate::{self, Compression, Inflater, MAX_WHOLE};
use super::order::InOrder;
use super::row::Rows;
use super::segment::{Events, Form, Stretch};
use super::worker::{Part, Worker};
use super::{IngestOptions, split};
use crate::error::{Error, ErrorKind, Result};
use crate::model::EventTable;

/// Smaller blocks could not tell UTF-16 from what is no text at all.
const MIN_BLOCK: usize = 64;

/// So many blocks may wait for a thread. More would only need memory: a producer that is ahead of
/// the readers becomes one.
const MAX_WAITING: usize = 2;

/// Reads the document in `bytes`, which are of this `compression`.
pub(super) fn read(
    bytes: &[u8],
    compression: Compression,
    options: &IngestOptions,
) -> Result<Document> {
    if let Some(document) = in_blocks(
        Inflater::new(bytes, compression, options.max_content),
        options,
    )? {
        return Ok(document);
    }
    let inflater = Inflater::new(bytes, compression, options.max_content);
    let content = inflate::whole(inflater, MAX_WHOLE)?;
    document::read(&content, options)
}

/// Reads a document in blocks; `None` when something about it is irregular. Errors are those of
/// the compressed data, which come before all others, and those that the first block decides.
fn in_blocks(mut inflater: Inflater<'_>, options: &IngestOptions) -> Result<Option<Document>> {
    let size = options.block_bytes.max(MIN_BLOCK);
    let expected = inflater.expected_len().saturating_add(1);
    let mut front = Block {
        bytes: vec![0; expected.clamp(MIN_BLOCK, size)],
        ..Block::default()
    };
    front.fill(&mut inflater, size)?;
    if front.last {
        return document::read(front.data(), options).map(Some);
    }
    let (open, form) = match document::opening(front.data()) {
        Opening::Array(open, form) => (open, form),
        Opening::Refused(error) => return inflater.drain().and(Err(error)),
        Opening::Unknown => return Ok(None),
    };
    let Some(spaces) = front.data()[open + 1..]
        .iter()
        .position(|byte| !super::escape::is_space(*byte))
    else {
        return Ok(None);
    };
    let head = front.data()[..=open].to_vec();
    front.start = open + 1 + spaces;
    let pipe = Pipe {
        form,
        size,
        options,
        blocks: expected / size + 1,
        state: Mutex::default(),
        workers: AtomicUsize::new(0),
        rows: InOrder::new(Joined::default()),
    };
    rayon::scope(|scope| pipe.produce(scope, front, &mut inflater))?;
    let state = pipe.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    if state.stopped {
        return Ok(None);
    }
    Ok(state.document(head, pipe.rows.into_taker().finish()?))
}

/// A stretch of content.
#[derive(Default)]
struct Block {
    /// The buffer, of which the first `len` bytes are content.
    bytes: Vec<u8>,
    len: usize,
    /// Which block it is.
    number: usize,
    /// Offset of its first byte in the content.
    base: u64,
    /// Where in it the first event starts.
    start: usize,
    /// Where in it the first event of the next block starts.
    next: Option<usize>,
    /// True when the content ends with it.
    last: bool,
}

impl Block {
    fn data(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Inflates up to `size` bytes into the block, behind those that are there.
    fn fill(&mut self, inflater: &mut Inflater<'_>, size: usize) -> Result<()> {
        loop {
            if self.len == self.bytes.len() {
                if self.len >= size {
                    return Ok(());
                }
                self.bytes.resize((2 * self.len).clamp(MIN_BLOCK, size), 0);
            }
            let read = inflater.read(&mut self.bytes[self.len..])?;
            if read == 0 {
                self.last = true;
                return Ok(());
            }
            self.len += read;
        }
    }

    /// Ends the block at the last guess in it and starts the next block, in `buffer`, with what is
    /// behind.
    fn split(&mut self, mut buffer: Vec<u8>) -> Option<Self> {
        let next = split::last_event(self.data(), self.start + 1, self.len)?;
        self.next = Some(next);
        let rest = &self.bytes[next..self.len];
        if buffer.len() < rest.len() {
            buffer.resize(rest.len(), 0);
        }
        buffer[..rest.len()].copy_from_slice(rest);
        Some(Self {
            bytes: buffer,
            len: rest.len(),
            number: self.number + 1,
            base: self.base + next as u64,
            ..Self::default()
        })
    }
}

/// What the producer and the readers of blocks share.
struct Pipe<'o> {
    form: Form,
    size: usize,
    options: &'o IngestOptions,
    /// About how many blocks there are.
    blocks: usize,
    state: Mutex<State>,
    /// The rows of the blocks that were read.
    rows: InOrder<Part, Joined>,
    /// How many workers there are.
    workers: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Blocks to be read.
    waiting: VecDeque<Block>,
    /// Buffers of blocks that were read.
    free: Vec<Vec<u8>>,
    /// Those that read a block before and read none now.
    workers: Vec<Worker>,
    /// Columns of blocks that were joined.
    space: Vec<EventTable>,
    /// What is behind the event array, and where in the content that starts.
    tail: Option<(u64, Vec<u8>)>,
    /// True when something is irregular or damaged: no rows will be needed.
    stopped: bool,
}

impl Pipe<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inflates block after block, from `front` on, and hands each to the pool.
    ///
    /// No thread waits for another here, so that nothing can lock up however many threads and files
    /// there are: blocks are taken from one queue, by tasks of the pool and by the producer itself.
    /// (If it let the pool give it a task instead, that might be to read another file.)
    fn produce<'s>(
        &'s self,
        scope: &Scope<'s>,
        front: Block,
        inflater: &mut Inflater<'_>,
    ) -> Result<()> {
        let most = MAX_WAITING.min(rayon::current_num_threads() - 1);
        let mut block = front;
        loop {
            let next = if block.last {
                None
            } else {
                let buffer = self.state().free.pop();
                let buffer = buffer.unwrap_or_else(|| vec![0; self.size]);
                let Some(next) = block.split(buffer) else {
                    self.state().stopped = true;
                    return Ok(());
                };
                Some(next)
            };
            self.state().waiting.push_back(block);
            scope.spawn(|_| self.read_one());
            while next.is_some() && self.state().waiting.len() > most {
                self.read_one();
            }
            let Some(next) = next else {
                return Ok(());
            };
            block = next;
            if self.state().stopped {
                return Ok(());
            }
            if let Err(error) = block.fill(inflater, self.size) {
                self.state().stopped = true;
                return Err(error);
            }
        }
    }

    /// Reads the first of the blocks that wait, if there is one.
    fn read_one(&self) {
        let mut state = self.state();
        if state.stopped {
            state.waiting.clear();
        }
        let Some(block) = state.waiting.pop_front() else {
            return;
        };
        let space = state.space.pop().unwrap_or_default();
        let worker = state.workers.pop();
        drop(state);
        let new = || Worker::new(self.workers.fetch_add(1, Ordering::Relaxed));
        let mut worker = worker.unwrap_or_else(new);
        let stretch = Stretch {
            data: block.data(),
            base: block.base,
            start: block.start,
            next: block.next,
            form: self.form,
        };
        let Some((part, end)) = stretch.read(self.options, &mut worker, space) else {
            self.state().stopped = true;
            return;
        };
        self.rows.put(block.number, part, |joined, _, part| {
            let space = joined.add(part, self.blocks);
            self.state().space.extend(space);
        });
        let mut state = self.state();
        // Only now, and blocks are taken in order: what a worker hands over is joined in its order.
        state.workers.push(worker);
        if block.last {
            let tail = block.data()[end..].to_vec();
            state.tail = Some((block.base + end as u64, tail));
        } else {
            state.free.push(block.bytes);
        }
    }
}

impl State {
    /// The document, when all is regular; `head` is what stands before the events, `rows` are theirs.
    fn document(self, head: Vec<u8>, rows: Rows) -> Option<Document> {
        let (tail_at, tail) = self.tail?;
        let mut rows = Some(rows);
        let behind = head.len();
        let text = [head, tail].concat();
        // The events would be behind the bracket at the end of the head.
        let read = document::read_with(&text, |open, _, _| match rows.take() {
            Some(rows) if open + 1 == behind => Ok(Events { rows, end: behind }),
            _ => Err(Error::new(ErrorKind::Json, "another event array")),
        });
        let mut document = read.ok()?;
        document
            .health
            .shift(behind as u64, tail_at - behind as u64);
        Some(document)
    }
}

#[cfg(test)]
mod tests;
