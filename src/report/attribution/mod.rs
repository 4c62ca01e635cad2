//! An attribution as a report for people, and as rows for programs.
//!
//! One run: a verdict, the table by phase (or step, device, rank), the device timeline, counters where
//! the trace has them, the facts beside them, top kernels, coverage, health. Several runs: how they
//! compare, then each in short.

pub(super) mod comparison;
mod counters;
pub(super) mod coverage;
pub(super) mod facts;
pub(super) mod health;
pub(super) mod inputs;
pub(super) mod kernels;
pub(super) mod label;
pub(super) mod levels;
mod page;
pub(super) mod phases;
pub(super) mod recompute;
mod rows;
#[cfg(test)]
mod sample;
pub(super) mod timeline;
pub(super) mod verdict;

pub use page::{AttributionView, By, attribution_document};
pub use rows::attribution_rows;
