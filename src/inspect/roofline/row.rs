//! One row an operator: what its calls compute and move, and how near that is to the roofline.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::communication::union_len;
use super::super::frame::{Frame, Unit};
use super::super::options::By;
use super::super::view::View;
use super::cost::Family;
use super::count::{Count, Counted};
use super::device::{Device, Names, device_called};
use super::estimate::Bound;
use super::precision::Precision;
use crate::attribute::{Bucket, NONE};
use crate::units::{Ns, Span};

/// What rows are grouped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'a> {
    pub(super) device: Option<i64>,
    /// The operator; `None` for work that was launched under none.
    pub(super) name: Option<&'a str>,
    /// `None` without a model.
    pub(super) family: Option<Family>,
    pub(super) precision: Option<Precision>,
    pub(super) shape: Option<&'a str>,
    pub(super) step: Option<u32>,
    pub(super) bucket: Option<Bucket>,
}

/// The calls of one operator.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// `None` without a model: then only the device work is known.
    pub(super) calls: Option<u64>,
    pub(super) flops: Option<u128>,
    pub(super) bytes: Option<u128>,
    /// Pieces of device work.
    pub(super) events: u64,
    pub(super) sum: Ns,
    spans: Vec<Span>,
    roof: Option<Roof>,
    theoretical: Option<bool>,
}

/// Times by the roofline, in picoseconds: integers add up the same in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Roof {
    /// Sum of the longer time of each call.
    longest: u128,
    compute: u128,
    memory: u128,
}

/// A row; the one of all others has no key.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub(super) key: Option<Key<'a>>,
    pub(super) sums: Sums,
}

impl Sums {
    /// Those of calls of which the costs are known.
    fn known() -> Self {
        Self {
            calls: Some(0),
            flops: Some(0),
            bytes: Some(0),
            roof: Some(Roof::default()),
            ..Self::default()
        }
    }

    fn count(&mut self, one: &Counted, device: Option<&Device>) {
        let add = |sum: Option<u128>, more: Option<u64>| sum?.checked_add(u128::from(more?));
        self.calls = add_counts(self.calls, Some(1));
        self.flops = add(self.flops, Some(one.cost.flops));
        self.bytes = add(self.bytes, one.cost.bytes);
        let roof = device.and_then(|device| Roof::of(one, device));
        self.roof = self.roof.zip(roof).map(|(sum, roof)| sum.plus(roof));
        self.theoretical = device.map(|device| device.theoretical);
    }

    fn add(&mut self, other: Self) {
        let add = |a: Option<u128>, b: Option<u128>| a?.checked_add(b?);
        self.calls = match (self.calls, other.calls) {
            (Some(a), Some(b)) => a.checked_add(b),
            (one, other) => one.or(other),
        };
        self.flops = match (self.flops, other.flops) {
            (Some(_), Some(_)) => add(self.flops, other.flops),
            (one, other) => one.or(other),
        };
        self.bytes = add(self.bytes, other.bytes);
        self.roof = self.roof.zip(other.roof).map(|(a, b)| a.plus(b));
        if self.theoretical != other.theoretical {
            self.theoretical = None;
        }
        self.events += other.events;
        self.sum += other.sum;
        self.spans.extend(other.spans);
    }

    /// Time in which some of the work runs.
    pub(super) fn busy(&self) -> Option<Ns> {
        (self.events > 0).then(|| union_len(self.spans.iter().copied()).1)
    }

    /// The least time that the device needs by the roofline.
    pub(super) fn roofline(&self) -> Option<Ns> {
        let nanoseconds = self.roof?.longest.div_ceil(1000);
        Some(Ns(i64::try_from(nanoseconds).ok()?))
    }

    /// What limits the calls together.
    pub(super) fn bound(&self) -> Option<Bound> {
        let roof = self.roof?;
        let compute = roof.compute > 0 && roof.compute >= roof.memory;
        Some(if compute {
            Bound::Compute
        } else {
            Bound::Memory
        })
    }

    /// FLOPs a byte.
    pub(super) fn intensity(&self) -> Option<f64> {
        let bytes = self.bytes.filter(|bytes| *bytes > 0)?;
        Some(self.flops? as f64 / bytes as f64)
    }
}

fn add_counts(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a?.checked_add(b?)
}

impl Roof {
    /// Of one call; `None` when a rate or number of it is not known, or it is bound by a bus.
    fn of(one: &Counted, device: &Device) -> Option<Self> {
        if one.over_bus {
            return None;
        }
        let compute = match one.cost.flops {
            0 => 0,
            flops => {
                let engine = one.model.family.engine();
                picoseconds(flops, device.peak(engine, one.precision()?)?)
            }
        };
        let memory = picoseconds(one.cost.bytes?, device.bandwidth());
        Some(Self {
            longest: compute.max(memory),
            compute,
            memory,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            longest: self.longest.saturating_add(other.longest),
            compute: self.compute.saturating_add(other.compute),
            memory: self.memory.saturating_add(other.memory),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "neither is negative, and u128 holds every quotient of 64 bits and a rate"
)]
fn picoseconds(amount: u64, rate: f64) -> u128 {
    (amount as f64 / rate * 1e12).round() as u128
}

/// The rows of `count`, longest device time first; after `top` of them one of all others.
pub(super) fn rows<'a>(view: &View<'a>, count: &Count<'a>) -> Vec<Row<'a>> {
    let options = view.options;
    let strings = &view.trace().strings;
    let mut sums: BTreeMap<Key<'a>, Sums> = BTreeMap::new();
    let key = |device, name: Option<&'a str>, step: u32, bucket| Key {
        device,
        name,
        family: None,
        precision: None,
        shape: None,
        step: options.is_by(By::Step).then_some(step),
        bucket: options.is_by(By::Phase).then_some(bucket),
    };
    let key_of = |one: &Counted| Key {
        family: Some(one.model.family),
        precision: one.precision(),
        shape: options.is_by(By::Shape).then(|| strings.get(one.dims)),
        ..key(
            one.device,
            Some(strings.get(one.name)),
            one.step,
            one.bucket,
        )
    };
    let names = Names::new(&view.trace().metadata);
    let mut devices: BTreeMap<Option<i64>, Option<&Device>> = BTreeMap::new();
    for one in &count.counted {
        let device = *devices
            .entry(one.device)
            .or_insert_with(|| device_of(view, names.of(one.device?)));
        let sums = sums.entry(key_of(one)).or_insert_with(Sums::known);
        sums.count(one, device);
    }
    for owned in &count.work {
        let work = owned.work;
        let key = if let Some(counted) = owned.counted {
            key_of(&count.counted[counted as usize])
        } else {
            let name = owned.operator.map(|name| strings.get(name));
            key(Some(work.device), name, work.step, work.bucket)
        };
        let sums = sums.entry(key).or_default();
        sums.events += 1;
        sums.sum += work.span.len();
        sums.spans.push(work.span);
    }
    let rows = sums.into_iter().map(|(key, sums)| Row {
        key: Some(key),
        sums,
    });
    let mut rows: Vec<Row<'a>> = rows.collect();
    // The map is in order of content; sorting keeps that among equals.
    rows.sort_by_key(|row| Reverse((row.sums.sum, row.sums.flops)));
    if options.top > 0 && rows.len() > options.top {
        let mut others = rows.drain(options.top..);
        let mut sums = others.next().map(|row| row.sums).unwrap_or_default();
        for other in others {
            sums.add(other.sums);
        }
        rows.push(Row { key: None, sums });
    }
    rows
}

/// The peaks of the device called `name`, when they are known.
pub(super) fn device_of<'v>(view: &View<'v>, name: Option<&str>) -> Option<&'v Device> {
    device_called(name?, view.options.devices.as_ref())
}

/// A number of operations as a column holds it.
pub(super) fn operations(number: u128) -> Option<u64> {
    i64::try_from(number).ok()?.try_into().ok()
}

pub(super) fn frame(view: &View<'_>, rows: &[Row<'_>]) -> Frame {
    fn of<'r, 'k, T>(row: &'r Row<'k>, get: impl FnOnce(&'r Key<'k>) -> Option<T>) -> Option<T> {
        row.key.as_ref().and_then(get)
    }
    // In 10⁹ a second: a number each nanosecond.
    let rate = |row: &Row<'_>, amount: Option<u128>| {
        let busy = row.sums.busy().filter(|busy| *busy > Ns::ZERO)?;
        Some(amount? as f64 / busy.0 as f64)
    };
    let options = view.options;
    let mut frame = Frame::new(
        "roofline",
        "FLOPs and bytes of operators, and how near they come to the roofline of their device.",
    )
    .text("operator", rows, |row| match &row.key {
        None => Some("(others)"),
        Some(key) => Some(key.name.unwrap_or("(no operator)")),
    })
    .id("device", rows, |row| of(row, |key| key.device));
    if options.is_by(By::Step) {
        frame = frame.text("step", rows, |row| {
            of(row, |key| key.step.filter(|step| *step != NONE))
                .and_then(|step| view.step_name(step))
        });
    }
    if options.is_by(By::Phase) {
        frame = frame.text("phase", rows, |row| {
            of(row, |key| key.bucket).map(Bucket::as_str)
        });
    }
    if options.is_by(By::Shape) {
        frame = frame.text("shape", rows, |row| of(row, |key| key.shape));
    }
    frame
        .text("family", rows, |row| {
            of(row, |key| key.family).map(Family::as_str)
        })
        .text("precision", rows, |row| {
            of(row, |key| key.precision).map(Precision::as_str)
        })
        .count("calls", rows, |row| row.sums.calls)
        .count("device_events", rows, |row| Some(row.sums.events))
        .count("flops", rows, |row| operations(row.sums.flops?))
        .bytes("moved_bytes", rows, |row| {
            i64::try_from(row.sums.bytes?).ok()
        })
        .ns("sum_ns", rows, |row| {
            (row.sums.events > 0).then_some(row.sums.sum)
        })
        .ns("busy_ns", rows, |row| row.sums.busy())
        .float("achieved_tflops", Unit::TflopPerS, rows, |row| {
            rate(row, row.sums.flops).map(|rate| rate / 1e3)
        })
        .float("achieved_gbps", Unit::GbPerS, rows, |row| {
            rate(row, row.sums.bytes)
        })
        .float("intensity", Unit::Number, rows, |row| row.sums.intensity())
        .text("bound", rows, |row| row.sums.bound().map(Bound::as_str))
        .ns("roofline_ns", rows, |row| row.sums.roofline())
        .float("roofline_share", Unit::Ratio, rows, |row| {
            row.sums.roofline()?.ratio(row.sums.busy()?)
        })
        .text("peak", rows, |row| {
            row.sums.roof?;
            row.sums.theoretical.map(peak)
        })
}

/// What the peaks are.
pub(super) fn peak(theoretical: bool) -> &'static str {
    if theoretical {
        "theoretical"
    } else {
        "measured"
    }
}
