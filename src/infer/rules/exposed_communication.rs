//! Communication that no computation hides.

use super::super::case::{Case, Judgement, percent, share, work_of};
use super::super::inference::Category;
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "exposed_communication",
    category: Category::Communication,
    question: "Is communication exposed?",
    method: "Time in which communication runs on a device and no kernel computes there; its share of the window.",
    next_action: "Overlap it (bucket sizes, backward prefetch, separate streams), send less (accumulation, \
                  compression, lower precision), or see whether it is waiting for a straggler.",
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
    let communication = work_of(&["communication"]);
    case.ns(
        "sum of communication kernels",
        &column("dur_ns"),
        &communication,
    );
    let exposed = case.ns("exposed communication", &column("held_ns"), &communication);
    case.blame(&column("held_ns"), &communication);
    let of_window = share(exposed, window);
    let part = percent(of_window);
    Judgement::when(
        of_window >= case.limit("exposed_share"),
        format!("{part} of the window is communication that no computation hides"),
        format!("only {part} of the window is communication that no computation hides"),
    )
    .winning(exposed, window)
}
