//! `tracekit annotate`: a trace for viewers, with phases, recompute and idle causes in it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::exit::Exit;
use super::rewrite::{EXIT_CODES, FileArgs, no_folder};
use crate::attribute::{AttributeOptions, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::{IngestOptions, Source};
use crate::inspect::{Entry, InspectOptions, Topic, inspect_paths};
use crate::rewrite::{AnnotateInput, annotate};
use crate::units::Ns;

const EXAMPLES: &str = "\
Examples:
  tracekit annotate trace.pt.trace.json.gz -o annotated.json.gz
      The trace for Perfetto or chrome://tracing, with rows for phases, idle time and recompute.
  tracekit annotate rank0.json.gz rank1.json.gz -o both.json.gz
      Ranks side by side, their clocks aligned by the collectives that they share.

Rows that are added: phases on device time, idle time by cause, events whose length was repaired (under
the device), recompute (under its thread). Times start at zero. Events that overlap others on their row
move to further rows, since viewers drop them there. The result is to be looked at: numbers are those of
the original.";

/// Write a trace for viewers with phases, recompute and idle causes as rows of their own
///
/// Everything in the trace stays, but for events without a possible time. Several traces, such as the ranks of a
/// run, become one: processes, flows and correlations are kept apart.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(after_help = "--help shows examples and exit codes.")]
pub(super) struct Args {
    #[command(flatten)]
    files: FileArgs,

    /// Further traces to put beside the first, such as the other ranks
    #[arg(value_name = "MORE")]
    more: Vec<PathBuf>,

    /// Do not align clocks of ranks
    #[arg(long, help_heading = "Merging")]
    keep_clocks: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut paths = vec![args.files.input.clone()];
    paths.extend_from_slice(&args.more);
    let piped = paths.iter().any(|path| path == Path::new("-"));
    if piped && paths.len() > 1 {
        let message = "standard input cannot be merged with files";
        return Err(Error::new(ErrorKind::Usage, message));
    }
    if let Some(used) = args.more.iter().find(|path| args.files.is_used(path)) {
        let message = "is given twice, or is the output";
        return Err(Error::new(ErrorKind::Usage, message).in_file(used));
    }
    for path in &paths {
        no_folder(path)?;
    }
    let ranks = if paths.len() > 1 {
        ranks(&paths)?
    } else {
        Vec::new()
    };
    let sources: Vec<Source> = args
        .more
        .iter()
        .map(|path| Source::open(path, &IngestOptions::default()))
        .collect::<Result<_>>()?;
    let names: Vec<String> = paths.iter().map(|path| label(path, &ranks)).collect();
    let options = AttributeOptions::default();
    let done = args.files.rewrite(|stored, out, progress| {
        let contents = std::iter::once(stored).chain(sources.iter().map(Source::bytes));
        let inputs: Vec<AnnotateInput<'_>> = contents
            .zip(&names)
            .zip(&paths)
            .map(|((stored, label), path)| AnnotateInput {
                stored,
                label,
                clock: clock(path, &ranks).filter(|_| !args.keep_clocks),
            })
            .collect();
        let done = annotate(&inputs, out, &options, progress)?;
        out.flush()
            .map_err(|error| Error::io(Path::new("output"), error))?;
        Ok(done)
    })?;
    let mut line = format!(
        "{} events, {} slices added, {} moved to further rows",
        done.events, done.added, done.moved
    );
    if done.left_out > 0 {
        // Writing to a string cannot fail.
        let _ = write!(line, ", {} left out (no possible time)", done.left_out);
    }
    if done.crowded > 0 {
        let _ = write!(line, ", {} overlap too many others", done.crowded);
    }
    if paths.len() == 1 {
        args.files.say(&line);
        return Ok(Exit::Done);
    }
    args.files.tell(&format!("{} files: {line}", paths.len()));
    for (path, name) in paths.iter().zip(&names) {
        let told = match clock(path, &ranks) {
            _ if args.keep_clocks => "clock as recorded".to_owned(),
            Some((ahead, uncertainty)) => apart(ahead, uncertainty),
            None => "clock not estimated (no shared collectives): as recorded".to_owned(),
        };
        args.files.tell(&format!("{name}: {told}"));
    }
    Ok(Exit::Done)
}

/// How far the clock of a rank is from the others, in words.
fn apart(ahead: Ns, uncertainty: Option<Ns>) -> String {
    let micros = |time: Ns| {
        let size = time.0.unsigned_abs();
        format!("{}.{:03}", size / 1_000, size % 1_000)
    };
    let side = if ahead < Ns::ZERO {
        "behind"
    } else {
        "ahead of"
    };
    let bound = uncertainty.map_or_else(String::new, |bound| format!(" ± {}", micros(bound)));
    format!(
        "clock {}{bound} us {side} the median, aligned",
        micros(ahead)
    )
}

/// What is known about one file of a merged trace.
struct Member {
    path: String,
    rank: Option<i64>,
    clock: Option<(Ns, Option<Ns>)>,
}

/// Ranks of files, and how far their clocks are apart.
fn ranks(paths: &[PathBuf]) -> Result<Vec<Member>> {
    let options = AttributeOptions::default();
    let request = Request {
        paths,
        ingest: IngestOptions::default(),
        options: &options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: None,
    };
    let inspection = inspect_paths(&request, Topic::Ranks, &InspectOptions::default(), &|_| {})?;
    let clocks = inspection
        .frames
        .iter()
        .find(|frame| frame.name == "clocks");
    let number = |name: &str, row: usize| {
        let column = clocks?.column(name)?;
        match (row < column.values.len()).then(|| column.values.get(row)) {
            Some(Entry::Int(number)) => Some(Ns(number)),
            _ => None,
        }
    };
    // Rows of that table are files in the order of the inputs.
    let inputs = inspection.inputs.iter().enumerate();
    Ok(inputs
        .map(|(row, input)| Member {
            path: input.path.clone(),
            rank: input.rank,
            clock: number("offset_ns", row).map(|ahead| (ahead, number("uncertainty_ns", row))),
        })
        .collect())
}

fn of<'a>(path: &Path, ranks: &'a [Member]) -> Option<&'a Member> {
    let path = path.display().to_string();
    ranks.iter().find(|rank| rank.path == path)
}

fn clock(path: &Path, ranks: &[Member]) -> Option<(Ns, Option<Ns>)> {
    of(path, ranks)?.clock
}

/// The rank where it is known and no other file has it, else the name of the file.
fn label(path: &Path, ranks: &[Member]) -> String {
    let rank = of(path, ranks).and_then(|rank| rank.rank);
    let same = ranks.iter().filter(|other| other.rank == rank).count();
    match rank {
        Some(rank) if same == 1 => format!("rank {rank}"),
        _ => path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
    }
}
