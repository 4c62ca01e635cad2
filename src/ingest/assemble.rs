//! Parts to one table: strings and tracks are merged, columns are joined.

use super::row::{Extent, Rows};
use crate::error::{Error, ErrorKind, Result};
use crate::health::Health;
use crate::model::{EventTable, Ident, StrId, Strings, Track, TrackId, Tracks};

/// The parts of a document, joined.
pub(super) struct Joined {
    pub(super) events: EventTable,
    pub(super) strings: Strings,
    pub(super) tracks: Tracks,
    pub(super) health: Health,
    pub(super) extent: Extent,
}

/// Joins `parts`, which are in file order.
pub(super) fn join(parts: Vec<Rows>) -> Result<Joined> {
    let count: usize = parts.iter().map(|part| part.events.len()).sum();
    if u32::try_from(count).is_err() || count > u32::MAX as usize - 1 {
        return Err(Error::new(
            ErrorKind::NotATrace,
            "more than 4,294,967,294 events",
        ));
    }
    let mut joined = Joined {
        events: EventTable::default(),
        strings: Strings::default(),
        tracks: Tracks::default(),
        health: Health::default(),
        extent: Extent::default(),
    };
    for part in parts {
        joined.health.merge(&part.health);
        joined.extent = joined.extent.and(part.extent);
        let strings: Vec<StrId> = part
            .strings
            .iter()
            .map(|(_, text)| joined.strings.intern(text))
            .collect();
        let ident = |ident| match ident {
            Ident::Text(id) => Ident::Text(strings[id.index()]),
            other => other,
        };
        let tracks: Vec<TrackId> = part
            .tracks
            .iter()
            .map(|(_, track)| {
                joined.tracks.intern(Track {
                    pid: ident(track.pid),
                    tid: ident(track.tid),
                })
            })
            .collect();
        let (from, to) = (part.events, &mut joined.events);
        to.side.extend(
            from.activity
                .iter()
                .zip(&from.side)
                .map(|(activity, side)| {
                    if *side == crate::model::NO_SIDE {
                        return *side;
                    }
                    let base = if activity.is_device_work() {
                        to.device_args.len()
                    } else if activity.has_launch_args() {
                        to.launch_args.len()
                    } else {
                        to.op_args.len()
                    };
                    u32::try_from(base).map_or(crate::model::NO_SIDE, |base| base + side)
                }),
        );
        to.ph.extend(from.ph);
        to.activity.extend(from.activity);
        to.flags.extend(from.flags);
        to.name
            .extend(from.name.iter().map(|id| strings[id.index()]));
        to.cat.extend(from.cat.iter().map(|id| strings[id.index()]));
        to.track
            .extend(from.track.iter().map(|id| tracks[id.index()]));
        to.ts.extend(from.ts);
        to.dur.extend(from.dur);
        to.offset.extend(from.offset);
        to.op_args.extend(from.op_args.into_iter().map(|mut args| {
            args.dims = strings[args.dims.index()];
            args
        }));
        to.launch_args.extend(from.launch_args);
        to.device_args.extend(from.device_args);
    }
    Ok(joined)
}
