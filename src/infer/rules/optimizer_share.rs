//! The optimizer updates tensor by tensor.

use std::sync::LazyLock;

use regex::Regex;

use super::super::case::{Case, Judgement, Rows, percent, share};
use super::super::condition::{Condition, Order};
use super::super::inference::Category;
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "optimizer_share",
    category: Category::Compute,
    question: "Does the optimizer step tensor by tensor?",
    method: "Time that computing kernels of the optimizer phase hold, with short gaps before them, as a share of the window; and \
             how much of its kernel time is in multi-tensor, fused or compiled kernels.",
    next_action: "foreach=True or fused=True for the optimizer, or torch.compile its step.",
    needs_launches: true,
    judge,
};

/// Kernels that update many tensors, or do several things, at once.
static FUSED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("multi_tensor|[fF]used|^triton_").expect("it is a regular expression")
});

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let kernels = Rows::of("device_work")
        .and(Condition::Is("phase", &["optimizer"]))
        .and(Condition::Is("class", &["compute"]));
    let count = case.count("kernels of the optimizer", &kernels);
    if count == 0 {
        let unlinked = case.unlinked_share();
        let backward = case.count(
            "kernels of the backward pass",
            &Rows::of("device_work").and(Condition::Is("phase", &["backward"])),
        );
        return if unlinked > case.limit("unlinked_share") {
            let part = percent(unlinked);
            Judgement::insufficient(format!(
                "{part} of the device time has no launch in the file, so its phase is not known"
            ))
        } else if backward > 0 {
            Judgement::insufficient("there is a backward pass, but no optimizer after it")
        } else {
            Judgement::not_applicable("no work of an optimizer was found")
        };
    }
    let sum = case.ns("their time", &column("dur_ns"), &kernels);
    let fused = case.ns(
        "of it in fused kernels",
        &column("dur_ns"),
        &kernels.and(Condition::Matches("name", &FUSED)),
    );
    let held = case.ns("time they hold", &column("held_ns"), &kernels);
    let short = case.limit_ns("short_gap_ns");
    let after_short = Condition::Compared(column("idle_before_ns"), Order::AtMost, number(short));
    let gaps = case.ns(
        "short gaps before them",
        &column("idle_before_ns"),
        &kernels.and(after_short),
    );
    let won = held.saturating_add(gaps);
    let of_window = share(won, window);
    let (part, of_kernels) = (percent(of_window), share(fused, sum));
    if of_window < case.limit("optimizer_share") {
        return Judgement::refuted(format!("the optimizer takes only {part} of the window"))
            .winning(won, window);
    }
    let fused = percent(of_kernels);
    Judgement::when(
        of_kernels < case.limit("fused_share"),
        format!("the optimizer takes {part} of the window, {fused} of its kernel time in fused kernels"),
        format!("the optimizer takes {part} of the window, but {fused} of its kernel time is in fused kernels"),
    )
    .winning(won, window)
}
