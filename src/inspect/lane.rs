//! The streams of a device.

use std::collections::BTreeMap;

use super::view::View;
use crate::attribute::Work;

/// One stream of a device, as one process numbers it.
pub(super) struct Stream<'w> {
    /// Its number, or name.
    pub(super) name: Option<String>,
    /// Number of its lane.
    pub(super) lane: u32,
    /// Its work, in order of start.
    pub(super) work: Vec<&'w Work>,
}

/// The streams that `work` of one device is on, in order of number, then of name.
pub(super) fn streams<'w>(
    view: &View<'_>,
    work: impl IntoIterator<Item = &'w Work>,
) -> Vec<Stream<'w>> {
    let mut by_lane: BTreeMap<u32, Vec<&Work>> = BTreeMap::new();
    for work in work {
        by_lane.entry(work.lane).or_default().push(work);
    }
    let mut streams: Vec<Stream<'_>> = by_lane
        .into_iter()
        .map(|(lane, work)| Stream {
            name: view.ident(work[0].stream),
            lane,
            work,
        })
        .collect();
    streams.sort_by_cached_key(|stream| {
        let name = stream.name.clone();
        let number = name.as_ref().and_then(|name| name.parse::<i64>().ok());
        let track = view.trace().events.track(stream.work[0].event);
        let process = view.ident(view.trace().tracks.get(track).pid);
        (number.is_none(), number, name, process)
    });
    streams
}
