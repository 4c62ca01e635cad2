//! `tracekit compare`: whether a change made training faster, and what it cost.

use std::path::PathBuf;

use clap::ValueEnum;

use super::args::{Format, InputArgs, OutputArgs};
use super::change::{alpha, effect};
use super::exit::Exit;
use super::output::Target;
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::remarks::say_remarks;
use super::threads;
use crate::compare::{CompareOptions, Comparison, SideSummary, Verdict, compare_paths};
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::Frame;
use crate::report::{self, comparison_document, comparison_page, frame_rows};

const EXAMPLES: &str = "\
Examples:
  tracekit compare before.pt.trace.json.gz after.pt.trace.json.gz
      Is the step faster, what changed, and what did it cost?
  tracekit compare before/ after/ --fail-on slower
      Folders of repeats and ranks; exits with 1 when training became slower.
  tracekit compare before/ after/ --format html -o compared.html
      The same as a page; tracekit report --base before/ --cand after/ has the traces in it, too.
  tracekit compare --base a1.json --base a2.json --cand b1.json --cand b2.json
      Several paths a side.
  tracekit attribute runs/baseline --format json -o baseline.json
  tracekit compare baseline.json after/
      With a saved attribution: times by phase and step, not operators.

Exit codes:
  0  done
  1  with --fail-on: that is the verdict; with --strict: events or files are missing from the numbers
  2  wrong usage, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read";

const FORMATS: [Format; 5] = [
    Format::Text,
    Format::Json,
    Format::Csv,
    Format::Markdown,
    Format::Html,
];

/// Whether training became faster, what changed, and what it cost
///
/// The verdict is on the time of whole steps: a change counts when chance makes one as large less often
/// than --alpha, and it is as large as --min-effect.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(mut_arg("format", |format| format.value_parser(Format::only(&FORMATS))))]
#[command(override_usage = "tracekit compare [OPTIONS] <BASE> <CAND>\n       \
    tracekit compare [OPTIONS] --base <PATH>... --cand <PATH>...")]
#[command(mut_arg("paths", |paths| paths
    .required(false)
    .value_names(["BASE", "CAND"])
    .help("Two trace files, folders of them, or results of tracekit attribute --format json")))]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    /// A path of the base; may be repeated, instead of BASE and CAND
    #[arg(long = "base", value_name = "PATH", help_heading = "Input")]
    #[arg(requires = "candidates", conflicts_with = "paths")]
    bases: Vec<PathBuf>,

    /// A path of the candidate; may be repeated
    #[arg(long = "cand", value_name = "PATH", help_heading = "Input")]
    #[arg(requires = "bases", conflicts_with = "paths")]
    candidates: Vec<PathBuf>,

    /// A difference is a change when chance makes one as large less often than this
    #[arg(long, value_name = "P", default_value_t = 0.01, help_heading = "Test")]
    #[arg(value_parser = alpha)]
    alpha: f64,

    /// Smallest change that counts, such as 3% or 0.03 [default: 3%, between repeats 1%]
    #[arg(long, value_name = "PART", help_heading = "Test", value_parser = effect)]
    min_effect: Option<f64>,

    /// Exit with 1 when this is the verdict; may be repeated
    #[arg(long, value_name = "VERDICT", help_heading = "Test")]
    fail_on: Vec<Failure>,

    /// Name the N operators and kernels that changed most; the rest is one row
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Report")]
    top: usize,

    /// The table that CSV has, by its name in JSON [default: phases]
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    table: Option<String>,
}

/// What to fail on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Failure {
    Slower,
    Inconclusive,
    OtherWork,
}

/// The paths of both sides.
fn sides(args: &Args) -> Result<[&[PathBuf]; 2]> {
    match args.input.paths.as_slice() {
        [] if !args.bases.is_empty() => Ok([&args.bases, &args.candidates]),
        [base, candidate] => Ok([std::slice::from_ref(base), std::slice::from_ref(candidate)]),
        _ => {
            let message = "compare what with what? use: tracekit compare BASE CAND, or --base and \
                           --cand for several paths each";
            Err(Error::new(ErrorKind::Usage, message))
        }
    }
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let [base, candidate] = sides(args)?;
    let target = Target::of_format(args.output.output.as_deref(), args.output.format)?;
    for paths in [base, candidate] {
        target.check_inputs(paths)?;
    }
    threads::start(args.input.threads)?;
    let attribute = args.reading.options();
    let request = |paths| args.reading.request(&args.input, paths, &attribute, false);
    let options = CompareOptions {
        alpha: args.alpha,
        min_effect: args.min_effect,
        top: args.top,
    };
    let progress = Progress::new(args.output.progress, args.output.quiet);
    let comparison = compare_paths(&request(base), &request(candidate), &options, &|event| {
        progress.observe(event);
    })?;
    drop(progress);
    target.write(&rendered(args, &target, &comparison)?)?;
    Ok(ended(args, &comparison))
}

fn rendered(args: &Args, target: &Target, comparison: &Comparison) -> Result<String> {
    let document = || comparison_document(comparison, args.output.verbose);
    Ok(match args.output.format {
        Format::Text => {
            let width = target.width();
            let styled = target.is_styled();
            report::text::render(&document(), report::text::TextOptions { width, styled })
        }
        Format::Markdown => report::markdown::render(&document()),
        Format::Html => report::html::render(&comparison_page(comparison, args.output.verbose)),
        Format::Svg | Format::Github => return args.output.format.refused(),
        Format::Csv => report::csv::render(&frame_rows(chosen(args, comparison)?)),
        Format::Json => report::json::render(comparison)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}

/// The one table that CSV can hold.
fn chosen<'a>(args: &Args, comparison: &'a Comparison) -> Result<&'a Frame> {
    let name = args.table.as_deref().unwrap_or("phases");
    let frames = &comparison.frames;
    frames
        .iter()
        .find(|frame| frame.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = frames.iter().map(|frame| frame.name).collect();
            let message = format!("no table is called '{name}' here: {}", known.join(", "));
            Error::new(ErrorKind::Usage, message)
        })
}

fn ended(args: &Args, comparison: &Comparison) -> Exit {
    let sides = [&comparison.base, &comparison.candidate];
    let failed = |side: &&SideSummary| side.skipped.iter().any(|input| input.failed);
    if !args.output.quiet {
        for side in sides {
            say_remarks(args.output.format.into(), &side.skipped, &side.health);
        }
    }
    let fails = args.fail_on.iter().any(|failure| match failure {
        Failure::Slower => comparison.step.judgement.verdict == Verdict::Slower,
        Failure::Inconclusive => comparison.step.judgement.verdict == Verdict::Inconclusive,
        Failure::OtherWork => comparison.step.same_work == Some(false),
    });
    let mut findings = sides.iter().flat_map(|side| &side.health);
    let lost = findings.any(|found| matches!(found.severity.as_str(), "data_loss" | "error"));
    if fails || (args.output.strict && lost) {
        Exit::Strict
    } else if sides.iter().any(failed) {
        Exit::SomeInputsFailed
    } else {
        Exit::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_may_be_percent() {
        assert_eq!(effect("3%"), Ok(0.03));
        assert_eq!(effect("0.5"), Ok(0.5));
        for wrong in ["", "x", "-1%", "101%", "nan", "inf"] {
            assert!(effect(wrong).is_err(), "{wrong}");
        }
        assert_eq!(alpha("0.05"), Ok(0.05));
        for wrong in ["0", "1", "x", "nan"] {
            assert!(alpha(wrong).is_err(), "{wrong}");
        }
    }
}
