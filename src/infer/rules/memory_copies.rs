//! Copies that nothing hides.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "memory_copies",
    category: Category::Memory,
    question: "Do copies hold devices up?",
    method: "Time in which copies run on a device and neither computation nor communication does; its share of \
             the window.",
    next_action: "Copy on a stream of its own, ahead of the step that needs the data; keep tensors on the device; \
                  copy fewer bytes.",
    tables: &["attribution", "device_work", "events"],
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let copies = case.count(
        "copies",
        "SELECT COUNT(*) FROM device_work WHERE class = 'memcpy'",
    )?;
    if copies == 0 {
        return Ok(match case.copy_calls()? {
            0 => Judgement::refuted("there are no copies"),
            calls => Judgement::insufficient(format!(
                "{calls} calls that copy are in the files, but no copy on a device"
            )),
        });
    }
    case.ns(
        "sum of copies",
        "SELECT SUM(dur_ns) FROM device_work WHERE class = 'memcpy'",
    )?;
    let exposed = case.ns(
        "copies that nothing hides",
        "SELECT SUM(held_ns) FROM device_work WHERE class = 'memcpy'",
    )?;
    case.blame(
        "SELECT file, event, name FROM device_work WHERE class = 'memcpy' ORDER BY held_ns DESC, file, event",
    )?;
    let of_window = share(exposed, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= case.limit("exposed_share"),
        format!("{part} of the window is copies that nothing hides"),
        format!("only {part} of the window is copies that nothing hides"),
    )
    .winning(exposed, window))
}
