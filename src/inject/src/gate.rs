//! When to record: always, in a stretch of time, or while a range is open.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tracekit_spool::{Tag, kind};

use crate::buffer::lock;
use crate::clock;
use crate::config::Config;
use crate::session::Session;

/// What is open and shut.
pub(crate) struct Gate {
    /// False when everything is recorded from the start to the end of the process.
    gated: bool,
    /// True while records are wanted.
    open: AtomicBool,
    /// True once they never will be again.
    closed: AtomicBool,
    /// Ranges of the given name that are open.
    ranges: AtomicI64,
    /// When the gate was last open; 0 before it ever was.
    last_open: AtomicU64,
    /// Whether kinds are enabled in CUPTI. Held across its calls, and taken by no callback.
    enabled: Mutex<bool>,
}

/// True for records that say what devices and contexts there are: few, and only there when they are
/// made, so they are recorded whether the gate is open or not.
fn is_fact(kind: u32) -> bool {
    matches!(kind, kind::DEVICE | kind::CONTEXT)
}

/// Enables the kinds that `which` names; what could not be, in lines to note.
fn switch_on(session: &Session, which: impl Fn(u32) -> bool) -> Vec<String> {
    let mut failed = Vec::new();
    if let Some(cupti) = session.cupti() {
        for &kind in session.config.kinds.iter().filter(|kind| which(**kind)) {
            let code = cupti.enable(kind);
            if code != 0 {
                let why = cupti.explain(code);
                failed.push(format!("CUPTI refuses activity kind {kind}: {why}"));
            }
        }
    }
    failed
}

impl Gate {
    pub(crate) fn new(config: &Config) -> Self {
        let gated = config.from.is_some() || config.until.is_some() || config.range.is_some();
        Self {
            gated,
            open: AtomicBool::new(!gated),
            closed: AtomicBool::new(false),
            ranges: AtomicI64::new(0),
            last_open: AtomicU64::new(0),
            enabled: Mutex::new(false),
        }
    }

    /// True when ranges have to be kept back while the gate is shut.
    #[inline]
    pub(crate) fn is_gated(&self) -> bool {
        self.gated
    }

    /// True while records are wanted.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// True when the gate was open at or after `time`.
    pub(crate) fn was_open_since(&self, time: u64) -> bool {
        self.is_open() || self.last_open.load(Ordering::Relaxed) >= time
    }

    /// CUPTI works from now on.
    pub(crate) fn attached(&self, session: &Session) {
        let mut failed = switch_on(session, is_fact);
        if self.is_open() {
            failed.append(&mut self.enable(session));
        }
        for line in failed {
            session.spool.note(&line);
        }
    }

    /// Enables all kinds; what could not be, in lines to note.
    fn enable(&self, session: &Session) -> Vec<String> {
        let mut enabled = lock(&self.enabled);
        if *enabled || session.cupti().is_none() {
            return Vec::new();
        }
        *enabled = true;
        switch_on(session, |kind| !is_fact(kind))
    }

    fn disable(&self, session: &Session) {
        let Some(cupti) = session.cupti() else {
            return;
        };
        let mut enabled = lock(&self.enabled);
        if std::mem::take(&mut *enabled) {
            let kinds = session.config.kinds.iter();
            for &kind in kinds.filter(|kind| !is_fact(**kind)) {
                cupti.disable(kind);
            }
        }
    }

    /// Opens or shuts.
    fn set(&self, session: &Session, open: bool) {
        let now = clock::realtime();
        if self.open.swap(open, Ordering::AcqRel) == open {
            return;
        }
        let mut failed = Vec::new();
        if open {
            failed = self.enable(session);
        } else {
            self.last_open.store(now, Ordering::Relaxed);
            self.disable(session);
        }
        let state = u64::from(open).to_le_bytes();
        session
            .spool
            .frame(Tag::Capture, &[&now.to_le_bytes(), &state]);
        for line in failed {
            session.spool.note(&line);
        }
    }

    /// Opens or shuts as the time asks; how long until it will ask again.
    pub(crate) fn follow_time(&self, session: &Session) -> Option<Duration> {
        let config = session.config;
        if !self.gated || config.range.is_some() || self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let now = clock::realtime();
        let from = config.from.unwrap_or(0);
        let until = config.until.unwrap_or(u64::MAX);
        self.set(session, (from..until).contains(&now));
        let next = if now < from { from } else { until };
        let left = next.checked_sub(now).filter(|_| next != u64::MAX);
        left.map(|left| Duration::from_nanos(left.saturating_add(1_000)))
    }

    /// A range of the given name opens.
    pub(crate) fn range_opens(&self, session: &Session) {
        if self.ranges.fetch_add(1, Ordering::AcqRel) == 0 && !self.closed.load(Ordering::Relaxed) {
            self.set(session, true);
        }
    }

    /// A range of the given name closes.
    pub(crate) fn range_closes(&self, session: &Session) {
        if self.ranges.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.set(session, false);
        }
    }

    /// Shuts for good: the spool takes no more.
    pub(crate) fn close(&self, session: &Session, why: &str) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.set(session, false);
            session.spool.note(why);
        }
    }
}
