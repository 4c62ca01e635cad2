//! `tracekit evidence tables`: records of a folder as tables, for spreadsheets, data frames and SQL.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;

use super::super::exit::Exit;
use super::super::output::{Target, say};
use crate::error::{Error, ErrorKind, Result};
use crate::evidence::{RecordTables, record_tables};
use crate::inspect::Frame;
use crate::report::{self, Document, frame_rows, frames_document};

const EXAMPLES: &str = "\
Examples:
  tracekit evidence tables benchmarks/results
      What is there: records, candidates, runs, scenarios, checks, judged, hypotheses, artifacts.
  tracekit evidence tables benchmarks/results --table runs --format csv -o runs.csv
      Every repeat, for a spreadsheet.
  tracekit evidence tables benchmarks/results --sql \\
      \"SELECT candidate, AVG(step_time_ms) AS ms FROM runs WHERE role LIKE 'unprofiled%' GROUP BY candidate\"
      A question to them (not in the lean build).

Exit codes:
  0  done
  2  wrong usage, or a folder without records; nothing is printed
  4  done, but some files of the folder are no records";

/// Shows the records of a folder as tables, or answers a question in SQL about them
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// A folder of results
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Only this table
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    table: Option<String>,

    /// Answer this query over the tables
    #[arg(
        long,
        value_name = "SQL",
        conflicts_with = "table",
        help_heading = "Report"
    )]
    #[cfg(feature = "frames")]
    sql: Option<String>,

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
}

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Text,
    /// Columns and rows
    Json,
    /// One table, with a header line
    Csv,
    /// The tables as Markdown
    Markdown,
}

/// The tables as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    schema_version: &'static str,
    tables: Vec<&'a Frame>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let target = Target::new(args.file.as_deref())?;
    let tables = record_tables(&args.folder)?;
    #[cfg(feature = "frames")]
    if let Some(sql) = &args.sql {
        target.write(&answered(args, &target, &tables, sql)?)?;
        return Ok(ended(&tables));
    }
    let chosen = chosen(args, &tables)?;
    let result = match args.format {
        Format::Csv => {
            let [only] = chosen.as_slice() else {
                let message = "CSV is of one table: name it with --table";
                return Err(Error::new(ErrorKind::Usage, message));
            };
            report::csv::render(&frame_rows(only))
        }
        Format::Json => report::json::render(&Shown {
            schema_version: "tracekit.records/v1",
            tables: chosen,
        })
        .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
        Format::Text | Format::Markdown => {
            let lead = format!("records in {}", args.folder.display());
            let all = args.table.is_some();
            laid_out(args, &target, &frames_document(lead, &chosen, all))
        }
    };
    target.write(&result)?;
    Ok(ended(&tables))
}

fn chosen<'a>(args: &Args, tables: &'a RecordTables) -> Result<Vec<&'a Frame>> {
    let Some(name) = &args.table else {
        return Ok(tables.frames.iter().collect());
    };
    let found = tables.frames.iter().find(|frame| frame.name == name);
    found.map(|frame| vec![frame]).ok_or_else(|| {
        let names: Vec<&str> = tables.frames.iter().map(|frame| frame.name).collect();
        let message = format!(
            "no table is called '{name}'; there are {}",
            names.join(", ")
        );
        Error::new(ErrorKind::Usage, message)
    })
}

fn laid_out(args: &Args, target: &Target, document: &Document) -> String {
    if args.format == Format::Markdown {
        return report::markdown::render(document);
    }
    let (width, styled) = (target.width(), target.is_styled());
    report::text::render(document, report::text::TextOptions { width, styled })
}

#[cfg(feature = "frames")]
fn answered(args: &Args, target: &Target, tables: &RecordTables, sql: &str) -> Result<String> {
    use crate::frame::{data_frame, failed, query_frames};
    let mut frames = std::collections::BTreeMap::new();
    for frame in &tables.frames {
        let data = data_frame(frame.clone()).map_err(|error| failed(&error))?;
        frames.insert(frame.name, data);
    }
    let result = query_frames(&frames, sql)?;
    Ok(match args.format {
        Format::Text | Format::Markdown => {
            laid_out(args, target, &report::data_frame_document(&result))
        }
        Format::Csv => {
            let rows = report::data_frame_rows(&result, 0, result.height());
            report::csv::render(&rows)
        }
        Format::Json => report::json::render(&report::data_frame_json(&result))
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
    })
}

/// Tells of files that are in no table.
fn ended(tables: &RecordTables) -> Exit {
    for one in &tables.skipped {
        let text = |key: &str| one.at(&[key]).as_str().unwrap_or_default().to_owned();
        say(&format!("skipped {}: {}", text("file"), text("reason")));
    }
    if tables.skipped.is_empty() {
        Exit::Done
    } else {
        Exit::SomeInputsFailed
    }
}
