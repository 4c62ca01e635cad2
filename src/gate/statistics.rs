//! Repeats as samples: how sure a gain is. Stands beside a decision and never replaces it.
//!
//! For every metric the gain of the candidate (positive is better) with a confidence interval:
//!
//! ```text
//!                   threshold
//!   accept              │   ├────●────┤          the interval clears it
//!   tune                │├────●────┤             straddles it: inconclusive
//!   reject    ├────●───┤│                        misses it
//! ```
//! The interval is that of Welch's t test for a difference of means of two sides with variances of their
//! own. With few repeats nothing better can be had: the percentile bootstrap of three values a side covers
//! far too little, and a permutation test of three against three cannot fall below one in ten. Over several
//! metrics and workloads the confidence of each interval is raised so that all of them hold together with
//! the confidence asked for (Bonferroni): whatever they depend on each other, a wrong `accept` has at most
//! the probability `alpha`.
//!
//! Sources: B. L. Welch, The generalization of "Student's" problem when several different population
//! variances are involved (1947); the t distribution by the continued fraction of the incomplete beta
//! function (W. J. Lentz 1976; Abramowitz and Stegun 26.5.8).

use super::json::{Json, object};
use super::measure::Measure;
use super::number::round;
use super::role::refuse_profiled;
use super::thresholds::Thresholds;
use super::verdict::Decision;
use crate::error::Result;
use crate::stats::{mean, median};

/// What is asked of repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatisticsOptions {
    /// Probability with which all intervals together may be wrong.
    pub alpha: f64,
    /// Difference from the threshold that is to be told, as a share of the baseline's mean.
    pub resolution: f64,
}

impl Default for StatisticsOptions {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            resolution: 0.02,
        }
    }
}

/// One metric of one candidate or workload, run by run.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Whose: a candidate or a workload.
    pub subject: String,
    /// `primary` or `adjacent`.
    pub role: &'static str,
    /// Which metric.
    pub metric: &'static str,
    /// Runs of the baseline, in order.
    pub baseline: Vec<f64>,
    /// Runs of the candidate, in order.
    pub candidate: Vec<f64>,
    /// What the gain has to reach.
    pub threshold: f64,
    /// A gain is more of the metric, not less.
    pub more_is_better: bool,
}

/// An interval, inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What repeats say about one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricVerdict {
    /// Whose.
    pub subject: String,
    /// `primary` or `adjacent`.
    pub role: &'static str,
    /// Which metric.
    pub metric: &'static str,
    /// Repeats of the baseline and the candidate.
    pub repeats: [usize; 2],
    /// Gain of the candidate; `None` without repeats.
    pub difference: Option<f64>,
    /// Its interval; `None` with fewer than two repeats a side.
    pub interval: Option<Bounds>,
    /// What the gain has to reach.
    pub threshold: f64,
    /// Accept when the interval clears the threshold, reject when it misses it, else tune.
    pub decision: Decision,
    /// Why, and remarks on the repeats, as codes.
    pub codes: Vec<&'static str>,
    /// Repeats a side after which a difference of the wanted resolution would be told; `None` when nothing
    /// is known of the spread.
    pub needed_repeats: Option<usize>,
}

/// What repeats say about everything.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticalVerdict {
    /// Accept when every metric clears its threshold, reject when one misses it, else tune.
    pub decision: Decision,
    /// Why, as a code.
    pub reason: &'static str,
    /// What was asked.
    pub options: StatisticsOptions,
    /// Confidence of each interval, raised for their number.
    pub confidence: f64,
    /// Each metric.
    pub metrics: Vec<MetricVerdict>,
}

impl StatisticalVerdict {
    /// As part of a verdict.
    pub fn to_json(&self) -> Json {
        let metrics: Vec<Json> = self
            .metrics
            .iter()
            .map(|metric| {
                let interval = metric.interval.map(|bounds| {
                    object! {"low" => round(bounds.low, 6), "high" => round(bounds.high, 6)}
                });
                object! {
                    "subject" => metric.subject.as_str(),
                    "role" => metric.role,
                    "metric" => metric.metric,
                    "repeats" => metric.repeats.to_vec(),
                    "difference" => metric.difference.map(|gain| round(gain, 6)),
                    "interval" => interval,
                    "threshold" => round(metric.threshold, 6),
                    "decision" => metric.decision,
                    "codes" => metric.codes.clone(),
                    "needed_repeats" => metric.needed_repeats,
                }
            })
            .collect();
        object! {
            "decision" => self.decision,
            "reason" => self.reason,
            "alpha" => self.options.alpha,
            "resolution" => self.options.resolution,
            "interval_confidence" => round(self.confidence, 6),
            "correction" => "bonferroni",
            "metrics" => metrics,
        }
    }
}

/// Judges all samples together. A metric that does not vary at all is told exactly.
pub fn judge_samples(samples: &[Samples], options: StatisticsOptions) -> StatisticalVerdict {
    let count = samples.len().max(1) as f64;
    let confidence = 1.0 - options.alpha / count;
    let metrics: Vec<MetricVerdict> = samples
        .iter()
        .map(|samples| judge(samples, confidence, options))
        .collect();
    let any = |decision| metrics.iter().any(|metric| metric.decision == decision);
    let (decision, reason) = if metrics.is_empty() {
        (Decision::Tune, "no_repeats")
    } else if any(Decision::Reject) {
        (Decision::Reject, "interval_misses_threshold")
    } else if any(Decision::Tune) {
        (Decision::Tune, "inconclusive")
    } else {
        (Decision::Accept, "interval_clears_threshold")
    };
    StatisticalVerdict {
        decision,
        reason,
        options,
        confidence,
        metrics,
    }
}

fn judge(samples: &Samples, confidence: f64, options: StatisticsOptions) -> MetricVerdict {
    let sign = if samples.more_is_better { 1.0 } else { -1.0 };
    let sides = [&samples.baseline, &samples.candidate];
    let means = sides.map(|side| mean(side));
    let difference = means[0]
        .zip(means[1])
        .map(|(base, own)| sign * (own - base));
    let interval = difference.and_then(|gain| interval(sides, gain, confidence));
    let mut codes = Vec::new();
    let decision = match interval {
        None => {
            codes.push("no_repeats");
            Decision::Tune
        }
        Some(bounds) if bounds.low >= samples.threshold => {
            codes.push("interval_clears_threshold");
            Decision::Accept
        }
        Some(bounds) if bounds.high < samples.threshold => {
            codes.push("interval_misses_threshold");
            Decision::Reject
        }
        Some(_) => {
            codes.push("interval_straddles_threshold");
            Decision::Tune
        }
    };
    let wanted = means[0].map(|base| base.abs() * options.resolution);
    let needed_repeats = wanted.and_then(|wanted| needed(sides, wanted, confidence));
    let least = samples.baseline.len().min(samples.candidate.len());
    if needed_repeats.is_some_and(|needed| needed > least) {
        codes.push("too_few_repeats");
    }
    if sides.iter().any(|side| drifts(side)) {
        codes.push("drift");
    }
    if sides.iter().any(|side| has_outlier(side)) {
        codes.push("outlier");
    }
    MetricVerdict {
        subject: samples.subject.clone(),
        role: samples.role,
        metric: samples.metric,
        repeats: sides.map(Vec::len),
        difference,
        interval,
        threshold: samples.threshold,
        decision,
        codes,
        needed_repeats,
    }
}

/// Variance with one degree of freedom taken; `None` of fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let center = mean(values).filter(|_| values.len() > 1)?;
    let squares = values.iter().map(|value| (value - center).powi(2));
    Some(squares.sum::<f64>() / (values.len() - 1) as f64)
}

/// Welch's interval around `gain`.
fn interval(sides: [&Vec<f64>; 2], gain: f64, confidence: f64) -> Option<Bounds> {
    let [a, b] = [share_of_variance(sides[0])?, share_of_variance(sides[1])?];
    let total = a + b;
    if total <= 0.0 {
        return Some(Bounds {
            low: gain,
            high: gain,
        });
    }
    let freedom = total.powi(2)
        / (a.powi(2) / (sides[0].len() - 1) as f64 + b.powi(2) / (sides[1].len() - 1) as f64);
    let half = t_quantile(confidence, freedom) * total.sqrt();
    Some(Bounds {
        low: gain - half,
        high: gain + half,
    })
}

fn share_of_variance(values: &[f64]) -> Option<f64> {
    Some(variance(values)? / values.len() as f64)
}

/// Repeats a side at which half the interval is `wanted`, by the spread seen; `None` above 1,000.
fn needed(sides: [&Vec<f64>; 2], wanted: f64, confidence: f64) -> Option<usize> {
    let spread = variance(sides[0])? + variance(sides[1])?;
    if spread <= 0.0 {
        return Some(2);
    }
    if wanted <= 0.0 {
        return None;
    }
    // A normal variable needs fewer, so that is where to start looking.
    let normal = (t_quantile(confidence, 1e6) / wanted).powi(2) * spread;
    if normal > 1_000.0 {
        return None;
    }
    (2..=1_000_usize)
        .skip_while(|repeats| (*repeats as f64) < normal.floor())
        .find(|repeats| {
            let freedom = 2.0 * (*repeats as f64 - 1.0);
            let half = t_quantile(confidence, freedom) * (spread / *repeats as f64).sqrt();
            half <= wanted
        })
}

/// True when the runs of a side go one way all along, by more than a thousandth; with four runs or more,
/// chance alone does that in one of twelve or fewer.
fn drifts(values: &[f64]) -> bool {
    let rises = values.windows(2).all(|pair| pair[1] > pair[0]);
    let falls = values.windows(2).all(|pair| pair[1] < pair[0]);
    let way = values
        .first()
        .zip(values.last())
        .map_or(0.0, |(first, last)| (last - first).abs());
    let size = mean(values).map_or(0.0, f64::abs);
    values.len() > 3 && (rises || falls) && way > size * 1e-3
}

/// True when a run lies more than five median deviations (scaled to a normal spread) from the median, and
/// more than a hundredth of it.
fn has_outlier(values: &[f64]) -> bool {
    let Some(center) = median(values).filter(|_| values.len() > 2) else {
        return false;
    };
    let distances: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    let spread = median(&distances).unwrap_or(0.0) * 1.4826;
    let far = distances.iter().copied().fold(0.0, f64::max);
    far > 5.0 * spread && far > center.abs() * 1e-2
}

/// The value that a t distributed variable stays within, on both sides, with probability `confidence`.
fn t_quantile(confidence: f64, freedom: f64) -> f64 {
    let outside = 1.0 - confidence.clamp(0.0, 1.0 - 1e-12);
    // The probability of being further out falls with t: find the place by halving.
    let (mut low, mut high) = (0.0, 1.0);
    while beyond(high, freedom) > outside && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beyond(middle, freedom) > outside {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Probability that a t distributed variable is further from 0 than `t`, on either side.
fn beyond(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on one side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let safe = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let mut product = lower;
    for step in 1..500_u32 {
        let place = f64::from(step);
        for numerator in [
            place * (b - place) * x / ((a + 2.0 * place - 1.0) * (a + 2.0 * place)),
            -(a + place) * (a + b + place) * x / ((a + 2.0 * place) * (a + 2.0 * place + 1.0)),
        ] {
            lower = 1.0 / safe(1.0 + numerator * lower);
            upper = safe(1.0 + numerator / upper);
            product *= lower * upper;
        }
        if (lower * upper - 1.0).abs() < 1e-13 {
            break;
        }
    }
    product
}

/// Logarithm of the gamma function of a positive number (C. Lanczos 1964; g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let shifted = x - 1.0;
    let mut sum = 0.999_999_999_999_809_9;
    for (place, term) in (1_u32..).zip(TERMS) {
        sum += term / (shifted + f64::from(place));
    }
    let t = shifted + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (shifted + 0.5) * t.ln() - t + sum.ln()
}

fn numbers(runs: &[Json], keys: &[&str]) -> Vec<f64> {
    let ok = runs.iter().filter(|run| {
        let status = run.get("status").map(Json::as_str);
        status.is_none_or(|status| status == Some("ok"))
    });
    ok.filter_map(|run| Measure::read(run, keys).value())
        .collect()
}

/// Samples of every strategy of a report but the baseline: memory saved, throughput and loss, against the
/// thresholds of the budget and of qualification.
///
/// # Errors
/// When the report was measured under a profiler.
pub fn strategy_samples(report: &Json, thresholds: &Thresholds) -> Result<Vec<Samples>> {
    refuse_profiled(report)?;
    let candidates = report.at(&["candidates"]).items();
    let runs = |candidate: &Json| candidate.at(&["runs"]).items().to_vec();
    let baseline = candidates
        .iter()
        .find(|candidate| candidate.at(&["name"]).as_str() == Some("baseline"))
        .map(runs)
        .unwrap_or_default();
    let pace = mean(&numbers(&baseline, &["samples_per_s"])).unwrap_or(0.0);
    let mut samples = Vec::new();
    for candidate in candidates {
        let Some(name) = candidate
            .at(&["name"])
            .as_name()
            .filter(|name| *name != "baseline")
        else {
            continue;
        };
        let own = runs(candidate);
        let mut add = |metric: &'static str, keys: &[&str], threshold: f64, more_is_better| {
            samples.push(Samples {
                subject: name.to_owned(),
                role: "primary",
                metric,
                baseline: numbers(&baseline, keys),
                candidate: numbers(&own, keys),
                threshold,
                more_is_better,
            });
        };
        let budget = &thresholds.budget;
        add(
            "peak_memory_mb",
            &["peak_memory_mb", "peak_mem_mb"],
            budget.min_memory_saving_mb,
            false,
        );
        // A ratio of at least r is a gain of at least (r - 1) times the baseline.
        add(
            "samples_per_s",
            &["samples_per_s"],
            (budget.min_throughput_ratio - 1.0) * pace,
            true,
        );
        add(
            "eval_loss",
            &["eval_loss", "val_loss", "loss"],
            -thresholds.qualification.maximum_loss_delta,
            false,
        );
    }
    Ok(samples)
}

/// Samples of every workload of a regression: time and quality, against its gates. Workloads have their
/// repeats under `baseline_runs` and `candidate_runs`.
///
/// # Errors
/// When a workload was measured under a profiler.
pub fn regression_samples(input: &Json, thresholds: &Thresholds) -> Result<Vec<Samples>> {
    let gates = &thresholds.regression;
    let mut samples = Vec::new();
    for record in input.at(&["workload_records"]).items() {
        refuse_profiled(record)?;
        let primary = record.at(&["role"]).as_str() == Some("primary");
        let adjacent = record.at(&["role"]).as_str() == Some("adjacent");
        if !primary && !adjacent {
            continue;
        }
        let sides = ["baseline_runs", "candidate_runs"].map(|key| record.at(&[key]).items());
        let gain = if primary {
            gates.min_primary_time_gain_ms
        } else {
            -gates.max_adjacent_slowdown_ms
        };
        for (metric, threshold) in [
            ("step_time_ms", gain),
            ("quality", -gates.max_quality_delta),
        ] {
            samples.push(Samples {
                subject: record
                    .at(&["workload_id"])
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                role: if primary { "primary" } else { "adjacent" },
                metric,
                baseline: numbers(sides[0], &[metric]),
                candidate: numbers(sides[1], &[metric]),
                threshold,
                more_is_better: false,
            });
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (confidence, freedom, t) in [
            (0.95, 1.0, 12.706_204_736),
            (0.95, 2.0, 4.302_652_730),
            (0.95, 4.0, 2.776_445_105),
            (0.99, 10.0, 3.169_272_673),
            (0.95, 30.0, 2.042_272_456),
            (0.95, 1e6, 1.959_966_3),
        ] {
            let found = t_quantile(confidence, freedom);
            assert!((found - t).abs() < 1e-5, "{confidence} {freedom}: {found}");
        }
    }

    fn samples(baseline: &[f64], candidate: &[f64], threshold: f64) -> Samples {
        Samples {
            subject: "s".to_owned(),
            role: "primary",
            metric: "step_time_ms",
            baseline: baseline.to_vec(),
            candidate: candidate.to_vec(),
            threshold,
            more_is_better: false,
        }
    }

    fn decided(samples: &[Samples]) -> StatisticalVerdict {
        judge_samples(samples, StatisticsOptions::default())
    }

    #[test]
    fn the_three_cases() {
        let base = [100.0, 101.0, 99.0];
        for (candidate, decision, reason) in [
            (
                [80.0, 81.0, 79.0],
                Decision::Accept,
                "interval_clears_threshold",
            ),
            ([90.0, 91.0, 89.0], Decision::Tune, "inconclusive"),
            (
                [99.0, 100.0, 98.0],
                Decision::Reject,
                "interval_misses_threshold",
            ),
        ] {
            let found = decided(&[samples(&base, &candidate, 10.0)]);
            assert_eq!((found.decision, found.reason), (decision, reason));
        }
        // Half an interval by hand: 2.776445 * sqrt(1/3 + 1/3) = 2.266961.
        let found = decided(&[samples(&base, &[80.0, 81.0, 79.0], 10.0)]);
        let bounds = found.metrics[0].interval.unwrap();
        assert!((bounds.low - 17.733_039).abs() < 1e-5 && (bounds.high - 22.266_961).abs() < 1e-5);
        assert_eq!(found.metrics[0].needed_repeats, Some(4));
        assert!(found.metrics[0].codes.contains(&"too_few_repeats"));
    }

    #[test]
    fn what_does_not_vary_is_told_exactly_and_what_is_not_there_is_not() {
        let same = decided(&[samples(&[9782.74; 3], &[9450.76; 3], 331.0)]);
        assert_eq!(same.decision, Decision::Accept);
        let none = decided(&[samples(&[1.0], &[1.0, 2.0], 0.0)]);
        assert_eq!(
            (none.decision, none.metrics[0].codes[0]),
            (Decision::Tune, "no_repeats")
        );
        assert_eq!(decided(&[]).reason, "no_repeats");
    }

    #[test]
    fn drift_and_outliers_are_told() {
        let steady = [100.0, 101.0, 99.5, 100.5];
        let codes = |candidate: &[f64]| {
            decided(&[samples(&steady, candidate, 0.0)]).metrics[0]
                .codes
                .clone()
        };
        assert!(codes(&[100.0, 102.0, 104.0, 106.0]).contains(&"drift"));
        assert!(codes(&[100.0, 100.2, 99.9, 130.0]).contains(&"outlier"));
        let calm = codes(&[100.2, 99.9, 100.1, 100.0]);
        assert!(!calm.contains(&"drift") && !calm.contains(&"outlier"));
    }
}
