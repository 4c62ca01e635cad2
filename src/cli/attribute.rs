//! `tracekit attribute`: where the time goes, by phase.

use clap::ValueEnum;
use regex::Regex;

use super::args::{Format, InputArgs, OutputArgs};
use super::exit::Exit;
use super::output::{Target, say};
use super::progress::Progress;
use super::threads;
use crate::attribute::{
    AttributeOptions, Attribution, Phase, RecomputeEvidence, Request, Salvage, StepRange,
    attribute_paths,
};
use crate::error::{Error, ErrorKind, Result};
use crate::health::Severity;
use crate::ingest::IngestOptions;
use crate::report::{self, AttributionView, By, attribution_document, attribution_rows};
use crate::rewrite::salvage;

const EXAMPLES: &str = "\
Examples:
  tracekit attribute trace.pt.trace.json.gz
      Where the time of one rank goes.
  tracekit attribute runs/ --expect baseline,checkpointed
      One run a sub-folder, compared with the first; fails when one is missing.
  tracekit attribute trace/ --by rank --steps 10..20
      Which rank is slow, over steps 10 to 20.
  tracekit attribute trace/ --phase forward='^fwd$' --comm '^my_allreduce'
      Names of your own for phases and communication kernels.
  tracekit attribute trace/ --format json -o result.json
      Everything, for programs.

Exit codes:
  0  done
  1  with --strict: events or files are missing from the numbers
  2  wrong usage, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read";

/// Time by phase (forward, backward, recompute, optimizer), step, device and rank
///
/// Links device work to the host code that launched it, and so to a training phase. Buckets add up
/// to the total exactly; what belongs to no phase is shown as such.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    /// Read what is whole in damaged files; what is skipped is told
    #[arg(long, help_heading = "Input")]
    salvage: bool,

    /// Rows of the main table (text and Markdown; JSON and CSV have every level)
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "phase",
        help_heading = "Report"
    )]
    by: Level,

    /// Name the N largest kernels of each phase [default: 3, none when runs are compared]
    #[arg(long, value_name = "N", help_heading = "Report")]
    top: Option<usize>,

    /// Only steps A to B, as in ProfilerStep#N, both included; also A.., ..B, or one number
    #[arg(long, value_name = "A..B", value_parser = step_range, help_heading = "Selection")]
    steps: Option<StepRange>,

    /// Count first and last steps that the capture cuts
    #[arg(long, help_heading = "Selection")]
    include_partial_steps: bool,

    /// Annotations that match REGEX name phase NAME: forward, backward, recompute, optimizer
    /// (or update), other; may be repeated, the first match decides
    #[arg(long = "phase", value_name = "NAME=REGEX", value_parser = phase, help_heading = "Attribution")]
    phases: Vec<(Phase, Regex)>,

    /// Kernels that match REGEX are communication; may be repeated
    #[arg(long = "comm", value_name = "REGEX", value_parser = pattern, help_heading = "Attribution")]
    communication: Vec<Regex>,

    /// What decides that work is recomputed; auto takes the strongest there is
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Attribution"
    )]
    recompute_evidence: Evidence,

    /// Infer phases as if no annotation named them
    #[arg(long, help_heading = "Attribution")]
    ignore_annotations: bool,
}

/// What a row of the main table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    Phase,
    Step,
    Device,
    Rank,
}

/// Evidence of recompute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Evidence {
    Auto,
    Annotation,
    Stack,
    Sequence,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let target = Target::new(args.output.output.as_deref())?;
    target.check_inputs(&args.input.paths)?;
    threads::start(args.input.threads)?;
    let attribution = attributed(args)?;
    target.write(&rendered(args, &target, &attribution)?)?;
    Ok(ended(args, &attribution))
}

fn attributed(args: &Args) -> Result<Attribution> {
    let mut options = AttributeOptions::default();
    options.phases.clone_from(&args.phases);
    options.communication.clone_from(&args.communication);
    options.steps = args.steps;
    options.ignore_annotations = args.ignore_annotations;
    options.include_partial_steps = args.include_partial_steps;
    options.recompute_evidence = match args.recompute_evidence {
        Evidence::Auto => RecomputeEvidence::Auto,
        Evidence::Annotation => RecomputeEvidence::Annotation,
        Evidence::Stack => RecomputeEvidence::Stack,
        Evidence::Sequence => RecomputeEvidence::Sequence,
    };
    options.top = args.top.unwrap_or(options.top);
    let ingest = IngestOptions {
        mmap: !args.input.no_mmap,
        ..IngestOptions::default()
    };
    let request = Request {
        salvage: args.salvage.then_some(salvage as Salvage),
        paths: &args.input.paths,
        ingest,
        options: &options,
        ranks: args.input.ranks.clone(),
        expect: args.input.expect.clone(),
        hash_inputs: args.output.format == Format::Json,
    };
    let progress = Progress::new(args.output.progress, args.output.quiet);
    attribute_paths(&request, &|event| progress.observe(event))
}

fn rendered(args: &Args, target: &Target, attribution: &Attribution) -> Result<String> {
    let document = || {
        let view = AttributionView {
            by: match args.by {
                Level::Phase => By::Phase,
                Level::Step => By::Step,
                Level::Device => By::Device,
                Level::Rank => By::Rank,
            },
            kernels_of_each_run: args.top.is_some(),
            verbose: args.output.verbose,
        };
        attribution_document(attribution, view)
    };
    Ok(match args.output.format {
        Format::Text => {
            let width = target.width();
            let styled = target.is_styled();
            report::text::render(&document(), report::text::TextOptions { width, styled })
        }
        Format::Markdown => report::markdown::render(&document()),
        Format::Csv => report::csv::render(&attribution_rows(attribution)),
        Format::Json => report::json::render(attribution)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}

/// Tells of files that are not in the result, where it does not tell so itself.
fn ended(args: &Args, attribution: &Attribution) -> Exit {
    let failed = || attribution.skipped.iter().filter(|input| input.failed);
    let tells_itself = matches!(args.output.format, Format::Text | Format::Markdown);
    if !tells_itself && !args.output.quiet {
        for input in failed() {
            say(&format!("skipped {}: {}", input.path, input.reason));
        }
    }
    let worst = attribution.health.iter().map(|entry| entry.severity).max();
    if args.output.strict && worst >= Some(Severity::DataLoss) {
        Exit::Strict
    } else if failed().next().is_some() {
        Exit::SomeInputsFailed
    } else {
        Exit::Done
    }
}

pub(super) fn step_range(text: &str) -> std::result::Result<StepRange, String> {
    let number = |text: &str| {
        let wrong = || "use A..B, A.., ..B or one number".to_owned();
        text.parse::<u64>().map_err(|_| wrong())
    };
    let range = match text.split_once("..") {
        None => {
            let only = number(text)?;
            StepRange {
                first: only,
                last: only,
            }
        }
        Some((first, last)) => StepRange {
            first: if first.is_empty() { 0 } else { number(first)? },
            last: if last.is_empty() {
                u64::MAX
            } else {
                number(last)?
            },
        },
    };
    if range.last < range.first {
        return Err("the last step comes before the first".to_owned());
    }
    Ok(range)
}

pub(super) fn phase(text: &str) -> std::result::Result<(Phase, Regex), String> {
    let Some((name, expression)) = text.split_once('=') else {
        return Err("use NAME=REGEX".to_owned());
    };
    let phase =
        Phase::from_name(name).or_else(|| (name == Phase::Other.as_str()).then_some(Phase::Other));
    let Some(phase) = phase else {
        return Err(format!(
            "no phase is called '{name}': use forward, backward, recompute, optimizer or other"
        ));
    };
    Ok((phase, pattern(expression)?))
}

pub(super) fn pattern(text: &str) -> std::result::Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        // The last line is the reason; those before it draw where it is.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        format!("no valid pattern: {}", reason.trim_start_matches("error: "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_ranges_include_both_ends_and_may_be_open() {
        let range = |first, last| Ok(StepRange { first, last });
        assert_eq!(step_range("3..5"), range(3, 5));
        assert_eq!(step_range("3.."), range(3, u64::MAX));
        assert_eq!(step_range("..5"), range(0, 5));
        assert_eq!(step_range("4"), range(4, 4));
        assert_eq!(step_range("4..4"), range(4, 4));
        for wrong in [
            "",
            "a",
            "-1",
            "1..x",
            "5..3",
            "1..2..3",
            "1...3",
            "99999999999999999999",
        ] {
            assert!(step_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_name_phases() {
        let named = |text| phase(text).map(|(phase, pattern)| (phase, pattern.as_str().to_owned()));
        assert_eq!(named("forward=a=b"), Ok((Phase::Forward, "a=b".to_owned())));
        assert_eq!(named("update=x"), Ok((Phase::Optimizer, "x".to_owned())));
        assert_eq!(named("other=x"), Ok((Phase::Other, "x".to_owned())));
        assert!(named("forward").is_err());
        assert_eq!(
            named("forward=["),
            Err("no valid pattern: unclosed character class".to_owned())
        );
    }
}
