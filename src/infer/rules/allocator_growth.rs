//! The allocator asks the driver again and again, or memory grows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::case::{Case, Judgement, Rows, percent, runtime_calls, share};
use super::super::condition::Condition;
use super::super::inference::{Category, Level, Number};
use super::super::sum::column;
use super::super::table::Part;
use super::Rule;
use crate::model::Call;

pub(super) const RULE: Rule = Rule {
    code: "allocator_growth",
    category: Category::Memory,
    question: "Does the allocator not settle?",
    method: "Calls that take memory from the driver and give it back, after the first device work: a settled caching allocator makes none. \
             Their time as a share of the window; and, where allocations were recorded, steps in a row after \
             which more memory is allocated than before.",
    next_action: "Find what holds tensors from step to step (tracekit inspect memory); even out shapes; \
                  PYTORCH_ALLOC_CONF=expandable_segments:True; leave some memory free.",
    needs_launches: false,
    judge,
};

/// Calls that take memory from the driver or give it back.
fn calls() -> Rows {
    runtime_calls()
        .and(Condition::IsTrue("counts"))
        .and(Condition::Is("call_kind", &["memory"]))
}

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let rows = calls();
    // What comes before the first work of the devices sets up the context, which takes seconds.
    let begun = first_work(case);
    let [file, at, length] = ["file", "ts_ns", "dur_ns"].map(column);
    let after = |file: i64, at: i64| begun.get(&file).is_some_and(|first| at > *first);
    let meant: Vec<Option<i64>> = case
        .ints(&[file, at, length], &rows)
        .into_iter()
        .filter(|[file, at, _]| file.zip(*at).is_some_and(|(file, at)| after(file, at)))
        .map(|[.., length]| length)
        .collect();
    let calls = i64::try_from(meant.len()).unwrap_or(i64::MAX);
    let times = meant.into_iter().flatten();
    let time = times.fold(0, i64::saturating_add);
    let later = format!(
        "FROM (SELECT file, event, name, ts_ns, dur_ns {rows}) AS calls JOIN (SELECT file AS of_file, MIN(start_ns) AS \
         first_ns FROM device_work GROUP BY file) AS begun ON calls.file = begun.of_file WHERE ts_ns > first_ns"
    );
    case.note(
        "calls for memory",
        "count",
        Some(Number::Int(calls)),
        format!("SELECT COUNT(*) {later}"),
    );
    case.note(
        "time in them",
        "ns",
        Some(Number::Int(time)),
        format!("SELECT COALESCE(SUM(dur_ns), 0) {later}"),
    );
    let (steps, growing) = growing(case);
    let of_steps = format!(
        "SELECT rank, device, step, MIN(peak_allocated_at_ns) AS at_ns, SUM(net_bytes) AS net_bytes {} GROUP BY rank, \
         device, step ORDER BY rank, device, at_ns, step",
        memory_steps()
    );
    case.note(
        "steps with allocations",
        "count",
        Some(Number::Int(steps)),
        of_steps.as_str(),
    );
    case.note(
        "steps in a row that grow",
        "count",
        Some(Number::Int(growing)),
        of_steps.as_str(),
    );
    let known = runtime_calls().and(Condition::Starts("name", Call::KNOWN));
    let runtime = case.count("calls of the runtime", &known);
    if runtime == 0 && steps == 0 {
        return Judgement::insufficient(
            "neither calls of a runtime or driver nor allocations are in the files",
        );
    }
    case.blame_where(&column("dur_ns"), &rows, |part: &Part, row| {
        let int = |name| part.column(name).int(row);
        let moment = int("file").zip(int("ts_ns"));
        moment.is_some_and(|(file, at)| after(file, at))
    });
    if growing as f64 >= case.limit("growing_steps") && growing == steps {
        return Judgement::supported(format!("allocated memory grows in each of {steps} steps"))
            .winning(time, window);
    }
    let of_window = share(time, window);
    let part = percent(of_window);
    let made = match calls {
        1 => "1 call to the driver for memory takes".to_owned(),
        calls => format!("{calls} calls to the driver for memory take"),
    };
    let judgement = Judgement::when(
        of_window >= case.limit("call_share"),
        format!("{made} {part} of the window"),
        match calls {
            0 => "no call asks the driver for memory".to_owned(),
            _ => format!("{made} only {part} of the window"),
        },
    )
    .winning(time, window);
    let whole = case.count(
        "whole steps",
        &Rows::of("step_ranges").and(Condition::IsFalse("partial")),
    );
    if whole == 0 {
        judgement.at_most(
            Level::Low,
            "without whole steps the calls may belong to the set-up",
        )
    } else if steps == 0 {
        judgement.at_most(
            Level::Medium,
            "no allocations are recorded: only calls to the driver were looked at",
        )
    } else {
        judgement
    }
}

/// By file: when the first device work begins.
fn first_work(case: &Case<'_>) -> BTreeMap<i64, i64> {
    let mut first: BTreeMap<i64, i64> = BTreeMap::new();
    let columns = ["file", "start_ns"].map(column);
    for [file, start] in case.known(&columns, &Rows::of("device_work")) {
        let first = first.entry(file).or_insert(start);
        *first = start.min(*first);
    }
    first
}

/// What steps do to the memory of devices.
fn memory_steps() -> Rows {
    Rows::of("memory_steps")
        .and(Condition::IsKnown("step"))
        .and(Condition::IsNot("device", "cpu"))
}

/// Of the device with the most steps in a row that leave more memory allocated than they found: how many steps
/// it has, and how many of them are in that row.
fn growing(case: &Case<'_>) -> (i64, i64) {
    let rows = memory_steps();
    let columns = ["rank", "peak_allocated_at_ns", "net_bytes"].map(column);
    let [devices, steps] = ["device", "step"].map(|name| case.texts(name, &rows));
    // By rank, device and step: when memory peaked first, and what the step kept.
    let mut kept: BTreeMap<_, (Option<i64>, i64)> = BTreeMap::new();
    let rows = case.ints(&columns, &rows).into_iter();
    for ([rank, at, net], (device, step)) in rows.zip(devices.into_iter().zip(steps)) {
        let step = kept.entry((rank, device, step)).or_insert((at, 0));
        step.0 = step.0.into_iter().chain(at).min();
        step.1 = step.1.saturating_add(net.unwrap_or(0));
    }
    let mut kept: Vec<_> = kept
        .into_iter()
        .map(|((rank, device, step), (at, net))| ((rank, device), at, step, net))
        .collect();
    kept.sort_unstable();
    let of_devices = kept.chunk_by(|one, other| one.0 == other.0);
    let most = of_devices.map(|of_device| {
        let (mut run, mut longest) = (0, 0);
        for (.., net) in of_device {
            run = if *net > 0 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        let steps = i64::try_from(of_device.len()).unwrap_or(i64::MAX);
        (longest, Reverse(steps))
    });
    most.max()
        .map_or((0, 0), |(longest, Reverse(steps))| (steps, longest))
}
