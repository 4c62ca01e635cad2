//! Time by phase: of devices, or of the host when there is no device work.

use super::super::document::{Column, Row, Table, Value};
use super::super::number::counted;
use super::timeline::{Windows, device_count, devices};
use crate::attribute::{Attribution, Bucket, Cell, OtherKind, Phase, RunResult};
use crate::units::Ns;

/// Name of a class of device work and its column of a cell.
type ClassColumn = (&'static str, fn(&Cell) -> Ns);

const CLASSES: [ClassColumn; 4] = [
    ("compute", |cell| cell.compute_ns),
    ("comm", |cell| cell.communication_ns),
    ("memcpy", |cell| cell.memcpy_ns),
    ("memset", |cell| cell.memset_ns),
];

/// The table by phase of `run`.
pub(in super::super) fn table(attribution: &Attribution, run: &RunResult) -> Table {
    if run.totals.total.events > 0 {
        device(attribution, run)
    } else {
        host(run)
    }
}

/// The buckets that reports show of tables: phases always, the others when there is something.
pub(in super::super) fn shown_buckets(events: impl Fn(Bucket) -> u64) -> Vec<Bucket> {
    let all = Bucket::ALL.into_iter();
    all.filter(|bucket| matches!(bucket, Bucket::Phase(_)) || events(*bucket) > 0)
        .collect()
}

fn device(attribution: &Attribution, run: &RunResult) -> Table {
    let totals = &run.totals;
    let total = totals.total;
    let steps = Windows::of_steps(attribution, run);
    let windows = steps
        .or_else(|| Windows::of_captures(attribution, run))
        .unwrap_or_default();
    let of_window = if steps.is_some() {
        "of step"
    } else {
        "of window"
    };
    // With one class only, its column would repeat the first.
    let mut classes: Vec<ClassColumn> = CLASSES
        .into_iter()
        .filter(|(_, time)| time(&total) > Ns::ZERO)
        .collect();
    if classes.len() < 2 {
        classes.clear();
    }
    let mut columns = vec![
        Column::text("phase"),
        Column::ms("time"),
        Column::percent("share"),
        Column::percent(of_window),
        Column::ms("busy"),
        Column::number("events"),
        Column::number("launches"),
        Column::ms("host self"),
    ];
    columns.extend(classes.iter().enumerate().map(|(place, (name, _))| {
        let column = Column::ms(*name);
        if place == 0 {
            column.starting_group()
        } else {
            column
        }
    }));
    let row = |name: &str, cell: &Cell, of_window: Value, host: Value| {
        let mut cells = vec![
            Value::text(name),
            Value::Ns(cell.sum_ns),
            Value::share(cell.sum_ns, total.sum_ns),
            of_window,
            Value::Ns(cell.busy_ns),
            Value::Count(cell.events),
            Value::Count(cell.launches),
            host,
        ];
        cells.extend(classes.iter().map(|(_, time)| Value::Ns(time(cell))));
        cells
    };
    let share = |time: Ns| Value::share(time, windows.sum.window_ns);
    let host_total: Ns = Phase::ALL
        .into_iter()
        .map(|phase| host_self(run, phase))
        .sum();
    // Some traces have no host operators at all.
    let host = |time: Ns| Value::ns_or_missing((host_total > Ns::ZERO).then_some(time));
    let mut rows = Vec::new();
    for bucket in shown_buckets(|bucket| totals.bucket(bucket).events) {
        let host = match bucket {
            Bucket::Phase(phase) => host(host_self(run, phase)),
            Bucket::PreWindow | Bucket::Unlinked => Value::NotApplicable,
        };
        let cell = totals.bucket(bucket);
        rows.push(Row::new(row(
            bucket.as_str(),
            cell,
            share(windows.phase(bucket)),
            host,
        )));
        if bucket == Bucket::Phase(Phase::Other) {
            let kinds: Vec<OtherKind> = OtherKind::ALL
                .into_iter()
                .filter(|kind| totals.other(*kind).events > 0)
                .collect();
            if kinds != [OtherKind::Rest] {
                rows.extend(kinds.into_iter().map(|kind| {
                    let cell = totals.other(kind);
                    Row::part(row(kind.as_str(), cell, Value::Blank, Value::Blank))
                }));
            }
        }
    }
    rows.push(Row::total(row(
        "total",
        &total,
        share(windows.sum.busy_ns()),
        host(host_total),
    )));
    Table {
        caption: format!("Device time by phase{}", together(attribution, run)),
        keys: 1,
        columns,
        rows,
    }
}

/// What a table of `run` adds up: `, 2 devices in 4 windows together`.
fn together(attribution: &Attribution, run: &RunResult) -> String {
    let windows = devices(attribution, run).count() as u64;
    if windows < 2 {
        return String::new();
    }
    let devices = device_count(attribution, run);
    let in_windows = if windows > devices {
        format!(" in {}", counted(windows, "window"))
    } else {
        String::new()
    };
    format!(", {}{in_windows} together", counted(devices, "device"))
}

fn host_self(run: &RunResult, phase: Phase) -> Ns {
    run.host_phases
        .get(&phase)
        .map_or(Ns::ZERO, |time| time.self_ns)
}

fn host(run: &RunResult) -> Table {
    let columns = vec![
        Column::text("phase"),
        Column::ms("self"),
        Column::percent("share"),
        Column::ms("annotated"),
    ];
    let total: Ns = Phase::ALL
        .into_iter()
        .map(|phase| host_self(run, phase))
        .sum();
    let wall = |phase: &Phase| run.host_phases.get(phase).and_then(|time| time.wall_ns);
    let row = |name: &str, time: Ns, wall: Option<Ns>| {
        // Without operators there is no such time.
        let time = (total > Ns::ZERO).then_some(time);
        vec![
            Value::text(name),
            Value::ns_or_missing(time),
            time.map_or(Value::Missing, |time| Value::share(time, total)),
            Value::ns_or_missing(wall),
        ]
    };
    let mut rows: Vec<Row> = Phase::ALL
        .into_iter()
        .map(|phase| Row::new(row(phase.as_str(), host_self(run, phase), wall(&phase))))
        .collect();
    let walls: Vec<Ns> = Phase::ALL.iter().filter_map(wall).collect();
    let wall = (!walls.is_empty()).then(|| walls.into_iter().sum());
    rows.push(Row::total(row("total", total, wall)));
    Table {
        caption: "Host time by phase, no device work".to_owned(),
        keys: 1,
        columns,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn buckets_without_work_are_hidden_and_phases_never() {
        let attribution = sample::one_rank();
        let table = table(&attribution, &attribution.runs[0]);
        let names: Vec<&Value> = table.rows.iter().map(|row| &row.cells[0]).collect();
        let expected = [
            "forward",
            "backward",
            "recompute",
            "optimizer",
            "other",
            "zero_grad",
            "rest",
            "total",
        ];
        assert_eq!(names, expected.map(Value::text).iter().collect::<Vec<_>>());
        let columns: Vec<&str> = table
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert!(columns.ends_with(&["host self", "compute", "comm"]));
    }

    #[test]
    fn phases_without_annotation_have_no_wall_time() {
        let attribution = sample::host_only();
        let table = table(&attribution, &attribution.runs[0]);
        assert_eq!(table.rows[0].cells[3], Value::Ns(Ns(3_000_000)));
        assert_eq!(table.rows[1].cells[3], Value::Missing);
    }
}
