//! Kernels leave multiprocessors without work.

use super::super::case::{Case, Judgement, percent, share, work_of};
use super::super::condition::Condition;
use super::super::inference::Category;
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "low_occupancy",
    category: Category::Compute,
    question: "Do kernels leave multiprocessors without work?",
    method: "Of each kernel with fewer blocks than the device has multiprocessors, the part of its time that the \
             idle ones are (1 less blocks per SM); its share of the window.",
    next_action: "Larger batches or shapes, kernels that split the long dimension, or several streams at a time.",
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let kernels = work_of(&["compute"]);
    let all = case.ns("time that kernels hold", &column("held_ns"), &kernels);
    if all == 0 {
        return Judgement::not_applicable("no kernel computes");
    }
    let known = case.ns(
        "of it with a known number of blocks",
        &column("held_ns"),
        &kernels.and(Condition::IsKnown("blocks_per_sm")),
    );
    if share(known, all) < case.limit("known_share") {
        return Judgement::insufficient(
            "the files do not have the number of blocks for each multiprocessor",
        );
    }
    let few = kernels.and(Condition::IsPart("blocks_per_sm"));
    let lost = case.rest_ns(
        "time lost to multiprocessors without a block",
        ["held_ns", "blocks_per_sm"],
        &few,
    );
    case.shared_ns(
        "kernel time times estimated occupancy",
        ["dur_ns", "occupancy"],
        &kernels.and(Condition::IsKnown("occupancy")),
    );
    case.blame(&column("held_ns"), &few);
    let of_window = share(lost, window);
    let part = percent(of_window);
    Judgement::when(
        of_window >= case.limit("lost_share"),
        format!("kernels with too few blocks waste {part} of the window"),
        format!("kernels with too few blocks waste only {part} of the window"),
    )
    .winning(lost, window)
}
