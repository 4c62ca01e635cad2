//! What whole captures differ in where no whole step shows it: names in steps that a capture cuts, and between steps.
//!
//! The other tables are about whole steps, for only their times can be compared. An operator that one side calls
//! in a cut step alone would be lost there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::names::state;
use super::observed::{ByStep, Calls};
use super::pace::Pace;
use super::side::Side;
use crate::inspect::Frame;

/// Kind, name and dimensions.
type Key = (&'static str, String, String);

/// Calls under one name in the captures of both sides.
#[derive(Debug, Clone, Default)]
struct Uses {
    calls: [u64; 2],
    /// Some are in no whole step.
    outside: bool,
}

/// Both sides by name, where their captures have another number of calls and some are in no whole step. Captures
/// of different numbers of steps are compared by which names they have; `None` when a side was not observed.
pub(super) fn captures_frame(sides: [&Side; 2], paces: &[Pace; 2], top: usize) -> Option<Frame> {
    let mut names: BTreeMap<Key, Uses> = BTreeMap::new();
    for (number, (side, pace)) in sides.into_iter().zip(paces).enumerate() {
        for (file, observed) in side.observed.as_ref()?.iter().enumerate() {
            let mut count = |key: Key, steps: &mut dyn Iterator<Item = (u32, u64)>| {
                let uses = names.entry(key).or_default();
                for (step, calls) in steps {
                    uses.calls[number] = uses.calls[number].saturating_add(calls);
                    uses.outside |= pace.step(file, step).is_none();
                }
            };
            for ((name, dims), steps) in &observed.operators {
                let mut steps = steps.iter().map(|(step, op)| (*step, op.host.calls));
                count(("operator", name.clone(), dims.clone()), &mut steps);
            }
            for ((name, class), steps) in &observed.kernels {
                let kind = if matches!(*class, "memcpy" | "memset") {
                    *class
                } else {
                    "kernel"
                };
                count((kind, name.clone(), String::new()), &mut of_calls(steps));
            }
        }
    }
    let as_many = sides[0].steps.all.len() == sides[1].steps.all.len();
    let differs = |uses: &Uses| {
        let [base, candidate] = uses.calls;
        uses.outside && base != candidate && (as_many || base == 0 || candidate == 0)
    };
    let mut rows: Vec<(Key, Uses)> = names
        .into_iter()
        .filter(|(_, uses)| differs(uses))
        .collect();
    // The map is in order of content; sorting keeps that order among equals.
    rows.sort_by_key(|(_, uses)| {
        let [base, candidate] = uses.calls;
        let on_both = base > 0 && candidate > 0;
        (on_both, Reverse(base.abs_diff(candidate)))
    });
    if top > 0 && rows.len() > top + 1 {
        let mut others = Uses::default();
        for (_, uses) in rows.split_off(top) {
            for (sum, calls) in others.calls.iter_mut().zip(uses.calls) {
                *sum = sum.saturating_add(calls);
            }
        }
        rows.push((("", "(others)".to_owned(), String::new()), others));
    }
    let told = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Some(
        Frame::new(
            "captures",
            "Calls in whole captures, where they differ and some are in no whole step; no times are compared.",
        )
        .text("kind", &rows, |(key, _)| told(key.0))
        .text("name", &rows, |(key, _)| Some(key.1.clone()))
        .text("input_dims", &rows, |(key, _)| told(&key.2))
        .text("state", &rows, |(key, uses)| {
            told(key.0).map(|_| state(uses.calls, [1; 2]))
        })
        .count("base_calls", &rows, |(_, uses)| Some(uses.calls[0]))
        .count("candidate_calls", &rows, |(_, uses)| Some(uses.calls[1])),
    )
}

fn of_calls(steps: &ByStep<Calls>) -> impl Iterator<Item = (u32, u64)> {
    steps.iter().map(|(step, calls)| (*step, calls.calls))
}
