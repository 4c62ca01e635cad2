//! Permutation tests: how often chance alone makes a difference as large as the one seen.
//!
//! ```text
//! seen         a a a a | b b b b        difference of means d
//! permuted     a b a a | b a b b        is |difference| as large as |d|?
//! p            share of the splits for which it is, the seen one included
//! ```
//! Source of the tests: E. S. Edgington and P. Onghena, Randomization Tests (2007).

use super::mean;
use super::random::Random;

/// Up to so many splits, all are looked at.
const EXACT: u64 = 100_000;
/// So many random ones otherwise.
const RANDOM: u64 = 20_000;
/// Differences this much smaller, relative to the spread, still count as as large: sums in another order
/// differ in their last bits.
const ROUNDING: f64 = 1e-9;

/// How often chance alone makes a difference as large as the one seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Significance {
    /// That share of the splits; at most 1.
    pub p: f64,
    /// The smallest share that so few measurements could ever give.
    pub smallest: f64,
    /// True when all splits were looked at.
    pub exact: bool,
}

/// Whether two independent sets of measurements differ in their means; `None` when one has none.
pub fn significance(a: &[f64], b: &[f64]) -> Option<Significance> {
    let seen = (mean(b)? - mean(a)?).abs();
    let mut pool: Vec<f64> = a.iter().chain(b).copied().collect();
    pool.sort_by(f64::total_cmp);
    let total: f64 = pool.iter().sum();
    let few = a.len().min(b.len());
    let many = pool.len() - few;
    let spread = pool[pool.len() - 1] - pool[0];
    // The difference that a set of `few` values with this sum makes.
    let is_as_large = |sum: f64| {
        let difference = sum / few as f64 - (total - sum) / many as f64;
        difference.abs() >= seen - spread * ROUNDING
    };
    if let Some(splits) = splits(pool.len(), few) {
        let mut as_large = 0;
        each_sum(&pool, few, 0.0, &mut |sum| {
            as_large += u64::from(is_as_large(sum));
        });
        return Some(Significance {
            p: as_large as f64 / splits as f64,
            smallest: if few == many { 2.0 } else { 1.0 } / splits as f64,
            exact: true,
        });
    }
    let mut random = Random::new(0x7472_6163_656b_6974);
    let mut as_large = 1;
    for _ in 0..RANDOM {
        // The first `few` of a shuffle.
        for place in 0..few {
            let other = place + random.below(pool.len() - place);
            pool.swap(place, other);
        }
        as_large += u64::from(is_as_large(pool[..few].iter().sum()));
    }
    Some(Significance {
        p: as_large as f64 / (RANDOM + 1) as f64,
        smallest: 1.0 / (RANDOM + 1) as f64,
        exact: false,
    })
}

/// Whether the differences of pairs differ from zero on average: the signs of the differences are what
/// chance decides. `None` without pairs.
pub fn significance_of_pairs(differences: &[f64]) -> Option<Significance> {
    let seen = mean(differences)?.abs() * differences.len() as f64;
    let mut sizes: Vec<f64> = differences
        .iter()
        .map(|difference| difference.abs())
        .collect();
    sizes.sort_by(f64::total_cmp);
    let most: f64 = sizes.iter().sum();
    let is_as_large = |sum: f64| sum.abs() >= seen - most * ROUNDING;
    let signs = 1_u64
        .checked_shl(u32::try_from(sizes.len()).ok()?)
        .filter(|signs| *signs <= EXACT);
    let with_signs = |bits: u64| -> f64 {
        let signed = sizes.iter().enumerate().map(|(place, size)| {
            if bits >> (place % 64) & 1 == 1 {
                *size
            } else {
                -*size
            }
        });
        signed.sum()
    };
    if let Some(signs) = signs {
        let as_large = (0..signs)
            .filter(|bits| is_as_large(with_signs(*bits)))
            .count();
        return Some(Significance {
            p: as_large as f64 / signs as f64,
            smallest: 2.0 / signs as f64,
            exact: true,
        });
    }
    let mut random = Random::new(0x7061_6972_6564);
    let mut as_large = 1;
    for _ in 0..RANDOM {
        let mut sum = 0.0;
        for sixty_four in sizes.chunks(64) {
            let bits = random.next();
            for (place, size) in sixty_four.iter().enumerate() {
                sum += if bits >> place & 1 == 1 {
                    *size
                } else {
                    -*size
                };
            }
        }
        as_large += u64::from(is_as_large(sum));
    }
    Some(Significance {
        p: as_large as f64 / (RANDOM + 1) as f64,
        smallest: 1.0 / (RANDOM + 1) as f64,
        exact: false,
    })
}

/// In how many ways `few` of `all` can be taken, when that is few enough to look at each.
fn splits(all: usize, few: usize) -> Option<u64> {
    let mut ways = 1_u64;
    for taken in 0..few {
        ways = ways.checked_mul((all - taken) as u64)? / (taken as u64 + 1);
        if ways > EXACT {
            return None;
        }
    }
    Some(ways)
}

/// Calls `visit` with the sum of each choice of `few` values.
fn each_sum(values: &[f64], few: usize, sum: f64, visit: &mut impl FnMut(f64)) {
    if few == 0 {
        return visit(sum);
    }
    for place in 0..=values.len() - few {
        each_sum(&values[place + 1..], few - 1, sum + values[place], visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_against_three_can_reach_one_in_ten() {
        // 20 splits; the seen one and its mirror image are as large.
        let found = significance(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0]).unwrap();
        assert_eq!((found.p, found.smallest, found.exact), (0.1, 0.1, true));
        let none = significance(&[5.0, 5.0], &[5.0, 5.0, 5.0]).unwrap();
        assert!(none.p > 0.999);
        assert_eq!(significance(&[], &[1.0]), None);
    }

    #[test]
    fn order_and_sides_do_not_matter() {
        let a = [3.1, 2.9, 3.0, 3.2, 2.8];
        let b = [3.3, 3.4, 3.1, 3.5];
        let one = significance(&a, &b).unwrap();
        let mut reversed = a;
        reversed.reverse();
        assert_eq!(significance(&b, &reversed).unwrap(), one);
    }

    #[test]
    fn many_measurements_are_sampled_with_the_same_result_each_time() {
        let a: Vec<f64> = (0..40).map(|number| f64::from(number % 7)).collect();
        let b: Vec<f64> = a.iter().map(|value| value + 3.0).collect();
        let found = significance(&a, &b).unwrap();
        assert!(!found.exact && found.p < 0.001, "{found:?}");
        assert_eq!(significance(&a, &b).unwrap(), found);
        assert!(significance(&a, &a).unwrap().p > 0.9);
    }

    #[test]
    fn pairs_are_judged_by_their_signs() {
        // 8 signs; all plus and all minus are as large.
        let found = significance_of_pairs(&[1.0, 2.0, 4.0]).unwrap();
        assert_eq!((found.p, found.smallest), (0.25, 0.25));
        assert!(significance_of_pairs(&[1.0, -1.0]).unwrap().p > 0.999);
        let many = vec![1.0; 80];
        assert!(significance_of_pairs(&many).unwrap().p < 0.001);
    }

    #[test]
    fn noise_is_seldom_taken_for_a_change() {
        let mut random = Random::new(1);
        let mut set = |len: usize| -> Vec<f64> {
            (0..len)
                .map(|_| 100.0 + random.below(1000) as f64 / 100.0)
                .collect()
        };
        let found = (0..400)
            .filter(|_| significance(&set(6), &set(6)).unwrap().p < 0.05)
            .count();
        assert!(
            (5..=40).contains(&found),
            "{found} of 400, expected about 20"
        );
    }
}
