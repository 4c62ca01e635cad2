//! `tracekit attribute`: where the time goes, by phase.

use clap::ValueEnum;

use super::args::{Format, InputArgs, OutputArgs};
use super::exit::Exit;
use super::output::Target;
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::remarks::Remarks;
use super::threads;
use crate::attribute::{Attribution, attribute_paths};
use crate::error::{Error, ErrorKind, Result};
use crate::report::{
    self, AttributionView, By, attribution_document, attribution_picture, attribution_rows,
};

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
  tracekit attribute trace/ --format svg -o phases.svg
      Bars of phases, step by step.

Exit codes:
  0  done
  1  with --strict: events or files are missing from the numbers
  2  wrong usage, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read";

const FORMATS: [Format; 6] = [
    Format::Text,
    Format::Json,
    Format::Csv,
    Format::Markdown,
    Format::Svg,
    Format::Github,
];

/// Time by phase (forward, backward, recompute, optimizer), step, device and rank
///
/// Links device work to the host code that launched it, and so to a training phase. Buckets add up
/// to the total exactly; what belongs to no phase is shown as such.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(mut_arg("format", |format| format.value_parser(Format::only(&FORMATS))))]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

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

    /// Count first and last steps that the capture cuts
    #[arg(long, help_heading = "Selection")]
    include_partial_steps: bool,
}

/// What a row of the main table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    Phase,
    Step,
    Device,
    Rank,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let target = Target::new(args.output.output.as_deref())?;
    target.check_inputs(&args.input.paths)?;
    threads::start(args.input.threads)?;
    let attribution = attributed(args)?;
    target.write(&rendered(args, &target, &attribution)?)?;
    let remarks = Remarks::from(&attribution);
    if !args.output.quiet {
        remarks.say(args.output.format.into());
    }
    Ok(remarks.exit(args.output.strict))
}

fn attributed(args: &Args) -> Result<Attribution> {
    let mut options = args.reading.options();
    options.include_partial_steps = args.include_partial_steps;
    options.top = args.top.unwrap_or(options.top);
    let hash = args.output.format == Format::Json;
    let request = args
        .reading
        .request(&args.input, &args.input.paths, &options, hash);
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
        Format::Svg => report::svg::render(&attribution_picture(attribution)),
        Format::Github => {
            let document = document();
            let level = report::github::Level::Notice;
            let health = &attribution.health;
            report::github::render(&document.title, &document.lead, level, health)
        }
        Format::Html => return args.output.format.refused(),
        Format::Json => report::json::render(attribution)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}
