//! `tracekit gate`: decisions over measured records.

use std::io::Read as _;
use std::path::Path;

mod args;

pub(super) use args::Args;
use args::{Common, FileArgs, Format, Gate, SampledArgs};

use super::exit::Exit;
use super::output::Target;
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    DEFAULT_THRESHOLDS, Decision, Json, Samples, StatisticsOptions, Thresholds, Verdict, explain,
    explanations, format_optimization_report, input_artifact, judge_activation_scope, judge_budget,
    judge_qualification, judge_recommendation, judge_regression, judge_samples, judge_sensitivity,
    judge_strategies, recommendation_summary, regression_samples, strategy_samples,
};
use crate::report::{
    self, explanations_document, text::TextOptions, verdict_document, verdict_github, verdict_junit,
};

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    match (&args.explain, &args.gate) {
        (Some(code), _) => explained(code),
        (None, Some(gate)) => decide(gate),
        (None, None) => Err(Error::new(ErrorKind::Usage, "no gate is named")),
    }
}

fn explained(code: &str) -> Result<Exit> {
    let target = Target::new(None)?;
    let only;
    let chosen = match code {
        "" => explanations(),
        code => {
            only = [explain(code)?];
            &only[..]
        }
    };
    let options = TextOptions {
        width: target.width(),
        styled: target.is_styled(),
    };
    target.write(&report::text::render(
        &explanations_document(chosen),
        options,
    ))?;
    Ok(Exit::Done)
}

/// A record with the artefact of its file.
struct Input {
    record: Json,
    artifact: Json,
}

fn read(path: &Path) -> Result<Input> {
    let shown = path.display().to_string();
    if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| Error::io("standard input", error))?;
        let place = Path::new("standard input");
        let record = Json::parse(&text).map_err(|error| error.in_file(place))?;
        if !record.is_object() {
            let message = "holds no JSON object at its top level";
            return Err(Error::new(ErrorKind::Invalid, message).in_file(place));
        }
        let artifact = input_artifact(&shown, text.as_bytes());
        return Ok(Input { record, artifact });
    }
    let (record, bytes) = Json::read_object_and_bytes(path)?;
    Ok(Input {
        artifact: input_artifact(&shown, &bytes),
        record,
    })
}

fn thresholds(common: &Common) -> Result<Thresholds> {
    let Some(path) = &common.thresholds else {
        return Thresholds::read("", &common.changes);
    };
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    Thresholds::read(&text, &common.changes).map_err(|error| error.in_file(path))
}

fn decide(gate: &Gate) -> Result<Exit> {
    match gate {
        Gate::Thresholds => {
            Target::new(None)?.write(DEFAULT_THRESHOLDS)?;
            Ok(Exit::Done)
        }
        Gate::Recommend(args) => {
            let common = &args.input.common;
            let input = read(&args.input.file)?;
            let of_file = |error: Error| error.in_file(&args.input.file);
            let verdict = judge_recommendation(&input.record, &thresholds(common)?);
            let verdict = verdict.map_err(of_file)?;
            let summary = recommendation_summary(&input.record).map_err(of_file)?;
            let bottleneck = args.bottleneck.as_deref().unwrap_or_default();
            let next = args.next_action.as_deref().unwrap_or_default();
            let report = format_optimization_report(&summary, bottleneck, next);
            finish(common, verdict, vec![input], Some(report))
        }
        Gate::Regression(args) => sampled(args, judge_regression, regression_samples),
        Gate::Strategies(args) => sampled(args, judge_strategies, strategy_samples),
        Gate::Sensitivity(args) => file_gate(&args.input, |record, thresholds| {
            judge_sensitivity(record, args.relative, thresholds)
        }),
        Gate::Budget(args) => file_gate(&args.input, |record, thresholds| {
            let (workload, hardware) = (args.workload.as_deref(), args.hardware.as_deref());
            judge_budget(record, workload, hardware, thresholds)
        }),
        Gate::ActivationScope(args) => {
            let common = &args.input.common;
            let (ladder, strategy) = (read(&args.input.file)?, read(&args.strategy)?);
            let verdict = judge_activation_scope(
                &ladder.record,
                &strategy.record,
                &ladder.artifact,
                &thresholds(common)?,
            )
            .map_err(|error| error.in_file(&args.input.file))?;
            finish(common, verdict, vec![ladder, strategy], None)
        }
        Gate::Qualify(args) => {
            let [strategy, budget, profile] = [
                read(&args.strategy)?,
                read(&args.budget)?,
                read(&args.profile)?,
            ];
            let phase = args.phase.as_deref().map(read).transpose()?;
            let verdict = judge_qualification(
                &strategy.record,
                &budget.record,
                &profile.record,
                phase.is_some(),
                &thresholds(&args.common)?,
            )
            .map_err(|error| error.in_file(&args.strategy))?;
            let inputs = [strategy, budget, profile].into_iter().chain(phase);
            finish(&args.common, verdict, inputs.collect(), None)
        }
    }
}

/// A gate whose repeats are taken as samples, too, when that is asked for.
fn sampled(
    args: &SampledArgs,
    judge: impl FnOnce(&Json, &Thresholds) -> Result<Verdict>,
    samples: impl FnOnce(&Json, &Thresholds) -> Result<Vec<Samples>>,
) -> Result<Exit> {
    let options = StatisticsOptions {
        alpha: args.alpha,
        resolution: args.resolution,
    };
    file_gate(&args.input, |record, thresholds| {
        let mut verdict = judge(record, thresholds)?;
        if args.statistics {
            let samples = samples(record, thresholds)?;
            verdict.statistics = Some(judge_samples(&samples, options).to_json());
        }
        Ok(verdict)
    })
}

fn file_gate(
    args: &FileArgs,
    judge: impl FnOnce(&Json, &Thresholds) -> Result<Verdict>,
) -> Result<Exit> {
    let input = read(&args.file)?;
    let verdict = judge(&input.record, &thresholds(&args.common)?);
    let verdict = verdict.map_err(|error| error.in_file(&args.file))?;
    finish(&args.common, verdict, vec![input], None)
}

fn finish(
    common: &Common,
    mut verdict: Verdict,
    inputs: Vec<Input>,
    report: Option<String>,
) -> Result<Exit> {
    verdict.inputs = inputs.into_iter().map(|input| input.artifact).collect();
    let target = Target::new(common.file.as_deref())?;
    let record = common
        .record
        .as_deref()
        .map(|path| Target::new(Some(path)))
        .transpose()?;
    let text = match common.format {
        Format::Json => verdict.to_json().to_text(),
        Format::Junit => verdict_junit(&verdict),
        Format::Github => verdict_github(&verdict),
        Format::Markdown => report::markdown::render(&verdict_document(&verdict)),
        Format::Html => report::html::render(&verdict_document(&verdict)),
        Format::Svg => {
            let document = verdict_document(&verdict);
            let chart = report::svg::charts(&document).next();
            let picture = chart.map(report::svg::render);
            let message = "--format svg is of gate sensitivity, qualify and activation-scope only";
            picture.ok_or_else(|| Error::new(ErrorKind::Usage, message))?
        }
        Format::Text => {
            let options = TextOptions {
                width: target.width(),
                styled: target.is_styled(),
            };
            report::text::render(&verdict_document(&verdict), options)
        }
        // The report ends without a line break; a file of text has one.
        Format::Report => {
            let message = "--format report is of gate recommend only";
            report.ok_or_else(|| Error::new(ErrorKind::Usage, message))? + "\n"
        }
    };
    if let Some(record) = record {
        record.write(&verdict.to_json().to_text())?;
    }
    target.write(&text)?;
    Ok(match verdict.decision {
        _ if common.exit_zero => Exit::Done,
        Decision::Accept => Exit::Done,
        Decision::Tune => Exit::Tune,
        Decision::Reject => Exit::Rejected,
    })
}
