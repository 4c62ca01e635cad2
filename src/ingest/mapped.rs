//! Read-only mappings of files: the one room with `unsafe` in ingest.

use std::fs::File;
use std::io;

use memmap2::Mmap;
#[cfg(target_os = "linux")]
use memmap2::UncheckedAdvice;
#[cfg(target_os = "linux")]
use rayon::prelude::*;

/// How much one task takes out of a mapping: some milliseconds of work.
#[cfg(target_os = "linux")]
const TAKEN: usize = 16 << 20;

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

/// Unmapping a large file takes a tenth of the time of an attribution, on one thread, while others that unmap
/// anything wait. Taking its pages out of the mapping before is most of that, and any number of threads can do it.
#[cfg(target_os = "linux")]
impl Drop for Mapped {
    #[expect(
        unsafe_code,
        reason = "the type system cannot know that nobody reads on"
    )]
    fn drop(&mut self) {
        let map = &self.0;
        let starts = (0..map.len()).step_by(TAKEN);
        starts
            .collect::<Vec<_>>()
            .into_par_iter()
            .for_each(|start| {
                let len = TAKEN.min(map.len() - start);
                // SAFETY: nothing borrows the content any more, for this is dropped.
                let taken =
                    unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, len) };
                // Then unmapping does it.
                taken.ok();
            });
    }
}
