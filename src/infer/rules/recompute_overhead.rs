//! Activation checkpointing computes the forward pass again.

use super::super::case::{Case, Judgement, Rows, captures, percent, share};
use super::super::condition::Condition;
use super::super::inference::Category;
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "recompute_overhead",
    category: Category::Compute,
    question: "Does recomputation cost much?",
    method: "Time of devices in the recompute phase (forward work that runs again inside backward); its share of \
             the window. Without device work, self time of host operators in that phase; its share of all of them.",
    next_action: "Check whether the memory is needed: checkpoint fewer or cheaper layers, or select what to save.",
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let window = case.window();
    let (rows, time) = match window {
        Some(_) => (captures(), "sum_ns"),
        None => (host(), "host_self_ns"),
    };
    let of = |phase: &'static [&'static str]| rows.and(Condition::Is("bucket", phase));
    let forward = case.ns("forward", &column(time), &of(&["forward"]));
    let backward = case.ns("backward", &column(time), &of(&["backward"]));
    let again = of(&["recompute"]);
    let recompute = case.ns("recompute", &column(time), &again);
    let (held, whole, of_what) = if let Some(window) = window {
        let held = case.ns("recompute on the time line", &column("timeline_ns"), &again);
        (held, window, "the window")
    } else {
        let all = case.ns("host operators", &column(time), &rows);
        (recompute, all, "the time of host operators")
    };
    if whole == 0 {
        return Judgement::not_applicable("there are neither device work nor host operators");
    }
    if recompute == 0 && backward == 0 {
        return Judgement::insufficient(
            "no backward pass was found, in which recomputation would be",
        );
    }
    if recompute == 0 {
        return Judgement::refuted("nothing is computed again");
    }
    let part = percent(share(held, whole));
    let of_forward = percent(share(recompute, forward));
    Judgement::when(
        share(held, whole) >= case.limit("recompute_share"),
        format!("{part} of {of_what} is recomputation, {of_forward} of the forward pass"),
        format!("only {part} of {of_what} is recomputation"),
    )
    .winning(held, whole)
}

/// Rows of the captures of hosts.
fn host() -> Rows {
    Rows::of("attribution")
        .and(Condition::Is("step", &["all"]))
        .and(Condition::IsNull("device"))
}
