//! Training steps: `ProfilerStep#N` ranges, else what lies between optimizer steps.

use super::host::Host;
use super::process::Processes;
use crate::model::{EventFlags, Trace};
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
    /// The process whose steps count for processes without any.
    default: usize,
}

impl Steps {
    pub(crate) fn new(trace: &Trace, host: &Host, processes: &Processes) -> Self {
        let mut steps = annotated(trace, host);
        if steps.is_empty() {
            for process in 0..processes.processes.len() {
                steps.extend(inferred(host, processes, process));
            }
        }
        steps.sort_by(|a, b| {
            (a.span, a.number)
                .cmp(&(b.span, b.number))
                .then_with(|| a.name.cmp(&b.name))
        });
        steps.dedup_by(|b, a| a.span == b.span && a.name == b.name);
        let mut of_process = vec![Vec::new(); processes.processes.len()];
        for (number, step) in (0u32..).zip(&steps) {
            of_process[processes.threads[step.thread].process].push(number);
        }
        let default = (0..of_process.len())
            .max_by_key(|process| (of_process[*process].len(), std::cmp::Reverse(*process)))
            .unwrap_or(0);
        Self {
            all: steps,
            of_process,
            default,
        }
    }

    /// The step that `at` lies in, for a thread of `process`.
    pub(crate) fn at(&self, process: usize, at: Ns) -> Option<u32> {
        let own = self.of_process.get(process).filter(|own| !own.is_empty());
        let list = own.or_else(|| self.of_process.get(self.default))?;
        let after = list.partition_point(|step| self.all[*step as usize].span.start <= at);
        let step = *list[..after].last()?;
        self.all[step as usize].span.contains(at).then_some(step)
    }
}

fn annotated(trace: &Trace, host: &Host) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, thread) in host.threads.iter().enumerate() {
        steps.extend(thread.annotations.iter().filter_map(|annotation| {
            Some(Step {
                name: trace.name(annotation.event).to_owned(),
                number: annotation.step?,
                span: annotation.span,
                thread: number,
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
fn inferred(host: &Host, processes: &Processes, number: usize) -> Vec<Step> {
    let process = &processes.processes[number];
    let (optimizers, runs) = process.optimizers_and_runs();
    let begin = host
        .threads
        .iter()
        .zip(&processes.threads)
        .filter(|(_, phases)| phases.process == number)
        .flat_map(|(thread, _)| {
            let op = thread.ops.first().map(|op| op.span.start);
            let annotation = thread
                .annotations
                .first()
                .map(|annotation| annotation.span.start);
            [op, annotation]
        })
        .flatten()
        .min();
    let Some(mut begin) = begin else {
        return Vec::new();
    };
    let mut steps: Vec<Step> = Vec::new();
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
        let number = steps.len() as u64;
        steps.push(Step {
            name: format!("step#{number}"),
            number,
            span: Span::new(begin, optimizer.end),
            thread: process.main,
            inferred: true,
            unfinished: false,
        });
        begin = optimizer.end;
    }
    steps
}
