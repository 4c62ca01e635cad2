//! `tracekit query`: SQL over the tables of traces.

#[cfg(feature = "batch")]
use std::path::Path;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::args::{InputArgs, When};
use super::exit::Exit;
use super::output::Target;
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::remarks::{Remarks, Told};
use super::threads;
#[cfg(feature = "batch")]
use crate::batch::{
    DATASET_TABLES, dataset_tables_document, is_dataset, read_dataset, tables_named,
};
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "batch")]
use crate::frame::query_frames;
use crate::frame::{DataFrame, TABLES, query, read_tables, tables_in, unanswerable};
use crate::ingest::discover;
use crate::report::{self, data_frame_document, data_frame_json, data_frame_rows, tables_document};

const EXAMPLES: &str = "\
Examples:
  tracekit query trace/ 'SELECT phase, class, SUM(dur_ns) AS ns FROM device_work GROUP BY ALL ORDER BY ns DESC'
      Device time by phase and class.
  tracekit query trace/ \"SELECT name, COUNT(*) AS calls FROM events WHERE cat = 'cuda_runtime' GROUP BY name\"
      How often which call is made.
  tracekit query --tables
      Which tables and columns there are.
  tracekit query dataset/ \"SELECT run, step_median_ns FROM runs ORDER BY run\"
      The tables of a dataset that tracekit batch made; tracekit query dataset/ --tables lists them.

Exit codes:
  0  done
  2  wrong usage, SQL that cannot be understood, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read";

/// Answers a question in SQL over events, device work, breakdowns and findings
///
/// The last argument is the query. Only the tables that it names are made.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(
    override_usage = "tracekit query [OPTIONS] <PATH>... <SQL>\n       tracekit query --tables"
)]
#[command(mut_arg("paths", |paths| paths
    .required(false)
    .help(PATHS)
    .value_parser(OsStringValueParser::new().map(PathBuf::from))))]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    /// List the tables and their columns
    #[arg(long, help_heading = "Report")]
    tables: bool,

    /// Format of the result
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    format: Format,

    /// Write to FILE, which is replaced only by a whole result; - is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No progress, no messages on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

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

const PATHS: &str = "Trace files, folders of them, or - for standard input, then the query";

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// An array of rows
    Json,
    /// Text, with a header line
    Csv,
    /// The table as Markdown
    Markdown,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.color).write_global();
    let target = Target::new(args.output.as_deref())?;
    if args.tables {
        target.write(&laid_out(args, &target, &known_tables(&args.input.paths)?))?;
        return Ok(Exit::Done);
    }
    let (paths, sql) = paths_and_sql(args)?;
    #[cfg(feature = "batch")]
    if let [dataset] = paths
        && is_dataset(dataset)
    {
        return of_dataset(args, &target, dataset, sql);
    }
    target.check_inputs(paths)?;
    let names = tables_in(sql);
    if names.is_empty() {
        // What is wrong with a path is worth more than what that path does not have.
        discover(paths)?;
        let known: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        return Err(unanswerable(sql, &known));
    }
    threads::start(args.input.threads)?;
    let options = args.reading.options();
    let request = args.reading.request(&args.input, paths, &options, false);
    let progress = Progress::new(args.progress, args.quiet);
    let tables = read_tables(&request, &names, &|event| progress.observe(event))?;
    drop(progress);
    let result = query(&tables, sql)?;
    target.write(&rendered(args, &target, &result)?)?;
    let remarks = Remarks::from(&tables.attribution);
    if !args.quiet {
        remarks.say(Told::Numbers);
    }
    Ok(remarks.exit(false))
}

/// The tables of what is at `paths`; those of traces without any.
fn known_tables(paths: &[PathBuf]) -> Result<report::Document> {
    #[cfg(feature = "batch")]
    if let [dataset] = paths
        && is_dataset(dataset)
    {
        return Ok(dataset_tables_document());
    }
    discover(paths)?;
    Ok(tables_document(TABLES))
}

/// Answers a question about a dataset that `tracekit batch` made.
#[cfg(feature = "batch")]
fn of_dataset(args: &Args, target: &Target, dataset: &Path, sql: &str) -> Result<Exit> {
    let names = tables_named(sql);
    if names.is_empty() {
        let known: Vec<&str> = DATASET_TABLES.iter().map(|table| table.name).collect();
        return Err(unanswerable(sql, &known));
    }
    threads::start(args.input.threads)?;
    let frames = read_dataset(dataset, &names)?;
    target.write(&rendered(args, target, &query_frames(&frames, sql)?)?)?;
    Ok(Exit::Done)
}

/// What to read, and the query behind it.
fn paths_and_sql(args: &Args) -> Result<(&[PathBuf], &str)> {
    match args.input.paths.as_slice() {
        [paths @ .., _] if paths.iter().any(|path| path.as_os_str().is_empty()) => {
            Err(Error::new(ErrorKind::Usage, "a path is empty"))
        }
        [paths @ .., sql] if !paths.is_empty() => {
            let sql = sql
                .to_str()
                .ok_or_else(|| Error::new(ErrorKind::Usage, "the query is no text in UTF-8"))?;
            Ok((paths, sql))
        }
        _ => Err(Error::new(
            ErrorKind::Usage,
            "a query needs a path and the SQL: tracekit query PATH... SQL",
        )),
    }
}

fn laid_out(args: &Args, target: &Target, document: &report::Document) -> String {
    if args.format == Format::Markdown {
        return report::markdown::render(document);
    }
    let (width, styled) = (target.width(), target.is_styled());
    report::text::render(document, report::text::TextOptions { width, styled })
}

fn rendered(args: &Args, target: &Target, result: &DataFrame) -> Result<String> {
    Ok(match args.format {
        Format::Text | Format::Markdown => laid_out(args, target, &data_frame_document(result)),
        Format::Csv => report::csv::render(&data_frame_rows(result, 0, result.height())),
        Format::Json => report::json::render(&data_frame_json(result))
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}
