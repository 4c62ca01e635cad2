//! Environments in strings, whatever joins their variables, and what is encoded.

use std::ops::Range;

use regex::Regex;

use super::key::{DUMP, is_common};

/// A variable in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: Range<usize>,
    /// Its value without quotes and what separates it from the next.
    pub(super) value: Range<usize>,
}

/// The variables of the environment that `text` has in it, found with the pattern of a name in front of a
/// value; `None` when there is none: too few of them are common.
///
/// ```text
/// PATH=/bin; HOME=/home/alice; X=1        {"PATH": "/bin", "HOME": "/home/alice", "X": "1"}
/// ^^^^ ^^^^  ^^^^ ^^^^^^^^^^^  ^ ^          ^^^^    ^^^^    ^^^^    ^^^^^^^^^^^    ^    ^
/// ```
pub(super) fn variables(name: &Regex, text: &str) -> Option<Vec<Variable>> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut common: Vec<&str> = Vec::new();
    let mut starts = Vec::new();
    for found in name.captures_iter(text) {
        let (Some(all), Some(name)) = (found.get(0), found.get(1)) else {
            continue;
        };
        if common.len() < DUMP && is_common(name.as_str()) && !common.contains(&name.as_str()) {
            common.push(name.as_str());
        }
        starts.push(all.start());
        variables.push(Variable {
            name: name.range(),
            value: all.end()..text.len(),
        });
    }
    if common.len() < DUMP {
        return None;
    }
    for (variable, next) in variables.iter_mut().zip(starts.into_iter().skip(1)) {
        variable.value.end = next.max(variable.value.start);
    }
    let quote = |letter: char| matches!(letter, '"' | '\'' | '\\');
    for variable in &mut variables {
        let all = &text[variable.value.clone()];
        let value = all.trim_start().trim_start_matches(quote);
        variable.value.start += all.len() - value.len();
        let ends = |letter: char| {
            quote(letter)
                || letter.is_whitespace()
                || matches!(letter, ';' | ',' | ')' | '}' | '\0')
        };
        variable.value.end = variable.value.start + value.trim_end_matches(ends).len();
    }
    Some(variables)
}

/// The text that `text` stands for in base64, of either alphabet; `None` when that is none.
pub(super) fn decode_base64(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    let mut letters = text.bytes();
    while let Some(letter) = letters.next() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            // An escaped line end.
            b'\\' => {
                letters.next();
                continue;
            }
            b'\r' | b'\n' => continue,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_text =
        |letter: char| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t' | '\0');
    text.chars().all(is_text).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{VARIABLE, pattern};
    use super::*;

    #[test]
    fn variables_are_found_whatever_joins_them() {
        for text in [
            "PATH=/bin; HOME=/home/a; USER=alice; X=s3cret",
            "PATH=/bin HOME=/home/a USER=alice X=s3cret",
            "env PATH=/bin\nHOME=/home/a\nUSER=alice\nX=s3cret\n",
            "PATH=/bin\0HOME=/home/a\0USER=alice\0X=s3cret\0",
            r#"{"PATH": "/bin", "HOME": "/home/a", "USER": "alice", "X": "s3cret"}"#,
            r#"{\"PATH\":\"/bin\",\"HOME\":\"/home/a\",\"USER\":\"alice\",\"X\":\"s3cret\"}"#,
            "environ({'PATH': '/bin', 'HOME': '/home/a', 'USER': 'alice', 'X': 's3cret'})",
            r"PATH=/bin\nHOME=/home/a\nUSER=alice\nX=s3cret",
            "['PATH=/bin', 'HOME=/home/a', 'USER=alice', 'X=s3cret',]",
        ] {
            let found = variables(&pattern(VARIABLE), text).expect(text);
            let found: Vec<_> = found
                .iter()
                .map(|found| {
                    (
                        &text[found.name.clone()],
                        text[found.value.clone()].trim_end_matches("',]"),
                    )
                })
                .collect();
            let want = [
                ("PATH", "/bin"),
                ("HOME", "/home/a"),
                ("USER", "alice"),
                ("X", "s3cret"),
            ];
            assert_eq!(found, want, "{text}");
        }
        for text in [
            "PATH=/bin; HOME=/home/a",
            "a: PATH, HOME, USER",
            "PATH=1 PATH=2 PATH=3",
        ] {
            assert_eq!(variables(&pattern(VARIABLE), text), None, "{text}");
        }
    }

    #[test]
    fn base64_is_decoded_when_it_is_text() {
        assert_eq!(decode_base64("UEFUSD0vYmlu").as_deref(), Some("PATH=/bin"));
        assert_eq!(
            decode_base64("UEFU\nSD0v\\nYmluCg==").as_deref(),
            Some("PATH=/bin\n")
        );
        assert_eq!(decode_base64("aten_native_vectorized"), None);
    }
}
