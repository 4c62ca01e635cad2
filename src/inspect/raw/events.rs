//! The table `events`: the events of a trace as they are in the file.

use super::Columns;
use crate::inspect::Frame;
use crate::model::{ActivityType, Call, EventId, Ident, StrId, Trace, Track, TrackId};

/// One row an event of `ids`. Of its columns, all or those that are `wanted`.
pub(crate) fn events<I: Iterator<Item = EventId>>(
    trace: &Trace,
    ids: impl Fn() -> I,
    wanted: Option<&[&'static str]>,
) -> Frame {
    let (events, strings) = (&trace.events, &trace.strings);
    let letter = |ph: u8| ph.is_ascii_graphic().then(|| char::from(ph).to_string());
    let cat = |id| Some(events.cat(id)).filter(|cat| *cat != StrId::EMPTY);
    let tracks: Vec<Track> = trace.tracks.iter().map(|(_, track)| track).collect();
    let spelled = |ident: Ident| match ident {
        Ident::Missing => None,
        Ident::Int(number) => Some(number.to_string()),
        Ident::Text(text) => Some(strings.get(text).to_owned()),
    };
    let pid = |track: TrackId| spelled(tracks[track.index()].pid);
    let tid = |track: TrackId| spelled(tracks[track.index()].tid);
    // Few names, many events.
    let calls: Vec<Call> = strings.iter().map(|(_, name)| Call::of(name)).collect();
    let call = |id| {
        let is_call = events.activity(id).is_launch();
        is_call.then(|| calls[events.name(id).index()])
    };
    let spelling = |call: Call| call.as_str().map(str::to_owned);
    let track = || ids().map(|id| Some(events.track(id)));
    let (count, number) = (tracks.len(), TrackId::index);
    Columns::new("events", "An element of the event array.", wanted)
        .int("event", ids().map(|id| i64::try_from(id.index()).ok()))
        .name(
            "ph",
            256,
            usize::from,
            letter,
            ids().map(|id| Some(events.ph(id).0)),
        )
        .flag("counts", ids().map(|id| Some(events.is_complete(id))))
        .string("cat", strings, ids().map(cat))
        .name(
            "activity",
            256,
            |activity| activity as usize,
            |activity: ActivityType| activity.as_str().map(str::to_owned),
            ids().map(|id| Some(events.activity(id))),
        )
        .name(
            "call_kind",
            256,
            |call| call as usize,
            spelling,
            ids().map(call),
        )
        .string("name", strings, ids().map(|id| Some(events.name(id))))
        .name("pid", count, number, pid, track())
        .name("tid", count, number, tid, track())
        .int("ts_ns", ids().map(|id| Some(events.ts(id)?.0)))
        .int("dur_ns", ids().map(|id| Some(events.dur(id)?.0)))
        .int(
            "offset",
            ids().map(|id| i64::try_from(events.offset(id)).ok()),
        )
        .done()
}
