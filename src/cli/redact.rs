//! `tracekit redact`: a trace without secrets.

use std::io;
use std::path::PathBuf;

use super::exit::Exit;
use super::output::Target;
use super::repair::repairs;
use super::rewrite::{EXIT_CODES, FileArgs, write_private};
use crate::error::{Error, ErrorKind, Result};
use crate::rewrite::{Pseudonyms, RedactOptions, Redacted, redact};

const EXAMPLES: &str = "\
Examples:
  tracekit redact trace.json.gz -o public.json.gz
      No tokens, environment, users, hosts, paths or addresses; the same numbers.
  tracekit redact rank0.json -o public0.json --map names.json
  tracekit redact rank1.json -o public1.json --map names.json
      The same replacement for the same original in both. Keep names.json to yourself:
      it has the originals (of tokens and keys only hashes).

What stays: names of kernels and operators, arguments, times, the ends of paths behind
site-packages and of Python's and PyTorch's own modules.

What is a secret: any value of keys like password, secret, api_key, cookie, and of all that
is inside of them; strings of keys like token or tokens, and numbers of a token from nine
digits on. Numbers of tokens are counts and stay, as does all of num_tokens, max_tokens or
eos_token. Users and hosts are those that keys, variables and home folders name; they are
replaced in all strings and keys, in any case, but not where they are called like a word of
traces (stream, adam). Base64 is looked into where text is in it.

What was wrong with the original (text that is no JSON, replaced events, a missing end) is
noted in the result as tracekit repair does. Look at the result before you publish it: a
rule can only find what it knows.";

/// Write a trace without secrets, names of people and machines, and paths
///
/// Replaces tokens and keys, environment dumps, user and host names, paths, e-mail and network
/// addresses by [token-1], [path-2] and so on, everywhere and always alike. Attribution gives the
/// same numbers for the result.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(after_help = "--help shows examples and exit codes.")]
pub(super) struct Args {
    #[command(flatten)]
    files: FileArgs,

    /// Leave names of events as they are (Python frames, annotations), but for tokens and keys
    #[arg(long, help_heading = "Redaction")]
    keep_names: bool,

    /// Replace as FILE says, and add what is new to it: the same replacements across files
    #[arg(long, value_name = "FILE", help_heading = "Redaction")]
    map: Option<PathBuf>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut options = RedactOptions {
        keep_names: args.keep_names,
        ..RedactOptions::default()
    };
    let mut map_file = None;
    if let Some(map) = &args.map {
        if args.files.is_used(map) {
            let message = "is the input or the output, not a map";
            return Err(Error::new(ErrorKind::Usage, message).in_file(map));
        }
        // As for outputs, what a link points to is replaced and not the link.
        let Target::File { path, .. } = Target::new(Some(map))? else {
            let message = "is no file, which a map has to be";
            return Err(Error::new(ErrorKind::Usage, message).in_file(map));
        };
        map_file = Some(path);
        options.pseudonyms = match std::fs::read_to_string(map) {
            Ok(text) => Pseudonyms::from_json(&text).map_err(|error| error.in_file(map))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Pseudonyms::default(),
            Err(error) => return Err(Error::io(map, error)),
        };
    }
    let redacted = args.files.rewrite(|stored, out, progress| {
        let redacted = redact(stored, out, &options, progress)?;
        if let Some(map) = &map_file {
            write_private(map, &redacted.pseudonyms.to_json())?;
        }
        Ok(redacted)
    })?;
    args.files.say(&summary(&redacted));
    Ok(Exit::Done)
}

fn summary(redacted: &Redacted) -> String {
    let mut parts: Vec<String> = redacted
        .replaced
        .iter()
        .map(|(subject, strings)| format!("{subject} in {strings} strings"))
        .collect();
    if redacted.removed > 0 {
        parts.push(format!(
            "{} values of environments removed",
            redacted.removed
        ));
    }
    let mut summary = if parts.is_empty() {
        format!("{} events, nothing to replace", redacted.events)
    } else {
        format!("{} events, replaced {}", redacted.events, parts.join(", "))
    };
    let repairs = repairs(&redacted.repaired);
    if !repairs.is_empty() {
        summary.extend(["; repaired: ", &repairs.join(", ")]);
    }
    summary
}
