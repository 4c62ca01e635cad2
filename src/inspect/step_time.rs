//! Where the time of a step goes.
//!
//! ```text
//! step           ├──────────────────────────────────────────────┤
//! kernels            ├────┤      ├───────────┤
//! communication                         ├───────────┤
//! operators      ├──────────────┤     ├─┤
//! counts as      ├op ┤kern├ op ──┤ kernel ───┤ comm ┤  other ────┤
//! ```
//! An instant belongs to the first of kernel, memcpy, memset, communication, runtime call, data loading
//! and operator that is active in it, else to `other`; so they add up to the time of the step exactly. The
//! priorities are those of PyTorch's TensorBoard plugin. Steps are those of `attribute`: on each device,
//! from the end of the step before, or its own start, to the end of its range or of its last work.
//!
//! `--definition tensorboard` follows the plugin in the rest, too: see [`plugin`](super::plugin).

use super::frame::{Frame, Unit};
use super::line::{Line, without};
use super::options::Definition;
use super::plugin;
use super::subject::{Inspected, Subject, stacked};
use super::utilisation::Utilisation;
use super::view::View;
use crate::attribute::{
    Activity, Bucket, DeviceClass, DeviceWindows, OtherKind, Timeline, span_of, union,
};
use crate::error::Result;
use crate::units::{Ns, Span};

/// Where the time of steps goes.
pub(super) struct StepTime;

impl Subject for StepTime {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        if view.options.definition == Definition::Tensorboard {
            return plugin::frames(view);
        }
        let (steps, phases) = steps(view)?;
        Ok(vec![table(&steps), by_phase(&phases)])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// What an instant of a step may be spent on, first come first.
pub(super) const CATEGORIES: [&str; 8] = [
    "kernel_ns",
    "memcpy_ns",
    "memset_ns",
    "communication_ns",
    "runtime_ns",
    "data_loading_ns",
    "cpu_op_ns",
    "other_ns",
];

/// How many categories are of devices; the rest are of the host.
const OF_DEVICES: usize = 4;

/// One step on one device.
#[derive(Default)]
pub(super) struct Step {
    pub(super) device: Option<i64>,
    pub(super) name: Option<String>,
    pub(super) start: Ns,
    pub(super) wall: Ns,
    /// By category; `None` for those of devices in a file without device work.
    pub(super) times: [Option<Ns>; 8],
    pub(super) busy: Option<f64>,
    pub(super) sm_efficiency: Option<f64>,
    pub(super) occupancy: Option<f64>,
    pub(super) partial: Option<bool>,
}

struct Phases {
    device: i64,
    step: Option<String>,
    wall: Ns,
    line: Timeline,
}

fn steps(view: &View<'_>) -> Result<(Vec<Step>, Vec<Phases>)> {
    let host = Host::new(view);
    let devices = view.dissection.device_windows();
    let mut steps = Vec::new();
    let mut phases = Vec::new();
    for device in &devices {
        let split = Split::new(&host, device);
        let utilisation = Utilisation::new(view, device.work.iter())?;
        let activity = Activity::new(device.work);
        let mut windows: Vec<(Option<u32>, Span)> = device
            .steps
            .iter()
            .map(|(step, window)| (Some(*step), *window))
            .collect();
        if view.dissection.steps.all.is_empty() {
            windows.push((None, device.whole));
        }
        for (step, window) in windows {
            let name = step
                .and_then(|step| view.step_name(step))
                .map(str::to_owned);
            steps.push(Step {
                device: Some(device.device),
                name: name.clone(),
                start: window.start,
                wall: window.len(),
                times: split.times(&host, window).map(Some),
                busy: utilisation.busy(window),
                sm_efficiency: utilisation.sm_efficiency(window),
                occupancy: utilisation.occupancy(window),
                partial: step.map(|step| view.dissection.partial[step as usize]),
            });
            phases.push(Phases {
                device: device.device,
                step: name,
                wall: window.len(),
                line: activity.timeline(window, Ns::ZERO),
            });
        }
    }
    if devices.is_empty() {
        steps.extend(on_host(view, &host));
    }
    Ok((steps, phases))
}

/// The steps of a file without device work.
fn on_host(view: &View<'_>, host: &Host) -> Vec<Step> {
    let dissection = view.dissection;
    let selected = dissection.steps.all.iter().enumerate();
    let selected = selected.filter(|(number, _)| dissection.selected[*number]);
    selected
        .map(|(number, step)| {
            let mut times = [None; 8];
            let mut rest = step.span.len();
            for (place, line) in host.lines.iter().enumerate() {
                let time = line.time(step.span);
                times[OF_DEVICES + place] = Some(time);
                rest -= time;
            }
            times[CATEGORIES.len() - 1] = Some(rest);
            Step {
                name: Some(step.name.clone()),
                start: step.span.start,
                wall: step.span.len(),
                times,
                partial: Some(dissection.partial[number]),
                ..Step::default()
            }
        })
        .collect()
}

/// Runtime calls, data loading and operators of all threads; each without those before it.
struct Host {
    lines: [Line; 3],
}

impl Host {
    fn new(view: &View<'_>) -> Self {
        let events = &view.trace().events;
        let calls = events
            .ids()
            .filter(|id| events.activity(*id).is_launch() && events.is_complete(*id))
            .map(|id| span_of(view.trace(), id));
        let threads = &view.dissection.host.threads;
        let notes = threads.iter().flat_map(|thread| &thread.annotations);
        let loading = notes.filter(|note| note.other == Some(OtherKind::DataLoading));
        let ops = threads.iter().flat_map(|thread| &thread.ops);
        let calls = union(calls);
        let loading = union(loading.map(|note| note.span));
        let ops = union(ops.map(|op| op.span));
        let before = union(calls.iter().chain(&loading).copied());
        Self {
            lines: [
                Line::of(&calls),
                Line::of(&without(&loading, &calls)),
                Line::of(&without(&ops, &before)),
            ],
        }
    }
}

/// The work of one device; each class without those before it.
struct Split {
    lines: [Line; OF_DEVICES],
    /// All of it.
    busy: Vec<Span>,
    /// By category of the host: its time while the device was busy, in the busy spans before each.
    hidden: [Vec<Ns>; 3],
}

impl Split {
    fn new(host: &Host, device: &DeviceWindows<'_>) -> Self {
        const ORDER: [DeviceClass; OF_DEVICES] = [
            DeviceClass::Compute,
            DeviceClass::Memcpy,
            DeviceClass::Memset,
            DeviceClass::Communication,
        ];
        let mut busy: Vec<Span> = Vec::new();
        let lines = ORDER.map(|class| {
            let work = device.work.iter().filter(|work| work.class == class);
            let spans = union(work.map(|work| work.span));
            let line = Line::of(&without(&spans, &busy));
            busy = union(busy.iter().chain(&spans).copied());
            line
        });
        let hidden = [0, 1, 2].map(|place: usize| {
            let mut sum = Ns::ZERO;
            let mut sums = vec![sum];
            for span in &busy {
                sum += host.lines[place].time(*span);
                sums.push(sum);
            }
            sums
        });
        Self {
            lines,
            busy,
            hidden,
        }
    }

    /// The time of each category in `window`.
    fn times(&self, host: &Host, window: Span) -> [Ns; 8] {
        let mut times = [Ns::ZERO; 8];
        let mut rest = window.len();
        for (place, line) in self.lines.iter().enumerate() {
            times[place] = line.time(window);
        }
        for (place, line) in host.lines.iter().enumerate() {
            times[OF_DEVICES + place] = line.time(window) - self.hidden(host, place, window);
        }
        for time in &times[..CATEGORIES.len() - 1] {
            rest -= *time;
        }
        times[CATEGORIES.len() - 1] = rest;
        times
    }

    /// The time of a category of the host in `window` while the device is busy.
    fn hidden(&self, host: &Host, place: usize, window: Span) -> Ns {
        let line = &host.lines[place];
        let from = self.busy.partition_point(|span| span.end <= window.start);
        let to = self.busy.partition_point(|span| span.start < window.end);
        if from >= to || window.is_empty() {
            return Ns::ZERO;
        }
        let whole = self.hidden[place][to] - self.hidden[place][from];
        // The first and the last may reach over the edges.
        let (first, last) = (self.busy[from], self.busy[to - 1]);
        whole
            - line.time(Span::new(first.start, window.start))
            - line.time(Span::new(window.end, last.end))
    }
}

/// One row a step and device.
pub(super) fn table(rows: &[Step]) -> Frame {
    let mut frame = Frame::new(
        "steps",
        "Where the time of each step goes; it adds up exactly.",
    )
    .id("device", rows, |row| row.device)
    .text("step", rows, |row| row.name.clone())
    .at("start_ns", rows, |row| Some(row.start))
    .ns("wall_ns", rows, |row| Some(row.wall));
    for (place, name) in CATEGORIES.into_iter().enumerate() {
        frame = frame.ns(name, rows, |row| row.times[place]);
    }
    frame
        .float("gpu_utilization", Unit::Ratio, rows, |row| row.busy)
        .float("est_sm_efficiency", Unit::Ratio, rows, |row| {
            row.sm_efficiency
        })
        .float("est_occupancy", Unit::Ratio, rows, |row| row.occupancy)
        .flag("partial", rows, |row| row.partial)
}

/// One row a step, device and bucket: the time that the bucket holds the device.
fn by_phase(steps: &[Phases]) -> Frame {
    let mut rows: Vec<(&Phases, &str, Ns)> = Vec::new();
    for step in steps {
        for bucket in Bucket::ALL {
            let time = step.line.phases[bucket.index()];
            if time > Ns::ZERO {
                rows.push((step, bucket.as_str(), time));
            }
        }
        rows.push((step, "idle", step.line.idle_ns));
    }
    Frame::new(
        "step_phases",
        "Which phase holds the device in each step; it adds up to the time of the step exactly.",
    )
    .id("device", &rows, |row| Some(row.0.device))
    .text("step", &rows, |row| row.0.step.clone())
    .text("phase", &rows, |row| Some(row.1))
    .ns("time_ns", &rows, |row| Some(row.2))
    .float("share", Unit::Ratio, &rows, |row| row.2.ratio(row.0.wall))
}

#[cfg(test)]
mod tests {
    use crate::attribute::trace_in_lines;
    use crate::inspect::testing::{cells, frames};
    use crate::inspect::{InspectOptions, Topic};

    const COLUMNS: [&str; 11] = [
        "step",
        "device",
        "wall_ns",
        "kernel_ns",
        "memcpy_ns",
        "memset_ns",
        "communication_ns",
        "runtime_ns",
        "data_loading_ns",
        "cpu_op_ns",
        "other_ns",
    ];

    fn rows(lines: &str, frame: &str, columns: &[&str]) -> Vec<String> {
        let frames = frames(
            &trace_in_lines(lines),
            Topic::Steps,
            &InspectOptions::default(),
        );
        cells(&frames, frame, columns)
    }

    #[test]
    fn an_instant_belongs_to_the_first_of_what_is_active() {
        let lines = "
            note   1/1   0 100 ProfilerStep#1
            note   1/1   0 12 enumerate(DataLoader)#X.__next__
            op     1/1   5 10 aten::stack
            op     1/1  20 40 aten::mm
            launch 1/1  25 10 cudaLaunchKernel corr=1
            kernel 0/7  30 20 a corr=1
            launch 1/1  52 3 cudaMemcpyAsync corr=2
            memcpy 0/7  58 10 b corr=2
            launch 1/1  70 1 cudaLaunchKernel corr=3
            kernel 0/20 60 60 ncclDevKernel_AllReduce corr=3
        ";
        // Loading 0-12, operator 12-15 and 20-25, call 25-30, kernel 30-50, operator 50-52 and 55-58,
        // call 52-55, copy 58-68, communication 68-120; the step ends with it. Other is 15-20.
        assert_eq!(
            rows(lines, "steps", &COLUMNS),
            ["ProfilerStep#1 0 120000 20000 10000 0 52000 8000 12000 13000 5000"]
        );
        let columns = ["gpu_utilization", "est_sm_efficiency"];
        assert_eq!(rows(lines, "steps", &columns), ["0.6667 -"]);
    }

    #[test]
    fn without_device_work_nothing_is_said_about_devices() {
        let lines = "
            note   1/1   0 100 ProfilerStep#1
            op     1/1  20 40 aten::mm
        ";
        assert_eq!(
            rows(lines, "steps", &COLUMNS),
            ["ProfilerStep#1 - 100000 - - - - 0 0 40000 60000"]
        );
    }

    #[test]
    fn phases_and_idle_time_are_the_step() {
        let lines = "
            note   1/1   0 100 ProfilerStep#1
            note   1/1   0 30 forward
            launch 1/1  20 5 cudaLaunchKernel corr=1
            kernel 0/7  30 20 a corr=1
            launch 1/1  50 5 cudaLaunchKernel corr=2
            kernel 0/7  60 10 b corr=2
        ";
        assert_eq!(
            rows(lines, "step_phases", &["phase", "time_ns", "share"]),
            [
                "forward 20000 0.2000",
                "other 10000 0.1000",
                "idle 70000 0.7000"
            ]
        );
    }
}
