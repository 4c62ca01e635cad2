//! The host waits for the device, and then the device for the host.

use super::super::case::{Case, Judgement, int_at, percent, share};
use super::super::inference::{Category, Number};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "synchronisation",
    category: Category::Host,
    question: "Do synchronising calls leave devices idle?",
    method: "Gaps of devices in which a synchronising call returns before the next launch begins: the host \
             had waited for the device, so it had launched nothing ahead.",
    next_action: "Remove .item(), .cpu(), prints and torch.cuda.synchronize() from the step, or do them once in \
                  many steps; copy with non_blocking=True.",
    tables: &["attribution", "device_work", "events"],
    needs_launches: true,
    judge,
};

const CALLS: &str = "FROM events WHERE ph = 'X' AND name IN ('cudaDeviceSynchronize', \
                     'cudaStreamSynchronize', 'cudaEventSynchronize', 'cuStreamSynchronize', \
                     'cuCtxSynchronize', 'cuEventSynchronize', 'hipDeviceSynchronize', \
                     'hipStreamSynchronize', 'hipEventSynchronize', 'cudaMemcpy', 'hipMemcpy', \
                     'hipMemcpyWithStream')";

fn judge(case: &mut Case<'_>) -> Result<Judgement> {
    let Some(window) = case.window()? else {
        return Ok(Judgement::not_applicable("there is no device work"));
    };
    let launches = case.count(
        "device work with a launch",
        "SELECT COUNT(*) FROM device_work WHERE launch_event IS NOT NULL",
    )?;
    if launches == 0 {
        return Ok(Judgement::insufficient(
            "no call of the CUDA runtime is in the files",
        ));
    }
    case.count("synchronising calls", &format!("SELECT COUNT(*) {CALLS}"))?;
    case.ns("time in them", &format!("SELECT SUM(dur_ns) {CALLS}"))?;
    let returns = case.rows(&format!(
        "SELECT file, ts_ns + dur_ns AS at_ns {CALLS} ORDER BY file, at_ns"
    ))?;
    let returns: Vec<(i64, i64)> = (0..returns.height())
        .filter_map(|row| {
            Some((
                int_at(&returns, "file", row)?,
                int_at(&returns, "at_ns", row)?,
            ))
        })
        .collect();
    let sql = "SELECT file, start_ns - idle_before_ns AS from_ns, host_late_ns FROM device_work WHERE host_late_ns > 0";
    let gaps = case.rows(sql)?;
    let mut after = 0_i64;
    let mut count = 0_i64;
    for row in 0..gaps.height() {
        let at = |column| int_at(&gaps, column, row);
        let (Some(file), Some(from), Some(late)) = (at("file"), at("from_ns"), at("host_late_ns"))
        else {
            continue;
        };
        let next = returns.partition_point(|known| *known < (file, from));
        if returns
            .get(next)
            .is_some_and(|(of, at)| *of == file && *at <= from + late)
        {
            after += late;
            count += 1;
        }
    }
    case.note(
        "gaps after such a call",
        "count",
        Some(Number::Int(count)),
        sql,
    );
    case.note("idle in them", "ns", Some(Number::Int(after)), sql);
    case.blame(&format!(
        "SELECT file, event, name {CALLS} ORDER BY dur_ns DESC, file, event"
    ))?;
    let of_window = share(after, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= case.limit("wait_share"),
        format!("devices are idle {part} of the window after the host waited for them"),
        format!("devices are idle only {part} of the window after the host waited for them"),
    )
    .winning(after, window))
}
