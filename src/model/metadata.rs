//! What a trace says about itself outside its events.

use std::collections::BTreeMap;

use crate::units::Ns;

/// `distributedInfo`: the place of the file in a distributed job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DistributedInfo {
    /// Rank of the process.
    pub rank: Option<i64>,
    /// Number of ranks in the job.
    pub world_size: Option<i64>,
    /// Communication backend, such as `nccl`.
    pub backend: Option<String>,
}

/// One element of `deviceProperties`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Device index.
    pub id: Option<i64>,
    /// Marketing name, such as `NVIDIA H100 80GB HBM3`.
    pub name: Option<String>,
}

/// Messages of one kind in the profiler's log arrays (`INFO`, `WARNING`, `ERROR`, `STAGE`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Messages {
    /// How many there are.
    pub count: u64,
    /// The first of them, without date and place in the source.
    pub first: Option<String>,
}

/// What tracekit noted in a trace that it wrote (`tracekit_repair`, `tracekit_slice`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewriting {
    /// What `repair` had to leave out; `None` when the trace was whole.
    pub lost: Option<NotedLoss>,
    /// What `repair` changed without losing anything, and how often, by the name in its note.
    pub changes: BTreeMap<&'static str, u64>,
    /// How much time was clipped from events that impossibly overlapped.
    pub clipped_ns: Ns,
    /// How many events `slice` left out; `None` when the trace is no slice.
    pub left_out: Option<u64>,
}

/// What was left out when a damaged file was repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotedLoss {
    /// Ranges of bytes of the content before the repair, in order; the first ones.
    pub ranges: Vec<(u64, u64)>,
    /// How many bytes there are in all ranges.
    pub bytes: u64,
    /// About how many events that was; `None` when the content ended inside of the event array.
    pub events_estimated: Option<u64>,
    /// How compressed data was damaged, or that the end of the file was missing.
    pub damage: Option<String>,
}

/// The top-level keys that later stages use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `schemaVersion`.
    pub schema_version: Option<i64>,
    /// `baseTimeNanoseconds`: what to add to a timestamp to get nanoseconds since the epoch.
    pub base_time_ns: Option<i64>,
    /// `distributedInfo`.
    pub distributed: DistributedInfo,
    /// `deviceProperties` (first releases: `computeProperties`).
    pub devices: Vec<DeviceProperties>,
    /// `traceName`.
    pub trace_name: Option<String>,
    /// Device records the profiler's log arrays (`INFO`, `WARNING`, `ERROR`) report as out of range.
    pub out_of_range_records: u64,
    /// Log messages that say that device records were not collected to the end, or dropped.
    pub profiler_stops: Messages,
    /// Log messages that say that CUPTI, which collects them, could not be used.
    pub profiler_errors: Messages,
    /// What tracekit noted when it wrote the trace.
    pub rewriting: Rewriting,
}
