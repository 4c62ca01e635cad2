//! Whether both sides did the same work.
//!
//! Devices, ranks, world size, types of numbers, the shapes of the model's operators, and which programs are in
//! a side that mixes several decide; the number
//! of steps, the options in force and the whole set of forward operators are told, but another kernel for
//! the same work is no other work.

use std::collections::BTreeSet;

use super::observed::{MODEL, OpKey};
use super::side::Side;
use crate::inspect::Frame;

/// One item of the contract.
pub(super) struct Item {
    pub(super) name: &'static str,
    pub(super) base: Option<String>,
    pub(super) candidate: Option<String>,
    /// `None` when a side does not say.
    pub(super) same: Option<bool>,
    /// A difference means that it is other work.
    pub(super) decides: bool,
}

impl Item {
    fn new(name: &'static str, decides: bool, values: [Option<String>; 2]) -> Self {
        let [base, candidate] = values;
        let same = base.as_ref().zip(candidate.as_ref());
        Self {
            name,
            same: same.map(|(base, candidate)| base == candidate),
            base,
            candidate,
            decides,
        }
    }
}

/// What both sides say about their work.
pub(super) fn contract(sides: [&Side; 2]) -> Vec<Item> {
    let mut items = vec![
        Item::new("devices", true, sides.map(devices)),
        Item::new("devices_a_rank", true, sides.map(devices_a_rank)),
        Item::new(
            "ranks",
            true,
            sides.map(|side| Some(side.rank_count().to_string())),
        ),
        Item::new("world_size", true, sides.map(world_size)),
        Item::new("dtypes", true, sides.map(dtypes)),
    ];
    let forward = sides.map(forward);
    let model = [0, 1].map(|side| {
        let forward = forward[side].as_ref()?;
        let own = forward
            .iter()
            .filter(|(name, dims)| is_model(name) && !dims.is_empty());
        let own: BTreeSet<OpKey> = own.cloned().collect();
        (!own.is_empty()).then_some(own)
    });
    items.push(sets("model_shapes", true, model));
    items.push(sets("forward_operators", false, forward));
    let whole = sides.map(|side| Some(side.steps.whole().to_string()));
    items.push(Item::new("whole_steps", false, whole));
    let repeats = sides.map(|side| Some(side.repeat_count().to_string()));
    items.push(Item::new("repeats", false, repeats));
    if sides.iter().any(|side| side.mixture.is_some()) {
        let programs = sides.map(|side| Some(programs(side)));
        items.push(Item::new("programs", true, programs));
    }
    items.extend(options(sides));
    items.retain(|item| item.base.is_some() || item.candidate.is_some());
    items
}

/// `Some(false)` when something that decides differs, `None` when the model is not known to be the same.
pub(super) fn same_work(items: &[Item]) -> Option<bool> {
    let mut deciding = items.iter().filter(|item| item.decides);
    if deciding.any(|item| item.same == Some(false)) {
        return Some(false);
    }
    let model = items.iter().find(|item| item.name == "model_shapes");
    model.and_then(|item| item.same)
}

fn is_model(name: &str) -> bool {
    MODEL.contains(&name)
}

fn joined<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Option<String> {
    let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
    let names: Vec<String> = names.into_iter().collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn devices(side: &Side) -> Option<String> {
    let named = side.saved.ranks.iter().flat_map(|file| &file.devices);
    let used = joined(named.filter_map(|device| device.name.clone()));
    used.or_else(|| {
        let inputs = side.saved.inputs.iter();
        joined(inputs.flat_map(|input| input.device_names.clone()))
    })
}

fn devices_a_rank(side: &Side) -> Option<String> {
    let counts = side.saved.ranks.iter().map(|file| file.devices.len());
    Some(counts.max()?.to_string())
}

fn world_size(side: &Side) -> Option<String> {
    let sizes = side
        .saved
        .inputs
        .iter()
        .filter_map(|input| input.world_size);
    joined(sizes.map(|size| size.to_string()))
}

/// Sides whose repeats are different programs do the same work when they are the same ones.
fn programs(side: &Side) -> String {
    match &side.mixture {
        Some(mixture) => mixture.repeats.join(", "),
        None => "one".to_owned(),
    }
}

fn dtypes(side: &Side) -> Option<String> {
    joined(
        side.observed
            .as_ref()?
            .iter()
            .flat_map(|file| file.dtypes.clone()),
    )
}

fn forward(side: &Side) -> Option<BTreeSet<OpKey>> {
    let files = side.observed.as_ref()?.iter();
    let all: BTreeSet<OpKey> = files.flat_map(|file| file.forward.clone()).collect();
    (!all.is_empty()).then_some(all)
}

/// Two sets of operators; without the dimensions that only one side has.
fn sets(name: &'static str, decides: bool, sets: [Option<BTreeSet<OpKey>>; 2]) -> Item {
    let sizes = sets.each_ref().map(|set| set.as_ref().map(BTreeSet::len));
    let [Some(base), Some(candidate)] = sets else {
        let told = sizes.map(|size| size.map(|size| format!("{size} kinds")));
        return Item::new(name, decides, told);
    };
    let shaped = |set: &BTreeSet<OpKey>| set.iter().any(|(_, dims)| !dims.is_empty());
    let (base, candidate) = if shaped(&base) == shaped(&candidate) {
        (base, candidate)
    } else {
        let named = |set: BTreeSet<OpKey>| -> BTreeSet<OpKey> {
            set.into_iter()
                .map(|(name, _)| (name, String::new()))
                .collect()
        };
        (named(base), named(candidate))
    };
    let told = |own: &BTreeSet<OpKey>, other: &BTreeSet<OpKey>| {
        let (all, only) = (own.len(), own.difference(other).count());
        match only {
            0 => format!("{all} kinds"),
            only => format!("{all} kinds, {only} of them only here"),
        }
    };
    Item {
        name,
        base: Some(told(&base, &candidate)),
        candidate: Some(told(&candidate, &base)),
        same: Some(base == candidate),
        decides,
    }
}

/// Options in force that differ.
fn options(sides: [&Side; 2]) -> Vec<Item> {
    const NAMES: [&str; 6] = [
        "communication",
        "ignore_annotations",
        "phases",
        "ranks",
        "recompute_evidence",
        "steps",
    ];
    let told = |name: &'static str| {
        let values = sides.map(|side| side.saved.options.get(name).map(ToString::to_string));
        Item::new(name, false, values)
    };
    let items = NAMES.map(told).into_iter();
    items.filter(|item| item.base != item.candidate).collect()
}

/// One row an item.
pub(super) fn contract_frame(items: &[Item]) -> Frame {
    Frame::new(
        "contract",
        "What both sides say about their work; where an item that decides differs, it is other work.",
    )
    .text("item", items, |item| Some(item.name))
    .text("base", items, |item| item.base.clone())
    .text("candidate", items, |item| item.candidate.clone())
    .flag("same", items, |item| item.same)
    .flag("decides", items, |item| Some(item.decides))
}
