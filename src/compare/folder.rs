//! From paths to a comparison.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::captures::captures_frame;
use super::contract::{contract, contract_frame, same_work};
use super::cost::{bottleneck, cost_frame, costs, shifts};
use super::judgement::judge;
use super::names::{collectives_frame, kernels_frame, memory_frame, operators_frame, steps_frame};
use super::observed::Observed;
use super::options::{CompareOptions, EFFECT_OF_REPEATS, EFFECT_OF_STEPS};
use super::pace::{Basis, Pace, Units, paces};
use super::phases::{DeviceTimes, phases_frame};
use super::quantity::{Level, Scale};
use super::result::{Absent, Comparison, SCHEMA_VERSION, SideFinding, SideSummary, StepVerdict};
use super::saved::Saved;
use super::side::Side;
use crate::attribute::{ProgressEvent, Request, SkippedInput, Tool, attribute_and};
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{InspectOptions, View};
use crate::stats::median;
use crate::units::Ns;

/// Compares what is under the paths of `candidate` with what is under those of `base`: traces, folders of
/// them, or one saved attribution.
///
/// # Errors
/// As [`attribute_paths`](crate::attribute::attribute_paths), for each side; or when a saved attribution
/// has another schema or is not alone.
pub fn compare_paths(
    base: &Request<'_>,
    candidate: &Request<'_>,
    options: &CompareOptions,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Comparison> {
    let base = read(base, progress)?;
    let candidate = read(candidate, progress)?;
    Ok(compared(&base, &candidate, options))
}

fn read(request: &Request<'_>, progress: &(dyn Fn(ProgressEvent) + Sync)) -> Result<Side> {
    for path in request.paths {
        let Some(saved) = Saved::read(path)? else {
            continue;
        };
        if request.paths.len() > 1 {
            let message = "a saved attribution is a whole side: it cannot be one of several paths";
            return Err(Error::new(ErrorKind::Usage, message).in_file(path));
        }
        return Ok(Side::new(saved, None));
    }
    let look = InspectOptions::default();
    let (attribution, observed) = attribute_and(request, progress, |dissection, content| {
        Observed::of(&View::new(dissection, content, &look))
    })?;
    Ok(Side::new(Saved::of(&attribution)?, Some(observed)))
}

fn compared(base: &Side, candidate: &Side, options: &CompareOptions) -> Comparison {
    let sides = [base, candidate];
    let (basis, units, paces) = paces(base, candidate);
    let min_effect = options.min_effect.unwrap_or(match units {
        Units::Repeats => EFFECT_OF_REPEATS,
        _ => EFFECT_OF_STEPS,
    });
    let level = Level {
        alpha: options.alpha,
        min_effect,
    };
    let scale = Scale {
        paces: &paces,
        level,
    };
    let items = contract(sides);
    let mut step = step_verdict(sides, &paces, units, level);
    step.same_work = same_work(&items);
    let differing = items.iter().filter(|item| item.same == Some(false));
    step.differences = differing.map(|item| item.name).collect();
    let devices = [0, 1].map(|side| DeviceTimes::of(sides[side], &paces[side], basis));
    let costs = costs(sides, &devices, scale);
    let mut frames = vec![phases_frame(sides, &devices, scale), cost_frame(&costs)];
    let named = [
        operators_frame(sides, scale, options.top),
        kernels_frame(sides, scale, options.top),
        collectives_frame(sides, scale, options.top),
        memory_frame(sides),
        captures_frame(sides, &paces, options.top).filter(|frame| !frame.is_empty()),
    ];
    frames.extend(named.into_iter().flatten());
    frames.push(steps_frame(sides));
    frames.push(contract_frame(&items));
    // The largest cost of those that it holds may not be the largest.
    let bottleneck = bottleneck(&costs);
    let untold = is_saved(sides) && bottleneck.as_ref().is_some_and(|it| it.place == "host");
    Comparison {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "tracekit",
            version: env!("CARGO_PKG_VERSION"),
        },
        options: in_force(sides, options, min_effect),
        base: summary(base),
        candidate: summary(candidate),
        step,
        bottleneck: bottleneck.filter(|_| !untold),
        costs: shifts(&costs, min_effect),
        absent: absent(sides, &frames, basis, untold),
        frames,
    }
}

fn step_verdict(sides: [&Side; 2], paces: &[Pace; 2], units: Units, level: Level) -> StepVerdict {
    let [base, candidate] = paces.each_ref().map(Pace::step_times);
    let on_device = sides.iter().all(|side| side.steps.on_device());
    let middle = |times: &[f64]| {
        #[expect(clippy::cast_possible_truncation, reason = "a time in nanoseconds")]
        median(times).map(|time| Ns(time.round() as i64))
    };
    StepVerdict {
        judgement: judge(&base, &candidate, level.alpha, level.min_effect),
        base_ns: middle(&base),
        candidate_ns: middle(&candidate),
        clock: match units {
            Units::Captures => None,
            _ if on_device => Some("device"),
            _ => Some("host"),
        },
        units: units.as_str(),
        base_units: paces[0].units() as u64,
        candidate_units: paces[1].units() as u64,
        alpha: level.alpha,
        min_effect: level.min_effect,
        sees_noise_between_runs: units == Units::Repeats,
        same_work: None,
        differences: Vec::new(),
    }
}

fn in_force(
    sides: [&Side; 2],
    options: &CompareOptions,
    min_effect: f64,
) -> BTreeMap<&'static str, Value> {
    let [base, candidate] = sides.map(|side| json!(side.saved.options));
    BTreeMap::from([
        ("alpha", json!(options.alpha)),
        ("base", base),
        ("candidate", candidate),
        ("min_effect", json!(min_effect)),
        ("top", json!(options.top)),
    ])
}

fn summary(side: &Side) -> SideSummary {
    let health = side.saved.health.iter().map(|finding| SideFinding {
        code: finding.code.clone(),
        severity: finding.severity.clone(),
        count: finding.count,
    });
    let skipped = side.saved.skipped.iter().map(|skipped| SkippedInput {
        path: skipped.path.clone(),
        reason: skipped.reason.clone(),
        failed: skipped.failed,
    });
    let inputs = side.saved.inputs.iter().map(|input| input.path.clone());
    SideSummary {
        source: match side.observed {
            Some(_) => "traces",
            None => "attribution",
        },
        inputs: inputs.collect(),
        partial: side.saved.inputs.iter().any(|input| input.partial),
        skipped: skipped.collect(),
        repeats: side.repeat_count(),
        mixed: side.mixture.clone(),
        ranks: side.rank_count(),
        steps: side.steps.all.len() as u64,
        whole_steps: side.steps.whole() as u64,
        health: health.collect(),
    }
}

/// True when a side has no traces, only what was said about them.
fn is_saved(sides: [&Side; 2]) -> bool {
    sides.iter().any(|side| side.observed.is_none())
}

/// What is not in the comparison, and why.
fn absent(
    sides: [&Side; 2],
    frames: &[crate::inspect::Frame],
    basis: Basis,
    untold: bool,
) -> Vec<Absent> {
    let mut absent = Vec::new();
    let mut add = |what, reason| absent.push(Absent { what, reason });
    if untold {
        add(
            "bottleneck",
            "without device work it is one of the host's costs, of which a saved attribution holds only some",
        );
    }
    if is_saved(sides) {
        let reason = "a saved attribution does not hold it";
        for what in ["operators", "kernels", "collectives", "memory"] {
            add(what, reason);
        }
        add("host costs", reason);
        add(
            "host phases by step",
            "a saved attribution holds them for the whole capture only, which is divided by its steps",
        );
    }
    if basis == Basis::Captures {
        add(
            "step time",
            "a side has no whole steps; tables are about whole captures",
        );
    }
    if sides.iter().any(|side| !side.has_device_work()) {
        add("device time", "a side has no device work");
    }
    let empty = |name: &str| {
        frames
            .iter()
            .any(|frame| frame.name == name && frame.is_empty())
    };
    if empty("memory") {
        add(
            "memory",
            "the traces have no memory events (profile_memory)",
        );
    }
    absent
}
