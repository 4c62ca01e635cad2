//! What an attribution says: the JSON schema `tracekit.attribution/v1`, as types.
//!
//! Times are integer nanoseconds. A value that was not measured is `None`, never zero.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counters::DeviceCounters;
use super::phase::Phase;
use super::table::{Table, Timeline};
use crate::health::HealthEntry;
use crate::units::Ns;

/// Name and version of the JSON schema.
pub const SCHEMA_VERSION: &str = "tracekit.attribution/v1";

/// The answer over all inputs.
#[derive(Debug, Clone, Serialize)]
pub struct Attribution {
    /// [`SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// Which program made it.
    pub tool: Tool,
    /// The options in force.
    pub options: BTreeMap<&'static str, serde_json::Value>,
    /// The files read.
    pub inputs: Vec<InputRecord>,
    /// Files of a folder that were not read.
    pub skipped: Vec<SkippedInput>,
    /// Device time over all runs, ranks and devices.
    #[serde(serialize_with = "super::table::measured")]
    pub totals: Table,
    /// One entry a run (strategy), in order of name, `baseline` first.
    pub runs: Vec<RunResult>,
    /// One entry a file, in order of run, rank and window.
    pub ranks: Vec<RankResult>,
    /// Recompute over everything.
    pub recompute: Recompute,
    /// How well device work could be placed, over everything.
    pub coverage: Coverage,
    /// What is wrong or unusual.
    pub health: Vec<HealthEntry>,
}

/// Which program made a result.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Tool {
    /// `tracekit`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl Tool {
    /// This program.
    pub(crate) fn this() -> Self {
        Self {
            name: "tracekit",
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// One file that was read.
#[derive(Debug, Clone, Serialize)]
pub struct InputRecord {
    /// Path as given or found.
    pub path: String,
    /// SHA-256 of the stored bytes; `None` when not asked for.
    pub sha256: Option<String>,
    /// Size as stored.
    pub bytes: u64,
    /// Elements of the event array, whatever they are.
    pub events: u64,
    /// Rank, from `distributedInfo`, else from the file or folder name.
    pub rank: Option<i64>,
    /// `distributedInfo.world_size`.
    pub world_size: Option<i64>,
    /// Names in `deviceProperties`, in order, without repetition.
    pub device_names: Vec<String>,
    /// True when the file is compressed.
    pub compressed: bool,
    /// True when parts of a damaged file were left out, now or by a repair that noted it.
    pub partial: bool,
    /// What was left out of a damaged file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostContent>,
}

/// What could not be read of a damaged file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostContent {
    /// Ranges of bytes of the content (before the repair, when that left them out), from an offset to
    /// the one behind the last; the first ones.
    pub ranges: Vec<(u64, u64)>,
    /// How many bytes there are in all ranges.
    pub bytes: u64,
    /// About how many events that is, by the mean length of those that were read; `None` when the content
    /// ends inside of the event array, for nobody knows what came behind.
    pub events_estimated: Option<u64>,
    /// Where and how compressed data is damaged, or that the end of the document is missing; what was
    /// behind is not counted here.
    pub damage: Option<String>,
}

/// A file of a folder that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedInput {
    /// Path as found.
    pub path: String,
    /// Why, in one line.
    pub reason: String,
    /// True when it looked like a trace and could not be read.
    pub failed: bool,
}

/// One run: the files of one strategy folder.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// Name of the strategy folder, else the path given.
    pub name: String,
    /// Indices into [`Attribution::ranks`].
    pub ranks: Vec<usize>,
    /// Device time over its ranks.
    #[serde(serialize_with = "super::table::measured")]
    pub totals: Table,
    /// Self time of host operators by phase, over its ranks.
    pub host_phases: BTreeMap<Phase, HostPhase>,
    /// Recompute over its ranks.
    pub recompute: Recompute,
    /// Coverage over its ranks.
    pub coverage: Coverage,
    /// Step time over its ranks; `None` without whole steps.
    pub step_time: Option<StepTime>,
    /// How far its ranks are apart; `None` with fewer than two ranks with device work.
    pub imbalance: Option<Imbalance>,
    /// The kernels with the most device time in each bucket that has any.
    pub top_kernels: BTreeMap<&'static str, Vec<TopKernel>>,
}

/// Median and spread of step times, over steps that are not partial (all, when all are).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StepTime {
    /// How many steps.
    pub steps: u64,
    /// Median; of an even number of steps, the mean of the two in the middle, rounded down.
    pub median_ns: Ns,
    /// Shortest.
    pub min_ns: Ns,
    /// Longest.
    pub max_ns: Ns,
    /// True when partial steps had to be taken.
    pub partial: bool,
    /// True when step boundaries are inferred from optimizer ranges.
    pub inferred: bool,
}

/// How far the ranks of a run are apart, by device busy time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Imbalance {
    /// Ranks with device work. The windows of one rank are one rank; their busy times are added.
    pub ranks: u64,
    /// Busy time of the least busy rank.
    pub min_busy_ns: Ns,
    /// Index of its first file into [`Attribution::ranks`].
    pub min_rank: usize,
    /// Busy time of the busiest rank.
    pub max_busy_ns: Ns,
    /// Index of its first file into [`Attribution::ranks`].
    pub max_rank: usize,
    /// `(max - min) / max`.
    pub spread: f64,
}

/// One kernel name with its device time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopKernel {
    /// Kernel name.
    pub name: String,
    /// Sum of durations.
    pub sum_ns: Ns,
    /// Number of events.
    pub events: u64,
}

/// One file of one rank.
#[derive(Debug, Clone, Serialize)]
pub struct RankResult {
    /// Rank, when known.
    pub rank: Option<i64>,
    /// Index into [`Attribution::runs`].
    pub run: usize,
    /// Index into [`Attribution::inputs`].
    pub input: usize,
    /// Which profiler window of this rank, from 0.
    pub window: usize,
    /// Device time over its devices.
    #[serde(serialize_with = "super::table::measured")]
    pub totals: Table,
    /// One entry a device with work, in order of index.
    pub devices: Vec<DeviceResult>,
    /// Host time.
    pub host: HostResult,
    /// Recompute in this file.
    pub recompute: Recompute,
    /// Coverage of this file.
    pub coverage: Coverage,
}

/// One device of one file.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceResult {
    /// Device index.
    pub device: i64,
    /// Name in `deviceProperties`.
    pub name: Option<String>,
    /// Device time.
    pub totals: Table,
    /// What it did from its first start to its last end.
    pub timeline: Timeline,
    /// One entry a step, in order of time.
    pub steps: Vec<DeviceStep>,
    /// What its counters (NVML) say by phase; `None` when the file has none.
    pub counters: Option<DeviceCounters>,
}

/// One step of one device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceStep {
    /// `ProfilerStep#7`, or `step#2` when inferred.
    pub name: String,
    /// True when the capture cuts the step.
    pub partial: bool,
    /// True when the boundaries are inferred.
    pub inferred: bool,
    /// Work launched in the step.
    pub totals: Table,
    /// What the device did from the step's start to the end of its work.
    pub timeline: Timeline,
}

/// Host time of one file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HostResult {
    /// Time by phase.
    pub phases: BTreeMap<Phase, HostPhase>,
    /// One entry a step, in order of time.
    pub steps: Vec<HostStep>,
}

/// Host time of one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostPhase {
    /// Union of the annotation spans on their thread, innermost phase first, added over threads;
    /// `None` when no annotation names the phase.
    pub wall_ns: Option<Ns>,
    /// Self time of host operators whose start is in the phase.
    pub self_ns: Ns,
}

/// Host time of one step.
#[derive(Debug, Clone, Serialize)]
pub struct HostStep {
    /// As in [`DeviceStep::name`].
    pub name: String,
    /// Length of the step.
    pub wall_ns: Ns,
    /// True when the capture cuts the step.
    pub partial: bool,
    /// Annotated time by phase on the thread of the step; absent phases have no annotation there.
    pub phases: BTreeMap<Phase, HostStepPhase>,
    /// Step time under no phase annotation.
    pub unattributed_ns: Ns,
}

/// Annotated time of one phase in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostStepPhase {
    /// Union of the annotation spans, innermost phase first.
    pub wall_ns: Ns,
}

/// What is known about recomputed work (activation checkpointing).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recompute {
    /// `annotation`, `stack`, `sequence`, `mixed` or `none`.
    pub evidence: &'static str,
    /// Number of recompute regions.
    pub regions: u64,
    /// Host operators inside them, nested ones included.
    pub ops: u64,
    /// Sum of durations of device work launched there.
    pub device_sum_ns: Ns,
    /// Self time of host operators inside them.
    pub host_self_ns: Ns,
    /// `device_sum_ns` over the device time of forward.
    pub share_of_forward: Option<f64>,
    /// `yes`, `partly` or `no`: whether recompute would be seen.
    pub observable: &'static str,
    /// Which kind of evidence decided how much.
    pub by_evidence: BTreeMap<&'static str, EvidenceShare>,
    /// Device time on which two kinds of evidence disagree.
    pub disagreement_ns: Ns,
    /// Grad-enabled work in backward that no forward work confirms: not counted as recompute.
    pub weak: WeakRecompute,
}

impl Default for Recompute {
    fn default() -> Self {
        Self {
            evidence: "none",
            regions: 0,
            ops: 0,
            device_sum_ns: Ns::ZERO,
            host_self_ns: Ns::ZERO,
            share_of_forward: None,
            observable: "yes",
            by_evidence: BTreeMap::new(),
            disagreement_ns: Ns::ZERO,
            weak: WeakRecompute::default(),
        }
    }
}

impl Recompute {
    /// The one kind of evidence that decided something, `mixed` or `none`.
    pub(crate) fn kind_of_evidence(&self) -> &'static str {
        let mut kinds = self.by_evidence.keys().copied();
        match (kinds.next(), kinds.next()) {
            (None, _) => "none",
            (Some(only), None) => only,
            _ => "mixed",
        }
    }
}

/// What one kind of evidence decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EvidenceShare {
    /// Number of regions.
    pub regions: u64,
    /// Host operators inside them.
    pub ops: u64,
    /// Device time launched there.
    pub device_sum_ns: Ns,
}

/// Grad-enabled work in backward that is not confirmed as recompute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WeakRecompute {
    /// Number of regions.
    pub regions: u64,
    /// Host operators inside them.
    pub ops: u64,
    /// Device time launched there (counted in its phase).
    pub device_sum_ns: Ns,
    /// Self time of host operators inside them.
    pub host_self_ns: Ns,
}

/// How well device work could be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Device events that count.
    pub device_events: u64,
    /// How they were linked to a launch.
    pub linked_by: LinkedBy,
    /// Launched before profiling started.
    pub pre_window: u64,
    /// Launch not in the file.
    pub unlinked: u64,
    /// `annotated`, `inferred`, `mixed` or `none`.
    pub phases: &'static str,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            device_events: 0,
            linked_by: LinkedBy::default(),
            pre_window: 0,
            unlinked: 0,
            phases: "none",
        }
    }
}

/// Numbers of device events by kind of link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkedBy {
    /// By equal `correlation`.
    pub correlation: u64,
    /// By a launch flow.
    pub flow: u64,
    /// By equal `External id`.
    pub external_id: u64,
}
