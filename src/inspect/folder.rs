//! From paths to an inspection.

use std::collections::BTreeMap;

use serde::Serialize;

use super::communication::CommunicationTime;
use super::copy::Copies;
use super::critical_path::CriticalPath;
use super::frame::Frame;
use super::idle::Idle;
use super::kernel::Kernels;
use super::launch::Launches;
use super::memory::Memory;
use super::operator::Operators;
use super::options::InspectOptions;
use super::rank::Ranks;
use super::remark::{Remark, remarks};
use super::roofline::Roofline;
use super::step_time::StepTime;
use super::subject::{AnySubject, Inspected};
use super::summary::Summary;
use super::timeline_file;
use super::topic::Topic;
use super::view::View;
use crate::attribute::{
    Coverage, InputRecord, ProgressEvent, Request, SkippedInput, Tool, attribute_and,
};
use crate::error::Result;
use crate::health::HealthEntry;

/// Name and version of the JSON schema.
pub const SCHEMA_VERSION: &str = "tracekit.inspect/v1";

/// The result of an inspection: the JSON schema `tracekit.inspect/v1`, as types.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// [`SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// Which program made it.
    pub tool: Tool,
    /// What the traces were broken down into.
    pub topic: Topic,
    /// The options in force.
    pub options: BTreeMap<&'static str, serde_json::Value>,
    /// The files read, in order of run, rank and window.
    pub inputs: Vec<InputRecord>,
    /// Files of a folder that were not read.
    pub skipped: Vec<SkippedInput>,
    /// The tables.
    pub frames: Vec<Frame>,
    /// What to know about them.
    pub remarks: Vec<Remark>,
    /// How well device work could be placed.
    pub coverage: Coverage,
    /// What is wrong or unusual.
    pub health: Vec<HealthEntry>,
}

/// Reads every trace under the paths of `request` and breaks it down into `topic`. Raw memory timelines
/// of PyTorch (`*.raw.json.gz`) are broken down into [`Topic::Memory`], too.
///
/// # Errors
/// As [`attribute_paths`](crate::attribute::attribute_paths).
pub fn inspect_paths(
    request: &Request<'_>,
    topic: Topic,
    options: &InspectOptions,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Inspection> {
    if topic == Topic::Memory
        && let Some(paths) = timeline_file::timelines(request.paths)?
    {
        return timeline_file::inspect_timelines(request, &paths, options);
    }
    let subject = subject_of(topic);
    let (attribution, seen) = attribute_and(request, progress, |dissection, content| {
        subject.look(&View::new(dissection, content, options))
    })?;
    let frames = subject.tables(Inspected::of(&attribution, seen));
    Ok(Inspection {
        remarks: remarks(topic, &frames),
        schema_version: SCHEMA_VERSION,
        tool: attribution.tool,
        topic,
        options: attribution.options,
        inputs: attribution.inputs,
        skipped: attribution.skipped,
        frames,
        coverage: attribution.coverage,
        health: attribution.health,
    })
}

/// What breaks traces down into `topic`.
pub(crate) fn subject_of(topic: Topic) -> Box<dyn AnySubject> {
    match topic {
        Topic::Summary => Box::new(Summary),
        Topic::Communication => Box::new(CommunicationTime),
        Topic::Memory => Box::new(Memory),
        Topic::Ranks => Box::new(Ranks),
        Topic::Operators => Box::new(Operators),
        Topic::Kernels => Box::new(Kernels),
        Topic::Idle => Box::new(Idle),
        Topic::Steps => Box::new(StepTime),
        Topic::Launches => Box::new(Launches),
        Topic::Copies => Box::new(Copies),
        Topic::CriticalPath => Box::new(CriticalPath),
        Topic::Roofline => Box::new(Roofline),
    }
}
