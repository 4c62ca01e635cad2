//! Results as JSON: the schema is the types of the result themselves.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

use super::name::is_hidden;

/// `result` as indented JSON with a newline at the end. In texts, characters that a reader cannot see or that
/// turn the reading direction are written as `\uXXXX`, which programs read as the same characters.
///
/// # Errors
///
/// Fails only when a map of the result has keys that are not strings.
pub fn render<T: Serialize>(result: &T) -> serde_json::Result<String> {
    let mut out = Vec::with_capacity(1 << 10);
    let visible = Visible(PrettyFormatter::new());
    result.serialize(&mut serde_json::Serializer::with_formatter(
        &mut out, visible,
    ))?;
    out.push(b'\n');
    String::from_utf8(out).map_err(serde_json::Error::custom)
}

/// Indented, with hidden characters escaped.
struct Visible(PrettyFormatter<'static>);

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_hidden) {
            out.write_all(&rest.as_bytes()[..at])?;
            let hidden = rest[at..].chars().next().unwrap_or_default();
            // As JSON has it: characters beyond the first plane are pairs.
            for unit in hidden.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + hidden.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(out, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn json_ends_with_a_newline() {
        assert_eq!(super::render(&[1]).unwrap(), "[\n  1\n]\n");
    }

    #[test]
    fn what_cannot_be_seen_is_escaped_and_stays_what_it_is() {
        let value = json!({"\u{202e}key": ["a\u{200b}b\u{e0001}", "größe 核\n\u{1b}"], "empty": {}, "none": []});
        let text = super::render(&value).unwrap();
        assert!(text.contains(r#""\u202ekey""#), "{text}");
        assert!(text.contains(r#""a\u200bb\udb40\udc01""#), "{text}");
        assert!(text.contains(r#""größe 核\n\u001b""#), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
        // Otherwise it is what everybody writes.
        let plain = json!({"a": [1, {"b": null}, []], "c": {}});
        let expected = serde_json::to_string_pretty(&plain).unwrap() + "\n";
        assert_eq!(super::render(&plain).unwrap(), expected);
    }
}
