//! Making a trace of any CUDA program: it runs with a library inside that records device activity
//! and NVTX ranges, while NVML counters are sampled beside it.
//!
//! ```text
//! command ─ libtracekit_inject.so ─→ spool of each process ┐
//! NVML ─ sampler ─→ samples ───────────────────────────────┴ convert ─→ .pt.trace.json.gz
//! ```
//!
//! Whatever of this is missing or fails, the command runs as it would without, and a note says what is
//! not recorded.

mod check;
mod convert;
mod decode;
mod demangle;
mod device;
mod gpm;
mod launch;
mod library;
mod name;
mod nvml;
mod options;
mod range;
mod recording;
mod run;
mod sample_file;
mod spool_files;
mod write;

pub use check::{Finding, check};
pub use convert::convert_folder;
pub use launch::Ended;
pub use nvml::free_memory;
pub use options::{ActivityKind, CollectOptions, DEFAULT_INTERVAL};
pub use run::{Collected, TraceFile, collect, sample_only};

#[doc(hidden)]
pub use convert::convert_bytes;
