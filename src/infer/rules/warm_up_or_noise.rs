//! The capture may not be what training is like.

use super::super::case::{Case, Judgement, Rows, percent};
use super::super::condition::Condition;
use super::super::inference::{Category, Number};
use super::super::sum::column;
use super::Rule;
use crate::stats::{mean, median, median_time};
use crate::units::Ns;

pub(super) const RULE: Rule = Rule {
    code: "warm_up_or_noise",
    category: Category::Measurement,
    question: "Are the steps too uneven to conclude from?",
    method: "Lengths of whole steps: the first over the median, and the standard deviation over the mean; of the \
             worst device, each from the start of the step there to the end of its work, or of the host where devices \
             have too few.",
    next_action: "Profile later (schedule with wait and warmup) and more steps; use --steps to leave steps out.",
    needs_launches: false,
    judge,
};

/// Whole steps, as ranges on the host.
fn host_rows() -> Rows {
    Rows::of("step_ranges").and(Condition::IsFalse("partial"))
}

/// Whole steps on devices. The buckets of a step follow one another, and idle is the last. What was launched before the
/// capture runs in its first step, but is none of its work.
fn device_rows() -> Rows {
    Rows::of("attribution")
        .and(Condition::IsKnown("device"))
        .and(Condition::IsNot("step", "all"))
        .and(Condition::IsFalse("partial"))
        .and(Condition::IsNot("bucket", "pre_window"))
}

/// Whole steps of one device, or of the host of one file, in order.
type Steps = Vec<i64>;

/// The steps of each file on its host.
fn on_host(case: &Case<'_>) -> Vec<Steps> {
    let rows = host_rows();
    let columns = ["rank", "window", "start_ns", "wall_ns"].map(column);
    let names = case.texts("step", &rows);
    let mut steps: Vec<_> = case.ints(&columns, &rows).into_iter().zip(names).collect();
    steps.sort_by_key(|([rank, window, start, _], name)| (*rank, *window, *start, *name));
    let mut files = Series::default();
    for ([rank, window, _, wall], _) in steps {
        if let Some(wall) = wall {
            files.push([rank, window, None], wall);
        }
    }
    files.steps
}

/// The steps of each device that have work on it.
fn on_devices(case: &Case<'_>) -> Vec<Steps> {
    let rows = device_rows();
    let columns = ["rank", "window", "device", "timeline_ns", "events"].map(column);
    let buckets = case.texts("bucket", &rows);
    let mut devices = Series::default();
    let (mut length, mut events) = (0, 0);
    for ([rank, window, device, time, count], bucket) in
        case.ints(&columns, &rows).into_iter().zip(buckets)
    {
        length = i64::saturating_add(length, time.unwrap_or(0));
        events = i64::saturating_add(events, count.unwrap_or(0));
        if bucket == Some("idle") {
            if events > 0 {
                devices.push([rank, window, device], length);
            }
            (length, events) = (0, 0);
        }
    }
    devices.steps
}

/// Lengths by rank, window and device, which come in this order.
#[derive(Default)]
struct Series {
    last: Option<[Option<i64>; 3]>,
    steps: Vec<Steps>,
}

impl Series {
    fn push(&mut self, own: [Option<i64>; 3], length: i64) {
        if self.last != Some(own) {
            self.last = Some(own);
            self.steps.push(Vec::new());
        }
        if let Some(steps) = self.steps.last_mut() {
            steps.push(length);
        }
    }
}

fn judge(case: &mut Case<'_>) -> Judgement {
    let longest = |all: &[Steps]| all.iter().map(Vec::len).max().unwrap_or(0);
    let devices = on_devices(case);
    let is_on_host = (longest(&devices) as f64) < case.limit("steps");
    let (all, sql, place) = if is_on_host {
        let sql = format!(
            "SELECT rank, \"window\", wall_ns {} ORDER BY rank, \"window\", start_ns, step",
            host_rows()
        );
        (on_host(case), sql, "on the host")
    } else {
        let sql = format!(
            "SELECT rank, \"window\", device, bucket, timeline_ns, events {}",
            device_rows()
        );
        (devices, sql, "on devices")
    };
    let most = longest(&all);
    case.note(
        "whole steps",
        "count",
        i64::try_from(most).ok().map(Number::Int),
        sql.as_str(),
    );
    if (most as f64) < case.limit("steps") {
        return Judgement::insufficient(match most {
            0 => "there is no whole step".to_owned(),
            1 => "there is only one whole step".to_owned(),
            _ => format!("there are only {most} whole steps"),
        });
    }
    let (mut worst_first, mut worst_variation) = (0.0_f64, 0.0_f64);
    let (mut excess, mut sum) = (0_i64, 0_i64);
    for walls in &all {
        let lengths: Vec<f64> = walls.iter().map(|wall| *wall as f64).collect();
        let (Some(middle), Some(mean)) = (median(&lengths), mean(&lengths)) else {
            continue;
        };
        if (walls.len() as f64) < case.limit("steps") || middle <= 0.0 || mean <= 0.0 {
            continue;
        }
        let squares: f64 = lengths.iter().map(|wall| (wall - mean).powi(2)).sum();
        let deviation = (squares / (lengths.len() - 1) as f64).sqrt();
        worst_first = worst_first.max(lengths[0] / middle);
        worst_variation = worst_variation.max(deviation / mean);
        let mut sorted: Vec<Ns> = walls.iter().copied().map(Ns).collect();
        sorted.sort_unstable();
        let middle = median_time(&sorted).unwrap_or_default();
        for wall in walls {
            excess = excess.saturating_add((Ns(*wall) - middle).0.max(0));
            sum = sum.saturating_add(*wall);
        }
    }
    case.note(
        "first step over the median",
        "ratio",
        Some(Number::Float(worst_first)),
        sql.as_str(),
    );
    case.note(
        "variation",
        "ratio",
        Some(Number::Float(worst_variation)),
        sql.as_str(),
    );
    case.note(
        "time above the median",
        "ns",
        Some(Number::Int(excess)),
        sql.as_str(),
    );
    let first = worst_first >= case.limit("first_step");
    let noisy = worst_variation >= case.limit("variation");
    let varied = percent(worst_variation);
    match (first, noisy) {
        (true, _) => Judgement::supported(format!(
            "the first step takes {worst_first:.1} times the median {place}: warm-up is in the capture"
        )),
        (false, true) => Judgement::supported(format!("steps vary by {varied} of the mean {place}")),
        (false, false) => Judgement::refuted(format!("steps vary by only {varied} of the mean {place}")),
    }
    .winning(excess, sum)
}
