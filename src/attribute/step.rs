//! Training steps: `ProfilerStep#N` ranges, else what lies between optimizer steps.

use super::host::Host;
use super::interval::{Piece, innermost, piece_at};
use super::process::{Process, Processes};
use crate::health::{Health, HealthCode};
use crate::model::{EventFlags, Ident, Trace};
use crate::units::{Ns, Span};

/// One training step of one process.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// `ProfilerStep#7`, or `step#2` when inferred.
    pub(crate) name: String,
    /// The number in the name.
    pub(crate) number: u64,
    /// On the host.
    pub(crate) span: Span,
    /// The host thread that the step's range is on.
    pub(crate) thread: usize,
    /// The process of that thread.
    pub(crate) process: usize,
    pub(crate) inferred: bool,
    /// The capture ended inside the step.
    pub(crate) unfinished: bool,
}

/// The steps of one trace, in order of time.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) all: Vec<Step>,
    /// By process: its steps in order of time.
    of_process: Vec<Vec<u32>>,
    /// By process: which step holds when; of overlapping ones, the one that started last.
    pieces: Vec<Vec<Piece<u32>>>,
    /// The process whose steps count for processes without any.
    default: usize,
}

impl Steps {
    pub(crate) fn new(trace: &Trace, host: &Host, processes: &Processes) -> Self {
        let mut steps = annotated(trace, host, processes);
        if steps.is_empty() {
            steps = inferred(host, processes);
        }
        // Which of several equal ranges stays must not depend on the order of events.
        let ident = |ident: Ident| match ident {
            Ident::Missing => (0, 0, ""),
            Ident::Int(number) => (1, number, ""),
            Ident::Text(text) => (2, 0, trace.strings.get(text)),
        };
        let row = |thread: usize| {
            let own = &host.threads[thread];
            let is_main = processes.processes[processes.threads[thread].process].main == thread;
            (!is_main, ident(own.pid), ident(own.tid))
        };
        steps.sort_by(|a, b| {
            (a.span.start, b.span.end, a.number, &a.name)
                .cmp(&(b.span.start, a.span.end, b.number, &b.name))
                .then_with(|| row(a.thread).cmp(&row(b.thread)))
        });
        steps.dedup_by(|later, kept| {
            let same =
                later.span == kept.span && later.name == kept.name && later.process == kept.process;
            kept.unfinished |= same && later.unfinished;
            same
        });
        let mut of_process = vec![Vec::new(); processes.processes.len()];
        for (number, step) in (0u32..).zip(&steps) {
            of_process[processes.threads[step.thread].process].push(number);
        }
        let pieces = of_process
            .iter()
            .map(|list: &Vec<u32>| {
                let spans: Vec<_> = list
                    .iter()
                    .map(|step| (steps[*step as usize].span, *step))
                    .collect();
                innermost(&spans)
            })
            .collect();
        let default = (0..of_process.len())
            .max_by_key(|process| {
                let first = of_process[*process].first();
                (
                    of_process[*process].len(),
                    std::cmp::Reverse(first.copied()),
                )
            })
            .unwrap_or(0);
        Self {
            all: steps,
            of_process,
            pieces,
            default,
        }
    }

    /// How many processes there are.
    pub(crate) fn processes(&self) -> usize {
        self.of_process.len()
    }

    /// The step that `at` lies in, for a thread of `process`; of overlapping ones, the one that
    /// started last.
    pub(crate) fn at(&self, process: usize, at: Ns) -> Option<u32> {
        let own = self.pieces.get(process).filter(|own| !own.is_empty());
        let pieces = own.or_else(|| self.pieces.get(self.default))?;
        piece_at(pieces, at).map(|piece| piece.value)
    }
}

impl Steps {
    /// Counts steps that the capture cuts and numbers that are missing, among the `selected` ones.
    pub(crate) fn note(&self, partial: &[bool], selected: &[bool], health: &mut Health) {
        let cut = self.all.iter().zip(partial).zip(selected);
        for ((step, _), _) in cut.filter(|((_, partial), selected)| **partial && **selected) {
            health.add(HealthCode::PartialSteps, 1, Some(step.name.clone()));
            health.add_time(HealthCode::PartialSteps, step.span.len(), None);
        }
        for steps in &self.of_process {
            for pair in steps.windows(2) {
                let [before, after] = [pair[0], pair[1]].map(|step| &self.all[step as usize]);
                let wanted = pair.iter().all(|step| selected[*step as usize]);
                let missing = after.number.saturating_sub(before.number).saturating_sub(1);
                if wanted && !after.inferred {
                    let between = format!("between {} and {}", before.name, after.name);
                    health.add(HealthCode::MissingSteps, missing, Some(between));
                }
            }
        }
    }
}

fn annotated(trace: &Trace, host: &Host, processes: &Processes) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, thread) in host.threads.iter().enumerate() {
        steps.extend(thread.annotations.iter().filter_map(|annotation| {
            Some(Step {
                name: trace.name(annotation.event).to_owned(),
                number: annotation.step?,
                span: annotation.span,
                thread: number,
                process: processes.threads[number].process,
                inferred: false,
                unfinished: trace
                    .events
                    .flags(annotation.event)
                    .has(EventFlags::UNFINISHED),
            })
        }));
    }
    steps
}

/// Steps that end where the last optimizer range before the next backward pass ends.
fn inferred(host: &Host, processes: &Processes) -> Vec<Step> {
    let mut begins: Vec<Option<Ns>> = vec![None; processes.processes.len()];
    for (thread, phases) in host.threads.iter().zip(&processes.threads) {
        let op = thread.ops.first().map(|op| op.span.start);
        let annotation = thread
            .annotations
            .first()
            .map(|annotation| annotation.span.start);
        let begin = &mut begins[phases.process];
        *begin = [*begin, op, annotation].into_iter().flatten().min();
    }
    let mut steps = Vec::new();
    for (number, (process, begin)) in processes.processes.iter().zip(begins).enumerate() {
        if let Some(begin) = begin {
            inferred_in(process, number, begin, &mut steps);
        }
    }
    steps
}

fn inferred_in(process: &Process, number_of_process: usize, mut begin: Ns, steps: &mut Vec<Step>) {
    let (optimizers, runs) = process.optimizers_and_runs();
    let mut number = 0;
    for (place, optimizer) in optimizers.iter().enumerate() {
        let next = optimizers.get(place + 1);
        let ends_step = next.is_none_or(|next| {
            runs.is_empty()
                || runs.partition_point(|run| run.start < optimizer.end)
                    != runs.partition_point(|run| run.start < next.start)
        });
        if !ends_step || optimizer.end <= begin {
            continue;
        }
        steps.push(Step {
            name: format!("step#{number}"),
            number,
            span: Span::new(begin, optimizer.end),
            thread: process.main,
            process: number_of_process,
            inferred: true,
            unfinished: false,
        });
        number += 1;
        begin = optimizer.end;
    }
}
