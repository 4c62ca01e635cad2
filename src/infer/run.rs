//! From paths to inferences.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::{IntoLazy as _, LazyFrame, col, lit};
use serde::Serialize;

use super::case::{Case, Judgement, first_number, share};
use super::inference::{Confidence, Effect, Inference, Level, Number, Verdict};
use super::ratios::{Ratios, ratios};
use super::rules::{RULES, Rule};
use super::thresholds::Thresholds;
use crate::attribute::{InputRecord, ProgressEvent, Request, SkippedInput, Tool};
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Tables, query, read_tables, tables_in};
use crate::health::HealthEntry;
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

/// Reads every trace under the paths of `request` and tests every rule on every run.
///
/// # Errors
/// As [`read_tables`], and when the query of a rule of the user's cannot be answered.
pub fn infer_paths(
    request: &Request<'_>,
    thresholds: &Thresholds,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Inferences> {
    let tables = read_tables(request, &tables_of_rules(thresholds), progress)?;
    inferences(tables, thresholds)
}

/// Tests every rule on every run of `tables`, which must have those that rules read.
///
/// # Errors
/// As [`infer_tables`].
pub(crate) fn inferences(tables: Tables, thresholds: &Thresholds) -> Result<Inferences> {
    let runs = infer_tables(&tables, thresholds)?;
    let attribution = tables.attribution;
    Ok(Inferences {
        schema_version: SCHEMA_VERSION,
        tool: attribution.tool,
        options: attribution.options,
        thresholds: thresholds.limits().clone(),
        inputs: attribution.inputs,
        skipped: attribution.skipped,
        runs,
        health: attribution.health,
    })
}

/// The tables that rules read.
pub(crate) fn tables_of_rules(thresholds: &Thresholds) -> Vec<&'static str> {
    let mut names: BTreeSet<&str> = RULES.iter().flat_map(|rule| rule.tables).copied().collect();
    names.insert("health");
    for rule in thresholds.rules() {
        names.extend(tables_in(&rule.sql));
    }
    names.into_iter().collect()
}

/// Tests every rule on every run of `tables`, which must have those that rules read.
///
/// # Errors
/// When the query of a rule of the user's cannot be answered.
pub(crate) fn infer_tables(tables: &Tables, thresholds: &Thresholds) -> Result<Vec<RunInferences>> {
    let runs = 0..tables.attribution.runs.len();
    runs.map(|run| of_run(tables, run, thresholds)).collect()
}

fn of_run(tables: &Tables, number: usize, thresholds: &Thresholds) -> Result<RunInferences> {
    let attribution = &tables.attribution;
    let name = attribution.runs[number].name.clone();
    let own;
    let tables = if attribution.runs.len() == 1 {
        tables
    } else {
        own = only(tables, &name)?;
        &own
    };
    let grounds = Grounds::of(tables)?;
    let built_in = RULES
        .iter()
        .map(|rule| infer(rule, tables, thresholds, &grounds));
    let mut inferences: Vec<Inference> = built_in.collect::<Result<_>>()?;
    for rule in thresholds.rules() {
        let inference = rule
            .infer(Case::new(tables, thresholds, ""))
            .map_err(|error| {
                let message = format!("rule '{}': {}", rule.name, error.reason());
                Error::new(ErrorKind::Query, message)
            })?;
        inferences.push(inference);
    }
    inferences.sort_by_key(|inference| {
        let effect = inference.effect.map_or(Ns::ZERO, |effect| effect.ns);
        let is_supported = inference.verdict == Verdict::Supported;
        (
            inference.verdict,
            std::cmp::Reverse(if is_supported { effect } else { Ns::ZERO }),
        )
    });
    let files = attribution.runs[number].ranks.iter();
    let path = |rank: &usize| {
        attribution.inputs[attribution.ranks[*rank].input]
            .path
            .clone()
    };
    Ok(RunInferences {
        run: name,
        files: files.map(path).collect(),
        ratios: ratios(tables, thresholds)?,
        inferences,
    })
}

/// The rows of one run.
fn only(tables: &Tables, run: &str) -> Result<Tables> {
    let mut frames = BTreeMap::new();
    for (name, frame) in &tables.frames {
        let has_runs = frame.column("run").is_ok();
        let rows: LazyFrame = frame.clone().lazy();
        let rows = if has_runs {
            rows.filter(col("run").eq(lit(run)))
        } else {
            rows
        };
        let rows = rows
            .collect()
            .map_err(|error| Error::new(ErrorKind::Query, error.to_string().replace('\n', " ")))?;
        frames.insert(*name, rows);
    }
    Ok(Tables {
        attribution: tables.attribution.clone(),
        frames,
    })
}

/// What the traces are like, whatever is asked of them.
struct Grounds {
    steps: i64,
    linked: Option<f64>,
    losses: i64,
    device_events: i64,
}

impl Grounds {
    fn of(tables: &Tables) -> Result<Self> {
        let int = |sql: &str| -> Result<i64> {
            Ok(match first_number(&query(tables, sql)?) {
                Some(Number::Int(number)) => number,
                _ => 0,
            })
        };
        let all = int("SELECT SUM(dur_ns) FROM device_work")?;
        let linked = int("SELECT SUM(dur_ns) FROM device_work WHERE launch_event IS NOT NULL")?;
        Ok(Self {
            steps: int(
                "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM step_ranges WHERE partial = FALSE GROUP BY rank) AS counted",
            )?,
            linked: (all > 0).then(|| share(linked, all)),
            losses: int("SELECT COUNT(*) FROM health WHERE severity IN ('data_loss', 'error')")?,
            device_events: int("SELECT COUNT(*) FROM device_work")?,
        })
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

fn infer(
    rule: &Rule,
    tables: &Tables,
    thresholds: &Thresholds,
    grounds: &Grounds,
) -> Result<Inference> {
    let mut case = Case::new(tables, thresholds, rule.code);
    let judgement: Judgement = (rule.judge)(&mut case)?;
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
    Ok(Inference {
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
    })
}
