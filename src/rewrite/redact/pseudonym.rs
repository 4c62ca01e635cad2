//! What replaces what: the same original is always replaced by the same text.

use foldhash::HashMap;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};

/// What is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Token,
    User,
    Host,
    Path,
    Url,
    Email,
    Ip,
    Mac,
}

impl Subject {
    pub(super) const ALL: [Self; 8] = [
        Self::Token,
        Self::User,
        Self::Host,
        Self::Path,
        Self::Url,
        Self::Email,
        Self::Ip,
        Self::Mac,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::User => "user",
            Self::Host => "host",
            Self::Path => "path",
            Self::Url => "url",
            Self::Email => "email",
            Self::Ip => "ip",
            Self::Mac => "mac",
        }
    }
}

/// What was replaced by what.
///
/// It has the originals of all but tokens and keys, of which it has SHA-256 hashes only.
#[derive(Debug, Clone, Default)]
pub struct Pseudonyms {
    numbers: [HashMap<Box<str>, u32>; Subject::ALL.len()],
    /// The largest number of each subject.
    last: [u32; Subject::ALL.len()],
}

const SCHEMA: &str = "tracekit.pseudonyms/v1";

impl Pseudonyms {
    /// What stands for `original`.
    pub(super) fn replace(&mut self, subject: Subject, original: &str) -> String {
        let hash;
        let key = if subject == Subject::Token {
            hash = format!("sha256:{:x}", Hex(&Sha256::digest(original.as_bytes())));
            hash.as_str()
        } else {
            original
        };
        let numbers = &mut self.numbers[subject as usize];
        let number = if let Some(number) = numbers.get(key) {
            *number
        } else {
            let last = &mut self.last[subject as usize];
            *last = last.saturating_add(1);
            numbers.insert(key.into(), *last);
            *last
        };
        format!("[{}-{number}]", subject.as_str())
    }

    /// The originals, in order.
    pub(super) fn originals(&self, subject: Subject) -> Vec<String> {
        let mut originals: Vec<String> = self.numbers[subject as usize]
            .keys()
            .map(ToString::to_string)
            .collect();
        originals.sort_unstable();
        originals
    }

    /// As a JSON document.
    pub fn to_json(&self) -> String {
        let mut document = Map::new();
        document.insert("schema_version".to_owned(), json!(SCHEMA));
        for subject in Subject::ALL {
            let numbers = &self.numbers[subject as usize];
            let sorted: Map<String, Value> = self
                .originals(subject)
                .into_iter()
                .map(|original| {
                    let number = json!(numbers[original.as_str()]);
                    (original, number)
                })
                .collect();
            document.insert(subject.as_str().to_owned(), Value::Object(sorted));
        }
        let mut text = format!("{:#}", Value::Object(document));
        text.push('\n');
        text
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// When `text` is no such document.
    pub fn from_json(text: &str) -> Result<Self> {
        let wrong =
            |reason: &str| Error::new(ErrorKind::Usage, format!("no map of tracekit: {reason}"));
        let document: Value =
            serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        if document["schema_version"] != SCHEMA {
            return Err(wrong("it has another schema"));
        }
        let mut read = Self::default();
        for subject in Subject::ALL {
            let Some(entries) = document[subject.as_str()].as_object() else {
                continue;
            };
            for (original, number) in entries {
                let number = number
                    .as_u64()
                    .and_then(|number| u32::try_from(number).ok())
                    .ok_or_else(|| wrong("a number is missing"))?;
                read.numbers[subject as usize].insert(original.as_str().into(), number);
                let last = &mut read.last[subject as usize];
                *last = number.max(*last);
            }
        }
        Ok(read)
    }
}

struct Hex<'a>(&'a [u8]);

impl std::fmt::LowerHex for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_original_has_the_same_replacement_across_files() {
        let mut first = Pseudonyms::default();
        assert_eq!(first.replace(Subject::Path, "/a/b"), "[path-1]");
        assert_eq!(first.replace(Subject::Path, "/a/c"), "[path-2]");
        assert_eq!(first.replace(Subject::Path, "/a/b"), "[path-1]");
        assert_eq!(first.replace(Subject::Token, "hunter2"), "[token-1]");
        let text = first.to_json();
        assert!(text.contains("/a/b") && !text.contains("hunter2"), "{text}");
        let mut second = Pseudonyms::from_json(&text).expect("a map");
        assert_eq!(second.replace(Subject::Path, "/a/d"), "[path-3]");
        assert_eq!(second.replace(Subject::Path, "/a/c"), "[path-2]");
        assert_eq!(second.replace(Subject::Token, "hunter2"), "[token-1]");
        assert_eq!(Pseudonyms::from_json(&text).expect("a map").to_json(), text);
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"schema_version":"tracekit.pseudonyms/v1","ip":{"a":-1}}"#,
        ] {
            assert!(Pseudonyms::from_json(text).is_err(), "{text}");
        }
    }
}
