//! What a comparison says: the JSON schema `tracekit.compare/v1`, as types.

use std::collections::BTreeMap;

use serde::Serialize;

use super::judgement::{Judgement, Verdict};
use super::mixture::Mixture;
use crate::attribute::{SkippedInput, Tool};
use crate::inspect::Frame;
use crate::units::Ns;

/// Name and version of the JSON schema.
pub const SCHEMA_VERSION: &str = "tracekit.compare/v1";

/// The result of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// [`SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// Which program made it.
    pub tool: Tool,
    /// The options in force.
    pub options: BTreeMap<&'static str, serde_json::Value>,
    /// What it is compared with.
    pub base: SideSummary,
    /// What is compared.
    pub candidate: SideSummary,
    /// The verdict on the step time.
    pub step: StepVerdict,
    /// The largest part of a step of the base that does not compute, before and after.
    pub bottleneck: Option<Bottleneck>,
    /// What grew: with what a saving was paid for.
    pub costs: Vec<CostShift>,
    /// The tables.
    pub frames: Vec<Frame>,
    /// What is not compared, and why.
    pub absent: Vec<Absent>,
}

/// One side.
#[derive(Debug, Clone, Serialize)]
pub struct SideSummary {
    /// `traces` or `attribution` (saved).
    pub source: &'static str,
    /// Paths of the traces.
    pub inputs: Vec<String>,
    /// True when one of them is damaged and only what is whole in it was read.
    pub partial: bool,
    /// Files of a folder that were not read.
    pub skipped: Vec<SkippedInput>,
    /// How often the program was captured.
    pub repeats: u64,
    /// Set when they do not look like repeats of one program; their median then means little.
    pub mixed: Option<Mixture>,
    /// How many ranks a capture has at most.
    pub ranks: u64,
    /// Steps, over all repeats.
    pub steps: u64,
    /// Those that the capture does not cut.
    pub whole_steps: u64,
    /// What is wrong or unusual.
    pub health: Vec<SideFinding>,
}

/// What is wrong or unusual on a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideFinding {
    /// Its code: `tracekit doctor --explain CODE` tells more.
    pub code: String,
    /// How bad it is.
    pub severity: String,
    /// How often it is there.
    pub count: u64,
}

/// The verdict on the step time.
#[derive(Debug, Clone, Serialize)]
pub struct StepVerdict {
    /// The verdict and what it rests on.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Median over the units of the base.
    pub base_ns: Option<Ns>,
    /// Median over the units of the candidate.
    pub candidate_ns: Option<Ns>,
    /// `device` or `host`; `None` when a side has no whole steps.
    pub clock: Option<&'static str>,
    /// What a measurement is: `steps`, `groups_of_steps`, `repeats` or `captures`.
    pub units: &'static str,
    /// How many measurements the base has.
    pub base_units: u64,
    /// How many the candidate has.
    pub candidate_units: u64,
    /// The level of the test; the interval has confidence 1 - alpha.
    pub alpha: f64,
    /// The smallest relative change that counts.
    pub min_effect: f64,
    /// False when the noise between runs is not in the measurements.
    pub sees_noise_between_runs: bool,
    /// Whether both sides did the same work; `None` when that is not known.
    pub same_work: Option<bool>,
    /// Items of the contract that differ.
    pub differences: Vec<&'static str>,
}

/// The largest part of a step of the base that does not compute.
#[derive(Debug, Clone, Serialize)]
pub struct Bottleneck {
    /// Which.
    pub cost: &'static str,
    /// `device` or `host`.
    pub place: &'static str,
    /// Time a step in the base.
    pub base_ns: Option<Ns>,
    /// Time a step in the candidate.
    pub candidate_ns: Option<Ns>,
    /// Share of a step of the base.
    pub base_share: Option<f64>,
    /// Share of a step of the candidate.
    pub candidate_share: Option<f64>,
    /// Whether it became less.
    pub judgement: Option<Judgement>,
}

/// A cost that grew by the smallest effect of a step or more.
#[derive(Debug, Clone, Serialize)]
pub struct CostShift {
    /// Which.
    pub cost: &'static str,
    /// `device` or `host`.
    pub place: &'static str,
    /// Time a step in the base.
    pub base_ns: Option<Ns>,
    /// Time a step in the candidate.
    pub candidate_ns: Option<Ns>,
    /// By how much it grew.
    pub delta_ns: Option<Ns>,
    /// Whether that is more than noise.
    pub verdict: Option<Verdict>,
}

/// Something that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// What: the name of a frame or of a part of one.
    pub what: &'static str,
    /// Why.
    pub reason: &'static str,
}
