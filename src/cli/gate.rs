//! `tracekit gate`: decisions over measured records.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};

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

const EXAMPLES: &str = "\
Examples:
  tracekit gate strategies fixtures/gate/results/76_real_gpu_memory.json
      Does a memory strategy fit the budget, and is it worth its cost?
  tracekit gate strategies strategies.json --set budget.memory_cap_mb=9600 --format github
      The same under another cap, told to the log of a GitHub workflow.
  tracekit gate sensitivity strategies.json --relative
      Would other thresholds decide otherwise?
  tracekit gate qualify --strategy 76.json --budget 75.json --profile 74_profile.json
      May a profiled strategy go on, by what it measured without the profiler?
  tracekit gate --explain memory_saving
      What a reason means and what to do about it.

Exit codes:
  0  accept
  1  reject
  2  unusable input or wrong usage; nothing is printed
  3  tune";

const SUB_HELP: &str = "\
Examples: tracekit gate --help. Exit codes: 0 accept, 1 reject, 2 unusable input, 3 tune.";

/// Decisions over measured records: accept, tune or reject
///
/// Reads records as JSON and says what their measurements decide, by thresholds that are told. Numbers of a
/// profiler explain and never decide; a record that says it was profiled is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    /// Explain the reason CODE, or list all of them
    #[arg(
        long,
        value_name = "CODE",
        num_args = 0..=1,
        default_missing_value = "",
        hide_default_value = true,
        required = true,
        help_heading = "Report"
    )]
    explain: Option<String>,

    #[command(subcommand)]
    gate: Option<Gate>,
}

#[derive(Debug, Subcommand)]
enum Gate {
    /// Is one change worth keeping? FILE has base and tuned, or a summary
    #[command(after_long_help = SUB_HELP)]
    Recommend(RecommendArgs),
    /// May a change be adopted over several workloads? FILE has contract, workload_records, original_bottleneck
    #[command(after_long_help = SUB_HELP)]
    Regression(SampledArgs),
    /// Does a hand-off of strategies fit a budget, also a stricter one?
    #[command(after_long_help = SUB_HELP)]
    Budget(BudgetArgs),
    /// Does the decision about strategies hang on a threshold?
    #[command(after_long_help = SUB_HELP)]
    Sensitivity(SensitivityArgs),
    /// Does a memory strategy fit the budget, and is it worth its cost?
    #[command(after_long_help = SUB_HELP)]
    Strategies(SampledArgs),
    /// Does checkpointing save activation memory, by a ladder of lengths?
    #[command(after_long_help = SUB_HELP)]
    ActivationScope(ActivationArgs),
    /// May profiled strategies go on, by what they measured without the profiler?
    #[command(after_long_help = SUB_HELP)]
    Qualify(QualifyArgs),
    /// Prints the default thresholds, to change and give back with --thresholds
    #[command(after_long_help = SUB_HELP)]
    Thresholds,
}

/// Thresholds, and where the verdict goes.
#[derive(Debug, clap::Args)]
struct Common {
    /// Take thresholds from FILE (TOML); `tracekit gate thresholds` prints the defaults
    #[arg(long, value_name = "FILE", help_heading = "Thresholds")]
    thresholds: Option<PathBuf>,

    /// Set one threshold, such as budget.memory_cap_mb=9600; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Thresholds")]
    changes: Vec<String>,

    /// Format of the verdict
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    format: Format,

    /// Write to FILE, before a failing exit; - is standard output
    #[arg(
        id = "output",
        short,
        long,
        value_name = "FILE",
        help_heading = "Output"
    )]
    file: Option<PathBuf>,

    /// Also write the verdict as JSON to FILE, before a failing exit
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    record: Option<PathBuf>,

    /// Exit with 0 whatever the decision is
    #[arg(long, help_heading = "Output")]
    exit_zero: bool,
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The record, as JSON; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    common: Common,
}

/// A record whose repeats can be taken as samples.
#[derive(Debug, clap::Args)]
struct SampledArgs {
    #[command(flatten)]
    input: FileArgs,

    /// Also take repeats as samples; stands beside the decision and never replaces it
    #[arg(long, help_heading = "Statistics")]
    statistics: bool,

    /// Probability with which all intervals together may be wrong
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.05,
        requires = "statistics",
        help_heading = "Statistics"
    )]
    #[arg(value_parser = share)]
    alpha: f64,

    /// Difference from a threshold that is to be told, as a share of the baseline
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.02,
        requires = "statistics",
        help_heading = "Statistics"
    )]
    #[arg(value_parser = share)]
    resolution: f64,
}

/// A number above 0 and below 1.
fn share(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().map_err(|_| "is no number".to_owned())?;
    if number > 0.0 && number < 1.0 {
        Ok(number)
    } else {
        Err("must be above 0 and below 1".to_owned())
    }
}

#[derive(Debug, clap::Args)]
struct RecommendArgs {
    #[command(flatten)]
    input: FileArgs,

    /// What limits the run, for --format report
    #[arg(long, value_name = "TEXT", help_heading = "Report")]
    bottleneck: Option<String>,

    /// What to do now, for --format report
    #[arg(long, value_name = "TEXT", help_heading = "Report")]
    next_action: Option<String>,
}

#[derive(Debug, clap::Args)]
struct BudgetArgs {
    #[command(flatten)]
    input: FileArgs,

    /// Which workload the budget is for [default: workload_id beside the hand-off]
    #[arg(long, value_name = "ID", help_heading = "Input")]
    workload: Option<String>,

    /// Which hardware the budget is for [default: hardware_id beside the hand-off]
    #[arg(long, value_name = "ID", help_heading = "Input")]
    hardware: Option<String>,
}

#[derive(Debug, clap::Args)]
struct SensitivityArgs {
    #[command(flatten)]
    input: FileArgs,

    /// Take thresholds relative to the baseline
    #[arg(long, help_heading = "Thresholds")]
    relative: bool,
}

#[derive(Debug, clap::Args)]
struct ActivationArgs {
    #[command(flatten)]
    input: FileArgs,

    /// The report of strategies that the ladder belongs to
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    strategy: PathBuf,
}

#[derive(Debug, clap::Args)]
struct QualifyArgs {
    /// The report of strategies, measured without a profiler
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    strategy: PathBuf,

    /// The budget decision, or the verdict of gate strategies
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    budget: PathBuf,

    /// The report of profiled runs
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    profile: PathBuf,

    /// The report of memory by phase, when there is one
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    phase: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// Format of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The verdict in the first line, then the checks
    Text,
    /// Everything, schema tracekit.gate/v1
    Json,
    /// The text as Markdown
    Markdown,
    /// JUnit XML
    Junit,
    /// Commands for the log of a GitHub workflow
    Github,
    /// The optimisation report of six lines; only of recommend
    Report,
}

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
