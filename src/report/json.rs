//! Results as JSON: the schema is the types of the result themselves.

use serde::Serialize;

/// `result` as indented JSON with a newline at the end.
///
/// # Errors
///
/// Fails only when a map of the result has keys that are not strings.
pub fn render<T: Serialize>(result: &T) -> serde_json::Result<String> {
    let mut out = serde_json::to_string_pretty(result)?;
    out.push('\n');
    Ok(out)
}

#[cfg(test)]
mod tests {
    #[test]
    fn json_ends_with_a_newline() {
        assert_eq!(super::render(&[1]).unwrap(), "[\n  1\n]\n");
    }
}
