//! What a diagnosis says: the JSON schema `tracekit.doctor/v1`, as types.
//!
//! Times are integer nanoseconds. A value that was not measured is `None`, never zero.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::attribute::Tool;
use crate::health::{HealthCode, Severity};
use crate::units::Ns;

/// Name and version of the JSON schema.
pub const SCHEMA_VERSION: &str = "tracekit.doctor/v1";

/// The diagnosis of all inputs.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// [`SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// Which program made it.
    pub tool: Tool,
    /// The worst verdict on any file.
    pub verdict: Judgement,
    /// One entry a file, in order of run, rank and window; damaged files come last.
    pub files: Vec<FileDiagnosis>,
    /// One entry a run: what its files say together.
    pub runs: Vec<RunDiagnosis>,
    /// Files of a folder that are no traces or cannot be opened.
    pub skipped: Vec<SkippedFile>,
}

/// The diagnosis of one file.
#[derive(Debug, Clone, Serialize)]
pub struct FileDiagnosis {
    /// Path as given or found.
    pub path: String,
    /// Index into [`Diagnosis::runs`]; `None` for a file that cannot be read.
    pub run: Option<usize>,
    /// Rank, from `distributedInfo`, else from the file or folder name.
    pub rank: Option<i64>,
    /// `distributedInfo.world_size`.
    pub world_size: Option<i64>,
    /// What the file can be used for.
    pub verdict: Verdict,
    /// What is in the file; `None` for a file that cannot be read.
    pub facts: Option<Facts>,
    /// What is wrong or unusual, the gravest first.
    pub findings: Vec<Finding>,
}

/// What the files of one run say together.
#[derive(Debug, Clone, Serialize)]
pub struct RunDiagnosis {
    /// Name of the folder, else the path given.
    pub name: String,
    /// Indices into [`Diagnosis::files`].
    pub files: Vec<usize>,
    /// What is wrong or unusual about the run as a whole.
    pub findings: Vec<Finding>,
}

/// A file of a folder that was not diagnosed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedFile {
    /// Path as found.
    pub path: String,
    /// Why, in one line.
    pub reason: String,
    /// What it is instead of a trace, when that was looked at: `execution_trace`, `speedscope`, ….
    pub kind: Option<&'static str>,
    /// True when it should have been read and could not be.
    pub failed: bool,
}

/// What a file is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// In one word.
    pub judgement: Judgement,
    /// What its numbers must not be used for.
    pub not_usable_for: Vec<Use>,
    /// What its numbers can be used for when the findings are kept in mind.
    pub care_for: Vec<Use>,
    /// Codes of the findings that decided, the gravest first.
    pub because: Vec<&'static str>,
}

/// A verdict in one word; later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Nothing that was found touches the numbers.
    Trustworthy,
    /// The numbers can be used when the findings are kept in mind.
    UsableWithCare,
    /// Some or all numbers must not be used.
    NotUsable,
}

/// Something that a trace is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// Sums and timelines of device work, and idle time.
    DeviceTime,
    /// Times of host operators and annotations.
    HostTime,
    /// Time by training phase.
    Phases,
    /// Time of recomputed work.
    Recompute,
    /// Times of steps.
    StepTimes,
    /// How long work waits between its launch and its start, and why a device idles.
    LaunchDelays,
    /// Comparison of ranks with each other.
    RankComparison,
}

impl Use {
    /// Every use, in the order of output.
    pub const ALL: [Self; 7] = [
        Self::DeviceTime,
        Self::HostTime,
        Self::Phases,
        Self::Recompute,
        Self::StepTimes,
        Self::LaunchDelays,
        Self::RankComparison,
    ];

    /// As in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeviceTime => "device time",
            Self::HostTime => "host time",
            Self::Phases => "phases",
            Self::Recompute => "recompute",
            Self::StepTimes => "step times",
            Self::LaunchDelays => "launch delays",
            Self::RankComparison => "comparison across ranks",
        }
    }
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Elements of the event array, whatever they are.
    pub events: u64,
    /// Device events that count.
    pub device_events: u64,
    /// Sum of their durations; `None` without any.
    pub device_time_ns: Option<Ns>,
    /// From the first start to the last end on the host; `None` without host events.
    pub host_window_ns: Option<Ns>,
    /// Kernel launches.
    pub launches: u64,
    /// Steps, partial ones included.
    pub steps: u64,
    /// True when step boundaries are inferred from optimizer ranges.
    pub steps_inferred: bool,
    /// `annotated`, `inferred` or `none`.
    pub phases: &'static str,
    /// `yes`, `partly` or `no`: whether recompute would be seen.
    pub recompute_observable: &'static str,
}

/// One kind of finding in one file or run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable name.
    pub code: &'static str,
    /// How grave it is here: what the rest of the file excuses weighs less than usual.
    pub severity: Severity,
    /// How many events (or launches, steps, ranks, strings) it concerns.
    pub count: u64,
    /// Time concerned.
    pub time_ns: Option<Ns>,
    /// How much that is, or how much of the things counted, as a ratio.
    pub share: Option<f64>,
    /// What `share` is a share of.
    pub share_of: Option<Basis>,
    /// The worst single value: the largest overlap, the longest wait, the earliest start.
    pub worst_ns: Option<Ns>,
    /// Byte offset of the first of them in the decompressed content of the file.
    pub first_offset: Option<u64>,
    /// Name of the first of them.
    pub first_name: Option<String>,
    /// By step: how many of them are in it; the empty name is outside of all steps. Empty for findings
    /// that are not told by step.
    pub by_step: BTreeMap<String, u64>,
    /// What it does to the numbers.
    pub impact: Impact,
    /// Which numbers.
    pub affects: &'static [Use],
    /// What it means for the numbers.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
    #[serde(skip)]
    pub(crate) kind: HealthCode,
}

/// What a finding does to the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Impact {
    /// Nothing that matters.
    None,
    /// They have to be read with it in mind.
    Care,
    /// They must not be used.
    Spoils,
}

/// What a share is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The sum of all device work.
    DeviceTime,
    /// From the first start to the last end of device work on its device.
    DeviceWindow,
    /// From the first start to the last end on the host.
    HostWindow,
    /// The sum of all steps.
    StepTime,
    /// Device events.
    DeviceEvents,
    /// Complete events.
    Events,
    /// Kernel launches.
    Launches,
    /// Steps.
    Steps,
    /// Ranks of the job.
    Ranks,
}

impl Basis {
    /// As in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeviceTime => "device time",
            Self::DeviceWindow => "device window",
            Self::HostWindow => "host window",
            Self::StepTime => "step time",
            Self::DeviceEvents => "device events",
            Self::Events => "events",
            Self::Launches => "launches",
            Self::Steps => "steps",
            Self::Ranks => "ranks",
        }
    }
}
