//! `tracekit batch PATH... -o DIR`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use super::progress::Progress;
use super::watch;
use crate::batch::{
    BatchOptions, BatchReport, Inputs, Pattern, Shard, batch, default_memory_limit, find_inputs,
    is_dataset, report_document,
};
use crate::cli::args::When;
use crate::cli::exit::Exit;
use crate::cli::output::{Target, say};
use crate::cli::reading::ReadingArgs;
use crate::cli::threads;
use crate::error::{Error, ErrorKind, Result};
use crate::infer::Thresholds;
use crate::ingest::IngestOptions;
use crate::report;

/// What to analyse, and how.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[derive(Debug, clap::Args)]
pub(super) struct StartArgs {
    /// Traces, archives, folders of them, or patterns of paths in quotes
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Also the paths in FILE, one a line; - is standard input. One that is not there is an input that failed
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    list: Option<PathBuf>,

    /// Folder of the dataset; made when it is not there
    #[arg(
        short,
        long,
        value_name = "DIR",
        required = true,
        help_heading = "Output"
    )]
    output: Option<PathBuf>,

    /// Where paths tell {run}, {strategy}, {repeat} and {rank}, such as '{run}/{strategy}/rank{rank}'
    #[arg(long, value_name = "PATTERN", help_heading = "Input")]
    pattern: Option<Pattern>,

    /// Only part I of N equal parts of the inputs, told by their names alone
    #[arg(long, value_name = "I/N", help_heading = "Input")]
    shard: Option<Shard>,

    #[command(flatten)]
    reading: ReadingArgs,

    /// Read files instead of mapping them into memory
    ///
    /// For files that another program may cut short meanwhile: what is gone of a mapped file ends this
    /// program without a word (SIGBUS). It takes as much memory as the files have bytes.
    #[arg(long, help_heading = "Input")]
    no_mmap: bool,

    /// Test what limits each input, for the table inferences: takes about a quarter more time
    #[arg(long, help_heading = "Report")]
    infer: bool,

    /// Limits in TOML that replace the built-in ones, and rules of one's own
    #[arg(long, value_name = "FILE", requires = "infer", help_heading = "Report")]
    thresholds: Option<PathBuf>,

    /// Analyse N inputs at a time [default: one a core]
    #[arg(short, long, value_name = "N", help_heading = "Work")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// Memory that inputs may take together, such as 8G; what needs more alone fails [default: four fifths
    /// of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Work")]
    memory_limit: Option<u64>,

    /// Go on with a dataset, which must be there; one that is there is gone on with in any case
    #[arg(long, help_heading = "Work")]
    resume: bool,

    /// Try inputs again that failed before
    #[arg(long, help_heading = "Work")]
    retry_failed: bool,

    /// Look into files even when their size and time are as before
    #[arg(long, help_heading = "Work")]
    rehash: bool,

    /// Forget inputs that are not among those given now
    #[arg(long, conflicts_with = "watch", help_heading = "Work")]
    prune: bool,

    /// Keep looking for traces that are finished, until interrupted
    #[arg(long, help_heading = "Work")]
    watch: bool,

    /// Look every SECONDS; what has not changed in between is finished
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "watch")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), help_heading = "Work")]
    interval: u32,

    /// Stop watching when nothing new came for SECONDS
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "watch",
        help_heading = "Work"
    )]
    idle_exit: Option<u32>,

    /// Write a page for every run, to which the summary leads; a dataset that has them keeps them
    #[arg(long, help_heading = "Output")]
    reports: bool,

    /// Format of what is told at the end
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    format: Format,

    /// No progress, no messages on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Name every input that fails at once, and what is not read
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    verbose: bool,

    /// Progress bar, only ever on a terminal; auto hides it for small inputs
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    progress: When,
}

/// Format of what is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// Numbers
    Json,
}

/// Runs the batch.
pub(super) fn run(args: &StartArgs) -> Result<Exit> {
    let out = args.output.as_deref().unwrap_or(Path::new("."));
    if args.resume && !out.join(".tracekit").is_dir() && !is_dataset(out) {
        let error = Error::new(ErrorKind::Usage, "there is no dataset to go on with");
        return Err(error.in_file(out));
    }
    if args.paths.is_empty() && args.list.is_none() {
        let message = "give paths of traces, or --list FILE";
        return Err(Error::new(ErrorKind::Usage, message));
    }
    let thresholds = match &args.thresholds {
        None => Thresholds::default(),
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
            Thresholds::with(&text).map_err(|error| error.in_file(path))?
        }
    };
    threads::start(args.jobs)?;
    let interrupted = interruptible()?;
    tell_panics();
    let jobs = args
        .jobs
        .map_or_else(rayon::current_num_threads, usize::from);
    let options = BatchOptions {
        attribute: args.reading.options(),
        ingest: IngestOptions {
            // A file that shrinks while it is mapped ends the program, and a job may write again.
            mmap: !args.no_mmap && !args.watch,
            ..IngestOptions::default()
        },
        salvage: args.reading.salvage(),
        thresholds,
        infer: args.infer,
        pattern: args.pattern.clone(),
        jobs,
        memory_limit: args.memory_limit.unwrap_or_else(default_memory_limit),
        shard: args.shard,
        retry_failed: args.retry_failed,
        rehash: args.rehash,
        prune: args.prune,
        reports: args.reports,
        interrupted: &interrupted,
    };
    // Standard input can be read but once.
    let listed = listed(args)?;
    if let Some(list) = args.list.as_ref().filter(|_| args.paths.is_empty())
        && listed.is_empty()
    {
        let error = Error::new(ErrorKind::Usage, "no inputs: the list has no path");
        return Err(error.in_file(list));
    }
    let find = || find_inputs(&args.paths, &listed);
    if args.watch {
        let once = |inputs: &Inputs| analyse(args, inputs, out, &options);
        return watch::run(find, once, &interrupted, args.interval, args.idle_exit);
    }
    let report = analyse(args, &find()?, out, &options)?;
    let text = match args.format {
        Format::Json => report::json::render(&report)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
        Format::Text => {
            let (width, styled) = (Target::Stdout.width(), Target::Stdout.is_styled());
            let options = report::text::TextOptions { width, styled };
            report::text::render(&report_document(&report, out), options)
        }
    };
    Target::Stdout.write(&text)?;
    Ok(exit(&report))
}

/// Analyses what there is now.
fn analyse(
    args: &StartArgs,
    inputs: &Inputs,
    out: &Path,
    options: &BatchOptions<'_>,
) -> Result<BatchReport> {
    if args.verbose {
        for (path, reason) in inputs.skipped() {
            say(&format!("not read: {}: {reason}", path.display()));
        }
    }
    let progress = Progress::new(args.progress, args.quiet, args.verbose);
    let report = batch(inputs, out, options, &|event| progress.observe(&event))?;
    drop(progress);
    if !args.quiet {
        for pooled in &report.pooled {
            say(&format!("warning: {pooled}"));
        }
        // Once is enough for one who watches.
        if report.idle_pattern && (report.analysed > 0 || !args.watch) {
            let pattern = args.pattern.as_ref().map(ToString::to_string);
            say(&format!(
                "warning: --pattern '{}' matches no input; names are recognised without it",
                pattern.unwrap_or_default()
            ));
        }
    }
    if !args.quiet && report.failed > 0 {
        say(&format!(
            "{} inputs failed: SELECT input, error FROM runs WHERE status = 'failed'",
            report.failed
        ));
    }
    Ok(report)
}

/// How a batch ended.
pub(super) fn exit(report: &BatchReport) -> Exit {
    match report {
        report if report.interrupted => Exit::Interrupted,
        report if report.failed > 0 => Exit::SomeInputsFailed,
        _ => Exit::Done,
    }
}

/// The paths and patterns in a list.
fn listed(args: &StartArgs) -> Result<Vec<PathBuf>> {
    let Some(list) = &args.list else {
        return Ok(Vec::new());
    };
    let failed = |error| Error::io(list, error);
    let text = if list.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin().lock()).map_err(failed)?
    } else {
        fs::read_to_string(list).map_err(failed)?
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(PathBuf::from).collect())
}

/// What becomes true at the first signal to end. At the second, the program ends at once.
fn interruptible() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let failed = |error| Error::new(ErrorKind::Io, format!("no signals: {error}"));
        let twice = Arc::clone(&flag);
        signal_hook::flag::register_conditional_shutdown(signal, 130, twice).map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(failed)?;
    }
    Ok(flag)
}

/// A panic is one line: the input that it comes from is a row with the same message.
fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.unwrap_or_default();
        say(&format!("internal error (please report) at {place}"));
    }));
}

/// Bytes such as `512M` or `8GiB`.
fn size(text: &str) -> std::result::Result<u64, String> {
    let wrong = || "use a number with K, M, G or T, such as 8G".to_owned();
    let plain = text.trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, shift) = match plain.char_indices().last() {
        Some((place, 'k' | 'K')) => (&plain[..place], 10),
        Some((place, 'm' | 'M')) => (&plain[..place], 20),
        Some((place, 'g' | 'G')) => (&plain[..place], 30),
        Some((place, 't' | 'T')) => (&plain[..place], 40),
        _ => (plain, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(wrong)?;
    if bytes < 64 << 20 {
        return Err("less than 64M is too little for any trace".to_owned());
    }
    Ok(bytes)
}

/// True when the batch has to end.
pub(super) fn has_to_end(interrupted: &AtomicBool) -> bool {
    interrupted.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("8GiB"), Ok(8 << 30));
        assert_eq!(size("100000k"), Ok(100_000 << 10));
        assert_eq!(size("1073741824"), Ok(1 << 30));
        for wrong in ["", "G", "-1G", "1.5G", "99999999999T", "1K", "8X"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
