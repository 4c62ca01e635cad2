//! What readers let pass although it is no JSON: counted, and located by the first of each kind.

use crate::health::{Health, HealthCode};

/// A departure from JSON that real writers make and that has one sensible reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    /// A raw control character in a string; once a string.
    ControlCharacter,
    /// Bytes that are not UTF-8, or half a surrogate pair; once a string.
    InvalidUtf8,
    /// An escape that JSON does not know; once a string.
    InvalidEscape,
    /// `NaN`, `Infinity`, `N/A` and their kin as a value.
    NonFiniteNumber,
    /// A comma before a closing bracket.
    TrailingComma,
    /// A key that an event or its `args` had before, of those that columns need.
    DuplicateKey,
}

const CODES: [HealthCode; 6] = [
    HealthCode::ControlCharacters,
    HealthCode::InvalidUtf8,
    HealthCode::InvalidEscape,
    HealthCode::NonFiniteNumber,
    HealthCode::TrailingComma,
    HealthCode::DuplicateKey,
];

/// The quirks of one stretch of text. Its size does not grow with their number.
#[derive(Debug, Clone, Default)]
pub(super) struct Quirks {
    kinds: [Option<Seen>; 6],
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    count: u64,
    first: u64,
}

impl Quirks {
    /// Counts `quirk` at byte `offset`, which is behind those of its kind so far.
    #[cold]
    pub(super) fn note(&mut self, quirk: Quirk, offset: usize) {
        let first = Seen {
            count: 0,
            first: offset as u64,
        };
        self.kinds[quirk as usize].get_or_insert(first).count += 1;
    }

    /// True when there was none.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.iter().all(Option::is_none)
    }

    /// Adds the counts to `health`, as findings about the event or key called `name`.
    pub(super) fn count_into(&self, health: &mut Health, name: &str) {
        for (code, seen) in CODES.into_iter().zip(self.kinds) {
            if let Some(Seen { count, first }) = seen {
                health.count_many(code, count, first, name);
            }
        }
    }
}
