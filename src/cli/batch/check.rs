//! `tracekit batch check`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::batch::{Baseline, CheckOptions, check, checked_document, junit};
use crate::cli::change::{alpha, effect};
use crate::cli::exit::Exit;
use crate::cli::output::Target;
use crate::error::{Error, ErrorKind, Result};
use crate::report;

const EXAMPLES: &str = "\
Examples:
  tracekit batch check dataset/ --baseline 2024-05-01/ddp
      Every run against one.
  tracekit batch check dataset/ --baseline median:5 --latest --format junit -o check.xml
      The last run of each strategy against the five before it, for a build server.

Exit codes:
  0  done; no run takes more time
  1  some run takes more time than noise explains
  2  wrong usage, or no dataset";

/// Checks runs against earlier ones: step time, phases, recompute and exposed communication
///
/// Times count as moved when they are significant (--alpha), large enough (--min-effect), and, against
/// several runs, farther away than those are from one another.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of the dataset
    #[arg(value_name = "DIR")]
    dataset: PathBuf,

    /// Against RUN, or the median of N runs of the same strategy before each: median:N
    #[arg(long, value_name = "RUN|median:N", help_heading = "Check")]
    baseline: Baseline,

    /// Only this run; may be repeated
    #[arg(long = "run", value_name = "RUN", help_heading = "Check")]
    runs: Vec<String>,

    /// Only the last run of each strategy
    #[arg(long, help_heading = "Check")]
    latest: bool,

    /// How often chance alone may make such a difference
    #[arg(long, value_name = "P", default_value_t = 0.01, help_heading = "Check")]
    #[arg(value_parser = alpha)]
    alpha: f64,

    /// Smallest change that counts, such as 3% or 0.03
    #[arg(
        long,
        value_name = "PART",
        default_value = "3%",
        help_heading = "Check"
    )]
    #[arg(value_parser = effect)]
    min_effect: f64,

    /// Format of the result
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    format: Format,

    /// Write to FILE, which is replaced only by a whole result; - is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Show also times that did not move
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

/// Format of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A report for people
    Text,
    /// Everything, schema tracekit.batch.check/v1
    Json,
    /// The report as Markdown
    Markdown,
    /// JUnit XML for build servers
    Junit,
}

/// Runs the check.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let target = Target::new(args.output.as_deref())?;
    let options = CheckOptions {
        baseline: args.baseline.clone(),
        runs: args.runs.clone(),
        latest: args.latest,
        alpha: args.alpha,
        min_effect: args.min_effect,
    };
    let checked = check(&args.dataset, &options)?;
    let document = || checked_document(&checked, args.verbose);
    let text = match args.format {
        Format::Text => {
            let (width, styled) = (target.width(), target.is_styled());
            report::text::render(&document(), report::text::TextOptions { width, styled })
        }
        Format::Markdown => report::markdown::render(&document()),
        Format::Junit => junit(&checked),
        Format::Json => report::json::render(&checked)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    };
    target.write(&text)?;
    Ok(if checked.has_regressed() {
        Exit::Regressed
    } else {
        Exit::Done
    })
}
