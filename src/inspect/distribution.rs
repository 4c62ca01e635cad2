//! Where the values of a sample lie.

use crate::units::Ns;

/// Lengths of time in order.
pub(super) struct Lengths(Vec<Ns>);

impl Lengths {
    pub(super) fn new(mut lengths: Vec<Ns>) -> Self {
        lengths.sort_unstable();
        Self(lengths)
    }

    /// Their sum.
    pub(super) fn sum(&self) -> Ns {
        self.0.iter().copied().sum()
    }

    /// The smallest that `percent` of a hundred are not above (nearest rank); `None` when there is none.
    pub(super) fn percentile(&self, percent: usize) -> Option<Ns> {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.max(1) - 1).copied()
    }

    /// The longest.
    pub(super) fn max(&self) -> Option<Ns> {
        self.0.last().copied()
    }

    /// How many are longer than `bound`.
    pub(super) fn above(&self, bound: Ns) -> u64 {
        (self.0.len() - self.0.partition_point(|length| *length <= bound)) as u64
    }
}

/// What the `describe` of pandas says about a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Description {
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) mean: Option<f64>,
    /// Of a sample: divided by one less than the count.
    pub(super) std: Option<f64>,
    /// Minimum, quartiles and maximum; between two values in proportion.
    pub(super) quartiles: [Option<f64>; 5],
}

impl Description {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let sum: f64 = values.iter().sum();
        let mean = (count > 0).then(|| sum / count as f64);
        let squares = mean.map(|mean| {
            values
                .iter()
                .map(|value| (value - mean).powi(2))
                .sum::<f64>()
        });
        let std = squares
            .filter(|_| count > 1)
            .map(|squares| (squares / (count - 1) as f64).sqrt());
        let at = |quarter: usize| {
            let places = count.checked_sub(1)? * quarter;
            let low = values[places / 4];
            let high = values.get(places / 4 + 1).copied().unwrap_or(low);
            Some(low + (high - low) * (places % 4) as f64 / 4.0)
        };
        Self {
            count: count as u64,
            sum,
            mean,
            std,
            quartiles: [0, 1, 2, 3, 4].map(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let lengths = Lengths::new([5, 1, 4, 2, 3].map(Ns).to_vec());
        assert_eq!(lengths.percentile(50), Some(Ns(3)));
        assert_eq!(lengths.percentile(95), Some(Ns(5)));
        assert_eq!(lengths.percentile(20), Some(Ns(1)));
        assert_eq!(lengths.percentile(21), Some(Ns(2)));
        assert_eq!((lengths.sum(), lengths.above(Ns(3))), (Ns(15), 2));
        assert_eq!(Lengths::new(Vec::new()).percentile(50), None);
    }

    #[test]
    fn quartiles_lie_between_values_in_proportion() {
        let description = Description::of(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!(description.mean, Some(2.5));
        assert_eq!(description.quartiles, [1.0, 1.75, 2.5, 3.25, 4.0].map(Some));
        let std = description.std.unwrap();
        assert!((std - 1.290_994_448_735_805_6).abs() < 1e-12, "{std}");
        assert_eq!(Description::of(vec![7.0]).std, None);
        assert_eq!(Description::of(Vec::new()).quartiles, [None; 5]);
    }
}
