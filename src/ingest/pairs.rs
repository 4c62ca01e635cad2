//! `B` and `E` events to lengths.
//!
//! ```text
//! B forward 0    B layer 5    E 30           E forward 40
//! forward        ├──────────────────────────────┤
//! layer               ├────────┤
//! ```
//! An `E` closes the innermost open `B` of its name on its track; an `E` without a name closes the
//! innermost one.

use foldhash::HashMap;

use crate::health::{Health, HealthCode};
use crate::model::{EventFlags, EventId, EventTable, Ph, StrId, Strings};

/// Gives every timed `B` its length. `near` are the times between which sane events start.
pub(super) fn pair(
    events: &mut EventTable,
    strings: &Strings,
    near: (i64, i64),
    health: &mut Health,
) {
    let pairs = pairs(events);
    let last = last_timestamp(events, near);
    let EventTable {
        name,
        ts,
        offset,
        dur,
        flags,
        ..
    } = events;
    let mut note = |code, id: EventId| {
        health.count(code, offset.get(id.index()), strings.get(name[id.index()]));
    };
    let mut lengths = Vec::new();
    for (begin, end) in pairs {
        let (begin, until) = match (begin, end) {
            (Some(begin), Some(end)) => (begin, ts[end.index()]),
            (Some(begin), None) => {
                note(HealthCode::UnclosedBegin, begin);
                (begin, last)
            }
            (None, Some(end)) => {
                note(HealthCode::UnmatchedEnd, end);
                continue;
            }
            (None, None) => continue,
        };
        let at = begin.index();
        lengths.push((begin.0, (until - ts[at]).max(0)));
        flags[at].set(EventFlags::HAS_DUR);
    }
    dur.replace(lengths);
}

/// Every timed `B` with its `E`, each of them alone when it has none.
pub(crate) fn pairs(events: &EventTable) -> Vec<(Option<EventId>, Option<EventId>)> {
    let mut ends: Vec<EventId> = events
        .ids()
        .filter(|id| {
            matches!(events.ph(*id), Ph::BEGIN | Ph::END)
                && events.flags(*id).has(EventFlags::HAS_TS)
        })
        .collect();
    // Stable: file order decides between equal times.
    ends.sort_by_key(|id| (events.track(*id), events.ts[id.index()]));
    let mut pairs = Vec::with_capacity(ends.len());
    for ids in ends.chunk_by(|a, b| events.track(*a) == events.track(*b)) {
        let mut open = Open::default();
        for id in ids {
            if events.ph(*id) == Ph::BEGIN {
                open.begin(*id, events.name(*id));
            } else {
                pairs.push((open.end(events.name(*id)), Some(*id)));
            }
        }
        pairs.extend(open.rest().map(|begin| (Some(begin), None)));
    }
    pairs
}

/// The latest time that an event names, and not the time that a writer set for a day later.
fn last_timestamp(events: &EventTable, near: (i64, i64)) -> i64 {
    let end = |id: EventId| {
        let complete = events.ph(id) == Ph::COMPLETE;
        events.ts[id.index()] + if complete { events.length(id) } else { 0 }
    };
    let timed = |wanted: &dyn Fn(Ph) -> bool, until: i64| {
        let sane = events.ids().filter(|id| {
            let flags = events.flags(*id);
            let ts = events.ts[id.index()];
            flags.has(EventFlags::HAS_TS)
                && !flags.has(EventFlags::EXCLUDED)
                && near.0 <= ts
                && ts <= until.min(near.1)
                && wanted(events.ph(*id))
        });
        sane.map(end).max()
    };
    let spans = |ph| matches!(ph, Ph::COMPLETE | Ph::BEGIN | Ph::END);
    let last = timed(&spans, i64::MAX).unwrap_or(0);
    timed(&|ph| ph != Ph::METADATA, last.saturating_add(DAY))
        .unwrap_or(last)
        .max(last)
}

/// So far behind everything else, an instant is no end of the capture.
const DAY: i64 = 24 * 3600 * 1_000_000_000;

/// The open `B` events of one track. Each is put into and taken out of every stack once, so that
/// pairing takes linear time whatever the names are.
#[derive(Default)]
struct Open {
    /// Every `B`, in order; `None` once it is closed.
    all: Vec<Option<EventId>>,
    /// Places in `all`. Those of closed events are dropped when they come up.
    stack: Vec<usize>,
    /// Places in `all`, by name. Those of closed events are dropped when they come up.
    by_name: HashMap<StrId, Vec<usize>>,
}

impl Open {
    fn begin(&mut self, id: EventId, name: StrId) {
        self.by_name.entry(name).or_default().push(self.all.len());
        self.stack.push(self.all.len());
        self.all.push(Some(id));
    }

    /// Takes out the innermost event of this name; of any name when it is empty.
    fn end(&mut self, name: StrId) -> Option<EventId> {
        let places = if name.is_empty() {
            &mut self.stack
        } else {
            self.by_name.get_mut(&name)?
        };
        loop {
            let place = places.pop()?;
            if let Some(id) = self.all[place].take() {
                return Some(id);
            }
        }
    }

    /// What is left.
    fn rest(self) -> impl Iterator<Item = EventId> {
        self.all.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;
    use crate::ingest::IngestOptions;

    /// Events as `letter name tid ts`, a name of `-` being none; the lengths of the `B` in ns.
    fn lengths(events: &[&str]) -> (Vec<i64>, Health) {
        let events: Vec<String> = events
            .iter()
            .map(|event| {
                let fields: Vec<&str> = event.split(' ').collect();
                let [ph, name, tid, ts] = fields[..] else {
                    panic!("four fields")
                };
                let name = if name == "-" {
                    String::new()
                } else {
                    format!(r#","name":"{name}""#)
                };
                format!(r#"{{"ph":"{ph}","tid":{tid},"ts":{ts},"dur":2{name}}}"#)
            })
            .collect();
        let content = format!("[{}]", events.join(","));
        let trace =
            Trace::from_bytes(content.as_bytes(), &IngestOptions::default()).expect("a trace");
        let events = &trace.events;
        let begins = events.ids().filter(|id| events.ph(*id) == Ph::BEGIN);
        (
            begins
                .map(|id| events.dur(id).expect("a length").0)
                .collect(),
            trace.health,
        )
    }

    #[test]
    fn an_end_closes_the_innermost_open_event_of_its_name() {
        let (lengths, health) = lengths(&[
            "B forward 1 0",
            "B layer 1 5",
            "E - 1 30",
            "B backward 1 40",
            "E forward 1 40",
            "E backward 1 90",
        ]);
        assert_eq!(lengths, [40_000, 25_000, 50_000]);
        assert_eq!(health, Health::default());
    }

    #[test]
    fn file_order_decides_only_between_equal_times() {
        let (swapped, _) = lengths(&["E a 1 9", "B a 1 3"]);
        assert_eq!(swapped, [6_000]);
        let (tied, health) = lengths(&["E a 1 3", "B a 1 3", "E a 1 5"]);
        assert_eq!(tied, [2_000]);
        assert_eq!(health.get(HealthCode::UnmatchedEnd), 1);
    }

    #[test]
    fn threads_do_not_mix() {
        let (lengths, health) = lengths(&["B a 1 0", "B a 2 1", "E a 1 2", "E a 2 9"]);
        assert_eq!(lengths, [2_000, 8_000]);
        assert_eq!(health, Health::default());
    }

    #[test]
    fn what_stays_open_ends_with_the_file() {
        let (lengths, health) = lengths(&[
            "B a 1 0", "B a 1 2", "E a 1 3", "X x 2 10", "E b 1 4", "E - 3 1",
        ]);
        assert_eq!(lengths, [12_000, 1_000]);
        assert_eq!(health.get(HealthCode::UnclosedBegin), 1);
        assert_eq!(health.get(HealthCode::UnmatchedEnd), 2);
    }

    #[test]
    fn an_event_closed_by_an_unnamed_end_is_not_closed_again() {
        let (lengths, health) = lengths(&[
            "B a 1 0", "B a 1 1", "E - 1 2", "E a 1 5", "E a 1 6", "E - 1 7",
        ]);
        assert_eq!(lengths, [5_000, 1_000]);
        assert_eq!(health.get(HealthCode::UnmatchedEnd), 2);
    }
}
