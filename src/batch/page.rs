//! The page of one run, made of the rows of its inputs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::dataset::Member;
use super::manifest::replace;
use super::record::{Facts, Rows};
use super::schema::DATASET_TABLES;
use super::table::encoded;
use crate::attribute::Bucket;
use crate::error::{Error, Result};
use crate::report::{
    Bar, Bars, Block, Chart, Column, Document, Note, Paint, Part, Picture, Row, Section, Table,
    Value, html,
};
use crate::stats::median;
use crate::units::Ns;

/// Folder of the pages, in that of the dataset.
const FOLDER: &str = "reports";

/// Rows that a table shows.
const SHOWN: usize = 500;

/// Names of operators that are told apart; what comes then is put together.
const OPERATORS: usize = 20_000;

/// Operators that are shown.
const TOP: usize = 60;

/// Where the page of the run called `run` is.
pub(super) fn place(out: &Path, run: &str) -> PathBuf {
    out.join(link(run))
}

/// The same, from the page of the dataset.
pub(super) fn link(run: &str) -> String {
    format!("{FOLDER}/{}.html", encoded(run))
}

/// True when a dataset has pages for its runs.
pub(super) fn are_there(out: &Path) -> bool {
    out.join(FOLDER).is_dir()
}

/// Removes the pages of runs that are not in `wanted`.
pub(super) fn remove_others(out: &Path, wanted: &[(&str, Option<&str>)]) -> Result<()> {
    let wanted: Vec<PathBuf> = wanted.iter().map(|(run, _)| place(out, run)).collect();
    let entries = fs::read_dir(out.join(FOLDER))
        .into_iter()
        .flatten()
        .flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_page = path.extension().is_some_and(|end| end == "html");
        if is_page && !wanted.contains(&path) {
            fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
        }
    }
    Ok(())
}

/// The page of one run, while its inputs come in.
pub(super) struct RunPage<'a> {
    run: &'a str,
    date: Option<&'a str>,
    /// By rank: time by bucket, and idle time.
    ranks: BTreeMap<Option<i64>, Stack>,
    /// By name: lengths on the host, then windows of devices.
    steps: Vec<(String, Lengths)>,
    /// By operator and phase: calls, host self time, time of the device work that it launched.
    operators: BTreeMap<(String, String), [i64; 3]>,
    inferences: BTreeMap<String, Inference>,
    /// By severity and code: inputs, and how often.
    health: BTreeMap<(String, String), [u64; 2]>,
    inputs: Vec<Row>,
}

#[derive(Default)]
struct Stack {
    device: BTreeMap<&'static str, i64>,
    host: BTreeMap<&'static str, i64>,
}

#[derive(Default)]
struct Lengths {
    wall: Vec<f64>,
    window: Vec<f64>,
}

#[derive(Default)]
struct Inference {
    supported: u64,
    tested: u64,
    effect: i64,
    summary: String,
    next: String,
}

/// A row of a record by names of columns.
struct Cells<'a> {
    table: &'static str,
    row: &'a [Json],
}

impl<'a> Cells<'a> {
    fn all(table: &'static str, tables: &'a BTreeMap<String, Rows>) -> impl Iterator<Item = Self> {
        let rows = tables.get(table).into_iter().flatten();
        rows.map(move |row| Self { table, row })
    }

    fn get(&self, column: &str) -> &Json {
        let table = DATASET_TABLES.iter().find(|it| it.name == self.table);
        let columns = table.map_or(&[][..], |table| table.columns);
        // Records do not have the first two, which say which input they are about.
        let place = columns.iter().position(|(name, _)| *name == column);
        let place = place.and_then(|place| place.checked_sub(2));
        place
            .and_then(|place| self.row.get(place))
            .unwrap_or(&Json::Null)
    }

    fn int(&self, column: &str) -> Option<i64> {
        self.get(column).as_i64()
    }

    fn text(&self, column: &str) -> String {
        self.get(column).as_str().unwrap_or_default().to_owned()
    }
}

impl<'a> RunPage<'a> {
    pub(super) fn new(run: &'a str, date: Option<&'a str>) -> Self {
        Self {
            run,
            date,
            ranks: BTreeMap::new(),
            steps: Vec::new(),
            operators: BTreeMap::new(),
            inferences: BTreeMap::new(),
            health: BTreeMap::new(),
            inputs: Vec::new(),
        }
    }

    /// Takes what an input that was read says.
    pub(super) fn add(&mut self, member: &Member, facts: &Facts, tables: &BTreeMap<String, Rows>) {
        let stack = self.ranks.entry(member.recognised.rank).or_default();
        for row in Cells::all("phases", tables) {
            let name = row.text("bucket");
            let known = Bucket::ALL.iter().map(|bucket| bucket.as_str());
            let Some(name) = known.chain(["idle"]).find(|known| *known == name) else {
                continue;
            };
            for (map, time) in [
                (&mut stack.device, row.int("timeline_ns")),
                (&mut stack.host, row.int("host_self_ns")),
            ] {
                let Some(time) = time else { continue };
                let sum = map.entry(name).or_default();
                *sum = sum.saturating_add(time);
            }
        }
        self.add_steps(tables);
        for row in Cells::all("operators", tables) {
            let mut key = (row.text("operator"), row.text("phase"));
            if self.operators.len() >= OPERATORS && !self.operators.contains_key(&key) {
                "(others)".clone_into(&mut key.0);
            }
            let sums = self.operators.entry(key).or_default();
            let columns = ["calls", "host_self_ns", "device_direct_ns"];
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = sum.saturating_add(row.int(column).unwrap_or(0));
            }
        }
        for row in Cells::all("inferences", tables) {
            let seen = self.inferences.entry(row.text("code")).or_default();
            seen.tested += 1;
            if row.text("verdict") != "supported" {
                continue;
            }
            seen.supported += 1;
            let effect = row.int("effect_ns").unwrap_or(0);
            seen.effect = seen.effect.saturating_add(effect);
            if seen.summary.is_empty() {
                seen.summary = row.text("summary");
                seen.next = row.text("next_action");
            }
        }
        for row in Cells::all("health", tables) {
            let key = (row.text("severity"), row.text("code"));
            let [inputs, count] = self.health.entry(key).or_default();
            *inputs += 1;
            let own = row.int("count").and_then(|own| u64::try_from(own).ok());
            *count = count.saturating_add(own.unwrap_or(0));
        }
        if self.inputs.len() < SHOWN {
            self.inputs.push(input_row(member, facts));
        }
    }

    fn add_steps(&mut self, tables: &BTreeMap<String, Rows>) {
        for row in Cells::all("steps", tables) {
            if row.get("partial").as_bool() == Some(true) {
                continue;
            }
            let name = row.text("step");
            // Every rank has the same ones, so that the last one is near.
            let found = self.steps.iter().rposition(|(known, _)| *known == name);
            let place = found.unwrap_or_else(|| {
                self.steps.push((name, Lengths::default()));
                self.steps.len() - 1
            });
            let lengths = &mut self.steps[place].1;
            lengths
                .wall
                .extend(row.int("wall_ns").map(|time| time as f64));
            lengths
                .window
                .extend(row.int("window_ns").map(|time| time as f64));
            if self.steps.len() > 10 * SHOWN {
                return;
            }
        }
    }

    /// Writes the page, with the rows of `runs` that are about the run.
    pub(super) fn write(self, out: &Path, of_run: &Rows) -> Result<()> {
        let folder = out.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
        replace(&place(out, self.run), &html::render(&self.document(of_run)))
    }

    fn document(self, of_run: &Rows) -> Document {
        let columns = DATASET_TABLES[0].columns;
        let cell = |row: &[Json], name: &str| {
            let place = columns.iter().position(|(column, _)| *column == name);
            place
                .and_then(|place| row.get(place).cloned())
                .unwrap_or(Json::Null)
        };
        let is_done = |row: &&Vec<Json>| cell(row, "status") == "done";
        let whole = of_run.iter().find(is_done);
        let text = |name: &str| {
            let value = whole.map_or(Json::Null, |row| cell(row, name));
            match value {
                Json::Null => "unknown".to_owned(),
                Json::String(text) => text.replace('_', " "),
                other => other.to_string(),
            }
        };
        let failed = of_run.iter().filter(|row| !is_done(row)).map(|row| {
            let of = |name| Value::text(cell(row, name).as_str().unwrap_or_default());
            Row::new(vec![of("input"), of("error")])
        });
        let failed: Vec<Row> = failed.collect();
        let name = |label, name: &str| Note::new(label, text(name));
        let day = self.date.unwrap_or("unknown").to_owned();
        let mut sections = vec![section(
            "Verdict",
            vec![Block::Notes(vec![
                name("verdict", "verdict"),
                name("limited by", "limited_by"),
                name("strategy", "strategy"),
                name("repeat", "repeat"),
                Note::new("date", day),
                name("named by", "recognised_by"),
            ])],
        )];
        let lead = format!(
            "{} inputs of {} ranks, {} steps, {} inputs failed",
            text("inputs"),
            text("ranks"),
            text("steps"),
            failed.len()
        );
        sections.extend(limits(&self.inferences));
        sections.extend(phases(&self.ranks));
        sections.extend(steps(&self.steps));
        sections.extend(operators(self.operators));
        sections.push(findings(&self.health));
        sections.push(section("Inputs", vec![inputs(self.inputs)]));
        if !failed.is_empty() {
            let columns = vec![Column::text("input"), Column::sentences("reason")];
            let table = table("Inputs that could not be read", columns, failed);
            sections.push(section("Failed inputs", vec![table]));
        }
        Document {
            title: self.run.to_owned(),
            lead,
            sections,
        }
    }
}

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section {
        title: Some(title.to_owned()),
        blocks,
    }
}

fn table(caption: &str, columns: Vec<Column>, mut rows: Vec<Row>) -> Block {
    rows.truncate(SHOWN);
    Block::Table(Table {
        caption: caption.to_owned(),
        keys: 1,
        columns,
        rows,
    })
}

fn number(value: Option<i64>) -> Value {
    value.map_or(Value::Missing, Value::Id)
}

fn count(value: i64) -> Value {
    Value::Count(u64::try_from(value).unwrap_or(0))
}

fn input_row(member: &Member, facts: &Facts) -> Row {
    let steps: Vec<f64> = facts.steps.iter().map(|step| *step as f64).collect();
    Row::new(vec![
        Value::text(member.input.id.clone()),
        number(member.recognised.rank),
        Value::Count(facts.events),
        Value::Count(steps.len() as u64),
        middle(&steps),
        Value::text(facts.verdict.replace('_', " ")),
    ])
}

fn inputs(rows: Vec<Row>) -> Block {
    let columns = vec![
        Column::text("input"),
        Column::number("rank"),
        Column::number("events"),
        Column::number("steps"),
        Column::ms("median step"),
        Column::text("verdict"),
    ];
    table(
        "Inputs that were read; tracekit report INPUT shows more of each",
        columns,
        rows,
    )
}

/// The median of times.
fn middle(times: &[f64]) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a median of times is none too long"
    )]
    let time = median(times).map(|time| Ns(time.round() as i64));
    Value::ns_or_missing(time)
}

/// What limits the run.
fn limits(inferences: &BTreeMap<String, Inference>) -> Option<Section> {
    if inferences.is_empty() {
        return None;
    }
    let mut supported: Vec<_> = inferences
        .iter()
        .filter(|(_, it)| it.supported > 0)
        .collect();
    supported.sort_by_key(|(code, it)| (std::cmp::Reverse(it.effect), *code));
    if supported.is_empty() {
        let none = "No hypothesis about what limits it is supported.".to_owned();
        return Some(section("What limits the run", vec![Block::Paragraph(none)]));
    }
    let rows = supported.into_iter().map(|(code, it)| {
        Row::new(vec![
            Value::text(code.clone()),
            Value::text(format!("{} of {}", it.supported, it.tested)),
            Value::Ns(Ns(it.effect)),
            Value::text(it.summary.clone()),
            Value::text(it.next.clone()),
        ])
    });
    let columns = vec![
        Column::text("hypothesis"),
        Column::text("inputs"),
        Column::ms("effect"),
        Column::sentences("first of them"),
        Column::sentences("what to do"),
    ];
    let table = table("Supported hypotheses", columns, rows.collect());
    Some(section("What limits the run", vec![table]))
}

/// Time by phase and rank: of devices, else of the host.
fn phases(ranks: &BTreeMap<Option<i64>, Stack>) -> Option<Section> {
    let on_device = ranks.values().any(|stack| !stack.device.is_empty());
    let (place, what) = if on_device {
        ("devices", "each instant counted once, idle time included")
    } else {
        ("the host", "self time of operators")
    };
    let mut bars = Vec::new();
    let mut rows = Vec::new();
    for (rank, stack) in ranks.iter().take(SHOWN) {
        let times = if on_device {
            &stack.device
        } else {
            &stack.host
        };
        let total: i64 = times
            .values()
            .fold(0, |sum, time| sum.saturating_add(*time));
        if total == 0 {
            continue;
        }
        let of = |name: &str| times.get(name).copied().unwrap_or(0);
        let paints = Bucket::ALL
            .iter()
            .map(|bucket| (Paint::Bucket(*bucket), bucket.as_str()))
            .chain([(Paint::Idle, "idle")]);
        let mut cells = vec![number(*rank)];
        let mut parts = Vec::new();
        for (paint, name) in paints {
            let time = Ns(of(name));
            cells.push(Value::Ns(time));
            if time > Ns::ZERO {
                parts.push(Part {
                    paint,
                    value: Value::Ns(time),
                    share: Value::share(time, Ns(total)),
                });
            }
        }
        cells.push(Value::Ns(Ns(total)));
        rows.push(Row::new(cells));
        bars.push(Bar {
            label: rank.map_or("no rank".to_owned(), |rank| format!("rank {rank}")),
            parts,
            total: Value::Ns(Ns(total)),
        });
    }
    if bars.is_empty() {
        return None;
    }
    let chart = Chart {
        name: "phases".to_owned(),
        caption: format!("Time on {place} by phase and rank ({what})"),
        about: format!(
            "{} bars, one a rank; the table below has the numbers.",
            bars.len()
        ),
        picture: Picture::Bars(Bars {
            of: "rank",
            unit: "ms",
            bars,
        }),
    };
    let mut columns = vec![Column::text("rank")];
    columns.extend(Bucket::ALL.iter().map(|bucket| Column::ms(bucket.as_str())));
    columns.extend([Column::ms("idle"), Column::ms("total")]);
    let caption = format!("Time on {place} by phase");
    let table = table(&caption, columns, rows);
    Some(section("Phases", vec![Block::Chart(chart), table]))
}

fn steps(steps: &[(String, Lengths)]) -> Option<Section> {
    if steps.is_empty() {
        return None;
    }
    let rows = steps.iter().map(|(name, lengths)| {
        let most = lengths.wall.len().max(lengths.window.len());
        Row::new(vec![
            Value::text(name.clone()),
            Value::Count(most as u64),
            middle(&lengths.wall),
            middle(&lengths.window),
        ])
    });
    let columns = vec![
        Column::text("step"),
        Column::number("measured"),
        Column::ms("median on the host"),
        Column::ms("median on devices"),
    ];
    let table = table("Whole steps over all ranks", columns, rows.collect());
    Some(section("Steps", vec![table]))
}

fn operators(operators: BTreeMap<(String, String), [i64; 3]>) -> Option<Section> {
    let mut all: Vec<_> = operators.into_iter().collect();
    all.sort_by(|a, b| {
        let cost = |sums: &[i64; 3]| (sums[2], sums[1]);
        cost(&b.1).cmp(&cost(&a.1)).then_with(|| a.0.cmp(&b.0))
    });
    let rows = all.into_iter().take(TOP).map(|((name, phase), sums)| {
        Row::new(vec![
            Value::text(name),
            Value::text(phase),
            count(sums[0]),
            Value::Ns(Ns(sums[1])),
            Value::Ns(Ns(sums[2])),
        ])
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("operator"),
        Column::text("phase"),
        Column::number("calls"),
        Column::ms("host self"),
        Column::ms("device"),
    ];
    let table = table("Operators that take most, over all ranks", columns, rows);
    Some(section("Operators", vec![table]))
}

fn findings(health: &BTreeMap<(String, String), [u64; 2]>) -> Section {
    let rows = health.iter().map(|((severity, code), [inputs, count])| {
        Row::new(vec![
            Value::text(code.clone()),
            Value::text(severity.clone()),
            Value::Count(*inputs),
            Value::Count(*count),
        ])
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        let nothing = Block::Paragraph("Nothing unusual.".to_owned());
        return section("Health", vec![nothing]);
    }
    let columns = vec![
        Column::text("finding"),
        Column::text("severity"),
        Column::number("inputs"),
        Column::number("count"),
    ];
    let caption = "Findings; tracekit doctor --explain CODE tells more";
    section("Health", vec![table(caption, columns, rows)])
}
