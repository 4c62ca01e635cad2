//! The attribution of one trace file.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::collective::Collectives;
use super::counters::counters;
use super::dissection::Dissection;
#[cfg(test)]
use super::dissection::dissect;
use super::evidence::{EvidenceKind, Judge, Tally};
use super::host::Host;
use super::names::Names;
use super::options::AttributeOptions;
use super::orphan::Orphans;
use super::phase::Phase;
use super::process::Processes;
use super::result::{Coverage, DeviceResult, HostResult, Recompute};
use super::step::Steps;
use super::table::{Bucket, Table};
use super::window::StepWindows;
use super::work::Work;
#[cfg(test)]
use crate::error::Result;
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
/// When the durations add up to more than [`MAX_DURATIONS`](super::dissection::MAX_DURATIONS).
#[cfg(test)]
pub(crate) fn attribute_file(trace: &Trace, options: &AttributeOptions) -> Result<FileAttribution> {
    dissect(trace, options, FileAttribution::new)
}

impl FileAttribution {
    /// The tables of one trace.
    pub(crate) fn new(dissection: &Dissection<'_>) -> Self {
        let Dissection {
            trace,
            options,
            names,
            host,
            processes,
            judge,
            steps,
            links,
            work,
            verdicts,
            orphans,
            partial,
            selected,
            ..
        } = dissection;
        let window = StepWindows {
            steps,
            partial,
            selected,
            options,
        };
        let wanted = || work.iter().filter(|work| window.wants(work));
        let mut tally = Tally::default();
        let of_host = || {
            for work in wanted() {
                if let Some(&verdict) = verdicts.get(work.launch as usize) {
                    tally.count_device(verdict, work.span.len());
                }
            }
            window.host(host, judge, processes, &mut tally)
        };
        let of_devices = || {
            let mut health = dissection.health.clone();
            dissection.note(wanted(), &mut health);
            let mut file = Self {
                coverage: dissection.coverage(wanted()),
                kernels: kernels(trace, wanted()),
                collectives: Collectives::new(trace, host, work),
                devices: window.devices(trace, work),
                ..Self::default()
            };
            for device in &file.devices {
                file.totals.add(&device.totals);
            }
            (file, health)
        };
        let (of_host, (mut file, mut health)) = rayon::join(of_host, of_devices);
        file.host = of_host;
        let whole = options.steps.is_none();
        let wants = |step: Option<u32>| whole || step.is_some_and(|step| selected[step as usize]);
        orphans.note(trace, wants, &mut health);
        steps.note(partial, selected, &mut health);
        file.launches = orphans.launches;
        file.lost_launches = lost_launches(orphans, steps);

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
        file.coverage.phases = phase_coverage(host, processes);
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
        file.durations = dissection.durations;
        let numbers = || steps.all.iter().map(|step| step.number);
        file.steps = numbers().min().zip(numbers().max());
        file
    }

    /// Adds what the counters in `bytes`, which the trace was read from, say about each device.
    ///
    /// # Errors
    /// When the content is not what it was when the trace was read.
    pub(crate) fn add_counters(
        &mut self,
        dissection: &Dissection<'_>,
        bytes: &[u8],
    ) -> crate::error::Result<()> {
        let mut counters = counters(dissection, bytes)?;
        for device in &mut self.devices {
            device.counters = counters.remove(&device.device);
        }
        Ok(())
    }
}

/// Time and number of the `work` of each bucket and name.
fn kernels<'w>(
    trace: &Trace,
    work: impl Iterator<Item = &'w Work>,
) -> BTreeMap<Bucket, BTreeMap<String, (Ns, u64)>> {
    let mut sums = HashMap::<(Bucket, StrId), (Ns, u64)>::default();
    for work in work {
        let sums = sums
            .entry((work.bucket, trace.events.name(work.event)))
            .or_default();
        sums.0 += work.span.len();
        sums.1 += 1;
    }
    let mut kernels = BTreeMap::<_, BTreeMap<_, _>>::new();
    #[expect(clippy::iter_over_hash_type, reason = "into ordered maps")]
    for ((bucket, name), sums) in sums {
        let name = trace.strings.get(name).to_owned();
        kernels.entry(bucket).or_default().insert(name, sums);
    }
    kernels
}

fn lost_launches(orphans: &Orphans, steps: &Steps) -> BTreeMap<String, u64> {
    let mut lost = BTreeMap::new();
    for (_, step) in &orphans.lost {
        let name = step.map_or("", |step| &steps.all[step as usize].name);
        *lost.entry(name.to_owned()).or_default() += 1;
    }
    lost
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
