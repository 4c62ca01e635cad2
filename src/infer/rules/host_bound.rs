//! The device waits for the host.

use super::super::case::{Case, Judgement, Rows, percent, share};
use super::super::condition::{Condition, Order};
use super::super::inference::Category;
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "host_bound",
    category: Category::Host,
    question: "Do devices wait for the host?",
    method: "Of each gap before device work, the part before the call that launched that work returned: \
             the device had nothing to do. Its share of the window.",
    next_action: "Look at what the host does in the longest gaps (tracekit inspect idle); then torch.compile, \
                  CUDA graphs, fewer and larger operators, or more work a step.",
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let unlinked = case.unlinked_share();
    let work = Rows::of("device_work");
    let waited = column("host_late_ns").plus("launching_ns");
    let late = case.ns("idle before the host had launched", &waited, &work);
    case.ns(
        "idle after it had",
        &column("idle_before_ns")
            .minus("host_late_ns")
            .minus("launching_ns"),
        &work,
    );
    let of_window = share(late, window);
    // What is not linked cannot speak against it either.
    if unlinked > case.limit("unlinked_share") {
        let part = percent(unlinked);
        return Judgement::insufficient(format!(
            "{part} of the device time has no launch in the file"
        ));
    }
    let unknown = case.ns(
        "idle before work without a launch",
        &column("idle_before_ns"),
        &work.and(Condition::IsNull("launch_event")),
    );
    let limit = case.limit("late_share");
    if of_window < limit && share(late.saturating_add(unknown), window) >= limit {
        let part = percent(share(unknown, window));
        return Judgement::insufficient(format!(
            "devices are idle {part} of the window before work whose launch is not in the file"
        ));
    }
    let late_work = Condition::Compared(waited.clone(), Order::Above, number(0));
    case.blame(&waited, &work.and(late_work));
    let part = percent(of_window);
    let holds = of_window >= limit;
    Judgement::when(
        holds,
        format!("devices wait {part} of the window for the host to launch"),
        format!("devices wait only {part} of the window for the host to launch"),
    )
    .winning(late, window)
}
