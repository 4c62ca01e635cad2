//! `tracekit collect`: a trace of any CUDA program.

use std::ffi::OsString;
// Writing to a string cannot fail.
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::exit::Exit;
use super::output::say;
use crate::collect::{ActivityKind, CollectOptions, TraceFile};
use crate::error::{Error, ErrorKind, Result};
use crate::{collect, report};

const EXAMPLES: &str = "\
Examples:
  tracekit collect -o run -- python train.py
      Runs the program and leaves one trace a process in run/, for tracekit attribute run.
  tracekit collect -o run -- mpirun -n 8 python train.py
      One trace a rank.
  tracekit collect -o run --delay 60s --duration 10s -- python train.py
      Ten seconds, after a minute of warm-up.
  tracekit collect -o run --range profiled -- python train.py
      Only while a range is open: torch.cuda.nvtx.range_push(\"profiled\").
  tracekit collect -o run --max-spool 200MB --ring -- python train.py
      The newest records of each process that fit: what led to the end of a long run.
  tracekit collect --check
      What there is on this machine to collect with.
  tracekit collect --nvml-only --interval 100ms --duration 30s -o power
      Power, energy, clocks and memory, without a program.

Phases:
  Ranges named phase.forward, phase.backward, phase.recompute and phase.optimizer, pushed with
  torch.cuda.nvtx.range_push, nvtx for Python or C++, or named so under emit_nvtx.";

const EXIT_CODES: &str = "\
Exit codes:
  the status of the program; 128 and the signal that ended it; 126 or 127 when it cannot be run
  0  --check: all is there; --nvml-only, --convert: done
  2  wrong usage; --check: something is missing";

/// Run a CUDA program and record what its devices do
///
/// The program runs as it would without: its output, signals and exit status are its own. CUPTI
/// activity and NVTX ranges of every process, and NVML counters, become Kineto-compatible traces.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(after_help = "--help shows examples and exit codes.")]
#[command(group = clap::ArgGroup::new("what").required(true))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command line are independent of each other"
)]
pub(super) struct Args {
    /// The program and its arguments
    #[arg(value_name = "CMD", last = true, group = "what")]
    command: Vec<OsString>,

    /// Write traces to the folder DIR [default: tracekit-TIME]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Keep the raw spools beside the traces
    #[arg(long, help_heading = "Output")]
    keep_spool: bool,

    /// No messages on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// What to record, separated by commas
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        help_heading = "Recording"
    )]
    kinds: Vec<Kind>,

    /// Start recording after TIME, as in 30s or 500ms
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Recording")]
    delay: Option<Duration>,

    /// Record for TIME
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Recording")]
    duration: Option<Duration>,

    /// Record only while an NVTX range called NAME is open
    #[arg(long, value_name = "NAME", help_heading = "Recording")]
    #[arg(conflicts_with_all = ["delay", "duration"])]
    range: Option<String>,

    /// Stop recording a process when its spool has so many bytes, as in 500MB or 2GiB
    #[arg(long, value_name = "BYTES", value_parser = spool_size, help_heading = "Recording")]
    max_spool: Option<u64>,

    /// At --max-spool, go on and keep the newest records instead of the first
    #[arg(long, requires = "max_spool", help_heading = "Recording")]
    ring: bool,

    /// Bytes of a CUPTI buffer
    #[arg(long, value_name = "BYTES", value_parser = buffer_size, default_value = "4MiB")]
    #[arg(help_heading = "Recording")]
    buffer_size: u64,

    /// How long records stay in the program before they are in a file
    #[arg(long, value_name = "TIME", value_parser = flush_period, default_value = "500ms")]
    #[arg(help_heading = "Recording")]
    flush_period: Duration,

    /// How often to ask NVML; 0 for never
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100ms")]
    #[arg(help_heading = "Recording")]
    interval: Duration,

    /// Set a variable for the program; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    #[arg(help_heading = "Program")]
    environment: Vec<(String, OsString)>,

    /// The library to load into the program [default: beside tracekit]
    #[arg(long, value_name = "FILE", help_heading = "Program")]
    library: Option<PathBuf>,

    /// Say what is there to collect with, and run nothing
    #[arg(long, help_heading = "Other work", group = "what")]
    check: bool,

    /// Sample NVML and run nothing, until --duration or a signal
    #[arg(long, help_heading = "Other work", group = "what")]
    nvml_only: bool,

    /// Make traces of the spools that a killed run left in DIR
    #[arg(long, value_name = "DIR", help_heading = "Other work", group = "what")]
    convert: Option<PathBuf>,
}

/// A kind of activity, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Kernels
    Kernel,
    /// Copies
    Memcpy,
    /// Fills
    Memset,
    /// Calls of the runtime API, which link work to ranges
    Runtime,
    /// Calls of the driver API, which link work of Triton to ranges
    Driver,
    /// Waits
    Sync,
    /// What CUPTI and the driver take for themselves
    Overhead,
}

impl From<Kind> for ActivityKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Kernel => Self::Kernel,
            Kind::Memcpy => Self::Memcpy,
            Kind::Memset => Self::Memset,
            Kind::Runtime => Self::Runtime,
            Kind::Driver => Self::Driver,
            Kind::Sync => Self::Sync,
            Kind::Overhead => Self::Overhead,
        }
    }
}

/// A number with a unit, as its whole and the name of the unit.
fn with_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    Some((number, unit.trim()))
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || "a time is a number and s, ms, us or min, as in 500ms".to_owned();
    let (number, unit) = with_unit(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "min" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "" if number == 0.0 => 1.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

fn size(text: &str) -> std::result::Result<u64, String> {
    let wrong = || "a size is a number and B, KB, MB, GB, KiB, MiB or GiB, as in 500MB".to_owned();
    let (number, unit) = with_unit(text).ok_or_else(wrong)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = (number * factor).round();
    // As text: the whole of a float that is small enough is an integer.
    format!("{bytes:.0}").parse().map_err(|_| wrong())
}

fn buffer_size(text: &str) -> std::result::Result<u64, String> {
    let bytes = size(text)?;
    if !(4 << 10..=128 << 20).contains(&bytes) {
        return Err("a buffer has 4KiB to 128MiB".to_owned());
    }
    Ok(bytes)
}

fn flush_period(text: &str) -> std::result::Result<Duration, String> {
    let period = time(text)?;
    if !(Duration::from_millis(10)..=Duration::from_mins(1)).contains(&period) {
        return Err("a flush period is 10ms to 1min".to_owned());
    }
    Ok(period)
}

fn spool_size(text: &str) -> std::result::Result<u64, String> {
    let bytes = size(text)?;
    if bytes < 256 << 10 {
        return Err("a spool needs 256KiB at least".to_owned());
    }
    Ok(bytes)
}

fn variable(text: &str) -> std::result::Result<(String, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.into())),
        _ => Err("a variable is NAME=VALUE".to_owned()),
    }
}

/// A folder named after the time.
fn folder_of_now() -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a date of the Gregorian calendar: years start in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + next;
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    PathBuf::from(format!(
        "tracekit-{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"
    ))
}

impl Args {
    fn options(&self) -> CollectOptions {
        let folder = self.output.clone().unwrap_or_else(folder_of_now);
        let mut options = CollectOptions::new(self.command.clone(), folder);
        if !self.kinds.is_empty() {
            options.kinds = ActivityKind::ALL
                .into_iter()
                .filter(|kind| {
                    self.kinds
                        .iter()
                        .any(|asked| ActivityKind::from(*asked) == *kind)
                })
                .collect();
        }
        options.environment.clone_from(&self.environment);
        options.buffer_size = self.buffer_size;
        options.flush_period = self.flush_period;
        options.interval = (!self.interval.is_zero()).then_some(self.interval);
        options.delay = self.delay;
        options.duration = self.duration;
        options.range.clone_from(&self.range);
        options.max_spool = self.max_spool;
        options.ring = self.ring;
        options.keep_spool = self.keep_spool;
        options.library.clone_from(&self.library);
        options
    }

    fn tell(&self, line: &str) {
        if !self.quiet {
            say(line);
        }
    }

    fn tell_traces(&self, traces: &[TraceFile]) {
        let number = |count: usize, what: &str| report::counted(count as u64, what);
        for trace in traces {
            self.tell(&format!(
                "wrote {}: {}, {}, {}",
                trace.path.display(),
                number(trace.device_events, "device event"),
                number(trace.ranges, "range"),
                number(trace.samples, "sample"),
            ));
        }
    }
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    if args.check {
        return Ok(check(args));
    }
    let options = args.options();
    let mut tell = |line: &str| args.tell(line);
    if let Some(folder) = &args.convert {
        let traces = collect::convert_folder(folder, args.keep_spool, &mut tell)?;
        args.tell_traces(&traces);
        return Ok(Exit::Done);
    }
    if args.nvml_only {
        if options.interval.is_none() {
            let message = "--nvml-only needs an --interval";
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let traces = collect::sample_only(&options, &mut tell)?;
        args.tell_traces(&traces);
        return Ok(if traces.is_empty() {
            Exit::Failure
        } else {
            Exit::Done
        });
    }
    let collected = collect::collect(&options, &mut tell)?;
    args.tell_traces(&collected.traces);
    Ok(Exit::Child(collected.ended.code()))
}

fn check(args: &Args) -> Exit {
    let findings = collect::check(args.library.as_deref());
    let mut text = String::new();
    for finding in &findings {
        let mark = if finding.found { "yes" } else { "no" };
        let what = report::visible(&finding.text);
        let _ = writeln!(text, "{:<12}{mark:<5}{what}", finding.what);
    }
    // A reader that went away is no failure.
    let _ = super::output::Target::Stdout.write(&text);
    if findings.iter().all(|finding| finding.found) {
        Exit::Done
    } else {
        Exit::Failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(time("2min"), Ok(Duration::from_mins(2)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for wrong in ["5", "", "-1s", "1h", "s", "1e400s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("500MB"), Ok(500_000_000));
        assert_eq!(size("4MiB"), Ok(4 << 20));
        assert_eq!(size("17"), Ok(17));
        for wrong in ["5XB", "", "-1", "MB", "1e30", "99999999999999999999GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
