//! Activity buffers: a pool that CUPTI takes from, and a queue of those that it has filled.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::CUcontext;

use crate::session;

/// Free buffers to have ready, so that a launch finds one: CUPTI fills one a context, and some may be
/// on their way into the file. Memory that was never filled costs nothing.
const READY: usize = 8;

/// When so many bytes wait for a disk that is slower than the launches, CUPTI gets no more buffers: it drops
/// records then, and counts them. The program needs its memory.
const MOST_WAITING: usize = 1 << 30;

/// What is kept of those that come back.
const KEPT: usize = 16;

/// A piece of memory that CUPTI fills.
pub(crate) struct Buffer {
    start: *mut u8,
    size: usize,
}

// SAFETY: the memory belongs to whoever has the value.
unsafe impl Send for Buffer {}

impl Buffer {
    fn layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size, 8).ok()
    }

    fn new(size: usize) -> Option<Self> {
        let layout = Self::layout(size)?;
        // SAFETY: the size is at least 4 KiB.
        let start = unsafe { alloc(layout) };
        (!start.is_null()).then_some(Self { start, size })
    }

    /// The first `valid` bytes.
    fn bytes(&self, valid: usize) -> &[u8] {
        // SAFETY: CUPTI has written that much, and never more than the size.
        unsafe { std::slice::from_raw_parts(self.start, valid.min(self.size)) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.size) {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.start, layout) };
        }
    }
}

/// A buffer with records.
pub(crate) struct Filled {
    buffer: Buffer,
    valid: usize,
}

impl Filled {
    /// The records.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.bytes(self.valid)
    }
}

/// What was waited for.
pub(crate) enum Wait {
    /// A buffer is full.
    Filled(Filled),
    /// Time is over.
    Time,
    /// A thread has many ranges, or there is something else to look at.
    Woken,
    /// No more buffers will come.
    Closed,
}

#[derive(Default)]
struct Queue {
    filled: VecDeque<Filled>,
    closed: bool,
    woken: bool,
}

/// The buffers of a session.
pub(crate) struct Buffers {
    size: usize,
    free: Mutex<Vec<Buffer>>,
    queue: Mutex<Queue>,
    came: Condvar,
    requested: AtomicU64,
    outstanding: AtomicI64,
}

/// A lock whatever happened to its last holder: the data are whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffers {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            free: Mutex::new(Vec::with_capacity(KEPT)),
            queue: Mutex::new(Queue {
                filled: VecDeque::with_capacity(1 << 10),
                closed: false,
                woken: false,
            }),
            came: Condvar::new(),
            requested: AtomicU64::new(0),
            outstanding: AtomicI64::new(0),
        }
    }

    /// How many buffers CUPTI asked for.
    pub(crate) fn requested(&self) -> u64 {
        self.requested.load(Ordering::Relaxed)
    }

    /// How many of them it has not given back.
    pub(crate) fn outstanding(&self) -> i64 {
        self.outstanding.load(Ordering::Relaxed)
    }

    /// Has free buffers ready. Done beside the program, so that a launch need not.
    pub(crate) fn stock(&self) {
        while lock(&self.free).len() < READY {
            let Some(buffer) = Buffer::new(self.size) else {
                return;
            };
            lock(&self.free).push(buffer);
        }
    }

    fn take(&self) -> Option<Buffer> {
        if self.waiting() * self.size >= MOST_WAITING {
            return None;
        }
        let ready = lock(&self.free).pop();
        ready.or_else(|| Buffer::new(self.size))
    }

    /// Takes back a buffer whose records are dealt with.
    pub(crate) fn recycle(&self, filled: Filled) {
        let mut free = lock(&self.free);
        if free.len() < KEPT {
            free.push(filled.buffer);
        }
    }

    /// Waits for a buffer, at most for `time`.
    pub(crate) fn wait(&self, time: Duration) -> Wait {
        let mut queue = lock(&self.queue);
        if queue.filled.is_empty() && !queue.closed && !queue.woken {
            let waited = self.came.wait_timeout(queue, time);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match queue.filled.pop_front() {
            Some(filled) => Wait::Filled(filled),
            None if std::mem::take(&mut queue.woken) => Wait::Woken,
            None if queue.closed => Wait::Closed,
            None => Wait::Time,
        }
    }

    /// How many buffers wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.queue).filled.len()
    }

    /// The buffer that has waited longest.
    pub(crate) fn next(&self) -> Option<Filled> {
        lock(&self.queue).filled.pop_front()
    }

    /// Says that no more buffers will come.
    pub(crate) fn close(&self) {
        lock(&self.queue).closed = true;
        self.came.notify_all();
    }

    /// Makes a waiting thread look around.
    pub(crate) fn wake(&self) {
        lock(&self.queue).woken = true;
        self.came.notify_all();
    }
}

/// CUPTI wants a buffer.
pub(crate) unsafe extern "C" fn request(
    buffer: *mut *mut u8,
    size: *mut usize,
    most_records: *mut usize,
) {
    let taken = std::panic::catch_unwind(|| {
        let buffers = &session::existing()?.buffers;
        let taken = buffers.take()?;
        buffers.requested.fetch_add(1, Ordering::Relaxed);
        buffers.outstanding.fetch_add(1, Ordering::Relaxed);
        let taken = std::mem::ManuallyDrop::new(taken);
        Some((taken.start, taken.size))
    });
    let (start, length) = taken.ok().flatten().unwrap_or((std::ptr::null_mut(), 0));
    // SAFETY: CUPTI passes three places to write to. Without a buffer it drops records and counts them.
    unsafe {
        *buffer = start;
        *size = length;
        *most_records = 0;
    }
}

/// CUPTI has filled a buffer.
pub(crate) unsafe extern "C" fn complete(
    context: CUcontext,
    stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    // The memory of a session that is gone is lost with it.
    let _ = std::panic::catch_unwind(|| {
        let Some(session) = session::existing() else {
            return;
        };
        if buffer.is_null() {
            return;
        }
        // CUPTI counts them by context, which may be gone when the worker comes.
        if let Some(cupti) = session.cupti() {
            let dropped = cupti.dropped(context, stream);
            session.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        let buffers = &session.buffers;
        buffers.outstanding.fetch_sub(1, Ordering::Relaxed);
        let size = buffers.size;
        let buffer = Buffer {
            start: buffer,
            size,
        };
        let filled = Filled { buffer, valid };
        let mut queue = lock(&buffers.queue);
        if queue.closed || valid == 0 {
            drop(queue);
            buffers.recycle(filled);
        } else {
            queue.filled.push_back(filled);
            drop(queue);
            buffers.came.notify_one();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_buffer_is_given_while_too_much_waits() {
        let size = 1 << 27;
        let buffers = Buffers::new(size);
        // Memory that nobody writes to costs nothing.
        let fill = |valid| {
            let buffer = buffers.take().unwrap();
            let filled = Filled { buffer, valid };
            lock(&buffers.queue).filled.push_back(filled);
        };
        for _ in 0..MOST_WAITING / size {
            fill(1);
        }
        assert!(buffers.take().is_none());
        let next = buffers.next().unwrap();
        buffers.recycle(next);
        assert!(buffers.take().is_some());
    }
}
