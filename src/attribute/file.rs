//! The attribution of one trace file.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::collective::Collectives;
use super::content;
use super::evidence::{EvidenceKind, Judge, Tally, Verdict};
use super::host::{Host, Moment};
use super::link::{Link, Links};
use super::names::Names;
use super::options::AttributeOptions;
use super::orphan::Orphans;
use super::phase::Phase;
use super::precision;
use super::process::Processes;
use super::result::{Coverage, DeviceResult, HostResult, Recompute};
use super::step::Steps;
use super::table::{Bucket, OtherKind, Table};
use super::window::StepWindows;
use super::work::{self, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::model::{EventId, StrId, Trace};
use crate::units::Ns;

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct FileAttribution {
    pub(crate) totals: Table,
    pub(crate) devices: Vec<DeviceResult>,
    pub(crate) host: HostResult,
    pub(crate) recompute: Recompute,
    pub(crate) coverage: Coverage,
    pub(crate) health: Health,
    /// Device time by bucket and kernel name.
    pub(crate) kernels: BTreeMap<Bucket, BTreeMap<String, (Ns, u64)>>,
    /// Smallest and largest number of a step in the file.
    pub(crate) steps: Option<(u64, u64)>,
    /// Sum of the durations of all events.
    pub(crate) durations: i128,
    /// Steps are inferred from optimizer ranges.
    pub(crate) steps_inferred: bool,
    /// Kernel launches in the file.
    pub(crate) launches: u64,
    /// By name of the step: launches whose device work is missing. The empty name is outside of all.
    pub(crate) lost_launches: BTreeMap<String, u64>,
    /// Communication, to be compared across ranks.
    pub(crate) collectives: Collectives,
}

/// A host operator with its verdict.
#[derive(Debug, Clone, Copy)]
pub struct HostOperation {
    /// The operator.
    pub event: EventId,
    /// Its phase.
    pub phase: Phase,
    /// Time on its thread that no operator inside it takes.
    pub self_ns: Ns,
    /// Why it is recompute, when it is.
    pub recompute: Option<EvidenceKind>,
}

/// Every host operator of a trace with its phase, in no particular order.
pub fn host_operations(trace: &Trace, options: &AttributeOptions) -> Vec<HostOperation> {
    let names = Names::new(trace, options);
    let host = Host::new(trace, &names);
    let processes = Processes::new(trace, &host, &names, options);
    let judge = Judge::new(&host, &names, &processes, options);
    let mut operations = Vec::new();
    for (number, thread) in host.threads.iter().enumerate() {
        operations.extend((0u32..).zip(&thread.ops).map(|(place, op)| {
            let verdict = judge.verdict(op.span.start, number, place);
            HostOperation {
                event: op.event,
                phase: verdict.placement.phase,
                self_ns: op.self_ns,
                recompute: verdict.evidence,
            }
        }));
    }
    operations
}

/// Attributes the device and host time of one trace.
///
/// # Errors
/// When the durations add up to more than [`MAX_DURATIONS`].
pub(crate) fn attribute_file(trace: &Trace, options: &AttributeOptions) -> Result<FileAttribution> {
    let durations = durations(trace);
    if durations > MAX_DURATIONS {
        return Err(too_long());
    }
    let mut health = trace.health.clone();
    content::check(trace, &mut health);
    precision::check(trace, &mut health);
    let names = Names::new(trace, options);
    let ((host, processes), (mut work, links, found)) = rayon::join(
        || {
            let host = Host::new(trace, &names);
            let processes = Processes::new(trace, &host, &names, options);
            (host, processes)
        },
        || {
            let mut found = Health::default();
            let work = work::collect(trace, &options.communication, &mut found);
            let device_events: Vec<EventId> = work.iter().map(|work| work.event).collect();
            let links = Links::new(trace, &device_events, &mut found);
            (work, links, found)
        },
    );
    health.merge(&found);
    let judge = Judge::new(&host, &names, &processes, options);
    let steps = Steps::new(trace, &host, &processes);
    let verdicts = judge_launches(&host, &judge, &links);
    let orphans = Orphans::new(trace, &names, &host, &processes, &steps, &links);
    let placed = Placed {
        trace,
        names: &names,
        host: &host,
        processes: &processes,
        steps: &steps,
        links: &links,
    };
    placed.place(&verdicts, &mut work);
    let mut file = FileAttribution::default();
    let partial = placed.partial_steps(&orphans, &work);
    let selected: Vec<bool> = steps
        .all
        .iter()
        .map(|step| {
            options
                .steps
                .is_none_or(|range| (range.first..=range.last).contains(&step.number))
        })
        .collect();
    let window = StepWindows {
        steps: &steps,
        partial: &partial,
        selected: &selected,
        options,
    };
    let wanted = || work.iter().filter(|work| window.wants(work));
    file.coverage = placed.coverage(wanted());
    placed.note(wanted(), &mut health);
    let whole = options.steps.is_none();
    let wants = |step: Option<u32>| whole || step.is_some_and(|step| selected[step as usize]);
    orphans.note(trace, wants, &mut health);
    steps.note(&partial, &selected, &mut health);
    file.launches = orphans.launches;
    file.lost_launches = lost_launches(&orphans, &steps);
    file.collectives = Collectives::new(trace, &host, &work);
    let mut tally = Tally::default();
    let mut kernels = FxHashMap::<(Bucket, StrId), (Ns, u64)>::default();
    for work in wanted() {
        if let Some(&verdict) = verdicts.get(work.launch as usize) {
            tally.count_device(verdict, work.span.len());
        }
        let sums = kernels
            .entry((work.bucket, trace.events.name(work.event)))
            .or_default();
        sums.0 += work.span.len();
        sums.1 += 1;
    }
    #[expect(clippy::iter_over_hash_type, reason = "into ordered maps")]
    for ((bucket, name), sums) in kernels {
        let name = trace.strings.get(name).to_owned();
        file.kernels.entry(bucket).or_default().insert(name, sums);
    }
    file.devices = window.devices(trace, &mut work, links.launches.len());
    for device in &file.devices {
        file.totals.add(&device.totals);
    }
    file.host = window.host(&host, &judge, &processes, &mut tally);

    let graphs = links
        .launches
        .iter()
        .any(|launch| names.get(trace.events.name(launch.event)).graph_launch);
    let hidden = host.has_compiled || graphs;
    let observable = match (hidden, judge.can_see(options)) {
        (_, false) => "no",
        (true, true) => "partly",
        (false, true) => "yes",
    };
    if hidden {
        health.add(HealthCode::RecomputeNotObservable, 1, None);
    }
    file.recompute = tally.finish(observable);
    let forward = file.totals.phase(Phase::Forward).sum_ns;
    file.recompute.share_of_forward = file.recompute.device_sum_ns.ratio(forward);
    file.coverage.phases = phase_coverage(&host, &processes);
    if file.coverage.phases == "inferred" && health.get(HealthCode::EmptyCapture) == 0 {
        health.add(HealthCode::PhasesInferred, 1, None);
    }
    if file.coverage.phases == "none" && file.coverage.device_events > 0 {
        health.add(HealthCode::NoOperators, 1, None);
    }
    if trace.events.device_args.is_empty() {
        health.add(HealthCode::NoDeviceWork, 1, None);
    }
    file.steps_inferred = steps.all.iter().any(|step| step.inferred);
    file.health = health;
    file.durations = durations;
    let numbers = || steps.all.iter().map(|step| step.number);
    file.steps = numbers().min().zip(numbers().max());
    Ok(file)
}

/// No sum of times that is printed may leave 64 bits.
pub(crate) const MAX_DURATIONS: i128 = 1 << 62;

pub(crate) fn too_long() -> Error {
    Error::new(
        ErrorKind::NotATrace,
        "the events take more than 146 years together",
    )
}

/// Sum of the durations of all events that count anywhere.
fn durations(trace: &Trace) -> i128 {
    let events = &trace.events;
    let counts = |id: &EventId| events.is_complete(*id);
    events
        .ids()
        .filter(counts)
        .map(|id| i128::from(events.dur(id).unwrap_or_default().0))
        .sum()
}

fn lost_launches(orphans: &Orphans, steps: &Steps) -> BTreeMap<String, u64> {
    let mut lost = BTreeMap::new();
    for (_, step) in &orphans.lost {
        let name = step.map_or("", |step| &steps.all[step as usize].name);
        *lost.entry(name.to_owned()).or_default() += 1;
    }
    lost
}

/// The verdict on each launch, at its own moment on its own thread.
fn judge_launches(host: &Host, judge: &Judge<'_>, links: &Links) -> Vec<Verdict> {
    let mut by_thread: Vec<Vec<Moment>> = vec![Vec::new(); host.threads.len()];
    for (key, launch) in (0u32..).zip(&links.launches) {
        if let Some(thread) = host.thread(launch.track) {
            by_thread[thread].push(Moment { at: launch.at, key });
        }
    }
    let found: Vec<Vec<(u32, Verdict)>> = by_thread
        .into_par_iter()
        .enumerate()
        .map(|(thread, mut moments)| {
            moments.sort_unstable_by_key(|moment| (moment.at, moment.key));
            let innermost = host.threads[thread].innermost_at(&moments);
            moments
                .iter()
                .zip(innermost)
                .map(|(moment, op)| (moment.key, judge.verdict(moment.at, thread, op)))
                .collect()
        })
        .collect();
    let nowhere = Verdict {
        placement: super::process::Placement::of(Phase::Other),
        evidence: None,
        weak: false,
        disagreement: false,
    };
    let mut verdicts = vec![nowhere; links.launches.len()];
    for (key, verdict) in found.into_iter().flatten() {
        verdicts[key as usize] = verdict;
    }
    verdicts
}

/// `annotated` when a process has forward or backward annotations, `inferred` when there is only
/// host work without, `none` without host work.
fn phase_coverage(host: &Host, processes: &Processes) -> &'static str {
    if processes.processes.iter().any(|process| process.annotated) {
        "annotated"
    } else if host
        .threads
        .iter()
        .any(|thread| !thread.ops.is_empty() || !thread.annotations.is_empty())
    {
        "inferred"
    } else {
        "none"
    }
}

/// What device work is placed by.
struct Placed<'a> {
    trace: &'a Trace,
    names: &'a Names,
    host: &'a Host,
    processes: &'a Processes,
    steps: &'a Steps,
    links: &'a Links,
}

impl Placed<'_> {
    /// Gives every piece of work its bucket, launch and step.
    fn place(&self, verdicts: &[Verdict], work: &mut [Work]) {
        let has_steps = !self.steps.all.is_empty();
        for (work, link) in work.iter_mut().zip(&self.links.links) {
            let Some(number) = link.launch() else {
                work.bucket = match link {
                    Link::PreWindow => Bucket::PreWindow,
                    _ => Bucket::Unlinked,
                };
                continue;
            };
            let launch = self.links.launches[number as usize];
            let placement = verdicts[number as usize].placement;
            work.launch = number;
            work.bucket = Bucket::Phase(placement.phase);
            work.other = placement.other;
            let process = self
                .host
                .thread(launch.track)
                .map(|it| self.processes.threads[it].process);
            match process.and_then(|process| self.steps.at(process, launch.at)) {
                Some(step) => work.step = step,
                None if has_steps && work.other == OtherKind::Rest => {
                    work.other = OtherKind::OutsideSteps;
                }
                None => {}
            }
        }
    }

    /// Counts what is odd about the links of work that is in the numbers.
    fn note<'w>(&self, work: impl Iterator<Item = &'w Work>, health: &mut Health) {
        let mut note = |code, work: &Work, worst| {
            self.trace.note(health, code, work.event);
            health.add_time(code, work.span.len(), worst);
        };
        for work in work {
            match work.bucket {
                Bucket::PreWindow => note(HealthCode::PreWindow, work, None),
                Bucket::Unlinked => note(HealthCode::UnlinkedDeviceWork, work, None),
                Bucket::Phase(_) => {}
            }
            let Some(launch) = self.links.launches.get(work.launch as usize) else {
                continue;
            };
            if work.span.start < launch.at {
                let early = launch.at - work.span.start;
                note(HealthCode::WorkBeforeLaunch, work, Some(early));
            }
            if self
                .names
                .get(self.trace.events.name(launch.event))
                .graph_launch
            {
                note(HealthCode::GraphReplay, work, None);
            }
        }
    }

    fn coverage<'w>(&self, work: impl Iterator<Item = &'w Work>) -> Coverage {
        let mut coverage = Coverage::default();
        let by_launch = self.kinds_by_launch();
        for work in work {
            coverage.device_events += 1;
            match work.bucket {
                Bucket::PreWindow => coverage.pre_window += 1,
                Bucket::Unlinked => coverage.unlinked += 1,
                Bucket::Phase(_) => {
                    let linked = &mut coverage.linked_by;
                    match by_launch[work.launch as usize] {
                        Link::Flow(_) => linked.flow += 1,
                        Link::External(_) => linked.external_id += 1,
                        _ => linked.correlation += 1,
                    }
                }
            }
        }
        coverage
    }

    /// By launch: the kind of link that found it.
    fn kinds_by_launch(&self) -> Vec<Link> {
        let mut kinds = vec![Link::None; self.links.launches.len()];
        for link in &self.links.links {
            if let Some(launch) = link.launch() {
                kinds[launch as usize] = *link;
            }
        }
        kinds
    }

    /// Steps that the capture cuts: the first or last, when it was still open at the end, has
    /// kernel launches without device work, or fewer than 80 % of its neighbour's launches.
    fn partial_steps(&self, orphans: &Orphans, work: &[Work]) -> Vec<bool> {
        let count = self.steps.all.len();
        let mut partial: Vec<bool> = self.steps.all.iter().map(|step| step.unfinished).collect();
        if work.is_empty() || count == 0 {
            return partial;
        }
        let mut owning = vec![0_u64; count];
        for launch in &self.links.launches {
            let thread = self.host.thread(launch.track);
            let process = thread.map(|thread| self.processes.threads[thread].process);
            if let Some(step) = process.and_then(|process| self.steps.at(process, launch.at)) {
                owning[step as usize] += 1;
            }
        }
        let orphans = orphans.by_step(count);
        for (edge, neighbour) in [(0, 1), (count - 1, count.wrapping_sub(2))] {
            let few = owning
                .get(neighbour)
                .is_some_and(|full| owning[edge] * 5 < full * 4);
            partial[edge] |= few || orphans[edge] > 0;
        }
        partial
    }
}
