//! The host cannot launch as fast as the device works.

use super::super::case::{Case, Judgement, Rows, percent, share, work_of};
use super::super::condition::{Condition, Order};
use super::super::inference::{Category, Level};
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "launch_bound",
    category: Category::Host,
    question: "Is the rate of launches the limit?",
    method: "Short gaps before device work before the call that launched it returned: it was on its way \
             from one launch to the next. Their share of the window; kernels shorter than their launch call \
             make it likely.",
    next_action: "CUDA graphs or torch.compile(mode=\"reduce-overhead\"), fused operators, a larger batch.",
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let unlinked = case.unlinked_share();
    if unlinked > case.limit("unlinked_share") {
        let part = percent(unlinked);
        return Judgement::insufficient(format!(
            "{part} of the device time has no launch in the file"
        ));
    }
    let short = case.limit_ns("short_gap_ns");
    let waited = column("host_late_ns").plus("launching_ns");
    let after_short = Rows::of("device_work").and(Condition::Compared(
        column("idle_before_ns"),
        Order::AtMost,
        number(short),
    ));
    let gaps = case.ns(
        "short gaps before the host had launched",
        &waited,
        &after_short,
    );
    let waiting = Condition::Compared(waited, Order::Above, number(0));
    case.count("short gaps", &after_short.and(waiting));
    let unknown = case.ns(
        "short gaps before work without a launch",
        &column("idle_before_ns"),
        &after_short.and(Condition::IsNull("launch_event")),
    );
    let limit = case.limit("gap_share");
    if share(gaps, window) < limit && share(gaps.saturating_add(unknown), window) >= limit {
        let part = percent(share(unknown, window));
        return Judgement::insufficient(format!(
            "devices are idle {part} of the window in short gaps before work whose launch is not in the file"
        ));
    }
    // One launch of a graph has many kernels: it is not compared with each of them.
    let single = work_of(&["compute"])
        .and(Condition::Compared(
            column("launch_dur_ns"),
            Order::Above,
            number(0),
        ))
        .and(Condition::HasNot("launch_name", "Graph"));
    let launched = case.count("kernels with a launch call of their own", &single);
    let shorter = case.count(
        "of them shorter than the call",
        &single.and(Condition::Compared(
            column("dur_ns"),
            Order::Below,
            column("launch_dur_ns"),
        )),
    );
    let of_window = share(gaps, window);
    let part = percent(of_window);
    let judgement = Judgement::when(
        of_window >= limit,
        format!("devices wait {part} of the window in short gaps between launches"),
        format!("short gaps between launches are only {part} of the window"),
    )
    .winning(gaps, window);
    let of_kernels = share(shorter, launched);
    if of_kernels < case.limit("short_kernel_share") {
        let part = percent(of_kernels);
        let reason = format!("only {part} of the kernels are shorter than their launch call");
        judgement.at_most(Level::Medium, reason)
    } else {
        judgement
    }
}
