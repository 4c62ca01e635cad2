//! What a run says at a glance: step times, imbalance between ranks, top kernels.

use std::collections::BTreeMap;

use super::file::FileAttribution;
use super::options::AttributeOptions;
use super::phase::Phase;
use super::result::{
    Coverage, EvidenceShare, HostPhase, Imbalance, RankResult, Recompute, StepTime, TopKernel,
};
use super::table::Table;
use crate::units::Ns;

/// Median and spread of host step times; partial steps only when there are no others.
pub(crate) fn step_time<'a>(
    files: impl Iterator<Item = &'a FileAttribution> + Clone,
    options: &AttributeOptions,
) -> Option<StepTime> {
    let inferred = files.clone().any(|file| file.steps_inferred);
    let steps = || files.clone().flat_map(|file| &file.host.steps);
    let whole = steps().any(|step| !step.partial);
    let partial = options.include_partial_steps || !whole;
    let wanted = steps().filter(|step| partial || !step.partial);
    let mut times: Vec<Ns> = wanted.map(|step| step.wall_ns).collect();
    times.sort_unstable();
    Some(StepTime {
        steps: times.len() as u64,
        median_ns: *times.get(times.len().saturating_sub(1) / 2)?,
        min_ns: *times.first()?,
        max_ns: *times.last()?,
        partial: partial && steps().any(|step| step.partial),
        inferred,
    })
}

/// How far the ranks of a run are apart, by busy time; `numbers` are their places in the result.
pub(crate) fn imbalance(ranks: &[RankResult], numbers: &[usize]) -> Option<Imbalance> {
    let busy = |number: &usize| (ranks[*number].totals.total.busy_ns, *number);
    let with_work = || {
        numbers
            .iter()
            .filter(|number| ranks[**number].totals.total.events > 0)
    };
    let count = with_work().count();
    if count < 2 {
        return None;
    }
    let (min_busy_ns, min_rank) = with_work().map(busy).min()?;
    let max_busy_ns = with_work().map(|number| busy(number).0).max()?;
    let max_rank = *with_work().find(|number| busy(number).0 == max_busy_ns)?;
    Some(Imbalance {
        ranks: count as u64,
        min_busy_ns,
        min_rank,
        max_busy_ns,
        max_rank,
        spread: (max_busy_ns - min_busy_ns)
            .ratio(max_busy_ns)
            .unwrap_or(0.0),
    })
}

/// The kernels with the most device time in each bucket.
pub(crate) fn top_kernels<'a>(
    files: impl Iterator<Item = &'a FileAttribution>,
    top: usize,
) -> BTreeMap<&'static str, Vec<TopKernel>> {
    let mut sums: BTreeMap<_, BTreeMap<&str, (Ns, u64)>> = BTreeMap::new();
    for file in files {
        for (bucket, names) in &file.kernels {
            let row = sums.entry(*bucket).or_default();
            for (name, (sum, events)) in names {
                let sums = row.entry(name).or_default();
                sums.0 += *sum;
                sums.1 += events;
            }
        }
    }
    sums.into_iter()
        .map(|(bucket, names)| {
            let mut kernels: Vec<TopKernel> = names
                .into_iter()
                .map(|(name, (sum_ns, events))| TopKernel {
                    name: name.to_owned(),
                    sum_ns,
                    events,
                })
                .collect();
            kernels.sort_by(|a, b| b.sum_ns.cmp(&a.sum_ns).then_with(|| a.name.cmp(&b.name)));
            kernels.truncate(top);
            (bucket.as_str(), kernels)
        })
        .filter(|(_, kernels)| !kernels.is_empty())
        .collect()
}

/// Host time by phase over several files.
pub(crate) fn host_phases<'a>(
    files: impl Iterator<Item = &'a FileAttribution>,
) -> BTreeMap<Phase, HostPhase> {
    let mut phases = BTreeMap::<Phase, HostPhase>::new();
    for (phase, time) in files.flat_map(|file| &file.host.phases) {
        let row = phases.entry(*phase).or_default();
        row.self_ns += time.self_ns;
        if let Some(wall) = time.wall_ns {
            *row.wall_ns.get_or_insert(Ns::ZERO) += wall;
        }
    }
    phases
}

/// Recompute over several files with the device time `totals`.
pub(crate) fn recompute<'a>(
    parts: impl Iterator<Item = &'a Recompute>,
    totals: &Table,
) -> Recompute {
    let mut sum = Recompute::default();
    let mut observable = Vec::new();
    for part in parts {
        sum.regions += part.regions;
        sum.ops += part.ops;
        sum.device_sum_ns += part.device_sum_ns;
        sum.host_self_ns += part.host_self_ns;
        sum.disagreement_ns += part.disagreement_ns;
        sum.weak.regions += part.weak.regions;
        sum.weak.ops += part.weak.ops;
        sum.weak.device_sum_ns += part.weak.device_sum_ns;
        sum.weak.host_self_ns += part.weak.host_self_ns;
        for (kind, share) in &part.by_evidence {
            let row: &mut EvidenceShare = sum.by_evidence.entry(kind).or_default();
            row.regions += share.regions;
            row.ops += share.ops;
            row.device_sum_ns += share.device_sum_ns;
        }
        observable.push(part.observable);
    }
    observable.sort_unstable();
    observable.dedup();
    sum.observable = match observable.as_slice() {
        [] => "yes",
        [only] => only,
        _ => "partly",
    };
    sum.evidence = sum.kind_of_evidence();
    sum.share_of_forward = sum.device_sum_ns.ratio(totals.phase(Phase::Forward).sum_ns);
    sum
}

/// Coverage over several files.
pub(crate) fn coverage<'a>(parts: impl Iterator<Item = &'a Coverage>) -> Coverage {
    let mut sum = Coverage::default();
    for part in parts {
        sum.device_events += part.device_events;
        sum.linked_by.correlation += part.linked_by.correlation;
        sum.linked_by.flow += part.linked_by.flow;
        sum.linked_by.external_id += part.linked_by.external_id;
        sum.pre_window += part.pre_window;
        sum.unlinked += part.unlinked;
        sum.phases = match (sum.phases, part.phases) {
            ("none", other) | (other, "none") => other,
            (ours, theirs) if ours == theirs => ours,
            _ => "mixed",
        };
    }
    sum
}
