//! The device waits for the next batch.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::{Category, Number};
use super::super::overlap::{common, ranges};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "data_loading",
    category: Category::Host,
    question: "Does training wait for data?",
    method: "Gaps of devices under the ranges in which PyTorch's DataLoader gives the next batch; in traces \
             without device work, those ranges themselves against the steps.",
    next_action: "More DataLoader workers, pin_memory and prefetching; cheaper transformations; faster storage.",
    tables: &["attribution", "device_work", "events", "step_ranges"],
    needs_launches: false,
    judge,
};

/// The ranges of PyTorch's loaders on the thread that trains.
const LOADER: &str = "FROM events WHERE ph = 'X' AND cat IN ('user_annotation', 'cpu_op', 'Operator') \
                      AND (STARTS_WITH(name, 'enumerate(DataLoader)') OR STARTS_WITH(name, 'enumerate(DataPipe)'))";

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let loads = case.count("batches loaded", &format!("SELECT COUNT(*) {LOADER}"))?;
    let loading = case.ns(
        "time in the loader",
        &format!("SELECT SUM(dur_ns) {LOADER}"),
    )?;
    let window = case.window()?;
    if loads == 0 {
        return Ok(Judgement::insufficient(
            "no event of PyTorch's DataLoader is in the files: another loader, or none in the window",
        ));
    }
    let limit = case.limit("loader_share");
    let Some(window) = window else {
        let steps = case.ns("steps", "SELECT SUM(wall_ns) FROM step_ranges")?;
        if steps == 0 {
            return Ok(Judgement::insufficient(
                "there are neither devices nor steps",
            ));
        }
        let part = percent(share(loading, steps));
        let holds = share(loading, steps) >= limit;
        return Ok(Judgement::when(
            holds,
            format!("the loader takes {part} of the steps"),
            format!("the loader takes only {part} of the steps"),
        )
        .winning(loading.min(steps), steps));
    };
    let gaps = case.rows(
        "SELECT file, start_ns - idle_before_ns AS from_ns, start_ns AS to_ns FROM device_work WHERE idle_before_ns > 0",
    )?;
    let sql = format!("SELECT file, ts_ns AS from_ns, ts_ns + dur_ns AS to_ns {LOADER}");
    let loads = case.rows(&sql)?;
    let waiting = common(
        &ranges(&gaps, "from_ns", "to_ns"),
        &ranges(&loads, "from_ns", "to_ns"),
    );
    case.note(
        "idle under the loader",
        "ns",
        Some(Number::Int(waiting.0)),
        &sql,
    );
    case.blame(&format!(
        "SELECT file, event, name {LOADER} ORDER BY dur_ns DESC, file, event"
    ))?;
    let of_window = share(waiting.0, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= limit,
        format!("devices are idle {part} of the window while the next batch is loaded"),
        format!("devices are idle only {part} of the window while the next batch is loaded"),
    )
    .winning(waiting.0, window))
}
