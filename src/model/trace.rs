//! One trace file, read.

use super::{EventId, EventTable, Metadata, Strings, Tracks};
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

    /// Counts a finding about the event `id`.
    pub(crate) fn note(&self, health: &mut Health, code: HealthCode, id: EventId) {
        health.count(code, self.events.offset(id), self.name(id));
    }
}
