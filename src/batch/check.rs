//! Runs against earlier ones: what moved beyond noise.
//!
//! Against one run, a time moved when the steps of both say so, as `tracekit compare` judges. Against the
//! median of N runs, it moved when the steps say so against all steps of those runs together, and when the
//! median of the run lies farther from theirs than runs do among themselves: three times the median absolute
//! deviation, scaled to a standard deviation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use super::table::{read_dataset, read_runs};
use crate::compare::{Verdict, judge};
use crate::error::{Error, ErrorKind, Result};
use crate::frame::DataFrame;
use crate::stats::{deviation, median};

/// So many scaled deviations from the median of other runs are no noise.
const FAR: f64 = 3.0;

/// The times that are checked: name, and whether it is of the host.
const CHECKED: [(&str, bool); 12] = [
    ("wall_ns", true),
    ("annotated_forward_ns", true),
    ("annotated_backward_ns", true),
    ("annotated_recompute_ns", true),
    ("annotated_optimizer_ns", true),
    ("window_ns", false),
    ("forward_ns", false),
    ("backward_ns", false),
    ("recompute_ns", false),
    ("optimizer_ns", false),
    ("exposed_communication_ns", false),
    ("idle_ns", false),
];

/// What runs are checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// One run.
    Run(String),
    /// So many runs of the same strategy before each.
    Median(usize),
}

impl FromStr for Baseline {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let Some(count) = text.strip_prefix("median:") else {
            return Ok(Self::Run(text.to_owned()));
        };
        match count.parse() {
            Ok(count) if count >= 2 => Ok(Self::Median(count)),
            _ => Err(format!("'{count}' is no number of runs from 2 on")),
        }
    }
}

/// How to check runs.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// Against what.
    pub baseline: Baseline,
    /// Only these runs; all when empty.
    pub runs: Vec<String>,
    /// Only the last run of each strategy.
    pub latest: bool,
    /// Level of the test.
    pub alpha: f64,
    /// The smallest relative change that counts.
    pub min_effect: f64,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// `tracekit.batch.check/v1`.
    pub schema_version: &'static str,
    /// Against what.
    pub baseline: String,
    /// The runs that were checked, in order of time.
    pub runs: Vec<RunCheck>,
    /// Runs that could not be, with the reason.
    pub unchecked: Vec<(String, String)>,
}

/// One run, checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunCheck {
    /// Its name.
    pub run: String,
    /// Its strategy.
    pub strategy: Option<String>,
    /// The day it was recorded.
    pub date: Option<String>,
    /// The runs that it was checked against.
    pub against: Vec<String>,
    /// Every time that was measured on both sides.
    pub times: Vec<Moved>,
}

/// One time of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// Its name.
    pub time: &'static str,
    /// Median of the baseline in nanoseconds a step.
    pub base_ns: f64,
    /// Median of the run.
    pub now_ns: f64,
    /// Relative change.
    pub change: Option<f64>,
    /// How often chance alone makes such a difference.
    pub p: Option<f64>,
    /// `more`, `less`, `no_difference` or `inconclusive`.
    pub verdict: &'static str,
    /// Why.
    pub reason: &'static str,
}

impl Checked {
    /// True when some run takes more time somewhere.
    pub fn has_regressed(&self) -> bool {
        self.runs.iter().any(RunCheck::has_regressed)
    }
}

impl RunCheck {
    /// True when it takes more time somewhere.
    pub fn has_regressed(&self) -> bool {
        self.times.iter().any(|time| time.verdict == "more")
    }

    /// Why nothing can be said about it: of no time is it known whether it moved.
    pub fn undecided(&self) -> Option<&'static str> {
        let decided = self.times.iter().any(|time| time.verdict != "inconclusive");
        let first = self.times.first().filter(|_| !decided);
        first.map(|time| time.reason)
    }
}

/// A run of the dataset.
#[derive(Debug, Clone, Default)]
struct Run {
    name: String,
    strategy: Option<String>,
    date: Option<String>,
    start: Option<i64>,
    /// Times of its steps, by name.
    times: BTreeMap<&'static str, Vec<f64>>,
}

/// Steps of so many runs are in memory at a time.
const RUNS_AT_ONCE: usize = 256;

/// Checks the runs of the dataset at `path`.
///
/// # Errors
/// When there is no dataset, or no run that the options name.
pub fn check(path: &Path, options: &CheckOptions) -> Result<Checked> {
    let frames = read_dataset(path, &["runs"])?;
    let mut runs = runs_of(&frames["runs"]);
    let known = |name: &String| runs.iter().any(|run| run.name == *name);
    let mut named: Vec<&String> = options.runs.iter().collect();
    if let Baseline::Run(name) = &options.baseline {
        named.push(name);
    }
    if let Some(missing) = named.into_iter().find(|name| !known(name)) {
        let message = format!("no run is called '{missing}' here");
        return Err(Error::new(ErrorKind::Usage, message).in_file(path));
    }
    // Of all steps only those that matter: a dataset may have billions.
    let mut wanted = BTreeSet::new();
    for (place, base) in bases(&runs, options).into_iter().enumerate() {
        if let Some(Base::Runs(base)) = base {
            wanted.insert(place);
            wanted.extend(base);
        }
    }
    let wanted: Vec<usize> = wanted.into_iter().collect();
    for places in wanted.chunks(RUNS_AT_ONCE) {
        let names: BTreeSet<&str> = places.iter().map(|place| &*runs[*place].name).collect();
        let frames = read_runs(path, &["steps"], &|name| names.contains(name))?;
        let mut times = times_of(&frames["steps"]);
        for place in places {
            let run = &mut runs[*place];
            run.times = times.remove(&run.name).unwrap_or_default();
        }
    }
    Ok(checked(&runs, options))
}

/// What a run is checked against.
enum Base {
    /// These, by their places.
    Runs(Vec<usize>),
    /// So few runs of its strategy before it.
    TooFew(usize),
}

/// What each run is checked against; `None` for those that are not to be checked.
fn bases(runs: &[Run], options: &CheckOptions) -> Vec<Option<Base>> {
    let mut of_strategy: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        let places = of_strategy.entry(run.strategy.as_deref()).or_default();
        places.push(place);
    }
    let named: BTreeSet<&String> = options.runs.iter().collect();
    let only = match &options.baseline {
        Baseline::Run(name) => runs.iter().position(|run| run.name == *name),
        Baseline::Median(_) => None,
    };
    let base_of = |(place, run): (usize, &Run)| {
        let alike = &of_strategy[&run.strategy.as_deref()];
        let is_last = alike.last() == Some(&place);
        let is_wanted = named.is_empty() || named.contains(&run.name);
        if !is_wanted || options.latest && !is_last {
            return None;
        }
        match &options.baseline {
            Baseline::Run(_) if only == Some(place) => None,
            Baseline::Run(_) => Some(Base::Runs(only.into_iter().collect())),
            Baseline::Median(count) => {
                let before = &alike[..alike.partition_point(|other| *other < place)];
                Some(match before.len().checked_sub(*count) {
                    Some(first) => Base::Runs(before[first..].to_vec()),
                    None => Base::TooFew(before.len()),
                })
            }
        }
    };
    runs.iter().enumerate().map(base_of).collect()
}

fn checked(runs: &[Run], options: &CheckOptions) -> Checked {
    let mut checked = Checked {
        schema_version: "tracekit.batch.check/v1",
        baseline: match &options.baseline {
            Baseline::Run(name) => name.clone(),
            Baseline::Median(count) => format!("median of {count} runs before"),
        },
        runs: Vec::new(),
        unchecked: Vec::new(),
    };
    for (run, base) in runs.iter().zip(bases(runs, options)) {
        let base: Vec<&Run> = match base {
            None => continue,
            Some(Base::Runs(base)) => base.into_iter().map(|place| &runs[place]).collect(),
            Some(Base::TooFew(before)) => {
                let reason = format!("{before} runs of its strategy before it");
                checked.unchecked.push((run.name.clone(), reason));
                continue;
            }
        };
        let times: Vec<Moved> = CHECKED
            .iter()
            .filter_map(|(name, _)| moved(name, &base, run, options))
            .collect();
        if times.is_empty() {
            let reason = "no steps that could be compared".to_owned();
            checked.unchecked.push((run.name.clone(), reason));
            continue;
        }
        checked.runs.push(RunCheck {
            run: run.name.clone(),
            strategy: run.strategy.clone(),
            date: run.date.clone(),
            against: base.iter().map(|run| run.name.clone()).collect(),
            times,
        });
    }
    checked
}

fn moved(name: &'static str, base: &[&Run], run: &Run, options: &CheckOptions) -> Option<Moved> {
    let now = run.times.get(name)?;
    let of_runs: Vec<&Vec<f64>> = base.iter().filter_map(|run| run.times.get(name)).collect();
    let pool: Vec<f64> = of_runs
        .iter()
        .flat_map(|times| times.iter().copied())
        .collect();
    let (before, after) = (median(&pool)?, median(now)?);
    let judgement = judge(&pool, now, options.alpha, options.min_effect);
    let mut verdict = judgement.verdict;
    let mut reason = judgement.reason.as_str();
    if of_runs.len() > 1 && matches!(verdict, Verdict::Slower | Verdict::Faster) {
        let medians: Vec<f64> = of_runs.iter().filter_map(|times| median(times)).collect();
        let middle = median(&medians)?;
        let spread = deviation(&medians)?;
        if (after - middle).abs() <= FAR * spread {
            verdict = Verdict::NoDifference;
            reason = "runs differ by as much among themselves";
        }
    }
    Some(Moved {
        time: name,
        base_ns: before,
        now_ns: after,
        change: (before > 0.0).then(|| after / before - 1.0),
        p: judgement.p,
        verdict: verdict.of_part(),
        reason,
    })
}

/// The value of a column in a row.
pub(super) struct Cells<'a>(pub(super) &'a DataFrame);

impl Cells<'_> {
    pub(super) fn text(&self, name: &str, row: usize) -> Option<String> {
        let value = self.0.column(name).ok()?.get(row).ok()?;
        Some(value.get_str()?.to_owned())
    }

    pub(super) fn int(&self, name: &str, row: usize) -> Option<i64> {
        let value = self.0.column(name).ok()?.get(row).ok()?;
        if value.is_null() {
            return None;
        }
        value.extract::<i64>()
    }

    fn flag(&self, name: &str, row: usize) -> Option<bool> {
        self.0.column(name).ok()?.bool().ok()?.get(row)
    }
}

/// The runs that were read, in order of time.
fn runs_of(runs: &DataFrame) -> Vec<Run> {
    let cells = Cells(runs);
    let mut found: Vec<Run> = Vec::new();
    for row in 0..runs.height() {
        if cells.text("status", row).as_deref() == Some("done")
            && let Some(name) = cells.text("run", row)
        {
            found.push(Run {
                name,
                strategy: cells.text("strategy", row),
                date: cells.text("date", row),
                start: cells.int("start_ns", row),
                times: BTreeMap::new(),
            });
        }
    }
    found.sort_by(|a, b| {
        let order = |run: &Run| (run.start.is_none(), run.start, run.date.clone());
        order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
    });
    found
}

/// The times of whole steps, by run and name.
fn times_of(steps: &DataFrame) -> BTreeMap<String, BTreeMap<&'static str, Vec<f64>>> {
    let cells = Cells(steps);
    let mut runs: BTreeMap<String, BTreeMap<&'static str, Vec<f64>>> = BTreeMap::new();
    for row in 0..steps.height() {
        if cells.flag("partial", row) == Some(true) {
            continue;
        }
        let Some(run) = cells.text("run", row) else {
            continue;
        };
        let times = runs.entry(run).or_default();
        let is_host = cells.int("device", row).is_none();
        for (name, of_host) in CHECKED {
            if of_host == is_host
                && let Some(time) = cells.int(name, row)
            {
                times.entry(name).or_default().push(time as f64);
            }
        }
    }
    runs
}

/// `checked` as JUnit XML: a test case a run, which fails when it takes more time somewhere.
pub fn junit(checked: &Checked) -> String {
    let failures = checked
        .runs
        .iter()
        .filter(|run| run.has_regressed())
        .count();
    let tests = checked.runs.len() + checked.unchecked.len();
    let undecided = checked.runs.iter().filter(|run| run.undecided().is_some());
    let skipped = checked.unchecked.len() + undecided.count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<testsuites>\n  <testsuite name=\"tracekit batch check\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">"
    );
    let class = xml(&format!("against {}", checked.baseline));
    for run in &checked.runs {
        let _ = write!(
            out,
            "    <testcase classname=\"{class}\" name=\"{}\"",
            xml(&run.run)
        );
        let more = run.times.iter().filter(|time| time.verdict == "more");
        let told: Vec<String> = more.map(Moved::told).collect();
        if let Some(reason) = run.undecided() {
            let reason = xml(&format!("inconclusive: {reason}"));
            let _ = writeln!(
                out,
                ">\n      <skipped message=\"{reason}\"/>\n    </testcase>"
            );
        } else if told.is_empty() {
            out.push_str("/>\n");
        } else {
            let told = xml(&told.join("; "));
            let _ = writeln!(
                out,
                ">\n      <failure message=\"{told}\">{told}</failure>\n    </testcase>"
            );
        }
    }
    for (run, reason) in &checked.unchecked {
        let _ = writeln!(
            out,
            "    <testcase classname=\"{class}\" name=\"{}\">\n      <skipped message=\"{}\"/>\n    </testcase>",
            xml(run),
            xml(reason)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

impl Moved {
    /// In one line.
    pub(super) fn told(&self) -> String {
        let change = self
            .change
            .map_or_else(String::new, |change| format!(" ({:+.1} %)", change * 100.0));
        let name = self.time.trim_end_matches("_ns");
        format!(
            "{name} {:.3} ms, was {:.3} ms{change}",
            self.now_ns / 1e6,
            self.base_ns / 1e6
        )
    }
}

fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of one strategy whose steps take these times.
    fn runs(middles: &[f64]) -> Vec<Run> {
        let run = |(number, middle): (usize, &f64)| {
            let steps = (0..10)
                .map(|step| middle + f64::from(step % 5) * 1e4)
                .collect();
            Run {
                name: format!("r{number}"),
                strategy: Some("ddp".to_owned()),
                start: Some(i64::try_from(number).unwrap()),
                times: BTreeMap::from([("wall_ns", steps)]),
                ..Run::default()
            }
        };
        middles.iter().enumerate().map(run).collect()
    }

    fn options(baseline: Baseline) -> CheckOptions {
        CheckOptions {
            baseline,
            runs: Vec::new(),
            latest: false,
            alpha: 0.01,
            min_effect: 0.03,
        }
    }

    fn verdicts(checked: &Checked) -> Vec<(&str, &str)> {
        let runs = checked.runs.iter();
        runs.map(|run| (run.run.as_str(), run.times[0].verdict))
            .collect()
    }

    #[test]
    fn a_slower_run_is_found_against_one_run_and_against_many() {
        let all = runs(&[1e7, 1.01e7, 0.99e7, 1.3e7]);
        let one = checked(&all, &options(Baseline::Run("r0".to_owned())));
        let none = "no_difference";
        assert_eq!(verdicts(&one), [("r1", none), ("r2", none), ("r3", "more")]);
        assert!(one.has_regressed());
        let many = checked(&all, &options(Baseline::Median(3)));
        assert_eq!(verdicts(&many), [("r3", "more")]);
        assert_eq!(many.unchecked.len(), 3);
        let xml = junit(&many);
        assert!(xml.contains("failures=\"1\" skipped=\"3\""), "{xml}");
        assert!(xml.contains("wall 13.020 ms, was 10."), "{xml}");
    }

    #[test]
    fn runs_that_differ_among_themselves_are_noise() {
        let all = runs(&[1e7, 1.4e7, 0.8e7, 1.2e7, 1.35e7]);
        let many = checked(&all, &options(Baseline::Median(4)));
        assert_eq!(verdicts(&many), [("r4", "no_difference")]);
        assert!(!many.has_regressed());
        let faster = checked(
            &runs(&[1e7, 0.8e7]),
            &options(Baseline::Run("r0".to_owned())),
        );
        assert_eq!(verdicts(&faster), [("r1", "less")]);
        assert!(!faster.has_regressed());
    }

    #[test]
    fn only_the_runs_that_were_asked_for_are_checked() {
        let all = runs(&[1e7, 1e7, 1e7, 1e7]);
        let mut asked = options(Baseline::Median(2));
        asked.latest = true;
        assert_eq!(verdicts(&checked(&all, &asked)), [("r3", "no_difference")]);
        asked.latest = false;
        asked.runs = vec!["r2".to_owned()];
        assert_eq!(verdicts(&checked(&all, &asked)), [("r2", "no_difference")]);
    }

    #[test]
    fn baselines_are_runs_or_medians() {
        assert_eq!("median:5".parse(), Ok(Baseline::Median(5)));
        assert_eq!("a/b".parse(), Ok(Baseline::Run("a/b".to_owned())));
        assert!("median:1".parse::<Baseline>().is_err());
        assert!("median:x".parse::<Baseline>().is_err());
    }
}
