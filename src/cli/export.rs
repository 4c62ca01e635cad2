//! `tracekit export`: tables as files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::args::{InputArgs, When};
use super::exit::Exit;
use super::output::temporary;
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::remarks::{Remarks, Told};
use super::threads;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{DataFrame, read_tables, write_arrow, write_parquet};
use crate::report;

const EXAMPLES: &str = "\
Examples:
  tracekit export runs/ -o tables/
      Every table as Parquet, for DuckDB, pandas, Polars or Spark.
  tracekit export trace.json.gz -o tables/ --format csv --table kernels --table steps
      Two tables for a spreadsheet.

tracekit query --tables lists the tables and their columns.

Exit codes:
  0  done
  2  wrong usage, or an input that cannot be read; nothing is written
  4  done, but some files of a folder could not be read";

/// Writes events, device work, breakdowns and findings as tables for other tools
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    /// Folder to write to, one file a table; made when it is not there
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: PathBuf,

    /// Format of the files
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "parquet",
        help_heading = "Output"
    )]
    format: Format,

    /// Only this table; may be repeated
    #[arg(long = "table", value_name = "NAME", help_heading = "Output")]
    tables: Vec<String>,

    /// No progress, no messages on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Progress bar, only ever on a terminal; auto hides it for small inputs
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    progress: When,
}

/// Format of exported tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Compressed with zstd, with statistics
    Parquet,
    /// Arrow IPC, also called Feather, compressed with zstd
    Arrow,
    /// Text, with a header line
    Csv,
}

/// Rows of a CSV file that are put into text at a time.
const ROWS: usize = 1 << 14;

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    if args.output.exists() && !args.output.is_dir() {
        let error = Error::new(ErrorKind::Usage, "is no folder");
        return Err(error.in_file(&args.output));
    }
    threads::start(args.input.threads)?;
    let options = args.reading.options();
    let request = args
        .reading
        .request(&args.input, &args.input.paths, &options, false);
    let names: Vec<&str> = args.tables.iter().map(String::as_str).collect();
    let progress = Progress::new(args.progress, args.quiet);
    let mut tables = read_tables(&request, &names, &|event| progress.observe(event))?;
    drop(progress);
    fs::create_dir_all(&args.output).map_err(|error| Error::io(&args.output, error))?;
    let mut written: Vec<(PathBuf, PathBuf)> = Vec::new();
    let done = tables.frames.iter_mut().try_for_each(|(name, frame)| {
        let path = args
            .output
            .join(format!("{name}.{}", extension(args.format)));
        written.push((write(&path, frame, args.format)?, path));
        Ok(())
    });
    if let Err(error) = done {
        // The failure to tell is the first one.
        for (temporary, _) in &written {
            drop(fs::remove_file(temporary));
        }
        return Err(error);
    }
    for (temporary, path) in &written {
        fs::rename(temporary, path).map_err(|error| Error::io(path, error))?;
    }
    let remarks = Remarks::from(&tables.attribution);
    if !args.quiet {
        remarks.say(Told::Numbers);
    }
    Ok(remarks.exit(false))
}

fn extension(format: Format) -> &'static str {
    match format {
        Format::Parquet => "parquet",
        Format::Arrow => "arrow",
        Format::Csv => "csv",
    }
}

/// Writes `frame` to a new file beside `path`, whose name it gives.
fn write(path: &Path, frame: &mut DataFrame, format: Format) -> Result<PathBuf> {
    let failed = |error: io::Error| Error::io(path, error);
    let (temporary, file) = temporary(path).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let written = match format {
        Format::Parquet => write_parquet(frame, &mut out),
        Format::Arrow => write_arrow(frame, &mut out),
        Format::Csv => write_csv(frame, &mut out).map_err(failed),
    };
    let written = written.and_then(|()| {
        let file: File = out
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)
    });
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error.in_file(path));
    }
    Ok(temporary)
}

fn write_csv(frame: &DataFrame, out: &mut impl Write) -> io::Result<()> {
    let mut at = 0;
    loop {
        let text = report::csv::render(&report::data_frame_rows(frame, at, ROWS));
        let header = text.find('\n').map_or(0, |end| end + 1);
        out.write_all(&text.as_bytes()[if at == 0 { 0 } else { header }..])?;
        at += ROWS;
        if at >= frame.height() {
            return Ok(());
        }
    }
}
