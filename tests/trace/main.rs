//! Tests that link the library: traces in, attributions out.
//!
//! Tests over real traces need a corpus: set `TRACEKIT_CORPUS` to its folder.

#[path = "../support/mod.rs"]
mod support;

mod differential;
mod golden;
mod hostile;
mod laws;
mod phases;
mod recompute;
mod samples;
mod timeline;
