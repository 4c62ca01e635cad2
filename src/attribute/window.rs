//! Devices and host time, whole and cut into steps.

use rayon::prelude::*;

use super::device::{Activity, tables};
use super::evidence::{Judge, Tally};
use super::host::Host;
use super::interval::{overlap, union};
use super::options::AttributeOptions;
use super::phase::Phase;
use super::process::Processes;
use super::result::{DeviceResult, DeviceStep, HostPhase, HostResult, HostStep, HostStepPhase};
use super::step::Steps;
use super::work::{NONE, Work};
use crate::model::Trace;
use crate::units::{Ns, Span};

/// The steps of a file with what is known about each.
pub(crate) struct StepWindows<'a> {
    pub(crate) steps: &'a Steps,
    pub(crate) partial: &'a [bool],
    /// By step: asked for.
    pub(crate) selected: &'a [bool],
    pub(crate) options: &'a AttributeOptions,
}

impl StepWindows<'_> {
    /// One result a device with work, in order of index.
    pub(crate) fn devices(
        &self,
        trace: &Trace,
        work: &mut [Work],
        launches: usize,
    ) -> Vec<DeviceResult> {
        work.par_sort_unstable_by_key(|work| {
            (
                work.device,
                work.span.start,
                work.bucket,
                work.class,
                work.span.end,
                work.event,
            )
        });
        let base = Ns(trace.metadata.base_time_ns.unwrap_or(0));
        let devices: Vec<&[Work]> = work.chunk_by(|a, b| a.device == b.device).collect();
        let wanted = devices
            .into_par_iter()
            .filter(|work| work.iter().any(|it| self.wants(it)));
        wanted
            .map(|work| self.device(trace, work, launches, base))
            .collect()
    }

    /// True for work that counts: all, or what the selected steps launched.
    pub(crate) fn wants(&self, work: &Work) -> bool {
        self.options.steps.is_none() || (work.step != NONE && self.selected[work.step as usize])
    }

    fn device(&self, trace: &Trace, work: &[Work], launches: usize, base: Ns) -> DeviceResult {
        let wanted = work.iter().filter(|work| self.wants(work));
        let (totals, step_tables) = tables(wanted, self.steps.all.len(), launches);
        let activity = Activity::new(work);
        let windows = self.device_windows(work);
        let steps: Vec<DeviceStep> = self
            .steps
            .all
            .iter()
            .zip(step_tables)
            .zip(&windows)
            .enumerate()
            .filter(|(number, _)| self.selected[*number])
            .map(|(number, ((step, totals), window))| DeviceStep {
                name: step.name.clone(),
                partial: self.partial[number],
                inferred: step.inferred,
                totals,
                timeline: activity.timeline(*window, base),
            })
            .collect();
        let whole = if self.options.steps.is_some() {
            let selected = windows
                .iter()
                .zip(self.selected)
                .filter(|(_, wanted)| **wanted);
            let mut selected = selected.map(|(window, _)| *window);
            let first = selected.next().unwrap_or(Span::new(Ns::ZERO, Ns::ZERO));
            selected.fold(first, |whole, next| {
                Span::new(whole.start.min(next.start), whole.end.max(next.end))
            })
        } else {
            let end = work
                .iter()
                .map(|work| work.span.end)
                .max()
                .unwrap_or_default();
            Span::new(work[0].span.start, end)
        };
        let device = work[0].device;
        DeviceResult {
            device,
            name: trace
                .metadata
                .devices
                .iter()
                .find(|properties| properties.id == Some(device))
                .and_then(|properties| properties.name.clone()),
            totals,
            timeline: activity.timeline(whole, base),
            steps,
        }
    }

    /// Where each step is on the device: from the end of the step before, or its own start, to
    /// its end or the end of the last work launched in it.
    fn device_windows(&self, work: &[Work]) -> Vec<Span> {
        let mut last_end = vec![Ns(i64::MIN); self.steps.all.len()];
        for work in work.iter().filter(|work| work.step != NONE) {
            let end = &mut last_end[work.step as usize];
            *end = work.span.end.max(*end);
        }
        let mut before = Ns(i64::MIN);
        self.steps
            .all
            .iter()
            .zip(last_end)
            .map(|(step, last)| {
                let start = step.span.start.max(before);
                let end = step.span.end.max(last).max(start);
                before = end;
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
            let verdicts: Vec<_> = thread
                .ops
                .par_iter()
                .enumerate()
                .with_min_len(4096)
                .map(|(place, op)| {
                    let place = u32::try_from(place).expect("fewer than 2^32 operators");
                    judge.verdict(op.span.start, number, place)
                })
                .collect();
            for ((place, op), verdict) in (0u32..).zip(&thread.ops).zip(verdicts) {
                if !self.is_selected(phases.process, op.span.start) {
                    continue;
                }
                tally.count_op(judge, verdict, number, place);
                let row: &mut HostPhase = result.phases.entry(verdict.placement.phase).or_default();
                row.self_ns += op.self_ns;
            }
        }
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
                    phases: std::collections::BTreeMap::new(),
                    unattributed_ns: step.span.len(),
                };
                let pieces = &processes.threads[step.thread].phases;
                let from = pieces.partition_point(|piece| piece.span.end <= step.span.start);
                for piece in &pieces[from..] {
                    if piece.span.start >= step.span.end {
                        break;
                    }
                    let wall = overlap(piece.span, step.span);
                    let phase: Phase = piece.value.phase();
                    let cell: &mut HostStepPhase = row.phases.entry(phase).or_default();
                    cell.wall_ns += wall;
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

/// Length of the part of `span` inside disjoint `spans`.
fn part_inside(spans: &[Span], span: Span) -> Ns {
    let from = spans.partition_point(|other| other.end <= span.start);
    let inside = spans[from..]
        .iter()
        .take_while(|other| other.start < span.end);
    inside.map(|other| overlap(span, *other)).sum()
}
