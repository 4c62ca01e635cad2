//! Why devices idle.
//!
//! Idle is what the timelines of `attribute` leave: the window without the union of all work of the
//! device, from its first work to its last, or in the window of a step. By stream it is the time between
//! the work of one stream. [Causes](Cause) add up to idle exactly; every table says [of what](Extent).
//!
//! ```text
//! steps      ├──── step 1 ────┤├──── step 2 ────┤
//! device        ├─ a ─┤             ├─ b ─┤
//! capture             ├──── gap ────┤                step 1, ends in step 2
//! by step    ├in┤     ├─ tail ┤├ in ┤     ├tail┤     one in each step
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::frame::{Frame, Unit};
use super::gap::{Cause, Communication, Gap, Gaps};
use super::hta_idle;
use super::lane::{Stream, streams};
use super::occupation::occupations;
use super::options::{By, Definition};
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::{Bucket, DeviceWindows, Piece, Work, innermost, piece_at};
use crate::error::Result;
use crate::units::{Ns, Span};

/// Why devices idle.
pub(super) struct Idle;

impl Subject for Idle {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        if view.options.definition == Definition::Hta {
            return hta_idle::frames(view);
        }
        let seen = Seen::new(view);
        Ok(vec![seen.causes(view), seen.gaps(view), seen.windows()])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// Beyond so many windows of streams, each stream lists only the steps that launched work on it.
const MAX_WINDOWS: usize = 1 << 20;

/// What a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// From the first to the last work of the device.
    Capture,
    /// From the first to the last work of the stream.
    Stream,
    /// A step on the device.
    Step,
    /// From the first to the last of the selected steps.
    Selection,
}

impl Extent {
    fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Stream => "stream",
            Self::Step => "step",
            Self::Selection => "selected steps",
        }
    }

    /// True when the window begins and ends with something else than work.
    fn has_edges(self) -> bool {
        matches!(self, Self::Step | Self::Selection)
    }
}

/// One device or stream in one window.
struct Window<'a> {
    device: i64,
    stream: Option<String>,
    step: Option<&'a str>,
    /// True when the capture cuts the step.
    partial: bool,
    extent: Extent,
    span: Span,
    idle: Ns,
    /// The phase of the work that ends the gaps, where rows are grouped by it.
    by_cause: BTreeMap<(Cause, Option<Bucket>), Sum>,
}

/// Gaps of one cause (and phase) in one window.
type CauseRow<'s, 'a> = (&'s Window<'a>, (Cause, Option<Bucket>), &'s Sum);

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
    /// The steps in whose windows it begins and ends.
    steps: [Option<u32>; 2],
}

/// One device in all its windows.
struct Line<'s, 'w> {
    device: &'s DeviceWindows<'w>,
    /// Which step is where on it.
    pieces: &'s [Piece<u32>],
    stream: Option<String>,
    gaps: &'s Gaps<'w>,
    whole: (Span, Extent),
    steps: &'s [(u32, Span)],
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
        seen.keep_longest(view.options.top);
        seen
    }

    fn keep_longest(&mut self, top: usize) {
        let key = |place: &Place<'_>| (-place.gap.span.len().0, place.gap.span.start, place.device);
        // Gaps that are alike stay in the order of streams.
        self.longest.sort_by_key(key);
        if top > 0 {
            self.longest.truncate(top);
        }
    }

    fn device(&mut self, view: &View<'a>, device: &DeviceWindows<'a>) {
        let selected = view.dissection.options.steps.is_some();
        let work: Vec<&Work> = device.work.iter().collect();
        let pieces = &step_pieces(&device.steps);
        let whole = |own: (Span, Extent)| {
            if selected {
                (device.whole, Extent::Selection)
            } else {
                own
            }
        };
        if !view.options.is_by(By::Stream) {
            let line = Line {
                device,
                pieces,
                stream: None,
                gaps: &Gaps::new(view, &work, None),
                whole: whole((device.whole, Extent::Capture)),
                steps: &device.steps,
            };
            self.line(view, line);
            return;
        }
        let communication = Communication::new(device.work);
        let lanes = streams(view, work);
        let many = lanes.len().saturating_mul(device.steps.len()) > MAX_WINDOWS;
        for Stream { name, lane, work } in lanes {
            let gaps = Gaps::new(view, &work, Some((lane, &communication)));
            let end = work.iter().map(|work| work.span.end).max();
            let own = Span::new(work[0].span.start, end.unwrap_or_default());
            let listed = many.then(|| steps_of(&work, &device.steps));
            let line = Line {
                device,
                pieces,
                stream: name,
                gaps: &gaps,
                whole: whole((own, Extent::Stream)),
                steps: listed.as_deref().unwrap_or(&device.steps),
            };
            self.line(view, line);
        }
    }

    /// Looks at one device or stream.
    fn line(&mut self, view: &View<'a>, line: Line<'_, 'a>) {
        if view.options.is_by(By::Step) {
            for (step, span) in line.steps {
                self.window(view, &line, Some(*step), (*span, Extent::Step));
            }
        } else {
            self.window(view, &line, None, line.whole);
        }
    }

    fn window(
        &mut self,
        view: &View<'a>,
        line: &Line<'_, 'a>,
        step: Option<u32>,
        (span, extent): (Span, Extent),
    ) {
        let by_phase = view.options.is_by(By::Phase);
        let device = line.device.device;
        let mut window = Window {
            device,
            stream: line.stream.clone(),
            step: step.and_then(|step| view.step_name(step)),
            partial: step.is_some_and(|step| view.dissection.partial[step as usize]),
            extent,
            span,
            idle: Ns::ZERO,
            by_cause: BTreeMap::new(),
        };
        for gap in line.gaps.within(span, extent.has_edges()) {
            let idle = gap.span.len();
            let phase = gap.after.map(|work| work.bucket).filter(|_| by_phase);
            let sum = window.by_cause.entry((gap.cause, phase)).or_default();
            sum.gaps += 1;
            sum.idle += idle;
            sum.longest = sum.longest.max(idle);
            window.idle += idle;
            let at = |at| Some(piece_at(line.pieces, at)?.value);
            let [first, last] = [gap.span.start, gap.span.end - Ns(1)];
            self.longest.push(Place {
                stream: line.stream.clone(),
                gap,
                device,
                steps: step.map_or_else(|| [at(first), at(last)], |step| [Some(step); 2]),
            });
        }
        self.windows.push(window);
        let top = view.options.top;
        if top > 0 && self.longest.len() / 4 > top.max(1 << 10) {
            self.keep_longest(top);
        }
    }

    /// One row a window and cause.
    fn causes(&self, view: &View<'_>) -> Frame {
        let windows = self.windows.iter();
        let rows: Vec<CauseRow<'_, 'a>> = windows
            .flat_map(|window| {
                let causes = window.by_cause.iter();
                causes.map(move |(cause, sum)| (window, *cause, sum))
            })
            .collect();
        let mut frame = Frame::new("idle_causes", about_causes(view))
            .id("device", &rows, |row| Some(row.0.device))
            .text("stream", &rows, |row| row.0.stream.clone())
            .text("step", &rows, |row| row.0.step);
        if view.options.is_by(By::Step) {
            frame = frame.flag("partial", &rows, |row| Some(row.0.partial));
        }
        frame = frame.text("cause", &rows, |row| Some(row.1.0.as_str()));
        if view.options.is_by(By::Phase) {
            frame = frame.text("phase", &rows, |row| row.1.1.map(Bucket::as_str));
        }
        frame
            .count("gaps", &rows, |row| Some(row.2.gaps))
            .ns("idle_ns", &rows, |row| Some(row.2.idle))
            .float("share_of_idle", Unit::Ratio, &rows, |row| {
                row.2.idle.ratio(row.0.idle)
            })
            .float("share_of_window", Unit::Ratio, &rows, |row| {
                row.2.idle.ratio(row.0.span.len())
            })
            .ns("longest_ns", &rows, |row| Some(row.2.longest))
            .text("window_kind", &rows, |row| Some(row.0.extent.as_str()))
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
            .text("step", &rows, |row| view.step_name(row.0.steps[0]?))
            .text("last_step", &rows, |row| {
                let [first, last] = row.0.steps;
                view.step_name(last.filter(|_| last != first)?)
            })
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
        .text("window_kind", rows, |row| Some(row.extent.as_str()))
    }
}

/// What the windows of the causes are, in a sentence.
fn about_causes(view: &View<'_>) -> &'static str {
    let by = |by| view.options.is_by(by);
    match (
        by(By::Step),
        view.dissection.options.steps.is_some(),
        by(By::Stream),
    ) {
        (true, _, false) => {
            "Why nothing ran on a device in each step: from the end of the step before on the device (or its own \
             start) to the end of its range or last work."
        }
        (true, _, true) => "Why nothing ran on a stream in each step of its device.",
        (false, true, _) => {
            "Why nothing ran on a device (or stream) from the start of the first selected step to the end of the last."
        }
        (false, false, false) => {
            "Why nothing ran on a device from its first to its last work in the capture."
        }
        (false, false, true) => {
            "Why nothing ran on a stream from its first to its last work in the capture."
        }
    }
}

/// Which step is where on a device. Steps of several processes may lie in one another: the one that begins
/// last counts.
fn step_pieces(steps: &[(u32, Span)]) -> Vec<Piece<u32>> {
    let mut ranges: Vec<(Span, u32)> = steps.iter().map(|(step, span)| (*span, *step)).collect();
    ranges.sort_by_key(|(span, step)| (span.start, Reverse(span.end), *step));
    innermost(&ranges)
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

    /// The picture at the top of this file.
    const STEPS: &str = "
        note   1/1   0 100 ProfilerStep#1
        launch 1/1  10 5 cudaLaunchKernel corr=1
        kernel 0/7  20 40 a corr=1
        note   1/1 100 100 ProfilerStep#2
        launch 1/1 110 5 cudaLaunchKernel corr=2
        kernel 0/7 150 20 b corr=2
    ";

    #[test]
    fn a_gap_over_two_steps_is_one_in_each_by_step() {
        let seen = |by: &[By]| {
            let options = InspectOptions {
                by: by.to_vec(),
                ..InspectOptions::default()
            };
            let frames = frames(&trace_in_lines(STEPS), Topic::Idle, &options);
            let gaps = ["step", "last_step", "gap_ns", "cause"];
            let causes = ["step", "cause", "gaps", "idle_ns", "window_kind"];
            (
                cells(&frames, "gaps", &gaps),
                cells(&frames, "idle_causes", &causes),
            )
        };
        let (gaps, causes) = seen(&[]);
        assert_eq!(gaps, ["ProfilerStep#1 ProfilerStep#2 90000 host_bound"]);
        assert_eq!(causes, ["- host_bound 1 90000 capture"]);
        let (gaps, causes) = seen(&[By::Step]);
        assert_eq!(
            gaps,
            [
                "ProfilerStep#2 - 50000 lead_in",
                "ProfilerStep#1 - 40000 tail",
                "ProfilerStep#2 - 30000 tail",
                "ProfilerStep#1 - 20000 lead_in",
            ]
        );
        assert_eq!(
            causes,
            [
                "ProfilerStep#1 lead_in 1 20000 step",
                "ProfilerStep#1 tail 1 40000 step",
                "ProfilerStep#2 lead_in 1 50000 step",
                "ProfilerStep#2 tail 1 30000 step",
            ]
        );
    }

    #[test]
    fn causes_may_be_told_apart_by_the_phase_of_the_work_that_ends_a_gap() {
        let options = InspectOptions {
            by: vec![By::Phase],
            ..InspectOptions::default()
        };
        let columns = ["cause", "phase", "gaps", "idle_ns"];
        assert_eq!(
            rows(&options, "idle_causes", &columns),
            [
                "host_bound forward 1 100000",
                "launch_latency forward 3 30000",
                "unknown unlinked 1 20000"
            ]
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
