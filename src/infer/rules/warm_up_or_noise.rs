//! The capture may not be what training is like.

use super::super::case::{Case, Judgement, int_at, percent};
use super::super::inference::{Category, Number};
use super::Rule;
use crate::error::Result;
use crate::stats::{mean, median};

pub(super) const RULE: Rule = Rule {
    code: "warm_up_or_noise",
    category: Category::Measurement,
    question: "Are the steps too uneven to conclude from?",
    method: "Lengths of whole steps on the host: the first over the median, and the standard deviation over the mean.",
    next_action: "Profile later (schedule with wait and warmup) and more steps; use --steps to leave steps out.",
    tables: &["step_ranges"],
    needs_launches: false,
    judge,
};

const STEPS: &str = "SELECT rank, \"window\", step, start_ns, wall_ns FROM step_ranges WHERE partial = FALSE ORDER BY rank, \
                     \"window\", start_ns, step";

/// Rank and window.
type File = (Option<i64>, Option<i64>);

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let rows = case.rows(STEPS)?;
    let mut by_file: Vec<(File, Vec<i64>)> = Vec::new();
    for row in 0..rows.height() {
        let at = |column| int_at(&rows, column, row);
        let (own, Some(wall)) = ((at("rank"), at("window")), at("wall_ns")) else {
            continue;
        };
        match by_file.last_mut() {
            Some((known, walls)) if *known == own => walls.push(wall),
            _ => by_file.push((own, vec![wall])),
        }
    }
    let most = by_file.iter().map(|(_, walls)| walls.len()).max();
    let most = most.unwrap_or(0);
    case.note(
        "whole steps",
        "count",
        i64::try_from(most).ok().map(Number::Int),
        STEPS,
    );
    if (most as f64) < case.limit("steps") {
        return Ok(Judgement::insufficient(format!(
            "there are {most} whole steps"
        )));
    }
    let (mut worst_first, mut worst_variation) = (0.0_f64, 0.0_f64);
    let (mut excess, mut all) = (0_i64, 0_i64);
    for (_, walls) in &by_file {
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
        let mut sorted = walls.clone();
        sorted.sort_unstable();
        let middle = sorted[sorted.len() / 2];
        excess += walls.iter().map(|wall| (wall - middle).max(0)).sum::<i64>();
        all += walls.iter().sum::<i64>();
    }
    case.note(
        "first step over the median",
        "ratio",
        Some(Number::Float(worst_first)),
        STEPS,
    );
    case.note(
        "variation",
        "ratio",
        Some(Number::Float(worst_variation)),
        STEPS,
    );
    case.note(
        "time above the median",
        "ns",
        Some(Number::Int(excess)),
        STEPS,
    );
    let first = worst_first >= case.limit("first_step");
    let noisy = worst_variation >= case.limit("variation");
    let varied = percent(worst_variation);
    Ok(match (first, noisy) {
        (true, _) => Judgement::supported(format!(
            "the first step takes {worst_first:.1} times the median: warm-up is in the capture"
        )),
        (false, true) => Judgement::supported(format!("steps vary by {varied} of the mean")),
        (false, false) => Judgement::refuted(format!("steps vary by only {varied} of the mean")),
    }
    .winning(excess, all))
}
