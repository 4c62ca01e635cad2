//! Energy, power, clocks and memory by phase, where the trace has counters.

use super::super::document::{Column, Row, Table, Value};
use super::label;
use super::timeline::devices;
use crate::attribute::{
    Attribution, Bucket, CounterSums, DeviceCounters, DeviceResult, RankResult, RunResult,
};

/// With more devices than this, each has one row only.
const MOST_WITH_PHASES: usize = 8;

fn column(name: &str, unit: &'static str) -> Column {
    Column {
        unit: Some(unit),
        ..Column::number(name)
    }
}

/// What counters say about the devices of `run`; `None` without counters.
pub(super) fn table(attribution: &Attribution, run: &RunResult) -> Option<Table> {
    let known = devices(attribution, run).filter(|device| device.counters.is_some());
    let count = known.count();
    if count == 0 {
        return None;
    }
    let several = count > 1;
    let mut columns = vec![Column::text(if several { "device" } else { "phase" })];
    columns.extend([
        Column::ms("time"),
        column("energy", "J"),
        column("power", "W"),
        column("SM clock", "MHz"),
        column("lowest", "MHz"),
        column("memory", "GB"),
        Column::percent("throttled"),
    ]);
    let mut rows = Vec::new();
    let mut interval = None;
    for rank in run.ranks.iter().map(|rank| &attribution.ranks[*rank]) {
        for device in &rank.devices {
            let Some(counters) = &device.counters else {
                continue;
            };
            interval.get_or_insert(counters.interval_ns);
            let name = if several {
                named(attribution, rank, device)
            } else {
                "total".to_owned()
            };
            if several {
                rows.push(Row::new(cells(&name, &counters.total)));
            }
            if count <= MOST_WITH_PHASES {
                rows.extend(phases(counters).map(|(name, sums)| {
                    let cells = cells(name, sums);
                    if several {
                        Row::part(cells)
                    } else {
                        Row::new(cells)
                    }
                }));
            }
            if !several {
                rows.push(Row::total(cells(&name, &counters.total)));
            }
        }
    }
    let every = interval.map_or(0.0, crate::units::Ns::as_ms);
    Some(Table {
        caption: format!(
            "Device counters by phase, sampled every {every:.0} ms: shorter phases share the mean of an interval"
        ),
        keys: 1,
        columns,
        rows,
    })
}

fn named(attribution: &Attribution, rank: &RankResult, device: &DeviceResult) -> String {
    format!(
        "{}, {}",
        label::rank(attribution, rank),
        label::device(device)
    )
}

/// The phases with time, in the order of output, idle last.
fn phases(counters: &DeviceCounters) -> impl Iterator<Item = (&'static str, &CounterSums)> {
    let names = Bucket::ALL.iter().map(|bucket| bucket.as_str());
    names
        .chain(std::iter::once("idle"))
        .filter_map(|name| Some((name, counters.phases.get(name)?)))
}

fn cells(name: &str, sums: &CounterSums) -> Vec<Value> {
    let scaled = |value: Option<i64>, unit: f64| {
        value.map_or(Value::Missing, |value| Value::Number(value as f64 / unit))
    };
    let clock = sums.sm_clock_mhz;
    let throttled = sums.throttled_ns;
    vec![
        Value::text(name),
        Value::Ns(sums.time_ns),
        scaled(sums.energy_uj, 1e6),
        scaled(sums.power_mw, 1e3),
        scaled(clock.map(|clock| clock.mean), 1.0),
        scaled(clock.map(|clock| clock.min), 1.0),
        scaled(sums.memory_used_max_bytes, 1e9),
        throttled.map_or(Value::Missing, |time| Value::share(time, sums.time_ns)),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::sample;
    use super::*;
    use crate::attribute::CounterRange;
    use crate::units::Ns;

    #[test]
    fn values_that_were_not_measured_are_not_zero() {
        let mut attribution = sample::one_rank();
        assert_eq!(table(&attribution, &attribution.runs[0]), None);
        let sums = CounterSums {
            time_ns: Ns(2_000_000),
            energy_uj: Some(600_000),
            power_mw: Some(300_000),
            sm_clock_mhz: Some(CounterRange {
                min: 1_755,
                mean: 1_900,
                max: 1_980,
            }),
            ..CounterSums::default()
        };
        attribution.ranks[0].devices[0].counters = Some(DeviceCounters {
            samples: 3,
            interval_ns: Ns(100_000_000),
            energy_from: "energy",
            total: sums.clone(),
            phases: BTreeMap::from([("forward", sums)]),
        });
        let table = table(&attribution, &attribution.runs[0]).unwrap();
        assert!(table.caption.contains("every 100 ms"));
        assert_eq!(table.rows.len(), 2);
        let cells = &table.rows[0].cells;
        assert_eq!(cells[0], Value::text("forward"));
        assert_eq!(cells[2], Value::Number(0.6));
        assert_eq!(cells[3], Value::Number(300.0));
        assert_eq!(cells[5], Value::Number(1_755.0));
        assert_eq!(cells[6..], [Value::Missing, Value::Missing]);
    }
}
