//! The spool file of this process.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tracekit_spool::{MAGIC, Tag, head, padding};

use crate::buffer::lock;

/// Bytes behind the limit that only notes and counts may use.
const RESERVE: u64 = 64 << 10;

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
    file: Mutex<BufWriter<File>>,
    bytes: AtomicU64,
    most: u64,
    failed: AtomicBool,
}

impl Spool {
    /// Starts the new file `path`, which gets `most` bytes of records at most.
    pub(crate) fn create(path: &Path, most: Option<u64>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(path)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&MAGIC)?;
        Ok(Self {
            file: Mutex::new(file),
            bytes: AtomicU64::new(MAGIC.len() as u64),
            most: most.unwrap_or(u64::MAX),
            failed: AtomicBool::new(false),
        })
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds a frame whose payload is `parts`, one after the other.
    pub(crate) fn frame(&self, tag: Tag, parts: &[&[u8]]) -> Written {
        if self.failed.load(Ordering::Relaxed) {
            return Written::Failed;
        }
        let payload: usize = parts.iter().map(|part| part.len()).sum();
        let Ok(head) = head(tag, parts) else {
            return Written::Full;
        };
        let padding = padding(payload);
        let length = (head.len() + payload + padding.len()) as u64;
        let bulk = matches!(tag, Tag::Buffer | Tag::Nvtx | Tag::Text | Tag::Clock);
        let most = self.most.saturating_add(if bulk { 0 } else { RESERVE });
        let mut file = lock(&self.file);
        if self.bytes().saturating_add(length) > most {
            return Written::Full;
        }
        let mut write = || {
            file.write_all(&head)?;
            for part in parts {
                file.write_all(part)?;
            }
            file.write_all(padding)
        };
        if write().is_err() {
            self.failed.store(true, Ordering::Relaxed);
            return Written::Failed;
        }
        self.bytes.fetch_add(length, Ordering::Relaxed);
        Written::Yes
    }

    /// Hands everything to the system: from then on it survives the process.
    pub(crate) fn flush(&self) -> Written {
        if self.failed.load(Ordering::Relaxed) || lock(&self.file).flush().is_err() {
            self.failed.store(true, Ordering::Relaxed);
            return Written::Failed;
        }
        Written::Yes
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
