//! The tables of one run as a rule reads them: every number that it asks for becomes evidence.

use polars::prelude::{AnyValue, DataFrame};

use super::inference::{Confidence, EventReference, Evidence, Level, Number, Verdict};
use super::thresholds::Thresholds;
use crate::error::Result;
use crate::frame::{Tables, query};

/// Time of all devices of the run from the start to the end of the capture.
pub(super) const WINDOW: &str =
    "SELECT SUM(timeline_ns) FROM attribution WHERE step = 'all' AND device IS NOT NULL";

/// Names of the events that an inference shows.
const EVENTS: usize = 3;

/// One run under test.
pub(super) struct Case<'a> {
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
    pub(super) fn new(tables: &'a Tables, thresholds: &'a Thresholds, code: &'static str) -> Self {
        Self {
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

    /// The rows that `sql` gives.
    pub(super) fn rows(&self, sql: &str) -> Result<DataFrame> {
        query(self.tables, sql)
    }

    /// The one number that `sql` gives.
    pub(super) fn number(
        &mut self,
        name: &str,
        unit: &'static str,
        sql: &str,
    ) -> Result<Option<Number>> {
        let value = first_number(&self.rows(sql)?);
        self.note(name, unit, value, sql);
        Ok(value)
    }

    /// The one integer that `sql` gives; 0 where it gives none.
    pub(super) fn int(&mut self, name: &str, unit: &'static str, sql: &str) -> Result<i64> {
        Ok(match self.number(name, unit, sql)? {
            Some(Number::Int(number)) => number,
            _ => 0,
        })
    }

    /// A sum of times, `SELECT SUM(…) FROM …`, which is 0 of no rows.
    pub(super) fn ns(&mut self, name: &str, sql: &str) -> Result<i64> {
        let sql = sql
            .replacen("SELECT ", "SELECT COALESCE(", 1)
            .replacen(" FROM", ", 0) FROM", 1);
        self.int(name, "ns", &sql)
    }

    /// A number of things.
    pub(super) fn count(&mut self, name: &str, sql: &str) -> Result<i64> {
        self.int(name, "count", sql)
    }

    /// A number that was computed from the rows of `sql`.
    pub(super) fn note(
        &mut self,
        name: &str,
        unit: &'static str,
        value: Option<Number>,
        sql: &str,
    ) {
        self.evidence.push(Evidence {
            name: name.to_owned(),
            value,
            unit,
            query: sql.to_owned(),
        });
    }

    /// The window of all devices; `None` without device work.
    pub(super) fn window(&mut self) -> Result<Option<i64>> {
        let window = self.ns("window", WINDOW)?;
        Ok(Some(window).filter(|window| *window > 0))
    }

    /// How much of the device time has no launch in the file, which rules about launches must know.
    pub(super) fn unlinked_share(&mut self) -> Result<f64> {
        let all = first_number(&self.rows("SELECT SUM(dur_ns) FROM device_work")?);
        let sql = "SELECT SUM(dur_ns) FROM device_work WHERE launch_event IS NULL";
        let unlinked = self.ns("device time without a launch", sql)?;
        let all = all.map_or(0.0, Number::as_f64);
        Ok(if all > 0.0 {
            unlinked as f64 / all
        } else {
            0.0
        })
    }

    /// Counts communication kernels; a judgement where there are none, so that nothing can be said about them.
    pub(super) fn without_collectives(&mut self) -> Result<Option<Judgement>> {
        let calls = self.count(
            "communication kernels",
            "SELECT COUNT(*) FROM device_work WHERE class = 'communication'",
        )?;
        if calls > 0 {
            return Ok(None);
        }
        let ranks = self.count("ranks of the job", "SELECT MAX(world_size) FROM files")?;
        Ok(Some(if ranks > 1 {
            Judgement::insufficient(format!(
                "the job has {ranks} ranks, but no collective on a device is in the files"
            ))
        } else {
            Judgement::not_applicable("no collective runs on a device")
        }))
    }

    /// How many calls that copy are in the files: where no copy is, copies were not recorded.
    pub(super) fn copy_calls(&mut self) -> Result<i64> {
        self.count(
            "calls that copy",
            "SELECT COUNT(*) FROM events WHERE ph = 'X' AND cat IN ('cuda_runtime', 'cuda_driver', 'Runtime') \
             AND (name LIKE '%Memcpy%' OR name LIKE '%memcpy%')",
        )
    }

    /// Names the first events that `sql` gives: columns `file`, `event` and `name`.
    pub(super) fn blame(&mut self, sql: &str) -> Result<()> {
        let rows = self.rows(&format!("{sql} LIMIT {EVENTS}"))?;
        for row in 0..rows.height() {
            let text = |column: &str| {
                let value = rows.column(column).ok()?.get(row).ok()?;
                Some(value.get_str()?.to_owned())
            };
            let number = |column: &str| int_at(&rows, column, row);
            let (Some(file), Some(event)) = (number("file"), number("event")) else {
                continue;
            };
            let input = usize::try_from(file).ok();
            let input = input.and_then(|file| self.tables.attribution.inputs.get(file));
            self.events.push(EventReference {
                path: input.map_or_else(String::new, |input| input.path.clone()),
                event,
                name: text("name").unwrap_or_default(),
            });
        }
        Ok(())
    }
}

/// The integer in column `column` of row `row`.
pub(super) fn int_at(rows: &DataFrame, column: &str, row: usize) -> Option<i64> {
    match rows.column(column).ok()?.get(row).ok()? {
        AnyValue::Null => None,
        value => value.extract::<i64>(),
    }
}

/// The first value of the first row.
pub(super) fn first_number(rows: &DataFrame) -> Option<Number> {
    match rows.columns().first()?.get(0).ok()? {
        AnyValue::Null | AnyValue::Boolean(_) => None,
        AnyValue::Float64(number) => number.is_finite().then_some(Number::Float(number)),
        value if value.is_primitive_numeric() => value.extract::<i64>().map(Number::Int),
        _ => None,
    }
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
    format!("{:.1} %", ratio * 100.0)
}
