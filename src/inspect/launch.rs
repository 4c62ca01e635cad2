//! Launches: what API calls cost that put work on devices, and how long the work waits after them.
//!
//! ```text
//! host    ├─ cudaLaunchKernel ─┤
//! device                       ·  delay  ├─ kernel ─┤
//! ```
//! The delay is the time from the end of the call to the start of the first work that it launched. Work
//! that starts during the call has none: it is counted as a delay of zero, and apart. Kernels shorter than
//! their call are short: more of them cannot keep a device busy from one thread.
//!
//! Calls longer than 50 µs and delays longer than 100 µs are outliers, and the definition of the delay is
//! that of HTA's `get_cuda_kernel_launch_stats`. Here every call that owns device work counts, of CUDA
//! runtime and driver, HIP and others, and a call that launches a graph counts once.

use std::collections::BTreeMap;

use super::distribution::{Description, Lengths};
use super::frame::{Frame, Unit};
use super::hta_event::{HtaEvents, us};
use super::hta_sequence;
use super::options::{By, Definition};
use super::queue::{self, described};
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::Bucket;
use crate::error::Result;
use crate::units::Ns;

/// A call longer than this is an outlier.
const LONG_CALL: Ns = Ns(50_000);
/// A delay longer than this is an outlier.
const LONG_DELAY: Ns = Ns(100_000);
/// The name of what launched work without a call in the trace: flows and operators.
const NO_CALL: &str = "(no API call)";
/// The name of the row of all that is not named.
const OTHERS: &str = "(others)";

/// What launches cost.
pub(super) struct Launches;

impl Subject for Launches {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        if view.options.definition == Definition::Hta {
            let events = HtaEvents::new(view)?;
            return Ok(vec![
                as_hta(view, &events),
                queue::as_hta(view, &events),
                hta_sequence::frame(view, &events),
            ]);
        }
        let [queue, series] = queue::frames(view);
        Ok(vec![calls(view), queue, series])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// One launch with its work.
#[derive(Clone, Copy)]
struct Owner {
    bucket: Bucket,
    step: u32,
    first: Ns,
    events: u64,
    short: u64,
    /// Of the API call; `None` when none is known.
    call: Option<(Ns, Ns)>,
}

/// Launches that are in one row.
#[derive(Default)]
struct Row<'a> {
    name: &'a str,
    bucket: Option<Bucket>,
    step: Option<&'a str>,
    launches: u64,
    events: u64,
    early: u64,
    short: u64,
    calls: Vec<Ns>,
    delays: Vec<Ns>,
}

/// By launch: its work, among the work that counts.
fn owners(view: &View<'_>) -> Vec<Option<Owner>> {
    let launches = &view.dissection.links.launches;
    let events = &view.trace().events;
    let mut owners: Vec<Option<Owner>> = vec![None; launches.len()];
    for work in view.work() {
        let Some(launch) = launches.get(work.launch as usize) else {
            continue;
        };
        let owner = owners[work.launch as usize].get_or_insert_with(|| {
            let call = view.call(launch);
            let is_call = events.activity(launch.event).is_launch();
            Owner {
                bucket: work.bucket,
                step: work.step,
                first: work.span.start,
                events: 0,
                short: 0,
                call: is_call.then_some((call.end, call.len())),
            }
        });
        owner.first = owner.first.min(work.span.start);
        owner.events += 1;
        owner.short += u64::from(owner.call.is_some_and(|(_, call)| work.span.len() < call));
    }
    owners
}

/// One row a name of a call.
fn calls(view: &View<'_>) -> Frame {
    let launches = &view.dissection.links.launches;
    let owners = owners(view);
    let named = |(number, owner): (usize, &Option<Owner>)| {
        let owner = (*owner)?;
        let name = owner
            .call
            .map_or(NO_CALL, |_| view.trace().name(launches[number].event));
        Some((name, owner))
    };
    let named: Vec<(&str, Owner)> = owners.iter().enumerate().filter_map(named).collect();
    let places = places(view.options.top, &named);
    let mut rows: BTreeMap<(usize, Option<usize>, Option<u32>), Row<'_>> = BTreeMap::new();
    for (name, owner) in named {
        let place = places.get(name).copied().unwrap_or(places.len());
        let bucket = view.options.is_by(By::Phase).then_some(owner.bucket);
        let step = view.options.is_by(By::Step).then_some(owner.step);
        let row = rows
            .entry((place, bucket.map(Bucket::index), step))
            .or_default();
        row.name = if place < places.len() { name } else { OTHERS };
        row.bucket = bucket;
        row.step = step.and_then(|step| view.step_name(step));
        row.count(&owner);
    }
    let rows: Vec<(Row<'_>, Lengths, Lengths)> = rows
        .into_values()
        .map(|mut row| {
            let calls = Lengths::new(std::mem::take(&mut row.calls));
            let delays = Lengths::new(std::mem::take(&mut row.delays));
            (row, calls, delays)
        })
        .collect();
    table(&rows)
}

/// The names with the most time in calls, at most `top` of them (0: all), with their place.
fn places<'a>(top: usize, named: &[(&'a str, Owner)]) -> BTreeMap<&'a str, usize> {
    let mut time: BTreeMap<&str, Ns> = BTreeMap::new();
    for (name, owner) in named {
        *time.entry(name).or_default() += owner.call.map_or(Ns::ZERO, |(_, call)| call);
    }
    let mut order: Vec<(&str, Ns)> = time.into_iter().collect();
    order.sort_by_key(|(_, time)| -time.0);
    if top > 0 {
        order.truncate(top);
    }
    order.into_iter().map(|(name, _)| name).zip(0..).collect()
}

impl Row<'_> {
    fn count(&mut self, owner: &Owner) {
        self.launches += 1;
        self.events += owner.events;
        self.short += owner.short;
        if let Some((end, call)) = owner.call {
            self.calls.push(call);
            self.delays.push((owner.first - end).max(Ns::ZERO));
            self.early += u64::from(owner.first < end);
        }
    }
}

fn table(rows: &[(Row<'_>, Lengths, Lengths)]) -> Frame {
    type R<'a> = (Row<'a>, Lengths, Lengths);
    /// Nothing was measured without a call.
    fn some<T>(row: &R<'_>, of: impl FnOnce() -> T) -> Option<T> {
        row.1.max().map(|_| of())
    }
    Frame::new(
        "launches",
        "API calls that put work on devices, and how long the work waited after them.",
    )
    .text("name", rows, |row| Some(row.0.name))
    .text("phase", rows, |row| Some(row.0.bucket?.as_str()))
    .text("step", rows, |row| row.0.step)
    .count("launches", rows, |row| Some(row.0.launches))
    .count("device_events", rows, |row| Some(row.0.events))
    .ns("call_sum_ns", rows, |row| some(row, || row.1.sum()))
    .ns("call_median_ns", rows, |row| row.1.percentile(50))
    .ns("call_p95_ns", rows, |row| row.1.percentile(95))
    .ns("call_max_ns", rows, |row| row.1.max())
    .ns("delay_sum_ns", rows, |row| some(row, || row.2.sum()))
    .ns("delay_median_ns", rows, |row| row.2.percentile(50))
    .ns("delay_p95_ns", rows, |row| row.2.percentile(95))
    .ns("delay_max_ns", rows, |row| row.2.max())
    .count("started_in_call", rows, |row| some(row, || row.0.early))
    .count("shorter_than_call", rows, |row| some(row, || row.0.short))
    .count("long_calls", rows, |row| {
        some(row, || row.1.above(LONG_CALL))
    })
    .count("long_delays", rows, |row| {
        some(row, || row.2.above(LONG_DELAY))
    })
}

/// Calls that HTA takes for launches here.
const HTA_LAUNCHES: [&str; 4] = [
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
];

/// HTA's `get_cuda_kernel_launch_stats`, summed up: every pair of a host and a device event with the
/// correlation of such a call.
fn as_hta(view: &View<'_>, events: &HtaEvents) -> Frame {
    let text = |name| view.trace().strings.get(name);
    let twins = events.twins();
    let mut columns: [Vec<f64>; 3] = Default::default();
    for event in &events.device {
        let calls = event.correlation.and_then(|number| twins.get(&number));
        let calls = calls.filter(|calls| {
            calls
                .iter()
                .any(|call| HTA_LAUNCHES.contains(&text(call.name)))
        });
        for call in calls.into_iter().flatten() {
            let delay = event.start - call.start - call.dur;
            columns[0].push(us(call.dur));
            columns[1].push(us(event.dur));
            columns[2].push(us(delay.max(Ns::ZERO)));
        }
    }
    let names = ["cpu_duration", "gpu_duration", "launch_delay"];
    let rows: Vec<(&str, Description)> = names
        .into_iter()
        .zip(columns.map(Description::of))
        .collect();
    let frame = Frame::new(
        "launch_stats",
        "What HTA's get_cuda_kernel_launch_stats says, in microseconds.",
    )
    .text("quantity", &rows, |row| Some(row.0))
    .float("sum", Unit::Number, &rows, |row| Some(row.1.sum));
    described(frame, &rows, |row| row.1)
}

#[cfg(test)]
mod tests {
    use crate::attribute::trace_in_lines;
    use crate::inspect::testing::{cells, frames};
    use crate::inspect::{By, Definition, InspectOptions, Topic};

    const LINES: &str = "
        note   1/1   0 50 forward
        launch 1/1   0 10 cudaLaunchKernel corr=1
        kernel 0/7  15 5 a corr=1
        launch 1/1  20 60 cudaLaunchKernel corr=2
        kernel 0/7  70 80 b corr=2
        launch 1/1  90 10 hipGraphLaunch corr=3
        kernel 0/7 250 5 c corr=3
        kernel 0/7 255 20 d corr=3
        kernel 0/7 300 20 e
    ";

    fn rows(options: &InspectOptions, frame: &str, columns: &[&str]) -> Vec<String> {
        let frames = frames(&trace_in_lines(LINES), Topic::Launches, options);
        cells(&frames, frame, columns)
    }

    #[test]
    fn calls_and_delays_are_summed_up_by_name() {
        let columns = [
            "name",
            "launches",
            "device_events",
            "call_sum_ns",
            "call_median_ns",
            "call_max_ns",
            "delay_sum_ns",
            "delay_max_ns",
            "started_in_call",
            "shorter_than_call",
            "long_calls",
            "long_delays",
        ];
        // b starts 10 µs before its call ends; c waits 150 µs after the graph's.
        assert_eq!(
            rows(&InspectOptions::default(), "launches", &columns),
            [
                "cudaLaunchKernel 2 2 70000 10000 60000 5000 5000 1 1 1 0",
                "hipGraphLaunch 1 2 10000 10000 10000 150000 150000 0 1 0 1",
            ]
        );
    }

    #[test]
    fn names_beyond_the_top_are_one_row_and_phases_are_apart() {
        let options = InspectOptions {
            top: 1,
            by: vec![By::Phase],
            ..InspectOptions::default()
        };
        assert_eq!(
            rows(&options, "launches", &["name", "phase", "launches"]),
            ["cudaLaunchKernel forward 2", "(others) other 1",]
        );
    }

    #[test]
    fn a_queue_grows_with_launches_and_shrinks_with_starts() {
        let columns = [
            "stream",
            "launched",
            "max_length",
            "mean_length",
            "time_ns",
            "not_empty_ns",
        ];
        // One for 15 + 50 µs, two from 90 to 250, one to 255: 390 over 255 µs.
        assert_eq!(
            rows(&InspectOptions::default(), "queue", &columns),
            ["7 4 2 1.5294 255000 230000"]
        );
        let series = rows(
            &InspectOptions::default(),
            "queue_series",
            &["start_ns", "max_length"],
        );
        assert_eq!((series.len(), series[0].as_str()), (100, "0 1"));
        assert_eq!(series[40], "102040 2");
    }

    #[test]
    fn hta_does_not_know_graphs_here() {
        let options = InspectOptions {
            definition: Definition::Hta,
            ..InspectOptions::default()
        };
        assert_eq!(
            rows(
                &options,
                "launch_stats",
                &["quantity", "count", "sum", "max"]
            ),
            [
                "cpu_duration 2 70.0000 60.0000",
                "gpu_duration 2 85.0000 80.0000",
                "launch_delay 2 5.0000 5.0000",
            ]
        );
        assert_eq!(
            rows(
                &options,
                "queue_length_summary",
                &["stream", "count", "mean", "max"]
            ),
            ["7 4 0.5000 1.0000"]
        );
    }
}
