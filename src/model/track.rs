//! Tracks: the (pid, tid) rows of a trace.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::StrId;

/// A `pid` or `tid` as the file has it: Kineto writes numbers, other writers text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ident {
    /// The key is missing or null.
    Missing,
    /// An integer.
    Int(i64),
    /// Any other value, as text.
    Text(StrId),
}

/// A (pid, tid) row, by its number in [`Tracks`]. Numbers depend on the order of reading and never
/// reach output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(pub(crate) u32);

impl TrackId {
    /// Position in tables with one entry a track.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One (pid, tid) row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track {
    /// Process, or device index on device rows.
    pub pid: Ident,
    /// Thread, or stream on device rows.
    pub tid: Ident,
}

/// Every row of one trace, once.
#[derive(Debug, Clone, Default)]
pub struct Tracks {
    rows: Vec<Track>,
    /// Seeded by chance, as in [`Strings`](super::Strings).
    numbers: HashMap<Track, TrackId, RandomState>,
    /// Found lately, each at its place.
    recent: [Option<(Track, TrackId)>; RECENT],
}

/// How many rows are remembered: events of a few threads and streams take turns.
const RECENT: usize = 16;

impl Track {
    /// Where it is remembered.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the highest bits alone are left"
    )]
    #[inline]
    fn place(self) -> usize {
        let bits = |ident| match ident {
            Ident::Missing => 1 << 63,
            Ident::Int(number) => number.cast_unsigned(),
            Ident::Text(text) => u64::from(text.0) | 1 << 62,
        };
        let mixed = bits(self.pid).wrapping_mul(31) ^ bits(self.tid);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
    }
}

impl Tracks {
    /// The number of `track`, which is added when new.
    ///
    /// # Panics
    /// After 2³² − 1 distinct rows.
    pub fn intern(&mut self, track: Track) -> TrackId {
        let place = track.place();
        if let Some((recent, id)) = self.recent[place]
            && recent == track
        {
            return id;
        }
        let rows = &mut self.rows;
        let id = *self.numbers.entry(track).or_insert_with(|| {
            let id = TrackId(u32::try_from(rows.len()).expect("fewer than 2^32 rows"));
            rows.push(track);
            id
        });
        self.recent[place] = Some((track, id));
        id
    }

    /// The row of `id`.
    pub fn get(&self, id: TrackId) -> Track {
        self.rows[id.index()]
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows from number `from` on.
    pub(crate) fn since(&self, from: usize) -> &[Track] {
        &self.rows[from..]
    }

    /// All rows with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (TrackId, Track)> {
        (0u32..)
            .zip(&self.rows)
            .map(|(id, track)| (TrackId(id), *track))
    }
}
