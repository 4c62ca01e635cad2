//! `tracekit collect` from the command to the trace, with a driver, CUPTI, NVTX and NVML that are not
//! there for real.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_systems;
mod evidence;
mod files;
mod fuzz;
mod layouts;
mod members;
mod nvtx;
mod options;
mod processes;
mod ring;
mod run;
mod signals;
mod whole;
