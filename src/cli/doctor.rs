//! `tracekit doctor`: whether a trace can be trusted, and for what.

use std::path::PathBuf;

use clap::ValueEnum;

use super::args::When;
use super::exit::Exit;
use super::output::{Target, say};
use super::progress::Progress;
use super::threads;
use crate::attribute::Salvage;
use crate::doctor::{Diagnosis, Examination, codes, diagnose_paths};
use crate::error::{Error, ErrorKind, Result};
use crate::health::{HealthCode, Severity};
use crate::ingest::IngestOptions;
use crate::report::{self, Document, codes_document, diagnosis_document};
use crate::rewrite::salvage;

const EXAMPLES: &str = "\
Examples:
  tracekit doctor trace.pt.trace.json.gz
      Can this trace be trusted, and what is wrong with it?
  tracekit doctor runs/ --strict
      Fails when anything is missing from any trace, before numbers are drawn from them.
  tracekit doctor killed.pt.trace.json.tmp --salvage
      What the part of a damaged file can be used for that is whole.
  tracekit doctor --explain pre_window
      What a finding means, how it is found and what to do about it.

Exit codes:
  0  done, whatever the verdicts are
  1  with --strict: a finding is data_loss or error
  2  wrong usage, or a file that is named and is no trace; nothing is printed
  4  done, but some files of a folder could not be opened";

/// Whether a trace can be trusted, and for what
///
/// Gives every file a verdict (trustworthy, usable with care, or not usable for something) and the
/// findings behind it: records that the profiler lost, impossible times, steps that were cut, ranks that
/// started apart, files that are no profiles, and so on.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
pub(super) struct Args {
    /// Trace files, folders of them, or - for standard input
    #[arg(value_name = "PATH", required_unless_present = "explain")]
    paths: Vec<PathBuf>,

    /// Explain the finding CODE, or list all of them
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

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    output: Output,
}

/// How to read, and with how much of the machine.
#[derive(Debug, clap::Args)]
struct Reading {
    /// Read what is whole in damaged files; what is skipped is told
    #[arg(long, conflicts_with = "explain", help_heading = "Input")]
    salvage: bool,

    /// Read files instead of mapping them into memory
    ///
    /// For files that another program may cut short meanwhile: what is gone of a mapped file ends this
    /// program without a word (SIGBUS). It takes as much memory as the files have bytes.
    #[arg(long, help_heading = "Input")]
    no_mmap: bool,

    /// Use N threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", help_heading = "Input")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Where the diagnosis goes and how it looks.
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

    /// Exit with 1 when a finding is data_loss or error
    #[arg(long, help_heading = "Output")]
    strict: bool,

    /// No progress, no warnings on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Show findings for information, too, and every file
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

/// Format of a diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A report for people
    Text,
    /// Everything, schema tracekit.doctor/v1
    Json,
    /// The report as Markdown
    Markdown,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let target = Target::new(args.output.file.as_deref())?;
    if let Some(code) = &args.explain {
        return explain(args, &target, code);
    }
    target.check_inputs(&args.paths)?;
    threads::start(args.reading.threads)?;
    let examination = Examination {
        paths: &args.paths,
        ingest: IngestOptions {
            mmap: !args.reading.no_mmap,
            ..IngestOptions::default()
        },
        salvage: args.reading.salvage.then_some(salvage as Salvage),
    };
    let progress = Progress::new(args.output.progress, args.output.quiet);
    let diagnosis = diagnose_paths(&examination, &|event| progress.observe(event))?;
    drop(progress);
    let document = || diagnosis_document(&diagnosis, args.output.verbose);
    target.write(&rendered(args, &target, &diagnosis, document)?)?;
    Ok(ended(args, &diagnosis))
}

fn explain(args: &Args, target: &Target, name: &str) -> Result<Exit> {
    let only = match name {
        "" => None,
        name => Some(HealthCode::from_name(name).ok_or_else(|| {
            let message = format!("no finding is called '{name}'; --explain alone lists them");
            Error::new(ErrorKind::Usage, message)
        })?),
    };
    let codes = codes(only);
    let document = || codes_document(&codes);
    target.write(&rendered(args, target, &codes, document)?)?;
    Ok(Exit::Done)
}

fn rendered<T: serde::Serialize>(
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

/// Tells of files that are not in the result, where it does not tell so itself.
fn ended(args: &Args, diagnosis: &Diagnosis) -> Exit {
    let failed = || diagnosis.skipped.iter().filter(|file| file.failed);
    if args.output.format == Format::Json && !args.output.quiet {
        for file in failed() {
            say(&format!("skipped {}: {}", file.path, file.reason));
        }
    }
    let of_files = diagnosis.files.iter().flat_map(|file| &file.findings);
    let of_runs = diagnosis.runs.iter().flat_map(|run| &run.findings);
    let worst = of_files
        .chain(of_runs)
        .map(|finding| finding.severity)
        .max();
    if args.output.strict && worst >= Some(Severity::DataLoss) {
        Exit::Strict
    } else if failed().next().is_some() {
        Exit::SomeInputsFailed
    } else {
        Exit::Done
    }
}
