//! The kernels with the most device time in each phase.

use super::super::document::{Column, Row, Table, Value};
use crate::attribute::{Bucket, RunResult};
use crate::units::Ns;

/// Top kernels by phase; `None` when none were asked for or there is no device work.
pub(in super::super) fn table(run: &RunResult) -> Option<Table> {
    let mut rows = Vec::new();
    for bucket in Bucket::ALL {
        let whole = run.totals.bucket(bucket).sum_ns;
        let kernels = run.top_kernels.get(bucket.as_str()).into_iter().flatten();
        for (place, kernel) in kernels.enumerate() {
            let phase = if place == 0 {
                Value::text(bucket.as_str())
            } else {
                Value::Blank
            };
            let events = i64::try_from(kernel.events).unwrap_or(i64::MAX);
            rows.push(Row::new(vec![
                phase,
                Value::Ns(kernel.sum_ns),
                Value::share(kernel.sum_ns, whole),
                Value::Count(kernel.events),
                kernel
                    .sum_ns
                    .0
                    .checked_div(events)
                    .map_or(Value::NotApplicable, |mean| Value::Ns(Ns(mean))),
                Value::text(&kernel.name),
            ]));
        }
    }
    let columns = vec![
        Column::text("phase"),
        Column::ms("time"),
        Column::percent("of phase"),
        Column::number("count"),
        Column::ms("mean"),
        Column::text("name"),
    ];
    let caption = "Top kernels, copies and fills".to_owned();
    (!rows.is_empty()).then_some(Table {
        caption,
        keys: 1,
        columns,
        rows,
    })
}
