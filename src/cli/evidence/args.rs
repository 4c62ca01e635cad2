//! The arguments of `tracekit evidence`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::example;
use crate::evidence::FreeMemory;

const EXAMPLES: &str = "\
Examples:
  bash fixtures/gate/chain.sh
      The whole chain on measurements and traces that come with tracekit: 73, 76, 75, 74.
  tracekit evidence training --label run1 base.json tuned.json
      A training baseline (73) out of measured runs.
  tracekit evidence analyze --label run1 && tracekit evidence close --project 75 --label run1
      Strategies under a memory budget (75), and the decision.
  tracekit evidence profile --label run1 --traces runs/ --measurement profiled.json
      Takes traces in, attributes them, and writes the record of profiled runs (74).
  tracekit evidence checklist benchmarks/results
      The four questions at the end of the chain.

Records are written once under a label and never over another. Exit codes:
  0  done; the same label and content is complete already
  1  with --exit-by-decision: the decision is reject; preflight: blocked is 2
  2  wrong usage, or a rule does not hold; nothing is written
  3  with --exit-by-decision: tune; checklist: an answer is not yes";

/// Records of the evidence chain, from measurements to a closing decision
///
/// Puts measured runs, traces and phase memory together to records that name what they were made from by
/// path and hash, checks that all of them are about the same workload, and writes each once.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
pub(in crate::cli) struct Args {
    #[command(subcommand)]
    pub(super) command: Evidence,
}

#[derive(Debug, Subcommand)]
pub(super) enum Evidence {
    /// Creates a manifest of artefacts with their hashes, or verifies one
    #[command(subcommand, after_long_help = example::MANIFEST)]
    Manifest(ManifestCommand),
    /// Looks at everything that a project builds on, and writes nothing
    #[command(after_long_help = example::PREPARE)]
    Prepare(ProjectArgs),
    /// Writes a training baseline (73) out of two files of measurements
    #[command(after_long_help = example::TRAINING)]
    Training(TrainingArgs),
    /// Writes a report of memory strategies (76) out of files of measurements
    #[command(after_long_help = example::STRATEGIES)]
    Strategies(StrategiesArgs),
    /// Weighs strategies under a budget and a grid of others (75)
    #[command(after_long_help = example::ANALYZE)]
    Analyze(BudgetArgs),
    /// Takes in traces and writes the record of profiled runs (74)
    #[command(after_long_help = example::PROFILE)]
    Profile(ProfileArgs),
    /// Writes the record of memory by phase (74)
    #[command(after_long_help = example::PHASE)]
    Phase(PhaseArgs),
    /// Decides and writes the decision (75), or the closing record and the hand-off (74)
    #[command(after_long_help = example::CLOSE)]
    Close(ProjectArgs),
    /// Writes the hand-off of strategies to a budget
    #[command(after_long_help = example::HANDOFF)]
    Handoff(HandoffArgs),
    /// Writes raw results under one schema, as NAME_v1.json
    #[command(after_long_help = example::NORMALIZE)]
    Normalize(NormalizeArgs),
    /// Tells what results of any age are; also writes one in today's envelope
    #[command(after_long_help = example::IDENTIFY)]
    Identify(IdentifyArgs),
    /// Shows what a record of profiled runs says, for attribution only
    #[command(after_long_help = example::ATTRIBUTION)]
    Attribution(AttributionArgs),
    /// Whether this machine can measure, and has memory enough
    #[command(after_long_help = example::PREFLIGHT)]
    Preflight(PreflightArgs),
    /// Answers the four questions at the end of the chain from a folder of results
    #[command(after_long_help = example::CHECKLIST)]
    Checklist(ChecklistArgs),
    Tables(super::tables::Args),
}

/// Where a project is and what it decides by.
#[derive(Debug, clap::Args)]
pub(super) struct Project {
    /// The root that artefacts are relative to [default: found from LLM_ALGO_PROJECT_ROOT or here, upwards]
    #[arg(long, value_name = "DIR", help_heading = "Project")]
    pub(super) root: Option<PathBuf>,

    /// The manifest, relative to the root [default: where the project keeps it]
    #[arg(long, value_name = "FILE", help_heading = "Project")]
    pub(super) manifest: Option<PathBuf>,

    /// Fields of an identity that neither of two records has count as different
    #[arg(long, help_heading = "Project")]
    pub(super) strict: bool,

    /// Take thresholds from FILE (TOML); `tracekit gate thresholds` prints the defaults
    #[arg(long, value_name = "FILE", help_heading = "Thresholds")]
    pub(super) thresholds: Option<PathBuf>,

    /// Set one threshold, such as budget.memory_cap_mb=9600; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Thresholds")]
    pub(super) changes: Vec<String>,

    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// Format of what is told on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub(super) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One fact a line
    Text,
    /// Everything
    Json,
    /// The text as Markdown
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Number {
    /// The memory budget
    #[value(name = "75")]
    Budget,
    /// The closure
    #[value(name = "74")]
    Closure,
}

#[derive(Debug, clap::Args)]
pub(super) struct ProjectArgs {
    /// Which project
    #[arg(long, value_name = "N", help_heading = "Project")]
    pub(super) project: Number,

    /// Label of the records [default: the variable RUN_LABEL]
    #[arg(long, value_name = "LABEL", help_heading = "Project")]
    pub(super) label: Option<String>,

    /// A run of the same training at a greater length (74)
    #[arg(long, value_name = "FILE", help_heading = "Project")]
    pub(super) pressure: Option<PathBuf>,

    /// Exit with 1 for reject and 3 for tune, after writing
    #[arg(long, help_heading = "Output")]
    pub(super) exit_by_decision: bool,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct BudgetArgs {
    /// Label of the records [default: the variable RUN_LABEL]
    #[arg(long, value_name = "LABEL", help_heading = "Project")]
    pub(super) label: Option<String>,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct TrainingArgs {
    /// Measurements of the baseline, relative to the root
    #[arg(value_name = "BASELINE")]
    pub(super) baseline: PathBuf,

    /// Measurements of the run with one change
    #[arg(value_name = "TUNED")]
    pub(super) tuned: PathBuf,

    /// Label of the record [default: the variable RUN_LABEL]
    #[arg(long, value_name = "LABEL", help_heading = "Project")]
    pub(super) label: Option<String>,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct StrategiesArgs {
    /// Measurements, one file a strategy, relative to the root
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// The training baseline (73) that they belong to
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub(super) baseline: PathBuf,

    /// Label of the record [default: the variable RUN_LABEL]
    #[arg(long, value_name = "LABEL", help_heading = "Project")]
    pub(super) label: Option<String>,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct ProfileArgs {
    /// Label of the records [default: the variable RUN_LABEL]
    #[arg(long, value_name = "LABEL", help_heading = "Project")]
    pub(super) label: Option<String>,

    /// Traces, a folder a strategy
    #[arg(long, value_name = "DIR", required = true, help_heading = "Input")]
    pub(super) traces: PathBuf,

    /// What was measured under the profiler, one file a strategy; may be repeated
    #[arg(long = "measurement", value_name = "FILE", help_heading = "Input")]
    pub(super) measurements: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct PhaseArgs {
    /// Label of the records [default: the variable RUN_LABEL]
    #[arg(long, value_name = "LABEL", help_heading = "Project")]
    pub(super) label: Option<String>,

    /// What was measured at phase borders, one file a strategy; may be repeated
    #[arg(
        long = "measurement",
        value_name = "FILE",
        required = true,
        help_heading = "Input"
    )]
    pub(super) measurements: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) memory: Memory,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct Memory {
    /// Memory that was free before, MiB [default: from the measurements, else the driver]
    #[arg(
        long,
        value_name = "MIB",
        value_parser = amount,
        requires = "total_memory_mb",
        help_heading = "Input"
    )]
    pub(super) free_memory_mb: Option<f64>,

    /// All memory, MiB
    #[arg(
        long,
        value_name = "MIB",
        value_parser = amount,
        requires = "free_memory_mb",
        help_heading = "Input"
    )]
    pub(super) total_memory_mb: Option<f64>,
}

/// A finite number of 0 or more.
fn amount(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "is no number".to_owned())?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err("must be a finite number of 0 or more".to_owned())
    }
}

impl Memory {
    pub(super) fn given(&self) -> Option<FreeMemory> {
        Some(FreeMemory {
            free_mb: self.free_memory_mb?,
            total_mb: self.total_memory_mb?,
        })
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum ManifestCommand {
    /// Writes a manifest with the hashes of what is there now
    #[command(after_long_help = example::MANIFEST_CREATE)]
    Create(Box<ManifestArgs>),
    /// Checks every entry of a manifest
    #[command(after_long_help = example::MANIFEST_VERIFY)]
    Verify(VerifyArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ManifestArgs {
    /// Which project
    #[arg(long, value_name = "N", help_heading = "Project")]
    pub(super) project: Number,

    /// The training baseline (74)
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) baseline: Option<PathBuf>,

    /// The report of strategies
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) strategy: Option<PathBuf>,

    /// The budget decision (74)
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) budget: Option<PathBuf>,

    /// The activation ladder (74)
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) activation: Option<PathBuf>,

    /// The record of profiled runs (74)
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) profile: Option<PathBuf>,

    /// The folder of traces (74)
    #[arg(long, value_name = "DIR", help_heading = "Artefacts")]
    pub(super) trace_dir: Option<PathBuf>,

    /// The record of memory by phase (74)
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) phase: Option<PathBuf>,

    /// The decision that was approved before (75)
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) approved: Option<PathBuf>,

    /// Take what is not given from this manifest
    #[arg(long, value_name = "FILE", help_heading = "Artefacts")]
    pub(super) from: Option<PathBuf>,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Which project
    #[arg(long, value_name = "N", help_heading = "Project")]
    pub(super) project: Number,

    #[command(flatten)]
    pub(super) common: Project,
}

#[derive(Debug, clap::Args)]
pub(super) struct HandoffArgs {
    /// The report of strategies
    #[arg(value_name = "FILE")]
    pub(super) strategy: PathBuf,

    /// Name of the workload [default: from the configuration]
    #[arg(long, value_name = "ID", help_heading = "Identity")]
    pub(super) workload: Option<String>,

    /// Name of the hardware [default: the device of the configuration]
    #[arg(long, value_name = "ID", help_heading = "Identity")]
    pub(super) hardware: Option<String>,

    /// Write to FILE, once, instead of standard output
    #[arg(
        id = "output",
        short,
        long,
        value_name = "FILE",
        help_heading = "Output"
    )]
    pub(super) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct NormalizeArgs {
    /// Raw results
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Write to DIR instead of beside each file
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(super) output_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct IdentifyArgs {
    /// Results of any age
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Write the one result in today's envelope to FILE, once
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) modern: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct AttributionArgs {
    /// A record of profiled runs, of any age
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct PreflightArgs {
    /// The Python to ask
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "python3",
        help_heading = "Machine"
    )]
    pub(super) python: String,

    /// A package that must be there; may be repeated
    #[arg(long = "require", value_name = "PACKAGE", help_heading = "Machine")]
    pub(super) required: Vec<String>,

    /// A package that is good to have; may be repeated
    #[arg(long = "optional", value_name = "PACKAGE", help_heading = "Machine")]
    pub(super) optional: Vec<String>,

    /// There must be a GPU
    #[arg(long, help_heading = "Machine")]
    pub(super) require_gpu: bool,

    /// Least memory of the GPU, GiB
    #[arg(long, value_name = "GIB", value_parser = amount, help_heading = "Machine")]
    pub(super) min_gpu_memory_gb: Option<f64>,

    /// The GPU must compute in bfloat16
    #[arg(long, help_heading = "Machine")]
    pub(super) require_native_bf16: bool,

    /// Also ask whether memory by phase of this report of strategies may be measured
    #[arg(long, value_name = "FILE", help_heading = "Memory")]
    pub(super) strategy: Option<PathBuf>,

    #[command(flatten)]
    pub(super) memory: Memory,

    /// Set one threshold, such as phase.min_free_margin_mb=256; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Thresholds")]
    pub(super) changes: Vec<String>,

    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct ChecklistArgs {
    /// A folder of results
    #[arg(value_name = "DIR")]
    pub(super) folder: PathBuf,

    #[command(flatten)]
    pub(super) output: Output,
}
