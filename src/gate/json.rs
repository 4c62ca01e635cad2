//! JSON whose objects keep their order, read and written as Python's `json` does it.
//!
//! Records of the evidence chain are compared and hashed by other programs, so their numbers keep the kind
//! they were written in (`9750` and `9750.0` differ in text and are equal in value) and the first of two
//! equal things is the first in the file.

use std::fmt::Write as _;
use std::path::Path;

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::number::python_repr;
use crate::error::{Error, ErrorKind, Result};

/// The fields of an object, in order.
pub type Fields = IndexMap<String, Json>;

/// A JSON value.
///
/// Two values are equal when a reader could not tell them apart: objects whatever the order of their
/// fields, numbers by value (`1` equals `1.0`).
#[derive(Debug, Clone)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction or exponent.
    Int(i128),
    /// Any other number; finite.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Fields),
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b).is_eq() || (*a == 0.0 && *b == 0.0),
            (Self::Int(int), Self::Float(float)) | (Self::Float(float), Self::Int(int)) => {
                is_same(*int, *float)
            }
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            _ => false,
        }
    }
}

/// Whether an integer and a float are the same number, exactly.
fn is_same(int: i128, float: f64) -> bool {
    let converted = int as f64;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast to an integer saturates, and is exact where the floats are equal"
    )]
    let back = converted as i128;
    converted.total_cmp(&float).is_eq() && back == int
}

impl Json {
    /// An object without fields.
    pub fn object() -> Self {
        Self::Object(Fields::new())
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// When it is no JSON (`NaN` is none) or an object has a field twice, with line and column: readers
    /// differ in which of the two counts, so a record could say one thing here and another elsewhere.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::new(ErrorKind::Json, format!("is no valid JSON: {error}")))
    }

    /// Reads the object in the file at `path`.
    ///
    /// # Errors
    /// When the file is not there, cannot be read, is no UTF-8 or no JSON, or holds no object.
    pub fn read_object(path: &Path) -> Result<Self> {
        Ok(Self::read_object_and_bytes(path)?.0)
    }

    /// Reads the object in the file at `path`, with the bytes it was read from.
    pub(crate) fn read_object_and_bytes(path: &Path) -> Result<(Self, Vec<u8>)> {
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(ErrorKind::NotFound, "no such file or directory").in_file(path)
            }
            _ => Error::io(path, error),
        })?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            Error::new(ErrorKind::Json, "is no valid UTF-8")
                .at(error.valid_up_to() as u64)
                .in_file(path)
        })?;
        let value = Self::parse(text).map_err(|error| error.in_file(path))?;
        if !matches!(value, Self::Object(_)) {
            let message = "holds no JSON object at its top level";
            return Err(Error::new(ErrorKind::Invalid, message).in_file(path));
        }
        Ok((value, bytes))
    }

    /// The field `key` of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Self::Object(fields) => fields.get(key),
            _ => None,
        }
    }

    /// The field at the end of a path of keys; `null` where there is none.
    pub fn at(&self, path: &[&str]) -> &Json {
        path.iter()
            .try_fold(self, |value, key| value.get(key))
            .unwrap_or(&Self::Null)
    }

    /// The first of `keys` that is there, whatever its value; `null` when none is.
    pub fn first(&self, keys: &[&str]) -> &Json {
        keys.iter()
            .find_map(|key| self.get(key))
            .unwrap_or(&Self::Null)
    }

    /// Sets the field `key`; what is no object becomes one.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Json>) {
        if !matches!(self, Self::Object(_)) {
            *self = Self::object();
        }
        if let Self::Object(fields) = self {
            fields.insert(key.into(), value.into());
        }
    }

    /// The field `key`, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        match self {
            Self::Object(fields) => fields.get_mut(key),
            _ => None,
        }
    }

    /// Takes the field `key` out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        match self {
            Self::Object(fields) => fields.shift_remove(key),
            _ => None,
        }
    }

    /// The fields of an object; none of anything else.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Json)> {
        let fields = match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        };
        fields
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value))
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Json] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a list, to change them.
    pub fn items_mut(&mut self) -> &mut [Json] {
        match self {
            Self::List(items) => items,
            _ => &mut [],
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a string that is not empty.
    pub fn as_name(&self) -> Option<&str> {
        self.as_str().filter(|text| !text.is_empty())
    }

    /// A number; `true` and `false` are none.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(int) => Some(*int as f64),
            Self::Float(float) => Some(*float).filter(|float| float.is_finite()),
            _ => None,
        }
    }

    /// A number that is written as an integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => i64::try_from(*int).ok(),
            _ => None,
        }
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// True for an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// True for a list.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// True for the boolean `true` and nothing else.
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// Calls `change` on every number, at any depth.
    pub fn each_number(&mut self, change: &mut impl FnMut(f64) -> f64) {
        match self {
            Self::Int(int) => *self = change(*int as f64).into(),
            Self::Float(float) => *self = change(*float).into(),
            Self::List(items) => items.iter_mut().for_each(|item| item.each_number(change)),
            Self::Object(fields) => {
                for (_, value) in fields.iter_mut() {
                    value.each_number(change);
                }
            }
            _ => {}
        }
    }

    /// As text with two spaces of indent and a line break at the end: what records are written as.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out.push('\n');
        out
    }

    /// As text in one line.
    pub fn to_line(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None);
        out
    }

    fn write(&self, out: &mut String, indent: Option<usize>) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(int) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "{int}");
            }
            Self::Float(float) => out.push_str(&python_repr(*float)),
            Self::Text(text) => write_text(out, text),
            Self::List(items) => {
                let items = items.iter().map(|item| (None, item));
                write_all(out, indent, ['[', ']'], items);
            }
            Self::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| (Some(key), value));
                write_all(out, indent, ['{', '}'], fields);
            }
        }
    }
}

fn write_all<'a>(
    out: &mut String,
    indent: Option<usize>,
    [open, close]: [char; 2],
    items: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Json)>,
) {
    let empty = items.len() == 0;
    let inner = indent.map(|indent| indent + 2);
    let line = |out: &mut String, indent: Option<usize>| {
        if let Some(indent) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    out.push(open);
    for (number, (key, value)) in items.enumerate() {
        if number > 0 {
            out.push_str(if indent.is_some() { "," } else { ", " });
        }
        line(out, inner);
        if let Some(key) = key {
            write_text(out, key);
            out.push_str(": ");
        }
        value.write(out, inner);
    }
    if !empty {
        line(out, indent);
    }
    out.push(close);
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Json;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> std::result::Result<Json, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, value: bool) -> std::result::Result<Json, E> {
                Ok(Json::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> std::result::Result<Json, E> {
                Ok(Json::Int(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> std::result::Result<Json, E> {
                Ok(Json::Int(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> std::result::Result<Json, E> {
                Ok(Json::Float(value))
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Json, E> {
                Ok(Json::Text(value.to_owned()))
            }

            fn visit_string<E>(self, value: String) -> std::result::Result<Json, E> {
                Ok(Json::Text(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> std::result::Result<Json, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Json::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut entries: A,
            ) -> std::result::Result<Json, A::Error> {
                let mut fields = Fields::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if fields.contains_key(&key) {
                        let message = format!("the field '{key}' comes twice");
                        return Err(serde::de::Error::custom(message));
                    }
                    fields.insert(key, entries.next_value()?);
                }
                Ok(Json::Object(fields))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Json {
    /// What is no number is `null`.
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Float(value)
        } else {
            Self::Null
        }
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Int(value.into())
    }
}

impl From<usize> for Json {
    fn from(value: usize) -> Self {
        Self::Int(i128::try_from(value).unwrap_or(i128::MAX))
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&Json> for Json {
    fn from(value: &Json) -> Self {
        value.clone()
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Json> + Clone> From<&[T]> for Json {
    fn from(values: &[T]) -> Self {
        Self::List(values.iter().cloned().map(Into::into).collect())
    }
}

/// An object with these fields, in this order.
macro_rules! object {
    ($($key:expr => $value:expr),* $(,)?) => {{
        let mut object = $crate::gate::Json::object();
        $(object.set($key, $value);)*
        object
    }};
}
pub(crate) use object;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_as_python_writes_it() {
        let text = "{\"b\":1,\"a\":[1.0,1e16,1e-5,0.1,-0.0,12345678901234567890],\"c\":{},\"d\":[],\"é\\n\\u0001\":null}";
        let value = Json::parse(text).unwrap();
        assert_eq!(
            value.to_line(),
            "{\"b\": 1, \"a\": [1.0, 1e+16, 1e-05, 0.1, -0.0, 12345678901234567890], \"c\": {}, \"d\": [], \"é\\n\\u0001\": null}"
        );
        assert_eq!(
            object! {"b" => 1_i64, "a" => vec![1.5]}.to_text(),
            "{\n  \"b\": 1,\n  \"a\": [\n    1.5\n  ]\n}\n"
        );
        assert_eq!(
            Json::parse(&value.to_text()).unwrap().to_text(),
            value.to_text()
        );
    }

    #[test]
    fn equality_is_of_values() {
        let parse = |text| Json::parse(text).unwrap();
        assert_eq!(
            parse("{\"a\":1,\"b\":[1.0]}"),
            parse("{\"b\":[1],\"a\":1.0}")
        );
        assert_ne!(parse("[1,2]"), parse("[2,1]"));
        assert_ne!(parse("true"), parse("1"));
        assert_ne!(parse("9007199254740993"), parse("9007199254740992.0"));
        assert_eq!(parse("0.0"), parse("-0.0"));
    }

    #[test]
    fn a_field_that_comes_twice_is_refused() {
        for text in [
            "{\"a\":1,\"b\":2,\"a\":3}",
            "{\"x\":[{\"a\":1,\"a\":1}]}",
            "{\"a\":1,\"\\u0061\":1}",
        ] {
            let error = Json::parse(text).unwrap_err().to_string();
            assert!(
                error.contains("the field 'a' comes twice at line 1 column"),
                "{error}"
            );
        }
        Json::parse("{\"a\":{\"a\":{\"a\":1}}}").unwrap();
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for text in [
            "{\"a\":NaN}",
            "{\"a\":1",
            "{'a':1}",
            "{\"a\":1}x",
            "[1e999]",
        ] {
            let error = Json::parse(text).unwrap_err();
            assert!(error.to_string().contains("line 1 column"), "{error}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
