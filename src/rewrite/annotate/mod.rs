//! A trace with what the attribution knows added to it, for viewers such as Perfetto.
//!
//! ```text
//! device 0   tracekit: phases   ├ forward ──────┤├ recompute ┤├ backward ──┤
//!            tracekit: idle                                               ├ host_bound ┤
//!            stream 7           ├ gemm ┤├ gelu ─┤├ gemm ─────┤├ gemm ─┤
//!            stream 7, lane 2               ├ a kernel that overlaps ─┤
//! ```
//! Every event stays, with the times that it has, counted from the first one; those that a viewer would drop
//! because they overlap others on their row move to further [lanes](lanes). Events without a possible time are
//! left out and counted. Several traces (ranks) become one: their processes, flows and correlations are kept
//! apart, their clocks aligned by the offsets given.
//!
//! The content is read twice. Memory is that of the columns of one trace at a time, and of what is added.

mod event;
mod lanes;
mod tracks;

use std::io::{self, Write};

use foldhash::HashMap;
use serde_json::{Value, json};

use super::document::{Edit, Fate, Found, Nothing, Tour};
use super::repair::{NOTE, Repaired};
use super::{OUTPUT, Progress, TOOL};
use crate::attribute::{AttributeOptions, dissect};
use crate::error::{Error, Result};
use crate::health::HealthCode;
use crate::ingest::IngestOptions;
use crate::model::{EventFlags, EventId, Ident, Ph, Trace};
use crate::units::Ns;
use event::Rewriter;
use lanes::Lanes;
use tracks::Tracks;

/// One trace to annotate.
#[derive(Debug, Clone, Copy)]
pub struct AnnotateInput<'a> {
    /// The file as stored, compressed or not.
    pub stored: &'a [u8],
    /// What it is called in the result, such as `rank 3`.
    pub label: &'a str,
    /// How far its clock is ahead of the others, and how sure that is, where it is known.
    pub clock: Option<(Ns, Option<Ns>)>,
}

/// What an annotated trace has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotated {
    /// Events of the inputs in it.
    pub events: u64,
    /// Events left out, for they have no possible time.
    pub left_out: u64,
    /// Events moved to further lanes, since a viewer would drop them.
    pub moved: u64,
    /// Events that overlap so many others that no lane was left; a viewer drops them.
    pub crowded: u64,
    /// Slices added.
    pub added: u64,
}

/// What is known about one input before it is copied.
struct Plan {
    /// By event: the thread that it moves to, as a place in `tids`; 0 for the one that it has.
    moves: Vec<u16>,
    tids: Vec<i64>,
    /// What its times count from.
    absolute_base: Ns,
    first: Option<Ns>,
    /// Added to every time of the file.
    shift: Ns,
    leave_out: Vec<EventId>,
    tracks: Tracks,
    surveyed: Found,
    processes: Processes,
}

/// New numbers of processes, so that those of several inputs stay apart.
#[derive(Default)]
struct Processes {
    /// `None` keeps all as they are.
    numbers: Option<HashMap<String, i64>>,
}

impl Processes {
    /// A process as the file has it, as JSON, in the result.
    fn number(&self, text: &str) -> Option<i64> {
        self.numbers.as_ref()?.get(text).copied()
    }
}

/// Processes that an input may have in a merged trace.
const PROCESSES: i64 = 100_000;

/// Writes `inputs` as one annotated trace to `out`; phases are those of an attribution with `options`.
///
/// # Errors
/// When an input cannot be read, or writing fails. Only the last happens after something was written.
pub fn annotate(
    inputs: &[AnnotateInput<'_>],
    out: &mut dyn Write,
    options: &AttributeOptions,
    progress: Progress<'_>,
) -> Result<Annotated> {
    let merged = inputs.len() > 1;
    let mut annotated = Annotated::default();
    let mut plans = Vec::with_capacity(inputs.len());
    for (number, input) in inputs.iter().enumerate() {
        plans.push(plan(input, number, merged, options, &mut annotated)?);
    }
    let absolute = |(plan, input): (&Plan, &AnnotateInput<'_>)| {
        let ahead = input.clock.map_or(Ns::ZERO, |(ahead, _)| ahead);
        Some(plan.absolute_base + plan.first? - ahead)
    };
    let start = plans.iter().zip(inputs).filter_map(absolute).min();
    let start = start.unwrap_or_default();
    for (plan, input) in plans.iter_mut().zip(inputs) {
        let ahead = input.clock.map_or(Ns::ZERO, |(ahead, _)| ahead);
        plan.shift = plan.absolute_base - ahead - start;
    }
    let mut writer = Writer {
        out,
        failed: None,
        any: false,
    };
    writer.text("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [");
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    let mut repairs: Vec<Vec<u8>> = Vec::new();
    for (number, (plan, input)) in plans.iter().zip(inputs).enumerate() {
        let mut copy = Copy {
            plan,
            rewriter: Rewriter {
                shift: plan.shift,
                merged: merged.then_some((number, input.label)),
            },
            writer: &mut writer,
            event: 0,
            left_out: 0,
            members: (!merged).then_some(&mut members),
            repairs: &mut repairs,
            text: Vec::new(),
        };
        let tour = Tour {
            stored: input.stored,
            salvage: false,
            pass: (number as u64, inputs.len() as u64),
            progress,
        };
        let found = tour.copy(&mut copy, &plan.surveyed.repeated, &mut io::sink())?;
        // What is repeated is told by who did not know of it.
        let found = if plan.surveyed.is_clean() {
            &found
        } else {
            &plan.surveyed
        };
        if !found.is_clean() {
            repairs.push(Repaired::new(found).note().to_string().into_bytes());
        }
        for added in plan.tracks.events(plan.shift) {
            writer.element(added.as_bytes());
        }
        if let Some(error) = writer.failed.take() {
            return Err(Error::io(OUTPUT, error));
        }
    }
    writer.text("\n  ]");
    for (key, value) in members {
        writer.text(&format!(",\n  {}: ", Value::String(key)));
        writer.bytes(&value);
    }
    for (number, repair) in (1..).zip(repairs) {
        let key = match number {
            1 => NOTE.to_owned(),
            _ => format!("{NOTE}_{number}"),
        };
        writer.text(&format!(",\n  {}: ", Value::String(key)));
        writer.bytes(&repair);
    }
    let note = note(inputs, &plans, &annotated);
    writer.text(&format!(
        ",\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": {},\n  \"tracekit_annotate\": {note}\n}}\n",
        start.0
    ));
    let done = writer.failed.take().map_or_else(|| writer.out.flush(), Err);
    done.map_err(|error| Error::io(OUTPUT, error))?;
    Ok(annotated)
}

/// What was done, in the trace itself.
fn note(inputs: &[AnnotateInput<'_>], plans: &[Plan], annotated: &Annotated) -> Value {
    let clock = |input: &AnnotateInput<'_>| match input.clock {
        Some((ahead, uncertainty)) => json!({"ahead_ns": ahead, "uncertainty_ns": uncertainty}),
        None => json!(null),
    };
    let files: Vec<Value> = inputs
        .iter()
        .zip(plans)
        .map(|(input, plan)| {
            json!({"label": input.label, "clock": clock(input), "shift_ns": plan.shift})
        })
        .collect();
    json!({
        "tool": TOOL,
        "inputs": files,
        "events": annotated.events,
        "left_out": annotated.left_out,
        "moved_to_lanes": annotated.moved,
        "crowded": annotated.crowded,
        "added": annotated.added,
    })
}

fn plan(
    input: &AnnotateInput<'_>,
    number: usize,
    merged: bool,
    options: &AttributeOptions,
    annotated: &mut Annotated,
) -> Result<Plan> {
    let trace = Trace::from_bytes(input.stored, &IngestOptions::default())?;
    let events = &trace.events;
    let mut surveyed = Found::default();
    let several = [HealthCode::DuplicateKey, HealthCode::ReplacedEvents];
    if several.iter().any(|code| trace.health.get(*code) > 0) {
        let tour = Tour {
            stored: input.stored,
            salvage: false,
            pass: (0, 1),
            progress: &|_, _| {},
        };
        // Of several event arrays, only the last is copied then.
        surveyed = tour.survey(&mut Nothing)?;
    }
    let leave_out: Vec<EventId> = events.ids().filter(|id| !has_place(&trace, *id)).collect();
    let starts = events
        .ids()
        .filter(|id| has_place(&trace, *id) && is_timed(&trace, *id));
    let first = starts.filter_map(|id| events.ts(id)).min();
    let processes = processes(&trace, number, merged);
    let mut lanes = Lanes::new(&trace);
    lanes.lay_out(first.unwrap_or_default());
    annotated.events += events.len() as u64 - leave_out.len() as u64;
    annotated.left_out += leave_out.len() as u64;
    annotated.moved += lanes.moved;
    annotated.crowded += lanes.crowded;
    let tracks = dissect(&trace, options, |dissection| {
        Tracks::new(dissection, &mut lanes, &processes)
    })?;
    annotated.added += tracks.slices();
    Ok(Plan {
        moves: lanes.moves,
        tids: lanes.tids,
        absolute_base: Ns(trace.metadata.base_time_ns.unwrap_or(0)),
        first,
        shift: Ns::ZERO,
        leave_out,
        tracks,
        surveyed,
        processes,
    })
}

fn is_timed(trace: &Trace, id: EventId) -> bool {
    trace.events.ph(id) != Ph::METADATA
}

/// True for events that a viewer can place: metadata, and what has a possible time.
fn has_place(trace: &Trace, id: EventId) -> bool {
    let events = &trace.events;
    let flags = events.flags(id);
    match events.ph(id) {
        Ph::METADATA => true,
        Ph::COMPLETE => {
            let whole = flags.has(EventFlags::HAS_TS) && flags.has(EventFlags::HAS_DUR);
            whole && !flags.has(EventFlags::EXCLUDED)
        }
        Ph::MISSING => false,
        _ => flags.has(EventFlags::HAS_TS) && !flags.has(EventFlags::EXCLUDED),
    }
}

/// How a process is written, as JSON.
fn spelled(trace: &Trace, ident: Ident) -> String {
    match ident {
        Ident::Missing => "0".to_owned(),
        Ident::Int(number) => number.to_string(),
        Ident::Text(text) => Value::String(trace.strings.get(text).to_owned()).to_string(),
    }
}

fn processes(trace: &Trace, number: usize, merged: bool) -> Processes {
    if !merged {
        return Processes::default();
    }
    let mut known: Vec<String> = trace
        .tracks
        .iter()
        .map(|(_, track)| spelled(trace, track.pid))
        .collect();
    known.sort_unstable();
    known.dedup();
    let first = i64::try_from(number).unwrap_or(0).saturating_mul(PROCESSES) + PROCESSES;
    Processes {
        numbers: Some(known.into_iter().zip(first..).collect()),
    }
}

/// Where the result goes; after a failure nothing more is written.
struct Writer<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
    any: bool,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes an element of the event array.
    fn element(&mut self, text: &[u8]) {
        self.text(if self.any { ",\n" } else { "\n" });
        self.any = true;
        self.bytes(text);
    }
}

/// True for keys of notes about repairs, which may have a number.
fn is_note(key: &str) -> bool {
    let behind = key
        .strip_prefix(NOTE)
        .map(|behind| behind.strip_prefix('_').unwrap_or(behind));
    behind.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Copies the events of one input.
struct Copy<'a, 'w> {
    plan: &'a Plan,
    rewriter: Rewriter<'a>,
    writer: &'a mut Writer<'w>,
    event: usize,
    /// Of the events to leave out, how many were passed.
    left_out: usize,
    /// Where the other top-level members go.
    members: Option<&'a mut Vec<(String, Vec<u8>)>>,
    /// Where notes go about what was repaired, of all inputs.
    repairs: &'a mut Vec<Vec<u8>>,
    text: Vec<u8>,
}

impl Edit for Copy<'_, '_> {
    fn event(&mut self, _: u64, text: &[u8], _: &mut Vec<u8>) -> Fate {
        let number = self.event;
        self.event += 1;
        let is_out = |id: &EventId| id.index() == number;
        if self.plan.leave_out.get(self.left_out).is_some_and(is_out) {
            self.left_out += 1;
            return Fate::Drop;
        }
        let moved = self.plan.moves.get(number).copied().unwrap_or(0);
        let tid = (moved > 0).then(|| self.plan.tids[usize::from(moved) - 1]);
        self.text.clear();
        self.rewriter
            .rewrite(text, tid, &self.plan.processes, &mut self.text);
        let text = std::mem::take(&mut self.text);
        self.writer.element(&text);
        self.text = text;
        Fate::Drop
    }

    fn member(&mut self, key: &str, text: &[u8], _: &mut Vec<u8>) -> Fate {
        let own = [
            "schemaVersion",
            "displayTimeUnit",
            "baseTimeNanoseconds",
            "tracekit_annotate",
        ];
        if is_note(key) {
            self.repairs.push(text.to_vec());
        } else if let Some(members) = &mut self.members
            && !own.contains(&key)
        {
            members.retain(|(known, _)| known != key);
            members.push((key.to_owned(), text.to_vec()));
        }
        Fate::Drop
    }
}
