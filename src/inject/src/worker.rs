//! The one thread of ours: it writes what CUPTI and the threads of the program leave behind.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracekit_spool::{NvtxEvents, NvtxOp, Record, RecordSizes, Records, Tag, push_field};

use crate::buffer::{Filled, Wait, lock};
use crate::cupti::{Cupti, DRIVER_DOMAIN, RUNTIME_DOMAIN};
use crate::open::OpenRanges;
use crate::ring::Counts;
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

/// Records of devices and contexts that a ring tells again in each file; no program makes more.
const MOST_FACTS: usize = 16 << 10;

struct Worker {
    session: &'static Session,
    sizes: RecordSizes,
    /// What was written last for the string at an address.
    texts: HashMap<u64, u64>,
    /// API calls whose names are written.
    calls: HashSet<(u32, u32)>,
    domains: usize,
    /// Empty batches, for threads whose batches are taken.
    spare: Vec<Vec<u8>>,
    odd_buffers: u64,
    /// Records that were read.
    records: u64,
    /// What there was no room for.
    unkept: Counts,
    /// For a ring: records of devices and contexts, and ranges that are open.
    facts: Vec<u8>,
    open: OpenRanges,
}

/// Records that are written as one frame.
#[derive(Default)]
struct Piece {
    /// Where it starts in its buffer.
    from: usize,
    /// How much is in it.
    counts: Counts,
    /// Addresses of strings that its records point to.
    texts: BTreeSet<u64>,
    /// API calls in it.
    calls: BTreeSet<(u32, u32)>,
}

impl Piece {
    fn add(&mut self, record: &Record) {
        self.counts.records += 1;
        match record {
            Record::Kernel(kernel) => {
                self.texts.insert(kernel.name);
                self.counts.device += 1;
            }
            Record::Copy(_) | Record::Fill(_) => self.counts.device += 1,
            Record::Device(device) => {
                self.texts.insert(device.name);
            }
            Record::Api(api) => {
                let domain = if api.runtime {
                    RUNTIME_DOMAIN
                } else {
                    DRIVER_DOMAIN
                };
                self.calls.insert((domain, api.cbid));
            }
            _ => {}
        }
    }
}

impl Worker {
    fn new(session: &'static Session) -> Self {
        Self {
            session,
            sizes: RecordSizes::default(),
            texts: HashMap::new(),
            calls: HashSet::new(),
            domains: 0,
            spare: Vec::new(),
            odd_buffers: 0,
            records: 0,
            unkept: Counts::default(),
            facts: Vec::new(),
            open: OpenRanges::default(),
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
                Wait::Woken => {
                    let batches = self.take_batches(false);
                    self.ranges(batches);
                }
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
                let batches = self.take_batches(false);
                if let Some(cupti) = session.cupti() {
                    cupti.flush(false);
                }
                self.settle(batches);
            }
        }
        let batches = self.take_batches(true);
        self.settle(batches);
        self.end();
    }

    /// Writes one buffer, whole or in pieces.
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
        let most = session.spool.piece();
        let mut records = Records::new(bytes, &sizes);
        let mut piece = Piece::default();
        loop {
            let from = bytes.len() - records.rest();
            let Some(record) = records.next() else {
                break;
            };
            let end = bytes.len() - records.rest();
            if end - piece.from > most && piece.from < from {
                self.keep(cupti, &bytes[piece.from..from], &piece);
                piece = Piece {
                    from,
                    ..Piece::default()
                };
            }
            if session.config.ring
                && matches!(record, Record::Device(_) | Record::Context(_))
                && self.facts.len() < MOST_FACTS
            {
                self.facts.extend_from_slice(&bytes[from..end]);
            }
            piece.add(&record);
        }
        self.odd_buffers += u64::from(records.rest() > 0);
        self.keep(cupti, &bytes[piece.from..], &piece);
    }

    /// Writes a piece of a buffer, and before it the strings that its records point to.
    fn keep(&mut self, cupti: &Cupti, bytes: &[u8], piece: &Piece) {
        let session = self.session;
        self.records += piece.counts.records;
        self.make_room(bytes.len());
        self.names(cupti, piece);
        match session.spool.frame(Tag::Buffer, &[bytes]) {
            Written::Yes => session.spool.count(piece.counts),
            written => {
                self.unkept.add(piece.counts);
                self.stop(written);
            }
        }
    }

    /// With a ring, has room for `bytes` of records. A file that begins is told all that those before said
    /// and that it needs to be read by itself.
    fn make_room(&mut self, bytes: usize) {
        let session = self.session;
        if !session.spool.make_room(bytes) {
            return;
        }
        self.texts.clear();
        self.calls.clear();
        self.domains = 0;
        self.new_domains();
        if let Some(cupti) = session.cupti().filter(|_| !self.facts.is_empty()) {
            let facts = std::mem::take(&mut self.facts);
            let mut piece = Piece::default();
            for record in Records::new(&facts, &self.sizes) {
                piece.add(&record);
            }
            self.names(cupti, &piece);
            session.spool.frame(Tag::Buffer, &[&facts]);
            self.facts = facts;
        }
        for (thread, events) in self.open.batches() {
            let parts = [&thread.to_le_bytes()[..], &[0; 4], &events];
            session.spool.frame(Tag::Open, &parts);
        }
        if let Some(lost) = session.spool.lost().filter(|lost| lost.files > 0) {
            let mut fields = Vec::new();
            let mut number = |name: &str, value: u64| {
                push_field(&mut fields, name, value.to_string().as_bytes());
            };
            number("files", lost.files);
            number("bytes", lost.bytes);
            number("records", lost.records);
            number("device_records", lost.device);
            number("ranges", lost.ranges);
            number("until_realtime_ns", lost.until);
            session.spool.frame(Tag::Lost, &[&fields]);
        }
        session.spool.remove_oldest();
    }

    /// Writes the names that records of `piece` have, unless they are written.
    fn names(&mut self, cupti: &Cupti, piece: &Piece) {
        for address in &piece.texts {
            self.text(*address);
        }
        for (domain, id) in &piece.calls {
            self.call(cupti, *domain, *id);
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

    /// Writes the names of domains that are new.
    fn new_domains(&mut self) {
        for (number, name) in nvtx::domains(self.domains) {
            self.domains += 1;
            let parts = [&number.to_le_bytes()[..], name];
            self.session.spool.frame(Tag::Domain, &parts);
        }
    }

    /// Takes what threads have left behind.
    fn take_batches(&mut self, last: bool) -> Vec<(u32, Vec<u8>)> {
        let session = self.session;
        let threads = lock(&session.threads).clone();
        let mut batches = Vec::new();
        let mut gone = HashSet::new();
        for thread in &threads {
            // A thread that has ended leaves its log to the session alone; asked before its last events are
            // taken, for it may end at any moment.
            if Arc::strong_count(thread) == 2 {
                gone.insert(Arc::as_ptr(thread));
            }
            let spare = self.spare.pop();
            let mut batch = spare.unwrap_or_else(|| Vec::with_capacity(nvtx::SPACE));
            thread.take(session, last, &mut batch);
            if batch.is_empty() {
                self.spare.push(batch);
            } else {
                batches.push((thread.id(), batch));
            }
        }
        lock(&session.threads).retain(|thread| !gone.contains(&Arc::as_ptr(thread)));
        batches
    }

    /// Writes `batches`, and before them the work that was done in their ranges, as far as it came: what a
    /// ring removes of ranges is then older than what it keeps of their work.
    fn ranges(&mut self, batches: Vec<(u32, Vec<u8>)>) {
        let session = self.session;
        for _ in 0..session.buffers.waiting() {
            if let Some(filled) = session.buffers.next() {
                self.write(&filled);
                session.buffers.recycle(filled);
            }
        }
        self.new_domains();
        for (thread, mut batch) in batches {
            self.batch(thread, &batch);
            batch.clear();
            self.spare.push(batch);
        }
    }

    /// Writes events of one thread, whole or in pieces.
    fn batch(&mut self, thread: u32, batch: &[u8]) {
        let session = self.session;
        let most = session.spool.piece();
        let mut from = 0;
        while from < batch.len() {
            let mut events = NvtxEvents::of_batch(&batch[from..]);
            // What is not kept loses the ranges that begin in it; what is removed loses those that end
            // in it, for those that do not are told again.
            let (mut begin, mut ended) = (Counts::default(), Counts::default());
            let mut end = from;
            while let Some(event) = events.next() {
                use NvtxOp::{End, Mark, Pop, Push, Start};
                begin.ranges += u64::from(matches!(event.op, Push | Start | Mark));
                ended.ranges += u64::from(matches!(event.op, Pop | End | Mark));
                end = batch.len() - events.rest();
                if end - from >= most {
                    break;
                }
            }
            ended.until = clock::realtime();
            let piece = &batch[from..end];
            if piece.is_empty() {
                return;
            }
            self.make_room(piece.len());
            let parts = [&thread.to_le_bytes()[..], &[0; 4], piece];
            match session.spool.frame(Tag::Nvtx, &parts) {
                Written::Yes => session.spool.count(ended),
                written => {
                    self.unkept.add(begin);
                    self.stop(written);
                }
            }
            if session.config.ring {
                self.open.add(thread, NvtxEvents::of_batch(piece));
            }
            from = end;
        }
    }

    /// Writes `batches` and the clocks, and hands everything to the system.
    fn settle(&mut self, batches: Vec<(u32, Vec<u8>)>) {
        self.ranges(batches);
        self.make_room(0);
        let session = self.session;
        let cupti = session.cupti().and_then(Cupti::timestamp).unwrap_or(0);
        let now = clock::realtime();
        let clocks = [now, clock::monotonic(), cupti].map(u64::to_le_bytes);
        let parts = [&clocks[0][..], &clocks[1], &clocks[2]];
        let written = session.spool.frame(Tag::Clock, &parts);
        session.spool.count(Counts {
            until: now,
            ..Counts::default()
        });
        self.stop(written);
        self.stop(session.spool.flush());
    }

    /// Stops recording when nothing more can be written.
    fn stop(&self, written: Written) {
        let line = match written {
            Written::Yes => return,
            Written::Full => {
                let bytes = self.session.config.max_spool.unwrap_or(0);
                format!("recording stopped: the spool has reached its limit of {bytes} bytes")
            }
            Written::Failed => format!(
                "recording stopped: the spool cannot be written any more ({})",
                self.session.spool.why()
            ),
        };
        self.session.gate.close(self.session, &line);
    }

    /// The last frame: what there was.
    fn end(&self) {
        let session = self.session;
        let mut fields = Vec::new();
        let mut number = |name: &str, value: u64| {
            push_field(&mut fields, name, value.to_string().as_bytes());
        };
        number("records", self.records);
        number("buffers_requested", session.buffers.requested());
        if let Some(cupti) = session.cupti() {
            let dropped = cupti.dropped(std::ptr::null_mut(), 0);
            session.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        let outstanding = session.buffers.outstanding();
        number(
            "buffers_outstanding",
            u64::try_from(outstanding).unwrap_or(0),
        );
        number("records_dropped", session.dropped.load(Ordering::Relaxed));
        number("records_unkept", self.unkept.records);
        number("device_records_unkept", self.unkept.device);
        number("ranges_unkept", self.unkept.ranges);
        number("buffers_odd", self.odd_buffers);
        number("end_realtime_ns", clock::realtime());
        session.spool.frame(Tag::End, &[&fields]);
        session.spool.flush();
    }
}
