//! What a run says at a glance: step times, imbalance between ranks, top kernels.

use std::collections::BTreeMap;

use super::file::FileAttribution;
use super::options::AttributeOptions;
use super::phase::Phase;
use super::result::{
    Coverage, EvidenceShare, HostPhase, Imbalance, RankResult, Recompute, StepTime, TopKernel,
};
use super::table::Table;
use crate::stats::median_time;
use crate::units::Ns;

/// Median and spread of host step times; partial steps only when there are no others.
pub(crate) fn step_time<'a>(
    files: impl Iterator<Item = &'a FileAttribution> + Clone,
    options: &AttributeOptions,
) -> Option<StepTime> {
    let inferred = files.clone().any(|file| file.steps_inferred);
    let steps = || files.clone().flat_map(|file| &file.host.steps);
    let whole = steps().any(|step| !step.partial);
    let take_partial = options.include_partial_steps || !whole;
    let mut time = StepTime {
        steps: 0,
        median_ns: Ns::ZERO,
        min_ns: Ns::ZERO,
        max_ns: Ns::ZERO,
        partial: take_partial && steps().any(|step| step.partial),
        inferred,
    };
    let counting = steps().filter(|step| time.counts(step.partial));
    let times: Vec<Ns> = counting.map(|step| step.wall_ns).collect();
    time.steps = times.len() as u64;
    (time.median_ns, time.min_ns, time.max_ns) = StepTime::spread(times)?;
    Some(time)
}

impl StepTime {
    /// True for steps that step times are about, by whether they are partial.
    pub(crate) fn counts(&self, partial: bool) -> bool {
        self.partial || !partial
    }

    /// Median, shortest and longest of `times`; `None` of none.
    pub(crate) fn spread(mut times: Vec<Ns>) -> Option<(Ns, Ns, Ns)> {
        times.sort_unstable();
        Some((median_time(&times)?, *times.first()?, *times.last()?))
    }
}

impl RankResult {
    /// `numbers`, which are places in `all`, in groups of one rank each: its windows in order.
    pub(crate) fn by_rank<'a>(
        all: &'a [Self],
        numbers: &'a [usize],
    ) -> impl Iterator<Item = &'a [usize]> {
        numbers.chunk_by(|_, next| all[*next].window > 0)
    }
}

/// How far the ranks of a run are apart, by busy time; `numbers` are the places of their files in
/// the result.
///
/// ```text
/// rank 0  window 0 ▇▇▇▇▇▇     window 1 ▇▇      busy 8
/// rank 1  window 0 ▇▇▇▇▇      window 1 ▇▇▇▇▇   busy 10
/// ```
pub(crate) fn imbalance(ranks: &[RankResult], numbers: &[usize]) -> Option<Imbalance> {
    let with_work: Vec<(Ns, usize)> = RankResult::by_rank(ranks, numbers)
        .filter(|files| {
            files
                .iter()
                .any(|file| ranks[*file].totals.total.events > 0)
        })
        .map(|files| {
            let busy = files.iter().map(|file| ranks[*file].totals.total.busy_ns);
            (busy.sum(), files[0])
        })
        .collect();
    if with_work.len() < 2 {
        return None;
    }
    let (min_busy_ns, min_rank) = *with_work.iter().min()?;
    let (max_busy_ns, _) = *with_work.iter().max()?;
    let (_, max_rank) = *with_work.iter().find(|(busy, _)| *busy == max_busy_ns)?;
    Some(Imbalance {
        ranks: with_work.len() as u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle() {
        let spread = |times: &[i64]| {
            let times = times.iter().copied().map(Ns).collect();
            StepTime::spread(times).map(|(median, min, max)| (median.0, min.0, max.0))
        };
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[7]), Some((7, 7, 7)));
        assert_eq!(spread(&[25, 10]), Some((17, 10, 25)));
        assert_eq!(spread(&[9, 1, 2]), Some((2, 1, 9)));
        assert_eq!(spread(&[9, 1, 2, 4]), Some((3, 1, 9)));
        let most = i64::MAX;
        assert_eq!(spread(&[most, most]), Some((most, most, most)));
    }

    #[test]
    fn windows_of_one_rank_are_one_rank() {
        let file = |rank, window, busy| {
            let mut totals = Table::default();
            totals.total.busy_ns = Ns(busy);
            totals.total.events = u64::from(busy > 0);
            RankResult {
                rank: Some(rank),
                run: 0,
                input: 0,
                window,
                totals,
                devices: Vec::new(),
                host: super::super::result::HostResult::default(),
                recompute: Recompute::default(),
                coverage: Coverage::default(),
            }
        };
        // Rank 0 is busier in its first window, rank 1 in both together; rank 2 does nothing.
        let ranks = [
            file(0, 0, 6),
            file(0, 1, 2),
            file(1, 0, 5),
            file(1, 1, 5),
            file(2, 0, 0),
        ];
        let apart = imbalance(&ranks, &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!(
            apart,
            Imbalance {
                ranks: 2,
                min_busy_ns: Ns(8),
                min_rank: 0,
                max_busy_ns: Ns(10),
                max_rank: 2,
                spread: 0.2,
            }
        );
        assert_eq!(imbalance(&ranks[..2], &[0, 1]), None);
    }
}
