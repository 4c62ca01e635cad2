//! The ranges of one thread until the worker writes them.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use tracekit_spool::{NvtxEvent, NvtxOp, plain_name, push_event};

use crate::buffer::lock;
use crate::clock;
use crate::session::{self, Session};

/// Space to start with; the worker gives as much back when it takes a batch.
pub(crate) const SPACE: usize = 1 << 18;

/// From so many bytes on the worker is asked to write them: some thousand ranges, which stay in caches.
const MANY: usize = 1 << 17;

/// A thread that leaves more than this before the worker comes loses the rest, and the worker is told.
const MOST: usize = 1 << 26;

/// A range that is open on this thread; kept only where recording is gated.
struct Open {
    domain: u32,
    time: u64,
    name: Vec<u8>,
    written: bool,
    /// It has the name that opens the gate.
    opens: bool,
}

#[derive(Default)]
struct Inner {
    batch: Vec<u8>,
    open: Vec<Open>,
    /// How many ranges are open in each domain, for the answer that NVTX gives.
    depths: Vec<i32>,
    /// The worker was asked to take the batch.
    asked: bool,
    /// Events that there was no room for since the batch was taken last.
    lost: u64,
}

/// The ranges of one thread.
pub(crate) struct ThreadLog {
    thread: u32,
    generation: u32,
    inner: Mutex<Inner>,
}

thread_local! {
    static LOG: RefCell<Option<Arc<ThreadLog>>> = const { RefCell::new(None) };
}

/// Does `work` with the log of this thread; nothing where the thread is already gone.
#[inline]
fn with_log<R>(session: &'static Session, work: impl FnOnce(&ThreadLog) -> R) -> Option<R> {
    LOG.try_with(|slot| {
        let mut slot = slot.try_borrow_mut().ok()?;
        let log = match &mut *slot {
            Some(log) if log.generation == session.generation => log,
            slot => {
                if let Some(stale) = slot.take() {
                    // That of the process this one was forked from: others may hold its lock.
                    std::mem::forget(stale);
                }
                slot.insert(ThreadLog::new(session))
            }
        };
        Some(work(log))
    })
    .ok()
    .flatten()
}

/// Records what happened on this thread. For a push or pop, how many ranges of the domain are, or
/// were, open around it.
#[inline]
pub(super) fn record(op: NvtxOp, domain: u32, id: u64, name: &[u8]) -> i32 {
    let Some(session) = session::current() else {
        return -1;
    };
    debug_assert_eq!(session.generation, session::generation());
    if session.has_ended() {
        return -1;
    }
    let opens = is_named(session, op, name);
    if opens {
        // First, so that the range is the first thing recorded.
        session.gate.range_opens(session);
    }
    let event = NvtxEvent {
        op,
        domain,
        time: clock::realtime(),
        id,
        name,
    };
    let recorded = with_log(session, |log| log.record(session, &event, opens));
    let recorded = recorded.unwrap_or_default();
    if recorded.closes {
        session.gate.range_closes(session);
    }
    if recorded.many {
        session.buffers.wake();
    }
    recorded.depth
}

/// What became of an event.
struct Recorded {
    /// How many ranges are, or were, open around it.
    depth: i32,
    /// A range closes that had opened the gate.
    closes: bool,
    /// The thread has many events, and the worker does not know yet.
    many: bool,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            depth: -1,
            closes: false,
            many: false,
        }
    }
}

/// True when a range opens that has the name that recording waits for.
fn is_named(session: &Session, op: NvtxOp, name: &[u8]) -> bool {
    let wanted = session.config.range.as_deref();
    wanted.is_some_and(|wanted| op == NvtxOp::Push && plain_name(name).0 == wanted)
}

impl ThreadLog {
    fn new(session: &Session) -> Arc<Self> {
        let log = Arc::new(Self {
            thread: clock::thread_id(),
            generation: session.generation,
            inner: Mutex::new(Inner {
                batch: Vec::with_capacity(SPACE),
                ..Inner::default()
            }),
        });
        lock(&session.threads).push(Arc::clone(&log));
        log
    }

    /// The id of the thread.
    pub(crate) fn id(&self) -> u32 {
        self.thread
    }

    #[inline]
    fn record(&self, session: &Session, event: &NvtxEvent<'_>, opens: bool) -> Recorded {
        let mut inner = lock(&self.inner);
        let depth = inner.count(event);
        let closes = if session.gate.is_gated() {
            inner.record_gated(session, event, opens)
        } else {
            inner.push(event);
            false
        };
        let many = inner.batch.len() >= MANY && !inner.asked;
        inner.asked |= many;
        Recorded {
            depth,
            closes,
            many,
        }
    }

    /// Moves what was recorded to `batch`, which is empty; its space is used for what comes.
    pub(crate) fn take(&self, session: &Session, last: bool, batch: &mut Vec<u8>) {
        let mut inner = lock(&self.inner);
        inner.asked = false;
        if last && session.gate.is_gated() {
            for place in 0..inner.open.len() {
                let open = &mut inner.open[place];
                if !open.written && session.gate.was_open_since(open.time) {
                    open.written = true;
                    let range = inner.open.remove(place);
                    inner.push_open(&range);
                    inner.open.insert(place, range);
                }
            }
        }
        inner.end_gap();
        if !inner.batch.is_empty() {
            std::mem::swap(&mut inner.batch, batch);
        }
    }
}

impl Inner {
    /// Records where recording is gated; true when a range closes that had opened the gate.
    fn record_gated(&mut self, session: &Session, event: &NvtxEvent<'_>, opens: bool) -> bool {
        let is_open = session.gate.is_open();
        if is_open {
            self.write_open();
        }
        let mut closes = false;
        match event.op {
            NvtxOp::Push => {
                self.open.push(Open {
                    domain: event.domain,
                    time: event.time,
                    name: event.name.to_vec(),
                    written: is_open,
                    opens,
                });
                if is_open {
                    self.push(event);
                }
            }
            NvtxOp::Pop => {
                let last = self
                    .open
                    .iter()
                    .rposition(|open| open.domain == event.domain);
                if let Some(range) = last.map(|last| self.open.remove(last)) {
                    closes = range.opens;
                    if !range.written && session.gate.was_open_since(range.time) {
                        self.push_open(&range);
                        self.push(event);
                    } else if range.written {
                        self.push(event);
                    }
                }
            }
            // Ranges by id are few: both ends are recorded, and matched when they are read.
            NvtxOp::Start | NvtxOp::End | NvtxOp::NameThread => self.push(event),
            NvtxOp::Mark if is_open => self.push(event),
            NvtxOp::Mark | NvtxOp::Gap => {}
        }
        closes
    }

    #[inline]
    fn push(&mut self, event: &NvtxEvent<'_>) {
        // What comes behind a gap is behind it, too: the reader must not take ends for others'.
        if self.batch.len() < MOST && self.lost == 0 {
            push_event(&mut self.batch, event);
        } else {
            self.lost += 1;
        }
    }

    /// Says at the end of the batch how many events are missing there.
    fn end_gap(&mut self) {
        let id = std::mem::take(&mut self.lost);
        if id > 0 {
            let gap = NvtxEvent {
                op: NvtxOp::Gap,
                domain: 0,
                time: clock::realtime(),
                id,
                name: b"",
            };
            push_event(&mut self.batch, &gap);
        }
    }

    fn push_open(&mut self, range: &Open) {
        self.push(&NvtxEvent {
            op: NvtxOp::Push,
            domain: range.domain,
            time: range.time,
            id: 0,
            name: &range.name,
        });
    }

    /// Writes the ranges that were open before recording started.
    fn write_open(&mut self) {
        if self.open.iter().all(|open| open.written) {
            return;
        }
        let mut open = std::mem::take(&mut self.open);
        for range in open.iter_mut().filter(|range| !range.written) {
            range.written = true;
            self.push_open(range);
        }
        self.open = open;
    }

    #[inline]
    fn count(&mut self, event: &NvtxEvent<'_>) -> i32 {
        let change = match event.op {
            NvtxOp::Push => 1,
            NvtxOp::Pop => -1,
            _ => return 0,
        };
        let place = event.domain as usize;
        if self.depths.len() <= place {
            self.depths.resize(place + 1, 0);
        }
        let depth = &mut self.depths[place];
        let before = *depth;
        *depth = (before + change).max(0);
        before.min(before + change)
    }
}

#[cfg(test)]
mod tests {
    use tracekit_spool::NvtxEvents;

    use super::*;

    #[test]
    fn a_thread_that_leaves_too_much_says_how_much_is_missing() {
        let mut inner = Inner::default();
        let name = vec![b'x'; 60_000];
        let event = NvtxEvent {
            op: NvtxOp::Mark,
            domain: 0,
            time: 1,
            id: 0,
            name: &name,
        };
        for _ in 0..1_200 {
            inner.push(&event);
        }
        inner.end_gap();
        let events: Vec<_> = NvtxEvents::of_batch(&inner.batch).collect();
        let (last, kept) = events.split_last().unwrap();
        // 60,024 bytes each: room for 1,119 of them.
        assert_eq!((last.op, last.id, kept.len()), (NvtxOp::Gap, 81, 1_119));
        inner.batch.clear();
        inner.push(&event);
        inner.end_gap();
        assert_eq!(NvtxEvents::of_batch(&inner.batch).count(), 1);
    }
}
