//! Names from traces and paths, made fit to show.
//!
//! A name may hold anything: terminal escapes, line breaks, characters that turn the reading
//! direction or show nothing. They are written out, so that what a reader sees is what is there.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Marks on one letter; writing systems need up to three, and more pile up over the lines around them.
const MOST_MARKS: usize = 4;

/// `name` with every character that has no visible form of its own written as `\u{…}`, and so are marks on a letter
/// beyond a few.
pub(crate) fn visible(name: &str) -> Cow<'_, str> {
    let is_mark = |character: char| !character.is_ascii() && character.width() == Some(0);
    let mut marks = 0;
    let mut counted = |character: char| {
        marks = if is_mark(character) { marks + 1 } else { 0 };
        marks
    };
    let plain = |character: char, marks: usize| !is_hidden(character) && marks <= MOST_MARKS;
    if name.is_ascii() && !name.contains(is_hidden)
        || name.chars().all(|one| plain(one, counted(one)))
    {
        return Cow::Borrowed(name);
    }
    let mut marks = 0;
    let mut out = String::with_capacity(name.len() + 16);
    for character in name.chars() {
        marks = if is_mark(character) { marks + 1 } else { 0 };
        if plain(character, marks) {
            out.push(character);
        } else {
            push_escaped(&mut out, character);
        }
    }
    Cow::Owned(out)
}

/// Appends `character` as `\u{…}`.
pub(crate) fn push_escaped(out: &mut String, character: char) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
}

/// True for characters that a reader cannot see or that change how others are shown.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Columns that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Characters for one column; more than that take no room, and would make a name of any length.
const MOST_IN_A_COLUMN: usize = 1 + MOST_MARKS;

/// `name` in at most `limit` columns: the middle gives way to `…`, since kernel names differ at
/// both ends.
pub(crate) fn shortened(name: &str, limit: usize) -> Cow<'_, str> {
    let most = limit.saturating_mul(MOST_IN_A_COLUMN);
    if width(name) <= limit && (name.len() <= most || name.chars().count() <= most) {
        return Cow::Borrowed(name);
    }
    let room = limit.saturating_sub(1);
    let tail_room = room / 4;
    let head = taken(name.chars(), room - tail_room);
    let tail: String = {
        let reversed = taken(name.chars().rev(), tail_room);
        reversed.chars().rev().collect()
    };
    Cow::Owned(format!("{head}…{tail}"))
}

fn taken(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    characters
        .take(room * MOST_IN_A_COLUMN)
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= room
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(visible("void gemm<float, 4>()"), "void gemm<float, 4>()");
        assert_eq!(visible("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(
            visible("a\nb\r\tc\u{7f}\u{9b}"),
            "a\\u{a}b\\u{d}\\u{9}c\\u{7f}\\u{9b}"
        );
        assert_eq!(
            visible("\u{202e}evil\u{2066}\u{200b}\u{feff}"),
            "\\u{202e}evil\\u{2066}\\u{200b}\\u{feff}"
        );
        assert_eq!(visible("größe 核"), "größe 核");
    }

    #[test]
    fn marks_that_pile_up_are_written_out() {
        // Vietnamese, Hebrew with points, Thai.
        for name in ["Việt e\u{302}\u{301}", "שָׁ\u{5bc}לוֹם", "ที่นี่"] {
            assert_eq!(visible(name), name);
        }
        let marks = "\u{301}".repeat(6);
        assert_eq!(
            visible(&format!("a{marks}b")),
            format!("a{}\\u{{301}}\\u{{301}}b", &marks[..8])
        );
        let many = format!("k{}", "\u{301}".repeat(100_000));
        let short = shortened(&many, 100);
        assert!(short.chars().count() <= 501, "{}", short.chars().count());
        let short = visible(&many);
        assert!(shortened(&short, 100).chars().count() <= 105);
    }

    #[test]
    fn names_shrink_in_the_middle_by_columns() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghijk", 10), "abcdefg…jk");
        assert_eq!(shortened("核核核核核核", 7), "核核…");
        assert_eq!(shortened("abc", 1), "…");
        for limit in 1..12 {
            assert!(width(&shortened("核abc核def核", limit)) <= limit, "{limit}");
        }
    }
}
