//! The dataset: tables in Parquet, `TABLE/run=NAME/date=DAY/part-0.parquet`.
//!
//! Every file is replaced as a whole, and every table of a run has one file, also when it has no row. The
//! tables of a run are made of the records of its inputs, in an order that follows from their names; the
//! journal notes of which, so that only what changed is written again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use polars::prelude::*;
use polars_io::SerReader as _;
use polars_io::parquet::read::ParquetReader;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::journal::{Input, Journal, Line, Outcome};
use super::manifest::MANIFEST;
use super::pattern::Pattern;
use super::recognise::{Recognised, recognise};
use super::record::{Brief, Facts, Failure, Record};
use super::rows::spread;
use super::run::{BatchReport, INSIDE};
use super::schema::{DATASET_TABLES, DatasetTable, MEASURES};
use crate::attribute::hash;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Dtype, failed, write_parquet};
use crate::ingest::is_trace_name;

/// How a missing value is spelled in the name of a folder.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

const PART: &str = "part-0.parquet";

/// An input with what became of it.
pub(super) struct Member {
    pub(super) input: Input,
    pub(super) recognised: Recognised,
    /// Why it failed, when it did.
    pub(super) failure: Option<Failure>,
}

/// A run: the inputs that belong together.
pub(super) struct Run {
    pub(super) members: Vec<Member>,
    pub(super) date: Option<String>,
    fingerprint: String,
}

/// Everything that is known.
pub(super) struct Dataset {
    pub(super) runs: BTreeMap<String, Run>,
    /// Inputs that are no traces, with the reason.
    pub(super) skipped: Vec<(String, String)>,
    key: String,
}

impl Dataset {
    /// What `journal` says under the options of `key`.
    pub(super) fn of(journal: &Journal, pattern: Option<&Pattern>, key: &str) -> Self {
        let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        let mut skipped = Vec::new();
        for input in journal.state.inputs.values() {
            let outcome = input.sha256.as_ref().map(|sha256| {
                let key = (key.to_owned(), sha256.clone());
                journal.state.contents.get(&key)
            });
            let (brief, failure) = match (outcome, &input.failure) {
                (Some(Some(Outcome::Done { brief, .. })), _) => (brief.clone(), None),
                (Some(Some(Outcome::Failed(failure))), _) | (None, Some(failure)) => {
                    (Brief::default(), Some(failure.clone()))
                }
                // Under these options nothing was done with it yet.
                _ => continue,
            };
            if let Some(failure) = &failure
                && !failure.is_trace
                && !input.named
                && !is_trace_name(Path::new(&input.below))
            {
                skipped.push((input.id.clone(), failure.error.clone()));
                continue;
            }
            let recognised = recognise(input, &brief, pattern);
            groups
                .entry(recognised.run.clone())
                .or_default()
                .push(Member {
                    input: input.clone(),
                    recognised,
                    failure,
                });
        }
        let runs = groups.into_iter().map(|(name, mut members)| {
            members.sort_by(|a, b| {
                let order = |member: &Member| {
                    let rank = member.recognised.rank;
                    (rank.is_none(), rank, member.recognised.start_ns)
                };
                order(a)
                    .cmp(&order(b))
                    .then_with(|| a.input.id.cmp(&b.input.id))
            });
            let dates = members.iter().filter_map(|it| it.recognised.date.clone());
            let date = dates.min();
            let fingerprint = fingerprint(key, &members);
            let run = Run {
                members,
                date,
                fingerprint,
            };
            (name, run)
        });
        Self {
            runs: runs.collect(),
            skipped,
            key: key.to_owned(),
        }
    }

    /// All inputs, run by run.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Member)> {
        let runs = self.runs.iter();
        runs.flat_map(|(name, run)| run.members.iter().map(|member| (name.as_str(), member)))
    }

    /// How much there is of what.
    pub(super) fn report(&self) -> BatchReport {
        let mut report = BatchReport {
            runs: self.runs.len() as u64,
            skipped: self.skipped.len() as u64,
            ..BatchReport::default()
        };
        for (_, member) in self.members() {
            if member.failure.is_some() {
                report.failed += 1;
                continue;
            }
            report.done += 1;
            let count = |map: &mut BTreeMap<String, u64>, name: &str| {
                *map.entry(name.to_owned()).or_default() += 1;
            };
            count(&mut report.recognised_by, member.recognised.by);
            let by = member.recognised.rank_by.unwrap_or("nothing");
            count(&mut report.ranks_by, by);
        }
        report
    }
}

/// Of what the tables of a run are made.
fn fingerprint(key: &str, members: &[Member]) -> String {
    let members: Vec<Value> = members
        .iter()
        .map(|member| {
            let Recognised {
                run,
                strategy,
                repeat,
                rank,
                by,
                rank_by,
                start_ns,
                date,
            } = &member.recognised;
            let failure = member.failure.as_ref();
            json!([
                member.input.id,
                member.input.sha256,
                member.input.size,
                failure.map(|failure| [&failure.kind, &failure.error]),
                [
                    json!(run),
                    json!(strategy),
                    json!(repeat),
                    json!(rank),
                    json!(by),
                    json!(rank_by),
                    json!(start_ns),
                    json!(date)
                ]
            ])
        })
        .collect();
    hash(json!([key, members]).to_string().as_bytes())[..32].to_owned()
}

/// Writes the tables of every run that is not as it was, and removes those of runs that are no more: how
/// many were written.
pub(super) fn write(out: &Path, dataset: &Dataset, journal: &mut Journal) -> Result<u64> {
    let changed: Vec<(&String, &Run)> = dataset
        .runs
        .iter()
        .filter(|(name, run)| {
            let written = journal.state.written.get(*name);
            written != Some(&run.fingerprint) || !place(out, "runs", name, run).is_file()
        })
        .collect();
    for (name, _) in &changed {
        journal.note(Line::Written {
            run: (*name).clone(),
            fingerprint: String::new(),
        })?;
    }
    remove_others(out, dataset)?;
    let journal_then: &Journal = journal;
    let written: Vec<Result<()>> = changed
        .par_iter()
        .map(|(name, run)| write_run(out, name, run, &dataset.key, journal_then))
        .collect();
    for (written, (name, run)) in written.into_iter().zip(&changed) {
        written?;
        journal.note(Line::Written {
            run: (*name).clone(),
            fingerprint: run.fingerprint.clone(),
        })?;
    }
    Ok(changed.len() as u64)
}

fn place(out: &Path, table: &str, name: &str, run: &Run) -> PathBuf {
    let date = run.date.as_deref().unwrap_or(NULL);
    out.join(table)
        .join(format!("run={}", encoded(name)))
        .join(format!("date={date}"))
        .join(PART)
}

/// Removes the files of runs that are no more, or are of another day.
fn remove_others(out: &Path, dataset: &Dataset) -> Result<()> {
    for table in DATASET_TABLES {
        let wanted: BTreeSet<PathBuf> = dataset
            .runs
            .iter()
            .filter_map(|(name, run)| {
                let place = place(out, table.name, name, run);
                place.parent().map(Path::to_owned)
            })
            .collect();
        for folder in folders(&out.join(table.name)) {
            let mut left = false;
            for day in folders(&folder) {
                if wanted.contains(&day) {
                    left = true;
                } else {
                    fs::remove_dir_all(&day).map_err(|error| Error::io(&day, error))?;
                }
            }
            if !left {
                fs::remove_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
            }
        }
    }
    Ok(())
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    paths.sort();
    paths
}

fn write_run(out: &Path, name: &str, run: &Run, key: &str, journal: &Journal) -> Result<()> {
    let mut rows: BTreeMap<&str, Vec<Vec<Value>>> = BTreeMap::new();
    let mut all: Vec<(&Member, Facts)> = Vec::new();
    let mut lost: Vec<(&Member, Failure)> = Vec::new();
    for member in &run.members {
        if let Some(failure) = &member.failure {
            lost.push((member, failure.clone()));
            continue;
        }
        let sha256 = member.input.sha256.as_deref().unwrap_or_default();
        let Some(record) = journal.record(key, sha256) else {
            let error = "its record is damaged: run the batch again with --rehash --retry-failed";
            let failure = Failure {
                kind: "record".to_owned(),
                error: error.to_owned(),
                is_trace: true,
                may_pass: true,
            };
            lost.push((member, failure));
            continue;
        };
        let Record { facts, tables } = record;
        for (table, own) in tables {
            let Some(table) = DATASET_TABLES.iter().find(|known| known.name == table) else {
                continue;
            };
            let rows = rows.entry(table.name).or_default();
            rows.extend(own.into_iter().map(|row| {
                let mut full = vec![json!(member.input.id), json!(member.recognised.rank)];
                full.extend(row);
                full
            }));
        }
        rows.entry("ranks")
            .or_default()
            .push(rank_row(member, &facts));
        all.push((member, facts));
    }
    let mut of_run: Vec<Vec<Value>> = Vec::new();
    if !all.is_empty() {
        of_run.push(run_row(&all, lost.len()));
    }
    of_run.extend(
        lost.iter()
            .map(|(member, failure)| failed_row(member, failure)),
    );
    rows.insert("runs", of_run);
    for table in DATASET_TABLES {
        let own = rows.remove(table.name).unwrap_or_default();
        let mut frame = data_frame(table, &own)?;
        write_file(&place(out, table.name, name, run), &mut frame)?;
    }
    Ok(())
}

fn rank_row(member: &Member, facts: &Facts) -> Vec<Value> {
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

fn run_row(all: &[(&Member, Facts)], lost: usize) -> Vec<Value> {
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
    row.extend([
        json!(imbalance(all)),
        json!(worst.max().map(|worst| verdicts[worst])),
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

fn failed_row(member: &Member, failure: &Failure) -> Vec<Value> {
    let recognised = &member.recognised;
    let columns = DATASET_TABLES[0].columns;
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
    columns.iter().map(|(name, _)| value(name)).collect()
}

/// `rows` as a data frame with the columns of `table`.
fn data_frame(table: &DatasetTable, rows: &[Vec<Value>]) -> Result<DataFrame> {
    let columns = table
        .columns
        .iter()
        .enumerate()
        .map(|(place, (name, dtype))| {
            let name = PlSmallStr::from_static(name);
            let values = rows
                .iter()
                .map(|row| row.get(place).unwrap_or(&Value::Null));
            match dtype {
                Dtype::Text => {
                    StringChunked::from_iter_options(name, values.map(Value::as_str)).into_column()
                }
                Dtype::Int => {
                    Int64Chunked::from_iter_options(name, values.map(Value::as_i64)).into_column()
                }
                Dtype::Float => {
                    Float64Chunked::from_iter_options(name, values.map(Value::as_f64)).into_column()
                }
                Dtype::Bool => BooleanChunked::from_iter_options(name, values.map(Value::as_bool))
                    .into_column(),
            }
        });
    DataFrame::new(rows.len(), columns.collect()).map_err(|error| failed(&error))
}

/// Puts `frame` in the place of `path` in one step.
fn write_file(path: &Path, frame: &mut DataFrame) -> Result<()> {
    let failed = |error| Error::io(path, error);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    // Readers of datasets pass names that start with a dot.
    let temporary = folder.join(".part-0.tmp");
    let file = File::create(&temporary).map_err(failed)?;
    let mut out = BufWriter::new(file);
    write_parquet(frame, &mut out).map_err(|error| error.in_file(path))?;
    let file = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_data().map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

/// A name as that of a folder.
fn encoded(name: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = rest.get(1..3).and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        if let (b'%', Some(code)) = (first, code) {
            bytes.push(code);
            rest = &rest[3..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// True for the folder of a dataset.
pub fn is_dataset(path: &Path) -> bool {
    path.join(MANIFEST).is_file() && path.join(INSIDE).is_dir()
}

/// The tables of datasets that `sql` names.
pub fn tables_named(sql: &str) -> Vec<&'static str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<String> = sql
        .split(|letter| !is_part(letter))
        .map(str::to_ascii_lowercase)
        .collect();
    let names = DATASET_TABLES.iter().map(|table| table.name);
    names
        .filter(|name| words.iter().any(|word| word == name))
        .collect()
}

/// The tables called `names` of the dataset at `path`, with the columns `run` and `date` before those of the
/// files.
///
/// # Errors
/// When there is no dataset, or a file of it is damaged.
pub fn read_dataset(path: &Path, names: &[&str]) -> Result<BTreeMap<&'static str, DataFrame>> {
    if !is_dataset(path) {
        let message = "is no dataset of tracekit batch";
        return Err(Error::new(ErrorKind::Usage, message).in_file(path));
    }
    let mut frames = BTreeMap::new();
    for name in names {
        let Some(table) = DATASET_TABLES.iter().find(|table| table.name == *name) else {
            let message = format!("a dataset has no table called '{name}'");
            return Err(Error::new(ErrorKind::Usage, message));
        };
        frames.insert(table.name, read_table(path, table)?);
    }
    Ok(frames)
}

fn read_table(path: &Path, table: &DatasetTable) -> Result<DataFrame> {
    let mut files = Vec::new();
    for run in folders(&path.join(table.name)) {
        for day in folders(&run) {
            let value = |folder: &Path, key: &str| {
                let name = folder.file_name()?.to_str()?;
                Some(decoded(name.strip_prefix(key)?)).filter(|value| value != NULL)
            };
            let part = day.join(PART);
            // A batch that was killed may have made the folder and not the file.
            if part.is_file() {
                files.push((value(&run, "run="), value(&day, "date="), part));
            }
        }
    }
    let parts: Vec<Result<DataFrame>> = files
        .into_par_iter()
        .map(|(run, date, path)| {
            let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
            let part = ParquetReader::new(file).finish();
            let part = part.map_err(|error| failed(&error).in_file(&path))?;
            with_keys(run, date, part).map_err(|error| failed(&error).in_file(&path))
        })
        .collect();
    let empty = data_frame(table, &[])?;
    let mut whole = with_keys(None, None, empty).map_err(|error| failed(&error))?;
    for part in parts {
        whole
            .vstack_mut_owned(part?)
            .map_err(|error| failed(&error))?;
    }
    Ok(whole)
}

fn with_keys(
    run: Option<String>,
    date: Option<String>,
    part: DataFrame,
) -> PolarsResult<DataFrame> {
    let rows = part.height();
    let key = |name: &'static str, value: Option<String>| {
        let values = std::iter::repeat_n(value, rows);
        StringChunked::from_iter_options(PlSmallStr::from_static(name), values).into_column()
    };
    let mut columns = vec![key("run", run), key("date", date)];
    columns.extend(part.into_columns());
    DataFrame::new(rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_are_read_back() {
        for name in ["a/b", "ä b", "100%", "%2F", "x=y", "..", "a\\b\0"] {
            let folder = encoded(name);
            assert!(!folder.contains(['/', '=', '\0', '\\']), "{folder}");
            assert_eq!(decoded(&folder), name);
        }
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }

    #[test]
    fn columns_have_their_types_also_without_rows() {
        for table in DATASET_TABLES {
            let frame = data_frame(table, &[]).unwrap();
            assert_eq!(frame.width(), table.columns.len());
            for (column, (name, dtype)) in frame.columns().iter().zip(table.columns) {
                assert_eq!(column.name().as_str(), *name);
                assert_eq!(format!("{:?}", column.dtype()), dtype.as_str());
            }
        }
    }
}
