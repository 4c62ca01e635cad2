//! Intervals by the bootstrap: what else the measurements could have been.
//!
//! Source: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), the percentile
//! interval.

use super::median;
use super::random::Random;

const RESAMPLES: usize = 4_000;

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The interval that holds the relative change of the median from `a` to `b` with probability
/// `confidence` (such as 0.95), by the percentile bootstrap; `None` with fewer than two measurements on
/// a side or a median of zero.
pub fn interval_of_change(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let (a, b) = (sorted(a), sorted(b));
    let mut random = Random::new(0x626f_6f74);
    let mut resampled = |values: &[f64]| -> Option<f64> {
        let drawn: Vec<f64> = values
            .iter()
            .map(|_| values[random.below(values.len())])
            .collect();
        median(&drawn)
    };
    let mut changes: Vec<f64> = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (before, after) = (resampled(&a)?, resampled(&b)?);
        if before == 0.0 {
            return None;
        }
        changes.push(after / before - 1.0);
    }
    changes.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * (RESAMPLES - 1) as f64).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in the list"
        )]
        let place = place as usize;
        changes[place.min(RESAMPLES - 1)]
    };
    let outside = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
    Some(Interval {
        low: at(outside),
        high: at(1.0 - outside),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_change_is_inside_and_zero_is_not() {
        let a: Vec<f64> = (0..20)
            .map(|number| 100.0 + f64::from(number % 5))
            .collect();
        let b: Vec<f64> = a.iter().map(|value| value * 1.2).collect();
        let interval = interval_of_change(&a, &b, 0.95).unwrap();
        assert!(interval.low > 0.1 && interval.low < 0.2 && interval.high > 0.2);
        assert!(interval.high < 0.3);
        let same = interval_of_change(&a, &a, 0.95).unwrap();
        assert!(same.low <= 0.0 && same.high >= 0.0);
    }

    #[test]
    fn too_little_gives_no_interval() {
        assert_eq!(interval_of_change(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(interval_of_change(&[0.0, 0.0], &[1.0, 2.0], 0.95), None);
    }
}
