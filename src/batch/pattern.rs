//! Patterns of paths with named fields, such as `{run}/{strategy}/rank{rank}`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use regex::Regex;

use crate::error::{Error, ErrorKind, Result};

const FIELDS: [&str; 4] = ["run", "strategy", "repeat", "rank"];

/// Where in the path of an input its run, strategy, repeat and rank are told. `{_}` is any name in a
/// folder, `*` any letters of one, `**` any folders. The pattern matches at a folder; what is behind it after
/// a `.`, `_`, `-` or `/` does not matter.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// What a pattern tells about a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) run: Option<String>,
    pub(super) strategy: Option<String>,
    pub(super) repeat: Option<i64>,
    pub(super) rank: Option<i64>,
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |message: String| Error::new(ErrorKind::Usage, message);
        let mut regex = String::from("(?:^|/)");
        let mut seen: Vec<&str> = Vec::new();
        let mut rest = text.trim_matches('/');
        while let Some(letter) = rest.chars().next() {
            if letter == '{' {
                let Some((name, behind)) = rest[1..].split_once('}') else {
                    return Err(wrong(format!("'{text}': a {{ without its }}")));
                };
                match name {
                    "_" => regex.push_str("[^/]+?"),
                    "rank" | "repeat" => {
                        regex.push_str("(?P<");
                        regex.push_str(name);
                        regex.push_str(">[0-9]{1,9})");
                    }
                    name if FIELDS.contains(&name) => {
                        regex.push_str("(?P<");
                        regex.push_str(name);
                        regex.push_str(">[^/]+?)");
                    }
                    other => {
                        let message = format!(
                            "'{text}': no field is called '{other}': use {{run}}, {{strategy}}, {{repeat}}, {{rank}} or {{_}}"
                        );
                        return Err(wrong(message));
                    }
                }
                if let Some(field) = FIELDS.iter().find(|field| **field == name) {
                    if seen.contains(field) {
                        return Err(wrong(format!("'{text}': {{{name}}} occurs twice")));
                    }
                    seen.push(field);
                }
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix("**") {
                regex.push_str(".*");
                rest = behind;
            } else {
                match letter {
                    '*' => regex.push_str("[^/]*"),
                    letter => regex.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
                }
                rest = &rest[letter.len_utf8()..];
            }
        }
        if seen.is_empty() {
            let message =
                format!("'{text}' names none of {{run}}, {{strategy}}, {{repeat}}, {{rank}}");
            return Err(wrong(message));
        }
        regex.push_str("(?:$|[./_-].*$)");
        let regex = Regex::new(&regex).map_err(|_| wrong(format!("'{text}' is no pattern")))?;
        Ok(Self {
            text: text.to_owned(),
            regex,
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Pattern {
    /// What the pattern tells about `path`; `None` when that does not match.
    pub(super) fn fields(&self, path: &str) -> Option<Fields> {
        let found = self.regex.captures(path)?;
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for name in FIELDS {
            if let Some(value) = found.name(name) {
                values.insert(name, value.as_str());
            }
        }
        let text = |name| values.get(name).map(|value| (*value).to_owned());
        let number = |name| values.get(name)?.parse().ok();
        Some(Fields {
            run: text("run"),
            strategy: text("strategy"),
            repeat: number("repeat"),
            rank: number("rank"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pattern: &str, path: &str) -> Option<(String, String, Option<i64>, Option<i64>)> {
        let found = pattern.parse::<Pattern>().unwrap().fields(path)?;
        let or = |text: Option<String>| text.unwrap_or_default();
        Some((or(found.run), or(found.strategy), found.repeat, found.rank))
    }

    #[test]
    fn fields_are_read_from_paths() {
        let found = fields(
            "{run}/{strategy}/rank{rank}",
            "x/j7/ddp/rank12.17.pt.trace.json.gz",
        );
        assert_eq!(found, Some(("j7".into(), "ddp".into(), None, Some(12))));
        let found = fields("{run}-r{repeat}_*_{rank}", "job-r2_host_3.json");
        assert_eq!(found, Some(("job".into(), String::new(), Some(2), Some(3))));
        let found = fields("**/{strategy}/{_}", "a/b/c/t.json");
        assert_eq!(found.map(|found| found.1), Some("c".to_owned()));
        assert_eq!(fields("{run}/rank{rank}", "a/worker1.json"), None);
    }

    #[test]
    fn wrong_patterns_say_why() {
        for (pattern, reason) in [
            ("{run", "without"),
            ("{runs}/a", "no field is called 'runs'"),
            ("{rank}{rank}", "twice"),
            ("a/*", "names none"),
        ] {
            let error = pattern.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
