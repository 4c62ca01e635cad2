//! How well device work could be placed, and how much is left out.

use super::super::number::{count, counted, ms, percent};
use crate::attribute::{Attribution, Bucket, Coverage, Phase, RunResult, Table};
use crate::health::HealthCode;
use crate::units::Ns;

/// How device events of `runs`, with `totals` together, were linked to their launches.
pub(in super::super) fn described(
    coverage: &Coverage,
    totals: &Table,
    runs: &[RunResult],
) -> String {
    let phases = match coverage.phases {
        "inferred" if let Some(work) = only_forward(runs) => format!(
            "no autograd or optimizer events: {work} is counted as forward (inference, or a \
             forward-only capture?)"
        ),
        "none" => "no phases found".to_owned(),
        "mixed" => "phases annotated in some files and inferred in others".to_owned(),
        how => format!("phases {how}"),
    };
    let events = coverage.device_events;
    if events == 0 {
        return format!("no device events; {phases}");
    }
    let share = |number: u64| {
        if number == 0 {
            return String::new();
        }
        format!(" ({} %)", percent(number as f64 / events as f64))
    };
    let beside = |number: u64, bucket: Bucket| {
        if number == 0 {
            return String::new();
        }
        let share = percent(number as f64 / events as f64);
        format!(" ({share} %, {} ms)", ms(totals.bucket(bucket).sum_ns))
    };
    let by = &coverage.linked_by;
    let mut parts = vec![format!(
        "{}: {} linked by correlation{}, {} by flow{}, {} by External id{}, {} pre-window{}, {} \
         unlinked{}",
        counted(events, "device event"),
        count(by.correlation),
        share(by.correlation),
        count(by.flow),
        share(by.flow),
        count(by.external_id),
        share(by.external_id),
        count(coverage.pre_window),
        beside(coverage.pre_window, Bucket::PreWindow),
        count(coverage.unlinked),
        beside(coverage.unlinked, Bucket::Unlinked),
    )];
    let outside = [Bucket::PreWindow, Bucket::Unlinked].map(|bucket| totals.bucket(bucket).sum_ns);
    let linked = totals.total.sum_ns - outside.into_iter().sum();
    let linked = linked
        .ratio(totals.total.sum_ns)
        .filter(|share| *share < 1.0);
    parts.extend(linked.map(|share| format!("{} % of device time linked", percent(share))));
    parts.push(phases);
    parts.join("; ")
}

/// What there is when nothing but forward was inferred: a file without autograd nodes and
/// optimizer ranges has no order of events to infer from.
fn only_forward(runs: &[RunResult]) -> Option<&'static str> {
    let found = |phase: Phase| {
        runs.iter().any(|run| {
            let host = run.host_phases.get(&phase);
            run.totals.phase(phase).events > 0
                || host.is_some_and(|host| host.wall_ns.is_some() || host.self_ns > Ns::ZERO)
        })
    };
    if !found(Phase::Forward)
        || [Phase::Backward, Phase::Recompute, Phase::Optimizer]
            .into_iter()
            .any(found)
    {
        return None;
    }
    let beside = [Bucket::PreWindow, Bucket::Unlinked];
    let beside = |run: &RunResult| beside.iter().any(|it| run.totals.bucket(*it).events > 0);
    Some(if found(Phase::Other) || runs.iter().any(beside) {
        "all work with a phase"
    } else {
        "all work"
    })
}

/// How many events the numbers leave out or show shortened.
pub(in super::super) fn dropped(attribution: &Attribution) -> String {
    let sum = |codes: &[HealthCode]| -> u64 {
        let entries = attribution.health.iter();
        let of_codes = entries.filter(|entry| codes.iter().any(|code| code.as_str() == entry.code));
        of_codes.map(|entry| entry.count).sum()
    };
    let dropped = sum(&[
        HealthCode::MissingTimestamp,
        HealthCode::MissingDuration,
        HealthCode::InvalidTimestamp,
        HealthCode::NegativeDuration,
        HealthCode::ZeroTimestamp,
        HealthCode::AbsurdTime,
    ]);
    let repaired = sum(&[HealthCode::LaneOverlapRepaired]);
    format!(
        "{} dropped, {} repaired",
        counted(dropped, "event"),
        count(repaired)
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn coverage_counts_every_kind_of_link() {
        let attribution = sample::one_rank();
        assert_eq!(
            described(
                &attribution.coverage,
                &attribution.totals,
                &attribution.runs
            ),
            "40 device events: 38 linked by correlation (95.0 %), 2 by flow (5.0 %), 0 by External \
             id, 0 pre-window, 0 unlinked; phases annotated"
        );
        assert_eq!(dropped(&attribution), "3 events dropped, 0 repaired");
    }

    #[test]
    fn a_capture_of_forward_alone_is_told_as_such() {
        let mut attribution = sample::host_only();
        let told = |attribution: &Attribution| {
            described(
                &attribution.coverage,
                &attribution.totals,
                &attribution.runs,
            )
        };
        attribution.coverage.phases = "inferred";
        assert_eq!(told(&attribution), "no device events; phases inferred");
        attribution.runs[0].host_phases.remove(&Phase::Backward);
        assert_eq!(
            told(&attribution),
            "no device events; no autograd or optimizer events: all work is counted as forward \
             (inference, or a forward-only capture?)"
        );
        let forward = attribution.runs[0].host_phases[&Phase::Forward];
        attribution.runs[0]
            .host_phases
            .insert(Phase::Other, forward);
        assert!(told(&attribution).contains("all work with a phase is counted as forward"));
        attribution.coverage.phases = "annotated";
        assert_eq!(told(&attribution), "no device events; phases annotated");
    }
}
