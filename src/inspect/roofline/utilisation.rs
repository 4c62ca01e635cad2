//! Model FLOPs utilisation of each step.
//!
//! ```text
//! host     ├ step 0 ┤├ step 1 ┤├ step 2 ┤
//! device      ├─ of step 0 ──┤ ├─ of step 1 ─┤├─ of step 2 ─┤
//! time     ├─── step 0 ────────┼─── step 1 ───┼─── step 2 ──┤
//! ```
//! A step takes from the first work that it put on the device to the first of the next step: the host runs
//! ahead, so its own range says little. The first begins with its range on the host, the last ends with
//! its range or its last work. So times of steps fill the whole, and idle time counts. On the host alone
//! it is the range.
//!
//! - Model FLOPs are those of matrix products (matmul, convolution, attention) that are not computed again:
//!   without phase `recompute` and without the product that fused attention repeats in backward. MFU is
//!   the time that they take at the peak of their precision over the time of the step: FLOPs / (time ×
//!   peak) where all are of one precision (Chowdhery et al., PaLM, 2022). HFU is the same with everything.
//! - The peak is the dense one of matrix units, theoretical in most tables.
//! - Coverage is the share of the durations of computing kernels whose operators have a model. FLOPs that
//!   are not seen are missing from MFU: where coverage is low it is too low by an unknown amount.

use std::collections::{BTreeMap, BTreeSet};

use super::super::frame::{Frame, Unit};
use super::super::view::View;
use super::count::Count;
use super::device::{Device, Engine, Names};
use super::precision::Precision;
use super::row::{device_of, operations, peak};
use crate::attribute::{Bucket, DeviceClass, NONE, Phase};
use crate::units::{Ns, Span};

/// FLOPs by precision.
type Flops = BTreeMap<Option<Precision>, u128>;

/// What one device did in one step, or in all.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) device: Option<i64>,
    /// Number of the step; `None` for all of them, or for the capture when there are none.
    pub(super) step: Option<u32>,
    pub(super) time: Option<Ns>,
    model: Flops,
    repeated: Flops,
    /// FLOPs outside matrix products.
    pub(super) other: u128,
    pub(super) compute: Ns,
    pub(super) modelled: Ns,
}

impl Row {
    fn add(&mut self, other: &Self) {
        for (own, more) in [
            (&mut self.model, &other.model),
            (&mut self.repeated, &other.repeated),
        ] {
            for (precision, flops) in more {
                add(own, *precision, *flops);
            }
        }
        self.other = self.other.saturating_add(other.other);
        self.compute += other.compute;
        self.modelled += other.modelled;
        self.time = match (self.time, other.time) {
            (Some(a), Some(b)) => Some(a + b),
            (one, other) => one.or(other),
        };
    }

    pub(super) fn model_flops(&self) -> u128 {
        total(&self.model)
    }

    pub(super) fn repeated_flops(&self) -> u128 {
        total(&self.repeated)
    }

    /// Without and with what is computed again, over what `device` could do.
    pub(super) fn utilisation(&self, device: &Device) -> Option<[f64; 2]> {
        let time = self.time.filter(|time| *time > Ns::ZERO)?.0 as f64 / 1e9;
        let model = seconds(&self.model, device)?;
        let again = seconds(&self.repeated, device)?;
        Some([model / time, (model + again) / time])
    }

    /// The share of computing kernels whose FLOPs are known.
    pub(super) fn coverage(&self) -> Option<f64> {
        self.modelled.ratio(self.compute)
    }
}

fn add(flops: &mut Flops, precision: Option<Precision>, more: u128) {
    let sum = flops.entry(precision).or_default();
    *sum = sum.saturating_add(more);
}

fn total(flops: &Flops) -> u128 {
    flops
        .values()
        .fold(0, |sum, more| sum.saturating_add(*more))
}

/// Time that `flops` take at the peak of matrix units; `None` when one of their peaks is not known.
fn seconds(flops: &Flops, device: &Device) -> Option<f64> {
    let mut sum = 0.0;
    for (precision, flops) in flops {
        if *flops > 0 {
            sum += *flops as f64 / device.peak(Engine::Matrix, (*precision)?)?;
        }
    }
    Some(sum)
}

/// One row a device and step, and one of all steps of a device.
pub(super) fn rows(view: &View<'_>, count: &Count<'_>) -> Vec<Row> {
    let dissection = view.dissection;
    let has_steps = !dissection.steps.all.is_empty();
    let mut rows: BTreeMap<(Option<i64>, Option<u32>), Row> = BTreeMap::new();
    // Without steps all of the capture is one; with some, what is in none is left out.
    let part = |step: u32| match (has_steps, step) {
        (false, _) => Some(None),
        (true, NONE) => None,
        (true, step) => Some(Some(step)),
    };
    for owned in &count.work {
        let Some(step) = part(owned.work.step) else {
            continue;
        };
        let row = rows.entry((Some(owned.work.device), step)).or_default();
        if owned.work.class == DeviceClass::Compute {
            row.compute += owned.work.span.len();
            if owned.counted.is_some() {
                row.modelled += owned.work.span.len();
            }
        }
    }
    for one in &count.counted {
        let Some(step) = part(one.step) else {
            continue;
        };
        let row = rows.entry((one.device, step)).or_default();
        let flops = u128::from(one.cost.flops);
        let repeated = u128::from(one.cost.repeated);
        if !one.model.family.is_model() {
            row.other = row.other.saturating_add(flops);
        } else if one.bucket == Bucket::Phase(Phase::Recompute) {
            add(&mut row.repeated, one.precision(), flops);
        } else {
            add(
                &mut row.model,
                one.precision(),
                flops.saturating_sub(repeated),
            );
            add(&mut row.repeated, one.precision(), repeated);
        }
    }
    let captures = captures(count);
    let mut times: BTreeMap<Option<i64>, BTreeMap<u32, Ns>> = BTreeMap::new();
    let mut found: Vec<Row> = Vec::new();
    for ((device, step), mut row) in rows {
        (row.device, row.step) = (device, step);
        let times = times
            .entry(device)
            .or_insert_with(|| times_of(view, device));
        row.time = match step {
            Some(step) => times.get(&step).copied(),
            None => captures.get(&device).map(|span| span.len()),
        };
        if let Some(step) = step {
            match found.last_mut() {
                Some(all) if all.device == device && all.step.is_none() => all.add(&row),
                _ => found.push(Row {
                    step: None,
                    ..row.clone()
                }),
            }
            // The row of all steps stays last.
            let all = found.pop();
            row.step = Some(step);
            found.push(row);
            found.extend(all);
        } else {
            found.push(row);
        }
    }
    found
}

/// How long steps take on `device`, by number; on a device those that put work on it.
fn times_of(view: &View<'_>, device: Option<i64>) -> BTreeMap<u32, Ns> {
    let steps = &view.dissection.steps.all;
    let Some(device) = device else {
        let lengths = steps.iter().map(|step| step.span.len());
        return (0u32..).zip(lengths).collect();
    };
    let mut first: BTreeMap<u32, Ns> = BTreeMap::new();
    let mut last = Ns(i64::MIN);
    // All work: a step ends where the next begins, selected or not.
    let all = view.all_work_on(device).iter();
    for work in all.filter(|work| work.step != NONE) {
        let first = first.entry(work.step).or_insert(work.span.start);
        *first = work.span.start.min(*first);
        last = last.max(work.span.end);
    }
    let mut starts: Vec<(u32, Ns)> = Vec::with_capacity(first.len());
    for (step, first) in first {
        let start = match starts.last() {
            None => first.min(steps[step as usize].span.start),
            Some((_, before)) => first.max(*before),
        };
        starts.push((step, start));
    }
    let ends: Vec<Ns> = starts.iter().skip(1).map(|(_, start)| *start).collect();
    starts
        .into_iter()
        .enumerate()
        .map(|(place, (step, start))| {
            let end = ends.get(place).copied();
            let end = end.unwrap_or_else(|| last.max(steps[step as usize].span.end));
            (step, end - start)
        })
        .collect()
}

/// From the first to the last work that counts, of each device.
fn captures(count: &Count<'_>) -> BTreeMap<Option<i64>, Span> {
    let mut captures: BTreeMap<Option<i64>, Span> = BTreeMap::new();
    for owned in &count.work {
        let span = owned.work.span;
        let whole = captures.entry(Some(owned.work.device)).or_insert(span);
        whole.start = whole.start.min(span.start);
        whole.end = whole.end.max(span.end);
    }
    captures
}

pub(super) fn frame(view: &View<'_>, rows: &[Row], any: bool) -> Frame {
    let has_steps = !view.dissection.steps.all.is_empty();
    let names = Names::new(&view.trace().metadata);
    let name = |row: &Row| names.of(row.device?);
    let known: BTreeMap<Option<&str>, Option<&Device>> = rows
        .iter()
        .map(name)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|name| (name, device_of(view, name)))
        .collect();
    let device = |row: &Row| known.get(&name(row)).copied().flatten();
    let utilisation = |row: &Row| {
        let found = row.utilisation(device(row)?)?;
        any.then_some(found)
    };
    // Nothing counts: FLOPs were not measured.
    let flops = |flops: u128| if any { operations(flops) } else { None };
    Frame::new(
        "utilisation",
        "FLOPs of matrix products in each step, over what the device could do in the time.",
    )
    .text("step", rows, |row| match row.step {
        Some(step) => view.step_name(step),
        None if has_steps => Some("(all steps)"),
        None => Some("(capture)"),
    })
    .id("device", rows, |row| row.device)
    .text("device_name", rows, name)
    .ns("step_ns", rows, |row| row.time)
    .count("model_flops", rows, |row| flops(row.model_flops()))
    .count("recomputed_flops", rows, |row| flops(row.repeated_flops()))
    .count("other_flops", rows, |row| flops(row.other))
    .float("achieved_tflops", Unit::TflopPerS, rows, |row| {
        let time = row.time.filter(|time| *time > Ns::ZERO)?;
        any.then(|| row.model_flops() as f64 / time.0 as f64 / 1e3)
    })
    .float("mfu", Unit::Ratio, rows, |row| Some(utilisation(row)?[0]))
    .float("hfu", Unit::Ratio, rows, |row| Some(utilisation(row)?[1]))
    .text("peak", rows, |row| {
        utilisation(row)?;
        device(row).map(|device| peak(device.theoretical))
    })
    .text("peak_source", rows, |row| {
        utilisation(row)?;
        device(row).map(|device| device.source.as_str())
    })
    .ns("compute_ns", rows, |row| row.device.map(|_| row.compute))
    .ns("modelled_ns", rows, |row| row.device.map(|_| row.modelled))
    .float("coverage", Unit::Ratio, rows, Row::coverage)
}
