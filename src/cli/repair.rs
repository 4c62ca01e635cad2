//! `tracekit repair`: the same events as valid JSON.

use std::fmt::Write as _;

use super::exit::Exit;
use super::rewrite::{EXIT_CODES, FileArgs};
use crate::error::Result;
use crate::rewrite::{RepairOptions, Repaired, repair};

const EXAMPLES: &str = "\
Examples:
  tracekit repair trace.json -o fixed.json
      Valid JSON: control characters and bad escapes escaped, NaN and inf as null,
      commas before brackets removed, brackets at the end added.
  tracekit repair killed.pt.trace.json.tmp --salvage -o fixed.json.gz
      What is left of a broken file, compressed; says which bytes are lost.
  tracekit repair trace.json --clip -o clipped.json
      Impossible overlaps of kernels clipped, as tracekit attribute does.";

/// Write a trace again as valid JSON, with the same events
///
/// What is no JSON but has one sensible reading is repaired; every other byte stays, and numbers
/// keep their text. Anything else is refused with its byte offset, unless --salvage is given. What
/// was done is noted in the trace under tracekit_repair; in the array form, which has no place for
/// notes, an event of that name says what was lost or clipped.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(after_help = "--help shows examples and exit codes.")]
pub(super) struct Args {
    #[command(flatten)]
    files: FileArgs,

    /// Clip kernels and copies that impossibly overlap the next on their stream; the length as
    /// written stays in their args as "tracekit raw dur"
    #[arg(long, help_heading = "Repair")]
    clip: bool,

    /// Skip what cannot be read, up to the next event that can be read as a whole
    #[arg(long, help_heading = "Repair")]
    salvage: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let options = RepairOptions {
        clip: args.clip,
        salvage: args.salvage,
    };
    let repaired = args
        .files
        .rewrite(|stored, out, progress| repair(stored, out, &options, progress))?;
    args.files.say(&summary(&repaired));
    lost(args, &repaired);
    Ok(Exit::Done)
}

fn summary(repaired: &Repaired) -> String {
    if repaired.is_unchanged() {
        return "nothing to repair".to_owned();
    }
    let parts = repairs(repaired);
    if parts.is_empty() {
        return format!("{} events kept", repaired.events);
    }
    format!("{} events, repaired: {}", repaired.events, parts.join(", "))
}

/// What was repaired, by name, and how often.
pub(super) fn repairs(repaired: &Repaired) -> Vec<String> {
    let mut parts: Vec<String> = repaired
        .findings
        .entries()
        .iter()
        .map(|entry| format!("{} {}", entry.code, entry.count))
        .collect();
    for (name, count) in [
        ("closing brackets added", repaired.brackets),
        ("commas added", repaired.commas),
    ] {
        if count > 0 {
            parts.push(format!("{name} {count}"));
        }
    }
    if repaired.clipped > 0 {
        let ms = repaired.clipped_ns.as_ms();
        parts.push(format!("{} events clipped by {ms:.3} ms", repaired.clipped));
    }
    parts
}

/// Says what was lost.
fn lost(args: &Args, repaired: &Repaired) {
    const NAMED: usize = 10;
    if let Some(damage) = &repaired.damage {
        args.files.say(damage);
    }
    if repaired.lost.ends_open {
        args.files
            .say("its end is missing: how many events came behind is not known");
    }
    if repaired.lost.count == 0 {
        return;
    }
    let mut line = format!("lost {} bytes:", repaired.lost.bytes);
    for (place, (from, to)) in repaired.lost.ranges.iter().take(NAMED).enumerate() {
        let comma = if place > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(line, "{comma} {from} to {to}");
    }
    let more = repaired.lost.count.saturating_sub(NAMED as u64);
    if more > 0 {
        let _ = write!(line, " and {more} more ranges");
    }
    args.files.say(&line);
}
