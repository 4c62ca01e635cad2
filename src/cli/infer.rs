//! `tracekit infer`: what limits a run.

use std::fs;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::args::{InputArgs, When};
use super::exit::Exit;
use super::output::Target;
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::remarks::{Remarks, Told};
use super::threads;
use crate::error::{Error, ErrorKind, Result};
use crate::infer::{RuleText, Thresholds, explanations, infer_paths};
use crate::report::{self, Document, inferences_document, rules_document};

const EXAMPLES: &str = r#"Examples:
  tracekit infer trace.pt.trace.json.gz
      What limits this run, how sure is that, and what to do next?
  tracekit infer runs/ --format json --thresholds limits.toml
      The same for every run of a folder, with limits and rules of one's own.
  tracekit infer --explain host_bound
      What a rule asks and how it is tested.

Limits and rules, in the file of --thresholds:
  [exposed_communication]
  exposed_share = 0.25
  [[rule]]
  name = "many_small_copies"
  sql = "SELECT COUNT(*) FROM device_work WHERE class = 'memcpy' AND size_bytes < 4096"
  op = ">"
  threshold = 1000
  message = "More than 1000 copies of less than 4 KiB"
  next_action = "Put small tensors together before they are copied."

Exit codes:
  0  done, whatever the verdicts are
  2  wrong usage, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read"#;

/// Tests what may limit a run: supported, refuted, or evidence missing, with numbers and next actions
///
/// Each rule gives a verdict, the numbers behind it with the SQL that gives them, how sure it is, the most
/// that could be won, and what to do next. Effects overlap: they do not add up.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(mut_arg("paths", |paths| paths.required(false).required_unless_present("explain")))]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    /// Explain the rule CODE, or list all of them
    #[arg(
        long,
        value_name = "CODE",
        num_args = 0..=1,
        default_missing_value = "",
        hide_default_value = true,
        conflicts_with = "paths",
        help_heading = "Report"
    )]
    explain: Option<String>,

    /// Limits in TOML that replace the built-in ones, and rules of one's own
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    thresholds: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// Where inferences go and how they look.
#[derive(Debug, clap::Args)]
struct Output {
    /// Format of the result
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    format: Format,

    /// Write to FILE, which is replaced only by a whole result; - is standard output
    #[arg(
        id = "output",
        short,
        long,
        value_name = "FILE",
        help_heading = "Output"
    )]
    file: Option<PathBuf>,

    /// No progress, no messages on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Show the evidence of every rule
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    verbose: bool,

    /// Bold type in text on a terminal
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    color: When,

    /// Progress bar, only ever on a terminal; auto hides it for small inputs
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    progress: When,
}

/// Format of inferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A report for people
    Text,
    /// Everything, schema tracekit.inference/v1
    Json,
    /// The report as Markdown
    Markdown,
}

/// What rules ask, as JSON.
#[derive(Serialize)]
struct Rules {
    schema_version: &'static str,
    rules: Vec<RuleText>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let target = Target::new(args.output.file.as_deref())?;
    if let Some(code) = &args.explain {
        let rules = Rules {
            schema_version: "tracekit.inference.rules/v1",
            rules: explanations((!code.is_empty()).then_some(code))?,
        };
        target.write(&rendered(args, &target, &rules, || {
            rules_document(&rules.rules)
        })?)?;
        return Ok(Exit::Done);
    }
    target.check_inputs(&args.input.paths)?;
    let thresholds = thresholds(args)?;
    threads::start(args.input.threads)?;
    let options = args.reading.options();
    let hash = args.output.format == Format::Json;
    let request = args
        .reading
        .request(&args.input, &args.input.paths, &options, hash);
    let progress = Progress::new(args.output.progress, args.output.quiet);
    let inferences = infer_paths(&request, &thresholds, &|event| progress.observe(event))?;
    drop(progress);
    let document = || inferences_document(&inferences, args.output.verbose);
    target.write(&rendered(args, &target, &inferences, document)?)?;
    let remarks = Remarks {
        skipped: &inferences.skipped,
        health: &inferences.health,
    };
    if !args.output.quiet {
        remarks.say(match args.output.format {
            Format::Text | Format::Markdown => Told::ForPeople,
            Format::Json => Told::ForPrograms,
        });
    }
    Ok(remarks.exit(false))
}

fn thresholds(args: &Args) -> Result<Thresholds> {
    let Some(path) = &args.thresholds else {
        return Ok(Thresholds::default());
    };
    let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    Thresholds::with(&text).map_err(|error| error.in_file(path))
}

fn rendered<T: Serialize>(
    args: &Args,
    target: &Target,
    result: &T,
    document: impl Fn() -> Document,
) -> Result<String> {
    Ok(match args.output.format {
        Format::Text => {
            let width = target.width();
            let styled = target.is_styled();
            report::text::render(&document(), report::text::TextOptions { width, styled })
        }
        Format::Markdown => report::markdown::render(&document()),
        Format::Json => report::json::render(result)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}
