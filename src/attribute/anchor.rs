//! What device work hangs on and where the steps are, for those who cut traces to parts.

use foldhash::HashMap;

use super::host::{Host, span_of};
use super::link::{Link, Links};
use super::names::Names;
use super::options::AttributeOptions;
use super::process::Processes;
use super::step::{Step, Steps};
use super::work;
use crate::health::Health;
use crate::model::{EventId, Ident, Trace, TrackId};
use crate::units::{Ns, Span};

/// The launches and steps of one trace.
pub(crate) struct Anchors {
    /// All device work.
    pub(crate) work: Vec<AnchoredWork>,
    /// All steps, in order of time; none when they have no annotations.
    pub(crate) steps: Vec<AnchoredStep>,
    /// A phase of some process follows from the order of events and steps only.
    pub(crate) inferred: bool,
    found: Steps,
    processes: HashMap<Ident, usize>,
}

/// A piece of device work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnchoredWork {
    pub(crate) event: EventId,
    /// As it is written, without repairs.
    pub(crate) span: Span,
    /// The call, the start of the flow or the operator that launched it.
    pub(crate) launch: Option<EventId>,
    /// It was found by the correlation.
    pub(crate) by_correlation: bool,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnchoredStep {
    /// The number in its name.
    pub(crate) number: u64,
    pub(crate) span: Span,
    /// Its annotation.
    pub(crate) event: EventId,
}

impl Anchors {
    pub(crate) fn new(trace: &Trace) -> Self {
        let options = AttributeOptions::default();
        let names = Names::new(trace, &options);
        let host = Host::new(trace, &names);
        let processes = Processes::new(trace, &host, &names, &options);
        let found = Steps::new(trace, &host, &processes);
        let mut health = Health::default();
        let work = work::collect(trace, &[], &mut health);
        let events: Vec<EventId> = work.iter().map(|work| work.event).collect();
        let links = Links::new(trace, &events, &mut health);
        let work = events.iter().zip(&links.links).map(|(event, link)| {
            let launch = link.launch();
            AnchoredWork {
                event: *event,
                span: span_of(trace, *event),
                launch: launch.map(|launch| links.launches[launch as usize].event),
                by_correlation: matches!(link, Link::Correlation(_)),
            }
        });
        let annotated = |step: &Step| {
            let annotations = &host.threads[step.thread].annotations;
            let from = annotations.partition_point(|it| it.span.start < step.span.start);
            let annotation = annotations[from..]
                .iter()
                .take_while(|it| it.span.start == step.span.start)
                .find(|it| it.span == step.span && it.step == Some(step.number))?;
            Some(AnchoredStep {
                number: step.number,
                span: step.span,
                event: annotation.event,
            })
        };
        Self {
            work: work.collect(),
            steps: found
                .all
                .iter()
                .map(annotated)
                .collect::<Option<_>>()
                .unwrap_or_default(),
            inferred: processes.processes.iter().any(|process| !process.annotated),
            processes: host
                .threads
                .iter()
                .zip(&processes.threads)
                .map(|(thread, phases)| (thread.pid, phases.process))
                .collect(),
            found,
        }
    }

    /// The process of a row; [`NOWHERE`] for one outside all host threads.
    pub(crate) fn process(&self, trace: &Trace, track: TrackId) -> usize {
        let pid = trace.tracks.get(track).pid;
        self.processes.get(&pid).copied().unwrap_or(NOWHERE)
    }

    /// The number of the step that `at` lies in, for `process`.
    pub(crate) fn step_at(&self, process: usize, at: Ns) -> Option<usize> {
        Some(self.found.at(process, at)? as usize)
    }
}

/// No process: the steps count of the one that has the most.
pub(crate) const NOWHERE: usize = usize::MAX;
