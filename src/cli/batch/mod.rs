//! `tracekit batch`: many traces into one dataset.

mod check;
mod merge;
mod progress;
mod start;
mod watch;

use clap::Subcommand;

use super::exit::Exit;
use crate::error::Result;

const EXAMPLES: &str = "\
Examples:
  tracekit batch runs/ 2024-*.tar.zst -o dataset/
      Analyse every trace in a folder and in archives; the same again does only what is new.
  find /traces -name '*.pt.trace.json.gz' | tracekit batch --list - -o dataset/ --pattern '{run}/{strategy}/rank{rank}'
      A list, and where its paths tell run, strategy and rank.
  tracekit query dataset/ \"SELECT run, step_median_ns FROM runs WHERE status = 'done' ORDER BY 2 DESC\"
      Ask the dataset; DuckDB, Spark and pandas read it, too.
  tracekit batch runs/ -o part-3/ --shard 3/7
  tracekit batch merge part-1/ part-2/ … part-7/ -o dataset/
      A part on each of seven machines, then all of them together.
  tracekit batch check dataset/ --baseline median:5 --latest
      Is the last run of each strategy slower than the five before it?

Exit codes:
  0    done
  1    check: a run takes more time than the baseline
  2    wrong usage, or a dataset that cannot be written
  4    done, but some inputs could not be read: rows of the table runs with the reason
  130  interrupted; what was done is kept, and the same command goes on";

/// Analyses folders and archives of traces into a dataset of Parquet tables, again and again
///
/// Archives (.tar, .tar.gz, .tar.zst, .tar.xz, .zip) are read in place. What was done before is not done
/// again, also after a crash. An input that cannot be read is a row with its error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    start: start::StartArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    Merge(merge::Args),
    Check(check::Args),
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    match &args.command {
        Some(Command::Merge(args)) => merge::run(args),
        Some(Command::Check(args)) => check::run(args),
        None => start::run(&args.start),
    }
}
