//! Interned strings of one trace.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// A string of one trace, by its number in [`Strings`]. Numbers depend on the order of reading
/// and never reach output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrId(pub(crate) u32);

impl StrId {
    /// The empty string; also stands for an absent one.
    pub const EMPTY: Self = Self(0);

    /// Position in tables with one entry a string.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// True for the empty string.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

/// Every distinct string of one trace, once.
#[derive(Debug, Clone)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
    /// Open addressing over string numbers; `u32::MAX` is an empty place.
    places: Vec<u32>,
    hashes: Vec<u32>,
    /// Seeded by chance: names are made by others, who might choose them to collide.
    hasher: RandomState,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self {
            text: String::new(),
            ends: Vec::new(),
            places: vec![u32::MAX; 64],
            hashes: Vec::new(),
            hasher: RandomState::default(),
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The number of `text`, which is added when new.
    ///
    /// # Panics
    /// After 2³² − 1 distinct strings, which a file of less than 4 GiB of names cannot hold.
    pub fn intern(&mut self, text: &str) -> StrId {
        let hash = self.hash_of(text.as_bytes());
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let id = self.places[place];
            if id == u32::MAX {
                break;
            }
            if self.hashes[id as usize] == hash && self.get(StrId(id)) == text {
                return StrId(id);
            }
            place = (place + 1) & mask;
        }
        let id = u32::try_from(self.ends.len()).expect("fewer than 2^32 distinct strings");
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.hashes.push(hash);
        self.places[place] = id;
        if self.ends.len() * 2 > self.places.len() {
            self.grow();
        }
        StrId(id)
    }

    /// [`intern`](Self::intern) for bytes that are known to be ASCII.
    ///
    /// # Panics
    /// When they are not.
    #[inline]
    pub(crate) fn intern_ascii(&mut self, text: &[u8]) -> StrId {
        let hash = self.hash_of(text);
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let id = self.places[place];
            if id == u32::MAX {
                return self.intern(std::str::from_utf8(text).expect("ASCII"));
            }
            if self.hashes[id as usize] == hash && same(self.get(StrId(id)).as_bytes(), text) {
                return StrId(id);
            }
            place = (place + 1) & mask;
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a hash: the high half is folded in"
    )]
    #[inline]
    fn hash_of(&self, bytes: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(bytes);
        (hash ^ (hash >> 32)) as u32
    }

    fn grow(&mut self) {
        let len = self.places.len() * 2;
        let mask = len - 1;
        let mut places = vec![u32::MAX; len];
        for (id, hash) in (0u32..).zip(&self.hashes) {
            let mut place = *hash as usize & mask;
            while places[place] != u32::MAX {
                place = (place + 1) & mask;
            }
            places[place] = id;
        }
        self.places = places;
    }

    /// The number of `text`, if it occurs.
    pub fn find(&self, text: &str) -> Option<StrId> {
        let hash = self.hash_of(text.as_bytes());
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let id = self.places[place];
            if id == u32::MAX {
                return None;
            }
            if self.hashes[id as usize] == hash && self.get(StrId(id)) == text {
                return Some(StrId(id));
            }
            place = (place + 1) & mask;
        }
    }

    /// The text of `id`.
    pub fn get(&self, id: StrId) -> &str {
        let start = if id.0 == 0 {
            0
        } else {
            self.ends[id.index() - 1]
        };
        &self.text[start..self.ends[id.index()]]
    }

    /// The texts from number `from` on.
    pub(crate) fn since(&self, from: usize) -> Texts {
        let start = from.checked_sub(1).map_or(0, |last| self.ends[last]);
        let ends = self.ends[from..].iter();
        Texts {
            text: self.text[start..].to_owned(),
            ends: ends.map(|end| end - start).collect(),
        }
    }

    /// How many bytes all texts have.
    pub(crate) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// How many distinct strings there are, the empty one included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// All strings with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (StrId, &str)> {
        (0u32..)
            .take(self.ends.len())
            .map(|id| (StrId(id), self.get(StrId(id))))
    }
}

/// Some texts, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.text[*start..*end])
    }
}

/// Whether two texts are the same. They mostly are, and some ten bytes long: too short for a call of `memcmp`.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    // A last block may overlap the one before it.
    fn in_blocks<const N: usize>(a: &[u8], b: &[u8]) -> Option<bool> {
        let last = *a.last_chunk::<N>()? == *b.last_chunk::<N>()?;
        let mut blocks = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
        Some(last && blocks.all(|(a, b)| a == b))
    }
    a.len() == b.len()
        && in_blocks::<16>(a, b)
            .or_else(|| in_blocks::<4>(a, b))
            .unwrap_or_else(|| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_keeps_its_number_and_text() {
        let mut strings = Strings::default();
        let ids: Vec<StrId> = (0..1000)
            .map(|n| strings.intern(&format!("name {n}")))
            .collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(strings.get(*id), format!("name {n}"));
            assert_eq!(strings.find(&format!("name {n}")), Some(*id));
            assert_eq!(strings.intern(&format!("name {n}")), *id);
        }
        let texts: Vec<String> = strings.since(998).iter().map(str::to_owned).collect();
        assert_eq!(texts, ["name 997", "name 998", "name 999"]);
        assert_eq!(strings.since(0).iter().next(), Some(""));
        assert_eq!(strings.since(1001).iter().next(), None);
        assert_eq!(strings.find("other"), None);
        assert_eq!(strings.intern(""), StrId::EMPTY);
        assert_eq!(strings.len(), 1001);
    }
}
