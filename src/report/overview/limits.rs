//! What limits the step: the parts of it that do not compute, the largest first, and what to do about each.

use super::super::attribution::label;
use super::super::attribution::timeline::{Windows, device_count};
use super::super::document::{Column, Note, Row, Table, Value};
use super::super::number::{ms, percent};
use crate::attribute::{Attribution, Bucket, Phase, RunResult};
use crate::inspect::{Entry, Frame, Survey, Topic};
use crate::units::Ns;

/// Smaller parts of the window are not worth a hint.
const SMALLEST: f64 = 0.02;

/// A part of the window of devices that something may be done about.
struct Limit {
    name: String,
    time: Ns,
    window: Ns,
    action: &'static str,
}

impl Limit {
    fn share(&self) -> f64 {
        self.time.ratio(self.window).unwrap_or(0.0)
    }
}

/// The largest limit of each run, and what to do.
pub(super) fn notes(survey: &Survey) -> Vec<Note> {
    let attribution = &survey.attribution;
    let mut notes = Vec::new();
    for run in &attribution.runs {
        let prefix = match attribution.runs.len() {
            1 => String::new(),
            _ => format!("{}: ", label::run(&attribution.runs, run)),
        };
        let Some(window) = window(attribution, run) else {
            let text = on_host(run);
            notes.push(Note::new("bottleneck", format!("{prefix}{text}")));
            let text = "record with ProfilerActivity.CUDA (or XPU) to see what devices do";
            notes.push(Note::new("what to do", format!("{prefix}{text}")));
            continue;
        };
        let limits = limits(survey, run);
        if let Some(limit) = limits.first() {
            let text = format!(
                "{prefix}{} takes {} ms = {} % of {}",
                limit.name,
                ms(limit.time),
                percent(limit.share()),
                whole(attribution, run),
            );
            notes.push(Note::new("bottleneck", text));
            notes.push(Note::new("what to do", format!("{prefix}{}", limit.action)));
            continue;
        }
        let share = window.sum.compute_ns.ratio(window.sum.window_ns);
        let text = format!(
            "{prefix}compute: kernels hold the device {} % of {}, and nothing else takes 2 %",
            percent(share.unwrap_or(0.0)),
            whole(attribution, run),
        );
        notes.push(Note::new("bottleneck", text));
        let text = "make the largest kernels faster: lower precision, fused operators, shapes that fill the device";
        notes.push(Note::new("what to do", format!("{prefix}{text}")));
    }
    notes
}

/// What takes the most where there is no device work.
fn on_host(run: &RunResult) -> String {
    let whole: Ns = run.host_phases.values().map(|time| time.self_ns).sum();
    let most = run.host_phases.iter().max_by_key(|(_, time)| time.self_ns);
    match most.and_then(|(phase, time)| Some((phase, time.self_ns.ratio(whole)?))) {
        Some((phase, share)) => format!(
            "no device work in the trace; on the host, {phase} takes {} % of operator time",
            percent(share)
        ),
        None => "no device work and no host operators in the trace".to_owned(),
    }
}

/// Steps where there are any, else captures.
fn window(attribution: &Attribution, run: &RunResult) -> Option<Windows> {
    Windows::of_steps(attribution, run).or_else(|| Windows::of_captures(attribution, run))
}

fn whole(attribution: &Attribution, run: &RunResult) -> String {
    let devices = match device_count(attribution, run) {
        1 => String::new(),
        devices => format!(" of {devices} devices together"),
    };
    match Windows::of_steps(attribution, run) {
        Some(windows) if windows.count == 1 => "the step".to_owned(),
        Some(_) => format!("the steps{devices}"),
        None => format!("the capture{devices}"),
    }
}

/// All limits of all runs, as a table.
pub(super) fn table(survey: &Survey) -> Option<Table> {
    let attribution = &survey.attribution;
    let several = attribution.runs.len() > 1;
    let mut columns: Vec<Column> = Vec::new();
    columns.extend(several.then(|| Column::text("run")));
    columns.push(Column::text("part"));
    let keys = columns.len();
    columns.extend([
        Column::ms("time"),
        Column::percent("share"),
        Column::text("of"),
        Column::sentences("what to do"),
    ]);
    let mut rows = Vec::new();
    for run in &attribution.runs {
        for limit in limits(survey, run) {
            let mut cells = Vec::new();
            cells.extend(several.then(|| Value::text(label::run(&attribution.runs, run))));
            cells.extend([
                Value::text(&limit.name),
                Value::Ns(limit.time),
                Value::share(limit.time, limit.window),
                Value::text(whole(attribution, run)),
                Value::text(limit.action),
            ]);
            rows.push(Row::new(cells));
        }
    }
    (!rows.is_empty()).then(|| Table {
        caption:
            "What the step is spent on beside computing once, largest first (parts may overlap)"
                .to_owned(),
        keys,
        columns,
        rows,
    })
}

/// What may be done something about in `run`, the largest first.
fn limits(survey: &Survey, run: &RunResult) -> Vec<Limit> {
    let attribution = &survey.attribution;
    let Some(windows) = window(attribution, run) else {
        return Vec::new();
    };
    let sum = &windows.sum;
    let limit = |name: &str, time: Ns, action| Limit {
        name: name.to_owned(),
        time,
        window: sum.window_ns,
        action,
    };
    let cause = survey
        .frame(Topic::Idle, "idle_causes")
        .and_then(|frame| main_cause(frame, run));
    let idle = match cause {
        Some(cause) => format!("idle (mostly {})", cause.replace('_', " ")),
        None => "idle".to_owned(),
    };
    let mut limits = vec![
        limit(&idle, sum.idle_ns, idle_action(cause)),
        limit(
            "exposed communication",
            sum.exposed_communication_ns,
            "overlap it with compute (bucket sizes, gradient accumulation), send less, or see under Ranks who \
             waits for whom",
        ),
        limit(
            "exposed copies and fills",
            sum.exposed_memcpy_ns + sum.exposed_memset_ns,
            "pin host memory and copy with non_blocking=True, keep data on the device, copy while it computes",
        ),
        limit(
            "recompute",
            windows.phase(Bucket::Phase(Phase::Recompute)),
            "checkpoint fewer or cheaper layers where memory allows (selective checkpointing)",
        ),
        limit(
            "optimizer",
            windows.phase(Bucket::Phase(Phase::Optimizer)),
            "use a fused or foreach optimizer; shard its state over ranks",
        ),
    ];
    limits.retain(|limit| limit.share() >= SMALLEST);
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.time));
    limits
}

/// The cause of most idle time in the captures of `run`.
fn main_cause<'a>(frame: &'a Frame, run: &RunResult) -> Option<&'a str> {
    let [runs, causes, idle] = ["run", "cause", "idle_ns"].map(|name| frame.column(name));
    let (runs, causes, idle) = (runs?, causes?, idle?);
    let mut sums: Vec<(&str, i64)> = Vec::new();
    for row in 0..frame.len() {
        let (Entry::Text(of), Entry::Text(cause), Entry::Int(time)) = (
            runs.values.get(row),
            causes.values.get(row),
            idle.values.get(row),
        ) else {
            continue;
        };
        if of != run.name {
            continue;
        }
        match sums.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum = sum.saturating_add(time),
            None => sums.push((cause, time)),
        }
    }
    sums.into_iter()
        .filter(|(_, time)| *time > 0)
        .max_by_key(|(cause, time)| (*time, std::cmp::Reverse(*cause)))
        .map(|(cause, _)| cause)
}

fn idle_action(cause: Option<&str>) -> &'static str {
    match cause {
        Some("host_bound") => {
            "the host launches too late: torch.compile or CUDA graphs, fused operators, larger batches; take \
             .item(), printing and data loading out of the step"
        }
        Some("launch_latency") => {
            "many short kernels: fuse them (torch.compile), use CUDA graphs or a larger batch"
        }
        Some("communication_wait") => "kernels wait for communication: see Communication and Ranks",
        Some("dependency") => {
            "streams wait for each other: look at events, synchronisation and copies"
        }
        Some("lead_in" | "tail") => {
            "the step starts or ends without work: data loading, synchronisation or a cut capture"
        }
        _ => "see under Idle what went on around the longest gaps",
    }
}
