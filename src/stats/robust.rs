//! How far measurements are apart, whatever a few of them are like.

use super::median;

/// What makes the deviation that of a normal distribution.
const TO_NORMAL: f64 = 1.4826;

/// The median absolute deviation from the median, scaled so that it estimates the standard deviation of
/// normal measurements; `None` of nothing.
///
/// Source: P. J. Rousseeuw and C. Croux, Alternatives to the Median Absolute Deviation (1993).
pub fn deviation(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(median(&distances)? * TO_NORMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_far_value_does_not_count() {
        let near = deviation(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((near - 1.4826).abs() < 1e-9);
        assert_eq!(deviation(&[1.0, 2.0, 3.0, 4.0, 500.0]), Some(near));
        assert_eq!(deviation(&[7.0, 7.0]), Some(0.0));
        assert_eq!(deviation(&[]), None);
    }
}
