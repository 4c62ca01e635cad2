//! Guesses where events start.
//!
//! A guess is only where to cut work; it is never believed. Inside a string the pattern cannot
//! occur in valid JSON, but a list of objects inside an event looks the same, so whoever starts at
//! a guess has to be checked by whoever arrives there.

use memchr::memchr_iter;
use rayon::prelude::*;

use super::escape::is_space;

/// Keys that open an event in files of known writers.
const KEYS: [&[u8]; 17] = [
    b"ph\"", b"name\"", b"cat\"", b"pid\"", b"tid\"", b"ts\"", b"dur\"", b"args\"", b"id\"",
    b"bp\"", b"s\"", b"tts\"", b"tdur\"", b"cname\"", b"sf\"", b"id2\"", b"scope\"",
];

/// The first place in `from..until` that looks like the start of an event behind another one:
/// `} , { "key"`.
pub(super) fn next_event(data: &[u8], from: usize, until: usize) -> Option<usize> {
    let until = until.min(data.len());
    let part = data.get(from..until)?;
    memchr_iter(b'{', part)
        .map(|at| from + at)
        .find(|at| looks_like_event(data, *at))
}

/// The last place in `from..until` that looks like the start of an event behind another one.
pub(super) fn last_event(data: &[u8], from: usize, until: usize) -> Option<usize> {
    let until = until.min(data.len());
    let part = data.get(from..until)?;
    memchr_iter(b'{', part)
        .rev()
        .map(|at| from + at)
        .find(|at| looks_like_event(data, *at))
}

/// True for a brace that looks like the start of an event behind another one.
pub(super) fn looks_like_event(data: &[u8], brace: usize) -> bool {
    let before = trim_end(&data[..brace]);
    let Some(before) = before.strip_suffix(b",") else {
        return false;
    };
    if trim_end(before).last() != Some(&b'}') {
        return false;
    }
    let behind = &data[brace + 1..];
    let spaces = behind.iter().take_while(|byte| is_space(**byte)).count();
    behind[spaces..]
        .strip_prefix(b"\"")
        .is_some_and(|key| KEYS.iter().any(|known| key.starts_with(known)))
}

/// The end of the event before the one that starts at `start`: without the comma between them.
pub(super) fn end_before(data: &[u8], start: usize) -> usize {
    let before = trim_end(&data[..start]);
    trim_end(before.strip_suffix(b",").unwrap_or(before)).len()
}

fn trim_end(data: &[u8]) -> &[u8] {
    let spaces = data
        .iter()
        .rev()
        .take_while(|byte| is_space(**byte))
        .count();
    &data[..data.len() - spaces]
}

/// Where the segments of the events that begin at `start` start: there, and at guesses about
/// `size` bytes apart.
///
/// Looked for side by side: the first look at a page costs more than all that is done with it here.
pub(super) fn segment_starts(data: &[u8], start: usize, size: usize) -> Vec<usize> {
    let size = size.max(1);
    let first = start.saturating_add(size).min(data.len());
    let targets = (data.len() - first).div_ceil(size);
    let guess = |number: usize| {
        let target = first + number * size;
        next_event(data, target, target.saturating_add(size))
    };
    let guesses = (0..targets).into_par_iter().with_min_len(8);
    let mut starts = vec![start];
    starts.par_extend(guesses.filter_map(guess));
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_guessed_in_every_layout() {
        for text in [
            r#"[{"ph":"X"},{"ph":"Y"}]"#,
            "[{\"ph\":\"X\"}\n , \n\t{\r\n  \"name\": 1}]",
            r#"[{"args":{"a":1}}, {"args":{}}]"#,
        ] {
            let second = text.rfind(['X', '1']).unwrap();
            let start = next_event(text.as_bytes(), 1, text.len()).expect("a guess");
            let end = end_before(text.as_bytes(), start);
            assert!(
                text[..end].ends_with('}') && text[start..].starts_with('{'),
                "{text}"
            );
            assert!(start > text.find('{').unwrap() && end < start && second > 0);
            assert_eq!(last_event(text.as_bytes(), 1, text.len()), Some(start));
        }
    }

    #[test]
    fn other_braces_are_no_guess() {
        for text in [
            r#"[{"ph":"X"}]"#,
            r#"[1,{"ph":"X"}]"#,
            r#"[{"a":1} {"ph":"X"}]"#,
            r#"[{"a":1},{"other":"X"}]"#,
            r#"[{"a":1},{}]"#,
            r#"[{"a":1},{"#,
            r#"{"a":{"ph":1}}"#,
            r#"["}, {\"ph\":1}"]"#,
            "{",
            "",
        ] {
            assert_eq!(next_event(text.as_bytes(), 0, usize::MAX), None, "{text}");
            assert_eq!(last_event(text.as_bytes(), 0, usize::MAX), None, "{text}");
        }
    }

    #[test]
    fn segments_start_at_events_in_order() {
        let text = format!("[{}]", [r#"{"ph":"X"}"#; 50].join(","));
        for size in [0, 1, 10, 11, 25, 1000] {
            let starts = segment_starts(text.as_bytes(), 1, size);
            assert_eq!(starts[0], 1);
            assert!(starts.is_sorted_by(|a, b| a < b));
            assert!(starts.iter().all(|start| (start - 1) % 11 == 0));
            assert!(size > 11 || starts.len() == 50, "{size}");
        }
    }
}
