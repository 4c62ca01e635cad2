//! The findings about traces as a frame.

use super::frame::Frame;
use crate::attribute::Attribution;
use crate::units::Ns;

/// One row a finding, in the order of output.
pub fn health_frame(attribution: &Attribution) -> Frame {
    let rows = &attribution.health;
    let input = |number: Option<usize>| Some(attribution.inputs.get(number?)?.path.as_str());
    Frame::new(
        "health",
        "What is wrong or unusual; tracekit doctor --explain CODE tells more.",
    )
    .text("code", rows, |entry| Some(entry.code))
    .text("severity", rows, |entry| Some(entry.severity.as_str()))
    .count("count", rows, |entry| Some(entry.count))
    .text("first_input", rows, |entry| input(entry.first_input))
    .id("first_offset", rows, |entry| {
        i64::try_from(entry.first_offset?).ok()
    })
    .text("first_name", rows, |entry| entry.first_name.clone())
    .ns("time_ns", rows, |entry| entry.time_ns.map(Ns))
    .ns("worst_ns", rows, |entry| entry.worst_ns.map(Ns))
    .ns("raw_ns", rows, |entry| entry.raw_ns.map(Ns))
    .ns("repaired_ns", rows, |entry| entry.repaired_ns.map(Ns))
}
