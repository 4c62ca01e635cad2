//! Copies that nothing hides.

use super::super::case::{Case, Judgement, percent, share, without_copies, work_of};
use super::super::inference::Category;
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "memory_copies",
    category: Category::Memory,
    question: "Do copies hold devices up?",
    method: "Time in which copies run on a device and neither computation nor communication does; its share of \
             the window.",
    next_action: "Copy on a stream of its own, ahead of the step that needs the data; keep tensors on the device; \
                  copy fewer bytes.",
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let work = work_of(&["memcpy"]);
    let copies = case.count("copies", &work);
    if copies == 0 {
        return match case.copy_calls() {
            0 => Judgement::refuted("there are no copies"),
            calls => without_copies(calls),
        };
    }
    case.ns("sum of copies", &column("dur_ns"), &work);
    let exposed = case.ns("copies that nothing hides", &column("held_ns"), &work);
    case.blame(&column("held_ns"), &work);
    let of_window = share(exposed, window);
    let part = percent(of_window);
    Judgement::when(
        of_window >= case.limit("exposed_share"),
        format!("{part} of the window is copies that nothing hides"),
        format!("only {part} of the window is copies that nothing hides"),
    )
    .winning(exposed, window)
}
