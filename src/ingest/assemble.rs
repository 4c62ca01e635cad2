//! Parts to one table: strings and tracks are merged, columns are joined.

use rayon::prelude::*;

use super::row::{Extent, Rows};
use crate::error::{Error, ErrorKind, Result};
use crate::health::Health;
use crate::model::{
    EventTable, Ident, NO_SIDE, Narrow, Offsets, SideTable, StrId, Strings, Track, TrackId, Tracks,
};

/// The parts of a document, joined.
#[derive(Debug, Default)]
pub(super) struct Joined {
    pub(super) events: EventTable,
    pub(super) strings: Strings,
    pub(super) tracks: Tracks,
    pub(super) health: Health,
    pub(super) extent: Extent,
}

/// Event numbers are 32 bits wide, and one of them means "none" in `side`.
const MAX_EVENTS: usize = u32::MAX as usize - 1;

/// Joins `parts`, which are in file order.
pub(super) fn join(parts: Vec<Rows>) -> Result<Joined> {
    if parts.iter().map(|part| part.events.len()).sum::<usize>() > MAX_EVENTS {
        return Err(Error::new(
            ErrorKind::NotATrace,
            "more than 4,294,967,294 events",
        ));
    }
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return Ok(Joined::default());
    };
    // The numbers in the first part stay as they are; small files have no other.
    let mut before = Counts::default().and(&first.events);
    let mut tables = vec![first.events];
    let mut joined = Joined {
        events: EventTable::default(),
        strings: first.strings,
        tracks: first.tracks,
        health: first.health,
        extent: first.extent,
    };
    let mut numbers = Vec::new();
    for part in parts {
        joined.health.merge(&part.health);
        joined.extent = joined.extent.and(part.extent);
        numbers.push(Numbers::merge(&part, before, &mut joined));
        before = before.and(&part.events);
        tables.push(part.events);
    }
    tables[1..]
        .par_iter_mut()
        .zip(&numbers)
        .for_each(|(table, numbers)| numbers.apply(table));
    joined.events = join_tables(tables);
    Ok(joined)
}

/// How many rows the side tables have.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    op: u32,
    launch: u32,
    device: u32,
}

impl Counts {
    /// With the rows of `table`. With at most [`MAX_EVENTS`] events nothing saturates.
    fn and(self, table: &EventTable) -> Self {
        let add = |base: u32, len| base.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        Self {
            op: add(self.op, table.op_args.len()),
            launch: add(self.launch, table.launch_args.len()),
            device: add(self.device, table.device_args.len()),
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
    /// Merges the strings and tracks of `part` into `joined`.
    fn merge(part: &Rows, before: Counts, joined: &mut Joined) -> Self {
        let strings: Vec<StrId> = part
            .strings
            .iter()
            .map(|(_, text)| joined.strings.intern(text))
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
            .map(|(_, row)| joined.tracks.intern(track(row)))
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

/// Joins the columns of all parts, each column in a task of its own.
fn join_tables(mut parts: Vec<EventTable>) -> EventTable {
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let mut joined = EventTable::default();
    rayon::scope(|scope| {
        macro_rules! join {
            ($($column:ident)*) => {$({
                let whole = &mut joined.$column;
                let column: Vec<_> =
                    parts.iter_mut().map(|part| std::mem::take(&mut part.$column)).collect();
                scope.spawn(move |_| *whole = concat(column));
            })*};
        }
        join! { ts op_args dur name cat track side offset device_args launch_args ph activity flags }
    });
    joined
}

/// A column that is read in parts.
trait Column: Default {
    fn len(&self) -> usize;
    fn reserve(&mut self, additional: usize);
    fn append(&mut self, later: Self);
}

macro_rules! column {
    ($([$($parameter:tt)*] $type:ty)*) => {$(
        impl<$($parameter)*> Column for $type {
            fn len(&self) -> usize {
                <$type>::len(self)
            }
            fn reserve(&mut self, additional: usize) {
                <$type>::reserve(self, additional);
            }
            fn append(&mut self, later: Self) {
                <$type>::append(self, later);
            }
        }
    )*};
}

column! { [] Offsets [N: Narrow] SideTable<N> }

impl<T> Column for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }
    fn reserve(&mut self, additional: usize) {
        self.reserve(additional);
    }
    fn append(&mut self, mut later: Self) {
        self.append(&mut later);
    }
}

/// All parts of a column in one. Each part is freed as soon as it is copied.
fn concat<C: Column>(parts: Vec<C>) -> C {
    let mut whole = C::default();
    whole.reserve(parts.iter().map(C::len).sum());
    for part in parts {
        whole.append(part);
    }
    whole
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
        let Joined {
            events,
            strings,
            tracks,
            extent,
            ..
        } = join(parts).expect("few events");
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
        assert!(join(Vec::new()).expect("no events").events.is_empty());
    }
}
