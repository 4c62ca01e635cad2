//! One trace file, read.

use super::{EventId, EventTable, Ident, Metadata, Strings, Track, TrackId, Tracks};
use crate::health::{Health, HealthCode};

/// One trace file, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The events, in file order.
    pub events: EventTable,
    /// Their strings.
    pub strings: Strings,
    /// Their (pid, tid) rows.
    pub tracks: Tracks,
    /// What the file says about itself.
    pub metadata: Metadata,
    /// What was wrong or unusual while reading.
    pub health: Health,
    /// Size of the file in bytes, as stored.
    pub bytes: u64,
    /// True when the file is compressed.
    pub compressed: bool,
}

impl Trace {
    /// The name of an event.
    pub fn name(&self, id: EventId) -> &str {
        self.strings.get(self.events.name(id))
    }

    /// A (pid, tid) row in a form that can be put in order whatever the order of reading was.
    pub(crate) fn row_text(&self, track: TrackId) -> [(u8, i64, &str); 2] {
        let Track { pid, tid } = self.tracks.get(track);
        [pid, tid].map(|ident| match ident {
            Ident::Missing => (0, 0, ""),
            Ident::Int(number) => (1, number, ""),
            Ident::Text(text) => (2, 0, self.strings.get(text)),
        })
    }

    /// Counts a finding about the event `id`.
    pub(crate) fn note(&self, health: &mut Health, code: HealthCode, id: EventId) {
        health.count(code, self.events.offset(id), self.name(id));
    }
}
