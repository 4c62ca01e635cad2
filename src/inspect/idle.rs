//! Why devices idle.
//!
//! Idle is what the timelines of `attribute` leave: the window without the union of all work of the
//! device, from its first work to its last, or in the window of a step. By stream it is the time between
//! the work of one stream. [Causes](Cause) add up to idle exactly.

use std::collections::BTreeMap;

use super::communication::union_len;
use super::frame::{Frame, Unit};
use super::gap::{Cause, Communication, Gap, Gaps};
use super::hta::Type;
use super::hta_event::{HtaEvent, HtaEvents, rounded};
use super::lane::{Stream, streams};
use super::occupation::occupations;
use super::options::{By, Definition};
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::{DeviceWindows, Work};
use crate::error::Result;
use crate::model::ActivityType;
use crate::units::{Ns, Span};

/// Why devices idle.
pub(super) struct Idle;

impl Subject for Idle {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        if view.options.definition == Definition::Hta {
            return as_hta(view);
        }
        let seen = Seen::new(view);
        Ok(vec![seen.causes(), seen.gaps(view), seen.windows()])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// Beyond so many windows of streams, each stream lists only the steps that launched work on it.
const MAX_WINDOWS: usize = 1 << 20;

/// One device or stream in one window.
struct Window<'a> {
    device: i64,
    stream: Option<String>,
    step: Option<&'a str>,
    span: Span,
    idle: Ns,
    by_cause: BTreeMap<Cause, Sum>,
}

#[derive(Default)]
struct Sum {
    gaps: u64,
    idle: Ns,
    longest: Ns,
}

/// A gap with where it is.
struct Place<'w> {
    stream: Option<String>,
    gap: Gap<'w>,
    /// Of the device.
    device: i64,
}

struct Seen<'a> {
    windows: Vec<Window<'a>>,
    longest: Vec<Place<'a>>,
}

impl<'a> Seen<'a> {
    fn new(view: &View<'a>) -> Self {
        let mut seen = Self {
            windows: Vec::new(),
            longest: Vec::new(),
        };
        for device in view.dissection.device_windows() {
            seen.device(view, &device);
        }
        let key = |place: &Place<'_>| (-place.gap.span.len().0, place.gap.span.start, place.device);
        // Gaps that are alike stay in the order of streams.
        seen.longest.sort_by_key(key);
        if view.options.top > 0 {
            seen.longest.truncate(view.options.top);
        }
        seen
    }

    fn device(&mut self, view: &View<'a>, device: &DeviceWindows<'a>) {
        let selected = view.dissection.options.steps.is_some();
        let work: Vec<&Work> = device.work.iter().collect();
        if !view.options.is_by(By::Stream) {
            let gaps = Gaps::new(view, &work, None);
            let whole = (device.whole, selected);
            self.unit(view, device, None, &gaps, whole, &device.steps);
            return;
        }
        let communication = Communication::new(device.work);
        let lanes = streams(view, work);
        let many = lanes.len().saturating_mul(device.steps.len()) > MAX_WINDOWS;
        for Stream { name, lane, work } in lanes {
            let gaps = Gaps::new(view, &work, Some((lane, &communication)));
            let whole = if selected {
                device.whole
            } else {
                let end = work.iter().map(|work| work.span.end).max();
                Span::new(work[0].span.start, end.unwrap_or_default())
            };
            let steps = if many {
                steps_of(&work, &device.steps)
            } else {
                device.steps.clone()
            };
            self.unit(view, device, name, &gaps, (whole, selected), &steps);
        }
    }

    /// Looks at one device or stream.
    fn unit(
        &mut self,
        view: &View<'a>,
        device: &DeviceWindows<'a>,
        stream: Option<String>,
        gaps: &Gaps<'a>,
        whole: (Span, bool),
        steps: &[(u32, Span)],
    ) {
        let device = device.device;
        let window = |step: Option<&'a str>, span: Span, edges: bool| {
            let mut window = Window {
                device,
                stream: stream.clone(),
                step,
                span,
                idle: Ns::ZERO,
                by_cause: BTreeMap::new(),
            };
            for gap in gaps.within(span, edges) {
                let idle = gap.span.len();
                let sum = window.by_cause.entry(gap.cause).or_default();
                sum.gaps += 1;
                sum.idle += idle;
                sum.longest = sum.longest.max(idle);
                window.idle += idle;
            }
            window
        };
        let (whole, edges) = whole;
        if view.options.is_by(By::Step) {
            let steps = steps.iter();
            let steps = steps.map(|(step, span)| window(view.step_name(*step), *span, true));
            self.windows.extend(steps);
        } else {
            self.windows.push(window(None, whole, edges));
        }
        let places = gaps.within(whole, edges).map(|gap| Place {
            stream: stream.clone(),
            gap,
            device,
        });
        self.longest.extend(places);
    }

    /// One row a window and cause.
    fn causes(&self) -> Frame {
        let windows = self.windows.iter();
        let rows: Vec<(&Window<'_>, Cause, &Sum)> = windows
            .flat_map(|window| {
                let causes = window.by_cause.iter();
                causes.map(move |(cause, sum)| (window, *cause, sum))
            })
            .collect();
        Frame::new(
            "idle_causes",
            "Why nothing ran on a device (or stream) in a window.",
        )
        .id("device", &rows, |row| Some(row.0.device))
        .text("stream", &rows, |row| row.0.stream.clone())
        .text("step", &rows, |row| row.0.step)
        .text("cause", &rows, |row| Some(row.1.as_str()))
        .count("gaps", &rows, |row| Some(row.2.gaps))
        .ns("idle_ns", &rows, |row| Some(row.2.idle))
        .float("share_of_idle", Unit::Ratio, &rows, |row| {
            row.2.idle.ratio(row.0.idle)
        })
        .float("share_of_window", Unit::Ratio, &rows, |row| {
            row.2.idle.ratio(row.0.span.len())
        })
        .ns("longest_ns", &rows, |row| Some(row.2.longest))
    }

    /// One row one of the longest gaps.
    fn gaps(&self, view: &View<'a>) -> Frame {
        let rows = &self.longest;
        let launching = |place: &Place<'_>| {
            let work = place.gap.after.or(place.gap.before)?;
            Some(view.launcher(work.launch)?.thread)
        };
        let stretches: Vec<_> = rows
            .iter()
            .map(|place| (launching(place), place.gap.span))
            .collect();
        let occupations = occupations(view, &stretches);
        let rows: Vec<_> = rows.iter().zip(occupations).collect();
        let name = |work: Option<&'a Work>| Some(view.trace().name(work?.event));
        Frame::new("gaps", "The longest gaps, and what went on around them.")
            .id("device", &rows, |row| Some(row.0.device))
            .text("stream", &rows, |row| {
                let next = row.0.gap.after.map(|work| work.stream);
                row.0.stream.clone().or_else(|| view.ident(next?))
            })
            .text("step", &rows, |row| view.step_name(row.0.gap.after?.step))
            .at("start_ns", &rows, |row| Some(row.0.gap.span.start))
            .ns("gap_ns", &rows, |row| Some(row.0.gap.span.len()))
            .text("cause", &rows, |row| Some(row.0.gap.cause.as_str()))
            .text("host", &rows, |row| row.1)
            .text("phase", &rows, |row| Some(row.0.gap.after?.bucket.as_str()))
            .text("before", &rows, |row| name(row.0.gap.before))
            .text("after", &rows, |row| name(row.0.gap.after))
    }

    /// One row a window.
    fn windows(&self) -> Frame {
        let rows = &self.windows;
        Frame::new(
            "idle_windows",
            "The windows that were looked at, and how much of each is idle.",
        )
        .id("device", rows, |row| Some(row.device))
        .text("stream", rows, |row| row.stream.clone())
        .text("step", rows, |row| row.step)
        .at("start_ns", rows, |row| Some(row.span.start))
        .ns("window_ns", rows, |row| Some(row.span.len()))
        .ns("busy_ns", rows, |row| Some(row.span.len() - row.idle))
        .ns("idle_ns", rows, |row| Some(row.idle))
        .float("idle_share", Unit::Ratio, rows, |row| {
            row.idle.ratio(row.span.len())
        })
    }
}

/// Those of `steps` that launched some of `work`.
fn steps_of(work: &[&Work], steps: &[(u32, Span)]) -> Vec<(u32, Span)> {
    let mut own: Vec<u32> = work.iter().map(|work| work.step).collect();
    own.sort_unstable();
    own.dedup();
    let place = |step: u32| steps.binary_search_by_key(&step, |(step, _)| *step).ok();
    own.into_iter()
        .filter_map(place)
        .map(|place| steps[place])
        .collect()
}

/// HTA's breakdowns of idle time.
fn as_hta(view: &View<'_>) -> Result<Vec<Frame>> {
    let events = HtaEvents::new(view)?;
    Ok(vec![
        idle_time_breakdown(view, &events),
        temporal_breakdown(view, &events),
    ])
}

/// HTA's `get_temporal_breakdown`: all streams of all devices together.
fn temporal_breakdown(view: &View<'_>, events: &HtaEvents) -> Frame {
    let span = |event: &HtaEvent| Span::new(event.start, event.end());
    let device = &events.device;
    let start = device.iter().map(|event| event.start).min();
    let end = device.iter().map(HtaEvent::end).max();
    let rows: Vec<[Ns; 4]> = start
        .zip(end)
        .map(|(start, end)| {
            // Waiting is busy there, and neither computation nor anything else.
            let computes = |event: &&HtaEvent| {
                event.activity != ActivityType::CudaSync
                    && Type::of(view.trace().strings.get(event.name)) == Type::Computation
            };
            let (_, busy) = union_len(device.iter().map(span));
            let (_, compute) = union_len(device.iter().filter(computes).map(span));
            let kernel = end - start;
            [kernel, kernel - busy, compute, busy - compute]
        })
        .into_iter()
        .collect();
    let percent = |row: &[Ns; 4], part: usize| Some(rounded(row[part].ratio(row[0])? * 100.0));
    Frame::new(
        "temporal_breakdown",
        "What HTA's get_temporal_breakdown says.",
    )
    .ns("kernel_time_ns", &rows, |row| Some(row[0]))
    .ns("idle_time_ns", &rows, |row| Some(row[1]))
    .ns("compute_time_ns", &rows, |row| Some(row[2]))
    .ns("non_compute_time_ns", &rows, |row| Some(row[3]))
    .float("idle_time_pctg", Unit::Number, &rows, |row| percent(row, 1))
    .float("compute_time_pctg", Unit::Number, &rows, |row| {
        percent(row, 2)
    })
    .float("non_compute_time_pctg", Unit::Number, &rows, |row| {
        percent(row, 3)
    })
}

/// HTA's `get_idle_time_breakdown`.
fn idle_time_breakdown(view: &View<'_>, events: &HtaEvents) -> Frame {
    const NAMES: [&str; 3] = ["host_wait", "kernel_wait", "other"];

    let threshold = view.options.idle_threshold;
    let kernels: Vec<&HtaEvent> = events.device.iter().filter(|it| it.is_kernel()).collect();
    let mut rows: Vec<(i64, usize, Ns, Ns)> = Vec::new();
    for stream in kernels.chunk_by(|a, b| a.stream == b.stream) {
        // The first kernel has no gap, and is in the last category nevertheless.
        let mut causes = [None, None, Some(Ns::ZERO)];
        for pair in stream.windows(2) {
            let (end, gap) = (pair[0].end(), pair[1].start - pair[0].end());
            let cause = match pair[1].launched {
                Some(launched) if launched > end => 0,
                _ if gap < threshold => 1,
                _ => 2,
            };
            *causes[cause].get_or_insert(Ns::ZERO) += gap;
        }
        let total: Ns = causes.iter().flatten().copied().sum();
        let number = stream[0].stream.unwrap_or_default();
        for (cause, idle) in causes.into_iter().enumerate() {
            rows.extend(idle.map(|idle| (number, cause, idle, total)));
        }
    }
    Frame::new(
        "idle_time_breakdown",
        "What HTA's get_idle_time_breakdown says.",
    )
    .id("stream", &rows, |row| Some(row.0))
    .text("idle_category", &rows, |row| Some(NAMES[row.1]))
    .ns("idle_time_ns", &rows, |row| Some(row.2))
    .float("idle_time_ratio", Unit::Ratio, &rows, |row| {
        Some(rounded(row.2.ratio(row.3)?))
    })
}

#[cfg(test)]
mod tests {
    use crate::attribute::trace_in_lines;
    use crate::inspect::testing::{cells, frames};
    use crate::inspect::{By, Definition, InspectOptions, Topic};
    use crate::units::Ns;

    /// The picture of `gap.rs`, with a synchronising host before d.
    const PICTURE: &str = "
        note   1/1   0 1000 ProfilerStep#1
        launch 1/1   0 5 cudaLaunchKernel corr=1
        kernel 0/7  10 90 a corr=1
        launch 1/1  20 5 cudaLaunchKernel corr=2
        kernel 0/7 110 90 b corr=2
        launch 1/1  30 5 cudaLaunchKernel corr=5
        op     1/1 180 200 aten::item
        launch 1/1 190 80 cudaStreamSynchronize
        launch 1/1 285 5 cudaLaunchKernel corr=3
        kernel 0/7 300 50 c corr=3
        launch 1/1 300 5 cudaLaunchKernel corr=4
        kernel 0/20 360 240 ncclDevKernel_AllReduce corr=5
        kernel 0/7 610 90 d corr=4
        kernel 0/7 720 80 e
    ";

    fn rows(options: &InspectOptions, frame: &str, columns: &[&str]) -> Vec<String> {
        let frames = frames(&trace_in_lines(PICTURE), Topic::Idle, options);
        cells(&frames, frame, columns)
    }

    const CAUSES: [&str; 5] = ["stream", "step", "cause", "gaps", "idle_ns"];

    #[test]
    fn a_gap_of_the_device_has_the_cause_of_the_work_that_ends_it() {
        let rows = rows(&InspectOptions::default(), "idle_causes", &CAUSES);
        // 200-300 is host bound: c is launched at 285. 100-110, 350-360 and 600-610 are short.
        assert_eq!(
            rows,
            [
                "- - host_bound 1 100000",
                "- - launch_latency 3 30000",
                "- - unknown 1 20000"
            ]
        );
    }

    #[test]
    fn a_stream_waits_for_communication_on_another() {
        let options = InspectOptions {
            by: vec![By::Stream],
            ..InspectOptions::default()
        };
        assert_eq!(
            rows(&options, "idle_causes", &CAUSES),
            [
                "7 - host_bound 1 100000",
                "7 - launch_latency 1 10000",
                "7 - communication_wait 1 260000",
                "7 - unknown 1 20000",
            ]
        );
        let strict = InspectOptions {
            idle_threshold: Ns(9_999),
            ..options
        };
        assert_eq!(
            rows(&strict, "idle_causes", &CAUSES)[1],
            "7 - dependency 2 270000"
        );
    }

    #[test]
    fn a_step_begins_and_ends_idle() {
        let options = InspectOptions {
            by: vec![By::Step],
            ..InspectOptions::default()
        };
        let rows_of_steps = rows(&options, "idle_causes", &CAUSES);
        assert_eq!(rows_of_steps[2], "- ProfilerStep#1 lead_in 1 10000");
        assert_eq!(rows_of_steps[3], "- ProfilerStep#1 tail 1 200000");
        let columns = ["window_ns", "busy_ns", "idle_ns"];
        assert_eq!(
            rows(&options, "idle_windows", &columns),
            ["1000000 640000 360000"]
        );
    }

    #[test]
    fn the_longest_gaps_say_what_the_host_did() {
        let options = InspectOptions {
            top: 2,
            ..InspectOptions::default()
        };
        let columns = ["start_ns", "gap_ns", "before", "after", "host", "phase"];
        assert_eq!(
            rows(&options, "gaps", &columns),
            [
                "200000 100000 b c cudaStreamSynchronize forward",
                "700000 20000 d e - unlinked"
            ]
        );
    }

    #[test]
    fn a_data_loader_counts_rather_than_its_many_small_calls() {
        let lines = "
            launch 1/1   0 5 cudaLaunchKernel corr=1
            kernel 0/7  10 10 a corr=1
            note   1/1  15 80 enumerate(DataLoader)#Loader.__next__
            op     1/1  20 20 aten::stack
            op     1/1  45 20 aten::stack
            op     1/1  70 20 aten::stack
            launch 1/1  96 1 cudaLaunchKernel corr=2
            kernel 0/7 100 10 b corr=2
        ";
        let frames = frames(
            &trace_in_lines(lines),
            Topic::Idle,
            &InspectOptions::default(),
        );
        assert_eq!(
            cells(&frames, "gaps", &["cause", "host"]),
            ["host_bound enumerate(DataLoader)#Loader.__next__"]
        );
    }

    #[test]
    fn hta_sees_streams_one_by_one_and_knows_no_communication() {
        let options = InspectOptions {
            definition: Definition::Hta,
            ..InspectOptions::default()
        };
        let columns = ["stream", "idle_category", "idle_time_ns", "idle_time_ratio"];
        // To HTA the gap before e, whose launch is not there, is like any other.
        assert_eq!(
            rows(&options, "idle_time_breakdown", &columns),
            [
                "7 host_wait 100000 0.2600",
                "7 kernel_wait 30000 0.0800",
                "7 other 260000 0.6700",
                "20 other 0 -"
            ]
        );
    }
}
