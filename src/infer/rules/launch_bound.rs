//! The host cannot launch as fast as the device works.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::{Category, Level};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "launch_bound",
    category: Category::Host,
    question: "Is the rate of launches the limit?",
    method: "Short gaps before device work before the call that launched it returned: it was on its way \
             from one launch to the next. Their share of the window; kernels shorter than their launch call \
             make it likely.",
    next_action: "CUDA graphs or torch.compile(mode=\"reduce-overhead\"), fused operators, a larger batch.",
    tables: &["attribution", "device_work"],
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let unlinked = case.unlinked_share()?;
    if unlinked > case.limit("unlinked_share") {
        let part = percent(unlinked);
        return Ok(Judgement::insufficient(format!(
            "{part} of the device time has no launch in the file"
        )));
    }
    let short = case.limit_ns("short_gap_ns");
    let gaps = case.ns(
        "short gaps before the host had launched",
        &format!("SELECT SUM(host_late_ns + launching_ns) FROM device_work WHERE idle_before_ns <= {short}"),
    )?;
    case.count(
        "short gaps",
        &format!(
            "SELECT COUNT(*) FROM device_work WHERE host_late_ns + launching_ns > 0 AND idle_before_ns <= {short}"
        ),
    )?;
    let unknown = case.ns(
        "short gaps before work without a launch",
        &format!(
            "SELECT SUM(idle_before_ns) FROM device_work WHERE launch_event IS NULL AND idle_before_ns <= {short}"
        ),
    )?;
    let limit = case.limit("gap_share");
    if share(gaps, window) < limit && share(gaps + unknown, window) >= limit {
        let part = percent(share(unknown, window));
        return Ok(Judgement::insufficient(format!(
            "devices are idle {part} of the window in short gaps before work whose launch is not in the file"
        )));
    }
    // One launch of a graph has many kernels: it is not compared with each of them.
    let single = "launch_dur_ns > 0 AND launch_name NOT LIKE '%Graph%'";
    let launched = case.count(
        "kernels with a launch call of their own",
        &format!("SELECT COUNT(*) FROM device_work WHERE class = 'compute' AND {single}"),
    )?;
    let shorter = case.count(
        "of them shorter than the call",
        &format!(
            "SELECT COUNT(*) FROM device_work WHERE class = 'compute' AND {single} AND dur_ns < launch_dur_ns"
        ),
    )?;
    let of_window = share(gaps, window);
    let part = percent(of_window);
    let judgement = Judgement::when(
        of_window >= limit,
        format!("devices wait {part} of the window in short gaps between launches"),
        format!("short gaps between launches are only {part} of the window"),
    )
    .winning(gaps, window);
    let of_kernels = share(shorter, launched);
    Ok(if of_kernels < case.limit("short_kernel_share") {
        let part = percent(of_kernels);
        let reason = format!("only {part} of the kernels are shorter than their launch call");
        judgement.at_most(Level::Medium, reason)
    } else {
        judgement
    })
}
