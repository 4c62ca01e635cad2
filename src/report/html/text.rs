//! Text made safe for a page.

use super::super::name::visible;

/// `text` as it is, where text or the value of an attribute may stand.
pub(super) fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// `text` where a sentence stands: names that are read from right to left are kept apart from what is around them,
/// for numbers behind one would move into it.
pub(super) fn prose(text: &str) -> String {
    let escaped = escaped(text);
    let Some(first) = escaped.find(is_right_to_left) else {
        return escaped;
    };
    let mut out = String::with_capacity(escaped.len() + 64);
    out.push_str(&escaped[..first]);
    let mut rest = &escaped[first..];
    loop {
        // From one such letter to the last before a letter or digit of the other kind.
        let stops = |character: char| {
            !is_right_to_left(character)
                && (character.is_alphanumeric() || ",;:&<".contains(character))
        };
        let reach = rest.find(stops).unwrap_or(rest.len());
        let end = rest[..reach]
            .char_indices()
            .filter(|(_, character)| is_right_to_left(*character))
            .map(|(place, character)| place + character.len_utf8())
            .next_back()
            .unwrap_or(0);
        out.push_str("<bdi>");
        out.push_str(&rest[..end]);
        out.push_str("</bdi>");
        rest = &rest[end..];
        let next = rest.find(is_right_to_left).unwrap_or(rest.len());
        out.push_str(&rest[..next]);
        rest = &rest[next..];
        if rest.is_empty() {
            return out;
        }
    }
}

/// Letters of scripts that are written from right to left: Hebrew, Arabic, Syriac, Thaana, N'Ko and others.
fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{590}'..='\u{8ff}'
            | '\u{fb1d}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefe}'
            | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}'
    )
}

/// JSON that may stand in a script element: no `<` starts or ends anything there.
pub(super) fn json_in_page(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// `bytes` in base 64 (RFC 4648).
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4_usize {
            let digit = (word >> (18 - 6 * place)) & 63;
            if place <= chunk.len() {
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn names_from_right_to_left_are_kept_apart() {
        assert_eq!(prose("a <b> 1"), "a &lt;b&gt; 1");
        assert_eq!(
            prose("2 runs: שלום עולם 1.360 ms, مرحبا 2 ms"),
            "2 runs: <bdi>שלום עולם</bdi> 1.360 ms, <bdi>مرحبا</bdi> 2 ms"
        );
        assert_eq!(prose("ש"), "<bdi>ש</bdi>");
        assert_eq!(prose("ש&ש"), "<bdi>ש</bdi>&amp;<bdi>ש</bdi>");
    }

    #[test]
    fn data_closes_no_script() {
        assert_eq!(
            json_in_page("\"</script><!--\""),
            "\"\\u003c/script>\\u003c!--\""
        );
    }
}
