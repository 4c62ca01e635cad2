//! The tables of one run as a rule reads them: every number that it asks for becomes evidence.

use std::cmp::Reverse;
use std::fmt;

use super::condition::Condition;
use super::inference::{Confidence, EventReference, Evidence, Level, Number, Verdict};
use super::sum::{Sum, column};
use super::table::{Part, Tables};
use super::thresholds::Thresholds;
use crate::attribute::Attribution;
use crate::units;

/// Rows of a table.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    table: &'static str,
    condition: Condition,
}

impl Rows {
    /// All rows of `table`.
    pub(super) fn of(table: &'static str) -> Self {
        Self {
            table,
            condition: Condition::any_row(),
        }
    }

    /// Those of which `condition` holds, too.
    pub(super) fn and(&self, condition: Condition) -> Self {
        Self {
            table: self.table,
            condition: self.condition.and(condition),
        }
    }
}

/// `FROM …`, as SQL.
impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FROM {}", self.table)?;
        let condition = self.condition.to_string();
        if condition.is_empty() {
            return Ok(());
        }
        write!(f, " WHERE {condition}")
    }
}

/// Rows of the captures of whole devices, whose `timeline_ns` add up to the window: time of all devices of the run
/// from the start to the end of the capture.
pub(super) fn captures() -> Rows {
    Rows::of("attribution")
        .and(Condition::Is("step", &["all"]))
        .and(Condition::IsKnown("device"))
}

/// Device work of `class`.
pub(super) fn work_of(class: &'static [&'static str]) -> Rows {
    Rows::of("device_work").and(Condition::Is("class", class))
}

/// Calls of the runtimes and drivers of devices, of every vendor.
pub(super) fn runtime_calls() -> Rows {
    Rows::of("events").and(Condition::Is("activity", &["runtime", "driver"]))
}

/// How many events an inference shows.
const WORST: usize = 3;

/// One run under test.
pub(super) struct Case<'a> {
    attribution: &'a Attribution,
    tables: &'a Tables,
    thresholds: &'a Thresholds,
    code: &'static str,
    pub(super) evidence: Vec<Evidence>,
    pub(super) events: Vec<EventReference>,
}

/// What a rule makes of its evidence.
#[derive(Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) summary: String,
    /// Time that could be won, and the time that it is a part of.
    pub(super) effect: Option<(i64, i64)>,
    /// What confidence is at most, whatever the traces are like.
    pub(super) at_most: Option<Confidence>,
}

impl Judgement {
    fn new(verdict: Verdict, summary: impl Into<String>) -> Self {
        Self {
            verdict,
            summary: summary.into(),
            effect: None,
            at_most: None,
        }
    }

    pub(super) fn supported(summary: impl Into<String>) -> Self {
        Self::new(Verdict::Supported, summary)
    }

    pub(super) fn refuted(summary: impl Into<String>) -> Self {
        Self::new(Verdict::Refuted, summary)
    }

    pub(super) fn insufficient(summary: impl Into<String>) -> Self {
        Self::new(Verdict::InsufficientEvidence, summary)
    }

    pub(super) fn not_applicable(summary: impl Into<String>) -> Self {
        Self::new(Verdict::NotApplicable, summary)
    }

    /// Supported when `holds`, else refuted.
    pub(super) fn when(holds: bool, yes: impl Into<String>, no: impl Into<String>) -> Self {
        if holds {
            Self::supported(yes)
        } else {
            Self::refuted(no)
        }
    }

    /// With `ns` of `whole` to be won.
    pub(super) fn winning(mut self, ns: i64, whole: i64) -> Self {
        self.effect = Some((ns, whole));
        self
    }

    pub(super) fn at_most(mut self, level: Level, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        self.at_most = Some(Confidence { level, reason });
        self
    }
}

impl<'a> Case<'a> {
    pub(super) fn new(
        attribution: &'a Attribution,
        tables: &'a Tables,
        thresholds: &'a Thresholds,
        code: &'static str,
    ) -> Self {
        Self {
            attribution,
            tables,
            thresholds,
            code,
            evidence: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The limit called `name` of this rule.
    pub(super) fn limit(&self, name: &str) -> f64 {
        self.thresholds.limit(self.code, name)
    }

    /// A limit in whole nanoseconds.
    pub(super) fn limit_ns(&self, name: &str) -> i64 {
        let limit = self.limit(name).clamp(0.0, 9e15);
        #[expect(clippy::cast_possible_truncation, reason = "it was clamped")]
        let limit = limit as i64;
        limit
    }

    /// The parts of the table with the numbers of the rows that are meant.
    fn parts(&self, rows: &Rows) -> impl Iterator<Item = (&'a Part, Vec<u32>)> {
        let parts = self.tables.parts(rows.table).iter();
        parts.map(|part| (part, rows.condition.keep(part, part.rows())))
    }

    /// The values of `columns` in each row.
    pub(super) fn ints<const N: usize>(
        &self,
        columns: &[Sum; N],
        rows: &Rows,
    ) -> Vec<[Option<i64>; N]> {
        let mut found = Vec::new();
        for (part, rows) in self.parts(rows) {
            let columns = columns.each_ref().map(|column| column.of(part));
            found.extend(
                rows.iter()
                    .map(|row| columns.each_ref().map(|column| column.at(*row))),
            );
        }
        found
    }

    /// The values of `columns` in the rows in which all are known.
    pub(super) fn known<const N: usize>(&self, columns: &[Sum; N], rows: &Rows) -> Vec<[i64; N]> {
        let all = self.ints(columns, rows).into_iter();
        all.filter(|values| values.iter().all(Option::is_some))
            .map(|values| values.map(Option::unwrap_or_default))
            .collect()
    }

    /// The texts of column `name` in each row.
    pub(super) fn texts(&self, name: &str, rows: &Rows) -> Vec<Option<&'a str>> {
        let parts = self.parts(rows);
        parts
            .flat_map(|(part, rows)| {
                let column = part.column(name);
                rows.into_iter().map(move |row| column.text(row))
            })
            .collect()
    }

    /// How many rows there are.
    pub(super) fn how_many(&self, rows: &Rows) -> i64 {
        let count: usize = self.parts(rows).map(|(_, rows)| rows.len()).sum();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// The sum of `values` over the rows in which they are known; `None` of no such row.
    pub(super) fn sum_of(&self, values: &Sum, rows: &Rows) -> Option<i64> {
        let mut sum: Option<i64> = None;
        for (part, rows) in self.parts(rows) {
            let values = values.of(part);
            for value in rows.iter().filter_map(|row| values.at(*row)) {
                sum = Some(sum.unwrap_or(0).saturating_add(value));
            }
        }
        sum
    }

    /// A sum of times, which is 0 of no rows.
    pub(super) fn ns(&mut self, name: &str, values: &Sum, rows: &Rows) -> i64 {
        let sum = self.sum_of(values, rows).unwrap_or(0);
        let sql = format!("SELECT COALESCE(SUM({values}), 0) {rows}");
        self.note(name, "ns", Some(Number::Int(sum)), sql);
        sum
    }

    /// A sum of what may not be in the files: `None` of no rows.
    pub(super) fn measured(
        &mut self,
        name: &str,
        unit: &'static str,
        values: &Sum,
        rows: &Rows,
    ) -> Option<i64> {
        let sum = self.sum_of(values, rows);
        let sql = format!("SELECT SUM({values}) {rows}");
        self.note(name, unit, sum.map(Number::Int), sql);
        sum
    }

    /// A sum of times, each times its column `share`; `None` of no rows.
    pub(super) fn shared_ns(
        &mut self,
        name: &str,
        [time, share]: [&'static str; 2],
        rows: &Rows,
    ) -> Option<i64> {
        let sum = self.scaled([time, share], |share| share, rows);
        let sql = format!("SELECT SUM(CAST({time} * {share} AS BIGINT)) {rows}");
        self.note(name, "ns", sum.map(Number::Int), sql);
        sum
    }

    /// A sum of times without the `share` of each, which is 0 of no rows.
    pub(super) fn rest_ns(
        &mut self,
        name: &str,
        [time, share]: [&'static str; 2],
        rows: &Rows,
    ) -> i64 {
        let sum = self.scaled([time, share], |share| 1.0 - share, rows);
        let sum = sum.unwrap_or(0);
        let sql =
            format!("SELECT COALESCE(SUM(CAST({time} * (1.0 - {share}) AS BIGINT)), 0) {rows}");
        self.note(name, "ns", Some(Number::Int(sum)), sql);
        sum
    }

    /// Each product is cut to nanoseconds, as SQL casts, so that the sum depends on no order.
    fn scaled(
        &self,
        [time, share]: [&'static str; 2],
        scale: impl Fn(f64) -> f64,
        rows: &Rows,
    ) -> Option<i64> {
        let mut sum: Option<i64> = None;
        for (part, rows) in self.parts(rows) {
            let (times, shares) = (part.column(time), part.column(share));
            for row in rows {
                let Some((time, share)) = times.int(row).zip(shares.float(row)) else {
                    continue;
                };
                #[expect(clippy::cast_possible_truncation, reason = "that is what is meant")]
                let part = (time as f64 * scale(share)) as i64;
                sum = Some(sum.unwrap_or(0).saturating_add(part));
            }
        }
        sum
    }

    /// A number of things.
    pub(super) fn count(&mut self, name: &str, rows: &Rows) -> i64 {
        let count = self.how_many(rows);
        let sql = format!("SELECT COUNT(*) {rows}");
        self.note(name, "count", Some(Number::Int(count)), sql);
        count
    }

    /// The size of the job; 0 where no file tells.
    pub(super) fn world_size(&mut self) -> i64 {
        let rows = Rows::of("files");
        let sizes = self.known(&[column("world_size")], &rows).into_iter();
        let most = sizes.map(|[size]| size).max();
        let sql = format!("SELECT MAX(world_size) {rows}");
        self.note("ranks of the job", "count", most.map(Number::Int), sql);
        most.unwrap_or(0)
    }

    /// A number, with the query that gives it, or the rows that it is computed from.
    pub(super) fn note(
        &mut self,
        name: &str,
        unit: &'static str,
        value: Option<Number>,
        sql: impl Into<String>,
    ) {
        self.evidence.push(Evidence {
            name: name.to_owned(),
            value,
            unit,
            query: sql.into(),
        });
    }

    /// The window of all devices; `None` without device work.
    pub(super) fn window(&mut self) -> Option<i64> {
        let window = self.ns("window", &column("timeline_ns"), &captures());
        Some(window).filter(|window| *window > 0)
    }

    /// How much of the device time has no launch in the file, which rules about launches must know.
    pub(super) fn unlinked_share(&mut self) -> f64 {
        let work = Rows::of("device_work");
        let all = self.sum_of(&column("dur_ns"), &work).unwrap_or(0);
        let unlinked = self.ns(
            "device time without a launch",
            &column("dur_ns"),
            &work.and(Condition::IsNull("launch_event")),
        );
        share(unlinked, all)
    }

    /// Counts communication kernels; a judgement where there are none, so that nothing can be said about them.
    pub(super) fn without_collectives(&mut self) -> Option<Judgement> {
        if self.count("communication kernels", &work_of(&["communication"])) > 0 {
            return None;
        }
        let ranks = self.world_size();
        Some(if ranks > 1 {
            Judgement::insufficient(format!(
                "the job has {ranks} ranks, but no collective on a device is in the files"
            ))
        } else {
            Judgement::not_applicable("no collective runs on a device")
        })
    }

    /// How many calls that copy are in the files: where no copy is, copies were not recorded.
    pub(super) fn copy_calls(&mut self) -> i64 {
        let calls = runtime_calls()
            .and(Condition::IsTrue("counts"))
            .and(Condition::Is("call_kind", &["copy", "blocking_copy"]));
        self.count("calls that copy", &calls)
    }

    /// Names the rows with the most `by`.
    pub(super) fn blame(&mut self, by: &Sum, rows: &Rows) {
        self.blame_where(by, rows, |_, _| true);
    }

    /// Names the rows with the most `by` among those of which `is_meant` holds.
    pub(super) fn blame_where(
        &mut self,
        by: &Sum,
        rows: &Rows,
        is_meant: impl Fn(&Part, u32) -> bool,
    ) {
        let mut worst: Vec<(Reverse<Option<i64>>, i64, i64, &str)> = Vec::new();
        for (part, rows) in self.parts(rows) {
            let by = by.of(part);
            let [file, event, name] = ["file", "event", "name"].map(|name| part.column(name));
            let found = rows
                .into_iter()
                .filter(|row| is_meant(part, *row))
                .filter_map(|row| {
                    let name = name.text(row).unwrap_or_default();
                    Some((Reverse(by.at(row)), file.int(row)?, event.int(row)?, name))
                });
            worst.extend(found);
        }
        let order = |one: &(Reverse<Option<i64>>, i64, i64, &str)| (one.0, one.1, one.2);
        if worst.len() > WORST {
            worst.select_nth_unstable_by_key(WORST, order);
            worst.truncate(WORST);
        }
        worst.sort_unstable_by_key(order);
        for (_, file, event, name) in worst {
            let input = usize::try_from(file).ok();
            let input = input.and_then(|file| self.attribution.inputs.get(file));
            self.events.push(EventReference {
                path: input.map_or_else(String::new, |input| input.path.clone()),
                event,
                name: name.to_owned(),
            });
        }
    }
}

/// Copies were not recorded, but so many calls for them.
pub(super) fn without_copies(calls: i64) -> Judgement {
    let made = match calls {
        1 => "1 call that copies is".to_owned(),
        calls => format!("{calls} calls that copy are"),
    };
    Judgement::insufficient(format!("{made} in the files, but no copy on a device"))
}

/// `part` of `whole`; 0 of nothing.
pub(super) fn share(part: i64, whole: i64) -> f64 {
    if whole > 0 {
        part as f64 / whole as f64
    } else {
        0.0
    }
}

/// A ratio in percent for a summary.
pub(super) fn percent(ratio: f64) -> String {
    format!("{} %", units::percent(ratio))
}
