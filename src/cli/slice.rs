//! `tracekit slice`: a part of a trace.

use std::fmt::Write as _;

use super::exit::Exit;
use super::reading::step_range;
use super::repair::repairs;
use super::rewrite::{EXIT_CODES, FileArgs};
use crate::attribute::StepRange;
use crate::error::Result;
use crate::rewrite::{SliceOptions, TimeRange, slice};

const EXAMPLES: &str = "\
Examples:
  tracekit slice trace.json.gz --steps 10..12 -o steps.json
      What the host did in steps 10 to 12 and what that launched on devices.
  tracekit slice trace.json --time 1.5s..2s -o part.json.gz
      From 1.5 to 2 seconds behind the start of the first event.
  tracekit slice trace.json --cat kernel,gpu_memcpy -o device.json
      Only kernels and copies, with the names of their rows.

Times:
  A..B, A.. or ..B, counted from the start of the first event. A and B are numbers with
  a unit: s, ms, us or ns; without one, A has that of B: 100..250ms.";

/// Write a part of a trace, with its links
///
/// Keeps what starts on the host in the part, ranges that are open at its start, the device work
/// that was launched in it (whenever that runs), flows with both ends, and all names and metadata.
/// Sums by phase, launches and recompute of a step are those of the whole trace; where its device
/// window starts is not, for the step before is gone. What is no JSON is written as tracekit repair
/// does it, and noted under tracekit_repair.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(after_help = "--help shows examples and exit codes.")]
#[command(group = clap::ArgGroup::new("part").required(true).multiple(true))]
pub(super) struct Args {
    #[command(flatten)]
    files: FileArgs,

    /// Steps A to B, as in ProfilerStep#N, both included; also A.., ..B, or one number
    #[arg(long, value_name = "A..B", value_parser = step_range, help_heading = "Part")]
    #[arg(group = "part", conflicts_with = "time")]
    steps: Option<StepRange>,

    /// From time A to time B, as in 1.5s..2s or 100..250ms
    #[arg(long, value_name = "A..B", help_heading = "Part", group = "part")]
    time: Option<TimeRange>,

    /// Only events of these categories, separated by commas
    #[arg(
        long = "cat",
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Part",
        group = "part"
    )]
    categories: Vec<String>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    let options = SliceOptions {
        steps: args.steps,
        time: args.time,
        categories: args.categories.clone(),
    };
    let sliced = args
        .files
        .rewrite(|stored, out, progress| slice(stored, out, &options, progress))?;
    let mut line = format!(
        "kept {} of {} events, {} of them device work",
        sliced.events, sliced.of, sliced.device_events
    );
    if let (Some(first), Some(last)) = (sliced.steps.first(), sliced.steps.last()) {
        // Writing to a string cannot fail.
        let _ = write!(line, "; steps {first} to {last}");
    }
    let repairs = repairs(&sliced.repaired);
    if !repairs.is_empty() {
        line.extend(["; repaired: ", &repairs.join(", ")]);
    }
    args.files.say(&line);
    Ok(Exit::Done)
}
