//! Whether two sets of measurements differ.
//!
//! ```text
//!           -min effect    0    +min effect
//! ───────────────┼─────────┼─────────┼───────────
//!                │     ├───────┤     │              no difference: the interval is inside
//!                │         │         │  ├──────┤    changed: p below the level, change large enough
//!                │         │     ├───────────┤      inconclusive
//! ```
//! `p` is that of a permutation test on means, the interval that of the relative change of medians by the
//! bootstrap, with confidence 1 - alpha. Both have to point in one direction.

use serde::Serialize;

use crate::stats::{Interval, interval_of_change, mean, median, significance};

/// What a comparison of two sets of measurements comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less time.
    Faster,
    /// More time.
    Slower,
    /// No difference that counts.
    NoDifference,
    /// The measurements do not tell.
    Inconclusive,
}

impl Verdict {
    /// The spelling used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no_difference",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// The same about a part of the time: less or more of it.
    pub fn of_part(self) -> &'static str {
        match self {
            Self::Faster => "less",
            Self::Slower => "more",
            other => other.as_str(),
        }
    }
}

/// The verdict on two sets of measurements, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Relative change of the median; `None` without measurements or from a median of zero.
    pub change: Option<f64>,
    /// Lower end of the interval of the change.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How often chance alone makes a difference as large.
    pub p: Option<f64>,
    /// The smallest that `p` could be with so many measurements.
    pub smallest_p: Option<f64>,
    /// True when `p` is exact, false when it is estimated from random splits.
    pub exact: Option<bool>,
    /// Why the verdict is what it is.
    pub reason: Reason,
}

/// Why a verdict is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A side has no measurement.
    NotMeasured,
    /// Both sides have the same measurements, number by number, or all of them are equal.
    Identical,
    /// So few measurements could never reach the level.
    TooFew,
    /// Significant, and large enough.
    Changed,
    /// The interval lies within the smallest effect that counts.
    WithinMinEffect,
    /// Significant, but the change may be too small to count.
    Small,
    /// Mean and median point in different directions.
    Contradiction,
    /// Chance makes such a difference too often, and the interval is too wide to exclude one.
    Noise,
}

impl Reason {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotMeasured => "a side has no measurement",
            Self::Identical => "both sides have the same measurements",
            Self::TooFew => "so few measurements can never reach the level",
            Self::Changed => "significant, and large enough to count",
            Self::WithinMinEffect => "the interval lies within the smallest effect that counts",
            Self::Small => "significant, but perhaps too small to count",
            Self::Contradiction => "mean and median point in different directions",
            Self::Noise => "chance alone makes such a difference too often",
        }
    }
}

/// Whether the measurements `candidate` differ from `base`, at the level `alpha` and with `min_effect` as
/// the smallest relative change that counts. The order of measurements does not matter.
pub fn judge(base: &[f64], candidate: &[f64], alpha: f64, min_effect: f64) -> Judgement {
    let mut judgement = Judgement {
        verdict: Verdict::Inconclusive,
        change: None,
        low: None,
        high: None,
        p: None,
        smallest_p: None,
        exact: None,
        reason: Reason::NotMeasured,
    };
    let (Some(before), Some(after)) = (median(base), median(candidate)) else {
        return judgement;
    };
    judgement.change = match (before, after) {
        (0.0, 0.0) => Some(0.0),
        (0.0, _) => None,
        _ => Some(after / before - 1.0),
    };
    let (ours, theirs) = (sorted(base), sorted(candidate));
    let mut all = ours.iter().chain(&theirs);
    let constant = all.all(|value| value.total_cmp(&ours[0]).is_eq());
    if constant || ours == theirs {
        judgement.verdict = Verdict::NoDifference;
        judgement.reason = Reason::Identical;
        judgement.p = Some(1.0);
        return judgement;
    }
    let Some(found) = significance(base, candidate) else {
        return judgement;
    };
    judgement.p = Some(found.p);
    judgement.smallest_p = Some(found.smallest);
    judgement.exact = Some(found.exact);
    // So few values have no interval at this level, as no split of them is so rare.
    let interval =
        interval_of_change(base, candidate, 1.0 - alpha).filter(|_| found.smallest < alpha);
    judgement.low = interval.map(|interval| interval.low);
    judgement.high = interval.map(|interval| interval.high);
    if found.smallest >= alpha {
        judgement.reason = Reason::TooFew;
        return judgement;
    }
    // What comes from nothing is a change of any size.
    let size = judgement.change.map_or(f64::INFINITY, f64::abs);
    let of_means = mean(candidate).unwrap_or(0.0) - mean(base).unwrap_or(0.0);
    let agree = (of_means > 0.0) == (after > before);
    let within = |interval: Interval| interval.low >= -min_effect && interval.high <= min_effect;
    (judgement.verdict, judgement.reason) = if found.p < alpha && size >= min_effect && agree {
        let verdict = if after > before {
            Verdict::Slower
        } else {
            Verdict::Faster
        };
        (verdict, Reason::Changed)
    } else if interval.is_some_and(within) {
        (Verdict::NoDifference, Reason::WithinMinEffect)
    } else if found.p < alpha && !agree {
        (Verdict::Inconclusive, Reason::Contradiction)
    } else if found.p < alpha {
        (Verdict::Inconclusive, Reason::Small)
    } else {
        (Verdict::Inconclusive, Reason::Noise)
    };
    judgement
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(middle: f64, len: u32) -> Vec<f64> {
        (0..len)
            .map(|number| middle + f64::from(number % 5) * 0.1)
            .collect()
    }

    #[test]
    fn a_large_and_significant_change_is_one() {
        let (base, candidate) = (around(100.0, 8), around(110.0, 8));
        let slower = judge(&base, &candidate, 0.01, 0.03);
        assert_eq!(slower.verdict, Verdict::Slower);
        assert!(slower.low.unwrap() > 0.09 && slower.high.unwrap() < 0.11);
        let faster = judge(&candidate, &base, 0.01, 0.03);
        assert_eq!(faster.verdict, Verdict::Faster);
        assert_eq!(faster.p, slower.p);
    }

    #[test]
    fn what_is_small_does_not_count_however_significant() {
        let found = judge(&around(100.0, 8), &around(101.0, 8), 0.01, 0.03);
        assert_eq!(found.verdict, Verdict::NoDifference);
        assert!(found.p.unwrap() < 0.01);
        let strict = judge(&around(100.0, 8), &around(101.0, 8), 0.01, 0.005);
        assert_eq!(strict.verdict, Verdict::Slower);
    }

    #[test]
    fn three_against_three_cannot_reach_the_level() {
        let found = judge(&around(100.0, 3), &around(200.0, 3), 0.01, 0.03);
        assert_eq!(
            (found.verdict, found.reason, found.smallest_p),
            (Verdict::Inconclusive, Reason::TooFew, Some(0.1))
        );
        let looser = judge(&around(100.0, 4), &around(200.0, 4), 0.05, 0.03);
        assert_eq!(looser.verdict, Verdict::Slower);
    }

    #[test]
    fn the_same_measurements_are_no_difference_however_few() {
        for len in 1..4 {
            let found = judge(&around(100.0, len), &around(100.0, len), 0.01, 0.03);
            assert_eq!(found.verdict, Verdict::NoDifference);
        }
        let constant = judge(&[0.0; 2], &[0.0; 3], 0.01, 0.03);
        assert_eq!(constant.reason, Reason::Identical);
        let none = judge(&[], &[1.0], 0.01, 0.03);
        assert_eq!(
            (none.verdict, none.reason),
            (Verdict::Inconclusive, Reason::NotMeasured)
        );
    }

    #[test]
    fn what_comes_from_nothing_has_no_relative_change_and_still_is_one() {
        let found = judge(&[0.0; 6], &around(5.0, 6), 0.01, 0.03);
        assert_eq!((found.verdict, found.change), (Verdict::Slower, None));
        let gone = judge(&around(5.0, 6), &[0.0; 6], 0.01, 0.03);
        assert_eq!((gone.verdict, gone.change), (Verdict::Faster, Some(-1.0)));
    }

    #[test]
    fn wide_noise_is_inconclusive() {
        let base = [100.0, 130.0, 90.0, 120.0, 80.0, 110.0];
        let candidate = [105.0, 125.0, 95.0, 118.0, 84.0, 140.0];
        let found = judge(&base, &candidate, 0.01, 0.03);
        assert_eq!(
            (found.verdict, found.reason),
            (Verdict::Inconclusive, Reason::Noise)
        );
    }

    /// SplitMix64, as everywhere that the same numbers are wanted each time.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed >> 40) as f64 / f64::from(1 << 24)
        }

        /// About normal: the sum of twelve.
        fn noise(&mut self, spread: f64) -> f64 {
            let sum: f64 = (0..12).map(|_| self.unit()).sum();
            100.0 * (1.0 + spread * (sum - 6.0))
        }
    }

    #[test]
    fn noise_is_a_change_no_more_often_than_the_level_allows() {
        let mut random = Random(7);
        let (pairs, alpha) = (1_000, 0.01);
        let (mut significant, mut changed) = (0, 0);
        for _ in 0..pairs {
            let mut side = || (0..6).map(|_| random.noise(0.01)).collect::<Vec<f64>>();
            let (base, candidate) = (side(), side());
            // Nothing is a change that is not significant: only those need the whole judgement.
            if significance(&base, &candidate).unwrap().p < alpha {
                significant += 1;
                let found = judge(&base, &candidate, alpha, 0.03).verdict;
                changed += u32::from(matches!(found, Verdict::Faster | Verdict::Slower));
            }
        }
        // 10 are expected; more than 20 come once in 500 times.
        assert!((1..=20).contains(&significant), "{significant} of {pairs}");
        assert_eq!(changed, 0);
    }
}
