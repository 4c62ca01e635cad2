//! The arguments of `tracekit gate`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

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

/// Puts how gates end behind their examples.
macro_rules! examples {
    ($($name:ident = $($line:literal)+;)+) => {
        $(const $name: &str = concat!(
            "Examples:\n",
            $("  ", $line, "\n",)+
            "\nExit codes: 0 accept, 1 reject, 2 unusable input, 3 tune; --exit-zero: 0 for all three decisions.",
        );)+
    };
}

examples! {
    RECOMMEND =
        "tracekit gate recommend change.json"
        "tracekit gate recommend change.json --format report --bottleneck 'long kernels' --next-action 'keep it'";
    REGRESSION =
        "tracekit gate regression change.json --set regression.max_memory_growth_mb=256"
        "tracekit gate regression change.json --statistics";
    BUDGET =
        "tracekit evidence handoff 76.json -o handoff.json"
        "tracekit gate budget handoff.json --workload NAME --hardware NAME";
    SENSITIVITY =
        "tracekit gate sensitivity fixtures/gate/results/76_real_gpu_memory.json --relative"
        "tracekit gate sensitivity 76.json --format svg -o grid.svg";
    STRATEGIES =
        "tracekit gate strategies fixtures/gate/results/76_real_gpu_memory.json"
        "tracekit gate strategies 76.json --statistics --resolution 0.01";
    ACTIVATION =
        "tracekit gate activation-scope fixtures/gate/chain/activation.json --strategy 76.json";
    QUALIFY =
        "tracekit gate qualify --strategy 76.json --budget 75.json --profile 74_profile.json --phase 74_phase.json";
    THRESHOLDS =
        "tracekit gate thresholds > thresholds.toml"
        "tracekit gate strategies 76.json --thresholds thresholds.toml";
}

/// Decisions over measured records: accept, tune or reject
///
/// Reads records as JSON and says what their measurements decide, by thresholds that are told. Numbers of a
/// profiler explain and never decide; a record that says it was profiled is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct Args {
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
    pub(super) explain: Option<String>,

    #[command(subcommand)]
    pub(super) gate: Option<Gate>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Gate {
    /// Is one change worth keeping? FILE has base and tuned, or a summary
    #[command(after_long_help = RECOMMEND)]
    Recommend(RecommendArgs),
    /// May a change be adopted over several workloads? FILE has contract, workload_records, original_bottleneck
    #[command(after_long_help = REGRESSION)]
    Regression(SampledArgs),
    /// Does a hand-off of strategies fit a budget, also a stricter one?
    #[command(after_long_help = BUDGET)]
    Budget(BudgetArgs),
    /// Does the decision about strategies hang on a threshold?
    #[command(after_long_help = SENSITIVITY)]
    Sensitivity(SensitivityArgs),
    /// Does a memory strategy fit the budget, and is it worth its cost?
    #[command(after_long_help = STRATEGIES)]
    Strategies(SampledArgs),
    /// Does checkpointing save activation memory, by a ladder of lengths?
    #[command(after_long_help = ACTIVATION)]
    ActivationScope(ActivationArgs),
    /// May profiled strategies go on, by what they measured without the profiler?
    #[command(after_long_help = QUALIFY)]
    Qualify(QualifyArgs),
    /// Prints the default thresholds, to change and give back with --thresholds
    #[command(after_long_help = THRESHOLDS)]
    Thresholds,
}

/// Thresholds, and where the verdict goes.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// Take thresholds from FILE (TOML); `tracekit gate thresholds` prints the defaults
    #[arg(long, value_name = "FILE", help_heading = "Thresholds")]
    pub(super) thresholds: Option<PathBuf>,

    /// Set one threshold, such as budget.memory_cap_mb=9600; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Thresholds")]
    pub(super) changes: Vec<String>,

    /// Format of the verdict
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub(super) format: Format,

    /// Write to FILE, before a failing exit; - is standard output
    #[arg(
        id = "output",
        short,
        long,
        value_name = "FILE",
        help_heading = "Output"
    )]
    pub(super) file: Option<PathBuf>,

    /// Also write the verdict as JSON to FILE, before a failing exit
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) record: Option<PathBuf>,

    /// Exit with 0 whatever the decision is
    #[arg(long, help_heading = "Output")]
    pub(super) exit_zero: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct FileArgs {
    /// The record, as JSON; - for standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    #[command(flatten)]
    pub(super) common: Common,
}

/// A record whose repeats can be taken as samples.
#[derive(Debug, clap::Args)]
pub(super) struct SampledArgs {
    #[command(flatten)]
    pub(super) input: FileArgs,

    /// Also take repeats as samples; stands beside the decision and never replaces it
    #[arg(long, help_heading = "Statistics")]
    pub(super) statistics: bool,

    /// Probability with which all intervals together may be wrong
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.05,
        requires = "statistics",
        help_heading = "Statistics"
    )]
    #[arg(value_parser = share)]
    pub(super) alpha: f64,

    /// Difference from a threshold that is to be told, as a share of the baseline
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.02,
        requires = "statistics",
        help_heading = "Statistics"
    )]
    #[arg(value_parser = share)]
    pub(super) resolution: f64,
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
pub(super) struct RecommendArgs {
    #[command(flatten)]
    pub(super) input: FileArgs,

    /// What limits the run, for --format report
    #[arg(long, value_name = "TEXT", help_heading = "Report")]
    pub(super) bottleneck: Option<String>,

    /// What to do now, for --format report
    #[arg(long, value_name = "TEXT", help_heading = "Report")]
    pub(super) next_action: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct BudgetArgs {
    #[command(flatten)]
    pub(super) input: FileArgs,

    /// Which workload the budget is for [default: workload_id beside the hand-off]
    #[arg(long, value_name = "ID", help_heading = "Input")]
    pub(super) workload: Option<String>,

    /// Which hardware the budget is for [default: hardware_id beside the hand-off]
    #[arg(long, value_name = "ID", help_heading = "Input")]
    pub(super) hardware: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct SensitivityArgs {
    #[command(flatten)]
    pub(super) input: FileArgs,

    /// Take thresholds relative to the baseline
    #[arg(long, help_heading = "Thresholds")]
    pub(super) relative: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ActivationArgs {
    #[command(flatten)]
    pub(super) input: FileArgs,

    /// The report of strategies that the ladder belongs to
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub(super) strategy: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct QualifyArgs {
    /// The report of strategies, measured without a profiler
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub(super) strategy: PathBuf,

    /// The budget decision, or the verdict of gate strategies
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub(super) budget: PathBuf,

    /// The report of profiled runs
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub(super) profile: PathBuf,

    /// The report of memory by phase, when there is one
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(super) phase: Option<PathBuf>,

    #[command(flatten)]
    pub(super) common: Common,
}

/// Format of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
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
    /// The text as one page for browsers, with pictures
    Html,
    /// The picture alone; of sensitivity, qualify and activation-scope
    Svg,
    /// The optimisation report of six lines; only of recommend
    Report,
}
