//! The table `events`: the events of a trace as they are in the file.

use polars::prelude::*;

use super::name::Dictionary;
use crate::model::{Ident, StrId, Trace};

/// One row an element of the event array, in file order.
///
/// # Errors
/// Never: all columns have one length and distinct names.
pub(super) fn events(trace: &Trace) -> PolarsResult<DataFrame> {
    let events = &trace.events;
    let names = Dictionary::new(trace.strings.iter().map(|(_, text)| text));
    let number = |id: StrId| u32::try_from(id.index()).ok();
    let cat = events.ids().map(|id| {
        let cat = events.cat(id);
        (cat != StrId::EMPTY).then(|| number(cat)).flatten()
    });
    let idents = Idents::new(trace);
    let rows = events.len();
    let columns = vec![
        int("event", (0i64..).take(rows).map(Some)),
        text("ph", events.ids().map(|id| letter(events.ph(id).0))),
        names.column("cat", cat)?,
        names.column("name", events.ids().map(|id| number(events.name(id))))?,
        idents.pids.column(
            "pid",
            events.ids().map(|id| number_of(events.track(id).index())),
        )?,
        idents.tids.column(
            "tid",
            events.ids().map(|id| number_of(events.track(id).index())),
        )?,
        int("ts_ns", events.ids().map(|id| Some(events.ts(id)?.0))),
        int("dur_ns", events.ids().map(|id| Some(events.dur(id)?.0))),
        int(
            "offset",
            events.ids().map(|id| i64::try_from(events.offset(id)).ok()),
        ),
    ];
    DataFrame::new(rows, columns)
}

fn number_of(index: usize) -> Option<u32> {
    u32::try_from(index).ok()
}

/// The letter of `ph`, when it is one.
fn letter(ph: u8) -> Option<String> {
    (ph.is_ascii_graphic()).then(|| char::from(ph).to_string())
}

pub(super) fn int(name: &'static str, values: impl Iterator<Item = Option<i64>>) -> Column {
    Int64Chunked::from_iter_options(PlSmallStr::from_static(name), values).into_column()
}

pub(super) fn text(name: &'static str, values: impl Iterator<Item = Option<String>>) -> Column {
    StringChunked::from_iter_options(PlSmallStr::from_static(name), values).into_column()
}

/// `pid` and `tid` of every row of the trace, as text.
struct Idents {
    pids: Dictionary,
    tids: Dictionary,
}

impl Idents {
    fn new(trace: &Trace) -> Self {
        let spelled = |ident: Ident| match ident {
            Ident::Missing => String::new(),
            Ident::Int(number) => number.to_string(),
            Ident::Text(text) => trace.strings.get(text).to_owned(),
        };
        let of = |which: fn((crate::model::TrackId, crate::model::Track)) -> Ident| {
            let texts: Vec<String> = trace
                .tracks
                .iter()
                .map(|track| spelled(which(track)))
                .collect();
            Dictionary::new(texts.iter().map(String::as_str))
        };
        Self {
            pids: of(|(_, track)| track.pid),
            tids: of(|(_, track)| track.tid),
        }
    }
}
