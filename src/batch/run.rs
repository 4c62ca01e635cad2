//! A batch from its inputs to its dataset.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::analyse::Analysis;
use super::dataset::{Dataset, Output};
use super::input::Inputs;
use super::journal::{Journal, Line};
use super::manifest::{self, Manifest};
use super::page;
use super::pattern::Pattern;
use super::place;
use super::record::RECORD_VERSION;
use super::summary;
use super::work::{Work, work};
use crate::attribute::{AttributeOptions, Request, Salvage, hash, options_in_force};
use crate::error::{Error, ErrorKind, Result};
use crate::infer::Thresholds;
use crate::ingest::IngestOptions;

/// Where a dataset keeps what it knows.
pub(super) const INSIDE: &str = ".tracekit";

/// Content at which tests make the analysis panic.
#[cfg(test)]
pub(super) const PANICS: &[u8] = b"\"panic\": \"please\"";

/// How to analyse many inputs.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[derive(Debug, Clone)]
pub struct BatchOptions<'a> {
    /// How to attribute.
    pub attribute: AttributeOptions,
    /// How to read.
    pub ingest: IngestOptions,
    /// What makes a whole trace out of a damaged one.
    pub salvage: Option<Salvage>,
    /// Limits and rules of inferences.
    pub thresholds: Thresholds,
    /// Test what limits each input. It takes about a quarter more time.
    pub infer: bool,
    /// Where names tell run, strategy, repeat and rank.
    pub pattern: Option<Pattern>,
    /// So many inputs at a time.
    pub jobs: usize,
    /// Most bytes of memory that inputs may take together.
    pub memory_limit: u64,
    /// Only this part of the inputs.
    pub shard: Option<Shard>,
    /// Try again what failed before.
    pub retry_failed: bool,
    /// Look into files even when their size and time are as before.
    pub rehash: bool,
    /// Forget inputs that are not there any more.
    pub prune: bool,
    /// Write a page for every run.
    pub reports: bool,
    /// Becomes true when the batch has to end.
    pub interrupted: &'a AtomicBool,
}

/// One of equal parts of the inputs, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which part, from 1.
    pub index: u32,
    /// How many parts there are.
    pub count: u32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("'{text}' is no part: use I/N with I from 1 to N, such as 3/7");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let shard = Self {
            index: number(index)?,
            count: number(count)?,
        };
        if (1..=shard.count).contains(&shard.index) {
            Ok(shard)
        } else {
            Err(wrong())
        }
    }
}

impl Shard {
    /// True for the inputs of this part: told by their names alone.
    pub(super) fn has(self, id: &str) -> bool {
        let hash = hash(id.as_bytes());
        let number = u64::from_str_radix(&hash[..15], 16).unwrap_or(0);
        number % u64::from(self.count) == u64::from(self.index - 1)
    }
}

/// How far a batch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchEvent {
    /// What there is to do; comes first.
    Total {
        /// Number of files and archives.
        files: usize,
        /// Their size as stored.
        bytes: u64,
    },
    /// A file or archive, or what there was of it to do, is done.
    Done {
        /// Its size as stored.
        bytes: u64,
    },
    /// An input failed.
    Failed {
        /// Which.
        input: String,
        /// Why.
        error: String,
    },
}

/// What a batch came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BatchReport {
    /// Inputs that were analysed now.
    pub analysed: u64,
    /// Inputs that were known already, by place and time or by content.
    pub reused: u64,
    /// Bytes of inputs that were analysed now, as stored.
    pub analysed_bytes: u64,
    /// Inputs of the dataset that failed.
    pub failed: u64,
    /// Inputs of the dataset that were read.
    pub done: u64,
    /// Files that are no traces.
    pub skipped: u64,
    /// Runs of the dataset.
    pub runs: u64,
    /// Runs whose tables were written now.
    pub written: u64,
    /// How many inputs belong to their run by what.
    pub recognised_by: BTreeMap<String, u64>,
    /// How many inputs have their rank from what.
    pub ranks_by: BTreeMap<String, u64>,
    /// What was recognised of every run, in the order of their names.
    pub recognised: Vec<RecognisedRun>,
    /// Runs that got inputs of another folder than those they had, each with both folders.
    pub pooled: Vec<String>,
    /// There is a pattern, and it tells nothing about any input that was given.
    pub idle_pattern: bool,
    /// It was interrupted.
    pub interrupted: bool,
}

/// What names and contents told about a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecognisedRun {
    /// Its name.
    pub run: String,
    /// Its strategy.
    pub strategy: Option<String>,
    /// Which of several repeats it is.
    pub repeat: Option<i64>,
    /// The day it was recorded.
    pub date: Option<String>,
    /// Its ranks.
    pub ranks: Vec<i64>,
    /// How many inputs it has, those that failed included.
    pub inputs: u64,
}

/// Analyses `inputs` into the dataset at `out`; what is there already is not done again.
///
/// # Errors
/// When `out` is no dataset, another batch writes to it, or it cannot be written; and before anything is read, when
/// a run would get files of another folder than those it has. An input that cannot be
/// read is no error: it is a row of the dataset.
pub fn batch(
    inputs: &Inputs,
    out: &Path,
    options: &BatchOptions<'_>,
    progress: &(dyn Fn(BatchEvent) + Sync),
) -> Result<BatchReport> {
    let _lock = lock(out)?;
    let inside = out.join(INSIDE);
    let mut journal = Journal::open(&inside)?;
    let in_force = in_force(options);
    let key = key(env!("CARGO_PKG_VERSION"), &in_force);
    let analysis = Analysis {
        attribute: options.attribute.clone(),
        ingest: options.ingest,
        salvage: options.salvage,
        thresholds: options.thresholds.clone(),
        infer: options.infer,
    };
    let output = Output {
        folder: out,
        // Once there are pages, they are kept true.
        reports: options.reports || page::are_there(out),
    };
    let pattern = options.pattern.as_ref();
    let before = Dataset::of(&journal, pattern, &key);
    // What is forgotten comes together with nothing.
    if !options.prune {
        let expected = place::expected(&before, inputs, pattern, options.shard);
        if let Some(pooled) = expected.first() {
            return Err(pooled.refused());
        }
    }
    let before = place::runs(&before);
    let work = |journal: &mut Journal| -> Result<(Work, Dataset)> {
        let done = work(inputs, &analysis, &key, options, journal, progress)?;
        if options.prune && !done.interrupted {
            prune(journal, &done.ids)?;
        }
        let dataset = Dataset::of(journal, pattern, &key);
        Ok((done, dataset))
    };
    let (mut done, mut dataset) = work(&mut journal)?;
    let damaged = output.damaged(&dataset, &journal);
    if !damaged.is_empty() {
        // Records that the disk has not kept are made again.
        for sha256 in damaged {
            let options = key.clone();
            journal.note(Line::Lost { options, sha256 })?;
        }
        (done, dataset) = work(&mut journal)?;
    }
    let written = output.write(&dataset, &mut journal)?;
    let manifest = Manifest::new(
        &dataset,
        in_force,
        pattern,
        options.shard,
        &done.ids,
        !done.interrupted,
    );
    manifest::write(out, &manifest)?;
    summary::write(output, &dataset, &mut journal)?;
    journal.close()?;
    let mut report = dataset.report();
    report.analysed = done.analysed;
    report.reused = done.reused;
    report.analysed_bytes = done.analysed_bytes;
    report.skipped += done.passed + inputs.skipped.len() as u64;
    report.written = written;
    let pooled = place::happened(&before, &dataset);
    report.pooled = pooled.iter().map(place::Pooled::noted).collect();
    report.idle_pattern =
        pattern.is_some_and(|pattern| place::is_idle(pattern, &dataset, &done.ids));
    report.interrupted = done.interrupted;
    Ok(report)
}

/// Forgets inputs whose ids are not in `ids`.
fn prune(journal: &mut Journal, ids: &[String]) -> Result<()> {
    let known: std::collections::BTreeSet<&String> = ids.iter().collect();
    let gone: Vec<String> = journal
        .state
        .inputs
        .keys()
        .filter(|id| !known.contains(id))
        .cloned()
        .collect();
    for id in gone {
        journal.note(Line::Forgotten { id })?;
    }
    Ok(())
}

/// Takes the dataset at `out` for this process alone, as long as the file is open.
///
/// # Errors
/// When another one has it, or `out` is some other folder.
pub(super) fn lock(out: &Path) -> Result<File> {
    let inside = out.join(INSIDE);
    if !inside.exists() && out.exists() {
        let mut entries = fs::read_dir(out).map_err(|error| Error::io(out, error))?;
        if entries.next().is_some() {
            let message = "is a folder with other files: give a new one, or that of a batch";
            return Err(Error::new(ErrorKind::Usage, message).in_file(out));
        }
    }
    fs::create_dir_all(&inside).map_err(|error| Error::io(&inside, error))?;
    let path: PathBuf = inside.join("lock");
    let file = File::create(&path).map_err(|error| Error::io(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "another batch writes to this dataset";
            Err(Error::new(ErrorKind::State, message).in_file(out))
        }
        Err(TryLockError::Error(error)) => Err(Error::io(path, error)),
    }
}

/// The options that records depend on.
fn in_force(options: &BatchOptions<'_>) -> BTreeMap<String, Value> {
    let request = Request {
        paths: &[],
        ingest: options.ingest,
        options: &options.attribute,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: options.salvage,
    };
    let mut all: BTreeMap<String, Value> = options_in_force(&request)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for irrelevant in ["expect", "ranks", "top"] {
        all.remove(irrelevant);
    }
    let rules: Vec<&str> = options
        .thresholds
        .rules()
        .iter()
        .map(|rule| rule.sql.as_str())
        .collect();
    all.insert("infer".to_owned(), json!(options.infer));
    all.insert("salvage".to_owned(), json!(options.salvage.is_some()));
    all.insert("thresholds".to_owned(), json!(options.thresholds.limits()));
    all.insert("rules".to_owned(), json!(rules));
    all
}

/// What records are kept under: those of other options or of another tracekit are others.
pub(super) fn key(version: &str, in_force: &BTreeMap<String, Value>) -> String {
    let text = json!([version, RECORD_VERSION, in_force]).to_string();
    hash(text.as_bytes())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::table::read_dataset;
    use super::*;

    #[test]
    fn an_input_that_makes_the_analysis_panic_is_a_row_and_stops_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("in")).unwrap();
        let event = r#"{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}"#;
        let panics = String::from_utf8_lossy(PANICS);
        for (name, content) in [
            ("a.json", format!("[{event}]")),
            (
                "b.json",
                format!("{{{panics}, \"traceEvents\": [{event}]}}"),
            ),
            ("c.json", format!("[{event}, {event}]")),
        ] {
            fs::write(at("in").join(name), content).unwrap();
        }
        let interrupted = AtomicBool::new(false);
        let options = BatchOptions {
            attribute: AttributeOptions::default(),
            ingest: IngestOptions::default(),
            salvage: None,
            thresholds: Thresholds::default(),
            infer: false,
            pattern: None,
            jobs: 2,
            memory_limit: 1 << 30,
            shard: None,
            retry_failed: false,
            rehash: false,
            prune: false,
            reports: false,
            interrupted: &interrupted,
        };
        let inputs = super::super::find_inputs(&[at("in")], &[]).unwrap();
        for analysed in [3, 0] {
            let report = batch(&inputs, &at("out"), &options, &|_| {}).unwrap();
            assert_eq!((report.done, report.failed), (2, 1));
            // It is not tried again.
            assert_eq!(report.analysed, analysed);
        }
        let runs = read_dataset(&at("out"), &["runs"]).unwrap().remove("runs");
        let runs = runs.unwrap();
        let column = |name: &str| runs.column(name).unwrap().str().unwrap();
        let kinds: Vec<Option<&str>> = column("error_kind").iter().collect();
        assert_eq!(kinds, [None, Some("internal"), None]);
        assert!(
            column("error")
                .get(1)
                .unwrap()
                .contains("a test asked for this")
        );
    }

    #[test]
    fn every_input_is_in_one_shard() {
        for count in [1, 2, 7, 100] {
            let shards = (1..=count).map(|index| Shard { index, count });
            let shards: Vec<Shard> = shards.collect();
            let mut sizes = vec![0; shards.len()];
            for number in 0..1_000 {
                let id = format!("runs/{number}.json");
                let having: Vec<usize> = (0..shards.len())
                    .filter(|place| shards[*place].has(&id))
                    .collect();
                assert_eq!(having.len(), 1);
                sizes[having[0]] += 1;
            }
            assert!(count == 100 || sizes.iter().all(|size| *size > 1_000 / count / 2));
        }
    }

    #[test]
    fn parts_are_written_i_of_n() {
        assert_eq!("3/7".parse(), Ok(Shard { index: 3, count: 7 }));
        for wrong in ["", "3", "0/7", "8/7", "1/0", "a/b", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
