//! What a saving is paid for with: recompute, copies, waiting, communication.
//!
//! The rows are views of the same time and need not add up: a copy of recomputed data is in two of them.
//!
//! | cost | place | what |
//! |---|---|---|
//! | `recompute` | device | instants in which the device recomputes |
//! | | host | self time of recomputed operators |
//! | `exposed_communication`, `exposed_copies`, `exposed_fills` | device | instants in which nothing computes |
//! | `idle` | device | nothing runs |
//! | `communication` | host | collectives that run on the host (Gloo, MPI) |
//! | `copies` | host | self time of `aten::copy_`, where no device copies |
//! | `synchronisation` | host | calls that wait for the device (`…Synchronize`, copies that return when they are done) |
//! | `cache_maintenance` | host | calls that take memory from the driver or give it back (`cudaMalloc`, `cudaFree`, …), which an allocator's cache avoids |
//! | `outside_operators` | host | step time under no operator on any thread |

use super::observed::{ByStep, Observed};
use super::pace::Pace;
use super::phases::{DeviceTimes, host_means, host_times};
use super::quantity::{Line, Quantity, Scale, lines, with_line};
use super::result::{Bottleneck, CostShift};
use super::side::Side;
use crate::attribute::Phase;
use crate::inspect::{Frame, Unit};
use crate::units::Ns;

/// A cost of both sides.
pub(super) struct Cost {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    /// It can be a bottleneck, or be what a saving is paid for with; the optimizer only the first.
    is_shift: bool,
    line: Line,
    /// Mean time of a step at its place.
    wholes: [Option<Ns>; 2],
}

impl Cost {
    fn share(&self, side: usize) -> Option<f64> {
        let part = [self.line.base, self.line.candidate][side];
        part?.ratio(self.wholes[side]?)
    }
}

/// The costs of both sides that are known on one of them.
pub(super) fn costs(
    sides: [&Side; 2],
    devices: &[Option<DeviceTimes>; 2],
    scale: Scale<'_>,
) -> Vec<Cost> {
    let mut named: Vec<(&'static str, &'static str, bool, [Option<Quantity>; 2])> = Vec::new();
    let on_device = devices.iter().any(Option::is_some);
    if on_device {
        type Of = fn(&DeviceTimes) -> &Quantity;
        let of: [(&str, bool, Of); 6] = [
            ("recompute", true, |times| &times.recompute),
            ("exposed_communication", true, |times| {
                &times.exposed_communication
            }),
            ("exposed_copies", true, |times| &times.exposed_copies),
            ("exposed_fills", true, |times| &times.exposed_fills),
            ("idle", true, |times| &times.idle),
            ("optimizer", false, |times| &times.optimizer),
        ];
        for (name, is_shift, of) in of {
            let both = [0, 1].map(|side| devices[side].as_ref().map(|times| of(times).clone()));
            named.push((name, "device", is_shift, both));
        }
    }
    let phases = [0, 1].map(|side| host_times(sides[side], &scale.paces[side]));
    let of_phase = |phase: Phase| {
        [0, 1].map(|side| {
            let times: &Option<[Quantity; Phase::ALL.len()]> = &phases[side];
            times.as_ref().map(|times| times[phase as usize].clone())
        })
    };
    named.push(("recompute", "host", true, of_phase(Phase::Recompute)));
    let both = |of: fn(&Observed) -> Option<ByStep<Ns>>| {
        [0, 1].map(|side| by_step(sides[side], &scale.paces[side], of))
    };
    named.push((
        "synchronisation",
        "host",
        true,
        both(|file| file.synchronisation.clone()),
    ));
    named.push((
        "cache_maintenance",
        "host",
        true,
        both(|file| file.cache_maintenance.clone()),
    ));
    if !on_device {
        let copies = |file: &Observed| {
            let measured = !file.operators.is_empty();
            measured.then(|| file.host_copies.clone())
        };
        named.push(("copies", "host", true, both(copies)));
        named.push(("communication", "host", true, both(communication)));
        named.push(("optimizer", "host", false, of_phase(Phase::Optimizer)));
    }
    let outside = both(|file| file.outside_operators.clone());
    named.push(("outside_operators", "host", true, outside));

    let pairs: Vec<[Option<&Quantity>; 2]> = named
        .iter()
        .map(|(_, _, _, both)| [both[0].as_ref(), both[1].as_ref()])
        .collect();
    // One at a time: they are no parts of a whole.
    let lines = pairs.iter().flat_map(|pair| lines(&[*pair], scale));
    let mut lines: Vec<Line> = lines.collect();
    if sides.iter().any(|side| side.observed.is_none()) {
        let means = sides.map(host_means);
        for ((name, place, ..), line) in named.iter().zip(&mut lines) {
            let phase = Phase::ALL.into_iter().find(|phase| phase.as_str() == *name);
            if let (Some(phase), "host") = (phase, *place) {
                *line = Line {
                    base: means[0][phase as usize],
                    candidate: means[1][phase as usize],
                    judgement: None,
                };
            }
        }
    }
    let device_steps = [0, 1].map(|side| {
        let times = devices[side].as_ref()?;
        mean(times.window.total(), &scale.paces[side])
    });
    let host_steps = [0, 1].map(|side| host_step(sides[side]));
    named
        .iter()
        .zip(lines)
        .map(|((name, place, is_shift, _), line)| Cost {
            name,
            place,
            is_shift: *is_shift,
            line,
            wholes: if *place == "device" {
                device_steps
            } else {
                host_steps
            },
        })
        .filter(|cost| cost.line.base.is_some() || cost.line.candidate.is_some())
        .collect()
}

/// Collectives that run on the host.
fn communication(file: &Observed) -> Option<ByStep<Ns>> {
    let mut sums = ByStep::new();
    for steps in file.collectives.values() {
        for (step, calls) in steps {
            *sums.entry(*step).or_default() += calls.time;
        }
    }
    (!file.operators.is_empty()).then_some(sums)
}

fn by_step(side: &Side, pace: &Pace, of: fn(&Observed) -> Option<ByStep<Ns>>) -> Option<Quantity> {
    let mut sum = None;
    for (number, file) in side.observed.as_ref()?.iter().enumerate() {
        let Some(steps) = of(file) else { continue };
        let sum = sum.get_or_insert_with(Quantity::default);
        for (place, time) in steps {
            if let Some(step) = pace.step(number, place) {
                sum.add(step, time);
            }
        }
    }
    sum
}

fn mean(total: Ns, pace: &Pace) -> Option<Ns> {
    let count = i64::try_from(pace.rank_steps()).ok()?;
    total.0.checked_div(count).map(Ns)
}

/// Mean length of the whole steps of all files on the host.
fn host_step(side: &Side) -> Option<Ns> {
    let whole = side.steps.all.iter().filter(|step| !step.partial);
    let walls: Vec<i128> = whole.map(|step| i128::from(step.host.0)).collect();
    let sum: i128 = walls.iter().sum();
    let mean = sum.checked_div(i128::try_from(walls.len()).ok()?)?;
    i64::try_from(mean).ok().map(Ns)
}

/// One row a cost.
pub(super) fn cost_frame(costs: &[Cost]) -> Frame {
    let rows: Vec<&Cost> = costs.iter().filter(|cost| cost.is_shift).collect();
    let frame = Frame::new(
        "cost_shift",
        "What a saving may be paid for with, in time of the mean step; rows may overlap.",
    )
    .text("cost", &rows, |cost| Some(cost.name))
    .text("place", &rows, |cost| Some(cost.place));
    with_line(frame, &rows, |cost| &cost.line)
        .float("base_share", Unit::Ratio, &rows, |cost| cost.share(0))
        .float("candidate_share", Unit::Ratio, &rows, |cost| cost.share(1))
}

/// What grew by the smallest effect of a step or more: what is new first, then the largest.
pub(super) fn shifts(costs: &[Cost], min_effect: f64) -> Vec<CostShift> {
    let counts = |cost: &&Cost| {
        let whole = cost.wholes[0].map_or(0.0, |whole| whole.0 as f64);
        let delta = cost.line.delta().unwrap_or_default();
        cost.is_shift && delta > Ns::ZERO && delta.0 as f64 >= whole * min_effect
    };
    let mut grown: Vec<&Cost> = costs.iter().filter(counts).collect();
    grown.sort_by_key(|cost| {
        let is_old = cost.line.base != Some(Ns::ZERO);
        (is_old, std::cmp::Reverse(cost.line.delta()))
    });
    let shift = |cost: &Cost| CostShift {
        cost: cost.name,
        place: cost.place,
        base_ns: cost.line.base,
        candidate_ns: cost.line.candidate,
        delta_ns: cost.line.delta(),
        verdict: cost.line.verdict(),
    };
    grown.into_iter().map(shift).collect()
}

/// The cost with the largest share of a step of the base, before and after.
pub(super) fn bottleneck(costs: &[Cost]) -> Option<Bottleneck> {
    let on_device = costs.iter().any(|cost| cost.place == "device");
    let here = |cost: &&Cost| (cost.place == "device") == on_device;
    let mut largest: Option<(&Cost, f64)> = None;
    for cost in costs.iter().filter(here) {
        let share = cost.share(0).filter(|share| *share > 0.0);
        if let Some(share) = share
            && largest.is_none_or(|(_, before)| share > before)
        {
            largest = Some((cost, share));
        }
    }
    let (cost, base_share) = largest?;
    Some(Bottleneck {
        cost: cost.name,
        place: cost.place,
        base_ns: cost.line.base,
        candidate_ns: cost.line.candidate,
        base_share: Some(base_share),
        candidate_share: cost.share(1),
        judgement: cost.line.judgement.clone(),
    })
}
