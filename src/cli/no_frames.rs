//! Subcommands that need data frames or archives, in a build without them: they say how to get a build that has.

use std::ffi::OsString;

use super::exit::Exit;
use crate::error::{Error, ErrorKind, Result};

const ADVICE: &str =
    "This build of tracekit lacks data frames or archives. The default features have them:
cargo install tracekit";

/// Needs data frames or archives, which this build does not have
#[derive(Debug, clap::Args)]
#[command(after_long_help = ADVICE, disable_help_flag = true)]
pub(super) struct Args {
    /// Ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// Says what is missing.
pub(super) fn run(_args: &Args) -> Result<Exit> {
    Err(Error::new(
        ErrorKind::Usage,
        "this build has no data frames, or no archives: build it with its default features, or --features batch",
    ))
}
