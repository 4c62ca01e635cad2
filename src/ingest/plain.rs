//! Strict fast paths for values in their plain spelling.
//!
//! Each function takes what it is sure about and says `None` to everything else, which the scalar
//! reader then looks at: strings with escapes or anything but printable ASCII, numbers in unusual
//! spelling, arrays that hold objects, and whatever comes so close to the end of the text that
//! eight bytes cannot be read at once.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The eight bytes at `pos`, the first one lowest.
#[inline]
fn eight(data: &[u8], pos: usize) -> Option<u64> {
    let bytes = data.get(pos..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// True when `text` starts with `literal`.
#[inline]
pub(super) fn starts_with(text: &[u8], literal: &[u8]) -> bool {
    let Some(text) = text.get(..literal.len()) else {
        return false;
    };
    let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) else {
        return text == literal;
    };
    let (Some(own_first), Some(own_last)) =
        (literal.first_chunk::<16>(), literal.last_chunk::<16>())
    else {
        return false;
    };
    let word = |bytes: &[u8; 16]| u128::from_le_bytes(*bytes);
    if word(first) != word(own_first) || word(last) != word(own_last) {
        return false;
    }
    let blocks = text
        .as_chunks::<16>()
        .0
        .iter()
        .zip(literal.as_chunks::<16>().0);
    blocks
        .skip(1)
        .all(|(text, literal)| word(text) == word(literal))
}

/// Where the string whose first byte is at `pos` has its closing quote; only printable ASCII
/// without escapes.
#[inline]
pub(super) fn string_end(data: &[u8], pos: usize) -> Option<usize> {
    let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word;
    let mut at = pos;
    loop {
        let word = eight(data, at)?;
        let quote = zero_byte(word ^ (ONES * 0x22));
        let backslash = zero_byte(word ^ (ONES * 0x5c));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let special = (quote | backslash | control | word) & TOPS;
        // Borrows only ever flag bytes above the first one that is flagged rightly.
        if special != 0 {
            let first = at + (special.trailing_zeros() / 8) as usize;
            return (data[first] == b'"').then_some(first);
        }
        at += 8;
    }
}

/// Up to eight digits at `pos`: their value and how many there are.
#[inline]
fn digits(data: &[u8], pos: usize) -> Option<(u64, usize)> {
    let word = eight(data, pos)? ^ (ONES * 0x30);
    let other = (word.wrapping_add(ONES * 0x76) | word) & TOPS;
    let count = (other.trailing_zeros() / 8) as usize;
    if count == 0 {
        return Some((0, 0));
    }
    // The digits go to the top, zeros before them; then neighbours are joined, thrice.
    let word = word << (64 - 8 * count);
    let pairs = (word.wrapping_mul(10) + (word >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let value = (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff;
    Some((value, count))
}

const POWERS: [u64; 9] = [
    1,
    10,
    100,
    1000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// Up to 18 digits at `pos` that are an integer of JSON: their value and where they end.
#[inline]
fn whole(data: &[u8], pos: usize) -> Option<(u64, usize)> {
    let (mut value, mut count) = digits(data, pos)?;
    let mut end = pos + count;
    let leading_zero = count > 1 && data[pos] == b'0';
    while count == 8 {
        let (more, digits) = digits(data, end)?;
        value = value.checked_mul(POWERS[digits])?.checked_add(more)?;
        count = digits;
        end += count;
    }
    let len = end - pos;
    (len > 0 && len <= 18 && !leading_zero).then_some((value, end))
}

/// True for what may go on with a number.
#[inline]
fn goes_on(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
}

/// An integer at `pos` and where it ends.
#[inline]
pub(super) fn integer(data: &[u8], pos: usize) -> Option<(i64, usize)> {
    let (value, end) = whole(data, pos)?;
    (!goes_on(data.get(end))).then_some((i64::try_from(value).ok()?, end))
}

/// Nanoseconds from the microseconds at `pos`, and where those end.
#[inline]
pub(super) fn time(data: &[u8], pos: usize) -> Option<(i64, usize)> {
    let (value, mut end) = whole(data, pos)?;
    // 15 digits of microseconds are 31 years, far below any bound on times.
    if end - pos > 15 {
        return None;
    }
    let mut value = value * 1000;
    if data.get(end) == Some(&b'.') {
        let (fraction, count) = digits(data, end + 1)?;
        if count == 0 || count > 3 {
            return None;
        }
        value += fraction * POWERS[3 - count];
        end += 1 + count;
    }
    (!goes_on(data.get(end))).then_some((i64::try_from(value).ok()?, end))
}

/// Where the number at `pos` ends: an integer or decimal fraction.
#[inline]
pub(super) fn number_end(data: &[u8], pos: usize) -> Option<usize> {
    let pos = pos + usize::from(data.get(pos) == Some(&b'-'));
    let run = |from: usize| {
        let mut end = from;
        loop {
            let (_, count) = digits(data, end)?;
            end += count;
            if count < 8 {
                return Some(end);
            }
        }
    };
    let mut end = run(pos)?;
    if end == pos || (end - pos > 1 && data[pos] == b'0') {
        return None;
    }
    if data.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = run(fraction)?;
        if end == fraction {
            return None;
        }
    }
    (!goes_on(data.get(end))).then_some(end)
}

/// Where the array at `pos` ends: strings, numbers and arrays, however deep.
#[inline]
pub(super) fn array_end(data: &[u8], pos: usize) -> Option<usize> {
    if data.get(pos) != Some(&b'[') {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = pos;
    loop {
        match *data.get(at)? {
            b'[' => {
                depth += 1;
                at = space_end(data, at + 1);
                if data.get(at) != Some(&b']') {
                    continue;
                }
            }
            b'"' => at = string_end(data, at + 1)? + 1,
            b'-' | b'0'..=b'9' => at = number_end(data, at)?,
            _ => return None,
        }
        loop {
            if depth == 0 {
                return Some(at);
            }
            at = space_end(data, at);
            match *data.get(at)? {
                b']' => {
                    depth -= 1;
                    at += 1;
                }
                b',' => {
                    at = space_end(data, at + 1);
                    break;
                }
                _ => return None,
            }
        }
    }
}

/// The first place from `pos` on that is no white space.
#[inline]
fn space_end(data: &[u8], pos: usize) -> usize {
    let mut at = pos;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = data.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::number::{self, Time};
    use super::super::text::Scanner;
    use super::*;
    use proptest::prelude::*;

    fn padded(text: &str) -> Vec<u8> {
        format!("{text},        ").into_bytes()
    }

    #[test]
    fn plain_values_are_read() {
        assert_eq!(
            integer(&padded("1234567890123"), 0),
            Some((1_234_567_890_123, 13))
        );
        assert_eq!(integer(&padded("0"), 0), Some((0, 1)));
        assert_eq!(time(&padded("12.5"), 0), Some((12_500, 4)));
        assert_eq!(
            time(&padded("1712195495505.982"), 0),
            Some((1_712_195_495_505_982, 17))
        );
        assert_eq!(string_end(b"aten::mm\", \"x\": 1", 0), Some(8));
        assert_eq!(
            array_end(&padded("[[2, 64], [], \"a]\", -0.5]"), 0),
            Some(25)
        );
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "01",
            "1.5",
            "1e3",
            "",
            "-",
            "-5",
            "1234567890123456789",
            "x",
        ] {
            assert_eq!(integer(&padded(text), 0), None, "{text}");
        }
        for text in ["1.2345", "1.", "1e3", ".5", "1234567890123456", "-1"] {
            assert_eq!(time(&padded(text), 0), None, "{text}");
        }
        for text in ["a\\n\"", "a\n\"", "\u{e9}\"", "no end"] {
            assert_eq!(string_end(&padded(text), 0), None, "{text}");
        }
        for text in [
            "[1,,2]", "[1 2]", "[1,]", "[{}]", "[", "[01]", "[nan]", "[1.]",
        ] {
            assert_eq!(array_end(&padded(text), 0), None, "{text}");
        }
    }

    #[test]
    fn literals_match_whole() {
        let literal = "a literal of more than thirty-two bytes, even";
        for len in 0..literal.len() {
            let literal = &literal.as_bytes()[..len];
            let mut text = literal.to_vec();
            text.extend_from_slice(b"rest");
            assert!(starts_with(&text, literal));
            assert!(!starts_with(&text[..len.saturating_sub(1)], literal) || len == 0);
            for at in 0..len {
                let mut other = text.clone();
                other[at] ^= 1;
                assert!(!starts_with(&other, literal));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_scalar_reader_reads(
            text in r#"[-+0-9.eE\[\]" ,a\\]{0,24}"#,
        ) {
            let data = padded(&text);
            let scalar = |data: &[u8]| {
                let mut scanner = Scanner::new(data, 0);
                scanner.skip().ok().map(|()| scanner.pos)
            };
            if let Some((value, end)) = integer(&data, 0) {
                prop_assert_eq!(Some(end), scalar(&data));
                prop_assert_eq!(number::integer(&data[..end]), Some(i128::from(value)));
            }
            if let Some((value, end)) = time(&data, 0) {
                prop_assert_eq!(Some(end), scalar(&data));
                prop_assert_eq!(number::nanoseconds(&data[..end]), Time::Ns(value));
            }
            if let Some(end) = number_end(&data, 0) {
                prop_assert_eq!(Some(end), scalar(&data));
            }
            if let Some(end) = array_end(&data, 0) {
                prop_assert_eq!(Some(end), scalar(&data));
            }
        }
    }
}
