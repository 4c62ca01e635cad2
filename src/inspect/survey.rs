//! Everything that a report shows of traces, from reading each of them once.

use std::any::Any;

use rayon::prelude::*;

use super::device_line::{DeviceLine, device_lines};
use super::folder::subject_of;
use super::frame::Frame;
use super::level::{LevelCurve, level_curves};
use super::options::{By, InspectOptions};
use super::subject::{AnySubject, Inspected};
use super::topic::Topic;
use super::view::View;
use crate::attribute::{Attribution, ProgressEvent, Request, attribute_and};
use crate::error::Result;
use crate::units::Ns;

/// What a report shows of traces.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Who spent the time.
    pub attribution: Attribution,
    /// What each file shows over time, in the order of [`Attribution::ranks`].
    pub files: Vec<SurveyedFile>,
    /// Breakdowns with their tables.
    pub topics: Vec<(Topic, Vec<Frame>)>,
    /// Why devices idle in the windows of steps, a row a step and cause.
    pub step_idle: Option<Frame>,
}

/// What one file shows over time.
#[derive(Debug, Clone)]
pub struct SurveyedFile {
    /// What to add to its times to get nanoseconds since the epoch; 0 when it does not say.
    pub base: Ns,
    /// What its devices did.
    pub devices: Vec<DeviceLine>,
    /// Levels of memory.
    pub memory: Vec<LevelCurve>,
}

/// The topics of a report.
const TOPICS: [Topic; 6] = [
    Topic::Communication,
    Topic::Idle,
    Topic::Operators,
    Topic::Kernels,
    Topic::Ranks,
    Topic::Memory,
];

/// Names in tables of a report; the rest is one row.
const TOP: usize = 60;
/// Bins of all device lines together, and the fewest that a device gets.
const BINS: usize = 8_000;
const FEWEST_BINS: usize = 120;
/// Points of all memory curves together, and the fewest and the most that one gets.
const POINTS: usize = 3_200;
const FEWEST_POINTS: usize = 120;
const MOST_POINTS: usize = 800;

/// Reads every trace under the paths of `request` and takes what a report shows.
///
/// # Errors
/// As [`attribute_paths`](crate::attribute::attribute_paths).
pub fn survey_paths(
    request: &Request<'_>,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Survey> {
    survey_and(request, progress, |_| Ok(())).map(|(survey, _)| survey)
}

/// As [`survey_paths`], with what `also` takes from each trace, in the order of [`Attribution::ranks`].
pub(crate) fn survey_and<T: Send>(
    request: &Request<'_>,
    progress: &(dyn Fn(ProgressEvent) + Sync),
    also: impl Fn(&View<'_>) -> Result<T> + Sync,
) -> Result<(Survey, Vec<T>)> {
    let plain = InspectOptions {
        top: TOP,
        ..InspectOptions::default()
    };
    let by_phase = InspectOptions {
        by: vec![By::Phase],
        top: TOP,
        ..InspectOptions::default()
    };
    let by_step = InspectOptions {
        by: vec![By::Step],
        top: 1,
        ..InspectOptions::default()
    };
    let subjects: Vec<(Topic, Box<dyn AnySubject>)> =
        TOPICS.map(|topic| (topic, subject_of(topic))).into();
    let (attribution, seen) = attribute_and(request, progress, |dissection, content| {
        let plain = View::new(dissection, content, &plain);
        let by_phase = plain.with(&by_phase);
        // Several ask for it at once: found beforehand, it is found once.
        plain.recorded()?;
        let looked = || -> Result<Vec<Box<dyn Any + Send>>> {
            subjects
                .par_iter()
                .map(|(topic, subject)| match topic {
                    Topic::Memory => subject.look(&by_phase),
                    _ => subject.look(&plain),
                })
                .collect()
        };
        let idle_in_steps = || -> Result<Box<dyn Any + Send>> {
            subject_of(Topic::Idle).look(&plain.with(&by_step))
        };
        let over_time = || -> Result<SurveyedFile> {
            Ok(SurveyedFile {
                base: Ns(dissection.trace.metadata.base_time_ns.unwrap_or(0)),
                devices: device_lines(&plain, BINS),
                memory: level_curves(&plain, MOST_POINTS)?,
            })
        };
        let ((looked, (idle_in_steps, over_time)), taken) = rayon::join(
            || rayon::join(looked, || rayon::join(idle_in_steps, over_time)),
            || also(&plain),
        );
        Ok(((looked?, idle_in_steps?, over_time?), taken?))
    })?;
    let (seen, taken): (Vec<_>, Vec<T>) = seen.into_iter().unzip();
    let mut files = Vec::with_capacity(seen.len());
    let mut looked = Vec::with_capacity(seen.len());
    let mut idle_in_steps = Vec::with_capacity(seen.len());
    for (topics, idle, file) in seen {
        looked.push(topics);
        idle_in_steps.push(idle);
        files.push(file);
    }
    thin(&mut files);
    let mut by_topic: Vec<Vec<Box<dyn Any + Send>>> = TOPICS.map(|_| Vec::new()).into();
    for file in looked {
        for (topic, seen) in by_topic.iter_mut().zip(file) {
            topic.push(seen);
        }
    }
    let topics = subjects
        .iter()
        .zip(by_topic)
        .map(|((topic, subject), seen)| (*topic, subject.tables(Inspected::of(&attribution, seen))))
        .collect();
    let idle = subject_of(Topic::Idle).tables(Inspected::of(&attribution, idle_in_steps));
    let step_idle = idle.into_iter().find(|frame| frame.name == "idle_causes");
    let survey = Survey {
        attribution,
        files,
        topics,
        step_idle,
    };
    Ok((survey, taken))
}

/// Puts bins and points together where all devices have more than a page can hold.
fn thin(files: &mut [SurveyedFile]) {
    let devices: usize = files.iter().map(|file| file.devices.len()).sum();
    let most = BINS.checked_div(devices).unwrap_or(BINS).max(FEWEST_BINS);
    for line in files.iter_mut().flat_map(|file| &mut file.devices) {
        line.thin(most);
    }
    let curves: usize = files.iter().map(|file| file.memory.len()).sum();
    let most = POINTS.checked_div(curves).unwrap_or(MOST_POINTS);
    let most = most.clamp(FEWEST_POINTS, MOST_POINTS);
    for curve in files.iter_mut().flat_map(|file| &mut file.memory) {
        curve.thin(most);
    }
}

impl Survey {
    /// The table `name` of `topic`.
    pub fn frame(&self, topic: Topic, name: &str) -> Option<&Frame> {
        let (_, frames) = self.topics.iter().find(|(known, _)| *known == topic)?;
        frames.iter().find(|frame| frame.name == name)
    }
}
