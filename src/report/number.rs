//! The one display form of numbers in reports for people.
//!
//! Thousands are separated by commas. Zero is written `0`; a value that is not zero but would be
//! rounded to it is written `<0.001` or `>-0.001`, so that a zero in a report is exact.

use super::document::Value;
use crate::units::Ns;
pub(crate) use crate::units::{grouped, percent};

/// Any value that is no text; units are the column's.
pub(crate) fn spelled(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Link { text, .. } => text.clone(),
        Value::Ns(time) => ms(*time),
        Value::NsChange(time) => ms_change(*time),
        Value::Count(value) => count(*value),
        Value::Id(value) => value.to_string(),
        Value::Bytes(value) => mib(*value),
        Value::Number(value) => number(*value),
        Value::Percent(ratio) => percent(*ratio),
        Value::PercentChange(ratio) => percent_change(*ratio),
        Value::Missing => "—".to_owned(),
        Value::NotApplicable => "n/a".to_owned(),
        Value::Blank => String::new(),
    }
}

/// A time in milliseconds with three decimals, without its unit.
pub(crate) fn ms(time: Ns) -> String {
    match time.0 {
        0 => "0".to_owned(),
        1..=500 => "<0.001".to_owned(),
        -500..=-1 => ">-0.001".to_owned(),
        ns => thousandths(ns),
    }
}

/// A difference of times in milliseconds, always with its sign.
pub(crate) fn ms_change(time: Ns) -> String {
    match time.0 {
        1..=500 => "<+0.001".to_owned(),
        501.. => format!("+{}", thousandths(time.0)),
        _ => ms(time),
    }
}

/// A number of things.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// `1 step`, `2 steps`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A number of bytes in MiB with three decimals, without its unit.
pub(crate) fn mib(bytes: i64) -> String {
    match bytes as f64 / f64::from(1 << 20) {
        0.0 => "0".to_owned(),
        small if small.abs() < 0.0005 => if small > 0.0 { "<0.001" } else { ">-0.001" }.to_owned(),
        large => grouped(&format!("{large:.3}")),
    }
}

/// A number with three digits behind the point; very large and very small ones with their exponent.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "n/a".to_owned(),
        0.0 => "0".to_owned(),
        size if (0.001..1e15).contains(&size) => grouped(&format!("{value:.3}")),
        _ => format!("{value:.3e}"),
    }
}

/// A relative difference in percent, always with its sign.
pub(crate) fn percent_change(ratio: f64) -> String {
    let value = ratio * 100.0;
    if !value.is_finite() {
        "n/a".to_owned()
    } else if ratio == 0.0 {
        "0".to_owned()
    } else if value.abs() < 0.05 {
        let text = if value > 0.0 { "<+0.1" } else { ">-0.1" };
        text.to_owned()
    } else {
        grouped(&format!("{value:+.1}"))
    }
}

/// Nanoseconds as milliseconds with three decimals; halves round to even.
fn thousandths(ns: i64) -> String {
    let size = ns.unsigned_abs();
    let (whole, rest) = (size / 1000, size % 1000);
    let micros = whole + u64::from(rest > 500 || (rest == 500 && whole % 2 == 1));
    let sign = if ns < 0 && micros > 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", count(micros / 1000), micros % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_three_decimals_and_exact_zeros() {
        for (ns, text) in [
            (0, "0"),
            (1, "<0.001"),
            (499, "<0.001"),
            (500, "<0.001"),
            (501, "0.001"),
            (1_500, "0.002"),
            (2_500, "0.002"),
            (4_209_958, "4.210"),
            (1_234_567_890_123, "1,234,567.890"),
            (-1_000_000, "-1.000"),
            (-1, ">-0.001"),
            (i64::MIN, "-9,223,372,036,854.776"),
        ] {
            assert_eq!(ms(Ns(ns)), text, "{ns}");
        }
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(ms_change(Ns(1_500_000)), "+1.500");
        assert_eq!(ms_change(Ns(-1_500_000)), "-1.500");
        assert_eq!(ms_change(Ns(3)), "<+0.001");
        assert_eq!(ms_change(Ns(-3)), ">-0.001");
        assert_eq!(ms_change(Ns(501)), "+0.001");
        assert_eq!(ms_change(Ns(-501)), "-0.001");
        assert_eq!(ms_change(Ns(0)), "0");
        assert_eq!(percent_change(0.123), "+12.3");
        assert_eq!(percent_change(-12.345), "-1,234.5");
        assert_eq!(percent_change(0.0001), "<+0.1");
        assert_eq!(percent_change(-0.0001), ">-0.1");
        assert_eq!(percent_change(f64::NAN), "n/a");
    }

    #[test]
    fn percentages_never_round_to_nothing_or_everything() {
        assert_eq!(percent(0.0), "0");
        assert_eq!(percent(0.0004), "<0.1");
        assert_eq!(percent(0.312), "31.2");
        assert_eq!(percent(0.9999), ">99.9");
        assert_eq!(percent(1.0), "100.0");
        assert_eq!(percent(25.5), "2,550.0");
        assert_eq!(percent(f64::INFINITY), "n/a");
    }

    #[test]
    fn bytes_and_plain_numbers_have_three_decimals() {
        assert_eq!(mib(0), "0");
        assert_eq!(mib(1), "<0.001");
        assert_eq!(mib(-1), ">-0.001");
        assert_eq!(mib(3 << 19), "1.500");
        assert_eq!(mib(i64::MAX), "8,796,093,022,208.000");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(-1234.5), "-1,234.500");
        assert_eq!(number(0.000_12), "1.200e-4");
        assert_eq!(number(1e18), "1.000e18");
        assert_eq!(number(f64::NAN), "n/a");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(count(999), "999");
        assert_eq!(count(3_653), "3,653");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
