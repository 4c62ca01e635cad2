//! A part of a trace, with its links kept.

use std::io::Write;
use std::str::FromStr;

use foldhash::HashMap;
use serde_json::{Value, json};

use super::document::{Edit, Fate, Found, Tour};
use super::link::Links;
use super::repair::{self, Repaired, clip};
use super::select::Selection;
use super::{Progress, TOOL};
use crate::attribute::{self, StepRange};
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::ingest::IngestOptions;
use crate::model::Trace;
use crate::units::Ns;

/// Which part of a trace to keep. `M` events and all top-level keys are always kept.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SliceOptions {
    /// What these steps launched and did on the host, by the number in `ProfilerStep#N`.
    pub steps: Option<StepRange>,
    /// What started on the host in this time; not together with `steps`.
    pub time: Option<TimeRange>,
    /// Of that, only events of these categories (`cat`), whatever their case.
    pub categories: Vec<String>,
}

/// A stretch of time, counted from the start of the first event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant inside.
    pub start: Ns,
    /// First instant after.
    pub end: Ns,
}

impl TimeRange {
    /// True when it has no end on either side.
    pub(super) fn is_all(self) -> bool {
        self.start.0 <= 0 && self.end.0 == i64::MAX
    }
}

impl FromStr for TimeRange {
    type Err = String;

    /// Reads `A..B`, `A..` or `..B`, where A and B are numbers with a unit: s, ms, us or ns. Without
    /// a unit, A has that of B.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (start, end) = text
            .split_once("..")
            .ok_or("use A..B, A.. or ..B, as in 1.5s..2s or 100..250ms")?;
        let (start, end) = (start.trim(), end.trim());
        let default = unit(end).map(|(_, unit)| unit);
        let range = Self {
            start: match start {
                "" => Ns::ZERO,
                start => nanoseconds(start, default)?,
            },
            end: match end {
                "" => Ns(i64::MAX),
                end => nanoseconds(end, None)?,
            },
        };
        if range.end <= range.start {
            return Err("the end does not come after the start".to_owned());
        }
        Ok(range)
    }
}

/// A number and the nanoseconds of the unit behind it.
fn unit(text: &str) -> Option<(&str, i64)> {
    const UNITS: [(&str, i64); 5] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    UNITS.iter().find_map(|(name, ns)| {
        let number = text.strip_suffix(name)?;
        Some((number.trim_end(), *ns))
    })
}

fn nanoseconds(text: &str, default: Option<i64>) -> std::result::Result<Ns, String> {
    let Some((number, unit)) = unit(text).or_else(|| Some((text, default?))) else {
        return Err(format!("'{text}' has no unit: s, ms, us or ns"));
    };
    let wrong = || format!("'{text}' is no time: use a number and a unit, as in 1.5s");
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || number.ends_with('.') {
        return Err(wrong());
    }
    let whole: i64 = whole.parse().map_err(|_| wrong())?;
    let part = part.trim_end_matches('0');
    let mut ns = whole.checked_mul(unit).ok_or_else(wrong)?;
    let mut unit = unit;
    for digit in part.bytes() {
        if unit % 10 != 0 {
            return Err(format!("'{text}' is finer than a nanosecond"));
        }
        unit /= 10;
        ns = ns
            .checked_add(i64::from(digit - b'0') * unit)
            .ok_or_else(wrong)?;
    }
    Ok(Ns(ns))
}

/// What a slice has.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Sliced {
    /// How many events it has.
    pub events: u64,
    /// How many the whole trace has.
    pub of: u64,
    /// How many of them are device work.
    pub device_events: u64,
    /// The numbers of the steps that were asked for and are there.
    pub steps: Vec<u64>,
    /// Events whose length was clipped as the attribution of the whole does.
    pub clipped: u64,
    /// How much time that took away.
    pub clipped_ns: Ns,
    /// What was no JSON or in no number in the whole trace, and is gone or written as JSON now, as by
    /// [`repair`](super::repair()).
    pub repaired: Repaired,
}

/// Writes a part of the trace that is stored as `stored` (compressed or not) to `out`: host events
/// that start in the part or are open at its start, what they launched on devices, and the flows
/// between events that are kept.
///
/// Every byte of what is kept stays, but for the lengths of device events that the attribution of
/// the whole clips to the next start on their stream (as [`repair`](super::repair()) with `clip`
/// writes them). An overlap that is too small to be clipped in the whole may be clipped in a part, and
/// recompute that only forward operators outside of the part confirm is weak evidence in it. What is
/// repaired on the way is noted in the result as [`repair`](super::repair()) does it.
///
/// # Errors
/// When the trace cannot be read, nothing of it is in the part, or writing fails. Only the last
/// happens after something was written.
pub fn slice(
    stored: &[u8],
    out: &mut dyn Write,
    options: &SliceOptions,
    progress: Progress<'_>,
) -> Result<Sliced> {
    if options.steps.is_some() && options.time.is_some() {
        let message = "steps and a time cannot be asked for together";
        return Err(Error::new(ErrorKind::Usage, message));
    }
    let trace = Trace::from_bytes(stored, &IngestOptions::default())?;
    // What is repaired on the way is noted at the end of what is written, so it is to be known before.
    let odd = is_repaired(&trace.health);
    let linked = Links::are_in(&trace);
    let passes = if odd || linked { 3 } else { 2 };
    let tour = |pass| Tour {
        stored,
        salvage: false,
        pass: (pass, passes),
        progress,
    };
    let mut links = Links::new(&trace);
    let found = if odd || linked {
        tour(1).survey(&mut links)?
    } else {
        Found::default()
    };
    let selection = Selection::new(&trace, options, &links.chains())?;
    // What is clipped by what comes next on its stream would not be without that.
    let mut lengths = HashMap::default();
    let mut clipped_ns = Ns::ZERO;
    if selection.count() < trace.events.len() as u64 {
        let clipped = attribute::clipped(&trace).into_iter();
        for (event, length) in clipped.filter(|(event, _)| selection.keeps(event.index())) {
            clipped_ns += trace.events.dur(event).unwrap_or_default() - length;
            lengths.insert(event.index(), length);
        }
    }
    let events = trace.events.len() as u64;
    drop(trace);
    let repaired = Repaired::new(&found);
    let sliced = Sliced {
        events: selection.count(),
        of: events,
        device_events: selection.device_events,
        steps: selection.steps.clone(),
        clipped: lengths.len() as u64,
        clipped_ns,
        repaired,
    };
    let mut cut = Cut {
        repaired: (!found.is_clean()).then(|| sliced.repaired.note()),
        note: note(options, &sliced),
        selection,
        lengths,
        number: 0,
    };
    tour(passes - 1).copy(&mut cut, &found.repeated, out)?;
    Ok(sliced)
}

/// Key of the note about a slice, and name of the event that has it in the array form.
const NOTE: &str = "tracekit_slice";

fn note(options: &SliceOptions, sliced: &Sliced) -> Value {
    let mut note = json!({"tool": TOOL, "events": sliced.events, "of": sliced.of});
    if let Some(first) = sliced.steps.first() {
        note["steps"] = json!([first, sliced.steps.last()]);
    }
    if let Some(time) = options.time {
        let end = (time.end.0 != i64::MAX).then_some(time.end);
        note["time_ns"] = json!([time.start, end]);
    }
    if sliced.clipped > 0 {
        note["clipped_events"] = json!(sliced.clipped);
        note["clipped_ns"] = json!(sliced.clipped_ns);
    }
    if !options.categories.is_empty() {
        note["categories"] = json!(options.categories);
    }
    note
}

/// True when what these findings are about is not in a copy of the content.
fn is_repaired(health: &Health) -> bool {
    [
        HealthCode::ReplacedEvents,
        HealthCode::UnterminatedArray,
        HealthCode::TrailingComma,
        HealthCode::ControlCharacters,
        HealthCode::InvalidUtf8,
        HealthCode::InvalidEscape,
        HealthCode::NonFiniteNumber,
        HealthCode::DuplicateKey,
        HealthCode::ByteOrderMark,
    ]
    .into_iter()
    .any(|code| health.get(code) > 0)
}

struct Cut {
    selection: Selection,
    /// New lengths of events by their number in the array.
    lengths: HashMap<usize, Ns>,
    number: usize,
    note: Value,
    /// What is noted about repairs.
    repaired: Option<Value>,
}

impl Edit for Cut {
    fn event(&mut self, _: u64, text: &[u8], out: &mut Vec<u8>) -> Fate {
        let number = self.number;
        self.number += 1;
        if !self.selection.keeps(number) {
            return Fate::Drop;
        }
        match self.lengths.get(&number) {
            Some(length) if clip(text, *length, out) => Fate::Replace,
            _ => Fate::Keep,
        }
    }

    fn extra_members(&mut self) -> Vec<(String, String)> {
        let repaired = self.repaired.as_ref().map(|note| (repair::NOTE, note));
        let notes = repaired.into_iter().chain([(NOTE, &self.note)]);
        notes
            .map(|(key, note)| (key.to_owned(), note.to_string()))
            .collect()
    }

    /// The array form has no place for notes but its events.
    fn extra_event(&mut self) -> Option<String> {
        Some(json!({"ph": "M", "name": NOTE, "args": self.note}).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_are_exact() {
        let range = |start, end| {
            Ok(TimeRange {
                start: Ns(start),
                end: Ns(end),
            })
        };
        for (text, expected) in [
            ("1.5s..2s", range(1_500_000_000, 2_000_000_000)),
            ("100..250ms", range(100_000_000, 250_000_000)),
            ("0s..1us", range(0, 1_000)),
            ("1us .. 2.500 ms", range(1_000, 2_500_000)),
            ("1µs..2µs", range(1_000, 2_000)),
            ("7ns..", range(7, i64::MAX)),
            ("..3.123456789s", range(0, 3_123_456_789)),
            ("..", range(0, i64::MAX)),
        ] {
            assert_eq!(text.parse::<TimeRange>(), expected, "{text}");
        }
        for wrong in [
            "",
            "1s",
            "1..2",
            "s..1s",
            "-1s..2s",
            "1e3s..",
            "1.s..2s",
            "1.2.3s..",
            "2s..1s",
            "1s..1s",
            "1.5ns..",
            "..1.0000000001s",
            "99999999999s..",
            "1m..2m",
        ] {
            assert!(wrong.parse::<TimeRange>().is_err(), "{wrong}");
        }
    }
}
