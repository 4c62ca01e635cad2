//! Operators, kernels and collectives of both sides, matched by name.
//!
//! An operator of one side is that of the other when name and input dimensions are the same; where only one
//! side has dimensions, the name decides. Rows come in order of the time a step that they gained or lost.

use std::collections::BTreeMap;

use super::observed::{ByStep, Calls, Observed, OpCalls};
use super::pace::Pace;
use super::quantity::{Line, Quantity, Scale, lines, with_line};
use super::side::Side;
use crate::inspect::{Frame, Unit};

/// A name with what tells it from others of that name.
type Key = (String, String);

/// Calls and time under one name on one side.
#[derive(Debug, Clone, Default)]
struct Uses {
    calls: u64,
    recomputed: u64,
    /// Self time of operators, else time on the device.
    time: Quantity,
    /// Device work that operators launched themselves.
    device: Quantity,
}

impl Uses {
    fn append(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.recomputed = self.recomputed.saturating_add(other.recomputed);
        self.time.append(&other.time);
        self.device.append(&other.device);
    }

    fn total(&self) -> i128 {
        i128::from(self.time.total().0) + i128::from(self.device.total().0)
    }
}

/// One name on both sides.
struct Pair {
    key: Key,
    uses: [Uses; 2],
}

/// One row.
struct Row {
    pair: Pair,
    state: Option<&'static str>,
    calls: [f64; 2],
    recomputed: [f64; 2],
    line: Line,
    device: Line,
}

type Names = BTreeMap<Key, Uses>;

/// Pairs, those that gained or lost most time first; beyond `top` they are one pair.
fn paired(sides: [Names; 2], scale: Scale<'_>, top: usize) -> Vec<Pair> {
    let mut pairs: BTreeMap<Key, [Uses; 2]> = BTreeMap::new();
    for (side, names) in sides.into_iter().enumerate() {
        for (key, uses) in names {
            pairs.entry(key).or_default()[side] = uses;
        }
    }
    let mut pairs: Vec<Pair> = pairs
        .into_iter()
        .map(|(key, uses)| Pair { key, uses })
        .collect();
    let steps = scale
        .paces
        .each_ref()
        .map(|pace| i128::from(pace.rank_steps()));
    pairs.sort_by_cached_key(|pair| {
        let [base, candidate] = pair.uses.each_ref().map(Uses::total);
        let delta = candidate.saturating_mul(steps[0]) - base.saturating_mul(steps[1]);
        // The map is in order of content; sorting keeps that order among equals.
        std::cmp::Reverse((delta.unsigned_abs(), base.max(candidate)))
    });
    if top > 0 && pairs.len() > top + 1 {
        let rest = pairs.split_off(top);
        let mut others = Pair {
            key: ("(others)".to_owned(), String::new()),
            uses: [Uses::default(), Uses::default()],
        };
        for pair in &rest {
            for (sum, uses) in others.uses.iter_mut().zip(&pair.uses) {
                sum.append(uses);
            }
        }
        pairs.push(others);
    }
    pairs
}

fn rows(pairs: Vec<Pair>, scale: Scale<'_>, has_device: bool) -> Vec<Row> {
    let of = |quantity: fn(&Uses) -> &Quantity| {
        let pairs: Vec<[Option<&Quantity>; 2]> = pairs
            .iter()
            .map(|pair| pair.uses.each_ref().map(|uses| Some(quantity(uses))))
            .collect();
        lines(&pairs, scale)
    };
    let times = of(|uses| &uses.time);
    let devices = if has_device {
        of(|uses| &uses.device)
    } else {
        vec![Line::default(); pairs.len()]
    };
    let steps = scale.paces.each_ref().map(Pace::rank_steps);
    let rows = pairs.into_iter().zip(times).zip(devices);
    rows.map(|((pair, line), device)| {
        let a_step = |of: fn(&Uses) -> u64| {
            [0, 1].map(|side| of(&pair.uses[side]) as f64 / steps[side].max(1) as f64)
        };
        Row {
            state: (pair.key.0 != "(others)")
                .then(|| state(pair.uses.each_ref().map(|uses| uses.calls), steps)),
            calls: a_step(|uses| uses.calls),
            recomputed: a_step(|uses| uses.recomputed),
            pair,
            line,
            device,
        }
    })
    .collect()
}

/// What became of the number of calls a step.
pub(super) fn state(calls: [u64; 2], steps: [u64; 2]) -> &'static str {
    let [base, candidate] = calls;
    let calls = [0, 1].map(|side| u128::from(calls[side]) * u128::from(steps[1 - side]));
    match (base, candidate) {
        (0, _) => "new",
        (_, 0) => "gone",
        _ if calls[1] > calls[0] => "more_calls",
        _ if calls[1] < calls[0] => "fewer_calls",
        _ => "same_calls",
    }
}

/// Both sides by operator; `None` when one was not observed.
pub(super) fn operators_frame(sides: [&Side; 2], scale: Scale<'_>, top: usize) -> Option<Frame> {
    let shaped = |files: &[Observed]| {
        let mut keys = files.iter().flat_map(|file| file.operators.keys());
        keys.any(|(_, dims)| !dims.is_empty())
    };
    let [Some(ours), Some(theirs)] = sides.map(|side| side.observed.as_deref()) else {
        return None;
    };
    let by_name = shaped(ours) != shaped(theirs);
    let names = [(ours, 0), (theirs, 1)].map(|(files, side)| {
        let mut names = Names::new();
        for (number, file) in files.iter().enumerate() {
            for ((name, dims), steps) in &file.operators {
                let dims = if by_name { "" } else { dims };
                let pace = &scale.paces[side];
                count_operator(&mut names, (name, dims), (number, steps), pace);
            }
        }
        names
    });
    let has_device = sides.iter().any(|side| side.has_device_work());
    let rows = rows(paired(names, scale, top), scale, has_device);
    let frame = key_columns(
        Frame::new(
            "operators",
            "Calls and self time of host operators in the mean step, and of device work that they launched; every row \
             is tested for itself.",
        ),
        &rows,
        ["operator", "input_dims"],
    )
    .float("base_recomputed", Unit::Number, &rows, |row| {
        Some(row.recomputed[0])
    })
    .float("candidate_recomputed", Unit::Number, &rows, |row| {
        Some(row.recomputed[1])
    });
    let frame = with_line(frame, &rows, |row| &row.line)
        .ns("base_device_ns", &rows, |row| row.device.base)
        .ns("candidate_device_ns", &rows, |row| row.device.candidate)
        .ns("delta_device_ns", &rows, |row| row.device.delta())
        .text("device_verdict", &rows, |row| {
            row.device.verdict().map(super::Verdict::of_part)
        });
    Some(frame)
}

fn count_operator(
    names: &mut Names,
    (name, dims): (&str, &str),
    (file, steps): (usize, &ByStep<OpCalls>),
    pace: &Pace,
) {
    for (place, op) in steps {
        let Some(step) = pace.step(file, *place) else {
            continue;
        };
        let uses = names.entry((name.to_owned(), dims.to_owned())).or_default();
        uses.calls = uses.calls.saturating_add(op.host.calls);
        uses.recomputed = uses.recomputed.saturating_add(op.recomputed);
        uses.time.add(step, op.host.time);
        uses.device.add(step, op.device.time);
    }
}

fn key_columns(frame: Frame, rows: &[Row], names: [&'static str; 2]) -> Frame {
    let dims = |row: &Row| Some(row.pair.key.1.clone()).filter(|dims| !dims.is_empty());
    frame
        .text(names[0], rows, |row| Some(row.pair.key.0.clone()))
        .text(names[1], rows, dims)
        .text("state", rows, |row| row.state)
        .float("base_calls", Unit::Number, rows, |row| Some(row.calls[0]))
        .float("candidate_calls", Unit::Number, rows, |row| {
            Some(row.calls[1])
        })
}

/// Both sides by kernel, copy or fill; `None` when one was not observed.
pub(super) fn kernels_frame(sides: [&Side; 2], scale: Scale<'_>, top: usize) -> Option<Frame> {
    let frame = Frame::new(
        "kernels",
        "Device work of the mean step by name; every row is tested for itself.",
    );
    work_frame(frame, ["kernel", "class"], sides, scale, top, |file| {
        let kernels = file.kernels.iter();
        let key = |(name, class): &(String, &'static str)| (name.clone(), (*class).to_owned());
        kernels.map(|(names, steps)| (key(names), steps)).collect()
    })
}

/// Both sides by collective; `None` when one was not observed.
pub(super) fn collectives_frame(sides: [&Side; 2], scale: Scale<'_>, top: usize) -> Option<Frame> {
    let frame = Frame::new(
        "collectives",
        "Collectives of the mean step by operation and message.",
    );
    work_frame(frame, ["operation", "message"], sides, scale, top, |file| {
        let kinds = file.collectives.iter();
        kinds.map(|(key, steps)| (key.clone(), steps)).collect()
    })
}

fn work_frame(
    frame: Frame,
    columns: [&'static str; 2],
    sides: [&Side; 2],
    scale: Scale<'_>,
    top: usize,
    of: impl Fn(&Observed) -> Vec<(Key, &ByStep<Calls>)>,
) -> Option<Frame> {
    if sides.iter().any(|side| side.observed.is_none()) {
        return None;
    }
    let names = [0, 1].map(|side| {
        let mut names = Names::new();
        let files = sides[side].observed.iter().flatten();
        for (number, file) in files.enumerate() {
            for (key, steps) in of(file) {
                for (place, calls) in steps {
                    let Some(step) = scale.paces[side].step(number, *place) else {
                        continue;
                    };
                    let uses = names.entry(key.clone()).or_default();
                    uses.calls = uses.calls.saturating_add(calls.calls);
                    uses.time.add(step, calls.time);
                }
            }
        }
        names
    });
    let rows = rows(paired(names, scale, top), scale, false);
    let frame = key_columns(frame, &rows, columns);
    Some(with_line(frame, &rows, |row| &row.line))
}

/// Peak of memory of one device on both sides.
struct PeakRow {
    device: (String, i64),
    allocated: [Option<i64>; 2],
    reserved: [Option<i64>; 2],
}

/// The largest amounts of memory in use; `None` when a side was not observed.
pub(super) fn memory_frame(sides: [&Side; 2]) -> Option<Frame> {
    let mut rows: BTreeMap<(String, i64), PeakRow> = BTreeMap::new();
    for (place, side) in sides.iter().enumerate() {
        for file in side.observed.as_ref()? {
            for (device, peak) in &file.memory {
                let row = rows.entry(device.clone()).or_insert_with(|| PeakRow {
                    device: device.clone(),
                    allocated: [None; 2],
                    reserved: [None; 2],
                });
                row.allocated[place] = row.allocated[place].max(peak.allocated);
                row.reserved[place] = row.reserved[place].max(peak.reserved);
            }
        }
    }
    let rows: Vec<PeakRow> = rows.into_values().collect();
    let delta = |pair: [Option<i64>; 2]| Some(pair[1]?.saturating_sub(pair[0]?));
    let frame = Frame::new(
        "memory",
        "Largest amount of memory in use in the capture, by PyTorch's own events, on the fullest rank.",
    )
    .text("kind", &rows, |row| Some(row.device.0.clone()))
    .id("device", &rows, |row| Some(row.device.1))
    .bytes("base_allocated_bytes", &rows, |row| row.allocated[0])
    .bytes("candidate_allocated_bytes", &rows, |row| row.allocated[1])
    .bytes("delta_allocated_bytes", &rows, |row| delta(row.allocated))
    .bytes("base_reserved_bytes", &rows, |row| row.reserved[0])
    .bytes("candidate_reserved_bytes", &rows, |row| row.reserved[1])
    .bytes("delta_reserved_bytes", &rows, |row| delta(row.reserved));
    Some(frame)
}

/// A step of a side.
struct StepRow<'a> {
    side: &'static str,
    step: &'a super::pace::Step,
}

/// Every step of both sides.
pub(super) fn steps_frame(sides: [&Side; 2]) -> Frame {
    let rows: Vec<StepRow<'_>> = ["base", "candidate"]
        .into_iter()
        .zip(sides)
        .flat_map(|(side, steps)| {
            steps
                .steps
                .all
                .iter()
                .map(move |step| StepRow { side, step })
        })
        .collect();
    let id = |number: usize| i64::try_from(number).ok();
    Frame::new(
        "steps",
        "Every step, on its slowest rank; partial ones do not count.",
    )
    .text("side", &rows, |row| Some(row.side))
    .id("repeat", &rows, |row| Some(i64::from(row.step.repeat)))
    .id("window", &rows, |row| id(row.step.window))
    .text("step", &rows, |row| Some(row.step.name.as_str()))
    .flag("partial", &rows, |row| Some(row.step.partial))
    .ns("host_ns", &rows, |row| Some(row.step.host))
    .ns("device_ns", &rows, |row| row.step.device)
    .count("files", &rows, |row| Some(row.step.files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_compared_a_step() {
        assert_eq!(state([4, 6], [2, 3]), "same_calls");
        assert_eq!(state([4, 6], [2, 2]), "more_calls");
        assert_eq!(state([4, 6], [2, 4]), "fewer_calls");
        assert_eq!(state([0, 6], [2, 4]), "new");
        assert_eq!(state([4, 0], [2, 4]), "gone");
    }
}
