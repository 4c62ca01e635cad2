//! What limits the step: the parts of it that do not compute, the largest first, and what to do about each.

use super::super::attribution::label;
use super::super::attribution::timeline::{Windows, device_count};
use super::super::document::{Column, Note, Row, Table, Value};
use super::super::number::{ms, percent};
use super::{OverviewParts, idle};
use crate::attribute::{Attribution, Bucket, Phase, RunResult};
use crate::infer::Verdict;

use crate::units::Ns;

/// Smaller parts of the window are not worth a hint.
const SMALLEST: f64 = 0.02;
/// Smaller parts do not limit a run: TraceML takes a part of the step for its bottleneck from 10 % on, as the
/// rules of `tracekit infer` do.
const LIMITING: f64 = 0.10;

/// A part of the window of devices that something may be done about.
struct Limit {
    name: String,
    time: Ns,
    window: Ns,
    action: String,
    /// A rule looked at it and found that there is little to win.
    refuted: bool,
}

impl Limit {
    fn share(&self) -> f64 {
        self.time.ratio(self.window).unwrap_or(0.0)
    }
}

/// The largest limit of each run, and what to do.
pub(super) fn notes(parts: OverviewParts<'_>) -> Vec<Note> {
    let attribution = &parts.survey.attribution;
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
        let limits = limits(parts, run);
        let limiting = |limit: &&Limit| limit.share() >= LIMITING && !limit.refuted;
        if let Some(limit) = limits.iter().find(limiting) {
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
        let next = limits.first().map_or_else(
            || "nothing else takes 2 %".to_owned(),
            |next| format!("next is {} with {} %", next.name, percent(next.share())),
        );
        let text = format!(
            "{prefix}compute: kernels hold the device {} % of {}; {next}",
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
pub(super) fn table(parts: OverviewParts<'_>) -> Option<Table> {
    let attribution = &parts.survey.attribution;
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
        for limit in limits(parts, run) {
            let mut cells = Vec::new();
            cells.extend(several.then(|| Value::text(label::run(&attribution.runs, run))));
            cells.extend([
                Value::text(&limit.name),
                Value::Ns(limit.time),
                Value::share(limit.time, limit.window),
                Value::text(whole(attribution, run)),
                Value::text(&limit.action),
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
fn limits(parts: OverviewParts<'_>, run: &RunResult) -> Vec<Limit> {
    let attribution = &parts.survey.attribution;
    let Some(windows) = window(attribution, run) else {
        return Vec::new();
    };
    let sum = &windows.sum;
    let inferred = parts.inferences.and_then(|inferences| {
        let mut runs = inferences.runs.iter();
        runs.find(|inferred| inferred.run == run.name)
    });
    let limit = |name: &str, rule: &str, time: Ns, action: &str| {
        let mut rules = inferred.into_iter().flat_map(|run| &run.inferences);
        let refuted = rules.find(|it| it.code == rule && it.verdict == Verdict::Refuted);
        Limit {
            name: name.to_owned(),
            time,
            window: sum.window_ns,
            action: match refuted {
                Some(inference) => format!("little ({rule}): {}", inference.summary),
                None => action.to_owned(),
            },
            refuted: refuted.is_some(),
        }
    };
    let causes = idle::causes(parts.survey, run);
    let waiting = match attribution.ranks.len() {
        1 => "",
        _ => ", or see under Ranks who waits for whom",
    };
    let mut limits = vec![
        limit(
            &format!("idle{}", described(&causes)),
            "",
            sum.idle_ns,
            idle_action(causes.first().map(|(cause, _)| *cause)),
        ),
        limit(
            "exposed communication",
            "exposed_communication",
            sum.exposed_communication_ns,
            &format!(
                "overlap it with compute (bucket sizes, gradient accumulation), send less{waiting}"
            ),
        ),
        limit(
            "exposed copies and fills",
            "memory_copies",
            sum.exposed_memcpy_ns + sum.exposed_memset_ns,
            "keep data on the device, copy while it computes; from the host pinned memory with non_blocking=True",
        ),
        limit(
            "recompute",
            "recompute_overhead",
            windows.phase(Bucket::Phase(Phase::Recompute)),
            "checkpoint fewer or cheaper layers where memory allows (selective checkpointing)",
        ),
        limit(
            "optimizer",
            "optimizer_share",
            windows.phase(Bucket::Phase(Phase::Optimizer)),
            "use a fused or foreach optimizer; shard its state over ranks",
        ),
    ];
    limits.retain(|limit| limit.share() >= SMALLEST);
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.time));
    limits
}

/// ` (mostly CAUSE)` for what makes more than half, else the two largest with their shares.
fn described(causes: &[(&str, Ns)]) -> String {
    let all: Ns = causes.iter().map(|(_, time)| *time).sum();
    let share = |time: Ns| time.ratio(all).unwrap_or(0.0);
    let spaced = |cause: &str| cause.replace('_', " ");
    match causes {
        [] => String::new(),
        [(cause, time), ..] if share(*time) > 0.5 => format!(" (mostly {})", spaced(cause)),
        some => {
            let named: Vec<String> = some
                .iter()
                .take(2)
                .map(|(cause, time)| format!("{} % {}", percent(share(*time)), spaced(cause)))
                .collect();
            format!(" ({})", named.join(", "))
        }
    }
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
