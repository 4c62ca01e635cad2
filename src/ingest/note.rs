//! The notes that tracekit leaves in the traces it writes: what a repair has lost is lost for ever,
//! and a slice is a part for ever.
//!
//! ```text
//! {"traceEvents": […], "tracekit_repair": {"tool": "tracekit 0.1.0", "lost": [[12, 40]], …}}
//! [{…}, {"ph": "M", "name": "tracekit_repair", "args": {"tool": …}}]      the array form
//! ```

use super::content::{Content, Trouble};
use super::row::{self, Value};
use super::text::Scanner;
use crate::error::Result;
use crate::health::{Health, HealthCode, Severity};
use crate::model::{NotedLoss, Ph, Rewriting, Trace};
use crate::units::Ns;

/// Keys of notes; a number is behind them when there was one already.
const REPAIR: &str = "tracekit_repair";
const SLICE: &str = "tracekit_slice";

/// So many ranges of lost bytes are kept, as many as a repair names.
const MAX_RANGES: usize = 1000;

/// So many events are read as notes; no file has more than a few.
const MAX_EVENTS: usize = 1000;

/// The texts of notes among the top-level keys.
#[derive(Debug, Default)]
pub(super) struct Notes<'a> {
    repairs: Vec<&'a [u8]>,
    slices: Vec<&'a [u8]>,
}

impl<'a> Notes<'a> {
    /// Keeps the value `text` when `key` is that of a note.
    pub(super) fn keep(&mut self, key: &[u8], text: &'a [u8]) {
        let is = |note: &str| {
            let behind = key.strip_prefix(note.as_bytes());
            behind.is_some_and(|behind| match behind {
                [] => true,
                [b'_', number @ ..] => number.iter().all(u8::is_ascii_digit),
                _ => false,
            })
        };
        if is(REPAIR) {
            self.repairs.push(text);
        } else if is(SLICE) {
            self.slices.push(text);
        }
    }

    /// What they say together.
    pub(super) fn read(&self) -> Rewriting {
        let mut rewriting = Rewriting::default();
        for text in &self.repairs {
            add_repair(text, &mut rewriting);
        }
        for text in &self.slices {
            add_slice(text, &mut rewriting);
        }
        rewriting
    }
}

/// Adds what notes among the events of `trace` say; `stored` is its file.
pub(super) fn read_events(trace: &mut Trace, stored: &[u8]) -> Result<()> {
    type Add = fn(&[u8], &mut Rewriting);
    for (note, add) in [(REPAIR, add_repair as Add), (SLICE, add_slice)] {
        let Some(name) = trace.strings.find(note) else {
            continue;
        };
        let events = &trace.events;
        let is_note = |id: &_| events.name(*id) == name && events.ph(*id) == Ph::METADATA;
        let notes = events.ids().filter(is_note).take(MAX_EVENTS);
        let mut content = Content::new(stored, false);
        for id in notes {
            content.pass_to(events.offset(id))?;
            let piece = match content.value() {
                Ok(piece) => piece,
                Err(Trouble::Content(error)) => return Err(error),
                Err(Trouble::Text { .. }) => continue,
            };
            let mut scanner = Scanner::new(content.text(piece), 0);
            let mut args = None;
            // Valid, as it was read before: there is no fault to report.
            let _ = scanner.members(|scanner, key| {
                let start = scanner.pos;
                scanner.skip()?;
                if key == b"args" {
                    args = Some(start..scanner.pos);
                }
                Ok(())
            });
            if let Some(args) = args {
                add(&content.text(piece)[args], &mut trace.metadata.rewriting);
            }
        }
    }
    Ok(())
}

/// Counts what notes say among the findings.
pub(super) fn count(rewriting: &Rewriting, health: &mut Health) {
    if let Some(lost) = &rewriting.lost {
        let what = match &lost.damage {
            Some(damage) => format!("{} bytes left out by a repair; {damage}", lost.bytes),
            None => format!("{} bytes left out by a repair", lost.bytes),
        };
        health.add(HealthCode::Salvaged, 1, Some(what));
    }
    let mut harmless = 0_u64;
    let mut named = Vec::new();
    for (what, count) in &rewriting.changes {
        if *what == HealthCode::ReplacedEvents.as_str() {
            // They were in no number before the repair, and are gone now.
            health.add(HealthCode::ReplacedEvents, *count, None);
        } else {
            harmless = harmless.saturating_add(*count);
            named.push(format!("{what} {count}"));
        }
    }
    health.add(HealthCode::Repaired, harmless, Some(named.join(", ")));
    if rewriting.clipped_ns > Ns::ZERO {
        health.add_time(HealthCode::Repaired, rewriting.clipped_ns, None);
    }
    // A slice that has all events is whole.
    health.add(HealthCode::Sliced, rewriting.left_out.unwrap_or(0), None);
}

/// The members of the note `text`; nothing when it is not by tracekit.
fn members<'a>(text: &'a [u8], mut member: impl FnMut(&[u8], Value<'a>)) {
    let mut scanner = Scanner::new(text, 0);
    if scanner.peek() != Some(b'{') {
        return;
    }
    let mut all: Vec<(Vec<u8>, Value<'a>)> = Vec::new();
    // Valid, as the walk of the document has found: there is no fault to report.
    let _ = scanner.members(|scanner, key| {
        all.push((key.to_vec(), scanner.value()?));
        Ok(())
    });
    let ours = all.iter().any(|(key, value)| {
        let mut decoded = String::new();
        let text = row::text_of(*value, &mut decoded);
        key == b"tool" && text.is_some_and(|tool| tool.starts_with("tracekit "))
    });
    if ours {
        for (key, value) in all {
            member(&key, value);
        }
    }
}

/// A count or an offset; 0 for what is none.
fn natural(value: Value<'_>) -> u64 {
    let number = row::signed(value, &mut String::new());
    number
        .and_then(|number| u64::try_from(number).ok())
        .unwrap_or(0)
}

fn add_repair(text: &[u8], rewriting: &mut Rewriting) {
    let mut lost = NotedLoss::default();
    let mut is_partial = false;
    let (mut brackets, mut ends_open) = (0, false);
    members(text, |key, value| match key {
        b"lost" => lost.ranges = ranges(value),
        b"lost_bytes" => lost.bytes = natural(value),
        b"lost_events_estimated" => lost.events_estimated = Some(natural(value)),
        b"ends_open" => ends_open = matches!(value, Value::Bool(true)),
        b"lost_ranges" => is_partial |= natural(value) > 0,
        b"damage" => {
            lost.damage = row::text_of(value, &mut String::new()).map(str::to_owned);
        }
        // An object that was not closed has lost what came behind.
        b"brackets_added" => brackets = natural(value),
        b"clipped_ns" => add_clipped(value, rewriting),
        _ => {
            let Ok(key) = std::str::from_utf8(key) else {
                return;
            };
            let known = match key {
                "commas_added" => Some("commas_added"),
                "clipped_events" => Some("clipped_events"),
                code => HealthCode::from_name(code)
                    .filter(|code| {
                        code.severity() < Severity::DataLoss || *code == HealthCode::ReplacedEvents
                    })
                    .map(HealthCode::as_str),
            };
            if let Some(known) = known {
                let changes = rewriting.changes.entry(known).or_insert(0);
                *changes = changes.saturating_add(natural(value));
            }
        }
    });
    if brackets > 0 {
        lost.damage
            .get_or_insert_with(|| "its end was missing".to_owned());
    }
    if !is_partial && lost.bytes == 0 && lost.damage.is_none() {
        return;
    }
    // One bracket is that of the object: it was cut behind its events.
    if ends_open {
        lost.events_estimated = None;
    } else if brackets < 2 {
        lost.events_estimated.get_or_insert(0);
    }
    let first = rewriting.lost.is_none();
    let all = rewriting.lost.get_or_insert_default();
    all.ranges.append(&mut lost.ranges);
    all.ranges.sort_unstable();
    all.ranges.truncate(MAX_RANGES);
    all.bytes = all.bytes.saturating_add(lost.bytes);
    all.events_estimated = if first {
        lost.events_estimated
    } else {
        let events = all.events_estimated.zip(lost.events_estimated);
        events.map(|(one, other)| one.saturating_add(other))
    };
    all.damage = match (all.damage.take(), lost.damage) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
}

/// Adds time that was clipped.
fn add_clipped(value: Value<'_>, rewriting: &mut Rewriting) {
    let clipped = i64::try_from(natural(value)).unwrap_or(i64::MAX);
    rewriting.clipped_ns = Ns(rewriting.clipped_ns.0.saturating_add(clipped));
}

/// Pairs of offsets.
fn ranges(value: Value<'_>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    let Value::Array(text) = value else {
        return ranges;
    };
    let _ = Scanner::new(text, 0).items(|scanner| {
        let value = scanner.value()?;
        let Value::Array(pair) = value else {
            return Ok(());
        };
        let mut ends = Vec::new();
        Scanner::new(pair, 0).items(|scanner| {
            let end = natural(scanner.value()?);
            if ends.len() < 3 {
                ends.push(end);
            }
            Ok(())
        })?;
        if let [from, to] = ends[..]
            && from < to
            && ranges.len() < MAX_RANGES
        {
            ranges.push((from, to));
        }
        Ok(())
    });
    ranges
}

fn add_slice(text: &[u8], rewriting: &mut Rewriting) {
    let (mut kept, mut of, mut clipped, mut any) = (0, 0, 0, false);
    members(text, |key, value| {
        any = true;
        match key {
            b"events" => kept = natural(value),
            b"of" => of = natural(value),
            b"clipped_events" => clipped = natural(value),
            b"clipped_ns" => add_clipped(value, rewriting),
            _ => {}
        }
    });
    if any {
        let left_out = rewriting.left_out.get_or_insert(0);
        *left_out = left_out.saturating_add(of.saturating_sub(kept));
    }
    if clipped > 0 {
        let changes = rewriting.changes.entry("clipped_events").or_insert(0);
        *changes = changes.saturating_add(clipped);
    }
}
