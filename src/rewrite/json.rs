//! Strict JSON text in tokens, however deep.

use crate::ingest::decode_into;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The key of a member, with its quotes.
    Key,
    /// A string, with its quotes.
    Text,
    /// A number or a word.
    Plain,
    /// An opening bracket.
    Open,
    /// A closing bracket.
    Close,
}

/// A token of JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// How many brackets are open around it.
    pub(super) depth: usize,
}

/// The tokens of a text that is known to be JSON.
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    /// Which of the open brackets are braces.
    braces: Vec<bool>,
    key_next: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            braces: Vec::new(),
            key_next: false,
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.at;
            let byte = *self.text.get(start)?;
            self.at += 1;
            let mut depth = self.braces.len();
            let kind = match byte {
                b' ' | b'\n' | b'\r' | b'\t' => continue,
                b':' => {
                    self.key_next = false;
                    continue;
                }
                b',' => {
                    self.key_next = self.braces.last() == Some(&true);
                    continue;
                }
                b'{' | b'[' => {
                    self.key_next = byte == b'{';
                    self.braces.push(self.key_next);
                    Kind::Open
                }
                b'}' | b']' => {
                    self.braces.pop();
                    depth = self.braces.len();
                    self.key_next = false;
                    Kind::Close
                }
                b'"' => {
                    self.at += string_len(&self.text[self.at..]);
                    if self.key_next { Kind::Key } else { Kind::Text }
                }
                _ => {
                    let rest = &self.text[self.at..];
                    let more = rest.iter().position(|byte| {
                        matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                    });
                    self.at += more.unwrap_or(rest.len());
                    Kind::Plain
                }
            };
            return Some(Token {
                kind,
                start,
                end: self.at,
                depth,
            });
        }
    }
}

/// How many bytes of `text` belong to the string that started before it, its quote included.
fn string_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = memchr::memchr2(b'"', b'\\', &text[at.min(text.len())..]) {
        at += next;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// The bytes of a string token between its quotes.
pub(super) fn inner(text: &[u8], token: Token) -> &[u8] {
    text.get(token.start + 1..token.end.saturating_sub(1))
        .unwrap_or_default()
}

/// True when a string token says `wanted`.
pub(super) fn says(text: &[u8], token: Token, wanted: &str) -> bool {
    let inner = inner(text, token);
    if !inner.contains(&b'\\') {
        return inner == wanted.as_bytes();
    }
    let mut decoded = String::new();
    decode_into(inner, &mut decoded);
    decoded == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Kind, usize, &str)> {
        Tokens::new(text.as_bytes())
            .map(|token| (token.kind, token.depth, &text[token.start..token.end]))
            .collect()
    }

    #[test]
    fn keys_values_and_depths_are_told_apart() {
        use Kind::{Close, Key, Open, Plain, Text};
        assert_eq!(
            tokens(r#" {"a" : "b" ,"c":[1, -2.5e3,"x\"]"], "d":{}, "e":null} "#),
            [
                (Open, 0, "{"),
                (Key, 1, "\"a\""),
                (Text, 1, "\"b\""),
                (Key, 1, "\"c\""),
                (Open, 1, "["),
                (Plain, 2, "1"),
                (Plain, 2, "-2.5e3"),
                (Text, 2, r#""x\"]""#),
                (Close, 1, "]"),
                (Key, 1, "\"d\""),
                (Open, 1, "{"),
                (Close, 1, "}"),
                (Key, 1, "\"e\""),
                (Plain, 1, "null"),
                (Close, 0, "}"),
            ]
        );
        assert_eq!(tokens("[[\"k\"]]")[2], (Text, 2, "\"k\""));
    }

    #[test]
    fn text_that_is_no_json_ends_all_the_same() {
        for text in ["\"a", "\"a\\", "{\"", "]]]", ",:,", "{\"a\":", "1"] {
            assert!(tokens(text).len() <= text.len(), "{text}");
        }
    }

    #[test]
    fn escaped_keys_say_the_same() {
        let text = r#"{"d\u0075r":1}"#;
        let key = Tokens::new(text.as_bytes()).nth(1).unwrap();
        assert!(says(text.as_bytes(), key, "dur"));
        assert!(!says(text.as_bytes(), key, "dus"));
    }
}
