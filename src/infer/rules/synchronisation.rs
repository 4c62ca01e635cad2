//! The host waits for the device, and then the device for the host.

use super::super::case::{Case, Judgement, int_at, percent, share};
use super::super::inference::{Category, Number};
use super::Rule;
use crate::error::Result;

pub(super) const RULE: Rule = Rule {
    code: "synchronisation",
    category: Category::Host,
    question: "Do synchronising calls leave devices idle?",
    method: "What the host waits in calls that wait for the device (a synchronisation, or a copy to pageable memory) is \
             the lead that it could have had: it is counted against the gaps that follow, before whose work the host \
             had not begun to launch, as long as it lasts. That is the most that could be won without the calls.",
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

/// Such a copy is over when its call returns.
const COPIES: &str = "FROM device_work WHERE class = 'memcpy' AND name LIKE '%DtoH%' AND name LIKE '%Pageable%' AND \
                      launch_name LIKE '%Async%'";

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
    case.count(
        "copies to pageable memory",
        &format!("SELECT COUNT(*) {COPIES}"),
    )?;
    let mut waits = Vec::new();
    for sql in [
        format!("SELECT file, ts_ns + dur_ns AS at_ns, dur_ns {CALLS}"),
        format!(
            "SELECT file, launch_ns + launch_dur_ns AS at_ns, launch_dur_ns AS dur_ns {COPIES}"
        ),
    ] {
        let rows = case.rows(&sql)?;
        waits.extend((0..rows.height()).filter_map(|row| {
            let at = |column| int_at(&rows, column, row);
            Some((at("file")?, at("at_ns")?, at("dur_ns")?))
        }));
    }
    waits.sort_unstable();
    let sql = "SELECT file, device, start_ns - idle_before_ns AS from_ns, host_late_ns FROM device_work WHERE \
               host_late_ns > 0 ORDER BY file, device, from_ns";
    let rows = case.rows(sql)?;
    let gaps: Vec<[i64; 4]> = (0..rows.height())
        .filter_map(|row| {
            let at = |column| int_at(&rows, column, row);
            Some([
                at("file")?,
                at("device")?,
                at("from_ns")?,
                at("host_late_ns")?,
            ])
        })
        .collect();
    let (count, won) = filled(&gaps, &waits);
    case.note(
        "gaps that its lead could have filled",
        "count",
        Some(Number::Int(count)),
        sql,
    );
    case.note("idle in them", "ns", Some(Number::Int(won)), sql);
    case.blame(&format!(
        "SELECT file, event, name {CALLS} ORDER BY dur_ns DESC, file, event"
    ))?;
    let of_window = share(won, window);
    let part = percent(of_window);
    Ok(Judgement::when(
        of_window >= case.limit("wait_share"),
        format!("devices are idle {part} of the window because the host had waited for them"),
        format!("devices are idle only {part} of the window because the host had waited for them"),
    )
    .winning(won, window))
}

/// How many of the gaps (file, device, start, length) the host could have filled, in part at least, had it not waited
/// (file, end, length), and the time. Both are in order.
///
/// ```text
/// host    ├─ wait 3 ─┤                    lead 3
/// device  ├ kernel ──┤··├ kernel ┤····├   gaps of 2 and 4: 2 and 1 could be won
/// ```
fn filled(gaps: &[[i64; 4]], waits: &[(i64, i64, i64)]) -> (i64, i64) {
    let (mut count, mut won) = (0, 0);
    for gaps in gaps.chunk_by(|one, other| one[..2] == other[..2]) {
        let from = waits.partition_point(|(file, ..)| *file < gaps[0][0]);
        let mut waits = waits[from..].iter().peekable();
        let mut lead = 0;
        for [file, _, start, length] in gaps {
            while let Some((.., waited)) =
                waits.next_if(|(of, end, _)| of == file && *end <= start + length)
            {
                lead += waited;
            }
            let part = lead.min(*length);
            lead -= part;
            won += part;
            count += i64::from(part > 0);
        }
    }
    (count, won)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_used_up_by_the_gaps_that_follow() {
        let gaps = [[0, 0, 10, 2], [0, 0, 20, 4], [0, 1, 5, 1], [1, 0, 10, 9]];
        // The second is of another file, the third comes too late for all gaps.
        let waits = [(0, 11, 3), (0, 99, 50), (1, 9, 5)];
        assert_eq!(filled(&gaps, &waits), (3, 2 + 1 + 5));
        assert_eq!(filled(&gaps, &[]), (0, 0));
    }
}
