//! What a trace says about itself outside its events.

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
}
