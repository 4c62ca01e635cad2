//! `tracekit batch merge`.

use std::path::PathBuf;

use crate::batch::{merge, report_document};
use crate::cli::exit::Exit;
use crate::cli::output::Target;
use crate::error::Result;
use crate::report;

const EXAMPLES: &str = "\
Examples:
  tracekit batch merge part-*/ -o dataset/
      All parts of a job array together, as if one batch had made them.

Exit codes:
  0  done
  2  a part is missing, twice, unfinished or of other inputs; or nothing can be written
  4  done, but some inputs could not be read";

/// Puts the datasets of all parts (--shard I/N) together, and checks that nothing is missing or twice
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Datasets of all parts
    #[arg(value_name = "DIR", required = true)]
    shards: Vec<PathBuf>,

    /// Folder of the dataset; made when it is not there
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: PathBuf,

    /// Write a page for every run, as for the parts when all of them have such pages
    #[arg(long, help_heading = "Output")]
    reports: bool,
}

/// Runs the merge.
pub(super) fn run(args: &Args) -> Result<Exit> {
    crate::cli::threads::start(None)?;
    let merged = merge(&args.shards, &args.output, args.reports)?;
    let (width, styled) = (Target::Stdout.width(), Target::Stdout.is_styled());
    let options = report::text::TextOptions { width, styled };
    let document = report_document(&merged.report, &args.output);
    Target::Stdout.write(&report::text::render(&document, options))?;
    Ok(super::start::exit(&merged.report))
}
