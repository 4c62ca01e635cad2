//! Traces rewritten as traces: repaired, cut to a part, freed of secrets.
//!
//! ```text
//! document   the content piece by piece: members, events, what is lost     (json)
//! repair     the same events as valid JSON                                 (clip)
//! slice      some of the events, with their links                          (select, link)
//! redact     the same events without secrets, names and places
//! annotate   the same events from time zero on, with rows for phases, recompute and idle time
//! ```
//! The content is read twice, first to find out what is in it and then to copy it. So nothing is
//! written when something cannot be read, and memory beside the stored bytes is bounded by the longest
//! event or top-level value, however long the file is. (To cut and to clip, columns of all events are
//! needed, some 130 bytes an event: half of the content and more where events are short. They are given
//! back before anything is written.) What is no JSON but has one sensible reading is written as JSON
//! by all three, as the readers of [`ingest`](crate::ingest) read it; every other byte stays.

mod annotate;
mod document;
mod json;
mod link;
mod redact;
mod repair;
mod select;
mod slice;

pub use annotate::{AnnotateInput, Annotated, annotate};
pub use document::Lost;
pub use redact::{Pseudonyms, RedactOptions, Redacted, redact};
pub use repair::{RepairOptions, Repaired, repair, salvage};
pub use slice::{SliceOptions, Sliced, TimeRange, slice};

/// Told how far the work is: how many bytes of content were done, and of how many, all passes
/// together.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

/// The path that errors about writing name, for the library does not know where it writes to.
pub(crate) const OUTPUT: &str = "output";

/// Name and version, as they are written into traces.
const TOOL: &str = concat!("tracekit ", env!("CARGO_PKG_VERSION"));
