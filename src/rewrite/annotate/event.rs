//! One event, with another time, row and identifiers.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::json::{Kind, Token, Tokens, inner, says};
use super::Processes;
use crate::ingest::{decode_into, parse_micros};
use crate::units::Ns;

/// Identifiers of an input in a merged trace are this far apart; those that are larger become text.
const APART: u64 = 1 << 40;
/// Places in the order of processes that an input has.
const PLACES: i64 = 20_000_000;

/// Writes events again.
pub(super) struct Rewriter<'a> {
    /// Added to every time.
    pub(super) shift: Ns,
    /// In a merged trace: which input it is, and its name.
    pub(super) merged: Option<(usize, &'a str)>,
}

/// Microseconds with all nanoseconds.
pub(super) fn micros(time: Ns) -> String {
    let (sign, size) = (if time.0 < 0 { "-" } else { "" }, time.0.unsigned_abs());
    format!("{sign}{}.{:03}", size / 1_000, size % 1_000)
}

impl Rewriter<'_> {
    /// Appends the event `text` with its new time; on row `tid` when it moves.
    pub(super) fn rewrite(
        &self,
        text: &[u8],
        tid: Option<i64>,
        processes: &Processes,
        out: &mut Vec<u8>,
    ) {
        let mut edits: Vec<(Token, String)> = Vec::new();
        let mut keys: [Option<Token>; 2] = [None, None];
        let mut event_name = None;
        let mut in_args = false;
        for token in Tokens::new(text).filter(|token| token.depth == 1 || token.depth == 2) {
            let level = token.depth - 1;
            match token.kind {
                Kind::Key => {
                    keys[level] = Some(token);
                    if level == 0 {
                        in_args = says(text, token, "args");
                    }
                    continue;
                }
                // A list or an object is no time, row or identifier, whatever its key.
                Kind::Open | Kind::Close => continue,
                Kind::Text | Kind::Plain => {}
            }
            let Some(key) = keys[level] else { continue };
            let is = |wanted| says(text, key, wanted);
            if level == 0 {
                if is("ts") {
                    edits.extend(self.time(text, token).map(|new| (token, new)));
                } else if is("tid") {
                    edits.extend(tid.map(|tid| (token, tid.to_string())));
                } else if is("name") && token.kind == Kind::Text {
                    event_name = Some(token);
                } else if let Some((number, _)) = self.merged {
                    if is("pid") {
                        let number = processes.number(&written(text, token));
                        edits.extend(number.map(|number| (token, number.to_string())));
                    } else if is("id") {
                        edits.push((token, identifier(text, token, number)));
                    }
                }
                continue;
            }
            let Some((number, label)) = self.merged.filter(|_| in_args) else {
                continue;
            };
            if is("correlation") || is("External id") || is("external id") {
                edits.push((token, identifier(text, token, number)));
            } else if is("device") && token.kind == Kind::Plain {
                let place = processes.number(&written(text, token));
                edits.extend(place.map(|place| (token, place.to_string())));
            } else if let Some(name) = event_name {
                if is("name") && token.kind == Kind::Text && says(text, name, "process_name") {
                    let mut old = String::new();
                    decode_into(inner(text, token), &mut old);
                    edits.push((token, Value::String(format!("{label}: {old}")).to_string()));
                } else if is("sort_index") && says(text, name, "process_sort_index") {
                    let old = written(text, token).parse::<i64>().unwrap_or(0);
                    let first = i64::try_from(number).unwrap_or(0).saturating_mul(PLACES);
                    edits.push((token, (first + old.clamp(0, PLACES - 1)).to_string()));
                }
            }
        }
        edits.sort_by_key(|(token, _)| token.start);
        let mut from = 0;
        for (token, new) in edits {
            out.extend_from_slice(&text[from..token.start]);
            out.extend_from_slice(new.as_bytes());
            from = token.end;
        }
        out.extend_from_slice(&text[from..]);
    }

    fn time(&self, text: &[u8], token: Token) -> Option<String> {
        let digits = match token.kind {
            Kind::Plain => &text[token.start..token.end],
            Kind::Text => inner(text, token),
            _ => return None,
        };
        Some(micros(parse_micros(digits)? + self.shift))
    }
}

/// A value as the file has it.
fn written(text: &[u8], token: Token) -> String {
    match token.kind {
        Kind::Text => {
            let mut decoded = String::new();
            decode_into(inner(text, token), &mut decoded);
            Value::String(decoded).to_string()
        }
        _ => String::from_utf8_lossy(&text[token.start..token.end]).into_owned(),
    }
}

/// An identifier that no other input has; 0 stays, for it stands for none.
fn identifier(text: &[u8], token: Token, number: usize) -> String {
    let old = written(text, token);
    match old.parse::<u64>() {
        Ok(0) => old,
        Ok(small) if small < APART && number < 8_000 => {
            (small + (number as u64 + 1) * APART).to_string()
        }
        _ => {
            let plain = old.trim_matches('"');
            let mut named = String::new();
            // Writing to a string cannot fail.
            let _ = write!(named, "{number}/{plain}");
            Value::String(named).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, merged: Option<(usize, &str)>, tid: Option<i64>) -> String {
        let rewriter = Rewriter {
            shift: Ns(-1_000_500),
            merged,
        };
        let numbers = merged.map(|_| {
            [("7".to_owned(), 100_003), ("\"x\"".to_owned(), 5)]
                .into_iter()
                .collect()
        });
        let processes = Processes { numbers };
        let mut out = Vec::new();
        rewriter.rewrite(text.as_bytes(), tid, &processes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_times_and_rows_change() {
        assert_eq!(
            rewritten(
                r#"{"ph":"X","ts": 1002.25 ,"tid":"a","args":{"ts":1,"tid":2}}"#,
                None,
                Some(9)
            ),
            r#"{"ph":"X","ts": 1.750 ,"tid":9,"args":{"ts":1,"tid":2}}"#
        );
        assert_eq!(rewritten(r#"{"ts":"999"}"#, None, None), r#"{"ts":-1.500}"#);
        assert_eq!(rewritten(r#"{"ph":"M"}"#, None, None), r#"{"ph":"M"}"#);
    }

    #[test]
    fn lists_and_objects_stay_as_they_are() {
        let text = r#"{"pid":[7],"tid":{"a":7},"id":[[]],"ts":[1],"args":{"correlation":[[]],"device":[7],"External id":{"a":1}}}"#;
        assert_eq!(rewritten(text, Some((1, "r")), Some(9)), text);
    }

    #[test]
    fn identifiers_of_inputs_stay_apart() {
        let text = r#"{"pid":7,"id":3,"args":{"correlation":4,"External id":0,"device":7,"x":{"device":7}}}"#;
        let first = (3 + (1_u64 << 40)).to_string();
        let second = (4 + (1_u64 << 40)).to_string();
        assert_eq!(
            rewritten(text, Some((0, "r")), None),
            format!(
                r#"{{"pid":100003,"id":{first},"args":{{"correlation":{second},"External id":0,"device":100003,"x":{{"device":7}}}}}}"#
            )
        );
        assert_eq!(
            rewritten(r#"{"pid":"x","id":"0xff"}"#, Some((1, "r")), None),
            r#"{"pid":5,"id":"1/0xff"}"#
        );
        assert_eq!(
            rewritten(
                r#"{"name":"process_name","args":{"name":"a\"b"}}"#,
                Some((1, "rank 1")),
                None
            ),
            r#"{"name":"process_name","args":{"name":"rank 1: a\"b"}}"#
        );
    }
}
