//! The one thread of ours: it writes what CUPTI and the threads of the program leave behind.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracekit_spool::{Record, RecordSizes, Records, Tag, push_field};

use crate::buffer::{Filled, Wait, lock};
use crate::cupti::{Cupti, DRIVER_DOMAIN, RUNTIME_DOMAIN};
use crate::session::{self, Session};
use crate::spool::Written;
use crate::{clock, nvtx};

/// When to register the handler of the end again after the first time, each time five times later:
/// handlers of the driver that were registered in between would else run, and tear down, before it.
const FIRST_AGAIN: Duration = Duration::from_millis(20);

/// Starts the thread.
///
/// # Errors
/// When the system has none to give.
pub(crate) fn spawn(session: &'static Session) -> io::Result<()> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // Signals are for the threads of the program; the new thread inherits that none is for it.
    // SAFETY: both sets are written before they are read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let spawned = std::thread::Builder::new()
        .name("tracekit".to_owned())
        .spawn(move || {
            let _ = std::panic::catch_unwind(|| Worker::new(session).run());
            session.set_written();
        });
    // SAFETY: the mask that was there before.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    spawned.map(|_| ())
}

struct Worker {
    session: &'static Session,
    sizes: RecordSizes,
    /// What was written last for the string at an address.
    texts: HashMap<u64, u64>,
    /// API calls whose names are written.
    calls: HashSet<(u32, u32)>,
    domains: usize,
    scratch: Vec<u8>,
    odd_buffers: u64,
}

impl Worker {
    fn new(session: &'static Session) -> Self {
        Self {
            session,
            sizes: RecordSizes::default(),
            texts: HashMap::new(),
            calls: HashSet::new(),
            domains: 0,
            scratch: Vec::new(),
            odd_buffers: 0,
        }
    }

    fn run(mut self) {
        let session = self.session;
        let started = Instant::now();
        let period = session.config.flush_period;
        let (mut flush, mut again) = (started + period, FIRST_AGAIN);
        loop {
            let mut next = flush.min(started + again);
            if let Some(left) = session.gate.follow_time(session) {
                next = next.min(Instant::now() + left);
            }
            match session
                .buffers
                .wait(next.saturating_duration_since(Instant::now()))
            {
                Wait::Filled(filled) => {
                    self.write(&filled);
                    session.buffers.recycle(filled);
                }
                Wait::Closed => break,
                Wait::Woken => self.ranges(false),
                Wait::Time => {}
            }
            if session.cupti().is_some() {
                session.buffers.stock();
            }
            let now = Instant::now();
            if now >= started + again {
                again *= 5;
                session::end_before_others();
            }
            if now >= flush {
                flush = now + period;
                if let Some(cupti) = session.cupti() {
                    cupti.flush(false);
                }
                self.settle(false);
            }
        }
        self.settle(true);
        self.end();
    }

    /// Writes one buffer, and before it the strings that its records point to.
    fn write(&mut self, filled: &Filled) {
        let session = self.session;
        let Some(cupti) = session.cupti() else {
            return;
        };
        if self.sizes == RecordSizes::default() {
            self.sizes = cupti.record_sizes(&session.config.kinds);
        }
        let bytes = filled.bytes();
        let sizes = self.sizes.clone();
        let mut records = Records::new(bytes, &sizes);
        let mut here = HashSet::new();
        let mut count = 0;
        for record in records.by_ref() {
            count += 1;
            match record {
                Record::Kernel(kernel) if here.insert(kernel.name) => self.text(kernel.name),
                Record::Device(device) if here.insert(device.name) => self.text(device.name),
                Record::Api(api) => {
                    let domain = if api.runtime {
                        RUNTIME_DOMAIN
                    } else {
                        DRIVER_DOMAIN
                    };
                    self.call(cupti, domain, api.cbid);
                }
                _ => {}
            }
        }
        if records.rest() > 0 {
            self.odd_buffers += 1;
        }
        session.records.fetch_add(count, Ordering::Relaxed);
        session
            .dropped
            .fetch_add(cupti.dropped(), Ordering::Relaxed);
        match session.spool.frame(Tag::Buffer, &[bytes]) {
            Written::Yes => {}
            Written::Full => {
                session.unkept.fetch_add(1, Ordering::Relaxed);
                self.full();
            }
            Written::Failed => self.failed(),
        }
    }

    /// Writes the string at `address`, unless the same one was written for it before.
    fn text(&mut self, address: u64) {
        let Ok(place) = usize::try_from(address) else {
            return;
        };
        if place == 0 {
            return;
        }
        // SAFETY: a string of CUPTI's record, which it keeps as long as the module is loaded.
        let text = unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(place)) };
        let bytes = text.to_bytes();
        // FNV-1a: an address is used again when a module is unloaded, seldom and by chance.
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        if self.texts.insert(address, hash) != Some(hash) {
            let spool = &self.session.spool;
            spool.frame(Tag::Text, &[&address.to_le_bytes(), bytes]);
        }
    }

    /// Writes the name of an API call, once.
    fn call(&mut self, cupti: &Cupti, domain: u32, id: u32) {
        if self.calls.insert((domain, id))
            && let Some(name) = cupti.callback_name(domain, id)
        {
            let parts = [&domain.to_le_bytes()[..], &id.to_le_bytes(), &name];
            self.session.spool.frame(Tag::Callback, &parts);
        }
    }

    /// Writes the ranges of all threads.
    fn ranges(&mut self, last: bool) {
        let session = self.session;
        for (number, name) in nvtx::domains(self.domains) {
            self.domains += 1;
            let parts = [&number.to_le_bytes()[..], &name];
            session.spool.frame(Tag::Domain, &parts);
        }
        let threads = lock(&session.threads).clone();
        let mut full = false;
        for thread in &threads {
            thread.take(session, last, &mut self.scratch);
            if !self.scratch.is_empty() {
                let parts = [&thread.id().to_le_bytes()[..], &[0; 4], &self.scratch];
                full |= session.spool.frame(Tag::Nvtx, &parts) == Written::Full;
            }
            self.scratch.clear();
        }
        drop(threads);
        // A thread that has ended leaves its log to the session alone.
        lock(&session.threads).retain(|thread| Arc::strong_count(thread) > 1);
        if full {
            self.full();
        }
    }

    /// Writes the ranges of all threads and the clocks, and hands everything to the system.
    fn settle(&mut self, last: bool) {
        self.ranges(last);
        let session = self.session;
        let cupti = session.cupti().and_then(Cupti::timestamp).unwrap_or(0);
        let clocks = [clock::realtime(), clock::monotonic(), cupti].map(u64::to_le_bytes);
        let parts = [&clocks[0][..], &clocks[1], &clocks[2]];
        if session.spool.frame(Tag::Clock, &parts) == Written::Full {
            self.full();
        }
        if session.spool.flush() == Written::Failed {
            self.failed();
        }
    }

    fn full(&self) {
        let bytes = self.session.config.max_spool.unwrap_or(0);
        let line = format!("recording stopped: the spool has reached its limit of {bytes} bytes");
        self.session.gate.close(self.session, &line);
    }

    fn failed(&self) {
        let line = "recording stopped: the spool cannot be written any more";
        self.session.gate.close(self.session, line);
    }

    /// The last frame: what there was.
    fn end(&self) {
        let session = self.session;
        let mut fields = Vec::new();
        let mut number = |name: &str, value: u64| {
            push_field(&mut fields, name, value.to_string().as_bytes());
        };
        number("records", session.records.load(Ordering::Relaxed));
        number("records_dropped", session.dropped.load(Ordering::Relaxed));
        number("buffers_requested", session.buffers.requested());
        let outstanding = session.buffers.outstanding();
        number(
            "buffers_outstanding",
            u64::try_from(outstanding).unwrap_or(0),
        );
        number("buffers_unkept", session.unkept.load(Ordering::Relaxed));
        number("buffers_odd", self.odd_buffers);
        number("end_realtime_ns", clock::realtime());
        session.spool.frame(Tag::End, &[&fields]);
        session.spool.flush();
    }
}
