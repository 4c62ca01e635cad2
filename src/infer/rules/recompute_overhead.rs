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
             the window.",
    next_action: "Check whether the memory is needed: checkpoint fewer or cheaper layers, or select what to save.",
    tables: &["attribution"],
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let mut sum = |name, column, bucket| {
        case.ns(
            name,
            &format!(
                "SELECT SUM({column}) FROM attribution WHERE step = 'all' AND device IS NOT NULL AND bucket = '{bucket}'"
            ),
        )
    };
    let forward = sum("forward", "sum_ns", "forward")?;
    let backward = sum("backward", "sum_ns", "backward")?;
    let recompute = sum("recompute", "sum_ns", "recompute")?;
    let held = sum("recompute on the time line", "timeline_ns", "recompute")?;
    if recompute == 0 && backward == 0 {
        return Ok(Judgement::insufficient(
            "no backward pass was found, in which recomputation would be",
        ));
    }
    if recompute == 0 {
        return Ok(Judgement::refuted("nothing is computed again"));
    }
    let of_window = share(held, window);
    let part = percent(of_window);
    let of_forward = percent(share(recompute, forward));
    Ok(Judgement::when(
        of_window >= case.limit("recompute_share"),
        format!("{part} of the window is recomputation, {of_forward} of the forward pass"),
        format!("only {part} of the window is recomputation"),
    )
    .winning(held, window))
}
