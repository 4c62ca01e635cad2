//! From paths to an attribution: files are read and attributed side by side, then put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::collective::{self, Member};
use super::dissection::{Dissection, MAX_DURATIONS, discard, dissect, too_long};
use super::file::FileAttribution;
use super::options::{AttributeOptions, StepRange};
use super::result::{
    Attribution, InputRecord, LostContent, RankResult, RunResult, SCHEMA_VERSION, SkippedInput,
    Tool,
};
use super::run::{is_called, rank_of_path, run_folder, run_name, window_of_path};
use super::summary;
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::health::{Health, HealthCode};
use crate::ingest::{Discovered, IngestOptions, Input, Source, discover, is_trace_name, kind};
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
    /// What makes a whole trace out of a damaged one; damaged files are refused without.
    pub salvage: Option<Salvage>,
}

/// Makes content that can be read out of the stored bytes of a damaged file.
pub type Salvage = fn(&[u8]) -> Result<Salvaged>;

/// What is whole in a damaged file.
#[derive(Debug, Clone, Default)]
pub struct Salvaged {
    /// A whole document with the events that are whole.
    pub content: Vec<u8>,
    /// What was left out: ranges of bytes of the damaged content, the first ones.
    pub ranges: Vec<(u64, u64)>,
    /// How many bytes were left out in all ranges.
    pub bytes: u64,
    /// About how many events that is; `None` when the content ends inside of the event array, for nobody
    /// knows what came behind.
    pub events_estimated: Option<u64>,
    /// Where and how compressed data is damaged, behind which nothing could be read, or that the end of
    /// the document is missing.
    pub damage: Option<String>,
    /// What was no JSON and has one sensible reading.
    pub findings: Health,
}

impl Salvaged {
    /// What the record of the input says about it, when it said `before` that something was left out
    /// by a repair.
    fn lost(&self, before: Option<LostContent>) -> LostContent {
        /// So many ranges are named.
        const MAX_RANGES: usize = 1000;
        let mut lost = LostContent {
            ranges: self.ranges.clone(),
            bytes: self.bytes,
            events_estimated: self.events_estimated,
            damage: self.damage.clone(),
        };
        if let Some(before) = before {
            lost.ranges.extend(before.ranges);
            lost.ranges.sort_unstable();
            lost.ranges.truncate(MAX_RANGES);
            lost.bytes = lost.bytes.saturating_add(before.bytes);
            let events = lost.events_estimated.zip(before.events_estimated);
            lost.events_estimated = events.map(|(one, other)| one.saturating_add(other));
            lost.damage = lost.damage.or(before.damage);
        }
        lost
    }
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

/// What `read` gives for each of `inputs`, in their order; they are read side by side.
pub(crate) fn read_each<T: Send>(
    inputs: &[Input],
    progress: &(dyn Fn(ProgressEvent) + Sync),
    read: impl Fn(&Input) -> T + Sync,
) -> Vec<T> {
    let sizes: Vec<u64> = inputs
        .iter()
        .map(|input| std::fs::metadata(&input.path).map_or(0, |metadata| metadata.len()))
        .collect();
    progress(ProgressEvent::Total {
        files: inputs.len(),
        bytes: sizes.iter().sum(),
    });
    inputs
        .par_iter()
        .zip(&sizes)
        .map(|(input, bytes)| {
            let done = read(input);
            progress(ProgressEvent::FileDone { bytes: *bytes });
            done
        })
        .collect()
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
    let (attribution, _) = attribute_and(request, progress, |_, _| Ok(()))?;
    Ok(attribution)
}

/// Attributes every trace under the paths of `request`, and takes what `look` sees in the dissection of
/// each and the content that it was read from: one entry a file, like [`Attribution::ranks`].
pub(crate) fn attribute_and<T: Send>(
    request: &Request<'_>,
    progress: &(dyn Fn(ProgressEvent) + Sync),
    look: impl Fn(&Dissection<'_>, &[u8]) -> Result<T> + Sync,
) -> Result<(Attribution, Vec<T>)> {
    combine(gather(request, progress, look)?, request)
}

/// The files that were asked for.
struct Gathered<T> {
    /// In order of path.
    files: Vec<File<T>>,
    /// Files of a folder that were not read, in order of path.
    skipped: Vec<SkippedInput>,
}

fn gather<T: Send>(
    request: &Request<'_>,
    progress: &(dyn Fn(ProgressEvent) + Sync),
    look: impl Fn(&Dissection<'_>, &[u8]) -> Result<T> + Sync,
) -> Result<Gathered<T>> {
    let Discovered { inputs, skipped } = discover(request.paths)?;
    let read: Vec<std::result::Result<File<T>, Refused>> =
        read_each(&inputs, progress, |input| read_file(input, request, &look));
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
            Err(refused) if input.root.is_none() => return Err(refused.error),
            Err(refused) => skipped.push(SkippedInput {
                path: input.path.display().to_string(),
                reason: refused.error.reason(),
                failed: refused.failed,
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
    check_steps(&files, request)?;
    let durations: i128 = files.iter().map(|file| file.attribution.durations).sum();
    if durations > MAX_DURATIONS {
        return Err(about(request.paths, too_long()));
    }
    Ok(Gathered { files, skipped })
}

/// Some file has a step of the range that was asked for.
fn check_steps<T>(files: &[File<T>], request: &Request<'_>) -> Result<()> {
    let Some(range) = request.options.steps else {
        return Ok(());
    };
    let mut all = files.iter().map(|file| &file.attribution);
    if !all.all(|attribution| attribution.host.steps.is_empty()) {
        return Ok(());
    }
    let known = files.iter().filter_map(|file| file.attribution.steps);
    let message = match known.reduce(|(first, last), (other_first, other_last)| {
        (first.min(other_first), last.max(other_last))
    }) {
        Some((first, last)) => format!("no step in {range}: there are {first} to {last}"),
        None => format!("no step in {range}: there are no steps here"),
    };
    Err(about(request.paths, Error::new(ErrorKind::Usage, message)))
}

/// The error with the path that it is about, when only one was given.
fn about(paths: &[PathBuf], error: Error) -> Error {
    match paths {
        [only] => error.in_file(only),
        _ => error,
    }
}

pub(crate) fn nothing_readable(paths: &[PathBuf], skipped: &[SkippedInput]) -> Error {
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
    about(paths, Error::new(ErrorKind::NotATrace, message))
}

/// One file, attributed, with what else was seen in it.
pub(crate) struct File<T = ()> {
    pub(crate) record: InputRecord,
    /// Rank folder aside, the folder it is in.
    pub(crate) run: String,
    /// The folder whose files are one run.
    pub(crate) folder: PathBuf,
    worker: PathBuf,
    time: u64,
    pub(crate) attribution: FileAttribution,
    pub(crate) seen: T,
}

impl<T> File<T> {
    /// The file, and what else was seen in it.
    pub(crate) fn split(self) -> (File, T) {
        let file = File {
            record: self.record,
            run: self.run,
            folder: self.folder,
            worker: self.worker,
            time: self.time,
            attribution: self.attribution,
            seen: (),
        };
        (file, self.seen)
    }
}

/// A file that could not be read.
struct Refused {
    error: Error,
    /// It is a trace, by its name or by how it starts.
    failed: bool,
}

fn read_file<T: Send>(
    input: &Input,
    request: &Request<'_>,
    look: &(impl Fn(&Dissection<'_>, &[u8]) -> Result<T> + Sync),
) -> std::result::Result<File<T>, Refused> {
    let located = |error: Error| error.in_file(&input.path);
    let source = Source::open(&input.path, &request.ingest).map_err(|error| Refused {
        error: located(error),
        failed: true,
    })?;
    let read = || attributed_bytes(input, source.bytes(), request, look);
    let (file, sha256) = rayon::join(read, || request.hash_inputs.then(|| hash(source.bytes())));
    let mut file = file.map_err(|error| {
        let is_trace = || is_trace_name(&input.path) || kind::may_be_a_trace(source.bytes());
        Refused {
            failed: error.is_damage() && is_trace(),
            error: located(error),
        }
    })?;
    file.record.sha256 = sha256;
    Ok(file)
}

/// Attributes the trace in `bytes`, the stored content of `input`, and takes what `look` sees in its
/// dissection and the content that it was read from.
///
/// # Errors
/// When `bytes` are no trace, or damaged and not to be salvaged.
pub(crate) fn attributed_bytes<T>(
    input: &Input,
    bytes: &[u8],
    request: &Request<'_>,
    look: impl FnOnce(&Dissection<'_>, &[u8]) -> Result<T>,
) -> Result<File<T>> {
    match Trace::from_bytes(bytes, &request.ingest) {
        Ok(trace) => {
            let file = attributed_and(input, &trace, request, Some(bytes), |dissection| {
                look(dissection, bytes)
            });
            discard(trace);
            file
        }
        Err(error) => match request.salvage {
            Some(salvage) if error.is_damage() => {
                salvaged(input, bytes, &error, salvage, request, look)
            }
            _ => Err(error),
        },
    }
}

/// The attribution of one file alone, and what was seen in it.
///
/// # Errors
/// When the file has no step of the range that was asked for.
#[cfg(feature = "batch")]
pub(crate) fn attribution_of<T>(
    file: File<T>,
    request: &Request<'_>,
) -> Result<(Attribution, Vec<T>)> {
    let files = vec![file];
    check_steps(&files, request)?;
    let skipped = Vec::new();
    combine(Gathered { files, skipped }, request)
}

/// Attributes what is whole in a damaged file.
fn salvaged<T>(
    input: &Input,
    bytes: &[u8],
    damage: &Error,
    salvage: Salvage,
    request: &Request<'_>,
    look: impl FnOnce(&Dissection<'_>, &[u8]) -> Result<T>,
) -> Result<File<T>> {
    let salvaged = salvage(bytes)?;
    let mut trace = Trace::from_bytes(&salvaged.content, &request.ingest)?;
    trace.bytes = bytes.len() as u64;
    let health = &mut trace.health;
    health.forget_places();
    // Of this file as it is now, whatever it has lost before.
    health.forget(HealthCode::Salvaged);
    health.add(HealthCode::Salvaged, 1, Some(damage.reason()));
    health.merge(&salvaged.findings);
    let mut file = attributed_and(
        input,
        &trace,
        request,
        Some(&salvaged.content),
        |dissection| look(dissection, &salvaged.content),
    )?;
    file.record.partial = true;
    file.record.lost = Some(salvaged.lost(file.record.lost.take()));
    Ok(file)
}

/// Attributes `trace`, which was read from `input`.
pub(crate) fn attributed(input: &Input, trace: &Trace, request: &Request<'_>) -> Result<File> {
    attributed_and(input, trace, request, None, |_| Ok(()))
}

/// Attributes `trace`, which was read from `input` with the content `bytes`, and takes what `look` sees
/// in its dissection. Without the content there are no counters.
fn attributed_and<T>(
    input: &Input,
    trace: &Trace,
    request: &Request<'_>,
    bytes: Option<&[u8]>,
    look: impl FnOnce(&Dissection<'_>) -> Result<T>,
) -> Result<File<T>> {
    let root = input.root.as_deref();
    let metadata = &trace.metadata;
    let mut named = BTreeSet::new();
    let device_names = metadata
        .devices
        .iter()
        .filter_map(|device| device.name.clone())
        .filter(|name| named.insert(name.clone()))
        .collect();
    let record = InputRecord {
        path: input.path.display().to_string(),
        sha256: None,
        bytes: trace.bytes,
        events: trace.events.len() as u64,
        rank: metadata
            .distributed
            .rank
            .or_else(|| rank_of_path(&input.path)),
        world_size: metadata.distributed.world_size,
        device_names,
        compressed: trace.compressed,
        partial: metadata.rewriting.lost.is_some(),
        lost: metadata.rewriting.lost.clone().map(|lost| LostContent {
            ranges: lost.ranges,
            bytes: lost.bytes,
            events_estimated: lost.events_estimated,
            damage: lost.damage,
        }),
    };
    let several = request.paths.len() > 1;
    let folder = run_folder(&input.path, root);
    let given = if root.is_none() && several && !folder.as_os_str().is_empty() {
        folder.clone()
    } else {
        input.path.clone()
    };
    let (worker, time) = window_of_path(&input.path);
    let (attribution, seen) = dissect(trace, request.options, |dissection| {
        let mut attribution = FileAttribution::new(dissection);
        let added = bytes.map_or(Ok(()), |bytes| attribution.add_counters(dissection, bytes));
        (attribution, added.and_then(|()| look(dissection)))
    })
    .map_err(|error| error.in_file(&input.path))?;
    Ok(File {
        record,
        run: run_name(&folder, root, &given, several),
        folder,
        worker,
        time,
        attribution,
        seen: seen.map_err(|error| error.in_file(&input.path))?,
    })
}

/// SHA-256 of `bytes` in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("writing to a string");
    }
    text
}

/// Puts files in the order of output, run by run, and compares the ranks of each run.
pub(crate) fn put_in_order<T>(files: &mut [File<T>]) {
    let baseline = |file: &File<T>| !is_called(&file.run, "baseline");
    files.sort_by(|a, b| {
        (baseline(a), &a.run, &a.folder)
            .cmp(&(baseline(b), &b.run, &b.folder))
            .then_with(|| {
                (a.record.rank.is_none(), a.record.rank)
                    .cmp(&(b.record.rank.is_none(), b.record.rank))
            })
            .then_with(|| {
                (&a.worker, a.time, &a.record.path).cmp(&(&b.worker, b.time, &b.record.path))
            })
    });
    for run in files.chunk_by_mut(|a, b| a.folder == b.folder) {
        let members: Vec<Member<'_>> = run
            .iter()
            .zip(windows(run))
            .map(|(file, window)| Member {
                rank: file.record.rank,
                window,
                collectives: &file.attribution.collectives,
            })
            .collect();
        let found = collective::examine(&members);
        for (file, health) in run.iter_mut().zip(found) {
            file.attribution.health.merge(&health);
        }
    }
}

fn combine<T>(gathered: Gathered<T>, request: &Request<'_>) -> Result<(Attribution, Vec<T>)> {
    let Gathered { mut files, skipped } = gathered;
    put_in_order(&mut files);
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
    for group in files.chunk_by(|a, b| a.folder == b.folder) {
        let first = ranks.len();
        check_ranks(group, request.ranks.is_empty(), &mut health);
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
        let mut found: Vec<&str> = runs.iter().take(10).map(|run| run.name.as_str()).collect();
        if runs.len() > found.len() {
            found.push("…");
        }
        let message = format!(
            "expected run missing: {} (found: {})",
            missing.join(", "),
            found.join(", ")
        );
        return Err(about(request.paths, Error::new(ErrorKind::Usage, message)));
    }
    let mut totals = Table::default();
    for run in &runs {
        totals.add(&run.totals);
    }
    let (inputs, seen) = files
        .into_iter()
        .map(|file| (file.record, file.seen))
        .unzip();
    let attribution = Attribution {
        schema_version: SCHEMA_VERSION,
        tool: Tool::this(),
        options: options_in_force(request),
        recompute: summary::recompute(runs.iter().map(|run| &run.recompute), &totals),
        coverage: summary::coverage(runs.iter().map(|run| &run.coverage)),
        inputs,
        skipped,
        totals,
        runs,
        ranks,
        health: health.entries(),
    };
    Ok((attribution, seen))
}

/// Which profiler window of its rank each file of a run is.
fn windows<T>(group: &[File<T>]) -> Vec<usize> {
    let mut windows: Vec<usize> = Vec::with_capacity(group.len());
    for (place, file) in group.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &group[before]);
        let follows = before.is_some_and(|before| {
            before.worker == file.worker && before.record.rank == file.record.rank
        });
        let window = if follows { windows[place - 1] + 1 } else { 0 };
        windows.push(window);
    }
    windows
}

fn rank_results<T>(group: &[File<T>], run: usize, first: usize) -> Vec<RankResult> {
    let mut results: Vec<RankResult> = Vec::new();
    for ((place, file), window) in group.iter().enumerate().zip(windows(group)) {
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

fn run_result<T>(
    group: &[File<T>],
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

/// Names files that claim one rank or hold one capture, and counts ranks that are not here. `group`
/// is in order of rank, worker and time. Ranks are missing only where `all_ranks` were asked for.
pub(crate) fn check_ranks<T>(group: &[File<T>], all_ranks: bool, health: &mut Health) {
    let same_worker =
        |a: &File<T>, b: &File<T>| a.worker == b.worker && a.record.rank == b.record.rank;
    for copies in group.chunk_by(|a, b| same_worker(a, b) && a.time == b.time) {
        if copies.len() > 1 {
            let about = named("one capture", copies.iter());
            health.add(
                HealthCode::DuplicateCapture,
                copies.len() as u64,
                Some(about),
            );
        }
    }
    let mut ranks = 0;
    for files in group.chunk_by(|a, b| a.record.rank == b.record.rank) {
        let Some(rank) = files[0].record.rank else {
            continue;
        };
        ranks += 1;
        let workers: Vec<&File<T>> = files.chunk_by(same_worker).map(|files| &files[0]).collect();
        if workers.len() > 1 {
            let count = workers.len() as u64;
            let about = named(&format!("rank {rank}"), workers.into_iter());
            health.add(HealthCode::DuplicateRank, count, Some(about));
        }
    }
    let world = group
        .iter()
        .filter_map(|file| file.record.world_size)
        .max()
        .unwrap_or(0);
    let missing = u64::try_from(world).unwrap_or(0).saturating_sub(ranks);
    if ranks > 0 && all_ranks {
        let about = format!("{}: {ranks} of {world} ranks", group[0].run);
        health.add(HealthCode::MissingRanks, missing, Some(about));
    }
}

/// `what: path, path, …`, the first few.
fn named<'a, T: 'a>(what: &str, files: impl ExactSizeIterator<Item = &'a File<T>>) -> String {
    let more = files.len() > 8;
    let mut paths: Vec<&str> = files
        .take(8)
        .map(|file| file.record.path.as_str())
        .collect();
    if more {
        paths.push("…");
    }
    format!("{what}: {}", paths.join(", "))
}

/// First and last number; an open end is `null`.
fn steps_in_force(range: StepRange) -> [Option<u64>; 2] {
    [
        Some(range.first),
        Some(range.last).filter(|last| *last != u64::MAX),
    ]
}

/// The options of `request`, by name.
pub(crate) fn options_in_force(request: &Request<'_>) -> BTreeMap<&'static str, Value> {
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
        ("steps", json!(options.steps.map(steps_in_force))),
        ("top", json!(options.top)),
    ])
}
