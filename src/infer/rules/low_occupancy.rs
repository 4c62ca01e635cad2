//! Kernels leave multiprocessors without work.

use super::super::case::{Case, Judgement, percent, share};
use super::super::inference::Category;
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "low_occupancy",
    category: Category::Compute,
    question: "Do kernels leave multiprocessors without work?",
    method: "Of each kernel with fewer blocks than the device has multiprocessors, the part of its time that the \
             idle ones are (1 less blocks per SM); its share of the window.",
    next_action: "Larger batches or shapes, kernels that split the long dimension, or several streams at a time.",
    tables: &["attribution", "device_work"],
    needs_launches: false,
    judge,
};

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let kernels = "FROM device_work WHERE class = 'compute'";
    let all = case.ns(
        "time that kernels hold",
        &format!("SELECT SUM(held_ns) {kernels}"),
    )?;
    if all == 0 {
        return Ok(Judgement::not_applicable("no kernel computes"));
    }
    let known = case.ns(
        "of it with a known number of blocks",
        &format!("SELECT SUM(held_ns) {kernels} AND blocks_per_sm IS NOT NULL"),
    )?;
    if share(known, all) < case.limit("known_share") {
        return Ok(Judgement::insufficient(
            "the files do not have the number of blocks for each multiprocessor",
        ));
    }
    // Each row is rounded to nanoseconds, so that the sum depends on no order.
    let lost = case.ns(
        "time lost to multiprocessors without a block",
        &format!(
            "SELECT SUM(CAST(held_ns * (1.0 - blocks_per_sm) AS BIGINT)) {kernels} AND blocks_per_sm < 1"
        ),
    )?;
    case.number(
        "kernel time times estimated occupancy",
        "ns",
        &format!(
            "SELECT SUM(CAST(dur_ns * occupancy AS BIGINT)) {kernels} AND occupancy IS NOT NULL"
        ),
    )?;
    case.blame(
        "SELECT file, event, name FROM device_work WHERE class = 'compute' AND blocks_per_sm < 1 ORDER BY held_ns DESC, file, event",
    )?;
    let of_window = share(lost, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= case.limit("lost_share"),
        format!("kernels with too few blocks waste {part} of the window"),
        format!("kernels with too few blocks waste only {part} of the window"),
    )
    .winning(lost, window))
}
