//! Mistakes on the command line, told clearly.

use std::io::{self, Write as _};

use clap::Error;
use clap::error::{ContextKind, ErrorKind};

use super::exit::Exit;
use super::output;

/// Prints what clap has to say: help and versions on standard output, mistakes on standard error.
pub(super) fn report(error: &Error) -> Exit {
    if let Some(message) = wrong_value(error) {
        output::say(&message);
        return Exit::Failure;
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return Exit::Failure;
    }
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            output::say(&format!("standard output: {error}"));
            Exit::Failure
        }
        _ => Exit::Done,
    }
}

/// One line about a value that its own parser refuses; clap's text has several and no reason.
fn wrong_value(error: &Error) -> Option<String> {
    let text = |kind| error.get(kind).map(ToString::to_string);
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let argument = text(ContextKind::InvalidArg)?;
    let value = text(ContextKind::InvalidValue)?;
    let reason = std::error::Error::source(error)?.to_string();
    let argument = argument.trim_end_matches("...");
    Some(format!(
        "invalid value '{value}' for '{argument}': {reason}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Cli;
    use super::*;

    fn message(arguments: &[&str]) -> Option<String> {
        let arguments = [&["tracekit", "attribute", "trace"], arguments].concat();
        wrong_value(&Cli::try_parse_from(arguments).unwrap_err())
    }

    #[test]
    fn a_wrong_value_is_one_line() {
        for (arguments, expected) in [
            (
                ["--steps", "5..3"],
                "invalid value '5..3' for '--steps <A..B>': the last step comes before the first",
            ),
            (
                ["--comm", "("],
                "invalid value '(' for '--comm <REGEX>': no valid pattern: unclosed group",
            ),
            (
                ["--phase", "warmup=x"],
                "invalid value 'warmup=x' for '--phase <NAME=REGEX>': no phase is called 'warmup': \
                 use forward, backward, recompute, optimizer or other",
            ),
            (
                ["-j", "0"],
                "invalid value '0' for '--threads <N>': 0 is not in 1..=1024",
            ),
        ] {
            assert_eq!(message(&arguments).as_deref(), Some(expected));
        }
        assert_eq!(message(&["--unknown"]), None);
    }
}
