//! From paths to inferences.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::case::{Case, Rows, share};
use super::condition::Condition;
use super::inference::{Confidence, Effect, Inference, Level, Verdict};
use super::plan::Plan;
use super::ratios::{Ratios, ratios};
use super::rules::{RULES, Rule};
use super::sum::column;
use super::table::Tables;
use super::thresholds::Thresholds;
use crate::attribute::{
    Attribution, InputRecord, ProgressEvent, Request, SkippedInput, Tool, attribute_and,
};
use crate::error::Result;
use crate::health::HealthEntry;
use crate::inspect::View;
use crate::units::Ns;

/// Name and version of the JSON schema.
pub const SCHEMA_VERSION: &str = "tracekit.inference/v1";

/// What limits runs: the JSON schema `tracekit.inference/v1`, as types.
#[derive(Debug, Clone, Serialize)]
pub struct Inferences {
    /// [`SCHEMA_VERSION`].
    pub schema_version: &'static str,
    /// Which program made it.
    pub tool: Tool,
    /// The options in force.
    pub options: BTreeMap<&'static str, serde_json::Value>,
    /// The limits in force, by rule and name.
    pub thresholds: BTreeMap<String, BTreeMap<String, f64>>,
    /// The files read, in order of run, rank and window.
    pub inputs: Vec<InputRecord>,
    /// Files of a folder that were not read.
    pub skipped: Vec<SkippedInput>,
    /// What was inferred, run by run.
    pub runs: Vec<RunInferences>,
    /// What is wrong or unusual with the files.
    pub health: Vec<HealthEntry>,
}

/// What limits one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInferences {
    /// Name of the run.
    pub run: String,
    /// Paths of its files.
    pub files: Vec<String>,
    /// What its devices do.
    #[serde(flatten)]
    pub ratios: Ratios,
    /// Supported ones first, the largest effect first; then the others in the order of rules.
    pub inferences: Vec<Inference>,
}

impl RunInferences {
    /// Puts what holds and matters most first.
    pub(super) fn put_in_order(&mut self) {
        self.inferences.sort_by_key(|inference| {
            let effect = inference.effect.map_or(Ns::ZERO, |effect| effect.ns);
            let is_supported = inference.verdict == Verdict::Supported;
            (
                inference.verdict,
                Reverse(if is_supported { effect } else { Ns::ZERO }),
            )
        });
    }
}

/// Reads every trace under the paths of `request` and tests every rule on every run.
///
/// # Errors
/// As [`attribute_paths`](crate::attribute::attribute_paths), and when the query of a rule of the user's
/// cannot be answered.
pub fn infer_paths(
    request: &Request<'_>,
    thresholds: &Thresholds,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Inferences> {
    let plan = Plan::new(thresholds);
    let (attribution, taken) = attribute_and(request, progress, |dissection, content| {
        plan.take(&View::new(dissection, content, &plan.options))
    })?;
    let runs = plan.infer(&attribution, taken)?;
    Ok(inferences(&attribution, runs, thresholds))
}

/// What was inferred about the runs of `attribution`.
pub(crate) fn inferences(
    attribution: &Attribution,
    runs: Vec<RunInferences>,
    thresholds: &Thresholds,
) -> Inferences {
    Inferences {
        schema_version: SCHEMA_VERSION,
        tool: attribution.tool,
        options: attribution.options.clone(),
        thresholds: thresholds.limits().clone(),
        inputs: attribution.inputs.clone(),
        skipped: attribution.skipped.clone(),
        runs,
        health: attribution.health.clone(),
    }
}

/// What the built-in rules make of run number `number`, whose tables are `tables`.
pub(super) fn of_run(
    attribution: &Attribution,
    number: usize,
    tables: &Tables,
    thresholds: &Thresholds,
) -> RunInferences {
    let case = |code| Case::new(attribution, tables, thresholds, code);
    let grounds = Grounds::of(&case(""));
    let inferences = RULES
        .par_iter()
        .map(|rule| infer(rule, case(rule.code), thresholds, &grounds));
    let run = &attribution.runs[number];
    let path = |rank: &usize| {
        attribution.inputs[attribution.ranks[*rank].input]
            .path
            .clone()
    };
    RunInferences {
        run: run.name.clone(),
        files: run.ranks.iter().map(path).collect(),
        ratios: ratios(&case("")),
        inferences: inferences.collect(),
    }
}

/// What the traces are like, whatever is asked of them.
struct Grounds {
    steps: i64,
    linked: Option<f64>,
    losses: i64,
    device_events: i64,
}

impl Grounds {
    fn of(case: &Case<'_>) -> Self {
        let work = Rows::of("device_work");
        let length = column("dur_ns");
        let all = case.sum_of(&length, &work).unwrap_or(0);
        let linked = work.and(Condition::IsKnown("launch_event"));
        let linked = case.sum_of(&length, &linked).unwrap_or(0);
        let whole = Rows::of("step_ranges").and(Condition::IsFalse("partial"));
        let mut steps: BTreeMap<Option<i64>, i64> = BTreeMap::new();
        for [rank] in case.ints(&[column("rank")], &whole) {
            *steps.entry(rank).or_default() += 1;
        }
        let lost = Condition::Is("severity", &["data_loss", "error"]);
        Self {
            steps: steps.into_values().max().unwrap_or(0),
            linked: (all > 0).then(|| share(linked, all)),
            losses: case.how_many(&Rows::of("health").and(lost)),
            device_events: case.how_many(&work),
        }
    }

    /// How sure a verdict on these traces can be.
    fn confidence(&self, needs_launches: bool, thresholds: &Thresholds) -> Confidence {
        let mut level = Level::High;
        let mut reasons = Vec::new();
        let mut lower = |to: Level, reason: String| {
            level = level.min(to);
            reasons.push(reason);
        };
        if self.losses > 0 {
            lower(
                Level::Low,
                "events or files are missing (tracekit doctor)".to_owned(),
            );
        }
        if self.linked.is_some()
            && (self.device_events as f64) < thresholds.limit("confidence", "device_events")
        {
            let work = match self.device_events {
                1 => "one piece".to_owned(),
                count => format!("only {count} pieces"),
            };
            lower(Level::Low, format!("{work} of device work"));
        }
        if let Some(linked) = self.linked
            && needs_launches
            && linked < thresholds.limit("confidence", "linked_share")
        {
            let part = super::case::percent(linked);
            lower(
                Level::Medium,
                format!("the launch of only {part} of the device time is known"),
            );
        }
        if (self.steps as f64) < thresholds.limit("confidence", "steps") {
            let steps = match self.steps {
                0 => "no whole step".to_owned(),
                1 => "one whole step".to_owned(),
                steps => format!("only {steps} whole steps"),
            };
            lower(Level::Medium, format!("{steps}, so nothing repeats"));
        }
        if reasons.is_empty() {
            reasons.push(format!("measured over {} whole steps", self.steps));
        }
        Confidence {
            level,
            reason: reasons.join("; "),
        }
    }
}

fn infer(rule: &Rule, mut case: Case<'_>, thresholds: &Thresholds, grounds: &Grounds) -> Inference {
    let judgement = (rule.judge)(&mut case);
    let decided = matches!(judgement.verdict, Verdict::Supported | Verdict::Refuted);
    let confidence = decided.then(|| {
        let mut found = grounds.confidence(rule.needs_launches, thresholds);
        if let Some(most) = judgement.at_most {
            if most.level < found.level {
                found = most;
            } else {
                found.reason = format!("{}; {}", found.reason, most.reason);
            }
        }
        found
    });
    Inference {
        code: rule.code.to_owned(),
        category: rule.category,
        verdict: judgement.verdict,
        summary: judgement.summary,
        evidence: case.evidence,
        events: case.events,
        confidence,
        effect: judgement.effect.map(|(ns, whole)| Effect {
            ns: Ns(ns),
            share: share(ns, whole),
        }),
        next_action: rule.next_action.to_owned(),
    }
}
