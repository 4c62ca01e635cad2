//! Activation checkpointing computes the forward pass again.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "recompute_overhead",
    category: Category::Compute,
    question: "Does recomputation cost much?",
    method: "Time of devices in the recompute phase (forward work that runs again inside backward); its share of \
             the window. Without device work, self time of host operators in that phase; its share of all of them.",
    next_action: "Check whether the memory is needed: checkpoint fewer or cheaper layers, or select what to save.",
    tables: &["attribution"],
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let window = case.window()?;
    let (place, column) = match window {
        Some(_) => ("IS NOT NULL", "sum_ns"),
        None => ("IS NULL", "host_self_ns"),
    };
    let mut sum = |name, column, of: &str| {
        let sql = format!(
            "SELECT SUM({column}) FROM attribution WHERE step = 'all' AND device {place}{of}"
        );
        case.ns(name, &sql)
    };
    let forward = sum("forward", column, " AND bucket = 'forward'")?;
    let backward = sum("backward", column, " AND bucket = 'backward'")?;
    let recompute = sum("recompute", column, " AND bucket = 'recompute'")?;
    let (held, whole, of_what) = if let Some(window) = window {
        let held = sum(
            "recompute on the time line",
            "timeline_ns",
            " AND bucket = 'recompute'",
        )?;
        (held, window, "the window")
    } else {
        let all = sum("host operators", column, "")?;
        (recompute, all, "the time of host operators")
    };
    if whole == 0 {
        return Ok(Judgement::not_applicable(
            "there are neither device work nor host operators",
        ));
    }
    if recompute == 0 && backward == 0 {
        return Ok(Judgement::insufficient(
            "no backward pass was found, in which recomputation would be",
        ));
    }
    if recompute == 0 {
        return Ok(Judgement::refuted("nothing is computed again"));
    }
    let part = percent(share(held, whole));
    let of_forward = percent(share(recompute, forward));
    Ok(Judgement::when(
        share(held, whole) >= case.limit("recompute_share"),
        format!("{part} of {of_what} is recomputation, {of_forward} of the forward pass"),
        format!("only {part} of {of_what} is recomputation"),
    )
    .winning(held, whole))
}
