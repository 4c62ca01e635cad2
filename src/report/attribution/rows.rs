//! An attribution as tidy rows: one a run, rank, file, device, step and bucket.
//!
//! Rows with `step` = `all` hold whole captures, the others single steps: select one kind before
//! adding up. Device rows have a `device`; host rows have none. Bucket `idle` completes the
//! timeline of a device: `timeline_ns` adds up to the window. Bucket `unattributed` does the same
//! for the host time of a step.

use super::super::document::{Column, Row, Table, Value};
use crate::attribute;
use crate::attribute::{Attribution, Bucket, Cell, Phase, RankResult, Timeline};
use crate::units::Ns;

const KEYS: [&str; 8] = [
    "run", "rank", "input", "window", "device", "step", "partial", "bucket",
];
const TIMES: [&str; 11] = [
    "sum_ns",
    "busy_ns",
    "events",
    "launches",
    "compute_ns",
    "communication_ns",
    "memcpy_ns",
    "memset_ns",
    "timeline_ns",
    "host_wall_ns",
    "host_self_ns",
];

/// `attribution` as rows for a data frame or a spreadsheet.
pub fn attribution_rows(attribution: &Attribution) -> Table {
    let mut rows = Vec::new();
    for file in &attribution.ranks {
        device_rows(attribution, file, &mut rows);
        host_rows(attribution, file, &mut rows);
    }
    let keys = KEYS.into_iter().map(Column::text);
    let times = TIMES.into_iter().map(Column::number);
    Table {
        caption: "attribution".to_owned(),
        keys: KEYS.len(),
        columns: keys.chain(times).collect(),
        rows,
    }
}

/// What a row is about, apart from its bucket.
struct Place<'a> {
    attribution: &'a Attribution,
    file: &'a RankResult,
    device: Option<i64>,
    step: Option<(&'a str, bool)>,
}

impl Place<'_> {
    fn row(&self, bucket: &str, times: [Value; TIMES.len()]) -> Row {
        let integer = |value: i64| {
            u64::try_from(value).map_or_else(|_| Value::text(value.to_string()), Value::Count)
        };
        let mut cells = vec![
            Value::text(&self.attribution.runs[self.file.run].name),
            self.file.rank.map_or(Value::Missing, integer),
            Value::text(&self.attribution.inputs[self.file.input].path),
            Value::Count(self.file.window as u64),
            self.device.map_or(Value::NotApplicable, integer),
            Value::text(self.step.map_or("all", |(name, _)| name)),
            self.step.map_or(Value::NotApplicable, |(_, partial)| {
                Value::text(partial.to_string())
            }),
            Value::text(bucket),
        ];
        cells.extend(times);
        Row::new(cells)
    }
}

fn device_rows(attribution: &Attribution, file: &RankResult, rows: &mut Vec<Row>) {
    for device in &file.devices {
        let place = Place {
            attribution,
            file,
            device: Some(device.device),
            step: None,
        };
        buckets(&place, &device.totals, &device.timeline, rows);
        for step in &device.steps {
            let place = Place {
                step: Some((&step.name, step.partial)),
                ..place
            };
            buckets(&place, &step.totals, &step.timeline, rows);
        }
    }
}

fn buckets(place: &Place<'_>, table: &attribute::Table, line: &Timeline, rows: &mut Vec<Row>) {
    for bucket in Bucket::ALL {
        let cell = table.bucket(bucket);
        let time = line.phases[bucket.index()];
        rows.push(place.row(bucket.as_str(), times(cell, time)));
    }
    let mut idle = [const { Value::NotApplicable }; TIMES.len()];
    idle[8] = Value::Ns(line.idle_ns);
    rows.push(place.row("idle", idle));
}

fn times(cell: &Cell, timeline: Ns) -> [Value; TIMES.len()] {
    [
        Value::Ns(cell.sum_ns),
        Value::Ns(cell.busy_ns),
        Value::Count(cell.events),
        Value::Count(cell.launches),
        Value::Ns(cell.compute_ns),
        Value::Ns(cell.communication_ns),
        Value::Ns(cell.memcpy_ns),
        Value::Ns(cell.memset_ns),
        Value::Ns(timeline),
        Value::NotApplicable,
        Value::NotApplicable,
    ]
}

fn host_rows(attribution: &Attribution, file: &RankResult, rows: &mut Vec<Row>) {
    let host = |wall: Option<Ns>, own: Option<Ns>| {
        let mut times = [const { Value::NotApplicable }; TIMES.len()];
        times[9] = Value::ns_or_missing(wall);
        times[10] = Value::ns_or_missing(own);
        times
    };
    let place = Place {
        attribution,
        file,
        device: None,
        step: None,
    };
    // Some traces have no host operators at all.
    let has_operators = file
        .host
        .phases
        .values()
        .any(|time| time.self_ns > Ns::ZERO);
    for phase in Phase::ALL {
        let time = file.host.phases.get(&phase).copied().unwrap_or_default();
        let own = has_operators.then_some(time.self_ns);
        rows.push(place.row(phase.as_str(), host(time.wall_ns, own)));
    }
    for step in &file.host.steps {
        let place = Place {
            step: Some((&step.name, step.partial)),
            ..place
        };
        for (phase, time) in &step.phases {
            rows.push(place.row(phase.as_str(), host(Some(time.wall_ns), None)));
        }
        rows.push(place.row("unattributed", host(Some(step.unattributed_ns), None)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::csv;
    use super::super::sample;
    use super::*;

    #[test]
    fn rows_add_up_to_the_totals() {
        let attribution = sample::two_ranks();
        let table = attribution_rows(&attribution);
        let mut sum = Ns::ZERO;
        let mut window = Ns::ZERO;
        for row in table
            .rows
            .iter()
            .filter(|row| row.cells[5] == Value::text("all"))
        {
            assert_eq!(row.cells.len(), table.columns.len());
            if let Value::Ns(time) = row.cells[8] {
                sum += time;
            }
            if let Value::Ns(time) = row.cells[16] {
                window += time;
            }
        }
        assert_eq!(sum, attribution.totals.total.sum_ns);
        assert_eq!(window, Ns(40_000_000));
    }

    #[test]
    fn csv_names_every_row_in_full() {
        let text = csv::render(&attribution_rows(&sample::one_rank()));
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "run,rank,input,window,device,step,partial,bucket,sum_ns,busy_ns,events,launches,\
                 compute_ns,communication_ns,memcpy_ns,memset_ns,timeline_ns,host_wall_ns,\
                 host_self_ns"
            )
        );
        assert_eq!(
            lines.next(),
            Some(
                "trace,0,trace/rank-0.json,0,0,all,,forward,6000000,6000000,12,12,6000000,0,0,0,\
                 6000000,,"
            )
        );
        assert!(text.contains("\ntrace,0,trace/rank-0.json,0,,all,,forward,,,,,,,,,,,3000000\n"));
    }
}
