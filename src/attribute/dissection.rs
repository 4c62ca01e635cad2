//! One trace taken apart: what every table is computed from.
//!
//! ```text
//! trace ─┬─ host threads ─ processes ─┬─ judge ─ verdicts ─┬─ device work with bucket and step
//!        └─ device work ─ links ──────┴─ steps ────────────┘
//! ```

use rayon::prelude::*;

use super::content;
use super::device::mark_first_of_launch;
use super::evidence::{Judge, Verdict};
use super::host::{Host, Moment};
use super::link::{Link, Links};
use super::names::Names;
use super::options::AttributeOptions;
use super::orphan::Orphans;
use super::phase::Phase;
use super::precision;
use super::process::Processes;
use super::result::Coverage;
use super::step::Steps;
use super::table::{Bucket, OtherKind};
use super::window::{DeviceWindows, StepWindows};
use super::work::{self, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::model::{EventId, Trace};

/// One trace, taken apart.
pub(crate) struct Dissection<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) options: &'a AttributeOptions,
    pub(crate) names: &'a Names,
    pub(crate) host: &'a Host,
    pub(crate) processes: &'a Processes,
    pub(crate) judge: &'a Judge<'a>,
    pub(crate) steps: &'a Steps,
    pub(crate) links: &'a Links,
    /// By launch.
    pub(crate) verdicts: Vec<Verdict>,
    /// By device and start.
    pub(crate) work: Vec<Work>,
    pub(crate) orphans: Orphans,
    /// By step: the capture cuts it.
    pub(crate) partial: Vec<bool>,
    /// By step: asked for.
    pub(crate) selected: Vec<bool>,
    /// What was wrong or unusual so far.
    pub(crate) health: Health,
    /// Sum of the durations of all events.
    pub(crate) durations: i128,
}

/// What `look` sees in the dissection of `trace`.
///
/// # Errors
/// When the durations add up to more than [`MAX_DURATIONS`].
pub(crate) fn dissect<T>(
    trace: &Trace,
    options: &AttributeOptions,
    look: impl FnOnce(&Dissection<'_>) -> T,
) -> Result<T> {
    let names = Names::new(trace, options);
    let ((host, processes), ((mut work, links, found), (durations, mut health))) = rayon::join(
        || {
            let host = Host::new(trace, &names);
            let processes = Processes::new(trace, &host, &names, options);
            (host, processes)
        },
        || {
            let device = || {
                let mut found = Health::default();
                let work = work::collect(trace, &options.communication, &mut found);
                let device_events: Vec<EventId> = work.iter().map(|work| work.event).collect();
                let links = Links::new(trace, &device_events, &mut found);
                (work, links, found)
            };
            let whole = || {
                let mut health = trace.health.clone();
                content::check(trace, &mut health);
                precision::check(trace, &mut health);
                (durations(trace), health)
            };
            rayon::join(device, whole)
        },
    );
    if durations > MAX_DURATIONS {
        return Err(too_long());
    }
    health.merge(&found);
    let (judge, steps) = rayon::join(
        || Judge::new(&host, &names, &processes, options),
        || Steps::new(trace, &host, &processes),
    );
    let (verdicts, (orphans, owning)) = rayon::join(
        || {
            let verdicts = judge_launches(&host, &judge, &links);
            place(&mut work, &links, &verdicts, &host, &processes, &steps);
            verdicts
        },
        || {
            rayon::join(
                || Orphans::new(trace, &names, &host, &processes, &steps, &links),
                || owning_launches(&links, &host, &processes, &steps),
            )
        },
    );
    let selected = steps
        .all
        .iter()
        .map(|step| {
            options
                .steps
                .is_none_or(|range| (range.first..=range.last).contains(&step.number))
        })
        .collect();
    let mut dissection = Dissection {
        trace,
        options,
        names: &names,
        host: &host,
        processes: &processes,
        judge: &judge,
        steps: &steps,
        links: &links,
        verdicts,
        work,
        orphans,
        partial: Vec::new(),
        selected,
        health,
        durations,
    };
    dissection.partial = dissection.partial_steps(&owning);
    let seen = look(&dissection);
    let Dissection {
        verdicts,
        work,
        orphans,
        ..
    } = dissection;
    discard((host, processes, links, verdicts, work, orphans));
    Ok(seen)
}

/// Frees what nobody needs any more, on a thread that has nothing else to do: giving memory back to the system
/// takes a twentieth of the time of an attribution.
pub(super) fn discard(value: impl Send + 'static) {
    rayon::spawn(move || drop(value));
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
            // In order already, or nearly: launches are in file order.
            moments.sort_by_key(|moment| (moment.at, moment.key));
            let innermost = host.threads[thread].innermost_at(&moments);
            moments
                .par_iter()
                .zip(innermost)
                .with_min_len(4096)
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

/// Gives every piece of work its bucket, launch and step, and puts it in order of device and start.
fn place(
    work: &mut [Work],
    links: &Links,
    verdicts: &[Verdict],
    host: &Host,
    processes: &Processes,
    steps: &Steps,
) {
    let has_steps = !steps.all.is_empty();
    let place = |(work, link): (&mut Work, &Link)| {
        let Some(number) = link.launch() else {
            work.bucket = match link {
                Link::PreWindow => Bucket::PreWindow,
                _ => Bucket::Unlinked,
            };
            return;
        };
        let launch = links.launches[number as usize];
        let placement = verdicts[number as usize].placement;
        work.launch = number;
        work.bucket = Bucket::Phase(placement.phase);
        work.other = placement.other;
        let process = host
            .thread(launch.track)
            .map(|it| processes.threads[it].process);
        match process.and_then(|process| steps.at(process, launch.at)) {
            Some(step) => work.step = step,
            None if has_steps && work.other == OtherKind::Rest => {
                work.other = OtherKind::OutsideSteps;
            }
            None => {}
        }
    };
    work.par_iter_mut()
        .zip(&links.links)
        .with_min_len(4096)
        .for_each(place);
    // In order on each lane already: this sort makes use of that.
    work.par_sort_by_key(|work| {
        (
            work.device,
            work.span.start,
            work.bucket,
            work.class,
            work.span.end,
            work.event,
        )
    });
    mark_first_of_launch(work, links.launches.len());
}

/// By step: how many launches in it own device work.
fn owning_launches(links: &Links, host: &Host, processes: &Processes, steps: &Steps) -> Vec<u64> {
    let mut owning = vec![0; steps.all.len()];
    for launch in &links.launches {
        let thread = host.thread(launch.track);
        let process = thread.map(|thread| processes.threads[thread].process);
        if let Some(step) = process.and_then(|process| steps.at(process, launch.at)) {
            owning[step as usize] += 1;
        }
    }
    owning
}

impl Dissection<'_> {
    /// Counts what is odd about the links of work that is in the numbers.
    pub(crate) fn note<'w>(&self, work: impl Iterator<Item = &'w Work>, health: &mut Health) {
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

    /// The windows of every device with work that counts, in order of index.
    pub(crate) fn device_windows(&self) -> Vec<DeviceWindows<'_>> {
        let windows = StepWindows {
            steps: self.steps,
            partial: &self.partial,
            selected: &self.selected,
            options: self.options,
        };
        windows.on_devices(&self.work)
    }

    pub(crate) fn coverage<'w>(&self, work: impl Iterator<Item = &'w Work>) -> Coverage {
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
    /// kernel launches without device work, or fewer than 80 % of its neighbour's launches, of which each
    /// step has so many `owning` device work.
    fn partial_steps(&self, owning: &[u64]) -> Vec<bool> {
        let count = self.steps.all.len();
        let mut partial: Vec<bool> = self.steps.all.iter().map(|step| step.unfinished).collect();
        if self.work.is_empty() || count == 0 {
            return partial;
        }
        let orphans = self.orphans.by_step(count);
        for (edge, neighbour) in [(0, 1), (count - 1, count.wrapping_sub(2))] {
            let few = owning
                .get(neighbour)
                .is_some_and(|full| owning[edge] * 5 < full * 4);
            partial[edge] |= few || orphans[edge] > 0;
        }
        partial
    }
}
