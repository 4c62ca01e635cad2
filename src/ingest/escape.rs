//! Strings: where they end, what is odd in them, what they say.

use std::borrow::Cow;

/// A string of the file, between its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoted<'a> {
    /// The bytes as written.
    pub(super) raw: &'a [u8],
    /// True when there is a backslash in them.
    pub(super) escaped: bool,
    /// Offset in `raw` of the first raw control character.
    pub(super) control: Option<usize>,
    /// Offset in `raw` of the first byte (or escaped surrogate) that is no Unicode text.
    pub(super) not_unicode: Option<usize>,
    /// Offset in `raw` of the first escape that JSON does not know.
    pub(super) bad_escape: Option<usize>,
}

impl Quoted<'_> {
    /// True when the string is no JSON as it is written.
    pub(super) fn is_odd(&self) -> bool {
        self.control.is_some() || self.not_unicode.is_some() || self.bad_escape.is_some()
    }
}

/// Reads the string whose bytes start `text`; `None` when no quote ends it.
pub(super) fn read(text: &[u8]) -> Option<Quoted<'_>> {
    let mut at = 0;
    let mut escaped = false;
    let mut control = None;
    let mut not_unicode = None;
    let mut bad_escape = None;
    let mut high = false;
    loop {
        at += plain(&text[at..], &mut high);
        match *text.get(at)? {
            b'"' => break,
            b'\\' => {
                escaped = true;
                let escape = Escape::read(&text[at..]);
                match escape {
                    Escape::Unknown => {
                        bad_escape.get_or_insert(at);
                    }
                    Escape::Surrogate => {
                        not_unicode.get_or_insert(at);
                    }
                    Escape::Char { .. } => {}
                }
                at += escape.len();
            }
            byte => {
                if byte < 0x20 {
                    control.get_or_insert(at);
                }
                high |= byte >= 0x80;
                at += 1;
            }
        }
    }
    let raw = &text[..at];
    if high && let Err(error) = std::str::from_utf8(raw) {
        let first = error.valid_up_to();
        not_unicode = Some(not_unicode.map_or(first, |at: usize| at.min(first)));
    }
    Some(Quoted {
        raw,
        escaped,
        control,
        not_unicode,
        bad_escape,
    })
}

/// How many bytes of `text`, eight at a time, need no look of their own; `high` is set when there
/// is one outside ASCII among the bytes looked at.
#[inline]
fn plain(text: &[u8], high: &mut bool) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let mut at = 0;
    for eight in text.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*eight);
        *high |= word & TOPS != 0;
        let special = zero_bytes(word ^ (ONES * u64::from(b'"')))
            | zero_bytes(word ^ (ONES * u64::from(b'\\')))
            | (word.wrapping_sub(ONES * 0x20) & !word & TOPS);
        if special != 0 {
            // Borrows only run upwards, so the lowest mark is right.
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

/// What a backslash starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// A known escape, in so many bytes.
    Char { char: char, len: usize },
    /// `\u` with half a surrogate pair.
    Surrogate,
    /// Nothing that JSON knows: the backslash stands for itself.
    Unknown,
}

impl Escape {
    fn read(text: &[u8]) -> Self {
        let char = match text.get(1) {
            Some(b'u') => return Self::unicode(text),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Self::Unknown,
        };
        Self::Char { char, len: 2 }
    }

    fn unicode(text: &[u8]) -> Self {
        let Some(unit) = code_unit(text) else {
            return Self::Unknown;
        };
        if let Some(char) = char::from_u32(unit) {
            return Self::Char { char, len: 6 };
        }
        let low = text.get(6..).and_then(code_unit);
        if unit < 0xdc00
            && let Some(low @ 0xdc00..=0xdfff) = low
        {
            let point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            if let Some(char) = char::from_u32(point) {
                return Self::Char { char, len: 12 };
            }
        }
        Self::Surrogate
    }

    fn len(self) -> usize {
        match self {
            Self::Char { len, .. } => len,
            Self::Surrogate => 6,
            Self::Unknown => 1,
        }
    }
}

/// The four hexadecimal digits of `\uXXXX`.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })
}

/// Appends what the string `raw` says to `out`. Unknown escapes stay as written; what is no
/// Unicode text becomes U+FFFD.
pub(crate) fn decode_into(mut raw: &[u8], out: &mut String) {
    loop {
        let len = memchr::memchr(b'\\', raw).unwrap_or(raw.len());
        let (plain, rest) = raw.split_at(len);
        for chunk in plain.utf8_chunks() {
            out.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if rest.is_empty() {
            return;
        }
        let escape = Escape::read(rest);
        out.push(match escape {
            Escape::Char { char, .. } => char,
            Escape::Surrogate => char::REPLACEMENT_CHARACTER,
            Escape::Unknown => '\\',
        });
        raw = &rest[escape.len()..];
    }
}

/// Appends to `out`, as JSON writes it, what the string `raw` says.
pub(super) fn strict_into(mut raw: &[u8], out: &mut Vec<u8>) {
    const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
    loop {
        let len = memchr::memchr(b'\\', raw).unwrap_or(raw.len());
        let (plain, rest) = raw.split_at(len);
        for chunk in plain.utf8_chunks() {
            for byte in chunk.valid().bytes() {
                push_strict(byte, out);
            }
            if !chunk.invalid().is_empty() {
                out.extend_from_slice(REPLACEMENT);
            }
        }
        if rest.is_empty() {
            return;
        }
        let escape = Escape::read(rest);
        out.extend_from_slice(match escape {
            Escape::Char { len, .. } => &rest[..len],
            Escape::Surrogate => REPLACEMENT,
            Escape::Unknown => br"\\",
        });
        raw = &rest[escape.len()..];
    }
}

/// Appends one byte of a string, escaped when it is a control character.
fn push_strict(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'\n' => out.extend_from_slice(br"\n"),
        b'\r' => out.extend_from_slice(br"\r"),
        b'\t' => out.extend_from_slice(br"\t"),
        0..0x20 => {
            out.extend_from_slice(br"\u00");
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
        _ => out.push(byte),
    }
}

/// Appends `text` as a JSON string with its quotes.
pub(crate) fn quote_into(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        push_strict(byte, out);
    }
    out.push(b'"');
}

/// The text of a JSON value without the white space and the commas before a closing bracket that mean nothing.
pub(super) fn compact(text: &[u8]) -> Cow<'_, str> {
    let ends_with_comma = |pair: &[u8]| matches!(pair, [b',', b']' | b'}']);
    if !text.iter().any(|byte| is_space(*byte)) && !text.windows(2).any(ends_with_comma) {
        return String::from_utf8_lossy(text);
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut inside = false;
    let mut escaped = false;
    for byte in text {
        if inside {
            inside = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if is_space(*byte) {
            continue;
        } else {
            // Behind a string there is its quote: a comma that was kept last is none of a text.
            if matches!(byte, b']' | b'}') && kept.last() == Some(&b',') {
                kept.pop();
            }
            inside = *byte == b'"';
        }
        kept.push(*byte);
    }
    Cow::Owned(String::from_utf8_lossy(&kept).into_owned())
}

/// True for the white space of JSON.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(raw: &[u8]) -> String {
        let mut out = String::new();
        decode_into(raw, &mut out);
        out
    }

    #[test]
    fn a_string_ends_at_its_first_quote_without_backslash() {
        for (text, len) in [
            (r#"""#, Some(0)),
            (r#"abc" rest"#, Some(3)),
            (r#"a\"b" rest"#, Some(4)),
            (r#"a\\" rest"#, Some(3)),
            (r#"a\\\" rest"#, None),
            (r#"a\u0022" rest"#, Some(7)),
            (r#"0123456789abcdef0123456789" rest"#, Some(26)),
            ("no end", None),
            (r"\", None),
            ("", None),
        ] {
            assert_eq!(
                read(text.as_bytes()).map(|string| string.raw.len()),
                len,
                "{text}"
            );
        }
    }

    #[test]
    fn oddities_are_located_wherever_they_stand() {
        for before in 0..20 {
            let text = |odd: &[u8]| [&b"x".repeat(before), odd, b"yyyyyyyyy\""].concat();
            let plain = text("é\u{7f}/".as_bytes());
            let string = read(&plain).unwrap();
            assert!(!string.escaped && string.control.is_none() && string.not_unicode.is_none());
            let control = text(b"\x1f\n");
            assert_eq!(read(&control).unwrap().control, Some(before));
            let invalid = text(b"\xc3\xa9\xc3(");
            assert_eq!(read(&invalid).unwrap().not_unicode, Some(before + 2));
            for half in [
                &br"\ud800"[..],
                br"\udc00\ud800",
                br"\ud83d\u0041",
                br"\ud83dx",
            ] {
                let surrogate = text(half);
                assert_eq!(
                    read(&surrogate).unwrap().not_unicode,
                    Some(before),
                    "{half:?}"
                );
                assert_eq!(read(&surrogate).unwrap().bad_escape, None, "{half:?}");
            }
            for bad in [
                &br"\c"[..],
                br"\U0041",
                br"\u12",
                br"\u12g4",
                b"\\\xc3\xa9",
                b"\\\x01",
            ] {
                let escape = text(bad);
                assert_eq!(read(&escape).unwrap().bad_escape, Some(before), "{bad:?}");
            }
            assert_eq!(read(&text(b"\\\x01")).unwrap().control, Some(before + 1));
            let pair = text(br"\ud83d\ude00");
            assert_eq!(read(&pair).unwrap().not_unicode, None);
        }
    }

    #[test]
    fn escapes_are_decoded_and_unknown_ones_stay() {
        for (raw, text) in [
            (&br#"\"\\\/\b\f\n\r\t"#[..], "\"\\/\u{8}\u{c}\n\r\t"),
            (br"\u0041\u00e9\u20AC", "Aé€"),
            (br"\ud83d\ude00", "😀"),
            (br"\ud83d", "\u{fffd}"),
            (br"\ude00\ud83dx", "\u{fffd}\u{fffd}x"),
            (br"C:\code\User\x", r"C:\code\User\x"),
            (br"\u12", r"\u12"),
            (b"a\xffb\xc3", "a\u{fffd}b\u{fffd}"),
            (br"\", r"\"),
            (b"", ""),
        ] {
            assert_eq!(decoded(raw), text);
        }
    }

    #[test]
    fn strict_strings_say_the_same() {
        for raw in [
            &br#"\"\\\/\b\f\n\r\t"#[..],
            br"\u0041\u00e9\ud83d\ude00",
            br"\ud83d and \ude00\ud83dx",
            br"C:\code\User\x\u12",
            b"a\xffb\xc3",
            b"\x00\x1f\n\r\t\x7f\\\x01\\",
            "größe".as_bytes(),
        ] {
            let mut strict = Vec::new();
            strict_into(raw, &mut strict);
            assert_eq!(decoded(&strict), decoded(raw));
            let quoted = [b"\"", strict.as_slice(), b"\""].concat();
            let read: String = serde_json::from_slice(&quoted).unwrap();
            assert_eq!(read, decoded(raw));
            let mut written = Vec::new();
            quote_into(&read, &mut written);
            assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), read);
        }
    }

    #[test]
    fn white_space_goes_but_not_from_strings() {
        for (text, compacted) in [
            ("[[1, 2], []]", "[[1,2],[]]"),
            ("[[1,2]]", "[[1,2]]"),
            (r#"[ "a b", "c\" d" , 1 ]"#, r#"["a b","c\" d",1]"#),
            ("[\n\t1\r\n]", "[1]"),
            // Writers of lists forget to leave the last comma out.
            ("[[2,8,],]", "[[2,8]]"),
            ("[2 , ]", "[2]"),
            (r#"[",]", ",", ]"#, r#"[",]",","]"#),
        ] {
            assert_eq!(compact(text.as_bytes()), compacted);
        }
    }
}
