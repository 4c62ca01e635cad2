//! Guesses where events start.
//!
//! A guess is only where to cut work; it is never believed. Inside a string the pattern cannot
//! occur in valid JSON, but a list of objects inside an event looks the same, so whoever starts at
//! a guess has to be checked by whoever arrives there.

use memchr::memchr_iter;

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

fn looks_like_event(data: &[u8], brace: usize) -> bool {
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
pub(super) fn segment_starts(data: &[u8], start: usize, size: usize) -> Vec<usize> {
    let size = size.max(1);
    let mut starts = vec![start];
    let mut target = start.saturating_add(size);
    while target < data.len() {
        let next = target.saturating_add(size);
        if let Some(guess) = next_event(data, target, next) {
            starts.push(guess);
        }
        target = next;
    }
    starts
}
