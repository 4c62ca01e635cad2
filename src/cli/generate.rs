//! `tracekit generate`: what packagers need, from the definitions of the command line itself.

use std::path::PathBuf;

use clap::{CommandFactory as _, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::Cli;
use super::exit::Exit;
use super::output::Target;
use crate::error::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  tracekit generate completions bash > /etc/bash_completion.d/tracekit
  tracekit generate man man/
      One manual page a subcommand, tracekit-report.1 and so on.
  tracekit generate schema report
      The JSON Schema of tracekit report --format json.";

/// Completions of shells, manual pages and JSON schemas
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Completions of a shell, on standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Manual pages, into a folder
    Man {
        /// Where they go; it is made when it is not there
        folder: PathBuf,
    },
    /// The JSON Schema of a result, on standard output
    Schema {
        /// Of which result
        of: Of,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// tracekit attribute --format json
    Attribution,
    /// tracekit report --format json
    Report,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut command = Cli::command();
    match &args.what {
        What::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(*shell, &mut command, "tracekit", &mut out);
            Target::Stdout.write(&String::from_utf8_lossy(&out))?;
        }
        What::Man { folder } => {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
            command.build();
            pages(&command, "tracekit", folder)?;
        }
        What::Schema { of } => Target::Stdout.write(match of {
            Of::Attribution => include_str!("schema/attribution.json"),
            Of::Report => include_str!("schema/report.json"),
        })?,
    }
    Ok(Exit::Done)
}

/// The page of `command` and those of what is below it, to which its own refers.
fn pages(command: &clap::Command, name: &str, folder: &std::path::Path) -> Result<()> {
    page(command, name, folder)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages(sub, &format!("{name}-{}", sub.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str, folder: &std::path::Path) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Error::io(&path, error))?;
    Target::new(Some(&path))?.write(&String::from_utf8_lossy(&text))
}
