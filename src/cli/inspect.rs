//! `tracekit inspect`: breakdowns of traces, one topic at a time.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use regex::Regex;

use super::args::{Format, InputArgs, OutputArgs, TABLES};
use super::exit::Exit;
use super::output::Target;
use super::progress::Progress;
use super::reading::{ReadingArgs, pattern};
use super::remarks::Remarks;
use super::threads;
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{
    By, Definition, DeviceTable, Frame, InspectOptions, Inspection, MAX_GROUPS, Topic,
    inspect_paths,
};
use crate::report::{self, frame_rows, inspection_document};
use crate::units::Ns;

const EXAMPLES: &str = "\
Examples:
  tracekit inspect trace.pt.trace.json.gz
      What is in this trace?
  tracekit inspect idle runs/baseline --by step
      Why the devices idle in each step, and the longest gaps
  tracekit inspect operators trace.json --by phase --top 50
      Operators in each phase of training, with the device work they launch
  tracekit inspect ranks job/
      Which rank the others wait for
  tracekit inspect kernels trace.json --format csv > kernels.csv
  tracekit inspect idle trace.json --format json | jq '.frames[] | .name'
      The tables that --table can choose from

Exit codes:
  0  done
  1  with --strict: events or files are missing from the numbers
  2  wrong usage, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read";

/// Breaks traces down: why devices idle, operators, kernels, launches, communication, memory
///
/// Without a TOPIC it tells what is in each trace. A folder that is called like a topic is ./TOPIC.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(mut_arg("format", |format| format.value_parser(Format::only(&TABLES))))]
#[command(override_usage = "tracekit inspect [OPTIONS] [TOPIC] <PATH>...")]
#[command(mut_arg("paths", |paths| paths.help(topics())))]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    /// Group rows by this, too; may be repeated
    #[arg(long, value_name = "WHAT", help_heading = "Report")]
    by: Vec<Grouping>,

    /// Name the N largest, or give N examples; the rest is one row
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Report")]
    top: usize,

    /// The table that CSV has, by its name in JSON [default: the first]
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    table: Option<String>,

    /// Whose definitions to follow where they differ
    #[arg(
        long,
        value_name = "WHOSE",
        default_value = "tracekit",
        help_heading = "Report"
    )]
    definition: Whose,

    /// Device work whose name matches REGEX is in group NAME; may be repeated
    #[arg(long = "group", value_name = "NAME=REGEX", value_parser = group, help_heading = "Report")]
    groups: Vec<(String, Regex)>,

    /// Look at the annotations whose name contains NAME, instead of at steps (critical-path)
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    range: Option<String>,

    /// Which of those annotations, from 0 in order of time [default: all]
    #[arg(long, value_name = "N", requires = "range", help_heading = "Report")]
    instance: Option<usize>,

    /// Peak rates of devices, in TOML; they come before those that are known
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    devices: Option<PathBuf>,

    /// A gap up to so many nanoseconds is launch latency when the launch was made in time
    #[arg(
        long,
        value_name = "NS",
        default_value_t = 30_000,
        help_heading = "Report"
    )]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=1_000_000_000_000))]
    idle_threshold: i64,
}

/// What to group rows by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Grouping {
    Phase,
    Step,
    Stream,
    Shape,
    Module,
}

/// Whose definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Whose {
    Tracekit,
    Hta,
    Tensorboard,
}

/// A group of device work: its name and what it matches.
fn group(text: &str) -> std::result::Result<(String, Regex), String> {
    match text.split_once('=') {
        Some((name, expression)) if !name.trim().is_empty() => {
            Ok((name.to_owned(), pattern(expression)?))
        }
        _ => Err("use NAME=REGEX".to_owned()),
    }
}

/// The peak rates in the file `path`.
fn devices(path: &Path) -> Result<DeviceTable> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    DeviceTable::from_toml(&text).map_err(|error| error.in_file(path))
}

/// The help of the positional arguments, with every topic.
fn topics() -> String {
    let topics = Topic::ALL.map(|topic| format!("\n  {:<14} {}", topic.name(), topic.about()));
    format!(
        "What to break down, then trace files, folders of them, or - for standard input:{}",
        topics.concat()
    )
}

/// The topic and the paths behind it.
fn topic_and_paths(args: &Args) -> Result<(Topic, &[PathBuf])> {
    let paths = &args.input.paths;
    let named = paths
        .first()
        .and_then(|first| Topic::from_name(first.to_str()?));
    match (named, paths.as_slice()) {
        (Some(topic), [_]) => {
            let name = topic.name();
            let message = format!(
                "which trace? use: tracekit inspect {name} PATH (or ./{name} for a file of that name)"
            );
            Err(Error::new(ErrorKind::Usage, message))
        }
        (Some(topic), [_, paths @ ..]) => Ok((topic, paths)),
        (_, [first, _, ..]) if !first.exists() && first.as_os_str() != "-" => {
            let known = Topic::ALL.map(Topic::name).join(", ");
            let message = format!(
                "'{}' is neither a topic nor a file; topics are {known}",
                first.display()
            );
            Err(Error::new(ErrorKind::Usage, message))
        }
        (_, paths) => Ok((Topic::Summary, paths)),
    }
}

/// What a topic does not know would change nothing in silence.
fn check_options(args: &Args, topic: Topic) -> Result<()> {
    let definition = args.definition.of_library();
    let groups = topic.groups_by(definition);
    let by = grouping(args).find(|by| !groups.contains(by));
    let refused = |what: String, known: String| {
        let message = format!("{} {what}; {known}", topic.name());
        Err(Error::new(ErrorKind::Usage, message))
    };
    if let Some(by) = by {
        let known: Vec<&str> = groups.iter().map(|by| by.name()).collect();
        let known = match known.as_slice() {
            [] if definition != Definition::Tracekit => {
                format!(
                    "with the definition of {} it has no --by",
                    definition.name()
                )
            }
            [] => "it has no --by".to_owned(),
            known => format!("it knows {}", known.join(", ")),
        };
        return refused(format!("cannot be told apart by {}", by.name()), known);
    }
    if !topic.definitions().contains(&definition) {
        let known = topic.definitions().iter().map(|known| known.name());
        let known: Vec<&str> = known.collect();
        let what = format!("has no definition of {}", definition.name());
        return refused(what, format!("there is that of {}", known.join(", ")));
    }
    Ok(())
}

fn grouping(args: &Args) -> impl Iterator<Item = By> {
    args.by.iter().map(|by| match by {
        Grouping::Phase => By::Phase,
        Grouping::Step => By::Step,
        Grouping::Stream => By::Stream,
        Grouping::Shape => By::Shape,
        Grouping::Module => By::Module,
    })
}

impl Whose {
    fn of_library(self) -> Definition {
        match self {
            Self::Tracekit => Definition::Tracekit,
            Self::Hta => Definition::Hta,
            Self::Tensorboard => Definition::Tensorboard,
        }
    }
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let (topic, paths) = topic_and_paths(args)?;
    check_options(args, topic)?;
    let target = Target::new(args.output.output.as_deref())?;
    target.check_inputs(paths)?;
    if args.groups.len() > MAX_GROUPS {
        let message = format!("--group can be given {MAX_GROUPS} times at most");
        return Err(Error::new(ErrorKind::Usage, message));
    }
    threads::start(args.input.threads)?;
    let inspection = inspected(args, topic, paths)?;
    target.write(&rendered(args, &target, &inspection)?)?;
    let remarks = Remarks {
        skipped: &inspection.skipped,
        health: &inspection.health,
    };
    if !args.output.quiet {
        remarks.say(args.output.format.into());
    }
    Ok(remarks.exit(args.output.strict))
}

fn inspected(args: &Args, topic: Topic, paths: &[PathBuf]) -> Result<Inspection> {
    let attribute = args.reading.options();
    let hash = args.output.format == Format::Json;
    let request = args.reading.request(&args.input, paths, &attribute, hash);
    let options = InspectOptions {
        by: grouping(args).collect(),
        idle_threshold: Ns(args.idle_threshold),
        definition: args.definition.of_library(),
        top: args.top,
        groups: args.groups.clone(),
        range: args.range.clone(),
        instance: args.instance,
        devices: args.devices.as_deref().map(devices).transpose()?,
    };
    let progress = Progress::new(args.output.progress, args.output.quiet);
    inspect_paths(&request, topic, &options, &|event| progress.observe(event))
}

fn rendered(args: &Args, target: &Target, inspection: &Inspection) -> Result<String> {
    let document = || inspection_document(inspection, args.output.verbose);
    Ok(match args.output.format {
        Format::Text => {
            let width = target.width();
            let styled = target.is_styled();
            report::text::render(&document(), report::text::TextOptions { width, styled })
        }
        Format::Markdown => report::markdown::render(&document()),
        Format::Html | Format::Svg | Format::Github => return args.output.format.refused(),
        Format::Csv => report::csv::render(&frame_rows(chosen(args, inspection)?)),
        Format::Json => report::json::render(inspection)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}

/// The one table that CSV can hold.
fn chosen<'a>(args: &Args, inspection: &'a Inspection) -> Result<&'a Frame> {
    let frames = &inspection.frames;
    let chosen = match &args.table {
        None => frames.first(),
        Some(name) => frames.iter().find(|frame| frame.name == name),
    };
    chosen.ok_or_else(|| {
        let name = args.table.as_deref().unwrap_or("");
        let known: Vec<&str> = frames.iter().map(|frame| frame.name).collect();
        let message = format!("no table is called '{name}' here: {}", known.join(", "));
        Error::new(ErrorKind::Usage, message)
    })
}
