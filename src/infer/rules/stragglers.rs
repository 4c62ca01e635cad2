//! One rank lets the others wait.

use std::cmp::Reverse;

use super::super::case::{Case, Judgement, Rows, percent, share};
use super::super::condition::{Condition, Order};
use super::super::inference::{Category, Level, Number};
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "stragglers",
    category: Category::Communication,
    question: "Do ranks wait for one that comes late?",
    method: "A collective lasts longest on the ranks that come first and wait. What ranks wait in collectives \
             that they share, as a share of the window; the rank that waits least must be the last in \
             most of them, well above chance. This needs no common clock.",
    next_action: "Compare that rank with the others (tracekit inspect ranks): host load, data, thermal limits, \
                  uneven shapes.",
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    if let Some(none) = case.without_collectives() {
        return none;
    }
    let sharing = Rows::of("stragglers").and(Condition::Compared(
        column("collectives"),
        Order::Above,
        number(0),
    ));
    let sql = format!(
        "SELECT rank, collectives, waiting_ns, times_last {sharing} ORDER BY waiting_ns, times_last DESC, rank"
    );
    let sql = sql.as_str();
    let columns = ["waiting_ns", "times_last", "rank", "collectives"].map(column);
    let mut ranks = case.ints(&columns, &sharing);
    ranks.sort_unstable_by_key(|[waiting, last, rank, shared]| {
        (*waiting, Reverse(*last), rank.is_none(), *rank, *shared)
    });
    let count = i64::try_from(ranks.len()).unwrap_or(i64::MAX);
    case.note(
        "ranks that share collectives",
        "count",
        Some(Number::Int(count)),
        sql,
    );
    if count < 2 {
        return Judgement::insufficient(
            "no collective is known on two ranks: one rank was given, or captures do not match",
        );
    }
    let waited = case.ns("time that ranks wait", &column("waiting_ns"), &sharing);
    let [_, last, rank, shared] = ranks[0];
    let (shared, last) = (shared.unwrap_or(0), last.unwrap_or(0));
    case.note(
        "collectives of the rank that waits least",
        "count",
        Some(Number::Int(shared)),
        sql,
    );
    case.note(
        "of them in which it was last",
        "count",
        Some(Number::Int(last)),
        sql,
    );
    let of_window = share(waited, window);
    let part = percent(of_window);
    let name = rank.map_or_else(|| "without a number".to_owned(), |rank| rank.to_string());
    let often = share(last, shared);
    // Of two ranks one is last half of the time by chance alone.
    let chance = 1.0 / count as f64;
    let steady = chance + (1.0 - chance) * case.limit("consistent_share");
    if of_window >= case.limit("wait_share") && often <= steady {
        return Judgement::refuted(format!(
            "ranks wait {part} of the window, but no rank is last in most collectives"
        ))
        .winning(waited, window);
    }
    let often = percent(often);
    let judgement = Judgement::when(
        of_window >= case.limit("wait_share"),
        format!("ranks wait {part} of the window, mostly for rank {name}, last in {often} of the collectives"),
        format!("ranks wait only {part} of the window for others"),
    )
    .winning(waited, window);
    if shared < 3 {
        judgement.at_most(Level::Low, "fewer than three collectives were compared")
    } else {
        judgement
    }
}
