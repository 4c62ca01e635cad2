//! The same events as valid JSON.

use std::io::Write;

use foldhash::HashMap;
use serde_json::{Map, Value, json};

use super::document::{Edit, Fate, Found, Lost, Nothing, Tour};
use super::json::{Kind, Token, Tokens, says};
use super::{Progress, TOOL};
use crate::attribute::{self, Salvaged};
use crate::error::Result;
use crate::health::Health;
use crate::ingest::Columns;
use crate::units::Ns;

/// What the caller may ask of a repair.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Clip impossible overlaps on device lanes as the attribution does, and keep the length that
    /// was written in the event's arguments.
    pub clip: bool,
    /// Skip what cannot be read without guessing.
    pub salvage: bool,
}

/// What a repair did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// How many elements the event array has now.
    pub events: u64,
    /// What was no JSON and has one sensible reading; byte offsets are those of the input.
    pub findings: Health,
    /// Closing brackets added at the end.
    pub brackets: u64,
    /// Commas added between events.
    pub commas: u64,
    /// What was skipped.
    pub lost: Lost,
    /// How compressed data is damaged.
    pub damage: Option<String>,
    /// Events whose length was clipped.
    pub clipped: u64,
    /// How much time that took away.
    pub clipped_ns: Ns,
}

impl Repaired {
    /// What reading alone repairs of what was `found`.
    pub(super) fn new(found: &Found) -> Self {
        Self {
            events: found.events,
            findings: found.health.clone(),
            brackets: found.brackets,
            commas: found.commas,
            lost: found.lost.clone(),
            damage: found.damage.clone(),
            ..Self::default()
        }
    }

    /// True when the content was copied as it is.
    pub fn is_unchanged(&self) -> bool {
        self.findings.worst().is_none()
            && self.brackets == 0
            && self.commas == 0
            && self.lost.count == 0
            && self.damage.is_none()
            && self.clipped == 0
    }

    /// What is written about the repair into the trace.
    pub(super) fn note(&self) -> Value {
        let mut note = Map::new();
        let mut add = |key: &str, value: Value| {
            note.insert(key.to_owned(), value);
        };
        add("tool", json!(TOOL));
        for entry in self.findings.entries() {
            add(entry.code, json!(entry.count));
        }
        for (key, count) in [
            ("brackets_added", self.brackets),
            ("commas_added", self.commas),
            ("clipped_events", self.clipped),
        ] {
            if count > 0 {
                add(key, json!(count));
            }
        }
        if self.clipped > 0 {
            add("clipped_ns", json!(self.clipped_ns));
        }
        if let Some(damage) = &self.damage {
            add("damage", json!(damage));
        }
        if self.lost.count > 0 {
            let Lost {
                ranges,
                count,
                bytes,
                events_estimated,
                ends_open: _,
            } = &self.lost;
            add("lost", json!(ranges));
            add("lost_ranges", json!(count));
            add("lost_bytes", json!(bytes));
            if let Some(events) = events_estimated {
                add("lost_events_estimated", json!(events));
            }
        }
        if self.lost.ends_open {
            add("ends_open", json!(true));
        }
        Value::Object(note)
    }
}

/// Key of the note about a repair, and name of the event that has it in the array form.
pub(super) const NOTE: &str = "tracekit_repair";

/// Key of the length of a clipped event as it was written.
const RAW: &str = "tracekit raw dur";

/// Writes the trace that is stored as `stored` (compressed or not) to `out` as valid JSON: the same
/// events, and every byte as it is except where it cannot be.
///
/// # Errors
/// When the content is no trace, cannot be read without guessing (and `salvage` is not set), or
/// writing fails. Only the last happens after something was written.
pub fn repair(
    stored: &[u8],
    out: &mut dyn Write,
    options: &RepairOptions,
    progress: Progress<'_>,
) -> Result<Repaired> {
    rewrite(stored, out, options, true, progress)
}

/// Like [`repair`], with a note about what was done only when `is_noted`.
fn rewrite(
    stored: &[u8],
    out: &mut dyn Write,
    options: &RepairOptions,
    is_noted: bool,
    progress: Progress<'_>,
) -> Result<Repaired> {
    let tour = |pass| Tour {
        stored,
        salvage: options.salvage,
        pass: (pass, 2),
        progress,
    };
    let (found, clips) = if options.clip {
        let mut collect = Collect::default();
        let found = tour(0).survey(&mut collect)?;
        (found, collect.clips()?)
    } else {
        (tour(0).survey(&mut Nothing)?, Clips::default())
    };
    let mut repaired = Repaired::new(&found);
    repaired.clipped = clips.lengths.len() as u64;
    repaired.clipped_ns = clips.taken;
    if found.is_clean() && repaired.clipped == 0 {
        tour(1).copy_all(out)?;
        return Ok(repaired);
    }
    let mut mend = Mend {
        lengths: clips.lengths,
        number: 0,
        repaired: is_noted.then_some(&repaired),
    };
    let Found { repeated, .. } = found;
    tour(1).copy(&mut mend, &repeated, out)?;
    Ok(repaired)
}

/// What is whole in a damaged file, by the rules of [`repair`](super::repair()) with `salvage`: for
/// [`Request::salvage`](attribute::Request::salvage).
///
/// # Errors
/// When the content is no trace.
pub fn salvage(stored: &[u8]) -> Result<Salvaged> {
    let mut salvaged = Salvaged::default();
    let options = RepairOptions {
        salvage: true,
        ..RepairOptions::default()
    };
    // What is done is told by the caller; what stands in notes was done before.
    let repaired = rewrite(stored, &mut salvaged.content, &options, false, &|_, _| {})?;
    salvaged.events_estimated = repaired.lost.events_estimated;
    salvaged.ranges = repaired.lost.ranges;
    salvaged.bytes = repaired.lost.bytes;
    let cut = (repaired.brackets > 0).then(|| "its end is missing".to_owned());
    salvaged.damage = repaired.damage.or(cut);
    salvaged.findings = repaired.findings;
    Ok(salvaged)
}

/// Collects the events to find out which of them are to be clipped.
#[derive(Default)]
struct Collect {
    columns: Columns,
}

/// New lengths of events by their number in the array.
#[derive(Default)]
struct Clips {
    lengths: HashMap<u64, Ns>,
    taken: Ns,
}

impl Collect {
    fn clips(self) -> Result<Clips> {
        let trace = self.columns.trace()?;
        let mut clips = Clips::default();
        for (event, length) in attribute::clipped(&trace) {
            let written = trace.events.dur(event).unwrap_or_default();
            clips.taken += written - length;
            clips.lengths.insert(event.index() as u64, length);
        }
        Ok(clips)
    }
}

impl Edit for Collect {
    fn begin(&mut self) {
        self.columns = Columns::default();
    }

    fn event(&mut self, offset: u64, text: &[u8], _: &mut Vec<u8>) -> Fate {
        self.columns.push(offset, text);
        Fate::Keep
    }
}

/// Clips events and writes the note.
struct Mend<'a> {
    lengths: HashMap<u64, Ns>,
    number: u64,
    /// What to note.
    repaired: Option<&'a Repaired>,
}

impl Edit for Mend<'_> {
    fn event(&mut self, _: u64, text: &[u8], out: &mut Vec<u8>) -> Fate {
        let number = self.number;
        self.number += 1;
        match self.lengths.get(&number) {
            Some(length) if clip(text, *length, out) => Fate::Replace,
            _ => Fate::Keep,
        }
    }

    fn extra_member(&mut self) -> Option<(String, String)> {
        let note = self.repaired?.note();
        Some((NOTE.to_owned(), note.to_string()))
    }

    /// The array form has no place for notes. What is lost, and which times are not those that the
    /// profiler wrote, must not go unsaid all the same.
    fn extra_event(&mut self) -> Option<String> {
        let repaired = self.repaired?;
        let is_told = repaired.lost.count > 0 || repaired.damage.is_some() || repaired.clipped > 0;
        is_told.then(|| json!({"ph": "M", "name": NOTE, "args": repaired.note()}).to_string())
    }
}

/// Writes the event `text` with another `dur`; false when it has none.
pub(super) fn clip(text: &[u8], length: Ns, out: &mut Vec<u8>) -> bool {
    let mut key = None;
    let mut dur: Option<Token> = None;
    let mut args: Option<Token> = None;
    for token in Tokens::new(text).filter(|token| token.depth == 1) {
        match token.kind {
            Kind::Key => key = Some(token),
            Kind::Close => {}
            Kind::Open | Kind::Text | Kind::Plain => {
                let is = |wanted| key.is_some_and(|key| says(text, key, wanted));
                if is("dur") {
                    dur = Some(token);
                } else if is("args") {
                    args = Some(token);
                }
            }
        }
    }
    let Some(dur) = dur.filter(|dur| dur.kind != Kind::Open) else {
        return false;
    };
    let written = &text[dur.start..dur.end];
    let quotes = if dur.kind == Kind::Text { "\"" } else { "" };
    let length = microseconds(length, written.contains(&b'.'));
    let length = format!("{quotes}{length}{quotes}");
    let raw = format!("\"{RAW}\": {}", String::from_utf8_lossy(written));
    let mut inserts = vec![(dur.start, dur.end, length)];
    if let Some(args) = args.filter(|args| text[args.start] == b'{') {
        let mut inside = Tokens::new(&text[args.start..]);
        let is_empty = inside.nth(1).is_none_or(|next| next.kind == Kind::Close);
        let comma = if is_empty { "" } else { ", " };
        inserts.push((args.end, args.end, format!("{raw}{comma}")));
    } else {
        let end = text.len() - 1;
        inserts.push((end, end, format!(", \"args\": {{{raw}}}")));
    }
    inserts.sort_unstable();
    let mut at = 0;
    for (from, to, insert) in inserts {
        out.extend_from_slice(&text[at..from]);
        out.extend_from_slice(insert.as_bytes());
        at = to;
    }
    out.extend_from_slice(&text[at..]);
    true
}

/// `time` in microseconds, exactly; with three decimals when `decimals`, else as many as needed.
fn microseconds(time: Ns, decimals: bool) -> String {
    let (whole, part) = (time.0 / 1000, time.0 % 1000);
    if decimals || part != 0 {
        format!("{whole}.{part:03}")
    } else {
        whole.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(text: &str, ns: i64) -> Option<String> {
        let mut out = Vec::new();
        clip(text.as_bytes(), Ns(ns), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_clipped_event_keeps_its_length_as_it_was_written() {
        assert_eq!(
            clipped(r#"{"ts":1,"dur": 20, "args":{"stream": 7}}"#, 5_000).unwrap(),
            r#"{"ts":1,"dur": 5, "args":{"tracekit raw dur": 20, "stream": 7}}"#
        );
        assert_eq!(
            clipped(r#"{"args":{ },"dur":"20.500","x":{"dur":1}}"#, 5_000).unwrap(),
            r#"{"args":{"tracekit raw dur": "20.500" },"dur":"5.000","x":{"dur":1}}"#
        );
        assert_eq!(
            clipped(r#"{"dur":20,"ph":"X"}"#, 5_001).unwrap(),
            r#"{"dur":5.001,"ph":"X", "args": {"tracekit raw dur": 20}}"#
        );
        assert_eq!(
            clipped(r#"{"dur":1,"dur":2,"args":null}"#, 0).unwrap(),
            r#"{"dur":1,"dur":0,"args":null, "args": {"tracekit raw dur": 2}}"#
        );
        assert_eq!(clipped(r#"{"ts":1,"args":{"dur":2}}"#, 0), None);
        assert_eq!(clipped("[1]", 0), None);
    }
}
