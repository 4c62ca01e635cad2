//! Copies from and to memory that is not pinned.

use super::super::case::{Case, Judgement, percent, share, without_copies, work_of};
use super::super::condition::Condition;
use super::super::inference::Category;
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "pageable_transfers",
    category: Category::Memory,
    question: "Do copies use pageable memory?",
    method: "Copies whose name says Pageable: the driver moves them through a buffer of its own and the host waits. \
             The time in which nothing else runs on the device, as a share of the window.",
    next_action: "pin_memory=True in the DataLoader, tensor.pin_memory() for others, then non_blocking=True.",
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let between = work_of(&["memcpy"]).and(Condition::Has("name", &["HtoD", "DtoH"]));
    let copies = case.count("copies from and to the host", &between);
    if copies == 0 {
        let any = case.count("copies", &work_of(&["memcpy"]));
        let calls = if any == 0 { case.copy_calls() } else { 0 };
        return match calls {
            0 => Judgement::not_applicable("nothing is copied from or to the host"),
            calls => without_copies(calls),
        };
    }
    let told = case.count(
        "of them that tell the kind of memory",
        &between.and(Condition::Has("name", &["Pageable", "Pinned"])),
    );
    if told == 0 {
        return Judgement::insufficient("names of copies do not tell the kind of memory");
    }
    let pageable = between.and(Condition::Has("name", &["Pageable"]));
    case.count("pageable copies", &pageable);
    case.ns("sum of pageable copies", &column("dur_ns"), &pageable);
    case.measured(
        "time of the host in the calls",
        "ns",
        &column("launch_dur_ns"),
        &pageable,
    );
    case.measured(
        "size of pageable copies",
        "bytes",
        &column("size_bytes"),
        &pageable,
    );
    let exposed = case.ns(
        "pageable copies that nothing hides",
        &column("held_ns"),
        &pageable,
    );
    case.blame(&column("dur_ns"), &pageable);
    let of_window = share(exposed, window);
    let part = percent(of_window);
    Judgement::when(
        of_window >= case.limit("exposed_share"),
        format!("{part} of the window is copies from or to pageable memory"),
        format!("only {part} of the window is copies from or to pageable memory"),
    )
    .winning(exposed, window)
}
