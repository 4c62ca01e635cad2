//! How well device work could be placed, and how much is left out.

use super::super::number::{count, ms, percent};
use super::label::counted;
use crate::attribute::{Attribution, Bucket, Coverage, Table};
use crate::health::HealthCode;

/// How device events were linked to their launches.
pub(super) fn described(coverage: &Coverage, totals: &Table) -> String {
    let phases = match coverage.phases {
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

/// How many events the numbers leave out or show shortened.
pub(super) fn dropped(attribution: &Attribution) -> String {
    let sum = |codes: &[HealthCode]| -> u64 {
        let entries = attribution.health.iter();
        let of_codes = entries.filter(|entry| codes.iter().any(|code| code.as_str() == entry.code));
        of_codes.map(|entry| entry.count).sum()
    };
    let dropped = sum(&[
        HealthCode::MissingTimestamp,
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
            described(&attribution.coverage, &attribution.totals),
            "40 device events: 38 linked by correlation (95.0 %), 2 by flow (5.0 %), 0 by External \
             id, 0 pre-window, 0 unlinked; phases annotated"
        );
        assert_eq!(dropped(&attribution), "3 events dropped, 0 repaired");
    }
}
