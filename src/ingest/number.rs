//! Decimal text to exact integers.
//!
//! Timestamps have up to 19 significant digits and an `f64` holds 15 to 17, so no number of a trace
//! ever goes through floating point. Everything here is bounded by the length of the text, however
//! large an exponent it names.

/// What the text of a time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Nanoseconds, rounded half to even.
    Ns(i64),
    /// A number, but of more nanoseconds than 64 bits hold.
    TooBig,
    /// Not a decimal number.
    NotANumber,
}

/// Nanoseconds from the text of a number of microseconds.
#[inline]
pub(super) fn nanoseconds(text: &[u8]) -> Time {
    match short_nanoseconds(text) {
        Some(ns) => Time::Ns(ns),
        None => long_nanoseconds(text),
    }
}

/// The time that the text of a number of microseconds names, where 64 bits hold it.
pub(crate) fn parse_micros(text: &[u8]) -> Option<crate::units::Ns> {
    match nanoseconds(text) {
        Time::Ns(ns) => Some(crate::units::Ns(ns)),
        Time::TooBig | Time::NotANumber => None,
    }
}

/// The common spelling: at most 15 digits, then nothing or a point and at most three more.
#[inline]
fn short_nanoseconds(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut value = 0_i64;
    let mut at = 0;
    while let Some(digit) = digits.get(at).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    if at == 0 || at > 15 {
        return None;
    }
    let nanoseconds = match digits[at..] {
        [] => value * 1000,
        [b'.', a] => value * 1000 + digit(a)? * 100,
        [b'.', a, b] => value * 1000 + digit(a)? * 100 + digit(b)? * 10,
        [b'.', a, b, c] => value * 1000 + digit(a)? * 100 + digit(b)? * 10 + digit(c)?,
        _ => return None,
    };
    Some(if negative { -nanoseconds } else { nanoseconds })
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

#[cold]
fn long_nanoseconds(text: &[u8]) -> Time {
    let Some(decimal) = Decimal::parse(text) else {
        return Time::NotANumber;
    };
    let Some((whole, rest)) = decimal.scaled(3) else {
        return Time::TooBig;
    };
    let up = match rest {
        Rest::AboveHalf => 1,
        Rest::Half => whole & 1,
        Rest::Zero | Rest::BelowHalf => 0,
    };
    match signed(decimal.negative, whole + up) {
        Some(value) => i64::try_from(value).map_or(Time::TooBig, Time::Ns),
        None => Time::TooBig,
    }
}

/// The value of an integral decimal text, when it lies between `i64::MIN` and `u64::MAX`.
/// `5`, `5.0` and `5e0` are all five; `5.5` is `None`.
pub(super) fn integer(text: &[u8]) -> Option<i128> {
    let decimal = Decimal::parse(text)?;
    let (whole, rest) = decimal.scaled(0)?;
    if rest != Rest::Zero {
        return None;
    }
    let value = signed(decimal.negative, whole)?;
    (i128::from(i64::MIN)..=i128::from(u64::MAX))
        .contains(&value)
        .then_some(value)
}

/// The 64 bits of an id: an unsigned number, or a negative one in two's complement.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bits are wanted"
)]
pub(super) fn bits(text: &[u8]) -> Option<u64> {
    integer(text).map(|value| value as u64)
}

/// The 64 bits of an id written as a string: decimal, hexadecimal after `0x`, else a hash that is
/// the same on every machine and in every release. 0, which stands for an absent id, only for
/// texts that are empty or name the number 0.
pub(super) fn text_bits(text: &str) -> u64 {
    let text = text.trim_ascii();
    if let Some(value) = bits(text.as_bytes()) {
        return value;
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
        && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Ok(value) = u64::from_str_radix(hex, 16)
    {
        return value;
    }
    if text.is_empty() {
        return 0;
    }
    // FNV-1a: short, well known, and good enough for names that somebody chose.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.max(1)
}

fn signed(negative: bool, magnitude: u128) -> Option<i128> {
    let value = i128::try_from(magnitude).ok()?;
    Some(if negative { -value } else { value })
}

/// What was cut off behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Zero,
    BelowHalf,
    Half,
    AboveHalf,
}

/// The parts of a decimal text: `-12.34e5` is `12`, `34` and 5.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (whole, text) = digits(text);
        let (fraction, text) = match text {
            [b'.', rest @ ..] => {
                let (fraction, rest) = digits(rest);
                if fraction.is_empty() {
                    return None;
                }
                (fraction, rest)
            }
            _ => (&text[..0], text),
        };
        let exponent = match text {
            [] => 0,
            [b'e' | b'E', rest @ ..] => exponent(rest)?,
            _ => return None,
        };
        (!whole.is_empty()).then_some(Self {
            negative,
            whole,
            fraction,
            exponent,
        })
    }

    /// The magnitude times `10^shift`: whole part and what is behind the point. `None` when the
    /// whole part has more than 20 digits.
    fn scaled(&self, shift: i64) -> Option<(u128, Rest)> {
        let digits = || {
            self.whole
                .iter()
                .chain(self.fraction)
                .map(|byte| byte - b'0')
        };
        let Some(first) = digits().position(|digit| digit != 0) else {
            return Some((0, Rest::Zero));
        };
        // The point stands before digit number `point`. No text is long enough for its length to
        // matter beside an exponent that saturated.
        let point = i64::try_from(self.whole.len())
            .ok()?
            .saturating_add(shift)
            .saturating_add(self.exponent);
        let leading = point.saturating_sub(i64::try_from(first).ok()?);
        if leading > 20 {
            return None;
        }
        let Ok(leading) = usize::try_from(leading) else {
            return Some((0, Rest::BelowHalf));
        };
        let mut rest = digits().skip(first);
        let mut whole = 0_u128;
        for _ in 0..leading {
            whole = whole * 10 + u128::from(rest.next().unwrap_or(0));
        }
        let rest = match rest.next() {
            None => Rest::Zero,
            Some(next) => match (next, rest.any(|digit| digit != 0)) {
                (0, false) => Rest::Zero,
                (5, false) => Rest::Half,
                (5.., _) => Rest::AboveHalf,
                _ => Rest::BelowHalf,
            },
        };
        Some((whole, rest))
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(len)
}

/// An exponent; one beyond 64 bits stays at their edge, which is as good as infinite.
fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (digits, rest) = digits(text);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let value = digits.iter().fold(0_i64, |value, byte| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(byte - b'0'))
    });
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn microseconds_become_exact_nanoseconds() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("1", 1_000),
            ("1.5", 1_500),
            ("1.05", 1_050),
            ("1.005", 1_005),
            ("-1.005", -1_005),
            ("-3", -3_000),
            ("1.50000000000000000000", 1_500),
            ("000000000000000000000001.5", 1_500),
            ("1712195495505582.988", 1_712_195_495_505_582_988),
            ("5110123456789.123", 5_110_123_456_789_123),
            ("1623142623460016", 1_623_142_623_460_016_000),
            ("9223372036854775.807", i64::MAX),
            ("-9223372036854775.808", i64::MIN),
            ("1.5e1", 15_000),
            ("2e1", 20_000),
            ("1E+2", 100_000),
            ("1e-3", 1),
            ("12345e-3", 12_345),
            ("0e999999999999999999999", 0),
            ("0.0000000001e10", 1_000),
            ("1000000000000e-12", 1_000),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Time::Ns(value), "{text}");
        }
    }

    #[test]
    fn what_is_finer_than_a_nanosecond_rounds_half_to_even() {
        for (text, value) in [
            ("0.0004", 0),
            ("0.0005", 0),
            ("0.00050000000000000000001", 1),
            ("0.0015", 2),
            ("0.0025", 2),
            ("0.0035", 4),
            ("-0.0015", -2),
            ("-0.0025", -2),
            ("5110123456789.1235", 5_110_123_456_789_124),
            ("5110123456789.1245", 5_110_123_456_789_124),
            ("0.9999", 1_000),
            ("1e-4", 0),
            ("5e-4", 0),
            ("6e-4", 1),
            ("9e-5", 0),
            ("9e-999999999999999999999", 0),
            ("9223372036854775.8074", i64::MAX),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Time::Ns(value), "{text}");
        }
    }

    #[test]
    fn times_beyond_64_bits_are_too_big_and_texts_are_no_numbers() {
        for text in [
            "9223372036854775.8075",
            "9223372036854775.808",
            "-9223372036854775.809",
            "-11019340845111496",
            "1e17",
            "1e400",
            "1e999999999999999999999999",
            "99999999999999999999999999",
            "0.1e20",
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Time::TooBig, "{text}");
        }
        for text in [
            "", "-", ".5", "1.", "+1", "1e", "1e+", "1e1.5", "0x10", "1 2", "abc", "1.2.3", "--1",
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Time::NotANumber, "{text}");
        }
    }

    #[test]
    fn integers_are_taken_in_any_spelling() {
        for (text, value) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5e0", Some(5)),
            ("0.5e1", Some(5)),
            ("500e-2", Some(5)),
            ("-0.0", Some(0)),
            ("5.5", None),
            ("1e-1", None),
            ("18446744073709551615", Some(u64::MAX.into())),
            ("18446744073709551616", None),
            ("-9223372036854775808", Some(i64::MIN.into())),
            ("-9223372036854775809", None),
            ("1e19", Some(10_000_000_000_000_000_000)),
            ("1e20", None),
            ("x", None),
        ] {
            assert_eq!(integer(text.as_bytes()), value, "{text}");
        }
        assert_eq!(bits(b"-1"), Some(u64::MAX));
    }

    #[test]
    fn ids_in_strings_are_numbers_or_hashes() {
        for (text, value) in [
            ("12", 12),
            (" 12 ", 12),
            ("0x1F", 31),
            ("0Xff", 255),
            ("-1", u64::MAX),
            ("", 0),
        ] {
            assert_eq!(text_bits(text), value, "{text}");
        }
        // Written out: the hash of a name must never change.
        assert_eq!(text_bits("a"), 0xaf63_dc4c_8601_ec8c);
        for text in ["0x", "0xg", "0x11112222333344445", "node-1", "1.5"] {
            assert!(
                text_bits(text) != 0 && text_bits(text) != text_bits("a"),
                "{text}"
            );
        }
    }

    /// The same by schoolbook arithmetic on all digits, for small exponents.
    fn slow_nanoseconds(text: &str) -> Time {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().unwrap();
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = format!("{whole}{fraction}");
        let mut cut = i32::try_from(fraction.len()).unwrap() - 3 - exponent;
        while cut < 0 {
            digits.push('0');
            cut += 1;
        }
        while digits.len() <= usize::try_from(cut).unwrap() {
            digits.insert(0, '0');
        }
        let (whole, rest) = digits.split_at(digits.len() - usize::try_from(cut).unwrap());
        let whole = whole.trim_start_matches('0');
        if whole.len() > 30 {
            return Time::TooBig;
        }
        let mut value: i128 = format!("0{whole}").parse().unwrap();
        let half = format!("5{}", "0".repeat(rest.len().saturating_sub(1)));
        if !rest.is_empty() && (rest > half.as_str() || rest == half && value % 2 == 1) {
            value += 1;
        }
        let value = if negative { -value } else { value };
        i64::try_from(value).map_or(Time::TooBig, Time::Ns)
    }

    proptest! {
        #[test]
        fn fast_and_slow_arithmetic_agree(
            text in "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?",
        ) {
            prop_assert_eq!(nanoseconds(text.as_bytes()), slow_nanoseconds(&text));
        }

        #[test]
        fn halves_and_edges_agree_too(
            text in "-?(9223372036854775|[0-9]{1,3})\\.[0-9]{3}(5|50*|50*1|4999|[0-9])",
        ) {
            prop_assert_eq!(nanoseconds(text.as_bytes()), slow_nanoseconds(&text));
        }

        #[test]
        fn any_text_is_answered(text in prop::collection::vec(any::<u8>(), 0..40)) {
            nanoseconds(&text);
            integer(&text);
        }
    }
}
