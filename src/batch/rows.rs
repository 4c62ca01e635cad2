//! One input, analysed, as rows of the tables of a dataset; and the rows about inputs and runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::dataset::Member;
use super::recognise::Recognised;
use super::record::{Facts, Failure, Rows};
use super::schema::{DATASET_TABLES, MEASURES};
use crate::attribute::{
    Attribution, Bucket, Cell, DeviceResult, HostResult, HostStep, Phase, RankResult, StepTime,
    Table, Timeline,
};
use crate::health::HealthEntry;
use crate::infer::{RunInferences, Verdict};
use crate::inspect::{Entry, Frame};
use crate::units::Ns;

/// The phases whose annotated time a step has, in the order of columns.
const ANNOTATED: [Phase; 4] = [
    Phase::Forward,
    Phase::Backward,
    Phase::Recompute,
    Phase::Optimizer,
];

/// What `rank`, the only file of an attribution, says about itself.
pub(super) fn facts(attribution: &Attribution, rank: &RankResult) -> Facts {
    let input = &attribution.inputs[rank.input];
    let mut lines = Timeline::default();
    for device in &rank.devices {
        add_line(&mut lines, &device.timeline);
    }
    let has_devices = !rank.devices.is_empty();
    let self_ns: Ns = rank.host.phases.values().map(|phase| phase.self_ns).sum();
    let linked = rank.coverage.device_events;
    let unlinked = rank.coverage.pre_window + rank.coverage.unlinked;
    Facts {
        events: input.events,
        partial: input.partial,
        devices: i64::try_from(rank.devices.len()).unwrap_or(i64::MAX),
        device_names: input.device_names.clone(),
        steps: step_times(&rank.host.steps),
        measures: measures(
            has_devices.then_some((&rank.totals, &lines)),
            (self_ns > Ns::ZERO).then_some(&rank.host),
        ),
        phases: rank.coverage.phases.to_owned(),
        recompute_evidence: rank.recompute.evidence.to_owned(),
        recompute_observable: rank.recompute.observable.to_owned(),
        linked_share: (linked > 0).then(|| linked.saturating_sub(unlinked) as f64 / linked as f64),
        ..Facts::default()
    }
}

/// Lengths of the whole steps; of all, when none is whole.
fn step_times(steps: &[HostStep]) -> Vec<i64> {
    let whole = steps.iter().any(|step| !step.partial);
    let counting = steps.iter().filter(|step| !whole || !step.partial);
    counting.map(|step| step.wall_ns.0).collect()
}

/// Median, shortest and longest.
fn spread(steps: &[i64]) -> [Value; 3] {
    let times = steps.iter().map(|time| Ns(*time)).collect();
    StepTime::spread(times).map_or(
        [Value::Null, Value::Null, Value::Null],
        |(median, min, max)| [json!(median.0), json!(min.0), json!(max.0)],
    )
}

fn add_line(sum: &mut Timeline, line: &Timeline) {
    sum.window_ns += line.window_ns;
    sum.compute_ns += line.compute_ns;
    sum.communication_ns += line.communication_ns;
    sum.exposed_communication_ns += line.exposed_communication_ns;
    sum.exposed_memcpy_ns += line.exposed_memcpy_ns;
    sum.exposed_memset_ns += line.exposed_memset_ns;
    sum.idle_ns += line.idle_ns;
}

/// The values of [`MEASURES`].
fn measures(device: Option<(&Table, &Timeline)>, host: Option<&HostResult>) -> Vec<Option<i64>> {
    let of_device =
        |of: &dyn Fn(&Table, &Timeline) -> Ns| device.map(|(table, line)| of(table, line).0);
    let bucket = |bucket: Bucket| of_device(&move |table, _| table.bucket(bucket).sum_ns);
    let of_host = |phase: Phase| {
        let host = host?;
        Some(host.phases.get(&phase).map_or(0, |phase| phase.self_ns.0))
    };
    let values = vec![
        of_device(&|table, _| table.total.sum_ns),
        of_device(&|_, line| line.busy_ns()),
        of_device(&|_, line| line.window_ns),
        of_device(&|_, line| line.compute_ns),
        of_device(&|_, line| line.communication_ns),
        of_device(&|_, line| line.exposed_communication_ns),
        of_device(&|_, line| line.exposed_memcpy_ns),
        of_device(&|_, line| line.exposed_memset_ns),
        of_device(&|_, line| line.idle_ns),
        bucket(Bucket::Phase(Phase::Forward)),
        bucket(Bucket::Phase(Phase::Backward)),
        bucket(Bucket::Phase(Phase::Recompute)),
        bucket(Bucket::Phase(Phase::Optimizer)),
        bucket(Bucket::Phase(Phase::Other)),
        bucket(Bucket::PreWindow),
        bucket(Bucket::Unlinked),
        of_host(Phase::Forward),
        of_host(Phase::Backward),
        of_host(Phase::Recompute),
        of_host(Phase::Optimizer),
        of_host(Phase::Other),
        host.map(|host| host.phases.values().map(|phase| phase.self_ns.0).sum()),
    ];
    debug_assert_eq!(values.len(), MEASURES.len());
    values
}

/// The rows of every table but `runs` and `ranks`, whose rows are made of the facts.
pub(super) fn tables(
    attribution: &Attribution,
    rank: &RankResult,
    operators: &Frame,
    inferences: Option<&RunInferences>,
) -> BTreeMap<String, Rows> {
    let mut tables = BTreeMap::new();
    let mut put = |name: &str, rows: Rows| tables.insert(name.to_owned(), rows);
    put("steps", steps(rank));
    put("phases", phases(rank));
    put("operators", by_columns("operators", operators));
    put("health", attribution.health.iter().map(finding).collect());
    put("inferences", inferences.map_or_else(Vec::new, inferred));
    tables
}

fn steps(rank: &RankResult) -> Rows {
    let mut rows = Vec::new();
    for step in &rank.host.steps {
        let mut row = vec![
            Value::Null,
            json!(step.name),
            json!(step.partial),
            // Where boundaries are inferred, names are `step#N`.
            json!(step.name.starts_with("step#")),
            json!(step.wall_ns.0),
        ];
        row.extend(measures(None, None).into_iter().map(|value| json!(value)));
        row.extend(ANNOTATED.map(|phase| {
            let time = step.phases.get(&phase);
            json!(time.map(|time| time.wall_ns.0))
        }));
        rows.push(row);
    }
    for device in &rank.devices {
        for step in &device.steps {
            let mut row = vec![
                json!(device.device),
                json!(step.name),
                json!(step.partial),
                json!(step.inferred),
                Value::Null,
            ];
            let values = measures(Some((&step.totals, &step.timeline)), None);
            row.extend(values.into_iter().map(|value| json!(value)));
            row.extend(ANNOTATED.map(|_| Value::Null));
            rows.push(row);
        }
    }
    rows
}

fn phases(rank: &RankResult) -> Rows {
    let mut rows = Vec::new();
    for device in &rank.devices {
        rows.extend(Bucket::ALL.map(|bucket| of_bucket(device, bucket)));
        let mut idle = vec![json!(device.device), json!("idle")];
        idle.extend(vec![Value::Null; 8]);
        idle.extend([json!(device.timeline.idle_ns.0), Value::Null, Value::Null]);
        rows.push(idle);
    }
    let has_operators = rank
        .host
        .phases
        .values()
        .any(|phase| phase.self_ns > Ns::ZERO);
    for phase in Phase::ALL {
        let time = rank.host.phases.get(&phase).copied().unwrap_or_default();
        let mut row = vec![Value::Null, json!(phase.as_str())];
        row.extend(vec![Value::Null; 9]);
        row.push(json!(time.wall_ns.map(|wall| wall.0)));
        row.push(json!(has_operators.then_some(time.self_ns.0)));
        rows.push(row);
    }
    rows
}

fn of_bucket(device: &DeviceResult, bucket: Bucket) -> Vec<Value> {
    let cell: &Cell = device.totals.bucket(bucket);
    vec![
        json!(device.device),
        json!(bucket.as_str()),
        json!(cell.sum_ns.0),
        json!(cell.busy_ns.0),
        json!(cell.events),
        json!(cell.launches),
        json!(cell.compute_ns.0),
        json!(cell.communication_ns.0),
        json!(cell.memcpy_ns.0),
        json!(cell.memset_ns.0),
        json!(device.timeline.phases[bucket.index()].0),
        Value::Null,
        Value::Null,
    ]
}

/// The columns of `frame` that the table called `name` has.
fn by_columns(name: &str, frame: &Frame) -> Rows {
    let table = DATASET_TABLES.iter().find(|table| table.name == name);
    let columns = table.map_or(&[][..], |table| &table.columns[2..]);
    let rows = (0..frame.len()).map(|row| {
        columns
            .iter()
            .map(|(column, _)| match frame.column(column) {
                Some(series) => match series.values.get(row) {
                    Entry::Null => Value::Null,
                    Entry::Text(text) => json!(text),
                    Entry::Int(number) => json!(number),
                    Entry::Float(number) => json!(number),
                    Entry::Bool(flag) => json!(flag),
                },
                None => Value::Null,
            })
            .collect()
    });
    rows.collect()
}

fn finding(entry: &HealthEntry) -> Vec<Value> {
    vec![
        json!(entry.code),
        json!(entry.severity),
        json!(entry.count),
        json!(entry.first_offset),
        json!(entry.first_name),
        json!(entry.time_ns),
        json!(entry.worst_ns),
    ]
}

fn inferred(run: &RunInferences) -> Rows {
    let rows = run.inferences.iter().map(|inference| {
        vec![
            json!(inference.code),
            json!(inference.category.as_str()),
            json!(inference.verdict.as_str()),
            json!(inference.summary),
            json!(inference.confidence.as_ref().map(|it| it.level.as_str())),
            json!(inference.effect.map(|effect| effect.ns.0)),
            json!(inference.effect.map(|effect| effect.share)),
            json!(inference.next_action),
        ]
    });
    rows.collect()
}

/// The supported inference with the largest effect.
pub(super) fn limit(run: &RunInferences) -> Option<(String, i64)> {
    let supported = run
        .inferences
        .iter()
        .filter(|inference| inference.verdict == Verdict::Supported && inference.effect.is_some());
    let effects = supported.map(|inference| {
        let effect = inference.effect.map_or(0, |effect| effect.ns.0);
        (inference.code.clone(), effect)
    });
    // Of equal ones the first, in the order of rules.
    effects.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// The row of `ranks` of an input that was read.
pub(super) fn rank(member: &Member, facts: &Facts) -> Vec<Value> {
    let Recognised {
        strategy,
        repeat,
        rank,
        by,
        rank_by,
        start_ns,
        ..
    } = &member.recognised;
    let names = facts.device_names.join(", ");
    let mut row = vec![
        json!(member.input.id),
        json!(rank),
        json!(member.input.sha256),
        json!(strategy),
        json!(repeat),
        json!(by),
        json!(rank_by),
        json!(facts.brief.world_size),
        json!(start_ns),
        json!(member.input.size),
        json!(facts.events),
        json!(facts.partial),
        json!(facts.devices),
        json!(Some(names).filter(|names| !names.is_empty())),
        json!(facts.steps.len()),
    ];
    row.extend(spread(&facts.steps));
    row.extend(facts.measures.iter().map(|value| json!(value)));
    row.extend([
        json!(facts.phases),
        json!(facts.recompute_evidence),
        json!(facts.recompute_observable),
        json!(facts.linked_share),
        json!(facts.verdict),
    ]);
    row
}

/// The row of `runs` of a run with these inputs, beside `lost` that failed.
pub(super) fn run(all: &[(&Member, Facts)], lost: usize) -> Vec<Value> {
    let first = &all[0].0.recognised;
    let ranks: BTreeSet<Option<i64>> = all.iter().map(|(it, _)| it.recognised.rank).collect();
    let sizes = all.iter().map(|(member, _)| member.input.size);
    let steps: Vec<i64> = all
        .iter()
        .flat_map(|(_, facts)| facts.steps.clone())
        .collect();
    let mut row = vec![
        json!("done"),
        json!(first.strategy),
        json!(first.repeat),
        Value::Null,
        Value::Null,
        Value::Null,
        json!(
            all.iter()
                .filter_map(|(it, _)| it.recognised.start_ns)
                .min()
        ),
        json!(all.len() + lost),
        json!(lost),
        json!(ranks.len()),
        json!(
            all.iter()
                .filter_map(|(_, facts)| facts.brief.world_size)
                .max()
        ),
        json!(sizes.sum::<u64>()),
        json!(all.iter().map(|(_, facts)| facts.events).sum::<u64>()),
        json!(steps.len()),
    ];
    row.extend(spread(&steps));
    for measure in 0..MEASURES.len() {
        let values = all
            .iter()
            .filter_map(|(_, facts)| *facts.measures.get(measure)?);
        let sum = values.fold(None, |sum: Option<i64>, value| {
            Some(sum.unwrap_or(0).saturating_add(value))
        });
        row.push(json!(sum));
    }
    let verdicts = ["trustworthy", "usable_with_care", "not_usable"];
    let worst = all.iter().filter_map(|(_, facts)| {
        verdicts
            .iter()
            .position(|verdict| *verdict == facts.verdict)
    });
    // Ranks that are missing from the numbers are a reason for care, however good the others are.
    let least = usize::from(lost > 0);
    row.extend([
        json!(imbalance(all)),
        json!(worst.max().map(|worst| verdicts[worst.max(least)])),
        json!(limited_by(all)),
        json!(first.by),
    ]);
    row
}

/// `(max - min) / max` of the busy time of ranks.
fn imbalance(all: &[(&Member, Facts)]) -> Option<f64> {
    let place = MEASURES.iter().position(|name| *name == "busy_ns")?;
    let mut busy: BTreeMap<i64, i64> = BTreeMap::new();
    for (member, facts) in all {
        let (Some(rank), Some(time)) = (member.recognised.rank, facts.measures[place]) else {
            continue;
        };
        let sum = busy.entry(rank).or_default();
        *sum = sum.saturating_add(time);
    }
    let (least, most) = (*busy.values().min()?, *busy.values().max()?);
    (busy.len() > 1 && most > 0).then(|| (most - least) as f64 / most as f64)
}

/// What limits most of the time of all ranks.
fn limited_by(all: &[(&Member, Facts)]) -> Option<String> {
    let mut effects: BTreeMap<&str, i64> = BTreeMap::new();
    for (code, effect) in all
        .iter()
        .filter_map(|(_, facts)| facts.limited_by.as_ref())
    {
        let sum = effects.entry(code).or_default();
        *sum = sum.saturating_add(*effect);
    }
    let most = effects
        .into_iter()
        .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
    Some(most.0.to_owned())
}

/// The row of `runs` of an input that failed.
pub(super) fn failed(member: &Member, failure: &Failure) -> Vec<Value> {
    let recognised = &member.recognised;
    let columns = DATASET_TABLES[0].columns.iter();
    let value = |name: &str| match name {
        "status" => json!("failed"),
        "strategy" => json!(recognised.strategy),
        "repeat" => json!(recognised.repeat),
        "input" => json!(member.input.id),
        "error" => json!(failure.error),
        "error_kind" => json!(failure.kind),
        "start_ns" => json!(recognised.start_ns),
        "size_bytes" => json!(member.input.size),
        "recognised_by" => json!(recognised.by),
        _ => Value::Null,
    };
    columns.map(|(name, _)| value(name)).collect()
}
