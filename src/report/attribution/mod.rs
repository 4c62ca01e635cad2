//! An attribution as a report for people, and as rows for programs.
//!
//! One run: a verdict, the table by phase (or step, device, rank), the device timeline, the facts
//! beside them, top kernels, coverage, health. Several runs: how they compare, then each in short.

mod comparison;
mod coverage;
mod facts;
mod health;
mod inputs;
mod kernels;
mod label;
mod levels;
mod page;
mod phases;
mod recompute;
mod rows;
#[cfg(test)]
mod sample;
mod timeline;
mod verdict;

pub use page::{AttributionView, By, attribution_document};
pub use rows::attribution_rows;
