//! Ranks compute for different times.

use super::super::case::{Case, Judgement, int_at, percent, share};
use super::super::inference::{Category, Number};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "rank_imbalance",
    category: Category::Communication,
    question: "Is the work uneven over the ranks?",
    method: "Kernel time of each rank without communication: the difference of the most and the least, over the \
             mean.",
    next_action: "Even out shapes, sequence lengths, experts, layers of pipeline stages, or the partition.",
    tables: &["attribution", "device_work", "files"],
    needs_launches: false,
    judge,
};

const BY_RANK: &str = "SELECT rank, SUM(dur_ns) AS sum_ns FROM device_work WHERE class = 'compute' \
                       GROUP BY rank ORDER BY rank";

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let rows = case.rows(BY_RANK)?;
    let sums: Vec<(i64, Option<i64>)> = (0..rows.height())
        .filter_map(|row| Some((int_at(&rows, "sum_ns", row)?, int_at(&rows, "rank", row))))
        .collect();
    let ranks = i64::try_from(sums.len()).unwrap_or(i64::MAX);
    case.note("ranks", "count", Some(Number::Int(ranks)), BY_RANK);
    if ranks < 2 {
        let world = case.count("ranks of the job", "SELECT MAX(world_size) FROM files")?;
        return Ok(if world > 1 {
            Judgement::insufficient(format!("only one of {world} ranks was given"))
        } else {
            Judgement::not_applicable("there is one rank")
        });
    }
    let (Some(least), Some(most)) = (sums.iter().min(), sums.iter().max()) else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let mean = sums.iter().map(|(sum, _)| sum).sum::<i64>() / ranks;
    case.note("least", "ns", Some(Number::Int(least.0)), BY_RANK);
    case.note("mean", "ns", Some(Number::Int(mean)), BY_RANK);
    case.note("most", "ns", Some(Number::Int(most.0)), BY_RANK);
    if mean == 0 {
        return Ok(Judgement::not_applicable("no rank computes"));
    }
    let spread = (most.0 - least.0) as f64 / mean as f64;
    case.note("spread", "ratio", Some(Number::Float(spread)), BY_RANK);
    let part = percent(spread);
    let name = |rank: Option<i64>| rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    // With even work the slowest rank, for which all wait, would need the mean.
    let won = (most.0 - mean).saturating_mul(ranks);
    let holds = spread > case.limit("spread") && share(won, window) >= case.limit("window_share");
    let of_window = percent(share(won, window));
    Ok(Judgement::when(
        holds,
        format!(
            "rank {} computes {part} of the mean longer than rank {}",
            name(most.1),
            name(least.1)
        ),
        format!("ranks differ by {part} of the mean, which is {of_window} of the window"),
    )
    .winning(won, window))
}
