//! The spool of this process: one file, or with a ring the newest of several.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tracekit_spool::{Tag, head, padding};

use crate::buffer::lock;
use crate::file::FrameFile;
use crate::ring::{Counts, Ring};

/// Bytes behind the limit that only notes and counts may use.
const RESERVE: u64 = 64 << 10;

/// A spool with a limit is written in pieces of about this share of it, so that it is used up.
const PIECES: u64 = 64;

/// How writing a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is in the file, or on the way there.
    Yes,
    /// The spool is as long as it may get.
    Full,
    /// The file cannot be written any more.
    Failed,
}

/// A spool that is being written.
pub(crate) struct Spool {
    inner: Mutex<Inner>,
    most: Option<u64>,
    failed: AtomicBool,
}

struct Inner {
    file: FrameFile,
    ring: Option<Ring>,
    /// Why the file cannot be written, until someone asks.
    error: Option<io::Error>,
}

impl Spool {
    /// Starts the spool `stem.tkspool`, which gets `most` bytes of records at most; with `ring` it keeps
    /// the newest, else the first.
    pub(crate) fn create(stem: &Path, most: Option<u64>, ring: bool) -> io::Result<Self> {
        let ring = most
            .filter(|_| ring)
            .map(|most| Ring::new(stem.to_owned(), most));
        let path = match &ring {
            Some(ring) => ring.path(),
            None => stem.with_added_extension("tkspool"),
        };
        Ok(Self {
            inner: Mutex::new(Inner {
                file: FrameFile::create(&path)?,
                ring,
                error: None,
            }),
            most,
            failed: AtomicBool::new(false),
        })
    }

    /// How long a frame of records should be at most.
    pub(crate) fn piece(&self) -> usize {
        let share = self
            .most
            .map(|most| (most / PIECES).clamp(1 << 12, 1 << 20));
        share.map_or(usize::MAX, |share| {
            usize::try_from(share).unwrap_or(usize::MAX)
        })
    }

    /// With a ring, makes room for `bytes` of records by removing the oldest; true when a new file began. It
    /// has the facts about the process; devices, names and open ranges have to be told again.
    pub(crate) fn make_room(&self, bytes: usize) -> bool {
        let mut inner = lock(&self.inner);
        let Inner { file, ring, error } = &mut *inner;
        let Some(ring) = ring else {
            return false;
        };
        if self.failed.load(Ordering::Relaxed) || !ring.is_full(file.bytes(), bytes as u64) {
            return false;
        }
        match ring.turn(file) {
            Ok(next) => {
                *file = next;
                true
            }
            Err(why) => {
                self.failed.store(true, Ordering::Relaxed);
                *error = Some(why);
                false
            }
        }
    }

    /// Removes the oldest files of a ring, once the new one says that they are gone.
    pub(crate) fn remove_oldest(&self) {
        self.flush();
        if let Some(ring) = &mut lock(&self.inner).ring
            && !self.failed.load(Ordering::Relaxed)
        {
            ring.remove_oldest();
        }
    }

    /// What was removed so far, and what will be next.
    pub(crate) fn lost(&self) -> Option<Counts> {
        lock(&self.inner).ring.as_ref().map(Ring::lost)
    }

    /// Counts what was written, for when it is removed.
    pub(crate) fn count(&self, counts: Counts) {
        if let Some(ring) = &mut lock(&self.inner).ring {
            ring.count(counts);
        }
    }

    /// Adds a frame whose payload is `parts`, one after the other.
    pub(crate) fn frame(&self, tag: Tag, parts: &[&[u8]]) -> Written {
        let payload: usize = parts.iter().map(|part| part.len()).sum();
        let Ok(head) = head(tag, parts) else {
            return Written::Full;
        };
        let padding = padding(payload);
        let length = (head.len() + payload + padding.len()) as u64;
        let bulk = matches!(tag, Tag::Buffer | Tag::Nvtx | Tag::Text | Tag::Clock);
        // There is room for a note where there is none for records.
        if bulk && self.failed.load(Ordering::Relaxed) {
            return Written::Failed;
        }
        let mut whole = Vec::with_capacity(parts.len() + 2);
        whole.push(&head[..]);
        whole.extend_from_slice(parts);
        whole.push(padding);
        let mut inner = lock(&self.inner);
        let Inner { file, ring, error } = &mut *inner;
        if let Some(ring) = ring {
            ring.keep(tag, &whole);
        } else {
            let reserve = if bulk { 0 } else { RESERVE };
            let most = self.most.map(|most| most.saturating_add(reserve));
            if most.is_some_and(|most| file.bytes().saturating_add(length) > most) {
                return Written::Full;
            }
        }
        match file.add(&whole) {
            Ok(()) => Written::Yes,
            Err(why) => {
                self.failed.store(true, Ordering::Relaxed);
                error.get_or_insert(why);
                Written::Failed
            }
        }
    }

    /// Hands everything to the system: from then on it survives the process.
    pub(crate) fn flush(&self) -> Written {
        let mut inner = lock(&self.inner);
        if let Err(why) = inner.file.flush() {
            self.failed.store(true, Ordering::Relaxed);
            inner.error.get_or_insert(why);
        }
        if self.failed.load(Ordering::Relaxed) {
            Written::Failed
        } else {
            Written::Yes
        }
    }

    /// Why the spool cannot be written.
    pub(crate) fn why(&self) -> String {
        let inner = lock(&self.inner);
        let why = inner.error.as_ref().map(ToString::to_string);
        why.unwrap_or_default().to_lowercase()
    }

    /// Adds a line that the user should see.
    pub(crate) fn note(&self, line: &str) {
        self.frame(Tag::Note, &[line.as_bytes()]);
        if std::env::var_os("TRACEKIT_INJECT_LOG").is_some() {
            let line = format!("tracekit-inject[{}]: {line}\n", std::process::id());
            // It was asked for; where it cannot be written it is in the spool all the same.
            let _ = io::stderr().lock().write_all(line.as_bytes());
        }
    }
}
