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
    use super::*;
    use proptest::prelude::*;

    fn ns(text: &str) -> Time {
        nanoseconds(text.as_bytes())
    }

    #[test]
    fn whole_and_decimal_microseconds_are_exact() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("1", 1000),
            ("1.5", 1500),
            ("1.05", 1050),
            ("1.005", 1005),
            ("-1.005", -1005),
            ("1712195495505582.988", 1_712_195_495_505_582_988),
            ("5110123456789.123", 5_110_123_456_789_123),
            ("9223372036854775.807", i64::MAX),
            ("-9223372036854775.808", i64::MIN),
            ("-11019340845111496", -11_019_340_845_111_496_000),
        ] {
            let expected = match value.checked_mul(1) {
                Some(value) if text != "-11019340845111496" => Time::Ns(value),
                _ => Time::TooBig,
            };
            assert_eq!(ns(text), expected, "{text}");
        }
    }
}
