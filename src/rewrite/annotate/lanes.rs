//! Rows of a viewer, laid out so that no event of a row is dropped.
//!
//! Perfetto puts the complete events of a row on a stack, in order of start, of two that start at once the
//! longer first. What has ended leaves the stack; an event that ends after the one on top of it is dropped:
//!
//! ```text
//! row            ├─ a ───────────┤          row            ├─ a ───────────┤
//!                  ├─ b ─┤ ├─ c ────┤                        ├─ b ─┤
//!                    ok      dropped        row, lane 2             ├─ c ────┤
//! ```
//! It reads times as 64-bit floating-point microseconds, which it cuts to nanoseconds, so that an end may come out
//! a nanosecond early. An event fits only where it is inside by its exact times and by those.

use foldhash::{HashMap, HashSet};

use super::has_place;
use crate::model::{EventId, Ident, Ph, Trace, TrackId};
use crate::units::Ns;

/// Lanes that a row may have.
const MOST: usize = 128;
/// Numbers of further rows of a trace.
const MOST_TIDS: usize = 60_000;
/// The first number for rows that are added.
const FIRST_TID: i64 = 900_000_001;

/// The lanes of one trace.
pub(super) struct Lanes<'a> {
    trace: &'a Trace,
    /// By event: the further row that it moves to, from 1; 0 for its own.
    pub(super) moves: Vec<u16>,
    /// Numbers of further rows.
    pub(super) tids: Vec<i64>,
    /// What each further row is a lane of, and which.
    pub(super) rows: Vec<(TrackId, usize)>,
    pub(super) moved: u64,
    pub(super) crowded: u64,
    used: HashSet<i64>,
    next: i64,
}

/// An open event: its end, exact and as read.
type Open = (i64, i64);

/// Start and end of an event as a reader of floating-point microseconds has them.
fn as_read(start: i64, length: i64) -> (i64, i64) {
    let cut = |ns: i64| {
        let micros = ns as f64 / 1_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "this is the cut that is looked at; casts of floats saturate"
        )]
        let ns = (micros * 1_000.0) as i64;
        ns
    };
    let start = cut(start);
    (start, start.saturating_add(cut(length)))
}

/// Puts an event on `stack` when a viewer would keep it there.
fn fits(stack: &mut Vec<Open>, exact: (i64, i64), read: (i64, i64)) -> bool {
    while stack
        .last()
        .is_some_and(|open| open.0 <= exact.0 && open.1 <= read.0)
    {
        stack.pop();
    }
    // What has ended by one reading only is an end that is not certain: nothing may start in it.
    let inside = stack
        .last()
        .is_none_or(|open| exact.1 <= open.0 && read.1 <= open.1);
    if inside {
        stack.push((exact.1, read.1));
    }
    inside
}

impl<'a> Lanes<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let tids = trace
            .tracks
            .iter()
            .filter_map(|(_, track)| match track.tid {
                Ident::Int(number) => Some(number),
                _ => None,
            });
        Self {
            trace,
            moves: vec![0; trace.events.len()],
            tids: Vec::new(),
            rows: Vec::new(),
            moved: 0,
            crowded: 0,
            used: tids.collect(),
            next: FIRST_TID,
        }
    }

    /// A number that no row of the trace has.
    pub(super) fn fresh(&mut self) -> i64 {
        while !self.used.insert(self.next) {
            self.next += 1;
        }
        self.next
    }

    /// Finds a lane for every event; times are looked at as they will be, from `first` on.
    pub(super) fn lay_out(&mut self, first: Ns) {
        let events = &self.trace.events;
        let mut by_row: Vec<Vec<EventId>> = vec![Vec::new(); self.trace.tracks.len()];
        for id in events.ids() {
            if events.is_complete(id) && has_place(self.trace, id) {
                by_row[events.track(id).index()].push(id);
            }
        }
        let mut with: HashMap<(TrackId, Ns), u16> = HashMap::default();
        for (row, _) in self.trace.tracks.iter() {
            self.row(
                row,
                std::mem::take(&mut by_row[row.index()]),
                first,
                &mut with,
            );
        }
        if with.is_empty() {
            return;
        }
        // Flows hang on what starts with them.
        for id in events.ids() {
            if matches!(events.ph(id), Ph::FLOW_START | Ph::FLOW_END)
                && let Some(at) = events.ts(id)
                && let Some(lane) = with.get(&(events.track(id), at))
            {
                self.moves[id.index()] = *lane;
            }
        }
    }

    fn row(
        &mut self,
        row: TrackId,
        mut ids: Vec<EventId>,
        first: Ns,
        with: &mut HashMap<(TrackId, Ns), u16>,
    ) {
        let events = &self.trace.events;
        let start = |id: &EventId| events.ts(*id).unwrap_or_default();
        let length = |id: &EventId| events.dur(*id).unwrap_or_default();
        ids.sort_by_key(|id| (start(id), std::cmp::Reverse(length(id)), *id));
        let mut stacks: Vec<Vec<Open>> = vec![Vec::new()];
        // By lane of this row: its place among all further rows, from 1.
        let mut places: Vec<u16> = vec![0];
        for id in ids {
            let (from, length) = ((start(&id) - first).0, length(&id).0);
            let exact = (from, from.saturating_add(length));
            let read = as_read(from, length);
            // A `B` stays with its `E`.
            if events.ph(id) != Ph::COMPLETE {
                fits(&mut stacks[0], exact, read);
                continue;
            }
            let found = stacks.iter_mut().position(|stack| fits(stack, exact, read));
            let lane = match found {
                Some(0) => continue,
                Some(lane) => lane,
                None if stacks.len() < MOST && self.tids.len() < MOST_TIDS => {
                    stacks.push(vec![(exact.1, read.1)]);
                    let tid = self.fresh();
                    self.tids.push(tid);
                    self.rows.push((row, stacks.len()));
                    places.push(u16::try_from(self.tids.len()).unwrap_or(u16::MAX));
                    stacks.len() - 1
                }
                None => {
                    self.crowded += 1;
                    continue;
                }
            };
            self.moved += 1;
            self.moves[id.index()] = places[lane];
            with.insert((row, start(&id)), places[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_floating_point_cuts_short_still_holds_what_is_inside() {
        // 1.001 us are 1000.999… ns when multiplied out.
        assert_eq!(as_read(1_001, 0).0, 1_000);
        let mut stack = Vec::new();
        assert!(fits(&mut stack, (0, 1_001), as_read(0, 1_001)));
        assert!(!fits(&mut stack, (1_000, 1_001), (1_000, 1_001)));
        assert!(fits(&mut stack, (1_001, 1_500), (1_001, 1_500)));
    }

    #[test]
    fn what_starts_at_the_end_of_another_is_beside_it() {
        let mut stack = Vec::new();
        assert!(fits(&mut stack, (0, 10), (0, 10)));
        assert!(fits(&mut stack, (2, 10), (2, 10)));
        assert!(!fits(&mut stack, (5, 11), (5, 11)));
        assert!(fits(&mut stack, (10, 11), (10, 11)));
        assert_eq!(stack.len(), 1);
    }
}
