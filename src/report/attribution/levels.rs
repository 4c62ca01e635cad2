//! Time by step, device or rank: one row each, one column a phase.

use super::super::document::{Column, Row, Table, Value};
use super::label;
use super::page::By;
use super::phases::shown_buckets;
use super::timeline::devices;
use crate::attribute::{
    self, Attribution, Bucket, HostStep, Phase, RankResult, RunResult, Timeline,
};
use crate::units::Ns;

/// The table of `run` with one row a step, device or rank.
pub(in super::super) fn table(attribution: &Attribution, run: &RunResult, by: By) -> Table {
    let on_device = run.totals.total.events > 0;
    match by {
        By::Step if on_device => device_steps(attribution, run),
        By::Step => host_steps(attribution, run),
        By::Device if on_device => by_device(attribution, run),
        By::Rank | By::Device if !on_device => host_ranks(attribution, run),
        By::Phase | By::Device | By::Rank => by_rank(attribution, run),
    }
}

/// Columns of sums of device time by bucket and the row of one table under them.
struct Buckets(Vec<Bucket>);

impl Buckets {
    fn of(run: &RunResult) -> Self {
        Self(shown_buckets(|bucket| run.totals.bucket(bucket).events))
    }

    fn columns(&self, keys: &[&str], window: &str) -> Vec<Column> {
        let mut columns: Vec<Column> = keys.iter().map(|key| Column::text(*key)).collect();
        columns.push(Column::ms(window));
        columns.push(Column::percent("idle"));
        columns.push(Column::ms("total"));
        let buckets = self.0.iter().enumerate();
        columns.extend(buckets.map(|(place, bucket)| {
            let column = Column::ms(bucket.as_str());
            if place == 0 {
                column.starting_group()
            } else {
                column
            }
        }));
        columns
    }

    fn cells(&self, keys: Vec<Value>, window: [Value; 2], table: &attribute::Table) -> Vec<Value> {
        let mut cells = keys;
        cells.extend(window);
        cells.push(Value::Ns(table.total.sum_ns));
        cells.extend(
            self.0
                .iter()
                .map(|bucket| Value::Ns(table.bucket(*bucket).sum_ns)),
        );
        cells
    }
}

fn files<'a>(
    attribution: &'a Attribution,
    run: &'a RunResult,
) -> impl Iterator<Item = &'a RankResult> {
    run.ranks.iter().map(|rank| &attribution.ranks[*rank])
}

fn step_name(name: &str, partial: bool) -> String {
    if partial {
        format!("{name} (partial)")
    } else {
        name.to_owned()
    }
}

fn device_steps(attribution: &Attribution, run: &RunResult) -> Table {
    let lines = || {
        devices(attribution, run)
            .flat_map(|device| &device.steps)
            .map(|step| &step.timeline)
    };
    let buckets = shown_buckets(|bucket| {
        let held = |line: &&Timeline| line.phases[bucket.index()] > Ns::ZERO;
        lines().filter(held).count() as u64
    });
    // Rank and device are named only where there is a choice.
    let ranked = run.ranks.len() > 1;
    let several = files(attribution, run).any(|file| file.devices.len() > 1);
    let mut keys = vec!["step"];
    keys.extend(ranked.then_some("rank"));
    keys.extend(several.then_some("device"));
    let mut rows = Vec::new();
    for file in files(attribution, run) {
        for device in &file.devices {
            for step in &device.steps {
                let mut cells = vec![Value::Text(step_name(&step.name, step.partial))];
                cells.extend(ranked.then(|| Value::Text(label::rank(attribution, file))));
                cells.extend(several.then(|| Value::Text(label::device(device))));
                let line = &step.timeline;
                cells.push(Value::Ns(line.window_ns));
                let held = |bucket: &Bucket| Value::Ns(line.phases[bucket.index()]);
                cells.extend(buckets.iter().map(held));
                cells.push(Value::Ns(line.idle_ns));
                cells.push(Value::share(line.idle_ns, line.window_ns));
                rows.push(Row::new(cells));
            }
        }
    }
    let mut columns: Vec<Column> = keys.iter().map(|key| Column::text(*key)).collect();
    columns.push(Column::ms("window"));
    let times = buckets.iter().map(|bucket| Column::ms(bucket.as_str()));
    columns.extend(times);
    columns.extend([Column::ms("idle"), Column::percent("idle")]);
    Table {
        caption:
            "Device timeline by step, each instant counted once: phases and idle add up to the \
                  window"
                .to_owned(),
        keys: keys.len(),
        columns,
        rows,
    }
}

fn by_device(attribution: &Attribution, run: &RunResult) -> Table {
    let buckets = Buckets::of(run);
    let ranked = run.ranks.len() > 1;
    let named = devices(attribution, run).any(|device| device.name.is_some());
    let mut keys = vec!["device"];
    keys.extend(ranked.then_some("rank"));
    keys.extend(named.then_some("name"));
    let mut rows = Vec::new();
    for file in files(attribution, run) {
        for device in &file.devices {
            let mut keys = vec![Value::Text(label::device(device))];
            keys.extend(ranked.then(|| Value::Text(label::rank(attribution, file))));
            keys.extend(named.then(|| device.name.as_ref().map_or(Value::Missing, Value::text)));
            let line = &device.timeline;
            let window = [
                Value::Ns(line.window_ns),
                Value::share(line.idle_ns, line.window_ns),
            ];
            rows.push(Row::new(buckets.cells(keys, window, &device.totals)));
        }
    }
    let columns = buckets.columns(&keys, "window");
    Table {
        caption: "Device time by device".to_owned(),
        keys: keys.len(),
        columns,
        rows,
    }
}

fn by_rank(attribution: &Attribution, run: &RunResult) -> Table {
    let buckets = Buckets::of(run);
    let mut rows = Vec::new();
    for file in files(attribution, run) {
        let keys = vec![Value::Text(label::rank(attribution, file))];
        if file.devices.is_empty() {
            let mut cells = keys;
            cells.resize(4 + buckets.0.len(), Value::Missing);
            rows.push(Row::new(cells));
            continue;
        }
        let window: Ns = file
            .devices
            .iter()
            .map(|device| device.timeline.window_ns)
            .sum();
        let idle: Ns = file
            .devices
            .iter()
            .map(|device| device.timeline.idle_ns)
            .sum();
        let window = [Value::Ns(window), Value::share(idle, window)];
        rows.push(Row::new(buckets.cells(keys, window, &file.totals)));
    }
    let columns = buckets.columns(&["rank"], "window");
    Table {
        caption: "Device time by rank".to_owned(),
        keys: 1,
        columns,
        rows,
    }
}

fn host_steps(attribution: &Attribution, run: &RunResult) -> Table {
    let ranked = run.ranks.len() > 1;
    let steps = || files(attribution, run).flat_map(|file| &file.host.steps);
    let phases: Vec<Phase> = Phase::ALL
        .into_iter()
        .filter(|phase| steps().any(|step| step.phases.contains_key(phase)))
        .collect();
    let mut columns = vec![Column::text("step")];
    columns.extend(ranked.then(|| Column::text("rank")));
    let keys = columns.len();
    columns.push(Column::ms("step"));
    columns.extend(phases.iter().map(|phase| Column::ms(phase.as_str())));
    columns.push(Column::ms("in no phase"));
    let cells =
        |file: &RankResult, step: &HostStep| {
            let mut cells = vec![Value::Text(step_name(&step.name, step.partial))];
            cells.extend(ranked.then(|| Value::Text(label::rank(attribution, file))));
            cells.push(Value::Ns(step.wall_ns));
            cells.extend(phases.iter().map(|phase| {
                Value::ns_or_missing(step.phases.get(phase).map(|time| time.wall_ns))
            }));
            cells.push(Value::Ns(step.unattributed_ns));
            cells
        };
    let rows = files(attribution, run)
        .flat_map(|file| file.host.steps.iter().map(move |step| (file, step)))
        .map(|(file, step)| Row::new(cells(file, step)))
        .collect();
    let caption = "Host time by step, as annotated; no device work".to_owned();
    Table {
        caption,
        keys,
        columns,
        rows,
    }
}

fn host_ranks(attribution: &Attribution, run: &RunResult) -> Table {
    let mut columns = vec![Column::text("rank")];
    columns.extend(
        Phase::ALL
            .into_iter()
            .map(|phase| Column::ms(phase.as_str())),
    );
    columns.push(Column::ms("total"));
    let rows = files(attribution, run)
        .map(|file| {
            let times = Phase::ALL.map(|phase| {
                file.host
                    .phases
                    .get(&phase)
                    .map_or(Ns::ZERO, |time| time.self_ns)
            });
            let mut cells = vec![Value::Text(label::rank(attribution, file))];
            cells.extend(times.map(Value::Ns));
            cells.push(Value::Ns(times.into_iter().sum()));
            Row::new(cells)
        })
        .collect();
    let caption = "Host self time by rank, no device work".to_owned();
    Table {
        caption,
        keys: 1,
        columns,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn shape(table: &Table) -> (Vec<&str>, usize) {
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.cells.len() == table.columns.len())
        );
        (
            table
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect(),
            table.rows.len(),
        )
    }

    #[test]
    fn every_level_has_its_rows_and_columns() {
        let phases = ["forward", "backward", "recompute", "optimizer", "other"];
        let sums = [&["window", "idle", "total"][..], &phases].concat();
        let line = [&["window"][..], &phases, &["idle", "idle"]].concat();
        for (by, keys, times, rows) in [
            (By::Step, vec!["step", "rank"], &line, 4),
            (By::Device, vec!["device", "rank", "name"], &sums, 2),
            (By::Rank, vec!["rank"], &sums, 2),
        ] {
            let attribution = sample::two_ranks();
            let table = table(&attribution, &attribution.runs[0], by);
            assert_eq!(shape(&table), ([keys.as_slice(), times].concat(), rows));
        }
    }

    #[test]
    fn the_row_of_a_step_adds_up_to_its_window() {
        let mut attribution = sample::one_rank();
        let line = &mut attribution.ranks[0].devices[0].steps[1].timeline;
        line.phases[Bucket::PreWindow.index()] = line.idle_ns - Ns(1);
        line.idle_ns = Ns(1);
        let table = table(&attribution, &attribution.runs[0], By::Step);
        assert!(shape(&table).0.contains(&"pre_window"));
        for row in &table.rows {
            let times: Vec<Ns> = row
                .cells
                .iter()
                .filter_map(|cell| match cell {
                    Value::Ns(time) => Some(*time),
                    _ => None,
                })
                .collect();
            assert_eq!(times[0], times[1..].iter().copied().sum());
        }
    }

    #[test]
    fn ranks_without_device_work_have_no_zeros() {
        let mut attribution = sample::two_ranks();
        attribution.ranks[1].devices.clear();
        let table = table(&attribution, &attribution.runs[0], By::Rank);
        shape(&table);
        assert!(
            table.rows[1].cells[1..]
                .iter()
                .all(|cell| *cell == Value::Missing)
        );
    }

    #[test]
    fn without_device_work_levels_are_of_the_host() {
        let attribution = sample::host_only();
        let run = &attribution.runs[0];
        assert_eq!(
            shape(&table(&attribution, run, By::Step)),
            (vec!["step", "step", "forward", "in no phase"], 1)
        );
        assert_eq!(shape(&table(&attribution, run, By::Device)).1, 1);
    }
}
