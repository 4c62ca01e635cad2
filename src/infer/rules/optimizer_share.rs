//! The optimizer updates tensor by tensor.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "optimizer_share",
    category: Category::Compute,
    question: "Does the optimizer step tensor by tensor?",
    method: "Time that computing kernels of the optimizer phase hold, with short gaps before them, as a share of the window; and \
             how much of its kernel time is in multi-tensor, fused or compiled kernels.",
    next_action: "foreach=True or fused=True for the optimizer, or torch.compile its step.",
    tables: &["attribution", "device_work"],
    needs_launches: true,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let kernels = "FROM device_work WHERE phase = 'optimizer' AND class = 'compute'";
    let count = case.count(
        "kernels of the optimizer",
        &format!("SELECT COUNT(*) {kernels}"),
    )?;
    if count == 0 {
        let unlinked = case.unlinked_share()?;
        let backward = case.count(
            "kernels of the backward pass",
            "SELECT COUNT(*) FROM device_work WHERE phase = 'backward'",
        )?;
        return Ok(if unlinked > case.limit("unlinked_share") {
            let part = percent(unlinked);
            Judgement::insufficient(format!(
                "{part} of the device time has no launch in the file, so its phase is not known"
            ))
        } else if backward > 0 {
            Judgement::insufficient("there is a backward pass, but no optimizer after it")
        } else {
            Judgement::not_applicable("no work of an optimizer was found")
        });
    }
    let sum = case.ns("their time", &format!("SELECT SUM(dur_ns) {kernels}"))?;
    let fused = case.ns(
        "of it in fused kernels",
        &format!(
            "SELECT SUM(dur_ns) {kernels} AND (name LIKE '%multi_tensor%' OR name LIKE '%fused%' OR name LIKE '%Fused%' OR name LIKE 'triton_%')"
        ),
    )?;
    let held = case.ns("time they hold", &format!("SELECT SUM(held_ns) {kernels}"))?;
    let short = case.limit_ns("short_gap_ns");
    let gaps = case.ns(
        "short gaps before them",
        &format!("SELECT SUM(idle_before_ns) {kernels} AND idle_before_ns <= {short}"),
    )?;
    let of_window = share(held + gaps, window);
    let (part, of_kernels) = (percent(of_window), share(fused, sum));
    if of_window < case.limit("optimizer_share") {
        return Ok(
            Judgement::refuted(format!("the optimizer takes only {part} of the window"))
                .winning(held + gaps, window),
        );
    }
    let fused = percent(of_kernels);
    Ok(Judgement::when(
        of_kernels < case.limit("fused_share"),
        format!("the optimizer takes {part} of the window, {fused} of its kernel time in fused kernels"),
        format!("the optimizer takes {part} of the window, but {fused} of its kernel time is in fused kernels"),
    )
    .winning(held + gaps, window))
}
