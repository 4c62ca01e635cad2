//! The command line: the only place that knows arguments, terminals and exit codes.
//!
//! Standard output has results only, whole or not at all. Standard error has progress and one-line
//! messages that start with `tracekit: `.

mod annotate;
mod args;
mod attribute;
#[cfg(feature = "batch")]
mod batch;
mod change;
#[cfg(all(feature = "collect", unix))]
mod collect;
#[cfg(not(all(feature = "collect", unix)))]
#[path = "no_collect.rs"]
mod collect;
mod compare;
mod decision;
mod doctor;
mod evidence;
mod exit;
#[cfg(feature = "frames")]
mod export;
mod gate;
mod generate;
mod infer;
mod inspect;
#[cfg(not(feature = "batch"))]
mod no_frames;
mod output;
mod progress;
#[cfg(feature = "frames")]
mod query;
mod reading;
mod redact;
mod remarks;
mod repair;
mod report;
mod rewrite;
mod slice;
mod temporary;
mod threads;
mod usage;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use clap::{Parser, Subcommand};

pub use exit::Exit;

use crate::error::Error;
use crate::ingest::kind;

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  with --strict: events or files are missing from the numbers; gate: reject;
     compare --fail-on, batch check: what was asked for
  2  wrong usage, or an input that cannot be read; nothing is printed
  3  gate: tune
  4  done, but some files of a folder could not be read";

/// Tells where GPU training time goes, from PyTorch profiler traces.
#[derive(Debug, Parser)]
#[command(name = "tracekit", version, propagate_version = true, after_help = AFTER_HELP)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Attribute(attribute::Args),
    Inspect(inspect::Args),
    Compare(compare::Args),
    Infer(infer::Args),
    #[cfg(feature = "frames")]
    Query(query::Args),
    #[cfg(feature = "frames")]
    Export(export::Args),
    #[cfg(feature = "batch")]
    Batch(Box<batch::Args>),
    #[cfg(not(feature = "frames"))]
    Query(no_frames::Args),
    #[cfg(not(feature = "frames"))]
    Export(no_frames::Args),
    #[cfg(not(feature = "batch"))]
    Batch(no_frames::Args),
    Doctor(doctor::Args),
    Gate(gate::Args),
    Report(report::Args),
    Evidence(evidence::Args),
    Repair(repair::Args),
    Slice(slice::Args),
    Redact(redact::Args),
    Collect(collect::Args),
    Annotate(annotate::Args),
    #[command(hide = true)]
    Generate(generate::Args),
}

/// Runs the program with `arguments`, the first of which is its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let salvages = arguments.iter().any(|argument| argument == "--salvage");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let done = match &cli.command {
        Command::Attribute(args) => attribute::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Infer(args) => infer::run(args),
        #[cfg(feature = "frames")]
        Command::Query(args) => query::run(args),
        #[cfg(feature = "frames")]
        Command::Export(args) => export::run(args),
        #[cfg(feature = "batch")]
        Command::Batch(args) => batch::run(args),
        #[cfg(not(feature = "frames"))]
        Command::Query(args) | Command::Export(args) => no_frames::run(args),
        #[cfg(not(feature = "batch"))]
        Command::Batch(args) => no_frames::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Gate(args) => gate::run(args),
        Command::Report(args) => report::run(args),
        Command::Evidence(args) => evidence::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Slice(args) => slice::run(args),
        Command::Redact(args) => redact::run(args),
        Command::Collect(args) => collect::run(args),
        Command::Annotate(args) => annotate::run(args),
        Command::Generate(args) => generate::run(args),
    };
    done.unwrap_or_else(|error| {
        let advice = if salvages {
            ""
        } else {
            advice(&cli.command, &error)
        };
        output::say(&format!("{error}{advice}"));
        Exit::Failure
    })
}

/// What helps where `error` is about a damaged trace.
fn advice(command: &Command, error: &Error) -> &'static str {
    let is_damaged = error.is_damage() && error.path().is_some_and(is_like_a_trace);
    match command {
        _ if !is_damaged => "",
        Command::Attribute(_)
        | Command::Inspect(_)
        | Command::Compare(_)
        | Command::Infer(_)
        | Command::Report(_) => " (--salvage reads what is whole)",
        #[cfg(feature = "frames")]
        Command::Query(_) | Command::Export(_) => " (--salvage reads what is whole)",
        Command::Repair(_) => " (--salvage keeps what is whole)",
        Command::Slice(_) | Command::Redact(_) | Command::Annotate(_) => {
            " (tracekit repair --salvage keeps what is whole)"
        }
        _ => "",
    }
}

/// True for a file that starts as traces do.
fn is_like_a_trace(path: &Path) -> bool {
    // A pipe cannot be read again.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1 << 20).read_to_end(&mut start));
    read.is_ok() && kind::is_like_a_trace(&kind::head_of(&start))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_argument_is_explained_under_a_heading() {
        let command = Cli::command();
        for sub in command.get_subcommands() {
            assert!(sub.get_about().is_some() && sub.get_after_long_help().is_some());
            for argument in sub
                .get_arguments()
                .filter(|argument| !argument.is_positional())
            {
                assert!(argument.get_help().is_some(), "{}", argument.get_id());
                assert!(
                    argument.get_help_heading().is_some(),
                    "{}",
                    argument.get_id()
                );
            }
        }
    }
}
