//! Kernels, copies and fills by name: how often, how long, how well they fill the device.
//!
//! - Times are those of device events; *median* and *mean* are rounded down to a nanosecond.
//! - *Blocks per SM* and *occupancy* are weighted with time, over the events that record them:
//!   Σ value × duration / Σ duration. Kineto's occupancy is its estimate from registers, shared memory
//!   and block size, not a measurement.
//! - *Tensor core* goes by the name of the kernel ([`tensor_core`]).
//! - *Operator* is the operator that launched most of the time of the row, *operators* how many did.
//! - `--by shape` tells grids and blocks apart, with registers and shared memory. ROCm has grid and
//!   block at the launch, from where they are taken when the kernel has none.
//!
//! Sources: the kernel view of PyTorch's TensorBoard plugin, and HTA's `get_gpu_kernel_breakdown`
//! (`hta_breakdown`). With `--definition tensorboard` kernels without blocks or occupancy count as 0, and
//! tensor cores go by the plugin's words.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use super::combination;
use super::frame::{Frame, Unit};
use super::hta_breakdown;
use super::matrix_units::is_used_by;
use super::options::{By, Definition};
use super::recorded::{Recorded, recorded_at};
use super::subject::{Inspected, Subject, stacked};
use super::tensor_core_time;
use super::view::View;
use crate::attribute::{Bucket, DeviceClass, NONE};
use crate::error::Result;
use crate::model::{EventId, Ident, StrId};
use crate::stats::median_time;
use crate::units::Ns;

/// Device time by kernel.
pub(super) struct Kernels;

/// What is taken from one file.
pub(super) struct Seen {
    frames: Vec<Frame>,
    /// By HTA's definition: time by the set of types that run at once.
    types: BTreeMap<u32, Ns>,
}

impl Subject for Kernels {
    type Seen = Seen;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        if view.options.definition == Definition::Hta {
            return Ok(Seen {
                frames: vec![hta_breakdown::kernels(view)],
                types: hta_breakdown::types(view),
            });
        }
        let rows = shown(rows(view)?, view.options.top);
        Ok(Seen {
            frames: vec![
                frame(view, &rows),
                combination::classes(view),
                tensor_core_time::frame(view),
            ],
            types: BTreeMap::new(),
        })
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        let mut types: BTreeMap<String, BTreeMap<u32, Ns>> = BTreeMap::new();
        let frames = files
            .into_iter()
            .map(|file| {
                for (set, time) in &file.seen.types {
                    let of_run = types.entry(file.run.to_owned()).or_default();
                    *of_run.entry(*set).or_default() += *time;
                }
                Inspected {
                    seen: file.seen.frames,
                    run: file.run,
                    run_number: file.run_number,
                    rank: file.rank,
                    window: file.window,
                }
            })
            .collect();
        let mut frames = stacked(frames);
        if !types.is_empty() {
            frames.push(hta_breakdown::types_frame(&types));
        }
        frames
    }
}

/// How a kernel was launched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Shape {
    grid: Option<[i64; 3]>,
    block: Option<[i64; 3]>,
    registers: Option<i64>,
    shared_memory: Option<i64>,
}

/// A mean weighted with time. Exact: it does not depend on the order of what is added.
#[derive(Debug, Clone, Copy, Default)]
struct Weighted {
    sum: i128,
    time: Ns,
}

impl Weighted {
    fn add(&mut self, millionths: Option<i64>, time: Ns) {
        if let Some(millionths) = millionths {
            let product = i128::from(millionths) * i128::from(time.0);
            self.sum = self.sum.saturating_add(product);
            self.time += time;
        }
    }

    fn mean(self) -> Option<f64> {
        (self.time > Ns::ZERO).then(|| self.sum as f64 / 1e6 / self.time.0 as f64)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    name: StrId,
    class: DeviceClass,
    shape: Shape,
    phase: Option<Bucket>,
    step: u32,
    lane: Option<(i64, Ident)>,
}

/// One row of the table.
#[derive(Debug, Clone, Default)]
struct Row {
    /// Empty for the row of the others.
    name: String,
    class: Option<DeviceClass>,
    shape: Shape,
    phase: Option<Bucket>,
    step: Option<String>,
    device: Option<i64>,
    stream: Option<String>,
    durations: Vec<Ns>,
    blocks_per_sm: Weighted,
    occupancy: Weighted,
    on_tensor_cores: Option<bool>,
    /// Time by launching operator.
    operators: BTreeMap<String, Ns>,
}

impl Row {
    fn total(&self) -> Ns {
        self.durations.iter().copied().sum()
    }

    /// The operator that launched most, the first of them by name.
    fn operator(&self) -> Option<&str> {
        let most = self
            .operators
            .iter()
            .max_by_key(|(name, time)| (**time, Reverse(*name)));
        most.map(|(name, _)| name.as_str())
    }
}

impl Shape {
    fn of(recorded: &Recorded) -> Self {
        Self {
            grid: recorded.grid,
            block: recorded.block,
            registers: recorded.registers,
            shared_memory: recorded.shared_memory,
        }
    }
}

/// The shape of each piece of the dissection's device work, in its order.
fn shapes(view: &View<'_>) -> Result<Vec<Shape>> {
    let mut shapes: Vec<Shape> = view.recorded()?.iter().map(Shape::of).collect();
    let work = view.dissection.work.iter();
    let lacking: Vec<(EventId, usize)> = work
        .enumerate()
        .filter(|(number, work)| view.counts(work) && shapes[*number].grid.is_none())
        .filter_map(|(number, work)| Some((view.launch(work)?.event, number)))
        .collect();
    let mut launches: Vec<EventId> = lacking.iter().map(|(launch, _)| *launch).collect();
    launches.sort_unstable();
    launches.dedup();
    let at_launch = recorded_at(view, &launches)?;
    for (launch, number) in lacking {
        if let Ok(place) = launches.binary_search(&launch) {
            let (from, to) = (&at_launch[place], &mut shapes[number]);
            to.grid = from.grid;
            to.block = to.block.or(from.block);
            to.shared_memory = to.shared_memory.or(from.shared_memory);
        }
    }
    Ok(shapes)
}

fn millionths(number: f64) -> Option<i64> {
    let scaled = (number * 1e6).round();
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    (scaled.abs() < 9e18).then_some(scaled as i64)
}

fn rows(view: &View<'_>) -> Result<Vec<Row>> {
    let recorded = view.recorded()?;
    let trace = view.trace();
    let text = |name: StrId| trace.strings.get(name).to_owned();
    let is_by = |by| view.options.is_by(by);
    let [by_shape, by_phase, by_step, by_stream] =
        [By::Shape, By::Phase, By::Step, By::Stream].map(is_by);
    let shapes = if by_shape { shapes(view)? } else { Vec::new() };
    let same_step = view.first_of_name();
    let missing = (view.options.definition == Definition::Tensorboard).then_some(0);
    let mut places: HashMap<Key, usize> = HashMap::default();
    let mut rows: Vec<Row> = Vec::new();
    let mut operators: Vec<HashMap<StrId, Ns>> = Vec::new();
    for (number, work) in view.dissection.work.iter().enumerate() {
        if !view.counts(work) {
            continue;
        }
        let step = same_step.get(work.step as usize).copied().unwrap_or(NONE);
        let key = Key {
            name: trace.events.name(work.event),
            class: work.class,
            shape: shapes.get(number).copied().unwrap_or_default(),
            phase: by_phase.then_some(work.bucket),
            step: if by_step { step } else { NONE },
            lane: by_stream.then_some((work.device, work.stream)),
        };
        let place = *places.entry(key).or_insert_with(|| {
            let name = text(key.name);
            operators.push(HashMap::default());
            rows.push(Row {
                class: Some(key.class),
                shape: key.shape,
                phase: key.phase,
                step: view.step_name(key.step).map(str::to_owned),
                device: key.lane.map(|lane| lane.0),
                stream: key.lane.and_then(|lane| view.ident(lane.1)),
                on_tensor_cores: Some(is_used_by(view, &name)),
                name,
                ..Row::default()
            });
            rows.len() - 1
        });
        let row = &mut rows[place];
        let dur = work.span.len();
        row.durations.push(dur);
        let known = &recorded[number];
        let blocks = known.blocks_per_sm.and_then(millionths);
        row.blocks_per_sm.add(blocks.or(missing), dur);
        let occupancy = known.occupancy.and_then(millionths);
        row.occupancy.add(occupancy.or(missing), dur);
        if let Some(op) = view.launcher(work.launch).and_then(|it| view.op(it)) {
            *operators[place].entry(op.name).or_default() += dur;
        }
    }
    for (row, operators) in rows.iter_mut().zip(operators) {
        row.durations.sort_unstable();
        row.operators = operators
            .into_iter()
            .map(|(name, time)| (text(name), time))
            .collect();
    }
    rows.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok(rows)
}

/// The longest first; ties by content.
fn order(row: &Row) -> impl Ord + '_ {
    (
        Reverse(row.total()),
        (&row.name, row.class, row.shape),
        (row.device, &row.stream, row.phase, &row.step),
    )
}

/// All rows of the `top` names with the most time, and the others as one. 0 is all.
fn shown(rows: Vec<Row>, top: usize) -> Vec<Row> {
    let mut names: BTreeMap<&str, Ns> = BTreeMap::new();
    for row in &rows {
        *names.entry(&row.name).or_default() += row.total();
    }
    if top == 0 || names.len() <= top {
        return rows;
    }
    let mut ranked: Vec<(Reverse<Ns>, &str)> = names
        .into_iter()
        .map(|(name, time)| (Reverse(time), name))
        .collect();
    ranked.sort_unstable();
    let named: BTreeSet<String> = ranked[..top]
        .iter()
        .map(|(_, name)| (*name).to_owned())
        .collect();
    let mut shown = Vec::new();
    let mut others = Row::default();
    for mut row in rows {
        if named.contains(&row.name) {
            shown.push(row);
            continue;
        }
        others.durations.append(&mut row.durations);
        for (sum, part) in [
            (&mut others.blocks_per_sm, row.blocks_per_sm),
            (&mut others.occupancy, row.occupancy),
        ] {
            sum.sum = sum.sum.saturating_add(part.sum);
            sum.time += part.time;
        }
        for (name, time) in row.operators {
            *others.operators.entry(name).or_default() += time;
        }
    }
    others.durations.sort_unstable();
    shown.push(others);
    shown
}

/// `[8, 1, 1]` as Kineto writes it.
fn sides(sides: Option<[i64; 3]>) -> Option<String> {
    sides.map(|[x, y, z]| format!("[{x}, {y}, {z}]"))
}

fn frame(view: &View<'_>, rows: &[Row]) -> Frame {
    let total: Ns = rows.iter().map(Row::total).sum();
    let is_by = |by| view.options.is_by(by);
    let name = |row: &Row| {
        let name = if row.class.is_some() {
            &row.name
        } else {
            "(others)"
        };
        Some(name.to_owned())
    };
    let mut frame = Frame::new("kernels", "Kernels, copies and fills by time on devices.")
        .text("kernel", rows, name)
        .text("class", rows, |row| row.class.map(DeviceClass::as_str));
    if is_by(By::Stream) {
        frame = frame
            .id("device", rows, |row| row.device)
            .text("stream", rows, |row| row.stream.clone());
    }
    if is_by(By::Phase) {
        frame = frame.text("phase", rows, |row| row.phase.map(Bucket::as_str));
    }
    if is_by(By::Step) {
        frame = frame.text("step", rows, |row| row.step.clone());
    }
    if is_by(By::Shape) {
        frame = frame
            .text("grid", rows, |row| sides(row.shape.grid))
            .text("block", rows, |row| sides(row.shape.block))
            .id("registers_per_thread", rows, |row| row.shape.registers)
            .bytes("shared_memory_bytes", rows, |row| row.shape.shared_memory);
    }
    frame
        .count("calls", rows, |row| Some(row.durations.len() as u64))
        .ns("total_ns", rows, |row| Some(row.total()))
        .float("share", Unit::Ratio, rows, |row| row.total().ratio(total))
        .ns("mean_ns", rows, |row| {
            let calls = i64::try_from(row.durations.len()).ok()?;
            row.total().0.checked_div(calls).map(Ns)
        })
        .ns("min_ns", rows, |row| row.durations.first().copied())
        .ns("median_ns", rows, |row| median_time(&row.durations))
        .ns("max_ns", rows, |row| row.durations.last().copied())
        .float("blocks_per_sm", Unit::Number, rows, |row| {
            row.blocks_per_sm.mean()
        })
        .float("occupancy", Unit::Ratio, rows, |row| {
            row.occupancy.mean().map(|percent| percent / 100.0)
        })
        .flag("tensor_core", rows, |row| row.on_tensor_cores)
        .text("operator", rows, |row| row.operator().map(str::to_owned))
        .count("operators", rows, |row| Some(row.operators.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_with_the_time_that_has_values() {
        let mut mean = Weighted::default();
        assert_eq!(mean.mean(), None);
        mean.add(Some(2_000_000), Ns(10));
        mean.add(None, Ns(1000));
        mean.add(Some(500_000), Ns(30));
        // (2 × 10 + 0.5 × 30) / 40
        assert_eq!(mean.mean(), Some(0.875));
    }

    fn row(name: &str, durations: &[i64]) -> Row {
        Row {
            name: name.to_owned(),
            class: Some(DeviceClass::Compute),
            durations: durations.iter().map(|time| Ns(*time)).collect(),
            ..Row::default()
        }
    }

    #[test]
    fn the_others_are_one_row_that_keeps_the_sum() {
        let rows = vec![
            row("a", &[9]),
            row("b", &[4, 4]),
            row("c", &[5]),
            row("d", &[1]),
        ];
        let shown = shown(rows, 2);
        let got: Vec<(&str, i64)> = shown
            .iter()
            .map(|row| (row.name.as_str(), row.total().0))
            .collect();
        assert_eq!(got, [("a", 9), ("b", 8), ("", 6)]);
        assert_eq!(shown[2].class, None);
        assert_eq!(shown[2].durations, [Ns(1), Ns(5)]);
    }
}
