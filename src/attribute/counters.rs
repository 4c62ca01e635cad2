//! What the counters of a device (NVML) say about each phase: energy, power, clocks, memory,
//! throttling.
//!
//! ```text
//! device   ├ forward ┤ idle ├─── backward ───┤
//! samples  •         •           •           •
//! energy   a line from sample to sample, read where phases meet: the parts add up to the whole
//! others   a sample holds until the next: ├─ 1980 MHz ─┤├─ 1755 MHz ─┤
//! ```
//! Phases are those of the device's timeline: each instant counts once. Samples are some 100 ms apart;
//! phases that are much shorter share the mean of what happens between two of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::device::Activity;
use super::dissection::Dissection;
use super::table::Bucket;
use super::window::DeviceWindows;
use crate::error::Result;
use crate::ingest::arguments;
use crate::model::{CounterKind, EventId, Ident, Ph, Trace};
use crate::stats::median_time;
use crate::units::{Ns, Span};

/// What the counters of one device say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceCounters {
    /// How many samples of any kind there are of the device.
    pub samples: u64,
    /// Median time between two samples of one kind.
    pub interval_ns: Ns,
    /// Where energy comes from: `energy` (a counter of the device), `power` (added up from samples)
    /// or `none`.
    pub energy_from: &'static str,
    /// Over the whole window of the device.
    pub total: CounterSums,
    /// By bucket of device time, and `idle`; those that take no time are left out.
    pub phases: BTreeMap<&'static str, CounterSums>,
}

/// What counters say about a part of the time. A value that no sample covers is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CounterSums {
    /// The time itself.
    pub time_ns: Ns,
    /// Energy used, in microjoules.
    pub energy_uj: Option<i64>,
    /// Mean power over the part of the time with samples on both sides, in milliwatts.
    pub power_mw: Option<i64>,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<CounterRange>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<CounterRange>,
    /// Share of the time with a kernel running as NVML counts it, in percent.
    pub utilization_percent: Option<CounterRange>,
    /// Share of the multiprocessors with work, in percent; from here to PCIe on devices since Hopper.
    pub sm_utilization_percent: Option<CounterRange>,
    /// Share of the time in which tensor cores worked, in percent.
    pub tensor_utilization_percent: Option<CounterRange>,
    /// Share of the memory's bandwidth that was used, in percent.
    pub memory_bandwidth_percent: Option<CounterRange>,
    /// Sent over PCIe, in MiB a second.
    pub pcie_sent_mib_s: Option<CounterRange>,
    /// Received over PCIe, in MiB a second.
    pub pcie_received_mib_s: Option<CounterRange>,
    /// Most memory in use, in bytes.
    pub memory_used_max_bytes: Option<i64>,
    /// Highest temperature in degrees Celsius.
    pub temperature_max_c: Option<i64>,
    /// Time with lowered clocks, for any of the reasons below.
    pub throttled_ns: Option<Ns>,
    /// The same by reason; several may hold at once.
    pub throttled_by: BTreeMap<&'static str, Ns>,
}

/// A value that changes over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CounterRange {
    /// Lowest.
    pub min: i64,
    /// Mean over time, rounded down.
    pub mean: i64,
    /// Highest.
    pub max: i64,
}

/// Reasons that lower clocks below what load and settings ask for, by bit. An idle device, settings of
/// applications, displays and synchronised boards are none.
const REASONS: [(u32, &str); 6] = [
    (2, "software_power_cap"),
    (3, "hardware_slowdown"),
    (5, "software_thermal"),
    (6, "hardware_thermal"),
    (7, "hardware_power_brake"),
    (9, "other"),
];

/// Buckets and idle time.
const PARTS: usize = Bucket::ALL.len() + 1;
const IDLE: usize = PARTS - 1;

/// One sample: when and what.
type Sample = (Ns, i64);

/// The samples of every device, by kind and in order of time.
type Samples = BTreeMap<i64, BTreeMap<CounterKind, Vec<Sample>>>;

const DAY: Ns = Ns(24 * 3_600 * 1_000_000_000);

/// The samples in a trace, which was read from `bytes`.
fn read(trace: &Trace, bytes: &[u8]) -> Result<Samples> {
    let events = &trace.events;
    let is_counter = |id: EventId| {
        let category = || trace.strings.get(events.cat(id)) == CounterKind::CATEGORY;
        events.ph(id) == Ph(b'C') && category() && events.ts(id).is_some()
    };
    let wanted: Vec<EventId> = events.ids().filter(|id| is_counter(*id)).collect();
    let mut samples = Samples::new();
    if wanted.is_empty() {
        return Ok(samples);
    }
    let mut units: Vec<&'static str> = CounterKind::ALL.map(CounterKind::unit).into();
    units.sort_unstable();
    units.dedup();
    let values = arguments(bytes, trace, &wanted, &units, |id, args| {
        let kind = CounterKind::from_name(trace.name(id))?;
        let device = match trace.tracks.get(events.track(id)).pid {
            Ident::Int(device) => device,
            Ident::Missing | Ident::Text(_) => return None,
        };
        let value = args
            .int(kind.unit())
            .filter(|value| is_possible(kind, *value))?;
        Some((device, kind, (events.ts(id)?, value)))
    })?;
    for (device, kind, sample) in values.into_iter().flatten() {
        let kinds = samples.entry(device).or_default();
        kinds.entry(kind).or_default().push(sample);
    }
    for kind in samples.values_mut().flat_map(BTreeMap::values_mut) {
        kind.sort_unstable();
        kind.dedup_by_key(|sample| sample.0);
    }
    Ok(samples)
}

/// False for what is no reading: less than nothing, more than 17 GW, more energy than 17 GW give in an hour. So products
/// with times of [`near`] stay far within 128 bits.
fn is_possible(kind: CounterKind, value: i64) -> bool {
    let most = match kind {
        CounterKind::Power => 1 << 44,
        CounterKind::Energy => 1 << 56,
        _ => i64::MAX,
    };
    (0..=most).contains(&value)
}

/// The samples at most a day before or behind the window: others are from a clock that was not set.
fn near(samples: &[Sample], window: Span) -> &[Sample] {
    let first = samples.partition_point(|(at, _)| *at < window.start - DAY);
    let end = samples.partition_point(|(at, _)| *at <= window.end + DAY);
    &samples[first..end.max(first)]
}

/// The counters of every device with work, by its index.
pub(crate) fn counters(
    dissection: &Dissection<'_>,
    bytes: &[u8],
) -> Result<BTreeMap<i64, DeviceCounters>> {
    let samples = read(dissection.trace, bytes)?;
    if samples.is_empty() {
        return Ok(BTreeMap::new());
    }
    let windows = dissection.device_windows();
    let of = |windows: &DeviceWindows<'_>| {
        let samples = samples.get(&windows.device)?;
        let parts = parts(&Activity::new(windows.work), windows.whole);
        Some((windows.device, summarize(samples, &parts)))
    };
    Ok(windows.iter().filter_map(of).collect())
}

/// The window, cut where the holder of the device changes.
fn parts(activity: &Activity, window: Span) -> Vec<(Span, usize)> {
    let mut parts = Vec::new();
    let mut now = window.start;
    for stretch in activity.stretches() {
        let span = Span::new(
            stretch.span.start.max(now),
            stretch.span.end.min(window.end),
        );
        if span.is_empty() {
            continue;
        }
        if now < span.start {
            parts.push((Span::new(now, span.start), IDLE));
        }
        parts.push((span, stretch.bucket.index()));
        now = span.end;
    }
    if now < window.end {
        parts.push((Span::new(now, window.end), IDLE));
    }
    parts
}

fn summarize(
    samples: &BTreeMap<CounterKind, Vec<Sample>>,
    parts: &[(Span, usize)],
) -> DeviceCounters {
    // The last one is the whole window.
    let mut sums = vec![CounterSums::default(); PARTS + 1];
    for (span, part) in parts {
        sums[*part].time_ns += span.len();
        sums[PARTS].time_ns += span.len();
    }
    let window = parts.first().zip(parts.last());
    let of = |kind: CounterKind| -> &[Sample] {
        let samples = samples.get(&kind).zip(window);
        samples.map_or(&[], |(samples, ((first, _), (last, _)))| {
            near(samples, Span::new(first.start, last.end))
        })
    };

    let (energy_from, curve) = energy_curve(of(CounterKind::Energy), of(CounterKind::Power));
    for (place, (energy, covered)) in energy(&curve, parts).into_iter().enumerate() {
        if covered > 0 {
            sums[place].energy_uj = Some(narrow(energy));
            sums[place].power_mw = Some(narrow(energy * 1_000_000 / covered));
        }
    }
    let means = [
        CounterKind::SmClock,
        CounterKind::MemoryClock,
        CounterKind::Utilization,
        CounterKind::MemoryUsed,
        CounterKind::Temperature,
        CounterKind::SmUtilization,
        CounterKind::TensorUtilization,
        CounterKind::MemoryBandwidth,
        CounterKind::PcieSent,
        CounterKind::PcieReceived,
    ];
    for kind in means {
        let mut held = vec![Held::default(); PARTS + 1];
        hold(of(kind), parts, |part, value, time| {
            held[part].add(value, time);
            held[PARTS].add(value, time);
        });
        for (sums, held) in sums.iter_mut().zip(held) {
            let range = held.range();
            match kind {
                CounterKind::SmClock => sums.sm_clock_mhz = range,
                CounterKind::MemoryClock => sums.memory_clock_mhz = range,
                CounterKind::Utilization => sums.utilization_percent = range,
                CounterKind::SmUtilization => sums.sm_utilization_percent = range,
                CounterKind::TensorUtilization => sums.tensor_utilization_percent = range,
                CounterKind::MemoryBandwidth => sums.memory_bandwidth_percent = range,
                CounterKind::PcieSent => sums.pcie_sent_mib_s = range,
                CounterKind::PcieReceived => sums.pcie_received_mib_s = range,
                CounterKind::MemoryUsed => {
                    sums.memory_used_max_bytes = range.map(|range| range.max);
                }
                _ => sums.temperature_max_c = range.map(|range| range.max),
            }
        }
    }
    let lowering: i64 = REASONS.iter().map(|(bit, _)| 1 << bit).sum();
    hold(
        of(CounterKind::ThrottleReasons),
        parts,
        |part, bits, time| {
            for place in [part, PARTS] {
                let sums = &mut sums[place];
                let throttled = sums.throttled_ns.get_or_insert(Ns::ZERO);
                if bits & lowering != 0 {
                    *throttled += time;
                }
                for (bit, reason) in REASONS {
                    if bits >> bit & 1 == 1 {
                        *sums.throttled_by.entry(reason).or_default() += time;
                    }
                }
            }
        },
    );

    let total = sums.pop().unwrap_or_default();
    let names = Bucket::ALL.iter().map(|bucket| bucket.as_str());
    let names = names.chain(std::iter::once("idle"));
    DeviceCounters {
        samples: samples.values().map(|samples| samples.len() as u64).sum(),
        interval_ns: interval(samples),
        energy_from,
        total,
        phases: names
            .zip(sums)
            .filter(|(_, sums)| sums.time_ns > Ns::ZERO)
            .collect(),
    }
}

fn narrow(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The median time between two samples of the kind that has the most.
fn interval(samples: &BTreeMap<CounterKind, Vec<Sample>>) -> Ns {
    let most = samples.values().max_by_key(|samples| samples.len());
    let mut apart: Vec<Ns> = most
        .into_iter()
        .flat_map(|samples| samples.windows(2).map(|pair| pair[1].0 - pair[0].0))
        .collect();
    apart.sort_unstable();
    median_time(&apart).unwrap_or(Ns::ZERO)
}

/// Energy used up to each sample in microjoules, and where it is from.
fn energy_curve(energy: &[Sample], power: &[Sample]) -> (&'static str, Vec<(Ns, i128)>) {
    // A counter that was reset would give energy back.
    let rises = energy.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    if energy.len() > 1 && rises {
        let curve = energy
            .iter()
            .map(|(at, used)| (*at, i128::from(*used) * 1_000));
        return ("energy", curve.collect());
    }
    if power.len() > 1 {
        // Milliwatts times nanoseconds are picojoules.
        let mut used = 0_i128;
        let mut curve = vec![(power[0].0, 0)];
        for pair in power.windows(2) {
            let [(before, low), (at, high)] = [pair[0], pair[1]];
            used += (i128::from(low) + i128::from(high)) * i128::from((at - before).0) / 2;
            curve.push((at, used / 1_000_000));
        }
        return ("power", curve);
    }
    ("none", Vec::new())
}

/// By part, and of the whole: energy in microjoules, and how much of the time the curve covers. The
/// parts add up to the whole.
fn energy(curve: &[(Ns, i128)], parts: &[(Span, usize)]) -> Vec<(i128, i128)> {
    let mut sums = vec![(0, 0); PARTS + 1];
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else {
        return sums;
    };
    let mut place = 0;
    let mut used_at = |at: Ns| {
        while place + 2 < curve.len() && curve[place + 1].0 <= at {
            place += 1;
        }
        let [(start, low), (end, high)] = [curve[place], curve[place + 1]];
        low + (high - low) * i128::from((at - start).0) / i128::from((end - start).0.max(1))
    };
    for (span, part) in parts {
        let span = Span::new(span.start.max(first.0), span.end.min(last.0));
        if span.is_empty() {
            continue;
        }
        let before = used_at(span.start);
        let used = used_at(span.end) - before;
        for place in [*part, PARTS] {
            sums[place].0 += used;
            sums[place].1 += i128::from(span.len().0);
        }
    }
    sums
}

/// A value over time.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    range: Option<(i64, i64)>,
    sum: i128,
    time: i128,
}

impl Held {
    fn add(&mut self, value: i64, time: Ns) {
        let (min, max) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), max.max(value)));
        self.sum += i128::from(value) * i128::from(time.0);
        self.time += i128::from(time.0);
    }

    fn range(self) -> Option<CounterRange> {
        let (min, max) = self.range?;
        let mean = narrow(self.sum / self.time.max(1));
        Some(CounterRange { min, mean, max })
    }
}

/// Tells `see` for how long each value holds in each part: a sample holds until the next, and the last
/// as long as the one before it.
fn hold(samples: &[Sample], parts: &[(Span, usize)], mut see: impl FnMut(usize, i64, Ns)) {
    let ends = samples.iter().skip(1).map(|sample| sample.0);
    let last = match samples {
        [] => return,
        [.., before, last] => last.0 + (last.0 - before.0),
        [only] => only.0 + Ns(1),
    };
    let holds: Vec<(Span, i64)> = samples
        .iter()
        .zip(ends.chain(std::iter::once(last)))
        .map(|((start, value), end)| (Span::new(*start, end), *value))
        .collect();
    let mut place = 0;
    for (span, part) in parts {
        while place < holds.len() && holds[place].0.end <= span.start {
            place += 1;
        }
        for (held, value) in &holds[place..] {
            if held.start >= span.end {
                break;
            }
            let time = super::interval::overlap(*held, *span);
            if time > Ns::ZERO {
                see(*part, *value, time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    fn samples(kinds: &[(CounterKind, &[(i64, i64)])]) -> BTreeMap<CounterKind, Vec<Sample>> {
        let mut all = BTreeMap::new();
        for (kind, samples) in kinds {
            let samples = samples.iter().map(|(at, value)| (Ns(*at), *value));
            all.insert(*kind, samples.collect());
        }
        all
    }

    /// Forward 0 to 400 ns, idle to 500, backward to 1,000.
    const PARTS_OF_TEST: [(i64, i64, usize); 3] = [(0, 400, 0), (400, 500, IDLE), (500, 1_000, 1)];

    fn parts_of_test() -> Vec<(Span, usize)> {
        PARTS_OF_TEST
            .map(|(start, end, part)| (span(start, end), part))
            .into()
    }

    #[test]
    fn energy_is_read_off_the_line_between_samples_and_adds_up() {
        // 1 mJ = 1,000 uJ in the first 500 ns, 3 mJ in the rest.
        let samples = samples(&[(CounterKind::Energy, &[(0, 7), (500, 8), (1_000, 11)])]);
        let counters = summarize(&samples, &parts_of_test());
        let energy = |phase: &str| counters.phases[phase].energy_uj;
        assert_eq!(energy("forward"), Some(800));
        assert_eq!(energy("idle"), Some(200));
        assert_eq!(energy("backward"), Some(3_000));
        assert_eq!(counters.total.energy_uj, Some(4_000));
        assert_eq!(counters.energy_from, "energy");
        assert_eq!(counters.interval_ns, Ns(500));
        // 3,000 uJ in 500 ns are 6 kW.
        assert_eq!(counters.phases["backward"].power_mw, Some(6_000_000));
        assert_eq!(counters.phases["backward"].sm_clock_mhz, None);
        assert_eq!(counters.phases["backward"].throttled_ns, None);
    }

    #[test]
    fn samples_are_as_far_apart_as_the_mean_of_the_two_in_the_middle() {
        let samples = samples(&[(CounterKind::Energy, &[(0, 0), (100, 1), (400, 2)])]);
        assert_eq!(summarize(&samples, &parts_of_test()).interval_ns, Ns(200));
    }

    #[test]
    fn the_parts_add_up_wherever_they_are_cut() {
        let samples = samples(&[(
            CounterKind::Energy,
            &[(-50, 0), (333, 1), (700, 2), (990, 9)],
        )]);
        let mut parts = Vec::new();
        let mut now = 0;
        for part in 0..300_usize {
            let next = now + 1 + i64::try_from(part % 7).unwrap();
            parts.push((span(now, next), part % PARTS));
            now = next;
        }
        let counters = summarize(&samples, &parts);
        let sum: i64 = counters.phases.values().filter_map(|it| it.energy_uj).sum();
        assert_eq!(Some(sum), counters.total.energy_uj);
        // The last sample is before the end: what is behind it is not covered.
        assert_eq!(counters.total.time_ns, Ns(now));
    }

    #[test]
    fn without_an_energy_counter_power_is_added_up() {
        let samples = samples(&[(
            CounterKind::Power,
            &[(0, 400_000), (500, 400_000), (1_000, 400_000)],
        )]);
        let counters = summarize(&samples, &parts_of_test());
        assert_eq!(counters.energy_from, "power");
        assert_eq!(counters.total.energy_uj, Some(400));
        assert_eq!(counters.phases["forward"].energy_uj, Some(160));
        assert_eq!(counters.phases["forward"].power_mw, Some(400_000));
    }

    #[test]
    fn samples_hold_until_the_next() {
        let samples = samples(&[
            (
                CounterKind::SmClock,
                &[(0, 2_000), (200, 1_000), (600, 1_500)],
            ),
            (CounterKind::MemoryUsed, &[(0, 5), (450, 9), (900, 7)]),
            (
                CounterKind::ThrottleReasons,
                &[(0, 1), (300, 0b100), (700, 0b10_0100)],
            ),
        ]);
        let counters = summarize(&samples, &parts_of_test());
        let forward = &counters.phases["forward"];
        let (min, mean, max) = (1_000, 1_500, 2_000);
        assert_eq!(forward.sm_clock_mhz, Some(CounterRange { min, mean, max }));
        assert_eq!(forward.memory_used_max_bytes, Some(5));
        assert_eq!(counters.phases["idle"].memory_used_max_bytes, Some(9));
        // An idle device is not throttled.
        assert_eq!(forward.throttled_ns, Some(Ns(100)));
        let backward = &counters.phases["backward"];
        assert_eq!(backward.throttled_ns, Some(Ns(500)));
        assert_eq!(backward.throttled_by["software_power_cap"], Ns(500));
        assert_eq!(backward.throttled_by["software_thermal"], Ns(300));
        assert_eq!(counters.total.throttled_ns, Some(Ns(700)));
    }

    #[test]
    fn one_sample_says_nothing_about_energy() {
        let samples = samples(&[
            (CounterKind::Energy, &[(100, 7)]),
            (CounterKind::Power, &[(100, 7)]),
        ]);
        let counters = summarize(&samples, &parts_of_test());
        assert_eq!(counters.energy_from, "none");
        assert_eq!(counters.total.energy_uj, None);
        assert_eq!(counters.samples, 2);
    }

    /// A sample of a clock that was not set yet would spread over years what was used in a moment.
    #[test]
    fn samples_days_away_are_none_and_no_number_overflows() {
        let far = 1_700_000_000_000_000_000;
        let most = 1 << 50;
        let with_far = samples(&[(
            CounterKind::Energy,
            &[(-far, 0), (0, 1), (1_000, most), (far, most)],
        )]);
        let without = samples(&[(CounterKind::Energy, &[(0, 1), (1_000, most)])]);
        let energy = |samples| summarize(samples, &parts_of_test()).total.energy_uj;
        assert_eq!(energy(&with_far), Some((most - 1) * 1_000));
        assert_eq!(energy(&with_far), energy(&without));
        let power = samples(&[(CounterKind::Power, &[(-DAY.0, 1 << 44), (DAY.0, 1 << 44)])]);
        // 2^44 mW for 1 us.
        assert_eq!(energy(&power), Some((1 << 44) / 1_000));
        for (kind, value, possible) in [
            (CounterKind::Power, 1 << 44, true),
            (CounterKind::Power, (1 << 44) + 1, false),
            (CounterKind::Energy, i64::MAX, false),
            (CounterKind::MemoryUsed, i64::MAX, true),
            (CounterKind::MemoryUsed, -1, false),
        ] {
            assert_eq!(is_possible(kind, value), possible, "{kind:?} {value}");
        }
    }
}
