//! What a build without the feature `collect`, or for another system, says when it is asked for.

use std::ffi::OsString;

use super::exit::Exit;
use crate::error::{Error, ErrorKind, Result};

/// Record what devices do (this build is without it)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Build tracekit on Linux with its default features to have it.")]
#[command(disable_help_flag = true)]
pub(super) struct Args {
    /// Ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

/// Says what to do.
pub(super) fn run(_args: &Args) -> Result<Exit> {
    let message = "this tracekit is built without the feature collect, which runs programs on Linux: build it with default features";
    Err(Error::new(ErrorKind::Usage, message))
}
