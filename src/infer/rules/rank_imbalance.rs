//! Ranks compute for different times.

use std::collections::BTreeMap;

use super::super::case::{Case, Judgement, percent, share, work_of};
use super::super::inference::{Category, Number};
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "rank_imbalance",
    category: Category::Communication,
    question: "Is the work uneven over the ranks?",
    method: "Kernel time of each rank without communication: the difference of the most and the least, over the \
             mean.",
    next_action: "Even out shapes, sequence lengths, experts, layers of pipeline stages, or the partition.",
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let mut by_rank: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    let kernels = work_of(&["compute"]);
    let sql = format!("SELECT rank, SUM(dur_ns) AS sum_ns {kernels} GROUP BY rank ORDER BY rank");
    let sql = sql.as_str();
    for [rank, time] in case.ints(&[column("rank"), column("dur_ns")], &kernels) {
        let sum = by_rank.entry(rank).or_default();
        *sum = sum.saturating_add(time.unwrap_or(0));
    }
    let sums = by_rank.into_iter().map(|(rank, sum)| (sum, rank));
    let sums: Vec<(i64, Option<i64>)> = sums.collect();
    let ranks = i64::try_from(sums.len()).unwrap_or(i64::MAX);
    case.note("ranks", "count", Some(Number::Int(ranks)), sql);
    if ranks < 2 {
        let world = case.world_size();
        return if world > 1 {
            Judgement::insufficient(format!("only one of {world} ranks was given"))
        } else {
            Judgement::not_applicable("there is one rank")
        };
    }
    let (Some(least), Some(most)) = (sums.iter().min(), sums.iter().max()) else {
        return Judgement::not_applicable("there is no device work");
    };
    let mean = sums.iter().map(|(sum, _)| sum).sum::<i64>() / ranks;
    case.note("least", "ns", Some(Number::Int(least.0)), sql);
    case.note("mean", "ns", Some(Number::Int(mean)), sql);
    case.note("most", "ns", Some(Number::Int(most.0)), sql);
    if mean == 0 {
        return Judgement::not_applicable("no rank computes");
    }
    let spread = (most.0 - least.0) as f64 / mean as f64;
    case.note("spread", "ratio", Some(Number::Float(spread)), sql);
    let part = percent(spread);
    let name = |rank: Option<i64>| rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    // With even work the slowest rank, for which all wait, would need the mean.
    let won = (most.0 - mean).saturating_mul(ranks);
    let holds = spread > case.limit("spread") && share(won, window) >= case.limit("window_share");
    let of_window = percent(share(won, window));
    Judgement::when(
        holds,
        format!(
            "rank {} computes {part} of the mean longer than rank {}",
            name(most.1),
            name(least.1)
        ),
        format!("ranks differ by {part} of the mean, which is {of_window} of the window"),
    )
    .winning(won, window)
}
