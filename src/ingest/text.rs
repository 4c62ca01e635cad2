//! The scalar reader: the reference for what a file says.
//!
//! It knows the exact offset of everything, never recurses and lets the [quirks](super::quirk) of
//! real writers pass, counted. It reads whatever the fast reader refuses, and every error that a
//! user sees comes from here.

use super::escape::{self, Quoted, is_space};
use super::key::{Key, Keys};
use super::quirk::{Quirk, Quirks};
use super::row::{RawArgs, RawEvent, Value, plain_integer};
use crate::error::{Error, ErrorKind};

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The text ends too early.
    End,
    /// What stands at this offset is not what has to come here.
    Unexpected(usize, &'static str),
}

impl Fault {
    /// The error that a user sees, in content of `len` bytes.
    pub(super) fn into_error(self, len: usize) -> Error {
        match self {
            Self::End => Error::new(ErrorKind::Truncated, "unexpected end of input").at(len as u64),
            Self::Unexpected(at, message) => Error::new(ErrorKind::Json, message).at(at as u64),
        }
    }
}

pub(super) type Scan<T> = Result<T, Fault>;

/// A place in JSON text.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    data: &'a [u8],
    /// Offset of the next byte.
    pub(super) pos: usize,
    /// Offset of the key that [`members`](Self::members) read last.
    pub(super) key_at: usize,
    /// The oddities passed so far.
    pub(super) quirks: Quirks,
    levels: Levels,
}

impl<'a> Scanner<'a> {
    /// A scanner of `data` at offset `pos`.
    pub(super) fn new(data: &'a [u8], pos: usize) -> Self {
        Self {
            data,
            pos,
            key_at: pos,
            quirks: Quirks::default(),
            levels: Levels::default(),
        }
    }

    /// The next byte.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.data.get(self.pos).copied()
    }

    /// Passes white space and gives the byte behind it.
    #[inline]
    pub(super) fn space(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            if !is_space(byte) {
                return Some(byte);
            }
            self.pos += 1;
        }
        None
    }

    /// Reads one element of the event array; `None` for one that is no object.
    pub(super) fn element(&mut self) -> Scan<Option<RawEvent<'a>>> {
        if self.peek() != Some(b'{') {
            self.skip()?;
            return Ok(None);
        }
        let mut event = RawEvent::default();
        let mut keys = Keys::default();
        self.members(|scanner, key| {
            let key = Key::of_event(key);
            if key != Some(Key::Args) {
                return scanner.value_for(key, &mut event, &mut keys);
            }
            scanner.note_key(Key::Args, &mut keys);
            event.args = RawArgs::default();
            if scanner.peek() != Some(b'{') {
                return scanner.skip();
            }
            let mut keys = Keys::default();
            scanner
                .members(|scanner, key| scanner.value_for(Key::of_args(key), &mut event, &mut keys))
        })?;
        Ok(Some(event))
    }

    /// Reads the value of `key` of `event`, which has had `keys`.
    fn value_for(
        &mut self,
        key: Option<Key>,
        event: &mut RawEvent<'a>,
        keys: &mut Keys,
    ) -> Scan<()> {
        let Some(key) = key else {
            return self.skip();
        };
        self.note_key(key, keys);
        let value = self.value()?;
        if let Some(slot) = event.slot(key) {
            *slot = value;
        }
        Ok(())
    }

    /// Counts the key that was read last when it is one of `keys`, and adds it to them.
    fn note_key(&mut self, key: Key, keys: &mut Keys) {
        if !keys.insert(key) {
            self.quirks.note(Quirk::DuplicateKey, self.key_at);
        }
    }

    /// Reads the object that starts here: calls `member` with each decoded key, at its value,
    /// which `member` has to pass.
    pub(super) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8]) -> Scan<()>,
    ) -> Scan<()> {
        let mut decoded = String::new();
        self.pos += 1;
        let mut comma = None;
        loop {
            match self.space() {
                Some(b'"') => {}
                Some(b'}') => {
                    self.pos += 1;
                    self.note_comma(comma);
                    return Ok(());
                }
                Some(_) => return Err(Fault::Unexpected(self.pos, "expected a key or `}`")),
                None => return Err(Fault::End),
            }
            self.key_at = self.pos;
            let key = self.key()?;
            if key.escaped || key.not_unicode.is_some() {
                decoded.clear();
                escape::decode_into(key.raw, &mut decoded);
                member(self, decoded.as_bytes())?;
            } else {
                member(self, key.raw)?;
            }
            match self.space() {
                Some(b',') => comma = Some(self.pos),
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(_) => return Err(Fault::Unexpected(self.pos, "expected `,` or `}`")),
                None => return Err(Fault::End),
            }
            self.pos += 1;
        }
    }

    /// Reads the array that starts here: calls `item` at each element, which `item` has to pass.
    pub(super) fn items(&mut self, mut item: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        self.pos += 1;
        let mut comma = None;
        loop {
            match self.space() {
                Some(b']') => {
                    self.pos += 1;
                    self.note_comma(comma);
                    return Ok(());
                }
                Some(_) => item(self)?,
                None => return Err(Fault::End),
            }
            match self.space() {
                Some(b',') => comma = Some(self.pos),
                Some(b']') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(_) => return Err(Fault::Unexpected(self.pos, "expected `,` or `]`")),
                None => return Err(Fault::End),
            }
            self.pos += 1;
        }
    }

    /// Counts the comma before a closing bracket.
    pub(super) fn note_comma(&mut self, comma: Option<usize>) {
        if let Some(at) = comma {
            self.quirks.note(Quirk::TrailingComma, at);
        }
    }

    /// Reads a key, its colon and the white space behind it.
    fn key(&mut self) -> Scan<Quoted<'a>> {
        let key = self.string()?;
        match self.space() {
            Some(b':') => self.pos += 1,
            Some(_) => return Err(Fault::Unexpected(self.pos, "expected `:`")),
            None => return Err(Fault::End),
        }
        self.space();
        Ok(key)
    }

    /// Reads a key like [`key`](Self::key), when nothing is odd about it.
    pub(super) fn plain_key(&mut self) -> Option<&'a [u8]> {
        let key = self.key().ok()?;
        (!key.escaped && key.not_unicode.is_none()).then_some(key.raw)
    }

    /// Reads the string whose opening quote is here.
    pub(super) fn string(&mut self) -> Scan<Quoted<'a>> {
        let start = self.pos + 1;
        let string = escape::read(&self.data[start..]).ok_or(Fault::End)?;
        self.pos = start + string.raw.len() + 1;
        for (quirk, at) in [
            (Quirk::ControlCharacter, string.control),
            (Quirk::InvalidUtf8, string.not_unicode),
            (Quirk::InvalidEscape, string.bad_escape),
        ] {
            if let Some(at) = at {
                self.quirks.note(quirk, start + at);
            }
        }
        Ok(string)
    }

    /// Reads the value that starts here.
    pub(super) fn value(&mut self) -> Scan<Value<'a>> {
        let start = self.pos;
        let byte = self.peek().ok_or(Fault::End)?;
        match byte {
            b'"' => {
                let string = self.string()?;
                if !string.escaped
                    && let Ok(text) = std::str::from_utf8(string.raw)
                {
                    return Ok(Value::Text(text));
                }
                Ok(Value::Quoted(string.raw))
            }
            b'{' | b'[' => {
                self.skip_container()?;
                let text = &self.data[start..self.pos];
                Ok(if byte == b'{' {
                    Value::Object(text)
                } else {
                    Value::Array(text)
                })
            }
            _ => self.scalar(),
        }
    }

    /// Passes the value that starts here.
    pub(super) fn skip(&mut self) -> Scan<()> {
        match self.peek().ok_or(Fault::End)? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => self.skip_container(),
            _ => self.scalar().map(drop),
        }
    }

    /// Passes the object or array that starts here, however deep.
    fn skip_container(&mut self) -> Scan<()> {
        self.levels.clear();
        let mut comma = None;
        loop {
            // At a value; or, where `comma` is set or the container is new, perhaps at its end.
            match self.space().ok_or(Fault::End)? {
                open @ (b'{' | b'[') => {
                    self.pos += 1;
                    self.levels.push(open == b'{');
                    comma = None;
                    let close = if open == b'{' { b'}' } else { b']' };
                    if self.space().ok_or(Fault::End)? != close {
                        self.start_of_member()?;
                        continue;
                    }
                }
                b'"' => drop(self.string()?),
                _ => drop(self.scalar()?),
            }
            // Behind a value, or at the end of an empty container.
            loop {
                let Some(object) = self.levels.top() else {
                    return Ok(());
                };
                let close = if object { b'}' } else { b']' };
                match self.space().ok_or(Fault::End)? {
                    b',' => {
                        comma = Some(self.pos);
                        self.pos += 1;
                        if self.space().ok_or(Fault::End)? != close {
                            comma = None;
                            self.start_of_member()?;
                            break;
                        }
                    }
                    byte if byte == close => {
                        self.pos += 1;
                        self.note_comma(comma.take());
                        self.levels.pop();
                    }
                    _ if object => {
                        return Err(Fault::Unexpected(self.pos, "expected `,` or `}`"));
                    }
                    _ => return Err(Fault::Unexpected(self.pos, "expected `,` or `]`")),
                }
            }
        }
    }

    /// Passes the key when the innermost container is an object.
    fn start_of_member(&mut self) -> Scan<()> {
        if self.levels.top() != Some(true) {
            return Ok(());
        }
        match self.peek() {
            Some(b'"') => self.key().map(drop),
            Some(_) => Err(Fault::Unexpected(self.pos, "expected a key or `}`")),
            None => Err(Fault::End),
        }
    }

    /// Reads a number or a word.
    fn scalar(&mut self) -> Scan<Value<'a>> {
        let start = self.pos;
        let negative = self.data[start..].starts_with(b"-");
        match self.data.get(start + usize::from(negative)) {
            Some(b'0'..=b'9') => self.number(),
            None => Err(Fault::End),
            Some(_) => self.word(),
        }
    }

    /// Reads a number; its first digit is known to be there.
    fn number(&mut self) -> Scan<Value<'a>> {
        let start = self.pos;
        self.pos += usize::from(self.peek() == Some(b'-'));
        let mut integer = true;
        if self.peek() == Some(b'0') {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            integer = false;
            self.pos += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            integer = false;
            self.pos += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.pos += 1;
            }
            self.digits()?;
        }
        let text = &self.data[start..self.pos];
        match plain_integer(text) {
            Some(number) if integer => Ok(Value::Int(number)),
            _ => Ok(Value::Number(text)),
        }
    }

    /// Passes at least one digit.
    fn digits(&mut self) -> Scan<()> {
        let start = self.pos;
        while let Some(b'0'..=b'9') = self.peek() {
            self.pos += 1;
        }
        match self.peek() {
            _ if self.pos > start => Ok(()),
            Some(_) => Err(Fault::Unexpected(self.pos, "expected a digit")),
            None => Err(Fault::End),
        }
    }

    /// Reads a word that stands for a value.
    fn word(&mut self) -> Scan<Value<'a>> {
        const WORDS: [(&[u8], Option<Value<'static>>); 12] = [
            (b"true", Some(Value::Bool(true))),
            (b"false", Some(Value::Bool(false))),
            (b"null", Some(Value::Null)),
            (b"NaN", None),
            (b"nan", None),
            (b"-NaN", None),
            (b"-nan", None),
            (b"Infinity", None),
            (b"inf", None),
            (b"-Infinity", None),
            (b"-inf", None),
            (b"N/A", None),
        ];
        let start = self.pos;
        let rest = &self.data[start..];
        for (word, value) in WORDS {
            if rest.starts_with(word) {
                let end = start + word.len();
                if let Some(byte) = self.data.get(end)
                    && byte.is_ascii_alphanumeric()
                {
                    break;
                }
                self.pos = end;
                return Ok(value.unwrap_or_else(|| {
                    self.quirks.note(Quirk::NonFiniteNumber, start);
                    Value::Null
                }));
            }
            if word.starts_with(rest) {
                return Err(Fault::End);
            }
        }
        Err(Fault::Unexpected(start, "expected a value"))
    }
}

/// Which of the open containers are objects: one bit a level.
#[derive(Debug, Default)]
struct Levels {
    bits: Vec<u64>,
    depth: usize,
}

impl Levels {
    fn clear(&mut self) {
        self.bits.clear();
        self.depth = 0;
    }

    fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        self.bits[word] = self.bits[word] & !(1 << bit) | u64::from(object) << bit;
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn top(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        Some(self.bits[last / 64] >> (last % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    /// Reads `text` as one value with nothing behind it.
    fn read(text: &str) -> Result<Value<'_>, Fault> {
        let mut scanner = Scanner::new(text.as_bytes(), 0);
        scanner.space();
        let value = scanner.value()?;
        match scanner.space() {
            None if scanner.quirks.is_empty() => Ok(value),
            None => Err(Fault::Unexpected(0, "a quirk")),
            Some(_) => Err(Fault::Unexpected(scanner.pos, "more text")),
        }
    }

    #[test]
    fn values_keep_their_text() {
        assert!(matches!(read("-12"), Ok(Value::Int(-12))));
        assert!(matches!(read("-0"), Ok(Value::Int(0))));
        assert!(matches!(read("1e400"), Ok(Value::Number(b"1e400"))));
        assert!(matches!(read("9223372036854775808"), Ok(Value::Number(_))));
        assert!(matches!(read(r#""é""#), Ok(Value::Text("é"))));
        assert!(matches!(read(r#""a\n""#), Ok(Value::Quoted(br"a\n"))));
        assert!(matches!(
            read(r#"[1, {"a": "]"}]"#),
            Ok(Value::Array(br#"[1, {"a": "]"}]"#))
        ));
        assert!(matches!(
            read(r#" {"a": [[]]} "#),
            Ok(Value::Object(br#"{"a": [[]]}"#))
        ));
        assert!(matches!(read("null"), Ok(Value::Null)));
    }

    #[test]
    fn faults_are_where_the_text_goes_wrong() {
        for (text, at) in [
            ("01", 1),
            ("-x", 0),
            ("1.x", 2),
            ("1e+x", 3),
            ("nulll", 0),
            ("[1 2]", 3),
            ("[1,,2]", 3),
            ("[,]", 1),
            ("{,}", 1),
            (r#"{"a" 1}"#, 5),
            (r#"{"a":}"#, 5),
            (r#"{"a":1 "b":2}"#, 7),
            (r#"{"a":1,,}"#, 7),
            ("[1}", 2),
            (r#"[{"a":[]]"#, 8),
            ("]", 0),
        ] {
            assert!(
                matches!(read(text), Err(Fault::Unexpected(found, _)) if found == at),
                "{text}: {:?}",
                read(text)
            );
        }
        for text in [
            "", "[", "{", "[1", "[1,", r#"{"a"#, r#"{"a""#, r#"{"a":"#, "-", "1.", "nul", "N/",
            "\"",
        ] {
            assert_eq!(read(text).err(), Some(Fault::End), "{text}");
        }
    }

    #[test]
    fn levels_are_remembered_beyond_one_word() {
        let mut levels = Levels::default();
        let object = |depth: usize| depth.is_multiple_of(3);
        for depth in 0..300 {
            levels.push(object(depth));
        }
        for depth in (100..300).rev() {
            assert_eq!(levels.top(), Some(object(depth)));
            levels.pop();
        }
        levels.push(true);
        assert_eq!(levels.top(), Some(true));
        levels.clear();
        assert_eq!(levels.top(), None);
    }

    fn soup() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "{",
            "{",
            "}",
            "}",
            "[",
            "[",
            "]",
            "]",
            ",",
            ",",
            ":",
            ":",
            "\"a\"",
            "\"a\"",
            "\"\\n\"",
            "\"\\u00e9\"",
            "\"\\x\"",
            "\"\"",
            "0",
            "-1",
            "1.5",
            "1e5",
            "1E-5",
            "00",
            "1.",
            "-",
            ".1",
            "true",
            "false",
            "null",
            "nul",
            "nan",
            " ",
            "\n",
            "\u{a0}",
            "x",
        ]);
        prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn without_quirks_exactly_json_is_read(text in soup()) {
            let json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            prop_assert_eq!(read(&text).is_ok(), json, "{}", text);
        }
    }
}
