//! One input, from its bytes to its record.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use super::recognise::plausible;
use super::record::{Brief, Failure, Record};
use super::rows;
use crate::attribute::{
    AttributeOptions, Dissection, Request, Salvage, attributed_bytes, attribution_of,
};
use crate::doctor::{Measures, judgement_of};
use crate::error::{Error, ErrorKind, Result};
use crate::infer::{Plan, Taken, Thresholds};
use crate::ingest::{IngestOptions, Input, archive, kind};
use crate::inspect::{By, Frame, InspectOptions, Inspected, Seen, Topic, View, subject_of};
use crate::model::Trace;

/// How inputs are analysed.
#[derive(Debug, Clone)]
pub(super) struct Analysis {
    pub(super) attribute: AttributeOptions,
    pub(super) ingest: IngestOptions,
    pub(super) salvage: Option<Salvage>,
    pub(super) thresholds: Thresholds,
    /// Test what limits each input.
    pub(super) infer: bool,
}

/// What is seen in one trace while it is there.
struct Glance {
    taken: Option<Taken>,
    operators: Seen,
    measures: Measures,
    start_ns: Option<i64>,
}

impl Analysis {
    /// The record of an input with these bytes as stored, which may hold up to `most` bytes of content.
    pub(super) fn record(&self, bytes: &[u8], most: u64) -> std::result::Result<Record, Failure> {
        let unpacked;
        let content = if archive::is_xz(bytes) {
            unpacked = archive::unpacked(bytes, most).map_err(|error| Failure::of(&error, true))?;
            unpacked.as_slice()
        } else {
            bytes
        };
        self.of_content(content, most).map_err(|error| {
            let is_damage = error.is_damage() || error.kind() == ErrorKind::TooLarge;
            let is_trace = is_damage && kind::may_be_a_trace(content);
            Failure::of(&error, is_trace)
        })
    }

    fn of_content(&self, content: &[u8], most: u64) -> Result<Record> {
        #[cfg(test)]
        assert!(
            memchr::memmem::find(content, super::run::PANICS).is_none(),
            "a test asked for this"
        );
        let paths: [PathBuf; 0] = [];
        let request = Request {
            paths: &paths,
            ingest: IngestOptions {
                max_content: most,
                ..self.ingest
            },
            options: &self.attribute,
            ranks: Vec::new(),
            expect: Vec::new(),
            hash_inputs: false,
            salvage: self.salvage,
        };
        // No name: what the content says must not depend on where it is.
        let input = Input {
            path: PathBuf::from("trace"),
            root: None,
        };
        let plan = self.infer.then(|| Plan::new(&self.thresholds));
        let options = InspectOptions {
            by: vec![By::Phase],
            top: 0,
            ..InspectOptions::default()
        };
        let operators = subject_of(Topic::Operators);
        let look = |dissection: &Dissection<'_>, content: &[u8]| -> Result<Glance> {
            let view = View::new(dissection, content, &options);
            let taken = plan.as_ref().map(|plan| plan.take(&view));
            Ok(Glance {
                taken: taken.transpose()?,
                operators: operators.look(&view)?,
                measures: Measures::new(dissection.trace),
                start_ns: start(dissection.trace),
            })
        };
        let file = attributed_bytes(&input, content, &request, look).map_err(without_path)?;
        let verdict = judgement_of(&file, &file.seen.measures);
        let (attribution, seen) = attribution_of(file, &request).map_err(without_path)?;
        let gone = || Error::new(ErrorKind::State, "an attribution without its file");
        let glance = seen.into_iter().next().ok_or_else(gone)?;
        let rank = attribution.ranks.first().ok_or_else(gone)?.clone();
        let frames = operators.tables(Inspected::of(&attribution, vec![glance.operators]));
        let operators = frames
            .into_iter()
            .find(|frame| frame.name == "operators")
            .unwrap_or_else(|| Frame::new("operators", ""));
        let mut facts = rows::facts(&attribution, &rank);
        let record = &attribution.inputs[rank.input];
        facts.brief = Brief {
            rank: record.rank,
            world_size: record.world_size,
            start_ns: glance.start_ns,
        };
        let verdict = serde_json::to_value(verdict).ok();
        facts.verdict = verdict
            .and_then(|verdict| Some(verdict.as_str()?.to_owned()))
            .unwrap_or_default();
        let inferences = match (plan, glance.taken) {
            (Some(plan), Some(taken)) => plan.infer(&attribution, vec![taken])?.into_iter().next(),
            _ => None,
        };
        facts.limited_by = inferences.as_ref().and_then(rows::limit);
        let tables = rows::tables(&attribution, &rank, &operators, inferences.as_ref());
        Ok(Record { facts, tables })
    }
}

/// The name was made up.
fn without_path(error: Error) -> Error {
    let plain = Error::new(error.kind(), error.reason());
    if error.path().is_some() { plain } else { error }
}

/// When the first event starts, in nanoseconds since the epoch, when the trace tells.
fn start(trace: &Trace) -> Option<i64> {
    let events = &trace.events;
    let starts = events
        .ids()
        .filter(|id| events.is_complete(*id))
        .filter_map(|id| Some(events.ts(id)?.0));
    let first = starts.min()?;
    let based = trace
        .metadata
        .base_time_ns
        .and_then(|base| first.checked_add(base));
    based.and_then(plausible).or_else(|| plausible(first))
}

/// What `work` gives; a panic in it is a failure.
pub(super) fn guarded<T>(
    work: impl FnOnce() -> std::result::Result<T, Failure>,
) -> std::result::Result<T, Failure> {
    // Nothing that `work` may leave behind half done is looked at again.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "unknown".to_owned());
        Err(Failure::panic(&message.replace(['\n', '\r'], " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_of_one_input() {
        let failure = guarded::<()>(|| panic!("out of\nplace")).unwrap_err();
        assert_eq!(failure.kind, "internal");
        assert!(failure.error.ends_with("out of place"), "{}", failure.error);
        assert_eq!(guarded(|| Ok(7)), Ok(7));
    }

    #[test]
    fn starts_are_those_since_the_epoch_or_none() {
        let of = |json: &str| {
            let trace = Trace::from_bytes(json.as_bytes(), &IngestOptions::default()).unwrap();
            start(&trace)
        };
        let event = r#"{"ph":"X","name":"a","ts":5,"dur":1}"#;
        assert_eq!(of(&format!("[{event}]")), None);
        let based =
            format!(r#"{{"baseTimeNanoseconds":1700000000000000000,"traceEvents":[{event}]}}"#);
        assert_eq!(of(&based), Some(1_700_000_000_000_005_000));
    }
}
