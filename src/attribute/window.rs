//! Devices and host time, whole and cut into steps.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::device::{Activity, tables};
use super::evidence::{Judge, Tally};
use super::host::{Host, Op};
use super::interval::{Piece, overlap, union};
use super::options::AttributeOptions;
use super::phase::{Marker, Phase};
use super::process::Processes;
use super::result::{DeviceResult, DeviceStep, HostPhase, HostResult, HostStep, HostStepPhase};
use super::step::Steps;
use super::work::{NONE, Work};
use crate::model::Trace;
use crate::units::{Ns, Span};

/// Up to so many rows, or as many as there is work, every device lists every step; beyond, only those
/// that have work on it. So memory grows with the events, not with devices times steps.
const MAX_STEP_ROWS: usize = 10_000;

/// The steps of a file with what is known about each.
pub(crate) struct StepWindows<'a> {
    pub(crate) steps: &'a Steps,
    pub(crate) partial: &'a [bool],
    /// By step: asked for.
    pub(crate) selected: &'a [bool],
    pub(crate) options: &'a AttributeOptions,
}

/// Where one device is looked at: as a whole, and step by step.
pub(crate) struct DeviceWindows<'w> {
    /// Index of the device.
    pub(crate) device: i64,
    /// All of its work, in order of start; also what is not selected.
    pub(crate) work: &'w [Work],
    /// From the first to the last work, or the extent of the selected steps.
    pub(crate) whole: Span,
    /// The selected steps with their windows, in order of time.
    pub(crate) steps: Vec<(u32, Span)>,
}

impl<'w> DeviceWindows<'w> {
    fn new(work: &'w [Work], steps: Vec<(u32, Span)>, selected: bool) -> Self {
        let hull = |a: Span, b: Span| Span::new(a.start.min(b.start), a.end.max(b.end));
        let mut steps_only = steps.iter().map(|(_, window)| *window);
        let whole = if selected {
            let first = steps_only.next().unwrap_or(Span::new(Ns::ZERO, Ns::ZERO));
            steps_only.fold(first, hull)
        } else {
            work.iter()
                .fold(work[0].span, |whole, work| hull(whole, work.span))
        };
        Self {
            device: work[0].device,
            work,
            whole,
            steps,
        }
    }
}

impl StepWindows<'_> {
    /// One result a device with work, in order of index; `work` is in order of device and start.
    pub(crate) fn devices(&self, trace: &Trace, work: &[Work]) -> Vec<DeviceResult> {
        let devices = trace.metadata.devices.iter().rev();
        let names: BTreeMap<i64, &str> = devices
            .filter_map(|device| Some((device.id?, device.name.as_deref()?)))
            .collect();
        let base = Ns(trace.metadata.base_time_ns.unwrap_or(0));
        self.on_devices(work)
            .into_par_iter()
            .map(|windows| self.device(&names, &windows, base))
            .collect()
    }

    /// True for work that counts: all, or what the selected steps launched.
    pub(crate) fn wants(&self, work: &Work) -> bool {
        self.options.steps.is_none() || (work.step != NONE && self.selected[work.step as usize])
    }

    /// The windows of every device with work that counts, in order of index.
    pub(crate) fn on_devices<'w>(&self, work: &'w [Work]) -> Vec<DeviceWindows<'w>> {
        let devices: Vec<&[Work]> = work.chunk_by(|a, b| a.device == b.device).collect();
        let wanted: Vec<&[Work]> = devices
            .into_iter()
            .filter(|work| work.iter().any(|work| self.wants(work)))
            .collect();
        let steps = u32::try_from(self.steps.all.len()).expect("fewer than 2^32 steps");
        let most = MAX_STEP_ROWS.max(work.len());
        let every = wanted.len().saturating_mul(self.steps.all.len()) <= most;
        let listed = |work: &[Work]| {
            if every {
                return (0..steps).collect::<Vec<u32>>();
            }
            let mut listed: Vec<u32> = work.iter().map(|work| work.step).collect();
            listed.retain(|step| *step != NONE);
            listed.sort_unstable();
            listed.dedup();
            listed
        };
        let wanted = wanted.into_par_iter();
        wanted
            .map(|work| {
                let listed = listed(work);
                let windows = self.device_windows(work, &listed);
                let steps = listed.into_iter().zip(windows);
                let steps = steps.filter(|(step, _)| self.selected[*step as usize]);
                DeviceWindows::new(work, steps.collect(), self.options.steps.is_some())
            })
            .collect()
    }

    fn device(
        &self,
        names: &BTreeMap<i64, &str>,
        windows: &DeviceWindows<'_>,
        base: Ns,
    ) -> DeviceResult {
        let wanted = windows.work.iter().filter(|work| self.wants(work));
        let listed: Vec<u32> = windows.steps.iter().map(|(step, _)| *step).collect();
        let (totals, step_tables) = tables(wanted, &listed);
        let activity = Activity::new(windows.work);
        let steps = windows.steps.iter().zip(step_tables);
        let steps = steps.map(|((number, window), totals)| {
            let step = &self.steps.all[*number as usize];
            DeviceStep {
                name: step.name.clone(),
                partial: self.partial[*number as usize],
                inferred: step.inferred,
                totals,
                timeline: activity.timeline(*window, base),
            }
        });
        DeviceResult {
            device: windows.device,
            name: names.get(&windows.device).map(|name| (*name).to_owned()),
            totals,
            steps: steps.collect(),
            timeline: activity.timeline(windows.whole, base),
            counters: None,
        }
    }

    /// Where each listed step is on the device: from the end of the step before, or its own start,
    /// to its end or the end of the last work launched in it.
    fn device_windows(&self, work: &[Work], listed: &[u32]) -> Vec<Span> {
        let mut last_end = vec![Ns(i64::MIN); listed.len()];
        for work in work {
            if let Ok(place) = listed.binary_search(&work.step) {
                last_end[place] = work.span.end.max(last_end[place]);
            }
        }
        // Steps follow one another in their own process only.
        let mut before = vec![Ns(i64::MIN); self.steps.processes()];
        listed
            .iter()
            .zip(last_end)
            .map(|(number, last)| {
                let step = &self.steps.all[*number as usize];
                let before = &mut before[step.process];
                let start = step.span.start.max(*before);
                let end = step.span.end.max(last).max(start);
                *before = end;
                Span::new(start, end)
            })
            .collect()
    }

    /// Host time by phase, whole and by step.
    pub(crate) fn host(
        &self,
        host: &Host,
        judge: &Judge<'_>,
        processes: &Processes,
        tally: &mut Tally,
    ) -> HostResult {
        let mut result = HostResult::default();
        let selected = self.selected_spans();
        for (number, thread) in host.threads.iter().enumerate() {
            let phases = &processes.threads[number];
            for piece in &phases.phases {
                let wall = part_inside(&selected, piece.span);
                if wall > Ns::ZERO {
                    let row = result.phases.entry(piece.value.phase()).or_default();
                    *row.wall_ns.get_or_insert(Ns::ZERO) += wall;
                }
            }
            tally.annotations += thread
                .annotations
                .iter()
                .filter(|range| range.marker == Some(Marker::Explicit(Phase::Recompute)))
                .filter(|range| self.is_selected(phases.process, range.span.start))
                .count() as u64;
            let parts: Vec<_> = thread
                .ops
                .par_chunks(OPS_A_TASK)
                .enumerate()
                .map(|(part, ops)| {
                    let first =
                        u32::try_from(part * OPS_A_TASK).expect("fewer than 2^32 operators");
                    let selected = (first..)
                        .zip(ops)
                        .filter(|(_, op)| self.is_selected(phases.process, op.span.start));
                    count_ops(selected, judge, number)
                })
                .collect();
            for (part, self_times) in parts {
                tally.add(part);
                for (phase, self_ns) in Phase::ALL.into_iter().zip(self_times) {
                    if let Some(self_ns) = self_ns {
                        let row: &mut HostPhase = result.phases.entry(phase).or_default();
                        row.self_ns += self_ns;
                    }
                }
            }
        }
        let mut sums: Vec<Option<PhaseSums<'_>>> = Vec::new();
        sums.resize_with(host.threads.len(), || None);
        let steps = self
            .steps
            .all
            .iter()
            .enumerate()
            .filter(|(step, _)| self.selected[*step]);
        result.steps = steps
            .map(|(number, step)| {
                let mut row = HostStep {
                    name: step.name.clone(),
                    wall_ns: step.span.len(),
                    partial: self.partial[number],
                    phases: BTreeMap::new(),
                    unattributed_ns: step.span.len(),
                };
                let sums = sums[step.thread]
                    .get_or_insert_with(|| PhaseSums::new(&processes.threads[step.thread].phases));
                for (phase, wall) in sums.inside(step.span) {
                    row.phases.insert(phase, HostStepPhase { wall_ns: wall });
                    row.unattributed_ns -= wall;
                }
                row
            })
            .collect();
        result
    }

    fn is_selected(&self, process: usize, at: Ns) -> bool {
        self.options.steps.is_none()
            || self
                .steps
                .at(process, at)
                .is_some_and(|step| self.selected[step as usize])
    }

    /// The selected steps as disjoint spans; all time without a selection.
    fn selected_spans(&self) -> Vec<Span> {
        if self.options.steps.is_none() {
            return vec![Span::new(Ns(i64::MIN), Ns(i64::MAX))];
        }
        let steps = self.steps.all.iter().zip(self.selected);
        union(
            steps
                .filter(|(_, wanted)| **wanted)
                .map(|(step, _)| step.span),
        )
    }
}

/// So many operators one task counts.
const OPS_A_TASK: usize = 4096;

/// What numbered operators of a thread say about recompute, and by phase the time in them.
fn count_ops<'o>(
    ops: impl Iterator<Item = (u32, &'o Op)>,
    judge: &Judge<'_>,
    thread: usize,
) -> (Tally, [Option<Ns>; Phase::ALL.len()]) {
    let mut tally = Tally::default();
    let mut self_times = [None; Phase::ALL.len()];
    for (place, op) in ops {
        let verdict = judge.verdict(op.span.start, thread, place);
        tally.count_op(judge, verdict, thread, place);
        *self_times[verdict.placement.phase as usize].get_or_insert(Ns::ZERO) += op.self_ns;
    }
    (tally, self_times)
}

/// Annotated time of one thread by phase, ready for many windows.
struct PhaseSums<'a> {
    pieces: &'a [Piece<Marker>],
    /// By piece: time by phase in the pieces before it.
    before: Vec<[Ns; Phase::ALL.len()]>,
}

impl<'a> PhaseSums<'a> {
    fn new(pieces: &'a [Piece<Marker>]) -> Self {
        let mut sum = [Ns::ZERO; Phase::ALL.len()];
        let mut before = vec![sum];
        for piece in pieces {
            sum[piece.value.phase() as usize] += piece.span.len();
            before.push(sum);
        }
        Self { pieces, before }
    }

    /// The phases inside `window`, with their time.
    fn inside(&self, window: Span) -> impl Iterator<Item = (Phase, Ns)> {
        let from = self
            .pieces
            .partition_point(|piece| piece.span.end <= window.start);
        let to = self
            .pieces
            .partition_point(|piece| piece.span.start < window.end)
            .max(from);
        let mut time = self.before[to];
        for (time, before) in time.iter_mut().zip(self.before[from]) {
            *time -= before;
        }
        // The first and the last piece may reach over the edges.
        let edges = [from, to.wrapping_sub(1)];
        let edges = if from + 1 == to {
            &edges[..1]
        } else {
            &edges[..]
        };
        for edge in edges.iter().filter(|edge| (from..to).contains(*edge)) {
            let piece = &self.pieces[*edge];
            let outside = piece.span.len() - overlap(piece.span, window);
            time[piece.value.phase() as usize] -= outside;
        }
        Phase::ALL
            .into_iter()
            .zip(time)
            .filter(|(_, time)| *time > Ns::ZERO)
    }
}

/// Length of the part of `span` inside disjoint `spans`.
fn part_inside(spans: &[Span], span: Span) -> Ns {
    let from = spans.partition_point(|other| other.end <= span.start);
    let inside = spans[from..]
        .iter()
        .take_while(|other| other.start < span.end);
    inside.map(|other| overlap(span, *other)).sum()
}
