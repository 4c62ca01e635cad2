//! Statistics for comparing two sets of measurements: exact where that is feasible, otherwise with a
//! random number generator of a fixed seed, so that the same measurements always give the same answer.
//!
//! Nothing here depends on the order of the measurements in a set.

mod bootstrap;
mod permutation;
mod random;
mod robust;

pub use bootstrap::{Interval, interval_of_change};
pub use permutation::{Significance, significance, significance_of_pairs};
pub use robust::deviation;

use crate::units::Ns;

/// Arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Median of times in order; of an even number of them, the mean of the two in the middle, rounded down. `None` of
/// nothing.
pub(crate) fn median_time(sorted: &[Ns]) -> Option<Ns> {
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let upper = *sorted.get(sorted.len() / 2)?;
    // Half of the difference: the sum of the two may leave 64 bits.
    Some(lower + Ns((upper - lower).0 / 2))
}

/// Median; of an even number of values, the mean of the two in the middle. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means_of_few() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let of_times = |times: &[i64]| {
            let times: Vec<Ns> = times.iter().copied().map(Ns).collect();
            median_time(&times).map(|time| time.0)
        };
        assert_eq!(of_times(&[]), None);
        assert_eq!(of_times(&[3]), Some(3));
        assert_eq!(of_times(&[3, 6]), Some(4));
        assert_eq!(of_times(&[-4, -1]), Some(-3));
        assert_eq!(of_times(&[1, 2, 90]), Some(2));
        assert_eq!(of_times(&[i64::MAX, i64::MAX]), Some(i64::MAX));
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, 2.0]), Some(1.5));
    }
}
