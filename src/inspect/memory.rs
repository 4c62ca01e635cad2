//! Memory: how much of each device is allocated, when it peaks, and who holds it then.
//!
//! ```text
//! Total Allocated
//!  peak  1536         ┌─────┐            at_peak: addmm 512, (before the capture) 1024
//!        1280         │     └──┐
//!  start 1024 ────────┘        └───────  end 1024: no growth
//!               +512 addmm  −256  −256
//! ```
//! Levels are those that PyTorch recorded (`Total Allocated` of its `[memory]` events, after each
//! change); a change that is no event shows as a jump between them. Traces of 2021 have no totals:
//! there, levels are the bytes allocated since the start of the capture, less the bytes freed. An
//! operator makes the changes for which it is the innermost one open on their thread, as the *self*
//! columns of the TensorBoard plugin's memory view have it.

use std::collections::BTreeMap;

use super::allocation::{Change, Pool};
use super::frame::Frame;
use super::options::By;
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::{NONE, Phase};
use crate::error::{Error, ErrorKind, Result};
use crate::units::Ns;

/// Memory by device, step, phase and operator.
pub(super) struct Memory;

/// The largest amounts of memory of one device as one process sees it.
pub(crate) struct PeakMemory {
    /// Kind of device, as in `torch.device`.
    pub(crate) kind: String,
    /// Index of the device; negative for the host.
    pub(crate) index: i64,
    /// `None` where the trace has no totals: what was allocated before the capture is not known then.
    pub(crate) allocated: Option<i64>,
    /// `None` where the trace does not say, and for the host.
    pub(crate) reserved: Option<i64>,
}

/// The peaks of the table `memory`.
///
/// # Errors
/// When the content of the file is not what it was when it was read.
pub(crate) fn peaks(view: &View<'_>) -> Result<Vec<PeakMemory>> {
    let lines: Vec<Line<'_>> = view.pools()?.iter().map(Line::new).collect();
    let chosen = lines.iter().filter_map(|line| Chosen::new(view, line));
    let peak = |chosen: Chosen<'_>| PeakMemory {
        kind: chosen.line.pool.kind_name(),
        index: chosen.line.pool.index,
        allocated: chosen.line.recorded.then_some(chosen.peak.bytes),
        reserved: chosen.reserved().map(|found| found.0),
    };
    Ok(chosen.map(peak).collect())
}

/// Changes outside of every operator.
const NO_OPERATOR: &str = "(no operator)";
/// What was allocated when the capture started and is not known to be freed.
const BEFORE: &str = "(before the capture)";
/// What the totals have and no event tells of.
const NOT_RECORDED: &str = "(not recorded)";
/// What is beyond the names that were asked for.
pub(super) const OTHERS: &str = "(others)";

impl Subject for Memory {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        let pools = view.pools()?;
        for pool in pools {
            let moved = pool
                .changes
                .iter()
                .map(|change| change.bytes.unsigned_abs());
            let moved: u128 = moved.map(u128::from).sum();
            if i64::try_from(moved).is_err() {
                let message = "the memory events move more than 2^63 bytes together";
                return Err(Error::new(ErrorKind::NotATrace, message));
            }
        }
        let lines: Vec<Line<'_>> = pools.iter().map(Line::new).collect();
        let chosen: Vec<Chosen<'_>> = lines
            .iter()
            .filter_map(|line| Chosen::new(view, line))
            .collect();
        Ok(vec![
            devices(view, &chosen),
            holders(view, &chosen),
            steps(view, &chosen),
            operators(view, &chosen),
        ])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// A pool with its levels.
struct Line<'p> {
    pool: &'p Pool,
    /// Every change has a total of the writer.
    recorded: bool,
    /// Level before each change, and after the last.
    levels: Vec<i64>,
    /// Sum of the changes of level that are no event.
    jumps: Vec<i128>,
}

impl<'p> Line<'p> {
    fn new(pool: &'p Pool) -> Self {
        let changes = &pool.changes;
        let recorded = changes.iter().all(|change| change.allocated.is_some());
        let first = changes.first().filter(|_| recorded).map_or(0, before);
        let mut level = first;
        let mut levels = vec![level];
        let mut jumps = Vec::with_capacity(changes.len());
        for change in changes {
            let replayed = level.saturating_add(change.bytes);
            level = change.allocated.filter(|_| recorded).unwrap_or(replayed);
            jumps.push(i128::from(level) - i128::from(replayed));
            levels.push(level);
        }
        Self {
            pool,
            recorded,
            levels,
            jumps,
        }
    }

    /// The level just before `at`.
    fn level_at(&self, at: Ns) -> i64 {
        let changes = &self.pool.changes;
        self.levels[changes.partition_point(|change| change.at < at)]
    }
}

/// Total allocated before `change`, as far as it tells.
fn before(change: &Change) -> i64 {
    change.allocated.unwrap_or(0).saturating_sub(change.bytes)
}

/// A highest level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Peak {
    bytes: i64,
    /// Number of the change that reaches it, or before which it held already.
    change: usize,
    /// How many changes make it.
    applied: usize,
}

/// The changes of a pool that count: all, or those in the selected steps.
struct Chosen<'a> {
    line: &'a Line<'a>,
    /// Numbers of changes, in order; at least one.
    numbers: Vec<usize>,
    peak: Peak,
}

impl<'a> Chosen<'a> {
    /// `None` when no change counts.
    fn new(view: &View<'_>, line: &'a Line<'a>) -> Option<Self> {
        let dissection = view.dissection;
        let counts = |change: &Change| {
            dissection.options.steps.is_none()
                || (change.step != NONE && dissection.selected[change.step as usize])
        };
        let changes = &line.pool.changes;
        let numbers: Vec<usize> = (0..changes.len())
            .filter(|number| counts(&changes[*number]))
            .collect();
        let peak = peak(line, &numbers)?;
        Some(Self {
            line,
            numbers,
            peak,
        })
    }

    fn changes(&self) -> impl Iterator<Item = &'a Change> {
        let changes = &self.line.pool.changes;
        self.numbers.iter().map(|number| &changes[*number])
    }

    fn change(&self, number: usize) -> &'a Change {
        &self.line.pool.changes[number]
    }

    fn start(&self) -> i64 {
        self.line.levels[self.numbers[0]]
    }

    fn end(&self) -> i64 {
        self.line.levels[self.numbers[self.numbers.len() - 1] + 1]
    }

    /// The change at the peak.
    fn at_peak(&self) -> &'a Change {
        self.change(self.peak.change)
    }

    /// The change after which the most is reserved.
    fn at_reserved(&self) -> Option<&'a Change> {
        Some(self.change(self.reserved()?.1))
    }

    /// Changes of the recorded level that are no event.
    fn not_recorded(&self) -> Option<i128> {
        let jumps = self.numbers.iter().map(|number| self.line.jumps[*number]);
        self.line.recorded.then(|| jumps.sum())
    }

    /// The highest total reserved, and the number of the change after which it was.
    fn reserved(&self) -> Option<(i64, usize)> {
        let mut highest: Option<(i64, usize)> = None;
        if self.line.pool.is_host() {
            return None;
        }
        for number in &self.numbers {
            if let Some(bytes) = self.change(*number).reserved
                && highest.is_none_or(|(most, _)| bytes > most)
            {
                highest = Some((bytes, *number));
            }
        }
        highest
    }
}

/// The first highest level around the changes `numbers`.
fn peak(line: &Line, numbers: &[usize]) -> Option<Peak> {
    let mut highest: Option<Peak> = None;
    for number in numbers {
        for applied in [*number, *number + 1] {
            let bytes = line.levels[applied];
            if highest.is_none_or(|peak| bytes > peak.bytes) {
                highest = Some(Peak {
                    bytes,
                    change: *number,
                    applied,
                });
            }
        }
    }
    highest
}

/// Sums over changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    allocations: u64,
    frees: u64,
    allocated: i128,
    freed: i128,
}

impl Sums {
    fn count(&mut self, change: &Change) {
        if change.bytes < 0 {
            self.frees += 1;
            self.freed -= i128::from(change.bytes);
        } else {
            self.allocations += 1;
            self.allocated += i128::from(change.bytes);
        }
    }

    fn add(&mut self, other: &Self) {
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.allocated += other.allocated;
        self.freed += other.freed;
    }

    fn net(&self) -> i128 {
        self.allocated - self.freed
    }
}

/// The nearest number of 64 bits: sizes in a file may add up to anything.
pub(super) fn clamp(bytes: i128) -> i64 {
    i64::try_from(bytes).unwrap_or(if bytes < 0 { i64::MIN } else { i64::MAX })
}

fn difference(from: i64, to: i64) -> i64 {
    clamp(i128::from(to) - i128::from(from))
}

fn phase_name(phase: Option<Phase>) -> Option<&'static str> {
    phase.map(Phase::as_str)
}

fn operator_name<'a>(view: &View<'a>, change: &Change) -> &'a str {
    let name = |name| view.trace().strings.get(name);
    change.operator.map_or(NO_OPERATOR, name)
}

/// One row a device.
fn devices(view: &View<'_>, chosen: &[Chosen<'_>]) -> Frame {
    let sums: Vec<Sums> = chosen
        .iter()
        .map(|chosen| {
            let mut sums = Sums::default();
            for change in chosen.changes() {
                sums.count(change);
            }
            sums
        })
        .collect();
    let rows: Vec<(&Chosen<'_>, Sums)> = chosen.iter().zip(sums).collect();
    let step = |change: &Change| view.step_name(change.step);
    Frame::new(
        "memory",
        "The memory of a device: its peaks, and what was allocated and freed.",
    )
    .text("device", &rows, |row| Some(row.0.line.pool.name()))
    .text("process", &rows, |row| row.0.line.pool.process.clone())
    .text("levels", &rows, |row| {
        Some(if row.0.line.recorded {
            "recorded"
        } else {
            "replayed"
        })
    })
    .bytes("peak_allocated_bytes", &rows, |row| Some(row.0.peak.bytes))
    .at("peak_allocated_at_ns", &rows, |row| {
        Some(row.0.at_peak().at)
    })
    .text("peak_allocated_step", &rows, |row| step(row.0.at_peak()))
    .text("peak_allocated_phase", &rows, |row| {
        phase_name(row.0.at_peak().phase)
    })
    .bytes("peak_reserved_bytes", &rows, |row| {
        row.0.reserved().map(|found| found.0)
    })
    .at("peak_reserved_at_ns", &rows, |row| {
        row.0.at_reserved().map(|change| change.at)
    })
    .text("peak_reserved_step", &rows, |row| {
        row.0.at_reserved().and_then(step)
    })
    .text("peak_reserved_phase", &rows, |row| {
        row.0
            .at_reserved()
            .and_then(|change| phase_name(change.phase))
    })
    .bytes("start_bytes", &rows, |row| Some(row.0.start()))
    .bytes("end_bytes", &rows, |row| Some(row.0.end()))
    .bytes("growth_bytes", &rows, |row| {
        Some(difference(row.0.start(), row.0.end()))
    })
    .count("allocations", &rows, |row| Some(row.1.allocations))
    .count("frees", &rows, |row| Some(row.1.frees))
    .bytes("allocated_bytes", &rows, |row| Some(clamp(row.1.allocated)))
    .bytes("freed_bytes", &rows, |row| Some(clamp(row.1.freed)))
    .bytes("not_recorded_bytes", &rows, |row| {
        row.0.not_recorded().map(clamp)
    })
}

/// Who made an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Maker<'a> {
    operator: &'a str,
    /// `None` sorts first; so does work in no step.
    phase: Option<Phase>,
    step: Option<u32>,
    shape: &'a str,
}

impl<'a> Maker<'a> {
    fn of(view: &View<'a>, change: &Change, by_phase: bool) -> Self {
        let options = view.options;
        Self {
            operator: operator_name(view, change),
            phase: change.phase.filter(|_| by_phase),
            step: (options.is_by(By::Step) && change.step != NONE).then_some(change.step),
            shape: if options.is_by(By::Shape) {
                view.trace().strings.get(change.shape)
            } else {
                ""
            },
        }
    }
}

/// A row of makers, or of what is put together behind them.
struct Made<'a> {
    pool: &'a Pool,
    name: &'a str,
    maker: Option<Maker<'a>>,
    sums: Sums,
}

/// The first `top` of `sums`, which are in order, and the rest in one row.
fn named<'a>(pool: &'a Pool, sums: Vec<(Maker<'a>, Sums)>, top: usize) -> Vec<Made<'a>> {
    let shown = if top == 0 {
        sums.len()
    } else {
        sums.len().min(top)
    };
    let mut rest = Sums::default();
    for (_, sums) in &sums[shown..] {
        rest.add(sums);
    }
    let more = sums.len() > shown;
    let mut rows: Vec<Made<'a>> = sums[..shown]
        .iter()
        .map(|(maker, sums)| Made {
            pool,
            name: maker.operator,
            maker: Some(*maker),
            sums: *sums,
        })
        .collect();
    if more {
        rows.push(Made {
            pool,
            name: OTHERS,
            maker: None,
            sums: rest,
        });
    }
    rows
}

/// A frame with the columns that say who made what.
fn made_by<'a>(view: &View<'a>, frame: Frame, rows: &[Made<'a>], by_phase: bool) -> Frame {
    let mut frame = frame
        .text("device", rows, |row| Some(row.pool.name()))
        .text("process", rows, |row| row.pool.process.clone())
        .text("operator", rows, |row| Some(row.name));
    if by_phase {
        frame = frame.text("phase", rows, |row| phase_name(row.maker?.phase));
    }
    if view.options.is_by(By::Step) {
        frame = frame.text("step", rows, |row| view.step_name(row.maker?.step?));
    }
    if view.options.is_by(By::Shape) {
        let shape = |row: &Made<'a>| Some(row.maker?.shape).filter(|shape| !shape.is_empty());
        frame = frame.text("shape", rows, shape);
    }
    frame
}

/// One row a holder of memory at the peak of a device; they add up to the level there.
fn holders(view: &View<'_>, chosen: &[Chosen<'_>]) -> Frame {
    let mut rows: Vec<Made<'_>> = Vec::new();
    for chosen in chosen {
        let line = chosen.line;
        let changes = &line.pool.changes[..chosen.peak.applied];
        // Without addresses nothing says which allocation a free ends.
        if line.pool.changes.iter().all(|change| change.address == 0) {
            continue;
        }
        let (alive, freed_before) = alive(changes);
        let mut by_maker: BTreeMap<Maker<'_>, Sums> = BTreeMap::new();
        for change in &alive {
            let maker = Maker::of(view, change, true);
            by_maker.entry(maker).or_default().count(change);
        }
        let mut sums: Vec<_> = by_maker.into_iter().collect();
        sums.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.allocated));
        let known: i128 = sums.iter().map(|(_, sums)| sums.allocated).sum();
        rows.extend(named(line.pool, sums, view.options.top));
        let before = i128::from(line.levels[0]) - freed_before;
        let rest = i128::from(chosen.peak.bytes) - known - before;
        let mut push = |name, bytes| {
            if bytes != 0 {
                let sums = Sums {
                    allocated: bytes,
                    ..Sums::default()
                };
                rows.push(Made {
                    pool: line.pool,
                    name,
                    maker: None,
                    sums,
                });
            }
        };
        push(BEFORE, before);
        push(NOT_RECORDED, rest);
    }
    let frame = Frame::new(
        "at_peak",
        "Who holds the memory of a device at its peak: the operators that allocated it.",
    );
    let unknown = |row: &Made<'_>| row.maker.is_none() && row.name != OTHERS;
    made_by(view, frame, &rows, true)
        .bytes("bytes", &rows, |row| Some(clamp(row.sums.allocated)))
        .count("allocations", &rows, |row| {
            (!unknown(row)).then_some(row.sums.allocations)
        })
}

/// The allocations that are alive after `changes`, and the bytes freed that were allocated before.
///
/// ```text
/// address a   −64  +512               freed before: 64; alive: 512
/// address b        +32   −32  +8  +8  alive: the last 8; a free was not recorded
/// ```
fn alive(changes: &[Change]) -> (Vec<&Change>, i128) {
    let mut by_address: Vec<&Change> = changes
        .iter()
        .filter(|change| change.address != 0)
        .collect();
    // Stable: each address keeps the order of time.
    by_address.sort_by_key(|change| change.address);
    let mut alive = Vec::new();
    let mut freed_before = 0;
    for same in by_address.chunk_by(|a, b| a.address == b.address) {
        let mut open: Option<&Change> = None;
        for change in same {
            if change.bytes >= 0 {
                open = Some(change);
            } else if open.take().is_none() {
                freed_before -= i128::from(change.bytes);
            }
        }
        alive.extend(open);
    }
    (alive, freed_before)
}

/// One row a device and step (and phase).
struct Stage<'a> {
    chosen: &'a Chosen<'a>,
    step: Option<u32>,
    phase: Option<Phase>,
    sums: Sums,
    peak: Peak,
}

fn steps(view: &View<'_>, chosen: &[Chosen<'_>]) -> Frame {
    let by_phase = view.options.is_by(By::Phase);
    let mut rows: Vec<Stage<'_>> = Vec::new();
    for chosen in chosen {
        let mut stages: BTreeMap<(u32, Option<Phase>), Vec<usize>> = BTreeMap::new();
        for number in &chosen.numbers {
            let change = chosen.change(*number);
            let stage = (change.step, change.phase.filter(|_| by_phase));
            stages.entry(stage).or_default().push(*number);
        }
        for ((step, phase), numbers) in stages {
            let mut sums = Sums::default();
            for number in &numbers {
                sums.count(chosen.change(*number));
            }
            rows.extend(peak(chosen.line, &numbers).map(|peak| Stage {
                chosen,
                step: (step != NONE).then_some(step),
                phase,
                sums,
                peak,
            }));
        }
    }
    let span = |row: &Stage<'_>| Some(view.dissection.steps.all[row.step? as usize].span);
    // A phase comes and goes within a step: it has no start and end of its own.
    let span = |row: &Stage<'_>| span(row).filter(|_| !by_phase);
    let start = |row: &Stage<'_>| Some(row.chosen.line.level_at(span(row)?.start));
    let end = |row: &Stage<'_>| Some(row.chosen.line.level_at(span(row)?.end));
    let mut frame = Frame::new(
        "memory_steps",
        "The memory of a device over a step: levels that grow from step to step are a leak.",
    )
    .text("device", &rows, |row| Some(row.chosen.line.pool.name()))
    .text("process", &rows, |row| row.chosen.line.pool.process.clone())
    .text("step", &rows, |row| view.step_name(row.step?));
    if by_phase {
        frame = frame.text("phase", &rows, |row| phase_name(row.phase));
    }
    frame
        .bytes("peak_allocated_bytes", &rows, |row| Some(row.peak.bytes))
        .at("peak_allocated_at_ns", &rows, |row| {
            Some(row.chosen.change(row.peak.change).at)
        })
        .bytes("start_bytes", &rows, start)
        .bytes("end_bytes", &rows, end)
        .bytes("growth_bytes", &rows, |row| {
            Some(difference(start(row)?, end(row)?))
        })
        .count("allocations", &rows, |row| Some(row.sums.allocations))
        .count("frees", &rows, |row| Some(row.sums.frees))
        .bytes("allocated_bytes", &rows, |row| {
            Some(clamp(row.sums.allocated))
        })
        .bytes("freed_bytes", &rows, |row| Some(clamp(row.sums.freed)))
        .bytes("net_bytes", &rows, |row| Some(clamp(row.sums.net())))
}

/// One row a device and operator.
fn operators(view: &View<'_>, chosen: &[Chosen<'_>]) -> Frame {
    let by_phase = view.options.is_by(By::Phase);
    let mut rows: Vec<Made<'_>> = Vec::new();
    for chosen in chosen {
        let mut by_maker: BTreeMap<Maker<'_>, Sums> = BTreeMap::new();
        for change in chosen.changes() {
            let maker = Maker::of(view, change, by_phase);
            by_maker.entry(maker).or_default().count(change);
        }
        let mut sums: Vec<_> = by_maker.into_iter().collect();
        sums.sort_by_key(|(_, sums)| std::cmp::Reverse((sums.allocated, sums.freed)));
        rows.extend(named(chosen.line.pool, sums, view.options.top));
    }
    let frame = Frame::new(
        "operators",
        "What each operator allocates and frees itself, without the operators inside it.",
    );
    made_by(view, frame, &rows, by_phase)
        .count("allocations", &rows, |row| Some(row.sums.allocations))
        .count("frees", &rows, |row| Some(row.sums.frees))
        .bytes("allocated_bytes", &rows, |row| {
            Some(clamp(row.sums.allocated))
        })
        .bytes("freed_bytes", &rows, |row| Some(clamp(row.sums.freed)))
        .bytes("net_bytes", &rows, |row| Some(clamp(row.sums.net())))
}

#[cfg(test)]
mod tests;
