//! Time goes into kernels that are hardly longer than their own overhead.

use super::super::case::{Case, Judgement, percent, share, work_of};
use super::super::condition::{Condition, Order};
use super::super::inference::{Category, Level};
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "small_kernels",
    category: Category::Compute,
    question: "Does time go into many small kernels?",
    method: "Computing kernels below a length: their share of all kernels and the time of devices that they hold, \
             as a share of the window.",
    next_action: "Fuse them (torch.compile, fused layers and optimizers) or give each more to do.",
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let all = work_of(&["compute"]);
    let kernels = case.count("kernels", &all);
    if kernels == 0 {
        return Judgement::not_applicable("no kernel computes");
    }
    if (kernels as f64) < case.limit("kernels") {
        return Judgement::insufficient(match kernels {
            1 => "there is only one kernel".to_owned(),
            _ => format!("there are only {kernels} kernels"),
        });
    }
    let limit = case.limit_ns("small_ns");
    let small = all.and(Condition::Compared(
        column("dur_ns"),
        Order::Below,
        number(limit),
    ));
    let count = case.count("small kernels", &small);
    let held = case.ns("time they hold", &column("held_ns"), &small);
    let (of_kernels, of_window) = (share(count, kernels), share(held, window));
    let (many, part) = (percent(of_kernels), percent(of_window));
    let holds = of_window >= case.limit("time_share") && of_kernels >= case.limit("count_share");
    Judgement::when(
        holds,
        format!("{many} of the kernels are small and hold {part} of the window"),
        match count {
            0 => "no kernel is small".to_owned(),
            _ => format!("{many} of the kernels are small, but hold only {part} of the window"),
        },
    )
    .winning(held, window)
    .at_most(
        Level::Medium,
        "how much of it fusing saves depends on what they compute",
    )
}
