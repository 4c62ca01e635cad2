//! Named values in a frame: facts about a process, and the counts at its end.
//!
//! A field is the length of its name (one byte) and of its value (four bytes), then both.

use crate::read::u32_at;

/// Adds the field `name` to `bytes`. A name or value that is too long is cut.
pub fn push_field(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
    let value = &value[..value.len().min(1 << 20)];
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(value);
}

/// The fields in `bytes`, up to the first that is cut.
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    std::iter::from_fn(move || {
        let name = usize::from(*bytes.first()?);
        let value = usize::try_from(u32_at(bytes, 1)?).ok()?;
        let rest = &bytes[5..];
        let (name, rest) = rest.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        bytes = rest;
        Some((std::str::from_utf8(name).unwrap_or(""), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_up_to_the_first_that_is_cut() {
        let mut bytes = Vec::new();
        push_field(&mut bytes, "pid", b"7");
        push_field(&mut bytes, "command", b"a\0b");
        push_field(&mut bytes, "", b"");
        let all: Vec<_> = fields(&bytes).collect();
        assert_eq!(all, [("pid", &b"7"[..]), ("command", b"a\0b"), ("", b"")]);
        for end in 0..bytes.len() {
            let some: Vec<_> = fields(&bytes[..end]).collect();
            assert!(some.len() < 3 && all.starts_with(&some), "cut at {end}");
        }
    }
}
