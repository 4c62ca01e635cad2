//! What a task keeps from one part of a document to the next: strings, tracks and shapes.
//!
//! Parts are small, so that their rows are still in the caches when they are joined and their columns need
//! little memory. What is learned from one part must then serve for those that follow: names come again and
//! again. A worker therefore numbers strings and tracks through all of its parts, and with each part it hands
//! over those that are new.

use super::decode::Decoder;
use super::row::{Extent, Rows};
use super::shape::Shapes;
use crate::health::Health;
use crate::model::{EventTable, Texts, Track};

/// A worker that knows more distinct strings or tracks than this starts anew: in a file where each event has a
/// name of its own, nothing that is kept is of use.
const MAX_KNOWN: usize = 1 << 16;

/// The same for the bytes of its strings.
const MAX_TEXT: usize = 4 << 20;

/// So many parts are read otherwise after one whose events have no shape, for those that follow hardly have one.
const SHAPELESS: usize = 15;

/// A reader of parts of one document.
#[derive(Default)]
pub(super) struct Worker {
    /// Which one of those of the document.
    number: usize,
    pub(super) rows: Rows,
    pub(super) shapes: Shapes,
    /// So many parts are still to be read without shapes.
    shapeless: usize,
    pub(super) decoder: Decoder,
    /// How many strings and tracks were handed over.
    strings: usize,
    tracks: usize,
}

/// The rows of one part of a document.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) events: EventTable,
    pub(super) health: Health,
    pub(super) extent: Extent,
    /// Which worker numbered its strings and tracks.
    pub(super) worker: usize,
    /// How many strings and tracks of the worker are in the parts before. None are when it started anew.
    pub(super) known: (usize, usize),
    /// The strings behind those.
    pub(super) strings: Texts,
    /// The tracks behind those.
    pub(super) tracks: Vec<Track>,
}

impl Worker {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Starts on the events of about `bytes` bytes of text, in the space of the columns of `space`.
    pub(super) fn start(&mut self, bytes: usize, space: EventTable) {
        self.rows.start(bytes, space);
        self.shapeless = self.shapeless.saturating_sub(1);
        if self.shapes.is_shapeless() {
            self.shapes = Shapes::default();
        }
    }

    /// True when it is worth to look for shapes.
    pub(super) fn expects_shapes(&self) -> bool {
        self.shapeless == 0
    }

    /// Notes that the events of this part have no shape.
    pub(super) fn note_shapeless(&mut self) {
        self.shapeless = SHAPELESS + 1;
    }

    /// Hands over the rows that were read since the start.
    pub(super) fn hand_over(&mut self) -> Part {
        let rows = &mut self.rows;
        let part = Part {
            events: std::mem::take(&mut rows.events),
            health: std::mem::take(&mut rows.health),
            extent: std::mem::take(&mut rows.extent),
            worker: self.number,
            known: (self.strings, self.tracks),
            strings: rows.strings.since(self.strings),
            tracks: rows.tracks.since(self.tracks).to_vec(),
        };
        (self.strings, self.tracks) = (rows.strings.len(), rows.tracks.len());
        let most = self.strings.max(self.tracks).max(self.shapes.spellings());
        if most > MAX_KNOWN || rows.strings.text_len() > MAX_TEXT {
            *self = Self {
                number: self.number,
                shapeless: self.shapeless,
                decoder: std::mem::take(&mut self.decoder),
                ..Self::default()
            };
        }
        part
    }
}
