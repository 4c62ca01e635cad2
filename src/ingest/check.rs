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
            events.dur[id.index()]
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
                && events.dur[id.index()] > LONG
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
