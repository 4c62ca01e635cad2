//! Tests that link the library: traces in, attributions out.
//!
//! Tests over real traces need a corpus: set `TRACEKIT_CORPUS` to its folder.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod agreement;
mod annotate;
mod compare;
mod differential;
mod doctor;
#[cfg(feature = "frames")]
mod frames;
mod fuzz;
mod golden;
mod hostile;
mod infer;
mod inspect_communication;
mod inspect_copies;
mod inspect_critical_path;
mod inspect_idle;
mod inspect_kernels;
mod inspect_launches;
mod inspect_memory;
mod inspect_operators;
mod inspect_ranks;
mod inspect_roofline;
mod inspect_steps;
mod laws;
mod phases;
mod pictures;
mod recompute;
mod redact;
mod replicate;
mod report;
mod rewrite;
mod salvage;
mod samples;
mod timeline;
mod wild;
