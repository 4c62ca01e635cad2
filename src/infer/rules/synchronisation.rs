//! The host waits for the device, and then the device for the host.

use super::super::case::{Case, Judgement, Rows, percent, runtime_calls, share, work_of};
use super::super::condition::{Condition, Order};
use super::super::inference::{Category, Number};
use super::super::sum::{column, number};
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "synchronisation",
    category: Category::Host,
    question: "Do synchronising calls leave devices idle?",
    method: "What the host waits in calls that wait for the device (a synchronisation, or a copy to pageable memory) is \
             the lead that it could have had: it is counted against the gaps that follow, before whose work the host \
             had not begun to launch, as long as it lasts. That is the most that could be won without the calls.",
    next_action: "Remove .item(), .cpu(), prints and torch.cuda.synchronize() from the step, or do them once in \
                  many steps; copy with non_blocking=True.",
    needs_launches: true,
    judge,
};

/// Calls that wait for the device.
fn calls() -> Rows {
    runtime_calls()
        .and(Condition::IsTrue("counts"))
        .and(Condition::Is("call_kind", &["wait", "blocking_copy"]))
}

/// Such a copy is over when its call returns.
fn copies() -> Rows {
    work_of(&["memcpy"])
        .and(Condition::Has("name", &["DtoH"]))
        .and(Condition::Has("name", &["Pageable"]))
        .and(Condition::Has("launch_name", &["Async"]))
}

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let launches = case.count(
        "device work with a launch",
        &Rows::of("device_work").and(Condition::IsKnown("launch_event")),
    );
    if launches == 0 {
        return Judgement::insufficient("no call that launches device work is in the files");
    }
    let (calls, copies) = (calls(), copies());
    case.count("synchronising calls", &calls);
    case.ns("time in them", &column("dur_ns"), &calls);
    case.count("copies to pageable memory", &copies);
    let (end, length) = (column("ts_ns").plus("dur_ns"), column("dur_ns"));
    let mut waits = case.known(&[column("file"), end, length], &calls);
    let end = column("launch_ns").plus("launch_dur_ns");
    waits.extend(case.known(&[column("file"), end, column("launch_dur_ns")], &copies));
    waits.sort_unstable();
    let late = Rows::of("device_work").and(Condition::Compared(
        column("host_late_ns"),
        Order::Above,
        number(0),
    ));
    let sql = format!(
        "SELECT file, device, start_ns - idle_before_ns AS from_ns, host_late_ns {late} ORDER BY file, device, from_ns"
    );
    let mut gaps = case.known(
        &[
            column("file"),
            column("device"),
            column("start_ns").minus("idle_before_ns"),
            column("host_late_ns"),
        ],
        &late,
    );
    gaps.sort_unstable();
    let (count, won) = filled(&gaps, &waits);
    // The waits are in the queries of the calls and the copies above.
    case.note(
        "gaps that its lead could have filled",
        "count",
        Some(Number::Int(count)),
        sql.as_str(),
    );
    case.note("idle in them", "ns", Some(Number::Int(won)), sql);
    case.blame(&column("dur_ns"), &calls);
    let of_window = share(won, window);
    let part = percent(of_window);
    Judgement::when(
        of_window >= case.limit("wait_share"),
        format!("devices are idle {part} of the window because the host had waited for them"),
        format!("devices are idle only {part} of the window because the host had waited for them"),
    )
    .winning(won, window)
}

/// How many of the gaps (file, device, start, length) the host could have filled, in part at least, had it not waited
/// (file, end, length), and the time. Both are in order.
///
/// ```text
/// host    ├─ wait 3 ─┤                    lead 3
/// device  ├ kernel ──┤··├ kernel ┤····├   gaps of 2 and 4: 2 and 1 could be won
/// ```
fn filled(gaps: &[[i64; 4]], waits: &[[i64; 3]]) -> (i64, i64) {
    let (mut count, mut won) = (0, 0);
    for gaps in gaps.chunk_by(|one, other| one[..2] == other[..2]) {
        let from = waits.partition_point(|[file, ..]| *file < gaps[0][0]);
        let mut waits = waits[from..].iter().peekable();
        let mut lead = 0;
        for [file, _, start, length] in gaps {
            while let Some([.., waited]) =
                waits.next_if(|[of, end, _]| of == file && *end <= start.saturating_add(*length))
            {
                lead = i64::saturating_add(lead, *waited);
            }
            let part = lead.min(*length);
            lead -= part;
            won = i64::saturating_add(won, part);
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
        let waits = [[0, 11, 3], [0, 99, 50], [1, 9, 5]];
        assert_eq!(filled(&gaps, &waits), (3, 2 + 1 + 5));
        assert_eq!(filled(&gaps, &[]), (0, 0));
    }
}
