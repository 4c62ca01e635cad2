//! One table of a dataset: Parquet files, written part by part, each in place as a whole, and read back.
//!
//! ```text
//! TABLE/run=NAME/date=DAY/part-0.parquet      special letters of NAME as %XX
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Cursor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::*;
use polars_io::SerReader as _;
use polars_io::parquet::read::{ParallelStrategy, ParquetReader};
use rayon::prelude::*;
use serde_json::Value;

use super::manifest::Manifest;
use super::run::INSIDE;
use super::schema::{DATASET_TABLES, DatasetTable};
use crate::error::{Error, ErrorKind, Result};
use crate::frame::{Dtype, ParquetParts, failed};

/// The day of runs that do not tell theirs. Hive's own word for a missing value is none that all readers know:
/// pandas cannot read a table that has it.
const UNKNOWN: &str = "unknown";

const PART: &str = "part-0.parquet";

/// So many rows are held until they are written as a group: a run may have millions.
const ROWS: usize = 1 << 14;

/// Where the file of a table is for a run of this name and day.
pub(super) fn place(out: &Path, table: &str, run: &str, date: Option<&str>) -> PathBuf {
    out.join(table)
        .join(format!("run={}", encoded(run)))
        .join(format!("date={}", date.unwrap_or(UNKNOWN)))
        .join(PART)
}

/// A file of a table while it is written. Nothing is in its place until it is whole.
pub(super) struct TableFile {
    table: &'static DatasetTable,
    path: PathBuf,
    rows: Vec<Vec<Value>>,
    started: Option<Started>,
}

struct Started {
    temporary: Temporary,
    file: Arc<File>,
    parts: ParquetParts<BufWriter<Arc<File>>>,
}

/// A file that is removed, unless it was renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Renamed, it is not there any more.
        let _ = fs::remove_file(&self.0);
    }
}

impl TableFile {
    pub(super) fn new(table: &'static DatasetTable, path: PathBuf) -> Self {
        Self {
            table,
            path,
            rows: Vec::new(),
            started: None,
        }
    }

    /// Adds rows.
    pub(super) fn add(&mut self, rows: impl IntoIterator<Item = Vec<Value>>) -> Result<()> {
        for row in rows {
            self.rows.push(row);
            if self.rows.len() >= ROWS {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Writes the rows that are held.
    fn write(&mut self) -> Result<()> {
        let frame = data_frame(self.table, &self.rows)?;
        self.rows.clear();
        if self.started.is_none() {
            self.started = Some(self.start(&frame)?);
        }
        if let Some(started) = &mut self.started {
            let added = started.parts.add(&frame);
            added.map_err(|error| error.in_file(&self.path))?;
        }
        Ok(())
    }

    fn start(&self, frame: &DataFrame) -> Result<Started> {
        let failed = |error| Error::io(&self.path, error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_folder(folder).map_err(failed)?;
        // Readers of datasets pass names that start with a dot.
        let temporary = folder.join(format!(".{PART}.tmp"));
        let file = Arc::new(File::create(&temporary).map_err(failed)?);
        let parts = ParquetParts::new(frame, BufWriter::new(Arc::clone(&file)));
        Ok(Started {
            temporary: Temporary(temporary),
            file,
            parts: parts.map_err(|error| error.in_file(&self.path))?,
        })
    }

    /// Puts the file in its place, and tells how long it is.
    pub(super) fn finish(mut self) -> Result<u64> {
        // Also without rows: it has the columns.
        if self.started.is_none() || !self.rows.is_empty() {
            self.write()?;
        }
        let Some(mut started) = self.started.take() else {
            return Ok(0);
        };
        let failed = |error| Error::io(&self.path, error);
        let finished = started.parts.finish();
        finished.map_err(|error| error.in_file(&self.path))?;
        started.file.sync_data().map_err(failed)?;
        fs::rename(&started.temporary.0, &self.path).map_err(failed)?;
        let metadata = started.file.metadata().map_err(failed)?;
        Ok(metadata.len())
    }
}

/// Makes the folder of a run and a day. There are many, and most are new: then it is quickest from the outside in.
fn make_folder(folder: &Path) -> io::Result<()> {
    let made = |folder: &Path| fs::create_dir(folder).is_ok();
    if folder.parent().is_some_and(made) && made(folder) {
        return Ok(());
    }
    fs::create_dir_all(folder)
}

/// How long the files of a run are together; `None` when one is not there.
pub(super) fn length(out: &Path, run: &str, date: Option<&str>) -> Option<u64> {
    let tables = DATASET_TABLES.iter();
    let lengths = tables.map(|table| {
        let metadata = fs::metadata(place(out, table.name, run, date)).ok()?;
        Some(metadata.len())
    });
    lengths.sum()
}

/// Removes the files of runs and days that are not in `wanted`.
pub(super) fn remove_others(out: &Path, wanted: &[(&str, Option<&str>)]) -> Result<()> {
    for table in DATASET_TABLES {
        let wanted: BTreeSet<PathBuf> = wanted
            .iter()
            .filter_map(|(run, date)| {
                let place = place(out, table.name, run, *date);
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

/// A name as that of a folder.
pub(super) fn encoded(name: &str) -> String {
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
    path.join(INSIDE).is_dir()
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
    read_runs(path, names, &|_| true)
}

/// The same of the runs that are `wanted` alone.
pub(super) fn read_runs(
    path: &Path,
    names: &[&str],
    wanted: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<&'static str, DataFrame>> {
    if !is_dataset(path) {
        let message = "is no dataset of tracekit batch";
        return Err(Error::new(ErrorKind::Usage, message).in_file(path));
    }
    let runs = Manifest::read(path)?.runs();
    let mut frames = BTreeMap::new();
    for name in names {
        let Some(table) = DATASET_TABLES.iter().find(|table| table.name == *name) else {
            let message = format!("a dataset has no table called '{name}'");
            return Err(Error::new(ErrorKind::Usage, message));
        };
        let (frame, there) = read_table(path, table, wanted)?;
        let missing = runs.iter().find(|run| wanted(run) && !there.contains(*run));
        if let Some(run) = missing {
            let message = format!(
                "the table {} has nothing about run '{run}': a batch is writing it, or must be run again",
                table.name
            );
            return Err(Error::new(ErrorKind::State, message).in_file(path));
        }
        frames.insert(table.name, frame);
    }
    Ok(frames)
}

/// A table of runs that are `wanted`, and which of them are there.
fn read_table(
    path: &Path,
    table: &DatasetTable,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(DataFrame, BTreeSet<String>)> {
    let mut files = Vec::new();
    for run in folders(&path.join(table.name)) {
        let name = run.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_prefix("run="));
        if !name.is_some_and(|name| wanted(&decoded(name))) {
            continue;
        }
        for day in folders(&run) {
            let value = |folder: &Path, key: &str| {
                let name = folder.file_name()?.to_str()?.strip_prefix(key)?;
                Some(decoded(name))
            };
            let part = day.join(PART);
            // A batch that was killed may have made the folder and not the file.
            if part.is_file() {
                files.push((value(&run, "run="), value(&day, "date="), part));
            }
        }
    }
    let there = files.iter().filter_map(|(run, _, _)| run.clone()).collect();
    let parts: Vec<Result<DataFrame>> = files
        .into_par_iter()
        .map(|(run, date, path)| {
            // Read as a whole, so that it is not open while Polars does other things in between.
            let bytes = fs::read(&path).map_err(|error| Error::io(&path, error))?;
            let part = ParquetReader::new(Cursor::new(bytes))
                .read_parallel(ParallelStrategy::None)
                .finish();
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
    Ok((whole, there))
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
