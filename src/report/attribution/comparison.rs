//! Several runs side by side: each phase against the first run.

use super::super::document::{Block, Column, Row, Table, Value};
use super::super::name::{shortened, visible};
use super::label;
use super::timeline::{Windows, counting_steps, devices};
use crate::attribute::{self, Attribution, Bucket, Phase, RunResult};
use crate::units::Ns;

/// Columns of the name of a run in the header.
const LONGEST_NAME: usize = 24;

/// The comparison of all runs with the first.
pub(in super::super) fn blocks(attribution: &Attribution) -> Vec<Block> {
    let Some(measure) = Measure::of(attribution) else {
        return Vec::new();
    };
    let sides: Vec<Side> = attribution
        .runs
        .iter()
        .map(|run| Side::new(attribution, run, measure))
        .collect();
    vec![Block::Table(table(&sides, measure))]
}

/// What is compared; the same for every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Measure {
    /// Device time a step and device.
    DeviceStep,
    /// Device time a device.
    Device,
    /// Host self time a step.
    HostStep,
    /// Host self time a file.
    Host,
}

impl Measure {
    /// The finest that all runs have.
    pub(in super::super) fn of(attribution: &Attribution) -> Option<Self> {
        let all = |has: &dyn Fn(&RunResult) -> bool| attribution.runs.iter().all(has);
        if attribution.runs.is_empty() {
            None
        } else if all(&|run| Windows::of_steps(attribution, run).is_some()) {
            Some(Self::DeviceStep)
        } else if all(&|run| devices(attribution, run).next().is_some()) {
            Some(Self::Device)
        } else if all(&|run| host_steps(attribution, run) > 0) {
            Some(Self::HostStep)
        } else {
            Some(Self::Host)
        }
    }

    /// Of how many parts host time is the sum, of which the mean is compared.
    pub(in super::super) fn parts(self, attribution: &Attribution, run: &RunResult) -> usize {
        match self {
            Self::HostStep => host_steps(attribution, run),
            _ => run.ranks.len(),
        }
    }

    fn caption(self) -> &'static str {
        match self {
            Self::DeviceStep => "Runs compared: mean device time a step and device",
            Self::Device => "Runs compared: mean device time a device, whole capture",
            Self::HostStep => "Runs compared: host self time of the capture, divided by its steps",
            Self::Host => "Runs compared: mean host self time a file, whole capture",
        }
    }
}

fn host_steps(attribution: &Attribution, run: &RunResult) -> usize {
    run.ranks
        .iter()
        .map(|rank| attribution.ranks[*rank].host.steps.len())
        .sum()
}

/// One run as it is compared.
struct Side {
    name: String,
    step_time: Option<Ns>,
    buckets: [Ns; 7],
    total: Ns,
    exposed_communication: Ns,
    idle: Option<Ns>,
}

impl Side {
    fn new(attribution: &Attribution, run: &RunResult, measure: Measure) -> Self {
        let name =
            shortened(&visible(&label::run(&attribution.runs, run)), LONGEST_NAME).into_owned();
        let step_time = run.step_time.map(|time| time.median_ns);
        let on_device = |table: &attribute::Table, windows: Windows| {
            let mean = |sum: Ns| divided(sum, windows.count);
            Self {
                name: name.clone(),
                step_time,
                buckets: Bucket::ALL.map(|bucket| mean(table.bucket(bucket).sum_ns)),
                total: mean(table.total.sum_ns),
                exposed_communication: mean(windows.sum.exposed_communication_ns),
                idle: Some(mean(windows.sum.idle_ns)),
            }
        };
        match measure {
            Measure::DeviceStep => {
                let mut table = attribute::Table::default();
                for step in counting_steps(attribution, run) {
                    table.add(&step.totals);
                }
                on_device(
                    &table,
                    Windows::of_steps(attribution, run).unwrap_or_default(),
                )
            }
            Measure::Device => on_device(
                &run.totals,
                Windows::of_captures(attribution, run).unwrap_or_default(),
            ),
            Measure::HostStep | Measure::Host => {
                let parts = measure.parts(attribution, run);
                let mut buckets = [Ns::ZERO; 7];
                for phase in Phase::ALL {
                    let time = run
                        .host_phases
                        .get(&phase)
                        .map_or(Ns::ZERO, |time| time.self_ns);
                    buckets[Bucket::Phase(phase).index()] = divided(time, parts as u64);
                }
                let total = run.host_phases.values().map(|time| time.self_ns).sum();
                Self {
                    name,
                    step_time,
                    buckets,
                    total: divided(total, parts as u64),
                    exposed_communication: Ns::ZERO,
                    idle: None,
                }
            }
        }
    }
}

fn divided(sum: Ns, parts: u64) -> Ns {
    let parts = i64::try_from(parts).unwrap_or(i64::MAX);
    Ns(sum.0.checked_div(parts).unwrap_or(0))
}

fn table(sides: &[Side], measure: Measure) -> Table {
    let mut columns = vec![Column::text("")];
    for (place, side) in sides.iter().enumerate() {
        columns.push(Column::ms(&side.name).starting_group());
        if place > 0 {
            columns.extend([Column::ms("change"), Column::percent("change")]);
        }
    }
    let row = |name: &str, time: &dyn Fn(&Side) -> Option<Ns>| {
        let base = sides.first().and_then(time);
        let mut cells = vec![Value::text(name)];
        for (place, side) in sides.iter().enumerate() {
            let time = time(side);
            cells.push(Value::ns_or_missing(time));
            if place > 0 {
                let change = time.zip(base).map(|(time, base)| (time - base, base));
                cells.push(
                    change.map_or(Value::NotApplicable, |(change, _)| Value::NsChange(change)),
                );
                // From nothing to nothing is no change; from nothing to something has no size in percent.
                let ratio = change.and_then(|(change, base)| match (change, base) {
                    (Ns::ZERO, Ns::ZERO) => Some(0.0),
                    _ => change.ratio(base),
                });
                cells.push(ratio.map_or(Value::NotApplicable, Value::PercentChange));
            }
        }
        cells
    };
    let mut rows = Vec::new();
    for bucket in Bucket::ALL {
        let always = matches!(bucket, Bucket::Phase(_));
        if always
            || sides
                .iter()
                .any(|side| side.buckets[bucket.index()] != Ns::ZERO)
        {
            rows.push(Row::new(row(bucket.as_str(), &|side| {
                Some(side.buckets[bucket.index()])
            })));
        }
    }
    let total = match measure {
        Measure::DeviceStep | Measure::Device => "device time",
        Measure::HostStep | Measure::Host => "host self time",
    };
    rows.push(Row::total(row(total, &|side| Some(side.total))));
    if sides
        .iter()
        .any(|side| side.exposed_communication != Ns::ZERO)
    {
        let time = |side: &Side| Some(side.exposed_communication);
        rows.push(Row::new(row("exposed communication", &time)));
    }
    if sides.iter().any(|side| side.idle.is_some()) {
        rows.push(Row::new(row("device idle", &|side| side.idle)));
    }
    if sides.iter().any(|side| side.step_time.is_some()) {
        rows.push(Row::total(row("median step", &|side| side.step_time)));
    }
    Table {
        caption: measure.caption().to_owned(),
        keys: 1,
        columns,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn compared(attribution: &Attribution) -> Table {
        match blocks(attribution).remove(0) {
            Block::Table(table) => table,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn differences_are_a_step_and_device() {
        let attribution = sample::two_runs();
        let table = compared(&attribution);
        let recompute = &table.rows[2].cells;
        assert_eq!(
            recompute[..],
            [
                Value::text("recompute"),
                Value::Ns(Ns(1_000_000)),
                Value::Ns(Ns(2_000_000)),
                Value::NsChange(Ns(1_000_000)),
                Value::PercentChange(1.0),
            ]
        );
        // Neither run has any of it: that is no change.
        assert_eq!(table.rows[3].cells[0], Value::text("optimizer"));
        assert_eq!(table.rows[3].cells[4], Value::PercentChange(0.0));
        let step = &table.rows.last().unwrap().cells;
        assert_eq!(step[3], Value::NsChange(Ns(2_500_000)));
    }

    #[test]
    fn runs_without_steps_or_devices_are_compared_all_the_same() {
        let mut attribution = sample::two_runs();
        attribution.runs[1].step_time = None;
        assert!(compared(&attribution).caption.contains("whole capture"));
        attribution.ranks[1].devices.clear();
        assert!(
            compared(&attribution)
                .caption
                .contains("divided by its steps")
        );
        attribution.ranks[1].host.steps.clear();
        assert!(compared(&attribution).caption.contains("a file"));
    }
}
