//! Times that cannot be: far from all others, or too long.

use super::row::Extent;
use crate::health::{Health, HealthCode};
use crate::model::{EventFlags, EventId, EventTable, Ph, Strings};

const HOUR: i64 = 3_600 * 1_000_000_000;
/// How far from the median start an event may start.
const FAR: i64 = 24 * HOUR;
/// How long an event may last.
const LONG: i64 = 7 * 24 * HOUR;

/// Excludes and counts the complete and begin events whose time is absurd, and tells between which
/// times sane events start.
pub(super) fn exclude_absurd(
    events: &mut EventTable,
    strings: &Strings,
    extent: Extent,
    health: &mut Health,
) -> (i64, i64) {
    let mut near = (i64::MIN, i64::MAX);
    let wide = extent.first < extent.last && extent.last - extent.first > FAR;
    if !wide && extent.longest <= LONG {
        return near;
    }
    let timed: Vec<EventId> = events.ids().filter(|id| is_timed(events, *id)).collect();
    if wide {
        let mut starts: Vec<i64> = timed.iter().map(|id| events.ts[id.index()]).collect();
        // Of two middles the earlier: what is far off in real files comes late.
        let middle = (starts.len() - 1) / 2;
        let (_, median, _) = starts.select_nth_unstable(middle);
        near = (*median - FAR, *median + FAR);
    }
    for id in timed {
        let start = events.ts[id.index()];
        let length = if events.ph(id) == Ph::COMPLETE {
            events.length(id)
        } else {
            0
        };
        if start < near.0 || start > near.1 || length > LONG {
            exclude(events, strings, id, health);
        }
    }
    near
}

/// Excludes and counts the begin events whose end makes them too long.
pub(super) fn exclude_long_pairs(events: &mut EventTable, strings: &Strings, health: &mut Health) {
    let long: Vec<EventId> = events
        .ids()
        .filter(|id| {
            events.ph(*id) == Ph::BEGIN
                && events.length(*id) > LONG
                && events.flags(*id).has(EventFlags::HAS_DUR)
                && is_timed(events, *id)
        })
        .collect();
    for id in long {
        exclude(events, strings, id, health);
    }
}

fn is_timed(events: &EventTable, id: EventId) -> bool {
    let flags = events.flags(id);
    matches!(events.ph(id), Ph::COMPLETE | Ph::BEGIN)
        && flags.has(EventFlags::HAS_TS)
        && !flags.has(EventFlags::EXCLUDED)
}

fn exclude(events: &mut EventTable, strings: &Strings, id: EventId, health: &mut Health) {
    events.flags[id.index()].set(EventFlags::EXCLUDED);
    health.count(
        HealthCode::AbsurdTime,
        events.offset(id),
        strings.get(events.name(id)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;
    use crate::ingest::IngestOptions;

    fn trace(content: &str) -> Trace {
        Trace::from_bytes(content.as_bytes(), &IngestOptions::default()).expect("a trace")
    }

    fn excluded(trace: &Trace) -> Vec<bool> {
        let events = &trace.events;
        events
            .ids()
            .map(|id| events.flags(id).has(EventFlags::EXCLUDED))
            .collect()
    }

    #[test]
    fn an_event_days_away_from_the_others_is_excluded() {
        let day = 24_u64 * 3600 * 1_000_000;
        let far = trace(&format!(
            r#"[{{"ph":"X","ts":{},"dur":1}},{{"ph":"X","ts":5,"dur":1}},
                {{"ph":"X","ts":6,"dur":1}},{{"ph":"B","ts":-{day},"name":"b"}},
                {{"ph":"i","ts":{}}}]"#,
            day + 6,
            9 * day
        ));
        assert_eq!(excluded(&far), [true, false, false, true, false]);
        assert_eq!(far.health.get(HealthCode::AbsurdTime), 2);
        // The far instant does not stretch the open B either.
        assert!(far.events.length(EventId(3)) <= FAR + HOUR);

        let near = trace(&format!(
            r#"[{{"ph":"X","ts":{day},"dur":1}},{{"ph":"X","ts":0,"dur":1}}]"#
        ));
        assert_eq!(excluded(&near), [false, false]);
    }

    #[test]
    fn a_length_over_seven_days_is_excluded() {
        let week = 7_u64 * 24 * 3600 * 1_000_000;
        let trace = trace(&format!(
            r#"[{{"ph":"X","ts":1,"dur":{week}.001}},{{"ph":"X","ts":1,"dur":{week}}},
                {{"ph":"B","ts":1,"name":"b"}},{{"ph":"E","ts":{},"name":"b"}}]"#,
            week + 2,
        ));
        assert_eq!(excluded(&trace), [true, false, true, false]);
        assert_eq!(trace.health.get(HealthCode::AbsurdTime), 2);
    }

    #[test]
    fn lost_records_do_not_move_the_median() {
        let lost = r#"{"ph":"X","cat":"kernel","ts":0,"dur":0},"#.repeat(5);
        let trace = trace(&format!(
            r#"[{lost}{{"ph":"X","ts":1712195495505582,"dur":1}}]"#
        ));
        assert_eq!(trace.health.get(HealthCode::ZeroTimestamp), 5);
        assert_eq!(trace.health.get(HealthCode::AbsurdTime), 0);
        assert_eq!(excluded(&trace), [true, true, true, true, true, false]);
    }
}
