//! Whether the repeats of a side are repeats: captures of one program that does the same.
//!
//! A folder of strategies looks like a folder of repeats. They are told apart by what no two captures of one
//! program differ in: devices, ranks, types and shapes of the model, whether there is recompute, and operators
//! that each step of one calls half as often again as any step of the other, or more.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::observed::{MODEL, OUTSIDE, Observed};
use super::saved::SavedFile;
use super::side::Side;

/// Repeats that are of different programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mixture {
    /// Their runs; paths of files where a run has several repeats.
    pub repeats: Vec<String>,
    /// What some of them differ in.
    pub differ_in: Vec<&'static str>,
}

impl Mixture {
    /// The repeats of `side`, when they are no repeats.
    pub(super) fn of(side: &Side) -> Option<Self> {
        let count = usize::try_from(side.repeat_count()).unwrap_or(0);
        let likenesses: Vec<Likeness<'_>> = (0..count)
            .map(|repeat| Likeness::of(side, repeat))
            .collect();
        let (first, others) = likenesses.split_first()?;
        let mut differ_in: Vec<&'static str> = others
            .iter()
            .flat_map(|other| first.differences(other))
            .collect();
        differ_in.sort_unstable();
        differ_in.dedup();
        (!differ_in.is_empty()).then(|| Self {
            repeats: (0..count).map(|repeat| name(side, repeat)).collect(),
            differ_in,
        })
    }
}

/// The files of a repeat, with what was observed in them.
fn files(side: &Side, repeat: usize) -> impl Iterator<Item = (&SavedFile, Option<&Observed>)> {
    let files = side.saved.ranks.iter().zip(&side.repeats).enumerate();
    let own = files.filter(move |(_, (_, own))| **own as usize == repeat);
    own.map(|(number, (file, _))| {
        let observed = side.observed.as_ref();
        (file, observed.and_then(|observed| observed.get(number)))
    })
}

fn name(side: &Side, repeat: usize) -> String {
    let Some((file, _)) = files(side, repeat).next() else {
        return String::new();
    };
    let of_run = side.saved.ranks.iter().zip(&side.repeats);
    let own = of_run.filter(|(other, _)| other.run == file.run);
    let repeats: BTreeSet<u32> = own.map(|(_, repeat)| *repeat).collect();
    let run = side.saved.runs.get(file.run);
    match run {
        Some(run) if repeats.len() == 1 => run.name.clone(),
        _ => side.saved.inputs[file.input].path.clone(),
    }
}

/// What a repeat is like.
#[derive(Default)]
struct Likeness<'a> {
    devices: BTreeSet<&'a str>,
    ranks: BTreeSet<Option<i64>>,
    on_device: bool,
    recompute: bool,
    dtypes: BTreeSet<&'a str>,
    /// Forward operators of the model with their shapes.
    shapes: BTreeSet<(&'a str, &'a str)>,
    /// Steps of all files.
    steps: usize,
    /// By operator: its calls in each step that has any.
    calls: BTreeMap<&'a str, Vec<u64>>,
}

impl<'a> Likeness<'a> {
    fn of(side: &'a Side, repeat: usize) -> Self {
        let mut likeness = Self::default();
        for (file, observed) in files(side, repeat) {
            let names = file
                .devices
                .iter()
                .filter_map(|device| device.name.as_deref());
            likeness.devices.extend(names);
            likeness.ranks.insert(file.rank);
            likeness.on_device |= file.coverage.device_events > 0;
            let host = file.host.phases.get("recompute");
            let mut tables = file.devices.iter().map(|device| &device.totals);
            likeness.recompute |= host.is_some_and(|phase| phase.self_ns > 0)
                || tables.any(|table| table.get("recompute").is_some_and(|cell| cell.events > 0));
            if let Some(observed) = observed {
                likeness.add(observed, file.host.steps.len());
            }
        }
        likeness
    }

    fn add(&mut self, observed: &'a Observed, steps: usize) {
        self.dtypes
            .extend(observed.dtypes.iter().map(String::as_str));
        for (name, dims) in &observed.forward {
            if MODEL.contains(&name.as_str()) && !dims.is_empty() {
                self.shapes.insert((name, dims));
            }
        }
        self.steps += steps;
        // Rows of one name, one for each of its shapes, follow one another.
        let rows: Vec<_> = observed.operators.iter().collect();
        for rows in rows.chunk_by(|one, other| one.0.0 == other.0.0) {
            let mut by_step = BTreeMap::<u32, u64>::new();
            for (step, calls) in rows.iter().flat_map(|(_, steps)| *steps) {
                *by_step.entry(*step).or_default() += calls.host.calls;
            }
            by_step.remove(&OUTSIDE);
            let own = self.calls.entry(rows[0].0.0.as_str()).or_default();
            own.extend(by_step.into_values());
        }
    }

    /// The least and the most calls of the operator in a step.
    fn calls(&self, name: &str) -> (u64, u64) {
        let calls = self.calls.get(name).map_or(&[][..], Vec::as_slice);
        let least = calls.iter().min().filter(|_| calls.len() >= self.steps);
        let most = calls.iter().max();
        (least.copied().unwrap_or(0), most.copied().unwrap_or(0))
    }

    /// True when some operator is called half as often again in each step of one as in any of the other, or more.
    fn calls_differently(&self, other: &Self) -> bool {
        if self.steps == 0 || other.steps == 0 || self.calls.is_empty() || other.calls.is_empty() {
            return false;
        }
        let mut names = self.calls.keys().chain(other.calls.keys());
        names.any(|name| {
            let (own, theirs) = (self.calls(name), other.calls(name));
            let apart = |least: u64, most: u64| {
                least > 0 && least.saturating_mul(2) >= most.saturating_mul(3)
            };
            apart(own.0, theirs.1) || apart(theirs.0, own.1)
        })
    }

    fn differences(&self, other: &Self) -> Vec<&'static str> {
        // What one of them does not tell is no difference.
        fn unlike<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> bool {
            !one.is_empty() && !other.is_empty() && one != other
        }
        let all = [
            ("devices", unlike(&self.devices, &other.devices)),
            ("ranks", unlike(&self.ranks, &other.ranks)),
            ("device work", self.on_device != other.on_device),
            ("recompute", self.recompute != other.recompute),
            ("types", unlike(&self.dtypes, &other.dtypes)),
            ("shapes of the model", unlike(&self.shapes, &other.shapes)),
            ("operators", self.calls_differently(other)),
        ];
        let differing = all.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| name).collect()
    }
}
