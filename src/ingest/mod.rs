//! Bytes to a [`Trace`].
//!
//! ```text
//! discover   paths to inputs
//! archive    an archive to its members                 (tar, zip)
//! source     an input to its bytes as stored           (mapped)
//! inflate    gzip and zstd to content
//! stream     content in blocks, while it is inflated
//! document   content to top-level keys and events      (metadata, log, note)
//! segment    the event array in parts, at once         (split)
//!   shape    events like those before                  (plain)
//!   decode   one chunk of any events                   (simd-json)
//!   text     one event, exactly and leniently          (escape, quirk)
//!   row      one event to its row                      (number)
//!   worker   what one part teaches for the next
//! assemble   parts to one table, as they come    (order)
//! check      absurd times
//! pairs      B and E to lengths
//! args       arguments that no column holds, when asked for
//! ```
//!
//! Nothing depends on how the work is cut: chunk and segment sizes, threads, compression and white
//! space never change a row or a finding.

use std::borrow::Cow;
use std::path::Path;

#[cfg(feature = "batch")]
pub(crate) mod archive;
mod args;
mod assemble;
mod check;
mod content;
mod decode;
mod discover;
mod document;
mod escape;
mod inflate;
mod key;
pub(crate) mod kind;
mod log;
mod mapped;
mod mend;
mod metadata;
mod note;
mod number;
mod order;
mod pairs;
mod plain;
mod quirk;
mod row;
mod segment;
mod shape;
mod source;
mod split;
mod stream;
mod text;
mod worker;

pub use discover::{Discovered, Input, Skipped, discover, is_trace_name};
pub use source::Source;

pub(crate) use args::{Args, arguments};
pub(crate) use content::{Columns, Content, Piece, Resume, Trouble};
pub(crate) use escape::{decode_into, quote_into};
pub(crate) use mend::mend;
pub(crate) use number::parse_micros;
pub(crate) use pairs::pairs;

use crate::error::Result;
use crate::model::Trace;
use document::Document;
use inflate::Compression;

/// How to read an input. No option changes what is read; `max_content` may refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestOptions {
    /// Map files into memory instead of reading them. Turn this off for files that another process
    /// may shorten meanwhile.
    pub mmap: bool,
    /// Which reader reads the events.
    pub reader: Reader,
    /// About how many bytes of events the fast reader takes at once. Small enough for the caches.
    pub chunk_bytes: usize,
    /// About how many bytes of events one task reads; less in small files, so that every thread
    /// has work.
    pub segment_bytes: usize,
    /// About how many bytes of compressed content are inflated at once and read by one task.
    pub block_bytes: usize,
    /// Most bytes of content that compressed input may inflate to; what has more is refused, so that
    /// a small file that is made to do harm cannot take all memory.
    pub max_content: u64,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            mmap: true,
            reader: Reader::Auto,
            chunk_bytes: 64 << 10,
            segment_bytes: 1 << 20,
            block_bytes: 8 << 20,
            max_content: u64::MAX,
        }
    }
}

/// A reader of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reader {
    /// By shape; what has none goes to simd-json, and what is not plain to the scalar reader.
    Auto,
    /// simd-json, and the scalar reader for what that refuses; for tests and for comparison.
    Simd,
    /// The scalar one only. Slow; for tests and for comparison.
    Text,
}

impl Trace {
    /// Reads the trace in the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// When the file cannot be read, is no trace, or is damaged. The error names the file.
    pub fn open(path: &Path, options: &IngestOptions) -> Result<Self> {
        let source = Source::open(path, options)?;
        Self::from_bytes(source.bytes(), options).map_err(|error| error.in_file(path))
    }

    /// Reads the trace in `bytes`, the stored content of a file, compressed or not.
    ///
    /// # Errors
    /// When `bytes` are no trace or damaged.
    pub fn from_bytes(bytes: &[u8], options: &IngestOptions) -> Result<Self> {
        let compression = Compression::of(bytes);
        let document = match compression {
            Some(compression) => stream::read(bytes, compression, options)?,
            None => document::read(bytes, options)?,
        };
        let mut trace = Self {
            bytes: bytes.len() as u64,
            compressed: compression.is_some(),
            ..finish(document)
        };
        note::read_events(&mut trace, bytes)?;
        note::count(&trace.metadata.rewriting, &mut trace.health);
        Ok(trace)
    }
}

/// The content of the stored `bytes` of any file, inflated when they are compressed.
///
/// # Errors
/// When compressed data is damaged or inflates to more than 4 GiB.
pub(crate) fn plain_content(bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
    let Some(compression) = Compression::of(bytes) else {
        return Ok(Cow::Borrowed(bytes));
    };
    let inflater = inflate::Inflater::new(bytes, compression, u64::MAX);
    inflate::whole(inflater, inflate::MAX_WHOLE).map(Cow::Owned)
}

/// How much content a compressed file that starts with `head` and ends with `tail` says it has, 0 when it
/// does not say; `None` when it is not compressed.
#[cfg(feature = "batch")]
pub(crate) fn claimed_content(head: &[u8], tail: &[u8]) -> Option<u64> {
    Compression::of(head).map(|compression| compression.claim(head, tail).unwrap_or(0))
}

/// Checks what no part of a document can check alone.
fn finish(document: Document) -> Trace {
    let mut rows = document.rows;
    let mut health = document.health;
    health.merge(&rows.health);
    let (events, strings) = (&mut rows.events, &rows.strings);
    let near = check::exclude_absurd(events, strings, rows.extent, &mut health);
    if rows.extent.pairs > 0 {
        pairs::pair(events, strings, near, &mut health);
        check::exclude_long_pairs(events, strings, &mut health);
    }
    Trace {
        events: rows.events,
        strings: rows.strings,
        tracks: rows.tracks,
        metadata: document.metadata,
        health,
        ..Trace::default()
    }
}

#[cfg(test)]
mod tests;
