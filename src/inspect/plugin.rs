//! Steps as PyTorch's TensorBoard plugin (0.4.3) sees them, for those who compare with its numbers.
//!
//! - Every range called `ProfilerStep#N` is a step, also its mirror on a device. It starts at its start, or
//!   at the end of the step before (the first: at the end of device work that no step launched and that is
//!   over before the first work of the step); and ends at its end, or with the last device work that calls
//!   inside it launched. The last steps are left out when they launched no device work, and so is the one
//!   before them when it launched less than 80 % of what its neighbour did. Without steps, all operators
//!   from the first to the last are one.
//! - Communication is what ten operators called `nccl:…` and `gloo:…` do: their own time and the kernels
//!   with their `External id`. All other kernels are kernels, whatever their name.
//! - Operators are all operators and annotations, those of devices too. Driver calls are nothing.
//! - All devices are looked at at once; GPU utilisation, SM efficiency and occupancy are over all steps.
//!
//! The plugin adds times in floating point; here they are exact.

use foldhash::{HashMap, HashSet};

use super::frame::{Frame, Unit};
use super::line::{Line, within, without};
use super::step_time::{CATEGORIES, Step, table};
use super::utilisation::Utilisation;
use super::view::View;
use crate::attribute::{span_of, union};
use crate::error::Result;
use crate::model::{ActivityType, EventId, Ph, Trace};
use crate::units::{Ns, Span};

/// Operators that communicate, by what follows `nccl:` and `gloo:`.
const COLLECTIVES: [&str; 5] = [
    "broadcast",
    "reduce",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
];

fn communicates(name: &str) -> bool {
    ["nccl:", "gloo:"]
        .iter()
        .filter_map(|library| name.strip_prefix(library))
        .any(|rest| COLLECTIVES.contains(&rest))
}

fn loads_data(name: &str) -> bool {
    (name.starts_with("enumerate(DataLoader)#") && name.ends_with(".__next__"))
        || name.starts_with("enumerate(DataPipe)#")
}

/// The tables.
///
/// # Errors
/// When the content is not what it was when the trace was read.
pub(super) fn frames(view: &View<'_>) -> Result<Vec<Frame>> {
    let events = Events::new(view.trace());
    let steps = events.steps();
    let spans: Vec<Span> = steps.iter().map(|(_, span)| *span).collect();
    let lines = split(&spans, &events.roles);
    let rows: Vec<Step> = steps
        .iter()
        .map(|(name, span)| Step {
            name: Some(name.clone()),
            start: span.start,
            wall: span.len(),
            times: lines.each_ref().map(|line| Some(line.time(*span))),
            ..Step::default()
        })
        .collect();
    let extent = match (spans.first(), spans.last()) {
        (Some(first), Some(last)) => Span::new(first.start, last.end),
        _ => Span::new(Ns::ZERO, Ns::ZERO),
    };
    Ok(vec![table(&rows), metrics(view, extent)?])
}

/// Utilisation of each device over all steps.
fn metrics(view: &View<'_>, extent: Span) -> Result<Frame> {
    let mut rows = Vec::new();
    for device in view.dissection.device_windows() {
        let utilisation = Utilisation::new(view, device.work.iter())?;
        rows.push((device.device, utilisation));
    }
    Ok(Frame::new(
        "gpu_metrics",
        "How well kernels fill each device, over all steps.",
    )
    .id("device", &rows, |row| Some(row.0))
    .float("gpu_utilization", Unit::Ratio, &rows, |row| {
        row.1.busy(extent)
    })
    .float("est_sm_efficiency", Unit::Ratio, &rows, |row| {
        row.1.sm_efficiency(extent)
    })
    .float("est_occupancy", Unit::Ratio, &rows, |row| {
        row.1.occupancy(extent)
    }))
}

/// The categories of all steps: each without those before it, the last what is left of the steps.
fn split(steps: &[Span], roles: &[Vec<Span>; 7]) -> [Line; CATEGORIES.len()] {
    let whole = union(steps.iter().copied());
    let mut left: Option<Vec<Span>> = None;
    let mut parts: Vec<Vec<Span>> = Vec::new();
    for role in roles {
        let role = union(role.iter().copied());
        // The plugin starts anew when nothing is left of the steps.
        let (part, rest) = if let Some(left) = left.filter(|left| !left.is_empty()) {
            let part = within(&left, &role);
            let rest = without(&left, &part);
            (part, rest)
        } else {
            let rest = without(&whole, &role);
            (role, rest)
        };
        parts.push(part);
        left = Some(rest);
    }
    parts.push(left.unwrap_or_default());
    std::array::from_fn(|place| Line::of(&parts[place]))
}

/// What the plugin takes from a trace.
#[derive(Default)]
struct Events {
    /// By category, all but the last.
    roles: [Vec<Span>; 7],
    /// In order of start.
    steps: Vec<(String, Span)>,
    /// From the first to the last operator or step.
    host: Option<Span>,
    /// In order of start.
    calls: Vec<Call>,
    device: Vec<Span>,
}

/// A runtime call with the device work that it launched, by number.
struct Call {
    span: Span,
    work: Vec<usize>,
}

impl Events {
    fn new(trace: &Trace) -> Self {
        let events = &trace.events;
        let counts = |id: &EventId| events.is_complete(*id) && events.ph(*id) == Ph::COMPLETE;
        let mut found = Self::default();
        let mut communication: HashSet<u64> = HashSet::default();
        for id in events.ids().filter(counts) {
            let external = events.op_args(id).map_or(0, |args| args.external);
            if external != 0 && communicates(trace.name(id)) {
                communication.insert(external);
            }
        }
        let mut linked: Vec<(Ns, bool, Span, u64)> = Vec::new();
        for id in events.ids().filter(counts) {
            let span = span_of(trace, id);
            let activity = events.activity(id);
            match activity {
                ActivityType::Kernel | ActivityType::GpuMemcpy | ActivityType::GpuMemset => {
                    let args = events.device_args(id);
                    let external = args.map_or(0, |args| args.external);
                    let role = match activity {
                        ActivityType::GpuMemcpy => 1,
                        ActivityType::GpuMemset => 2,
                        _ if communication.contains(&external) => 3,
                        _ => 0,
                    };
                    found.roles[role].push(span);
                    let correlation = args.map_or(0, |args| args.correlation);
                    linked.push((span.start, true, span, correlation));
                }
                ActivityType::Runtime => {
                    found.roles[4].push(span);
                    let args = events.launch_args(id);
                    let correlation = args.map_or(0, |args| args.correlation);
                    linked.push((span.start, false, span, correlation));
                }
                ActivityType::CpuOp
                | ActivityType::UserAnnotation
                | ActivityType::GpuUserAnnotation => found.host_range(trace, id, span),
                _ => {}
            }
        }
        found.steps.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        linked.sort_unstable();
        found.link(&linked);
        found
    }

    fn host_range(&mut self, trace: &Trace, id: EventId, span: Span) {
        let name = trace.name(id);
        let step = name.strip_prefix("ProfilerStep#");
        if let Some(number) = step {
            self.steps.push((number.to_owned(), span));
        } else if loads_data(name) {
            self.roles[5].push(span);
        } else if communicates(name) {
            self.roles[3].push(span);
        } else {
            self.roles[6].push(span);
        }
        if step.is_some() || trace.events.activity(id) == ActivityType::CpuOp {
            let host = self.host.get_or_insert(span);
            host.start = host.start.min(span.start);
            host.end = host.end.max(span.end);
        }
    }

    /// Gives device work to the last call of its correlation before it, else to the first after it.
    fn link(&mut self, linked: &[(Ns, bool, Span, u64)]) {
        let mut last: HashMap<u64, usize> = HashMap::default();
        let mut waiting: HashMap<u64, Vec<usize>> = HashMap::default();
        for (_, is_device, span, correlation) in linked {
            if *is_device {
                let work = self.device.len();
                self.device.push(*span);
                match last.get(correlation).filter(|_| *correlation != 0) {
                    Some(call) => self.calls[*call].work.push(work),
                    None => waiting.entry(*correlation).or_default().push(work),
                }
                continue;
            }
            let known = *correlation != 0;
            let work = known.then(|| waiting.remove(correlation)).flatten();
            last.insert(*correlation, self.calls.len());
            self.calls.push(Call {
                span: *span,
                work: work.unwrap_or_default(),
            });
        }
    }

    /// The steps as the plugin shows them.
    fn steps(&self) -> Vec<(String, Span)> {
        let mut steps = self.steps.clone();
        if steps.is_empty() {
            steps.extend(self.host.map(|span| ("0".to_owned(), span)));
        }
        let launched = self.launched(&steps);
        if launched.iter().all(Vec::is_empty) {
            return steps;
        }
        let mut owned = vec![false; self.device.len()];
        for work in launched.iter().flatten() {
            owned[*work] = true;
        }
        let mut before = steps[0].1.start;
        if let Some(first) = launched[0]
            .iter()
            .map(|work| self.device[*work].start)
            .min()
        {
            let earlier = self.device.iter().zip(&owned);
            let earlier = earlier.filter(|(span, owned)| !**owned && span.end < first);
            before = earlier.map(|(span, _)| span.end).fold(before, Ns::max);
        }
        for ((_, step), work) in steps.iter_mut().zip(&launched) {
            let last = work.iter().map(|work| self.device[*work].end).max();
            let start = before.max(step.start);
            let end = last.map_or(step.end, |last| last.max(step.end));
            *step = Span::new(start, end.max(start));
            before = step.end;
        }
        steps.truncate(kept(&launched.iter().map(Vec::len).collect::<Vec<_>>()));
        steps
    }

    /// By step: the device work that calls inside it launched. A step is left for the next at the first
    /// call that starts after its end.
    fn launched(&self, steps: &[(String, Span)]) -> Vec<Vec<usize>> {
        let mut launched = vec![Vec::new(); steps.len()];
        let mut place = 0;
        let mut calls = self.calls.iter().peekable();
        while let (Some((_, step)), Some(call)) = (steps.get(place), calls.peek()) {
            let after = call.span.start >= step.end && call.span.end > step.end;
            if call.span.start >= step.start && after {
                place += 1;
                continue;
            }
            if call.span.start >= step.start && call.span.end <= step.end {
                launched[place].extend_from_slice(&call.work);
            }
            calls.next();
        }
        launched
    }
}

/// How many steps stay, by the device work that each launched.
fn kept(launched: &[usize]) -> usize {
    let Some(last) = launched.iter().rposition(|count| *count > 0) else {
        return launched.len();
    };
    let few = last > 0 && launched[last - 1] * 4 > launched[last] * 5;
    if few { last } else { last + 1 }
}

#[cfg(test)]
mod tests {
    use crate::attribute::trace_in_lines;
    use crate::inspect::testing::{cells, frames};
    use crate::inspect::{Definition, InspectOptions, Topic};

    #[test]
    fn a_step_reaches_to_its_last_kernel_and_a_cut_one_is_left_out() {
        let lines = "
            note   1/1   0 100 ProfilerStep#1
            launch 1/1  10 10 cudaLaunchKernel corr=1
            kernel 0/7  30 90 a corr=1
            launch 1/1  50 10 cudaLaunchKernel corr=2
            kernel 0/7 120 20 b corr=2
            note   1/1 100 100 ProfilerStep#2
            launch 1/1 150 5 cudaLaunchKernel corr=3
            memcpy 0/7 160 10 c corr=3
            launch 1/1 170 5 cudaLaunchKernel corr=4
            kernel 0/7 180 40 ncclDevKernel_AllReduce corr=4
            op     1/1 200 5 aten::add
            note   1/1 200 100 ProfilerStep#3
            launch 1/1 250 5 cudaLaunchKernel corr=5
            kernel 0/7 260 10 d corr=5
        ";
        let options = InspectOptions {
            definition: Definition::Tensorboard,
            ..InspectOptions::default()
        };
        let frames = frames(&trace_in_lines(lines), Topic::Steps, &options);
        let columns = [
            "step",
            "start_ns",
            "wall_ns",
            "kernel_ns",
            "memcpy_ns",
            "communication_ns",
            "runtime_ns",
            "cpu_op_ns",
            "other_ns",
        ];
        // The third launched one kernel, fewer than 80 % of two. NCCL kernels are kernels.
        assert_eq!(
            cells(&frames, "steps", &columns),
            [
                "1 0 140000 110000 0 0 10000 0 20000",
                "2 140000 80000 40000 10000 0 10000 0 20000",
            ]
        );
        // 110 + 40 of 220 µs.
        assert_eq!(
            cells(
                &frames,
                "gpu_metrics",
                &["device", "gpu_utilization", "est_occupancy"]
            ),
            ["0 0.6818 -"]
        );
    }
}
