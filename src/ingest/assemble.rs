//! Parts to one table: strings and tracks are merged, columns are joined.

use super::row::Rows;
use super::worker::Part;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{EventTable, Ident, NO_SIDE, StrId, Track, TrackId};

/// Event numbers are 32 bits wide, and one of them means "none" in `side`.
const MAX_EVENTS: usize = u32::MAX as usize - 1;

/// The parts of a document, joined in file order as they come.
#[derive(Debug, Default)]
pub(super) struct Joined {
    whole: Rows,
    /// By worker.
    numbers: Vec<Numbers>,
}

impl Joined {
    /// Joins the part that follows, of about `parts` in all, and gives back the space of its columns.
    pub(super) fn add(&mut self, mut part: Part, parts: usize) -> Option<EventTable> {
        self.learn(&part);
        let (whole, numbers) = (&mut self.whole, &self.numbers[part.worker]);
        whole.health.merge(&part.health);
        whole.extent = whole.extent.and(part.extent);
        numbers.apply(&mut part.events, Counts::of(&whole.events));
        if !whole.events.is_empty() {
            whole.events.append(&mut part.events);
            return Some(part.events);
        }
        // Small files have no other.
        if !part.events.is_empty() {
            part.events.reserve_times(parts.saturating_sub(1));
        }
        whole.events = part.events;
        None
    }

    /// Takes the strings and tracks that are new with `part`. Those of a part that is not joined count, too, for
    /// the parts of its worker that follow may have them.
    pub(super) fn learn(&mut self, part: &Part) {
        if self.numbers.len() <= part.worker {
            self.numbers.resize_with(part.worker + 1, Numbers::default);
        }
        self.numbers[part.worker].learn(part, &mut self.whole);
    }

    /// All of it.
    pub(super) fn finish(self) -> Result<Rows> {
        limited(self.whole)
    }
}

/// All rows of a document, if there are not too many.
pub(super) fn limited(rows: Rows) -> Result<Rows> {
    if rows.events.len() > MAX_EVENTS {
        return Err(Error::new(
            ErrorKind::NotATrace,
            "more than 4,294,967,294 events",
        ));
    }
    Ok(rows)
}

/// How many rows the side tables have.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    op: u32,
    launch: u32,
    device: u32,
}

impl Counts {
    /// With at most [`MAX_EVENTS`] events nothing saturates.
    fn of(table: &EventTable) -> Self {
        let count = |len| u32::try_from(len).unwrap_or(u32::MAX);
        Self {
            op: count(table.op_args.len()),
            launch: count(table.launch_args.len()),
            device: count(table.device_args.len()),
        }
    }
}

/// What the numbers of a worker become.
#[derive(Debug, Default)]
struct Numbers {
    /// By string number.
    strings: Vec<StrId>,
    /// By track number.
    tracks: Vec<TrackId>,
    /// Some become others.
    differ: bool,
}

impl Numbers {
    /// Merges the strings and tracks that are new with `part` into `whole`.
    fn learn(&mut self, part: &Part, whole: &mut Rows) {
        // A worker that started anew numbers from the first on.
        self.strings.truncate(part.known.0);
        self.tracks.truncate(part.known.1);
        for text in part.strings.iter() {
            let id = whole.strings.intern(text);
            self.differ |= id.index() != self.strings.len();
            self.strings.push(id);
        }
        let ident = |ident| match ident {
            Ident::Text(text) => Ident::Text(self.strings[text.index()]),
            other => other,
        };
        for Track { pid, tid } in &part.tracks {
            let id = whole.tracks.intern(Track {
                pid: ident(*pid),
                tid: ident(*tid),
            });
            self.differ |= id.index() != self.tracks.len();
            self.tracks.push(id);
        }
    }

    /// Changes the numbers in `table`, the events of a part that has so many `before` it, to those of the whole.
    fn apply(&self, table: &mut EventTable, before: Counts) {
        if self.differ {
            for id in table.name.iter_mut().chain(&mut table.cat) {
                *id = self.strings[id.index()];
            }
            for id in &mut table.track {
                *id = self.tracks[id.index()];
            }
            for dims in table.op_args.dims_mut() {
                *dims = self.strings[dims.index()];
            }
        }
        for (side, activity) in table.side.iter_mut().zip(&table.activity) {
            let base = if *side == NO_SIDE {
                continue;
            } else if activity.is_device_work() {
                before.device
            } else if activity.has_launch_args() {
                before.launch
            } else {
                before.op
            };
            *side = base.saturating_add(*side);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::row::{RawArgs, RawEvent, Value};
    use crate::ingest::worker::Worker;
    use crate::model::EventId;

    fn part(
        worker: &mut Worker,
        cat: &'static str,
        name: &'static str,
        ids: std::ops::Range<i64>,
    ) -> Part {
        worker.start(0, EventTable::default());
        for id in ids {
            let args = RawArgs {
                correlation: Value::Int(id),
                external: Value::Int(id),
                ..RawArgs::default()
            };
            let event = RawEvent {
                ph: Value::Text("X"),
                cat: Value::Text(cat),
                name: Value::Text(name),
                tid: Value::Text(name),
                ts: Value::Int(id),
                dur: Value::Int(1),
                args,
                ..RawEvent::default()
            };
            worker.rows.push(id.unsigned_abs(), &event);
        }
        worker.hand_over()
    }

    #[test]
    fn strings_tracks_and_arguments_keep_their_events() {
        let parts = [
            (0, "kernel", "k", 0..3),
            (1, "cpu_op", "op", 3..5),
            (0, "kernel", "k", 5..5),
            (1, "kernel", "k", 5..7),
            (0, "cuda_runtime", "launch", 7..8),
            (0, "cpu_op", "k", 8..9),
            (1, "cuda_runtime", "op", 9..10),
        ];
        let mut workers = [Worker::new(0), Worker::new(1)];
        let mut joined = Joined::default();
        for (number, cat, name, ids) in parts {
            let worker = &mut workers[number];
            // Of no part that is joined.
            let other = part(worker, "kernel", "k2", 0..1);
            joined.learn(&other);
            joined.add(part(worker, cat, name, ids), 7);
        }
        let Rows {
            events,
            strings,
            tracks,
            extent,
            ..
        } = joined.finish().expect("few events");
        let names = ["k", "k", "k", "op", "op", "k", "k", "launch", "k", "op"];
        assert_eq!(events.len(), names.len());
        for (id, name) in events.ids().zip(names) {
            let number = id.index() as u64;
            assert_eq!(strings.get(events.name(id)), name);
            let Ident::Text(tid) = tracks.get(events.track(id)).tid else {
                panic!("a text")
            };
            assert_eq!(strings.get(tid), name);
            assert_eq!(events.offset(id), number);
            let external = match strings.get(events.cat(id)) {
                "kernel" => events.device_args(id).map(|args| args.external),
                "cpu_op" => events.op_args(id).map(|args| args.external),
                _ => events.launch_args(id).map(|args| args.external),
            };
            // An External id of 0 is none; device work has a row all the same.
            assert_eq!(external, Some(number));
        }
        assert_eq!(events.name(EventId(0)), events.name(EventId(8)));
        assert_eq!(
            (extent.first, extent.last, extent.longest),
            (0, 9_000, 1_000)
        );
    }

    #[test]
    fn nothing_joins_to_nothing() {
        assert!(
            Joined::default()
                .finish()
                .expect("no events")
                .events
                .is_empty()
        );
    }
}
