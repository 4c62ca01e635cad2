//! The `tracekit` program; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tracekit::cli::run(std::env::args_os()).into()
}
