//! Who spent the time: device work and host operators by training phase.
//!
//! One file goes through [`names`](self) (what each distinct name says), host threads (operators
//! nested, annotations, launches), processes (which phase is annotated or follows from the order
//! of events), recompute evidence, steps, links from device work to launches, and device tables
//! and timelines. Files are then put together to ranks, runs and totals.
//!
//! Laws: the buckets of every table add up to its total exactly; so do the classes and phases of
//! every timeline with its idle time. No answer depends on file order, threads or chunks.

mod anchor;
mod class;
mod collective;
mod content;
mod counters;
mod device;
mod dissection;
mod evidence;
mod file;
mod folder;
mod host;
mod interval;
mod link;
mod names;
mod options;
mod orphan;
mod phase;
mod precision;
mod process;
mod recompute;
mod result;
mod run;
mod step;
mod summary;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod window;
mod work;

pub use class::DeviceClass;
pub use counters::{CounterRange, CounterSums, DeviceCounters};
pub use evidence::EvidenceKind;
pub(crate) use file::FileAttribution;
pub use file::{HostOperation, host_operations};
pub(crate) use folder::{
    File as AttributedFile, attribute_and, attributed, attributed_bytes, check_ranks, hash,
    nothing_readable, put_in_order, read_each,
};
pub use folder::{ProgressEvent, Request, Salvage, Salvaged, attribute_paths};
#[cfg(feature = "batch")]
pub(crate) use folder::{attribution_of, options_in_force};
pub use options::{AttributeOptions, RecomputeEvidence, StepRange};
pub use phase::Phase;
pub use result::{
    Attribution, Coverage, DeviceResult, DeviceStep, EvidenceShare, HostPhase, HostResult,
    HostStep, HostStepPhase, Imbalance, InputRecord, LinkedBy, LostContent, RankResult, Recompute,
    RunResult, SCHEMA_VERSION, SkippedInput, StepTime, Tool, TopKernel, WeakRecompute,
};
#[cfg(feature = "batch")]
pub(crate) use run::{is_rank_folder, rank_in_name, rank_of_path, window_of_path};
pub use table::{Bucket, Cell, OtherKind, Table, Timeline};

pub(crate) use anchor::{Anchors, NOWHERE};
pub(crate) use device::{Activity, Stretch};
pub(crate) use dissection::{Dissection, dissect};
pub(crate) use host::{HostThread, Moment, NONE, Op, span_of};
pub(crate) use interval::{Piece, innermost, overlap, piece_at, union};
pub(crate) use link::Launch;
#[cfg(test)]
pub(crate) use testing::json as trace_in_lines;
pub(crate) use window::DeviceWindows;
pub(crate) use work::{Work, clipped};
