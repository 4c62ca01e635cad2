//! The device waits for the next batch.

use super::super::case::{Case, Judgement, Rows, percent, share};
use super::super::condition::{Condition, Order};
use super::super::inference::{Category, Number};
use super::super::overlap::{common, ranges};
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "data_loading",
    category: Category::Host,
    question: "Does training wait for data?",
    method: "Gaps of devices under the ranges in which PyTorch's DataLoader gives the next batch; in traces \
             without device work, those ranges themselves against the steps.",
    next_action: "More DataLoader workers, pin_memory and prefetching; cheaper transformations; faster storage.",
    needs_launches: false,
    judge,
};

/// How the ranges of PyTorch's loaders begin.
pub(super) const LOADERS: &[&str] = &["enumerate(DataLoader)", "enumerate(DataPipe)"];

/// The ranges of PyTorch's loaders on the thread that trains.
fn loader() -> Rows {
    Rows::of("events")
        .and(Condition::IsTrue("counts"))
        .and(Condition::Is("activity", &["user_annotation", "cpu_op"]))
        .and(Condition::Starts("name", LOADERS))
}

fn judge(case: &mut Case<'_>) -> Judgement {
    let loader = loader();
    let loads = case.count("batches loaded", &loader);
    let loading = case.ns("time in the loader", &column("dur_ns"), &loader);
    let window = case.window();
    if loads == 0 {
        return Judgement::insufficient(
            "no event of PyTorch's DataLoader is in the files: another loader, or none in the window",
        );
    }
    let limit = case.limit("loader_share");
    let Some(window) = window else {
        let steps = case.ns("steps", &column("wall_ns"), &Rows::of("step_ranges"));
        if steps == 0 {
            return Judgement::insufficient("there are neither devices nor steps");
        }
        let part = percent(share(loading, steps));
        let holds = share(loading, steps) >= limit;
        return Judgement::when(
            holds,
            format!("the loader takes {part} of the steps"),
            format!("the loader takes only {part} of the steps"),
        )
        .winning(loading.min(steps), steps);
    };
    let idle = Rows::of("device_work").and(Condition::Compared(
        column("idle_before_ns"),
        Order::Above,
        number(0),
    ));
    let gaps = case.known(
        &[
            column("file"),
            column("start_ns").minus("idle_before_ns"),
            column("start_ns"),
        ],
        &idle,
    );
    let sql = format!("SELECT file, ts_ns AS from_ns, ts_ns + dur_ns AS to_ns {loader}");
    let loads = case.known(
        &[
            column("file"),
            column("ts_ns"),
            column("ts_ns").plus("dur_ns"),
        ],
        &loader,
    );
    let waiting = common(&ranges(&gaps), &ranges(&loads));
    case.note(
        "idle under the loader",
        "ns",
        Some(Number::Int(waiting.0)),
        sql,
    );
    case.blame(&column("dur_ns"), &loader);
    let of_window = share(waiting.0, window);
    let part = percent(of_window);
    Judgement::when(
        of_window >= limit,
        format!("devices are idle {part} of the window while the next batch is loaded"),
        format!("devices are idle only {part} of the window while the next batch is loaded"),
    )
    .winning(waiting.0, window)
}
