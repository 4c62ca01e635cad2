//! One rank lets the others wait.

use super::super::case::{Case, Judgement, int_at, percent, share};
use super::super::inference::{Category, Level, Number};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "stragglers",
    category: Category::Communication,
    question: "Do ranks wait for one that comes late?",
    method: "A collective lasts longest on the ranks that come first and wait. What ranks wait in collectives \
             that they share, as a share of the window; the rank that waits least must be the last in \
             most of them, well above chance. This needs no common clock.",
    next_action: "Compare that rank with the others (tracekit inspect ranks): host load, data, thermal limits, \
                  uneven shapes.",
    tables: &["attribution", "device_work", "files", "stragglers"],
    needs_launches: false,
    judge,
};

const RANKS: &str = "SELECT rank, collectives, waiting_ns, times_last FROM stragglers WHERE collectives > 0 \
                     ORDER BY waiting_ns, times_last DESC, rank";

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    if let Some(none) = case.without_collectives()? {
        return Ok(none);
    }
    let ranks = case.rows(RANKS)?;
    let count = i64::try_from(ranks.height()).unwrap_or(i64::MAX);
    case.note(
        "ranks that share collectives",
        "count",
        Some(Number::Int(count)),
        RANKS,
    );
    if count < 2 {
        return Ok(Judgement::insufficient(
            "no collective is known on two ranks: one rank was given, or captures do not match",
        ));
    }
    let waited = case.ns(
        "time that ranks wait",
        "SELECT SUM(waiting_ns) FROM stragglers WHERE collectives > 0",
    )?;
    let first = |column| int_at(&ranks, column, 0).unwrap_or(0);
    let (shared, last) = (first("collectives"), first("times_last"));
    case.note(
        "collectives of the rank that waits least",
        "count",
        Some(Number::Int(shared)),
        RANKS,
    );
    case.note(
        "of them in which it was last",
        "count",
        Some(Number::Int(last)),
        RANKS,
    );
    let of_window = share(waited, window);
    let part = percent(of_window);
    let rank = int_at(&ranks, "rank", 0);
    let name = rank.map_or_else(|| "without a number".to_owned(), |rank| rank.to_string());
    let often = share(last, shared);
    // Of two ranks one is last half of the time by chance alone.
    let chance = 1.0 / count as f64;
    let steady = chance + (1.0 - chance) * case.limit("consistent_share");
    if of_window >= case.limit("wait_share") && often <= steady {
        return Ok(Judgement::refuted(format!(
            "ranks wait {part} of the window, but no rank is last in most collectives"
        ))
        .winning(waited, window));
    }
    let often = percent(often);
    let judgement = Judgement::when(
        of_window >= case.limit("wait_share"),
        format!("ranks wait {part} of the window, mostly for rank {name}, last in {often} of the collectives"),
        format!("ranks wait only {part} of the window for others"),
    )
    .winning(waited, window);
    Ok(if shared < 3 {
        judgement.at_most(Level::Low, "fewer than three collectives were compared")
    } else {
        judgement
    })
}
