//! Text that the scalar reader lets pass, as the JSON that says the same.

use super::escape;

/// Appends to `out` what `text` says in strict JSON, where the [scalar reader](super::text) has
/// passed `text`: control characters escaped, what is no Unicode as U+FFFD, unknown escapes with
/// their backslash escaped, `NaN` and its kin as null, no comma before a closing bracket. Every
/// other byte stays.
pub(crate) fn mend(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        let len = match byte {
            b'"' => {
                let Some(string) = escape::read(behind) else {
                    out.extend_from_slice(rest);
                    return;
                };
                out.push(b'"');
                if string.is_odd() {
                    escape::strict_into(string.raw, out);
                } else {
                    out.extend_from_slice(string.raw);
                }
                out.push(b'"');
                string.raw.len() + 2
            }
            b',' => {
                let next = behind.iter().find(|byte| !escape::is_space(**byte));
                if !matches!(next, Some(b'}' | b']')) {
                    out.push(b',');
                }
                1
            }
            b'-' | b'0'..=b'9'
                if *byte != b'-' || behind.first().is_some_and(u8::is_ascii_digit) =>
            {
                let part =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
                let len = rest.iter().take_while(part).count();
                out.extend_from_slice(&rest[..len]);
                len
            }
            b'-' | b'a'..=b'z' | b'A'..=b'Z' => {
                let letter = |byte: &&u8| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'-');
                let len = rest.iter().take_while(letter).count();
                let word = &rest[..len];
                let known = matches!(word, b"true" | b"false" | b"null");
                out.extend_from_slice(if known { word } else { b"null" });
                len
            }
            byte => {
                out.push(*byte);
                1
            }
        };
        rest = &rest[len..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text::Scanner;
    use super::*;

    fn mended(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        mend(text, &mut out);
        out
    }

    #[test]
    fn each_quirk_has_one_strict_form() {
        for (text, strict) in [
            (&b"{\"a\":[1 , ], }"[..], &b"{\"a\":[1  ] }"[..]),
            (
                b"[NaN,-inf , N/A,Infinity,nan]",
                b"[null,null , null,null,null]",
            ),
            (b"[true,false,null,\"NaN\"]", b"[true,false,null,\"NaN\"]"),
            (b"[-1.5e+10,1E5,0]", b"[-1.5e+10,1E5,0]"),
            (b"\"a\tb\x01\"", b"\"a\\tb\\u0001\""),
            (b"\"C:\\code\\new\"", b"\"C:\\\\code\\new\""),
            (b"\"\\u12\\ud83d\"", "\"\\\\u12\u{fffd}\"".as_bytes()),
            (b"\"\\ud83d\\ude00\\\"\"", b"\"\\ud83d\\ude00\\\"\""),
            (b"\"a\xffb\xc3\"", "\"a\u{fffd}b\u{fffd}\"".as_bytes()),
            (b"\"\\\x01,]\"", b"\"\\\\\\u0001,]\""),
            (b"{\"k\\q\":\"\\/\"}", b"{\"k\\\\q\":\"\\/\"}"),
        ] {
            let got = mended(text);
            assert_eq!(
                got,
                strict,
                "{} became {}",
                String::from_utf8_lossy(text),
                String::from_utf8_lossy(&got)
            );
        }
    }

    /// Text out of pieces that are odd in every way.
    fn soup() -> impl Strategy<Value = Vec<u8>> {
        let token = prop::sample::select(vec![
            &b"{"[..],
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\"a\"",
            b"\"\\c\"",
            b"\"\x01\"",
            b"\"\xff\"",
            b"\"\\ud800\"",
            b"1",
            b"-2.5e3",
            b"NaN",
            b"-inf",
            b"N/A",
            b"null",
            b"true",
            b" ",
            b"\n",
        ]);
        prop::collection::vec(token, 0..16).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn what_the_scalar_reader_passes_becomes_json(text in soup()) {
            let mut scanner = Scanner::new(&text, 0);
            if scanner.skip().is_ok() {
                let strict = mended(&text[..scanner.pos]);
                prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&strict).is_ok());
                if scanner.quirks.is_empty() {
                    prop_assert_eq!(&strict, &text[..scanner.pos]);
                }
                prop_assert_eq!(mended(&strict), strict);
            }
        }
    }
}
