//! Kernels and annotations as HolisticTraceAnalysis (0.6) breaks them down.
//!
//! What it takes for events is in `hta`. All times are whole microseconds.
//! - *Kernel types* (`get_gpu_kernel_breakdown`, first table): time by the set of types that run at once,
//!   over all devices of a file, summed over the ranks of a run; in percent with one decimal.
//! - *Kernels* (second table): by rank, type and name. Where a type has more than `--top` names (HTA's
//!   own default is 10), only so many of the longest stay, and of those only the ones that are not
//!   among the last fifth: running sums up to their quantile of 0.8. The others are one row. Then sum,
//!   maximum, mean and so on are over the sums of names, no longer over calls.
//! - *User annotations*: (`get_gpu_user_annotation_breakdown`) on the host, and their mirrors on devices.
//!   Standard deviations are those of a sample, and 0 for one value.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::combination::{combinations, named};
use super::frame::{Frame, Unit};
use super::hta::{self, Type};
use super::view::View;
use crate::attribute::span_of;
use crate::model::ActivityType;
use crate::units::{Ns, Span};

/// Statistics of durations, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Statistics {
    calls: u64,
    sum: i64,
    max: i64,
    min: i64,
    mean: f64,
    deviation: f64,
}

impl Statistics {
    /// Of `values`, which must not be empty.
    fn of(values: &[i64]) -> Self {
        let sum: i64 = values
            .iter()
            .fold(0, |sum, value| sum.saturating_add(*value));
        let count = values.len() as f64;
        let mean = sum as f64 / count;
        let squares: f64 = values
            .iter()
            .map(|value| (*value as f64 - mean).powi(2))
            .sum();
        let deviation = if values.len() > 1 {
            (squares / (count - 1.0)).sqrt()
        } else {
            0.0
        };
        Self {
            calls: values.len() as u64,
            sum,
            max: values.iter().copied().max().unwrap_or(0),
            min: values.iter().copied().min().unwrap_or(0),
            mean,
            deviation,
        }
    }
}

/// One row.
#[derive(Debug, Clone)]
struct Row {
    name: String,
    kind: Option<Type>,
    statistics: Statistics,
}

fn microseconds(span: Span) -> i64 {
    span.len().0 / 1000
}

/// Durations by name, sorted so that sums of them do not depend on the order of the file.
fn sorted<K: Ord>(mut by_name: BTreeMap<K, Vec<i64>>) -> BTreeMap<K, Vec<i64>> {
    for durations in by_name.values_mut() {
        durations.sort_unstable();
    }
    by_name
}

/// Kernels of one file, by type and name.
pub(super) fn kernels(view: &View<'_>) -> Frame {
    let trace = view.trace();
    let mut types: BTreeMap<Type, BTreeMap<&str, Vec<i64>>> = BTreeMap::new();
    for work in hta::work(view) {
        let name = trace.name(work.event);
        let span = hta::rounded(span_of(trace, work.event));
        let of_type = types.entry(Type::of(name)).or_default();
        of_type.entry(name).or_default().push(microseconds(span));
    }
    let mut rows = Vec::new();
    for (kind, by_name) in types {
        rows.extend(largest(kind, sorted(by_name), view.options.top));
    }
    statistics_frame("kernels", "Kernels as HTA breaks them down.", &rows)
}

/// The rows of one type: all, or when there are more than `top`, the longest and the others.
fn largest(kind: Type, by_name: BTreeMap<&str, Vec<i64>>, top: usize) -> Vec<Row> {
    let row = |name: &str, values: &[i64]| Row {
        name: name.to_owned(),
        kind: Some(kind),
        statistics: Statistics::of(values),
    };
    if top == 0 || by_name.len() <= top {
        let mut rows: Vec<Row> = by_name
            .iter()
            .map(|(name, values)| row(name, values))
            .collect();
        rows.sort_by_key(|row| Reverse(row.statistics.sum));
        return rows;
    }
    let mut sums: Vec<(Reverse<i64>, &str)> = by_name
        .iter()
        .map(|(name, values)| (Reverse(Statistics::of(values).sum), *name))
        .collect();
    sums.sort_unstable();
    // The running sums up to their quantile of 0.8, which lies at or after this one.
    let within = (sums.len() - 1) * 4 / 5 + 1;
    let kept = within.min(top);
    let mut rows: Vec<Row> = sums[..kept]
        .iter()
        .map(|(sum, name)| row(name, &[sum.0]))
        .collect();
    let others: Vec<i64> = sums[kept..].iter().map(|(sum, _)| sum.0).collect();
    if !others.is_empty() {
        rows.push(row("others", &others));
    }
    rows
}

/// Annotations of one file, of the host and as mirrored on devices.
pub(super) fn annotations(view: &View<'_>) -> Vec<Frame> {
    let trace = view.trace();
    let last = hta::last_start(&hta::steps(view));
    let of = |activity: ActivityType| {
        let mut by_name: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for id in trace.events.ids() {
            if trace.events.activity(id) != activity || !trace.events.is_complete(id) {
                continue;
            }
            let span = hta::rounded(span_of(trace, id));
            if last.is_none_or(|last| span.start < last) {
                by_name
                    .entry(trace.name(id))
                    .or_default()
                    .push(microseconds(span));
            }
        }
        let mut rows: Vec<Row> = sorted(by_name)
            .into_iter()
            .map(|(name, values)| Row {
                name: name.to_owned(),
                kind: None,
                statistics: Statistics::of(&values),
            })
            .collect();
        rows.sort_by_key(|row| Reverse(row.statistics.sum));
        rows
    };
    vec![
        statistics_frame(
            "cpu_user_annotations",
            "Annotations on the host as HTA sums them.",
            &of(ActivityType::UserAnnotation),
        ),
        statistics_frame(
            "gpu_user_annotations",
            "Annotations as mirrored on devices, which HTA takes for their device time.",
            &of(ActivityType::GpuUserAnnotation),
        ),
    ]
}

fn statistics_frame(name: &'static str, about: &'static str, rows: &[Row]) -> Frame {
    let frame = Frame::new(name, about).text("name", rows, |row| Some(row.name.clone()));
    let frame = if name == "kernels" {
        frame.text("kernel_type", rows, |row| row.kind.map(Type::name))
    } else {
        frame
    };
    frame
        .count("count", rows, |row| Some(row.statistics.calls))
        .id("sum_us", rows, |row| Some(row.statistics.sum))
        .id("max_us", rows, |row| Some(row.statistics.max))
        .id("min_us", rows, |row| Some(row.statistics.min))
        .float("stddev_us", Unit::Number, rows, |row| {
            Some(row.statistics.deviation)
        })
        .float("mean_us", Unit::Number, rows, |row| {
            Some(row.statistics.mean)
        })
}

/// Time of one file by the set of types that run at once.
pub(super) fn types(view: &View<'_>) -> BTreeMap<u32, Ns> {
    let trace = view.trace();
    let work = hta::work(view);
    combinations(work.into_iter().map(|work| {
        let kind = Type::of(trace.name(work.event));
        (hta::rounded(span_of(trace, work.event)), 1 << kind as u32)
    }))
}

/// One row a run and set of types.
pub(super) fn types_frame(runs: &BTreeMap<String, BTreeMap<u32, Ns>>) -> Frame {
    let names = Type::ALL.map(Type::name);
    let mut rows = Vec::new();
    for (run, time) in runs {
        let all: Ns = time.values().copied().sum();
        let mut of_run: Vec<_> = time
            .iter()
            .map(|(set, time)| (run, named(*set, &names, " overlapping "), *time, all))
            .collect();
        of_run.sort_by(|a, b| (b.2, &a.1).cmp(&(a.2, &b.1)));
        rows.append(&mut of_run);
    }
    Frame::new(
        "kernel_types",
        "Time by types of kernels at once, over all ranks, as HTA has it.",
    )
    .text("run", &rows, |row| Some(row.0.clone()))
    .text("kernel_type", &rows, |row| Some(row.1.clone()))
    .id("sum_us", &rows, |row| Some(row.2.0 / 1000))
    .float("percentage", Unit::Number, &rows, |row| {
        let percent = row.2.ratio(row.3)? * 100.0;
        Some((percent * 10.0).round_ties_even() / 10.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_become_the_longest_and_the_others() {
        let names: Vec<String> = (0..12).map(|number| format!("k{number:02}")).collect();
        let by_name = || -> BTreeMap<&str, Vec<i64>> {
            let entries = (0_i64..).zip(&names);
            entries
                .map(|(at, name)| (name.as_str(), vec![100 - at, 1]))
                .collect()
        };
        // Of 12 running sums, those up to place 0.8 × 11 = 8.8 stay: nine.
        let rows = largest(Type::Computation, by_name(), 10);
        assert_eq!(rows.len(), 10);
        assert_eq!(rows[0].statistics, Statistics::of(&[101]));
        assert_eq!(
            (rows[9].name.as_str(), rows[9].statistics),
            ("others", Statistics::of(&[92, 91, 90]))
        );
        // Few names keep their calls.
        let rows = largest(Type::Computation, by_name(), 12);
        assert_eq!(rows[0].statistics, Statistics::of(&[100, 1]));
    }

    #[test]
    fn deviations_are_those_of_a_sample() {
        let statistics = Statistics::of(&[2, 4, 9]);
        assert_eq!((statistics.sum, statistics.max, statistics.min), (15, 9, 2));
        assert!((statistics.mean - 5.0).abs() < 1e-12);
        assert!((statistics.deviation - 13.0_f64.sqrt()).abs() < 1e-12);
        assert!(Statistics::of(&[7]).deviation.abs() < 1e-12);
    }
}
