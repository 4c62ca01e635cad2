//! One traced process: its spool, its buffers, its threads.
//!
//! A session belongs to one process id. A forked child leaves the session of its parent alone (its
//! locks may be held by threads that the child does not have) and gets one of its own when it does
//! something worth recording.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracekit_spool::Tag;

use crate::buffer::{Buffers, lock};
use crate::config::Config;
use crate::cupti::Cupti;
use crate::gate::Gate;
use crate::nvtx::ThreadLog;
use crate::spool::{Spool, Written};
use crate::{clock, process, worker};

/// How long the end of a process waits for its records to be written.
const PATIENCE: Duration = Duration::from_secs(10);

static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// Counts the sessions that this memory has seen: one more in each forked child.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The process that this one was forked from, when that one had a session.
static FORKED_FROM: AtomicU32 = AtomicU32::new(0);

/// Whether a session may still be made.
static STAGE: AtomicU8 = AtomicU8::new(NEW);
const NEW: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;

/// One traced process.
pub(crate) struct Session {
    pub(crate) config: &'static Config,
    pub(crate) generation: u32,
    pub(crate) spool: Spool,
    pub(crate) buffers: Buffers,
    pub(crate) gate: Gate,
    pub(crate) threads: Mutex<Vec<Arc<ThreadLog>>>,
    /// CUPTI once it works; `None` inside when it does not.
    pub(crate) cupti: OnceLock<Option<Cupti>>,
    /// Records that CUPTI had to drop.
    pub(crate) dropped: AtomicU64,
    ended: AtomicBool,
    written: Mutex<bool>,
    was_written: Condvar,
}

impl Session {
    /// The CUPTI that works.
    pub(crate) fn cupti(&self) -> Option<&Cupti> {
        self.cupti.get()?.as_ref()
    }

    /// True once nothing is to be recorded any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Says that everything is in the file.
    pub(crate) fn set_written(&self) {
        *lock(&self.written) = true;
        self.was_written.notify_all();
    }

    /// Ends recording and waits until everything is in the file.
    fn finish(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(cupti) = self.cupti() {
            cupti.flush(true);
        }
        self.buffers.close();
        let until = Instant::now() + PATIENCE;
        let mut written = lock(&self.written);
        while !*written {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.was_written.wait_timeout(written, left);
            written = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts the session of this process; `None` when there is to be none.
    fn start() -> Option<&'static Self> {
        let config = Config::get()?;
        let parent = FORKED_FROM.load(Ordering::Relaxed);
        let name = format!("{}-{}", std::process::id(), clock::realtime());
        let stem = config.folder.join(name);
        let spool = Spool::create(&stem, config.max_spool, config.ring).ok()?;
        let header = process::header((parent != 0).then_some(parent));
        spool.frame(Tag::Header, &[&header]);
        if spool.flush() == Written::Failed {
            return None;
        }
        let session = Self {
            config,
            generation: GENERATION.load(Ordering::Relaxed),
            spool,
            buffers: Buffers::new(config.buffer_size),
            gate: Gate::new(config),
            threads: Mutex::default(),
            cupti: OnceLock::new(),
            dropped: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            written: Mutex::new(false),
            was_written: Condvar::new(),
        };
        // It lives as long as the process: others may look at it until the very end.
        let session: &'static Self = Box::leak(Box::new(session));
        session.gate.follow_time(session);
        stay_loaded();
        end_before_others();
        worker::spawn(session).ok()?;
        Some(session)
    }
}

/// The session of this process, if it has one already.
#[inline]
pub(crate) fn existing() -> Option<&'static Session> {
    let session = CURRENT.load(Ordering::Acquire);
    // SAFETY: null or a session that was leaked.
    unsafe { session.as_ref() }
}

/// Counts forks: a thread's own data of another generation are those of the parent.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The session of this process; starts it where there is to be one.
#[inline]
pub(crate) fn current() -> Option<&'static Session> {
    existing().or_else(start)
}

#[cold]
fn start() -> Option<&'static Session> {
    // First: the child of a fork that happens while another thread is here must not wait for that.
    watch_forks();
    loop {
        match STAGE.compare_exchange(NEW, STARTING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let session = Session::start();
                let pointer = session.map_or(std::ptr::null(), std::ptr::from_ref);
                CURRENT.store(pointer.cast_mut(), Ordering::Release);
                STAGE.store(STARTED, Ordering::Release);
                return session;
            }
            Err(STARTED) => return existing(),
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// Has forks told, once for this memory.
fn watch_forks() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler is taken away when this library is unloaded, which a session prevents.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// Has [`at_exit`] run before all handlers that are registered so far: the last one comes first.
pub(crate) fn end_before_others() {
    // SAFETY: the handler is part of a library that is never unloaded; one that cannot be registered is
    // not run.
    unsafe { libc::atexit(at_exit) };
}

/// Keeps this library loaded whatever its loader closes: threads and handlers of it remain.
fn stay_loaded() {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let function: extern "C" fn() = at_exit;
    // SAFETY: asks for the library that a function of ours is in, then opens it once more.
    unsafe {
        if libc::dladdr(function as *const c_void, &raw mut found) != 0 as c_int
            && !found.dli_fname.is_null()
        {
            let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(found.dli_fname, flags);
        }
    }
}

extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(|| {
        if let Some(session) = existing() {
            session.finish();
        }
    });
}

/// The child of a fork forgets the session of its parent.
extern "C" fn in_child() {
    if existing().is_some() {
        // The parent's id is what getppid says only while it lives; it does at this moment.
        // SAFETY: the call takes nothing and cannot fail.
        let parent = unsafe { libc::getppid() };
        FORKED_FROM.store(u32::try_from(parent).unwrap_or(0), Ordering::Relaxed);
    }
    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    STAGE.store(NEW, Ordering::Release);
}
