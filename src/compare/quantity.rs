//! Times by step, and what comes of comparing them.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::judgement::{Judgement, Verdict, judge};
use super::pace::Pace;
use crate::inspect::{Frame, Unit};
use crate::units::Ns;

/// A time by step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Quantity(BTreeMap<u32, Ns>);

impl Quantity {
    pub(super) fn add(&mut self, step: u32, time: Ns) {
        *self.0.entry(step).or_default() += time;
    }

    pub(super) fn append(&mut self, other: &Self) {
        for (step, time) in &other.0 {
            self.add(*step, *time);
        }
    }

    pub(super) fn total(&self) -> Ns {
        self.0.values().copied().sum()
    }

    fn samples(&self, pace: &Pace) -> Vec<f64> {
        pace.samples(|step| self.0.get(&step).copied().unwrap_or_default())
    }
}

/// The level of a test and the smallest relative change that counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    pub(super) alpha: f64,
    pub(super) min_effect: f64,
}

/// What both sides are measured with.
#[derive(Clone, Copy)]
pub(super) struct Scale<'a> {
    pub(super) paces: &'a [Pace; 2],
    pub(super) level: Level,
}

/// A time a step on both sides; `None` where it was not measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) base: Option<Ns>,
    pub(super) candidate: Option<Ns>,
    pub(super) judgement: Option<Judgement>,
}

impl Line {
    pub(super) fn delta(&self) -> Option<Ns> {
        Some(self.candidate? - self.base?)
    }

    /// Relative change of what is shown.
    pub(super) fn change(&self) -> Option<f64> {
        match (self.base?, self.delta()?) {
            (Ns::ZERO, Ns::ZERO) => Some(0.0),
            (base, delta) => delta.ratio(base),
        }
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        Some(self.judgement.as_ref()?.verdict)
    }
}

/// The verdict on a time of both sides.
pub(super) fn judged(base: &Quantity, candidate: &Quantity, scale: Scale<'_>) -> Judgement {
    let [ours, theirs] = scale.paces;
    let Level { alpha, min_effect } = scale.level;
    judge(
        &base.samples(ours),
        &candidate.samples(theirs),
        alpha,
        min_effect,
    )
}

/// Lines for pairs of quantities whose means a step add up to the mean of their sum (rounded down).
pub(super) fn lines(pairs: &[[Option<&Quantity>; 2]], scale: Scale<'_>) -> Vec<Line> {
    let means = [0, 1].map(|side| {
        let totals: Vec<Option<Ns>> = pairs
            .iter()
            .map(|pair| pair[side].map(Quantity::total))
            .collect();
        means(&totals, scale.paces[side].rank_steps())
    });
    let [base, candidate] = means;
    let judgements: Vec<Option<Judgement>> = pairs
        .par_iter()
        .map(|pair| Some(judged(pair[0]?, pair[1]?, scale)))
        .collect();
    let rows = judgements.into_iter().zip(base).zip(candidate);
    rows.map(|((judgement, base), candidate)| Line {
        base,
        candidate,
        judgement,
    })
    .collect()
}

/// Each of `totals` over `count`, rounded so that they add up to the sum over `count`, rounded down.
///
/// ```text
/// totals 5, 5, 5 over 2   sums so far 5, 10, 15   over 2: 2, 5, 7   means 2, 3, 2
/// ```
pub(super) fn means(totals: &[Option<Ns>], count: u64) -> Vec<Option<Ns>> {
    let count = i128::from(count.max(1));
    let (mut sum, mut before) = (0_i128, 0_i128);
    let mean = |total: &Option<Ns>| {
        let total = (*total)?;
        sum += i128::from(total.0);
        let so_far = sum.div_euclid(count);
        let mean = so_far - before;
        before = so_far;
        i64::try_from(mean).ok().map(Ns)
    };
    totals.iter().map(mean).collect()
}

/// Adds the columns of a line.
pub(super) fn with_line<R>(frame: Frame, rows: &[R], of: impl Fn(&R) -> &Line + Copy) -> Frame {
    frame
        .ns("base_ns", rows, |row| of(row).base)
        .ns("candidate_ns", rows, |row| of(row).candidate)
        .ns("delta_ns", rows, |row| of(row).delta())
        .float("change", Unit::Ratio, rows, |row| of(row).change())
        .float("p", Unit::Number, rows, |row| of(row).judgement.as_ref()?.p)
        .text("verdict", rows, |row| {
            of(row).verdict().map(Verdict::of_part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_add_up_to_the_mean_of_the_sum() {
        let five = Some(Ns(5));
        assert_eq!(
            means(&[five, five, None, five], 2),
            [Some(Ns(2)), Some(Ns(3)), None, Some(Ns(2))]
        );
        assert_eq!(means(&[Some(Ns(i64::MAX))], 1), [Some(Ns(i64::MAX))]);
        assert_eq!(means(&[five], 0), [five]);
    }
}
