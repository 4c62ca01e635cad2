//! Numbers rounded and spelled as Python does it, so that records say the same to the digit.

/// `value` with `digits` decimals, as Python's `round`: the nearest decimal to the exact binary value, of
/// two equally near ones the even.
pub fn round(value: f64, digits: usize) -> f64 {
    // The formatter rounds the exact value, ties to even, and the parser gives the nearest float.
    format!("{value:.digits$}").parse().unwrap_or(value)
}

/// `value` as Python's `repr` spells it: the fewest digits that read back the same, `1e+16` and `1e-05`
/// where plain digits would be long.
pub fn python_repr(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".to_owned()
        } else if value > 0.0 {
            "inf".to_owned()
        } else {
            "-inf".to_owned()
        };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Names as a Python list: `['seed', 'dtype']`.
pub(crate) fn python_list<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| {
            format!(
                "'{}'",
                name.as_ref().replace('\\', "\\\\").replace('\'', "\\'")
            )
        })
        .collect();
    format!("[{}]", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_of_the_exact_value() {
        for (value, digits, rounded) in [
            (0.125, 2, 0.12),
            (2.675, 2, 2.67),
            (0.005, 2, 0.01),
            (331.979_999_999_999_56, 3, 331.98),
            (0.5, 0, 0.0),
            (1.5, 0, 2.0),
            (2.5, 0, 2.0),
            (-0.125, 2, -0.12),
            (8000.004 - 8000.0, 2, 0.0),
            (12.603_633_06, 6, 12.603_633),
        ] {
            assert!((round(value, digits) - rounded).abs() < 1e-15, "{value}");
        }
    }

    #[test]
    fn spelling() {
        for (value, text) in [
            (24.0, "24.0"),
            (-1.0, "-1.0"),
            (0.0, "0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e22, "1.5e+22"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (1e100, "1e+100"),
            (9782.74, "9782.74"),
        ] {
            assert_eq!(python_repr(value), text);
        }
    }
}
