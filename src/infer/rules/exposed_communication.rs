//! Communication that no computation hides.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "exposed_communication",
    category: Category::Communication,
    question: "Is communication exposed?",
    method: "Time in which communication runs on a device and no kernel computes there; its share of the window.",
    next_action: "Overlap it (bucket sizes, backward prefetch, separate streams), send less (accumulation, \
                  compression, lower precision), or see whether it is waiting for a straggler.",
    tables: &["attribution", "device_work", "files"],
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    if let Some(none) = case.without_collectives()? {
        return Ok(none);
    }
    case.ns(
        "sum of communication kernels",
        "SELECT SUM(dur_ns) FROM device_work WHERE class = 'communication'",
    )?;
    let exposed = case.ns(
        "exposed communication",
        "SELECT SUM(held_ns) FROM device_work WHERE class = 'communication'",
    )?;
    case.blame(
        "SELECT file, event, name FROM device_work WHERE class = 'communication' ORDER BY held_ns DESC, file, event",
    )?;
    let of_window = share(exposed, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= case.limit("exposed_share"),
        format!("{part} of the window is communication that no computation hides"),
        format!("only {part} of the window is communication that no computation hides"),
    )
    .winning(exposed, window))
}
