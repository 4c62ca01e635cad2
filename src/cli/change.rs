//! What counts as a change, as `compare` and `batch check` take it.

/// `--alpha`: how often chance alone may make such a difference.
pub(super) fn alpha(text: &str) -> std::result::Result<f64, String> {
    let alpha: f64 = text
        .parse()
        .map_err(|_| "use a number such as 0.01".to_owned())?;
    // Random splits cannot tell smaller ones apart.
    if (0.0001..=0.5).contains(&alpha) {
        Ok(alpha)
    } else {
        Err("use 0.0001 to 0.5".to_owned())
    }
}

/// `--min-effect`: the smallest change that counts, as a part or in percent.
pub(super) fn effect(text: &str) -> std::result::Result<f64, String> {
    let (digits, scale) = match text.strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text, 1.0),
    };
    let wrong = || "use a part such as 3% or 0.03, at most 100%".to_owned();
    let effect = digits.trim().parse::<f64>().map_err(|_| wrong())? / scale;
    if (0.0..=1.0).contains(&effect) {
        Ok(effect)
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_parts_or_percent() {
        for (text, expected) in [("3%", 0.03), ("0.03", 0.03), ("100 %", 1.0), ("0", 0.0)] {
            let found = effect(text).unwrap();
            assert!((found - expected).abs() < 1e-12, "{text}: {found}");
        }
        for text in ["-1%", "101%", "x", "", "%", "nan"] {
            assert!(effect(text).is_err(), "{text}");
        }
    }

    #[test]
    fn levels_are_those_that_splits_can_tell() {
        assert!(alpha("0.01").is_ok() && alpha("0").is_err() && alpha("0.6").is_err());
    }
}
