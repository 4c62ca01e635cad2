//! What a dataset says at a glance: the page `summary.html`, and what is told at the end of a batch.

use std::collections::BTreeMap;
use std::path::Path;

use super::check::{Cells, Checked};
use super::dataset::{Dataset, read_dataset};
use super::manifest::replace;
use super::run::BatchReport;
use crate::error::Result;
use crate::frame::DataFrame;
use crate::report::{Block, Column, Document, Note, Row, Section, Table, Value, html};
use crate::stats::{deviation, median};
use crate::units::Ns;

const SUMMARY: &str = "summary.html";

/// Rows of runs and failures that are shown.
const SHOWN: usize = 500;

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
    times: [Option<i64>; 4],
    verdict: Option<String>,
    limited_by: Option<String>,
}

/// Writes the page, when something of it `changed` or it is not there.
pub(super) fn write(out: &Path, dataset: &Dataset, changed: bool) -> Result<()> {
    let path = out.join(SUMMARY);
    if !changed && path.is_file() {
        return Ok(());
    }
    let frames = read_dataset(out, &["runs", "health"])?;
    let document = document(dataset, &frames["runs"], &frames["health"]);
    replace(&path, &html::render(&document))
}

fn document(dataset: &Dataset, runs: &DataFrame, health: &DataFrame) -> Document {
    let lines = lines(runs);
    let report = dataset.report();
    let mut sections = vec![Section {
        title: Some("Runs".to_owned()),
        blocks: runs_blocks(&lines),
    }];
    let strategies = strategies(&lines);
    if !strategies.is_empty() {
        sections.push(Section {
            title: Some("Trends".to_owned()),
            blocks: vec![Block::Table(trends(&strategies))],
        });
        sections.push(Section {
            title: Some("Outliers".to_owned()),
            blocks: vec![outliers(&strategies)],
        });
    }
    sections.push(Section {
        title: Some("Health".to_owned()),
        blocks: vec![findings(health)],
    });
    sections.push(Section {
        title: Some("Failed inputs".to_owned()),
        blocks: failures(dataset),
    });
    Document {
        title: "Batch of traces".to_owned(),
        lead: format!(
            "{} runs, {} inputs read, {} failed",
            report.runs, report.done, report.failed
        ),
        sections,
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
    lines.sort_by(|a, b| (&a.date, &a.run).cmp(&(&b.date, &b.run)));
    lines
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

fn runs_blocks(lines: &[Line]) -> Vec<Block> {
    let rows = lines.iter().take(SHOWN).map(|line| {
        let [recompute, exposed, idle, busy] = line.times;
        Row::new(vec![
            Value::text(line.run.clone()),
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
    if lines.len() > SHOWN {
        let more = format!(
            "… and {} more runs: see the table runs.",
            lines.len() - SHOWN
        );
        blocks.push(Block::Paragraph(more));
    }
    blocks
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

fn outliers(strategies: &BTreeMap<&str, Vec<(&Line, f64)>>) -> Block {
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
                    Value::text(line.run.clone()),
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
        caption: format!("Runs farther than {FAR} deviations from the median of their strategy"),
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
            blocks: vec![Block::Notes(notes)],
        }],
    }
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
    let notes = checked
        .unchecked
        .iter()
        .map(|(run, reason)| Note::new("not checked", format!("{run}: {reason}")));
    let notes: Vec<Note> = notes.collect();
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    let regressed = checked.runs.iter().filter(|run| run.has_regressed());
    Document {
        title: "Check".to_owned(),
        lead: format!(
            "{} of {} runs take more time than {}",
            regressed.count(),
            checked.runs.len(),
            checked.baseline
        ),
        sections: vec![Section {
            title: None,
            blocks,
        }],
    }
}
