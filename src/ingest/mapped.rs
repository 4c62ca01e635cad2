//! Read-only mappings of files: the one room with `unsafe` in ingest.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// A file, mapped read-only.
#[derive(Debug)]
pub(super) struct Mapped(Mmap);

impl Mapped {
    /// Maps `file`; `None` for what cannot be mapped to any use: pipes, devices, empty files.
    #[expect(
        unsafe_code,
        reason = "the type system cannot know that nobody changes the file"
    )]
    pub(super) fn new(file: &File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(None);
        }
        // SAFETY: the mapping is private to this process and never written. A file that another
        // process rewrites or shortens meanwhile may give mixed content or end the process with
        // SIGBUS; traces are written once (Kineto renames them into place), and
        // `IngestOptions::mmap` turns mapping off where that cannot be relied on. No reader keeps
        // a `str` into the mapping: text is checked and copied.
        match unsafe { Mmap::map(file) } {
            Ok(map) => Ok(Some(Self(map))),
            // Some file systems cannot map; reading still works there.
            Err(_) => Ok(None),
        }
    }

    /// The content.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
