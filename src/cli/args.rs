//! Arguments that subcommands share.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::error::{Error, ErrorKind, Result};

/// What to read, and with how much of the machine.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    /// Trace files, folders of them, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,

    /// Read only this rank; may be repeated
    #[arg(long = "rank", value_name = "N", help_heading = "Input")]
    #[arg(value_parser = clap::value_parser!(i64).range(0..))]
    pub(super) ranks: Vec<i64>,

    /// Fail unless there are runs with these names, separated by commas
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Input"
    )]
    pub(super) expect: Vec<String>,

    /// Read files instead of mapping them into memory
    ///
    /// For files that another program may cut short meanwhile: what is gone of a mapped file ends this
    /// program without a word (SIGBUS). It takes as much memory as the files have bytes.
    #[arg(long, help_heading = "Input")]
    pub(super) no_mmap: bool,

    /// Use N threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", help_heading = "Input")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
}

/// Where results go and how they look.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Format of the result
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub(super) format: Format,

    /// Write to FILE, which is replaced only by a whole result; - is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,

    /// Exit with 1 when events or files are missing from the numbers
    #[arg(long, help_heading = "Output")]
    pub(super) strict: bool,

    /// No progress, no warnings on standard error
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    /// Show remarks that touch no number, and every file
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    pub(super) verbose: bool,

    /// Bold type in text on a terminal
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub(super) color: When,

    /// Progress bar, only ever on a terminal; auto hides it for small inputs
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    pub(super) progress: When,
}

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A report for people
    Text,
    /// Everything, with the name and version of its schema
    Json,
    /// Plain rows for spreadsheets and data frames
    Csv,
    /// The report as Markdown
    Markdown,
    /// The report as one page for browsers
    Html,
    /// The picture that shows the most
    Svg,
    /// The verdict and findings as annotations of GitHub Actions
    Github,
}

impl Format {
    /// Takes only these formats on the command line.
    pub(super) fn only(formats: &[Self]) -> impl TypedValueParser<Value = Self> + use<> {
        let names = formats.iter().filter_map(ValueEnum::to_possible_value);
        PossibleValuesParser::new(names)
            .map(|name| Self::from_str(&name, true).expect("a name of a format"))
    }

    /// The refusal of a format that a command does not have.
    pub(super) fn refused<T>(self) -> Result<T> {
        let name = self.to_possible_value();
        let name = name
            .as_ref()
            .map_or("this format", |value| value.get_name());
        let message = format!("there is no {name} of this");
        Err(Error::new(ErrorKind::Usage, message))
    }
}

/// What every subcommand with tables can write.
pub(super) const TABLES: [Format; 4] = [Format::Text, Format::Json, Format::Csv, Format::Markdown];

/// When to do something for terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    Auto,
    Always,
    Never,
}

impl From<When> for anstream::ColorChoice {
    fn from(when: When) -> Self {
        match when {
            When::Auto => Self::Auto,
            When::Always => Self::Always,
            When::Never => Self::Never,
        }
    }
}
