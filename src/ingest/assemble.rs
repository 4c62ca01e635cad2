//! Parts to one table: strings and tracks are merged, columns are joined.

use super::row::Rows;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{EventTable, Ident, NO_SIDE, StrId, Track, TrackId};

/// Event numbers are 32 bits wide, and one of them means "none" in `side`.
const MAX_EVENTS: usize = u32::MAX as usize - 1;

/// The parts of a document, joined in file order as they come.
#[derive(Debug, Default)]
pub(super) struct Joined {
    whole: Option<Rows>,
}

impl Joined {
    /// Joins the part that follows, of about `parts` in all, and gives back the space of its columns.
    pub(super) fn add(&mut self, mut part: Rows, parts: usize) -> Option<EventTable> {
        let Some(whole) = &mut self.whole else {
            // The numbers in the first part stay as they are; small files have no other.
            if !part.events.is_empty() {
                part.events.reserve_times(parts.saturating_sub(1));
            }
            self.whole = Some(part);
            return None;
        };
        whole.health.merge(&part.health);
        whole.extent = whole.extent.and(part.extent);
        Numbers::merge(&part, whole).apply(&mut part.events);
        whole.events.append(&mut part.events);
        Some(part.events)
    }

    /// All of it.
    pub(super) fn finish(self) -> Result<Rows> {
        let whole = self.whole.unwrap_or_default();
        if whole.events.len() > MAX_EVENTS {
            return Err(Error::new(
                ErrorKind::NotATrace,
                "more than 4,294,967,294 events",
            ));
        }
        Ok(whole)
    }
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

/// What the numbers in one part become.
#[derive(Debug)]
struct Numbers {
    /// By string number.
    strings: Vec<StrId>,
    /// By track number.
    tracks: Vec<TrackId>,
    /// The side tables of the parts before.
    before: Counts,
}

impl Numbers {
    /// Merges the strings and tracks of `part` into `whole`.
    fn merge(part: &Rows, whole: &mut Rows) -> Self {
        let before = Counts::of(&whole.events);
        let strings: Vec<StrId> = part
            .strings
            .iter()
            .map(|(_, text)| whole.strings.intern(text))
            .collect();
        let ident = |ident| match ident {
            Ident::Text(text) => Ident::Text(strings[text.index()]),
            other => other,
        };
        let track = |Track { pid, tid }| Track {
            pid: ident(pid),
            tid: ident(tid),
        };
        let tracks = part
            .tracks
            .iter()
            .map(|(_, row)| whole.tracks.intern(track(row)))
            .collect();
        Self {
            strings,
            tracks,
            before,
        }
    }

    /// Changes the numbers in `table`, the events of the part, to those of the whole.
    fn apply(&self, table: &mut EventTable) {
        for id in table.name.iter_mut().chain(&mut table.cat) {
            *id = self.strings[id.index()];
        }
        for id in &mut table.track {
            *id = self.tracks[id.index()];
        }
        for dims in table.op_args.dims_mut() {
            *dims = self.strings[dims.index()];
        }
        for (side, activity) in table.side.iter_mut().zip(&table.activity) {
            let base = if *side == NO_SIDE {
                continue;
            } else if activity.is_device_work() {
                self.before.device
            } else if activity.has_launch_args() {
                self.before.launch
            } else {
                self.before.op
            };
            *side = base.saturating_add(*side);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::row::{RawArgs, RawEvent, Value};
    use crate::model::EventId;

    fn part(cat: &'static str, name: &'static str, ids: std::ops::Range<i64>) -> Rows {
        let mut rows = Rows::default();
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
            rows.push(id.unsigned_abs(), &event);
        }
        rows
    }

    #[test]
    fn strings_tracks_and_arguments_keep_their_events() {
        let parts = vec![
            part("kernel", "k", 0..3),
            part("cpu_op", "op", 3..5),
            Rows::default(),
            part("kernel", "k", 5..7),
            part("cuda_runtime", "launch", 7..8),
            part("cpu_op", "k", 8..9),
            part("cuda_runtime", "op", 9..10),
        ];
        let mut joined = Joined::default();
        for part in parts {
            joined.add(part, 7);
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
