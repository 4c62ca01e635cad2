//! From paths to an attribution: files are read and attributed side by side, then put together.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::file::{FileAttribution, attribute_file};
use super::options::AttributeOptions;
use super::result::{
    Attribution, InputRecord, RankResult, RunResult, SCHEMA_VERSION, SkippedInput, Tool,
};
use super::run::{is_called, rank_of_path, run_folder, run_name, window_of_path};
use super::summary;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::ingest::{Discovered, IngestOptions, Input, discover, is_trace_name};
use crate::model::Trace;

/// What to attribute.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Files, directories, or `-` for standard input.
    pub paths: &'a [PathBuf],
    /// How to read.
    pub ingest: IngestOptions,
    /// How to attribute.
    pub options: &'a AttributeOptions,
    /// Only these ranks; all when empty.
    pub ranks: Vec<i64>,
    /// Names of runs that must be there.
    pub expect: Vec<String>,
    /// Compute the SHA-256 of each input.
    pub hash_inputs: bool,
}

/// How far an attribution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressEvent {
    /// What there is to do; comes first.
    Total {
        /// Number of files.
        files: usize,
        /// Their size as stored.
        bytes: u64,
    },
    /// One file is done.
    FileDone {
        /// Its size as stored.
        bytes: u64,
    },
}

/// Reads and attributes every trace under the paths of `request`.
///
/// # Errors
/// When a file named in the request cannot be read, nothing readable is found, or an expected run
/// is missing. Broken files inside a directory are listed in [`Attribution::skipped`] instead.
pub fn attribute_paths(
    request: &Request<'_>,
    progress: &(dyn Fn(ProgressEvent) + Sync),
) -> Result<Attribution> {
    let Discovered { inputs, skipped } = discover(request.paths)?;
    let sizes: Vec<u64> = inputs
        .iter()
        .map(|input| std::fs::metadata(&input.path).map_or(0, |metadata| metadata.len()))
        .collect();
    progress(ProgressEvent::Total {
        files: inputs.len(),
        bytes: sizes.iter().sum(),
    });
    let read: Vec<Result<File>> = inputs
        .par_iter()
        .zip(&sizes)
        .map(|(input, bytes)| {
            let file = read_file(input, request);
            progress(ProgressEvent::FileDone { bytes: *bytes });
            file
        })
        .collect();
    let mut skipped: Vec<SkippedInput> = skipped
        .into_iter()
        .map(|skipped| SkippedInput {
            path: skipped.path.display().to_string(),
            reason: skipped.reason,
            failed: skipped.failed,
        })
        .collect();
    let mut files = Vec::new();
    for (input, file) in inputs.iter().zip(read) {
        match file {
            Ok(file) => files.push(file),
            Err(error) if input.root.is_none() => return Err(error),
            Err(error) => skipped.push(SkippedInput {
                path: input.path.display().to_string(),
                reason: error.reason(),
                failed: error.kind() != ErrorKind::NotATrace && is_trace_name(&input.path),
            }),
        }
    }
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    if files.is_empty() {
        return Err(nothing_readable(request.paths, &skipped));
    }
    if !request.ranks.is_empty() {
        files.retain(|file| {
            file.record
                .rank
                .is_some_and(|rank| request.ranks.contains(&rank))
        });
        if files.is_empty() {
            let ranks: Vec<String> = request.ranks.iter().map(ToString::to_string).collect();
            let message = format!("no trace of rank {} here", ranks.join(", "));
            return Err(Error::new(ErrorKind::Usage, message));
        }
    }
    combine(files, skipped, request)
}

fn nothing_readable(paths: &[PathBuf], skipped: &[SkippedInput]) -> Error {
    let failed = skipped.iter().find(|skipped| skipped.failed);
    let first = failed.or_else(|| skipped.iter().find(|skipped| !skipped.reason.is_empty()));
    let message = match first {
        Some(first) => format!(
            "no readable trace among {} files; the first: {}: {}",
            skipped.len(),
            first.path,
            first.reason
        ),
        None => "no trace here".to_owned(),
    };
    let error = Error::new(ErrorKind::NotATrace, message);
    match paths {
        [only] => error.in_file(only),
        _ => error,
    }
}

/// One file, attributed.
struct File {
    record: InputRecord,
    /// Rank folder aside, the folder it is in.
    run: String,
    worker: PathBuf,
    time: u64,
    attribution: FileAttribution,
}

fn read_file(input: &Input, request: &Request<'_>) -> Result<File> {
    let trace =
        Trace::open(&input.path, &request.ingest).map_err(|error| error.in_file(&input.path))?;
    let sha256 = if request.hash_inputs {
        hash(&input.path)?
    } else {
        None
    };
    let root = input.root.as_deref();
    let metadata = &trace.metadata;
    let mut device_names: Vec<String> = Vec::new();
    for name in metadata
        .devices
        .iter()
        .filter_map(|device| device.name.as_ref())
    {
        if !device_names.contains(name) {
            device_names.push(name.clone());
        }
    }
    let record = InputRecord {
        path: input.path.display().to_string(),
        sha256,
        bytes: trace.bytes,
        events: trace.events.len() as u64,
        rank: metadata
            .distributed
            .rank
            .or_else(|| rank_of_path(&input.path)),
        world_size: metadata.distributed.world_size,
        device_names,
        compressed: trace.compressed,
        partial: false,
    };
    let several = request.paths.len() > 1;
    let folder = run_folder(&input.path, root);
    let given = if root.is_none() && several && !folder.as_os_str().is_empty() {
        folder.clone()
    } else {
        input.path.clone()
    };
    let (worker, time) = window_of_path(&input.path);
    Ok(File {
        record,
        run: run_name(&folder, root, &given, several),
        worker,
        time,
        attribution: attribute_file(&trace, request.options),
    })
}

/// SHA-256 of the stored bytes; standard input has none.
fn hash(path: &Path) -> Result<Option<String>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let io = |error| Error::io(path, error);
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 18];
    loop {
        let read = std::io::Read::read(&mut file, &mut block).map_err(io)?;
        if read == 0 {
            break;
        }
        hasher.update(&block[..read]);
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        write!(text, "{byte:02x}").expect("writing to a string");
    }
    Ok(Some(text))
}

fn combine(
    mut files: Vec<File>,
    skipped: Vec<SkippedInput>,
    request: &Request<'_>,
) -> Result<Attribution> {
    let order = |file: &File| (!is_called(&file.run, "baseline"), file.run.clone());
    files.sort_by(|a, b| {
        order(a)
            .cmp(&order(b))
            .then_with(|| {
                (a.record.rank.is_none(), a.record.rank)
                    .cmp(&(b.record.rank.is_none(), b.record.rank))
            })
            .then_with(|| {
                (&a.worker, a.time, &a.record.path).cmp(&(&b.worker, b.time, &b.record.path))
            })
    });
    let mut health = Health::default();
    for (number, file) in files.iter().enumerate() {
        health.append(&file.attribution.health, number);
    }
    health.add(
        HealthCode::FailedInput,
        skipped.iter().filter(|skipped| skipped.failed).count() as u64,
        skipped
            .iter()
            .find(|skipped| skipped.failed)
            .map(|skipped| skipped.path.clone()),
    );
    let mut runs: Vec<RunResult> = Vec::new();
    let mut ranks: Vec<RankResult> = Vec::new();
    for group in files.chunk_by(|a, b| a.run == b.run) {
        let first = ranks.len();
        check_ranks(group, &mut health);
        ranks.extend(rank_results(group, runs.len(), first));
        runs.push(run_result(group, &ranks, first, request.options));
    }
    let missing: Vec<&str> = request
        .expect
        .iter()
        .filter(|name| !runs.iter().any(|run| is_called(&run.name, name)))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        let found: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        let message = format!(
            "expected run missing: {} (found: {})",
            missing.join(", "),
            found.join(", ")
        );
        let error = Error::new(ErrorKind::Usage, message);
        return Err(match request.paths {
            [only] => error.in_file(only),
            _ => error,
        });
    }
    let mut totals = Table::default();
    for run in &runs {
        totals.add(&run.totals);
    }
    Ok(Attribution {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "tracekit",
            version: env!("CARGO_PKG_VERSION"),
        },
        options: options_in_force(request),
        recompute: summary::recompute(runs.iter().map(|run| &run.recompute), &totals),
        coverage: summary::coverage(runs.iter().map(|run| &run.coverage)),
        inputs: files.into_iter().map(|file| file.record).collect(),
        skipped,
        totals,
        runs,
        ranks,
        health: health.entries(),
    })
}

fn rank_results(group: &[File], run: usize, first: usize) -> Vec<RankResult> {
    let mut results: Vec<RankResult> = Vec::new();
    for (place, file) in group.iter().enumerate() {
        let window = match place.checked_sub(1).map(|before| &group[before]) {
            Some(before)
                if before.worker == file.worker && before.record.rank == file.record.rank =>
            {
                results[place - 1].window + 1
            }
            _ => 0,
        };
        let attribution = &file.attribution;
        results.push(RankResult {
            rank: file.record.rank,
            run,
            input: first + place,
            window,
            totals: attribution.totals,
            devices: attribution.devices.clone(),
            host: attribution.host.clone(),
            recompute: attribution.recompute.clone(),
            coverage: attribution.coverage,
        });
    }
    results
}

fn run_result(
    group: &[File],
    ranks: &[RankResult],
    first: usize,
    options: &AttributeOptions,
) -> RunResult {
    let numbers: Vec<usize> = (first..first + group.len()).collect();
    let mut totals = Table::default();
    for file in group {
        totals.add(&file.attribution.totals);
    }
    let files = || group.iter().map(|file| &file.attribution);
    RunResult {
        name: group[0].run.clone(),
        host_phases: summary::host_phases(files()),
        recompute: summary::recompute(files().map(|file| &file.recompute), &totals),
        coverage: summary::coverage(files().map(|file| &file.coverage)),
        step_time: summary::step_time(files(), options),
        imbalance: summary::imbalance(ranks, &numbers),
        top_kernels: summary::top_kernels(files(), options.top),
        ranks: numbers,
        totals,
    }
}

/// Names files that claim one rank, and counts ranks that are not here.
fn check_ranks(group: &[File], health: &mut Health) {
    let mut workers: BTreeMap<i64, Vec<&File>> = BTreeMap::new();
    for file in group {
        if let Some(rank) = file.record.rank {
            let files = workers.entry(rank).or_default();
            if files.iter().all(|other| other.worker != file.worker) {
                files.push(file);
            }
        }
    }
    for (rank, files) in &workers {
        if files.len() > 1 {
            let names: Vec<&str> = files.iter().map(|file| file.record.path.as_str()).collect();
            let about = format!("rank {rank}: {}", names.join(", "));
            health.add(HealthCode::DuplicateRank, files.len() as u64, Some(about));
        }
    }
    let world = group
        .iter()
        .filter_map(|file| file.record.world_size)
        .max()
        .unwrap_or(0);
    let missing = u64::try_from(world)
        .unwrap_or(0)
        .saturating_sub(workers.len() as u64);
    if !workers.is_empty() {
        let about = format!("{}: {} of {world} ranks", group[0].run, workers.len());
        health.add(HealthCode::MissingRanks, missing, Some(about));
    }
}

fn options_in_force(request: &Request<'_>) -> BTreeMap<&'static str, Value> {
    let options = request.options;
    let patterns: Vec<String> = options
        .phases
        .iter()
        .map(|(phase, pattern)| format!("{phase}={pattern}"))
        .collect();
    let communication: Vec<&str> = options
        .communication
        .iter()
        .map(regex::Regex::as_str)
        .collect();
    BTreeMap::from([
        ("communication", json!(communication)),
        ("expect", json!(request.expect)),
        ("ignore_annotations", json!(options.ignore_annotations)),
        (
            "include_partial_steps",
            json!(options.include_partial_steps),
        ),
        ("phases", json!(patterns)),
        ("ranks", json!(request.ranks)),
        (
            "recompute_evidence",
            json!(options.recompute_evidence.as_str()),
        ),
        (
            "steps",
            json!(options.steps.map(|range| [range.first, range.last])),
        ),
        ("top", json!(options.top)),
    ])
}
