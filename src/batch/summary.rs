//! What a dataset says at a glance: the page `summary.html`, and what is told at the end of a batch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::check::{Baseline, Cells, CheckOptions, Checked, RunCheck, check};
use super::dataset::{Dataset, Output};
use super::journal::{self, Journal};
use super::manifest::replace;
use super::page;
use super::run::BatchReport;
use super::table::read_dataset;
use crate::attribute::Bucket;
use crate::error::Result;
use crate::frame::DataFrame;
use crate::report::{
    Bar, Bars, Block, Chart, Column, Document, Note, Paint, Part, Picture, Row, Section, Table,
    Value, html,
};
use crate::stats::{deviation, median};
use crate::units::Ns;

const SUMMARY: &str = "summary.html";

/// Rows of runs and failures that are shown.
const SHOWN: usize = 2_000;

/// Runs that are named at the end of a batch.
const NAMED: usize = 20;

/// Strategies whose trend is drawn, and runs in each picture.
const DRAWN: usize = 8;
const COLUMNS: usize = 60;

/// So many runs before the last one of a strategy it is checked against.
const BEFORE: usize = 3;

/// So many scaled deviations from the median of its strategy make a run an outlier.
const FAR: f64 = 3.5;

/// A run as it is shown.
struct Line {
    run: String,
    date: Option<String>,
    strategy: Option<String>,
    ranks: Option<i64>,
    steps: Option<i64>,
    step: Option<i64>,
    window: Option<i64>,
    start: Option<i64>,
    times: [Option<i64>; 4],
    /// By paint: time of all ranks.
    parts: Vec<(Paint, i64)>,
    verdict: Option<String>,
    limited_by: Option<String>,
}

/// Writes the page, when it is not of what `dataset` is now.
pub(super) fn write(output: Output<'_>, dataset: &Dataset, journal: &mut Journal) -> Result<()> {
    let out = output.folder;
    let path = out.join(SUMMARY);
    let fingerprint = format!("{} {}", dataset.fingerprint(), output.reports);
    if journal.state.page == fingerprint && path.is_file() {
        return Ok(());
    }
    let frames = read_dataset(out, &["runs", "health"])?;
    let options = CheckOptions {
        baseline: Baseline::Median(BEFORE),
        runs: Vec::new(),
        latest: true,
        alpha: 0.01,
        min_effect: 0.03,
    };
    let checked = check(out, &options)?;
    let document = Summary {
        dataset,
        lines: lines(&frames["runs"]),
        checked: &checked,
        reports: output.reports,
    }
    .document(&frames["health"]);
    replace(&path, &html::render(&document))?;
    journal.note(journal::Line::Page { fingerprint })
}

/// What the page is made of.
struct Summary<'a> {
    dataset: &'a Dataset,
    lines: Vec<Line>,
    checked: &'a Checked,
    reports: bool,
}

impl Summary<'_> {
    fn document(&self, health: &DataFrame) -> Document {
        let report = self.dataset.report();
        let mut sections = vec![section("Runs", self.runs())];
        let strategies = strategies(&self.lines);
        if !strategies.is_empty() {
            let mut trends_blocks = pictures(&strategies);
            trends_blocks.push(Block::Table(trends(&strategies)));
            sections.push(section("Trends", trends_blocks));
            sections.push(section("Outliers", vec![self.outliers(&strategies)]));
        }
        sections.push(section("Regressions", self.regressions()));
        sections.push(section("Health", vec![findings(health)]));
        sections.push(section("Failed inputs", failures(self.dataset)));
        Document {
            title: "Batch of traces".to_owned(),
            lead: format!(
                "{} runs, {} inputs read, {} failed",
                report.runs, report.done, report.failed
            ),
            sections,
        }
    }

    /// The name of a run, which leads to its page where there is one.
    fn name(&self, run: &str) -> Value {
        if self.reports {
            Value::Link {
                text: run.to_owned(),
                to: page::link(run),
            }
        } else {
            Value::text(run)
        }
    }

    /// The last run of each strategy against those before it.
    fn regressions(&self) -> Vec<Block> {
        let moved = self.checked.runs.iter().flat_map(|run| {
            let more = run.times.iter().filter(|time| time.verdict == "more");
            more.map(move |time| {
                Row::new(vec![
                    self.name(&run.run),
                    text(run.strategy.as_ref()),
                    Value::text(time.time.trim_end_matches("_ns").replace('_', " ")),
                    Value::Number(time.base_ns / 1e6),
                    Value::Number(time.now_ns / 1e6),
                    time.change
                        .map_or(Value::NotApplicable, Value::PercentChange),
                ])
            })
        });
        let rows: Vec<Row> = moved.take(SHOWN).collect();
        let how = format!(
            "The last run of each strategy with {} runs or more, each against the median of the {BEFORE} before it: {} checked. tracekit batch check checks any run against any other.",
            BEFORE + 1,
            self.checked.runs.len()
        );
        let mut blocks = vec![Block::Paragraph(how)];
        if rows.is_empty() {
            blocks.push(Block::Paragraph(
                "None of them takes more time than noise explains.".to_owned(),
            ));
        } else {
            blocks.push(Block::Table(Table {
                caption: "Times a step that grew beyond noise".to_owned(),
                keys: 1,
                columns: vec![
                    Column::text("run"),
                    Column::text("strategy"),
                    Column::text("time"),
                    Column::ms("was"),
                    Column::ms("is"),
                    Column::percent("change"),
                ],
                rows,
            }));
        }
        blocks
    }

    fn runs(&self) -> Vec<Block> {
        let lines = &self.lines;
        let more = lines.len().saturating_sub(SHOWN);
        // The last ones: an archive grows there.
        let rows = lines[more..].iter().map(|line| {
            let [recompute, exposed, idle, busy] = line.times;
            Row::new(vec![
                self.name(&line.run),
                text(line.date.as_ref()),
                count(line.ranks),
                count(line.steps),
                Value::ns_or_missing(line.step.map(Ns)),
                share(busy, line.window),
                share(idle, line.window),
                share(exposed, line.window),
                share(recompute, line.window),
                text(line.limited_by.as_ref()),
                text(line.verdict.as_ref()),
            ])
        });
        let table = Table {
            caption: "Runs; shares are of the windows of all devices".to_owned(),
            keys: 1,
            columns: vec![
                Column::text("run"),
                Column::text("date"),
                Column::number("ranks"),
                Column::number("steps"),
                Column::ms("median step"),
                Column::percent("busy"),
                Column::percent("idle"),
                Column::percent("exposed communication"),
                Column::percent("recompute"),
                Column::text("limited by"),
                Column::text("verdict"),
            ],
            rows: rows.collect(),
        };
        let mut blocks = vec![Block::Table(table)];
        if more > 0 {
            let more = format!("… and {more} runs before these: see the table runs.");
            blocks.push(Block::Paragraph(more));
        }
        blocks
    }

    fn outliers(&self, strategies: &BTreeMap<&str, Vec<(&Line, f64)>>) -> Block {
        let mut rows = Vec::new();
        for (strategy, runs) in strategies {
            let steps: Vec<f64> = runs.iter().map(|(_, step)| *step).collect();
            let (Some(middle), Some(spread)) = (median(&steps), deviation(&steps)) else {
                continue;
            };
            // Of three or fewer, none is the odd one.
            if runs.len() < 4 || middle <= 0.0 {
                continue;
            }
            for (line, step) in runs {
                // Runs that are all the same have no spread, and one percent is no outlier.
                if (step - middle).abs() > (FAR * spread).max(middle / 100.0) {
                    rows.push(Row::new(vec![
                        self.name(&line.run),
                        Value::text(*strategy),
                        text(line.date.as_ref()),
                        Value::ns_or_missing(line.step.map(Ns)),
                        Value::PercentChange(step / middle - 1.0),
                    ]));
                }
            }
        }
        if rows.is_empty() {
            return Block::Paragraph("No run is far from others of its strategy.".to_owned());
        }
        Block::Table(Table {
            caption: format!(
                "Runs farther than {FAR} deviations from the median of their strategy"
            ),
            keys: 1,
            columns: vec![
                Column::text("run"),
                Column::text("strategy"),
                Column::text("date"),
                Column::ms("median step"),
                Column::percent("from the median"),
            ],
            rows,
        })
    }
}

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section {
        title: Some(title.to_owned()),
        blocks,
    }
}

fn lines(runs: &DataFrame) -> Vec<Line> {
    let cells = Cells(runs);
    let done = |row: &usize| cells.text("status", *row).as_deref() == Some("done");
    let mut lines: Vec<Line> = (0..runs.height())
        .filter(done)
        .map(|row| Line {
            run: cells.text("run", row).unwrap_or_default(),
            date: cells.text("date", row),
            strategy: cells.text("strategy", row),
            ranks: cells.int("ranks", row),
            steps: cells.int("steps", row),
            step: cells.int("step_median_ns", row),
            window: cells.int("window_ns", row),
            start: cells.int("start_ns", row),
            parts: parts(&cells, row),
            times: [
                "recompute_ns",
                "exposed_communication_ns",
                "idle_ns",
                "busy_ns",
            ]
            .map(|name| cells.int(name, row)),
            verdict: cells.text("verdict", row),
            limited_by: cells.text("limited_by", row),
        })
        .collect();
    lines.sort_by(|a, b| {
        let order = |line: &Line| (line.start.is_none(), line.start, line.date.clone());
        order(a).cmp(&order(b)).then_with(|| a.run.cmp(&b.run))
    });
    lines
}

/// Time by phase: device work and idle time, or what the host did itself.
fn parts(cells: &Cells<'_>, row: usize) -> Vec<(Paint, i64)> {
    let of = |prefix: &str| -> Vec<(Paint, i64)> {
        let buckets = Bucket::ALL.iter().filter_map(|bucket| {
            let time = cells.int(&format!("{prefix}{}_ns", bucket.as_str()), row)?;
            Some((Paint::Bucket(*bucket), time))
        });
        buckets.collect()
    };
    let mut parts = of("");
    if parts.is_empty() {
        return of("host_");
    }
    parts.extend(cells.int("idle_ns", row).map(|time| (Paint::Idle, time)));
    parts
}

fn text(value: Option<&String>) -> Value {
    value.map_or(Value::Missing, |text| Value::text(text.clone()))
}

fn count(value: Option<i64>) -> Value {
    value.map_or(Value::Missing, |count| {
        Value::Count(u64::try_from(count).unwrap_or(0))
    })
}

fn share(part: Option<i64>, whole: Option<i64>) -> Value {
    match (part, whole) {
        (Some(part), Some(whole)) => Value::share(Ns(part), Ns(whole)),
        _ => Value::Missing,
    }
}

/// Runs with steps, by strategy, in order of time.
fn strategies(lines: &[Line]) -> BTreeMap<&str, Vec<(&Line, f64)>> {
    let mut strategies: BTreeMap<&str, Vec<(&Line, f64)>> = BTreeMap::new();
    for line in lines {
        if let (Some(strategy), Some(step)) = (&line.strategy, line.step) {
            let runs = strategies.entry(strategy).or_default();
            runs.push((line, step as f64));
        }
    }
    strategies.retain(|_, runs| runs.len() > 1);
    strategies
}

fn trends(strategies: &BTreeMap<&str, Vec<(&Line, f64)>>) -> Table {
    let rows = strategies.iter().map(|(strategy, runs)| {
        let steps: Vec<f64> = runs.iter().map(|(_, step)| *step).collect();
        let line = |run: Option<&(&Line, f64)>| {
            run.map_or(Value::Missing, |(line, _)| {
                Value::ns_or_missing(line.step.map(Ns))
            })
        };
        let change = match (steps.first(), steps.last()) {
            (Some(first), Some(last)) if *first > 0.0 => Value::PercentChange(last / first - 1.0),
            _ => Value::NotApplicable,
        };
        let spread = match (deviation(&steps), median(&steps)) {
            (Some(spread), Some(middle)) if middle > 0.0 => Value::Percent(spread / middle),
            _ => Value::NotApplicable,
        };
        Row::new(vec![
            Value::text(*strategy),
            Value::Count(runs.len() as u64),
            line(runs.first()),
            line(runs.last()),
            change,
            spread,
        ])
    });
    Table {
        caption: "Median steps by strategy, from the first run to the last".to_owned(),
        keys: 1,
        columns: vec![
            Column::text("strategy"),
            Column::number("runs"),
            Column::ms("first"),
            Column::ms("last"),
            Column::percent("change"),
            Column::percent("spread between runs"),
        ],
        rows: rows.collect(),
    }
}

/// Pictures of the time a step takes by phase, run by run, of the strategies with the most runs.
fn pictures(strategies: &BTreeMap<&str, Vec<(&Line, f64)>>) -> Vec<Block> {
    let mut most: Vec<_> = strategies.iter().collect();
    most.sort_by_key(|(name, runs)| (std::cmp::Reverse(runs.len()), **name));
    let mut blocks = Vec::new();
    for (number, (strategy, runs)) in most.into_iter().take(DRAWN).enumerate() {
        let last = &runs[runs.len().saturating_sub(COLUMNS)..];
        let bars: Vec<Bar> = last.iter().filter_map(|(line, _)| bar(line)).collect();
        if bars.len() < 2 {
            continue;
        }
        blocks.push(Block::Chart(Chart {
            name: format!("trend-{number}"),
            caption: format!("{strategy}: time a step by phase, mean of ranks, run by run"),
            about: format!(
                "{} bars, one a run, from the first to the last; the tables have the numbers.",
                bars.len()
            ),
            picture: Picture::Bars(Bars {
                of: "run",
                unit: "ms",
                bars,
            }),
        }));
    }
    blocks
}

/// A run as a bar: what one step takes, of devices or else of the host.
fn bar(line: &Line) -> Option<Bar> {
    let steps = line.steps.filter(|steps| *steps > 0)?;
    let total: i64 = line.parts.iter().map(|(_, time)| time / steps).sum();
    let parts = line.parts.iter().filter(|(_, time)| time / steps > 0);
    let parts: Vec<Part> = parts
        .map(|(paint, time)| Part {
            paint: *paint,
            value: Value::Ns(Ns(time / steps)),
            share: Value::share(Ns(time / steps), Ns(total)),
        })
        .collect();
    (!parts.is_empty()).then(|| Bar {
        label: line.run.clone(),
        parts,
        total: Value::Ns(Ns(total)),
    })
}

fn findings(health: &DataFrame) -> Block {
    let cells = Cells(health);
    let mut codes: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for row in 0..health.height() {
        let severity = cells.text("severity", row).unwrap_or_default();
        if severity == "info" {
            continue;
        }
        let code = cells.text("code", row).unwrap_or_default();
        let sums = codes.entry((severity, code)).or_default();
        sums.0 += 1;
        let own = cells
            .int("count", row)
            .and_then(|it| u64::try_from(it).ok());
        sums.1 = sums.1.saturating_add(own.unwrap_or(0));
    }
    if codes.is_empty() {
        return Block::Paragraph("Nothing unusual.".to_owned());
    }
    let rows = codes
        .into_iter()
        .map(|((severity, code), (inputs, count))| {
            Row::new(vec![
                Value::text(code),
                Value::text(severity),
                Value::Count(inputs),
                Value::Count(count),
            ])
        });
    Block::Table(Table {
        caption: "Findings; tracekit doctor --explain CODE tells more".to_owned(),
        keys: 1,
        columns: vec![
            Column::text("finding"),
            Column::text("severity"),
            Column::number("inputs"),
            Column::number("count"),
        ],
        rows: rows.collect(),
    })
}

fn failures(dataset: &Dataset) -> Vec<Block> {
    let failed = || {
        let members = dataset.members();
        members.filter_map(|(run, member)| Some((run, member, member.failure.as_ref()?)))
    };
    let total = failed().count();
    if total == 0 {
        return vec![Block::Paragraph("None.".to_owned())];
    }
    let rows = failed().take(SHOWN).map(|(run, member, failure)| {
        Row::new(vec![
            Value::text(member.input.id.clone()),
            Value::text(run),
            Value::text(failure.error.clone()),
        ])
    });
    let table = Table {
        caption: "Inputs that could not be read".to_owned(),
        keys: 1,
        columns: vec![
            Column::text("input"),
            Column::text("run"),
            Column::text("reason"),
        ],
        rows: rows.collect(),
    };
    let mut blocks = vec![Block::Table(table)];
    if total > SHOWN {
        let more = format!("… and {} more: see the table runs.", total - SHOWN);
        blocks.push(Block::Paragraph(more));
    }
    blocks
}

/// What is told at the end of a batch that wrote to `out`.
pub fn report_document(report: &BatchReport, out: &Path) -> Document {
    let listed = |counts: &BTreeMap<String, u64>| {
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{count} by {name}"))
            .collect();
        parts.join(", ")
    };
    let mut notes = vec![Note::new(
        "inputs",
        format!(
            "{} analysed now ({:.1} MB), {} known already, {} no traces",
            report.analysed,
            report.analysed_bytes as f64 / 1e6,
            report.reused,
            report.skipped
        ),
    )];
    if report.done > 0 {
        notes.push(Note::new("runs from", listed(&report.recognised_by)));
        notes.push(Note::new("ranks from", listed(&report.ranks_by)));
    }
    notes.push(Note::new(
        "dataset",
        format!("{}, {} runs written now", out.display(), report.written),
    ));
    let named = &report.recognised;
    let rows = named.iter().take(NAMED).map(|run| {
        Row::new(vec![
            Value::text(run.run.clone()),
            text(run.strategy.as_ref()),
            run.repeat.map_or(Value::Missing, Value::Id),
            text(run.date.as_ref()),
            Value::text(spans(&run.ranks)),
            Value::Count(run.inputs),
        ])
    });
    let mut blocks = vec![Block::Notes(notes)];
    if !named.is_empty() {
        blocks.push(Block::Table(Table {
            caption: "What names and contents tell about runs".to_owned(),
            keys: 1,
            columns: vec![
                Column::text("run"),
                Column::text("strategy"),
                Column::number("repeat"),
                Column::text("date"),
                Column::text("ranks"),
                Column::number("inputs"),
            ],
            rows: rows.collect(),
        }));
    }
    if named.len() > NAMED {
        blocks.push(Block::Paragraph(format!(
            "… and {} more: SELECT run, strategy, repeat, rank, recognised_by, rank_by FROM ranks",
            named.len() - NAMED
        )));
    }
    let state = if report.interrupted {
        "; interrupted, the rest is not done"
    } else {
        ""
    };
    Document {
        title: "Batch".to_owned(),
        lead: format!(
            "{} runs, {} inputs read, {} failed{state}",
            report.runs, report.done, report.failed
        ),
        sections: vec![Section {
            title: None,
            blocks,
        }],
    }
}

/// Numbers in order, those that follow one another as `0-7`.
fn spans(numbers: &[i64]) -> String {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => spans.push((*number, *number)),
        }
    }
    let told = spans.iter().map(|(first, last)| match (first, last) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// A check as a report; every time when `verbose`, else those that moved.
pub fn checked_document(checked: &Checked, verbose: bool) -> Document {
    let mut rows = Vec::new();
    for run in &checked.runs {
        let moved = run
            .times
            .iter()
            .filter(|time| verbose || matches!(time.verdict, "more" | "less"));
        rows.extend(moved.map(|time| {
            Row::new(vec![
                Value::text(run.run.clone()),
                Value::text(time.time.trim_end_matches("_ns")),
                Value::Number(time.base_ns / 1e6),
                Value::Number(time.now_ns / 1e6),
                time.change
                    .map_or(Value::NotApplicable, Value::PercentChange),
                time.p.map_or(Value::Missing, Value::Number),
                Value::text(time.verdict),
            ])
        }));
    }
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Table(Table {
            caption: format!("Times a step, against {}", checked.baseline),
            keys: 2,
            columns: vec![
                Column::text("run"),
                Column::text("time"),
                Column::ms("was"),
                Column::ms("is"),
                Column::percent("change"),
                Column::number("p"),
                Column::text("verdict"),
            ],
            rows,
        }));
    }
    let undecided = |run: &'_ RunCheck| Some((run.run.clone(), run.undecided()?));
    let undecided: Vec<(String, &str)> = checked.runs.iter().filter_map(undecided).collect();
    let unchecked = checked.unchecked.iter();
    let notes = unchecked
        .map(|(run, reason)| Note::new("not checked", format!("{run}: {reason}")))
        .chain(
            undecided
                .iter()
                .map(|(run, reason)| Note::new("inconclusive", format!("{run}: {reason}"))),
        );
    let notes: Vec<Note> = notes.collect();
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    let regressed = checked.runs.iter().filter(|run| run.has_regressed());
    let mut lead = format!(
        "{} of {} runs take more time than {}",
        regressed.count(),
        checked.runs.len(),
        checked.baseline
    );
    if !undecided.is_empty() {
        let _ = write!(lead, "; {} inconclusive", undecided.len());
    }
    Document {
        title: "Check".to_owned(),
        lead,
        sections: vec![Section {
            title: None,
            blocks,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_in_a_row_are_told_by_their_ends() {
        assert_eq!(spans(&[0, 1, 2, 3, 5, 7, 8]), "0-3, 5, 7-8");
        assert_eq!(spans(&[]), "");
        assert_eq!(spans(&[i64::MAX]), i64::MAX.to_string());
    }
}
