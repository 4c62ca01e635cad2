//! The device waits for the host.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "host_bound",
    category: Category::Host,
    question: "Do devices wait for the host?",
    method: "Of each gap before device work, the part before the call that launched that work returned: \
             the device had nothing to do. Its share of the window.",
    next_action: "Look at what the host does in the longest gaps (tracekit inspect idle); then torch.compile, \
                  CUDA graphs, fewer and larger operators, or more work a step.",
    tables: &["attribution", "device_work"],
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let unlinked = case.unlinked_share()?;
    let late = case.ns(
        "idle before the host had launched",
        "SELECT SUM(host_late_ns + launching_ns) FROM device_work",
    )?;
    case.ns(
        "idle after it had",
        "SELECT SUM(idle_before_ns - host_late_ns - launching_ns) FROM device_work",
    )?;
    let of_window = share(late, window);
    // What is not linked cannot speak against it either.
    if unlinked > case.limit("unlinked_share") {
        let part = percent(unlinked);
        return Ok(Judgement::insufficient(format!(
            "{part} of the device time has no launch in the file"
        )));
    }
    let unknown = case.ns(
        "idle before work without a launch",
        "SELECT SUM(idle_before_ns) FROM device_work WHERE launch_event IS NULL",
    )?;
    let limit = case.limit("late_share");
    if of_window < limit && share(late + unknown, window) >= limit {
        let part = percent(share(unknown, window));
        return Ok(Judgement::insufficient(format!(
            "devices are idle {part} of the window before work whose launch is not in the file"
        )));
    }
    case.blame(
        "SELECT file, event, name FROM device_work WHERE host_late_ns + launching_ns > 0 ORDER BY host_late_ns + launching_ns DESC, file, event",
    )?;
    let part = percent(of_window);
    let holds = of_window >= limit;
    Ok(Judgement::when(
        holds,
        format!("devices wait {part} of the window for the host to launch"),
        format!("devices wait only {part} of the window for the host to launch"),
    )
    .winning(late, window))
}
