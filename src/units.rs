//! Integer nanoseconds, half-open spans of them, and how numbers are spelled for people.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::Serialize;

/// A time or a length of time in integer nanoseconds.
///
/// Sums and differences saturate: a file can hold enough week-long events for their sum to leave
/// 64 bits, and that must neither wrap nor stop the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Ns(pub i64);

impl Ns {
    /// Zero nanoseconds.
    pub const ZERO: Self = Self(0);

    /// This time in milliseconds, for display only.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self / whole`, or `None` when `whole` is zero. For display only.
    pub fn ratio(self, whole: Self) -> Option<f64> {
        (whole.0 != 0).then(|| self.0 as f64 / whole.0 as f64)
    }
}

impl Add for Ns {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Ns {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Ns {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Ns {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Ns {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// A half-open span of time `[start, end)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First instant inside.
    pub start: Ns,
    /// First instant after.
    pub end: Ns,
}

impl Span {
    /// The span `[start, end)`.
    pub fn new(start: Ns, end: Ns) -> Self {
        Self { start, end }
    }

    /// `end - start`.
    pub fn len(self) -> Ns {
        self.end - self.start
    }

    /// True when no instant is inside.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// True when `start <= at < end`.
    pub fn contains(self, at: Ns) -> bool {
        self.start <= at && at < self.end
    }
}

/// A ratio in percent with one decimal, without its sign `%`.
pub(crate) fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    if !value.is_finite() {
        "n/a".to_owned()
    } else if ratio == 0.0 {
        "0".to_owned()
    } else if value > 0.0 && value < 0.05 {
        "<0.1".to_owned()
    } else if ratio < 1.0 && value >= 99.95 {
        ">99.9".to_owned()
    } else {
        grouped(&format!("{value:.1}"))
    }
}

/// Puts a comma before every third digit of the whole part.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, digits) = number.split_at(usize::from(number.starts_with(['+', '-'])));
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = String::with_capacity(number.len() + whole.len() / 3);
    out.push_str(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(rest);
    out
}
