//! Secrets behind their keys in the middle of a text: `--token abc`, `password = 'a b'`.

use std::ops::Range;

use regex::Regex;

use super::key::KeyFacts;
use super::secret::Secret;

/// Replaces the values of secret keys in `text`, found with the pattern of a key and what separates it from
/// its value; `None` when there are none.
pub(super) fn replace(
    pattern: &Regex,
    text: &str,
    mut replace: impl FnMut(&str) -> String,
) -> Option<String> {
    let mut changed = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = pattern.captures_at(text, at) {
        let (Some(all), Some(key), Some(between)) = (found.get(0), found.get(1), found.get(2))
        else {
            break;
        };
        at = all.end();
        let secret = KeyFacts::of(key.as_str()).secret;
        let separator = between
            .as_str()
            .trim_matches(['"', '\'', '\\', ' ', '\t', '\n', '\r']);
        // Only an option has its value behind a space.
        if secret == Secret::No || (separator.is_empty() && !key.as_str().starts_with("--")) {
            continue;
        }
        let is_header = separator == ":" && is_header(key.as_str());
        // The quote in front of the key, or else the end of the line.
        let before = text[..key.start()].chars().next_back();
        let end = before
            .filter(|letter| matches!(letter, '"' | '\''))
            .unwrap_or('\n');
        let value = value(text, all.end(), secret, is_header.then_some(end));
        let original = &text[value.clone()];
        let is_quoted = value.start > all.end();
        // `password: the` is a sentence, `token::type` a name, `auth==2.4` a version, and `=/x/y` a place.
        let is_value = is_quoted
            || is_header
            || !(original.starts_with([':', '='])
                || (separator == ":" && original.len() < 4)
                || (secret != Secret::Certain && original.starts_with(['/', '~'])));
        if !is_value || !secret.is_in_text(original) {
            continue;
        }
        changed.push_str(&text[copied..value.start]);
        changed.push_str(&replace(original));
        (at, copied) = (value.end, value.end);
    }
    (copied > 0).then(|| changed + &text[copied..])
}

/// True for lines of a request of which all is secret.
fn is_header(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.ends_with("cookie") || key.ends_with("cookies") || key.ends_with("authorization")
}

/// Where the value is that starts at `at`: in quotes, in brackets, or up to the next space. That of
/// a header goes to the end of the line or to the letter `header`.
fn value(text: &str, at: usize, secret: Secret, header: Option<char>) -> Range<usize> {
    let rest = &text[at..];
    // `b'abc'` of Python.
    let skipped = match rest.as_bytes() {
        [b'b' | b'f' | b'r' | b'u', b'\'' | b'"', ..] => 1,
        _ => 0,
    };
    let backslashes = rest[skipped..]
        .bytes()
        .take_while(|byte| *byte == b'\\')
        .count();
    let open = skipped + backslashes;
    if let Some(quote @ (b'"' | b'\'')) = rest.as_bytes().get(open).copied() {
        let start = at + open + 1;
        return start..closing(text, start, quote, backslashes);
    }
    if let Some(end) = header {
        let scheme = ["bearer ", "basic ", "token ", "digest ", "negotiate "]
            .iter()
            .find(|scheme| {
                rest.get(..scheme.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            });
        let start = at + scheme.map_or(0, |scheme| scheme.len());
        let end = text[start..].find(['\n', end]);
        let end = end.map_or(text.len(), |end| start + end);
        return start..start + text[start..end].trim_end().trim_end_matches('\\').len();
    }
    let bare = |from: usize| {
        let ends = |letter: char| match secret {
            Secret::Certain => letter.is_whitespace() || "\"'&".contains(letter),
            _ => letter.is_whitespace() || "\"',;&(){}[]".contains(letter),
        };
        text[from..].find(ends).map_or(text.len(), |end| from + end)
    };
    let is_bracket = rest.starts_with(['{', '[', '(']) && secret == Secret::Certain;
    let end = bare(if is_bracket { bracket(text, at) } else { at });
    let value = text[at..end].trim_end_matches('\\');
    let value = if is_bracket || value.starts_with('[') {
        value
    } else {
        value.trim_end_matches([',', ';', ')', '}', ']', '>', '.'])
    };
    at..at + value.len()
}

/// Where the string that starts at `start` ends: at a quote with so many `backslashes` before it, else
/// at the end of the line.
fn closing(text: &str, start: usize, quote: u8, backslashes: usize) -> usize {
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'\\' => {
                before += 1;
                continue;
            }
            b'\n' => return at,
            _ if byte != quote => {}
            _ if backslashes == 0 && before % 2 == 0 => return at,
            _ if backslashes > 0 && before <= backslashes => return at - before,
            _ => {}
        }
        before = 0;
    }
    text.len()
}

/// Where the bracket ends that opens at `at`; at the end of the line when it is not closed.
fn bracket(text: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, byte) in text.bytes().enumerate().skip(at) {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return place + 1;
                }
            }
            b'\n' => return place,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{ASSIGNMENT, pattern};
    use super::*;

    #[test]
    fn values_go_as_a_whole() {
        for (text, expected) in [
            (
                "password = 'correct horse battery staple' x",
                "password = '*' x",
            ),
            (r#"{"password": "correct horse"}"#, r#"{"password": "*"}"#),
            (
                r#"{\"password\": \"correct horse\"}"#,
                r#"{\"password\": \"*\"}"#,
            ),
            (r#"password="a\"b c" x"#, r#"password="*" x"#),
            ("api_key=abc$123!xyz, lr=1", "api_key=*, lr=1"),
            ("f(password=abc,def)", "f(password=*)"),
            ("password=[x]hunter2", "password=*"),
            ("secrets={'db': 'a b'} x", "secrets=* x"),
            ("Cookie: sid=ab12; x=1\nHost", "Cookie: *\nHost"),
            ("-H 'Cookie: sid=ab12; x=1' url", "-H 'Cookie: *' url"),
            (
                "Authorization: Basic dXNlcjpwdw==",
                "Authorization: Basic *",
            ),
            (
                "PGPASSWORD=x MYSQL_PWD=y wandb_key=z",
                "PGPASSWORD=* MYSQL_PWD=* wandb_key=*",
            ),
            (
                "--password hunter2 --api-key 'a b'",
                "--password * --api-key '*'",
            ),
            ("url?access_token=abc&x=1", "url?access_token=*&x=1"),
            ("api key: abcdef", "api key: *"),
            (
                "token=123456789012 token=b'abcdefgh1'",
                "token=* token=b'*'",
            ),
        ] {
            let replaced = replace(&pattern(ASSIGNMENT), text, |_| "*".to_owned());
            assert_eq!(replaced.as_deref(), Some(expected), "{text}");
        }
        for text in [
            "tokens per second: 123",
            "num_tokens=123456789012 max_tokens: 4096, tokens=4096",
            "tokenizer=abcdefghijkl token_ids=[1, 2]",
            "PWD=/work cache_key=0123456789abcdef forward_pass=1",
            "password=[token-1]. password: the auth=None",
            "the secret life of models",
            "google-auth==2.40.3 PyJWT==2.3.0",
        ] {
            assert_eq!(
                replace(&pattern(ASSIGNMENT), text, |_| "*".to_owned()),
                None,
                "{text}"
            );
        }
    }
}
