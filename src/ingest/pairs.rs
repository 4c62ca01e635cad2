//! `B` and `E` events to lengths.
//!
//! ```text
//! B forward 0    B layer 5    E 30           E forward 40
//! forward        ├──────────────────────────────┤
//! layer               ├────────┤
//! ```
//! An `E` closes the innermost open `B` of its name on its track; an `E` without a name closes the
//! innermost one.

use rustc_hash::FxHashMap;

use crate::health::{Health, HealthCode};
use crate::model::{EventFlags, EventId, EventTable, Ph, StrId, Strings};

/// Gives every timed `B` its length. `near` are the times between which sane events start.
pub(super) fn pair(
    events: &mut EventTable,
    strings: &Strings,
    near: (i64, i64),
    health: &mut Health,
) {
    let mut ends: Vec<EventId> = events
        .ids()
        .filter(|id| {
            matches!(events.ph(*id), Ph::BEGIN | Ph::END)
                && events.flags(*id).has(EventFlags::HAS_TS)
        })
        .collect();
    // Stable: file order decides between equal times.
    ends.sort_by_key(|id| (events.track(*id), events.ts[id.index()]));
    let last = last_timestamp(events, near);
    let EventTable {
        ph,
        name,
        track: tracks,
        ts,
        offset,
        dur,
        flags,
        ..
    } = events;
    let mut note = |code, id: EventId| {
        health.count(code, offset[id.index()], strings.get(name[id.index()]));
    };
    let mut close = |begin: EventId, end: i64| {
        let at = begin.index();
        dur[at] = (end - ts[at]).max(0);
        flags[at].set(EventFlags::HAS_DUR);
    };
    let mut open = Open::default();
    for ids in ends.chunk_by(|a, b| tracks[a.index()] == tracks[b.index()]) {
        open.clear();
        for id in ids {
            if ph[id.index()] == Ph::BEGIN {
                open.begin(*id, name[id.index()]);
                continue;
            }
            match open.end(name[id.index()]) {
                Some(begin) => close(begin, ts[id.index()]),
                None => note(HealthCode::UnmatchedEnd, *id),
            }
        }
        for begin in open.rest() {
            close(begin, last);
            note(HealthCode::UnclosedBegin, begin);
        }
    }
}

/// The latest time that a sane event names.
fn last_timestamp(events: &EventTable, near: (i64, i64)) -> i64 {
    events
        .ids()
        .filter(|id| {
            let flags = events.flags(*id);
            let ts = events.ts[id.index()];
            flags.has(EventFlags::HAS_TS)
                && !flags.has(EventFlags::EXCLUDED)
                && near.0 <= ts
                && ts <= near.1
        })
        .map(|id| {
            let complete = events.ph(id) == Ph::COMPLETE;
            events.ts[id.index()] + if complete { events.dur[id.index()] } else { 0 }
        })
        .max()
        .unwrap_or(0)
}

/// The open `B` events of one track. Each is put into and taken out of every stack once, so that
/// pairing takes linear time whatever the names are.
#[derive(Default)]
struct Open {
    /// Every `B`, in order; `None` once it is closed.
    all: Vec<Option<EventId>>,
    /// Places in `all`, by name. Those of closed events are dropped when they come up.
    by_name: FxHashMap<StrId, Vec<usize>>,
}

impl Open {
    fn clear(&mut self) {
        self.all.clear();
        self.by_name.clear();
    }

    fn begin(&mut self, id: EventId, name: StrId) {
        self.by_name.entry(name).or_default().push(self.all.len());
        self.all.push(Some(id));
    }

    /// Takes out the innermost event of this name; of any name when it is empty.
    fn end(&mut self, name: StrId) -> Option<EventId> {
        if name.is_empty() {
            loop {
                if let Some(id) = self.all.pop()? {
                    return Some(id);
                }
            }
        }
        let places = self.by_name.get_mut(&name)?;
        loop {
            let place = places.pop()?;
            if let Some(id) = self.all.get_mut(place).and_then(Option::take) {
                return Some(id);
            }
        }
    }

    /// Takes out what is left.
    fn rest(&mut self) -> impl Iterator<Item = EventId> {
        self.all.drain(..).flatten()
    }
}
