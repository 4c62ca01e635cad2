//! Counters that devices since Hopper take themselves (GPM): how busy multiprocessors, tensor cores, memory
//! and the bus were between two looks.

use std::collections::BTreeMap;

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::{Device, GpmSample};

use super::name::now;
use super::nvml::{Sample, explain};
use crate::model::CounterKind;

/// What is asked for, and what it is.
const METRICS: [(GpmMetricId, CounterKind); 5] = [
    (GpmMetricId::SmUtil, CounterKind::SmUtilization),
    (GpmMetricId::AnyTensorUtil, CounterKind::TensorUtilization),
    (GpmMetricId::DramBwUtil, CounterKind::MemoryBandwidth),
    (GpmMetricId::PcieTxPerSec, CounterKind::PcieSent),
    (GpmMetricId::PcieRxPerSec, CounterKind::PcieReceived),
];

/// A look at a device.
struct Look<'a> {
    time: u64,
    sample: GpmSample<'a>,
}

/// The last look at each device.
#[derive(Default)]
pub(super) struct Gpm<'a> {
    /// `None` for a device that has no such counters.
    before: BTreeMap<u32, Option<Look<'a>>>,
    /// What was told to be missing.
    told: Vec<(u32, Option<CounterKind>)>,
}

impl<'a> Gpm<'a> {
    /// Looks at `device`, which is number `index`, and adds what was between this look and the last.
    pub(super) fn look(
        &mut self,
        index: u32,
        device: &Device<'a>,
        values: &mut Vec<Sample>,
        notes: &mut Vec<String>,
    ) {
        // Devices before Hopper have none, and drivers before 520 know of none.
        if !self.before.contains_key(&index) && !device.gpm_support().unwrap_or(false) {
            self.before.insert(index, None);
        }
        if matches!(self.before.get(&index), Some(None)) {
            return;
        }
        let time = now();
        let sample = match device.gpm_sample() {
            Ok(sample) => sample,
            Err(error) => {
                self.tell(index, None, &error, notes);
                return;
            }
        };
        let look = Look { time, sample };
        if let Some(Some(before)) = self.before.get(&index) {
            let ids = METRICS.map(|(id, _)| id);
            match gpm_metrics_get(device.nvml(), &before.sample, &look.sample, &ids) {
                Ok(results) => {
                    // A value is about the time since the last look, and a sample holds from its time on.
                    let time = before.time;
                    for ((_, kind), result) in METRICS.into_iter().zip(results) {
                        match result {
                            Ok(result) => values.extend(whole(result.value).map(|value| Sample {
                                time,
                                device: index,
                                kind,
                                value,
                            })),
                            Err(error) => self.tell(index, Some(kind), &error, notes),
                        }
                    }
                }
                Err(error) => self.tell(index, None, &error, notes),
            }
        }
        self.before.insert(index, Some(look));
    }

    /// Says what cannot be measured, once.
    fn tell(
        &mut self,
        index: u32,
        kind: Option<CounterKind>,
        error: &NvmlError,
        notes: &mut Vec<String>,
    ) {
        if self.told.contains(&(index, kind)) {
            return;
        }
        self.told.push((index, kind));
        let what = kind.map_or("counters of its own (GPM)", |kind| {
            kind.name().trim_start_matches("GPU ")
        });
        notes.push(format!("GPU {index} has no {what}: {}", explain(error)));
    }
}

/// The whole number nearest to a value; `None` when it is no number that can be.
fn whole(value: f64) -> Option<u64> {
    if !(0.0..=1e15).contains(&value) {
        return None;
    }
    // As text: the whole of a float that is small enough is an integer.
    format!("{value:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_and_odd_ones_left_out() {
        for (value, want) in [
            (37.5, Some(38)),
            (0.0, Some(0)),
            (99.4, Some(99)),
            (-1.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(whole(value), want, "{value}");
        }
    }
}
