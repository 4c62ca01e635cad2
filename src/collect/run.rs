//! The whole way: run the command, sample beside it, make traces of the spools.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::decode::decode;
use super::launch::{self, Ended, Signals};
use super::library;
use super::name::{self, now};
use super::nvml::{Sampler, Samples};
use super::options::CollectOptions;
use super::recording::{Process, Recording};
use super::write::{Source as TraceSource, link_devices, write_trace};
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::{IngestOptions, Source};

/// The folder of spools, in that of the traces.
const SPOOLS: &str = "spool";

/// How long processes that are just ending are waited for.
const GRACE: Duration = Duration::from_millis(500);

/// One trace that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// Where it is.
    pub path: PathBuf,
    /// The process; 0 for counters alone.
    pub pid: u32,
    /// Its rank, when it has one.
    pub rank: Option<i64>,
    /// Kernels, copies and fills.
    pub device_events: usize,
    /// NVTX ranges.
    pub ranges: usize,
    /// NVML samples.
    pub samples: usize,
}

/// What a run left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// How the command ended.
    pub ended: Ended,
    /// The traces, in order of path.
    pub traces: Vec<TraceFile>,
}

/// Runs the command of `options` and makes a trace of each of its processes that used CUDA or NVTX.
///
/// What cannot be recorded is told to `tell`, one line each; the command runs all the same.
///
/// # Errors
/// When the command cannot be run, or the folder already holds traces of another run.
pub fn collect(options: &CollectOptions, tell: &mut dyn FnMut(&str)) -> Result<Collected> {
    check_folder(&options.folder)?;
    let start = now();
    let (from, until) = options.window(start);
    let spools = options.folder.join(SPOOLS);
    let recorded = fs::create_dir_all(&spools)
        .and_then(|()| fs::canonicalize(&spools))
        .and_then(|spools| probe(&spools).map(|()| spools));
    let mut environment = options.environment.clone();
    let mut removed = Vec::new();
    let spools = match recorded {
        Ok(spools) => {
            match library::find(options.library.as_deref()) {
                Ok(library) => {
                    let set = injection(options, &library, &spools, start, (from, until));
                    for (name, _) in &set {
                        let taken = matches!(
                            name.as_str(),
                            "CUDA_INJECTION64_PATH" | "NVTX_INJECTION64_PATH"
                        );
                        if taken && std::env::var_os(name).is_some() {
                            tell(&format!(
                                "{name} is set already, for another tool: it is replaced"
                            ));
                        }
                    }
                    environment.extend(set);
                }
                Err(why) => tell(&format!("no device activity and no ranges: {why}")),
            }
            if std::env::var_os("KINETO_USE_DAEMON").is_some() {
                // It has Kineto take CUPTI for itself as soon as it is loaded.
                removed.push("KINETO_USE_DAEMON");
                tell("KINETO_USE_DAEMON is unset for the command: it would take CUPTI away");
            }
            Some(spools)
        }
        Err(error) => {
            let why = error.to_string().to_lowercase();
            let folder = options.folder.display();
            tell(&format!(
                "nothing is recorded: {folder} cannot be written: {why}"
            ));
            None
        }
    };
    let signals = Signals::watch();
    if let Err(error) = &signals {
        tell(&format!("signals are not passed on: {error}"));
    }
    let sampler = spools
        .as_ref()
        .and(options.interval)
        .map(|interval| Sampler::start(interval, from, until));
    let ran = launch::run(
        &options.command,
        &environment,
        &removed,
        signals.as_ref().ok(),
    );
    let samples = sampler.map(Sampler::finish).unwrap_or_default();
    let ended = match ran {
        Ok(ended) => ended,
        Err((ended, why)) => {
            // Nothing ran: there is nothing to keep.
            if let Some(spools) = &spools {
                let _ = fs::remove_dir(spools);
                let _ = fs::remove_dir(&options.folder);
            }
            tell(&why);
            return Ok(Collected {
                ended,
                traces: Vec::new(),
            });
        }
    };
    let mut traces = Vec::new();
    if let Some(spools) = spools {
        for note in &samples.notes {
            tell(note);
        }
        traces = Conversion {
            folder: &options.folder,
            spools: &spools,
            samples: &samples,
            keep: options.keep_spool,
            grace: GRACE,
            start,
        }
        .run(tell)?;
    }
    Ok(Collected { ended, traces })
}

/// Samples NVML alone, until `options.duration` is over or a signal comes.
///
/// # Errors
/// When the folder cannot be written or already holds traces.
pub fn sample_only(options: &CollectOptions, tell: &mut dyn FnMut(&str)) -> Result<Vec<TraceFile>> {
    check_folder(&options.folder)?;
    let folder = &options.folder;
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    let start = now();
    let (from, until) = options.window(start);
    let failed = |error| Error::io("signals", error);
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ])
    .map_err(failed)?;
    let interval = options.interval.unwrap_or(super::DEFAULT_INTERVAL);
    let sampler = Sampler::start(interval, from, until);
    loop {
        if signals.pending().next().is_some() || until.is_some_and(|until| now() >= until) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10).min(interval));
    }
    let samples = sampler.finish();
    for note in &samples.notes {
        tell(note);
    }
    if samples.values.is_empty() {
        // Only if it is ours and empty.
        let _ = fs::remove_dir(folder);
        return Ok(Vec::new());
    }
    let written = write_samples(folder, &samples, start)?;
    Ok(vec![written])
}

/// Makes traces of the spools of a run that could not do so itself, because it was killed.
///
/// # Errors
/// When there are no spools in `folder`, or it cannot be written.
pub fn convert_folder(
    folder: &Path,
    keep: bool,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<TraceFile>> {
    let spools = folder.join(SPOOLS);
    let spools = if spools.is_dir() {
        spools
    } else {
        folder.to_owned()
    };
    if list(&spools)?.is_empty() {
        let message = "holds no spools (files that end in .tkspool)";
        return Err(Error::new(ErrorKind::Usage, message).in_file(folder));
    }
    Conversion {
        folder,
        spools: &spools,
        samples: &Samples::default(),
        keep,
        grace: Duration::ZERO,
        start: now(),
    }
    .run(tell)
}

/// The trace of a spool, uncompressed, and the notes about it; `None` when it is no spool.
#[doc(hidden)]
pub fn convert_bytes(spool: &[u8]) -> Option<(Vec<u8>, Vec<String>)> {
    let recording = decode(spool)?;
    let mut out = Vec::new();
    let samples = Samples::default();
    let source = TraceSource {
        recording: &recording,
        samples: &samples,
        devices: BTreeMap::new(),
        host: "host",
        base: base_of(&recording, recording.process.start),
        notes: &recording.notes,
    };
    // Writing to memory cannot fail.
    write_trace(&source, &mut out).ok()?;
    Some((out, recording.notes))
}

/// What the command gets in its environment.
fn injection(
    options: &CollectOptions,
    library: &Path,
    spools: &Path,
    start: u64,
    (from, until): (Option<u64>, Option<u64>),
) -> Vec<(String, OsString)> {
    let kinds = [tracekit_spool::kind::DEVICE, tracekit_spool::kind::CONTEXT];
    let asked = options.kinds.iter().flat_map(|kind| kind.numbers());
    let kinds: Vec<String> = kinds.iter().chain(asked).map(u32::to_string).collect();
    let mut set: Vec<(String, OsString)> = vec![
        ("CUDA_INJECTION64_PATH".to_owned(), library.into()),
        ("NVTX_INJECTION64_PATH".to_owned(), library.into()),
        ("TRACEKIT_INJECT_DIR".to_owned(), spools.into()),
    ];
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            set.push((format!("TRACEKIT_INJECT_{name}"), value.into()));
        }
    };
    put("RUN", Some(start.to_string()));
    put("KINDS", Some(kinds.join(",")));
    put("BUFFER_SIZE", Some(options.buffer_size.to_string()));
    put(
        "FLUSH_MS",
        Some(options.flush_period.as_millis().to_string()),
    );
    put("FROM_NS", from.map(|time| time.to_string()));
    put("UNTIL_NS", until.map(|time| time.to_string()));
    put("RANGE", options.range.clone());
    put(
        "MAX_SPOOL",
        options.max_spool.map(|bytes| bytes.to_string()),
    );
    set
}

/// Fails when `folder` holds a run already: its traces would be taken for ranks of this one.
fn check_folder(folder: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    let holds = entries.flatten().any(|entry| {
        let name = entry.file_name();
        let is_spool = name == SPOOLS && !list(&entry.path()).unwrap_or_default().is_empty();
        is_spool || crate::ingest::is_trace_name(Path::new(&name))
    });
    if holds {
        let message = "holds traces or spools already; name another folder";
        return Err(Error::new(ErrorKind::Usage, message).in_file(folder));
    }
    Ok(())
}

/// Finds out whether files can be made in `folder`.
fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".probe-{}", std::process::id()));
    File::create_new(&path)?;
    fs::remove_file(path)
}

/// The spools in `folder`, in order of name.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let mut spools: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tkspool"))
        .collect();
    spools.sort();
    Ok(spools)
}

/// Making traces of spools.
struct Conversion<'a> {
    folder: &'a Path,
    spools: &'a Path,
    samples: &'a Samples,
    keep: bool,
    grace: Duration,
    start: u64,
}

impl Conversion<'_> {
    fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<Vec<TraceFile>> {
        let host = name::host();
        let mut traces = Vec::new();
        let mut kept = self.keep;
        let until = Instant::now() + self.grace;
        let spools = list(self.spools)?;
        for path in &spools {
            let (recording, running) = loop {
                let source = Source::open(path, &IngestOptions::default())?;
                let recording = decode(source.bytes());
                let running = recording
                    .as_ref()
                    .is_some_and(|it| it.end.is_none() && is_running(&it.process));
                if !running || Instant::now() >= until {
                    break (recording, running);
                }
                drop(source);
                std::thread::sleep(Duration::from_millis(20));
            };
            let Some(mut recording) = recording else {
                tell(&format!("{}: is no spool", path.display()));
                kept = true;
                continue;
            };
            if running {
                recording.notes.pop();
                recording.notes.push(
                    "still runs: its trace has what it did until the command ended; the spool is kept"
                        .to_owned(),
                );
            }
            let pid = recording.process.pid;
            for note in &recording.notes {
                tell(&format!("process {pid}: {note}"));
            }
            traces.push(self.write(&recording, &host, spools.len() == 1)?);
            if !running && !self.keep {
                fs::remove_file(path).map_err(|error| Error::io(path, error))?;
            }
            kept |= running;
        }
        if traces.is_empty() {
            tell(
                "no process started CUDA or used NVTX: there is no device activity and no range (is there an NVIDIA driver?)",
            );
        }
        if traces.iter().all(|trace| trace.samples == 0) && !self.samples.values.is_empty() {
            traces.push(write_samples(self.folder, self.samples, self.start)?);
        }
        if !kept {
            // Other files in it are not ours.
            let _ = fs::remove_dir(self.spools);
        }
        if traces.is_empty() {
            let _ = fs::remove_dir(self.folder);
        }
        traces.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(traces)
    }

    /// Writes the trace of one process; `alone` when there is no other.
    fn write(&self, recording: &Recording, host: &str, alone: bool) -> Result<TraceFile> {
        let mut devices = link_devices(recording, self.samples);
        if alone && recording.devices.is_empty() {
            // Which devices it used is not known.
            let all = self.samples.devices.iter();
            devices = all.map(|known| (known.index, known.index)).collect();
        }
        let source = TraceSource {
            recording,
            samples: self.samples,
            host,
            base: base_of(recording, self.start),
            notes: &recording.notes,
            devices,
        };
        let path = name::trace_path(self.folder, host, &recording.process);
        write_file(&path, &source)?;
        let shown = |device: &u32| source.devices.contains_key(device);
        Ok(TraceFile {
            path,
            pid: recording.process.pid,
            rank: recording.process.rank,
            device_events: recording.device_events(),
            ranges: recording.ranges.len(),
            samples: self
                .samples
                .values
                .iter()
                .filter(|it| shown(&it.device))
                .count(),
        })
    }
}

/// Counters alone, as a trace.
fn write_samples(folder: &Path, samples: &Samples, start: u64) -> Result<TraceFile> {
    let host = name::host();
    let recording = Recording::default();
    let source = TraceSource {
        recording: &recording,
        samples,
        devices: samples
            .devices
            .iter()
            .map(|it| (it.index, it.index))
            .collect(),
        host: &host,
        base: base_of(&recording, start),
        notes: &samples.notes,
    };
    let path = name::free(folder, &format!("{host}_nvml"));
    write_file(&path, &source)?;
    Ok(TraceFile {
        path,
        pid: 0,
        rank: None,
        device_events: 0,
        ranges: 0,
        samples: samples.values.len(),
    })
}

/// The whole second at which the run started: the same one in all traces of it.
fn base_of(recording: &Recording, start: u64) -> u64 {
    let start = recording.process.run.unwrap_or(start);
    start / 1_000_000_000 * 1_000_000_000
}

/// Writes a trace, which is there as a whole or not at all.
fn write_file(path: &Path, source: &TraceSource<'_>) -> Result<()> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    hidden.push(".tmp");
    let temporary = path.with_file_name(hidden);
    let write = || {
        let file = File::create(&temporary)?;
        let encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
        let mut out = BufWriter::with_capacity(1 << 18, encoder);
        write_trace(source, &mut out)?;
        let encoder = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        encoder.finish()?.flush()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        // The failure to tell is the first one.
        let _ = fs::remove_file(&temporary);
        Error::io(path, error)
    })
}

/// True while the process itself, not another of its id, runs.
fn is_running(process: &Process) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut words = rest.split_whitespace();
    let state = words.next();
    let started = words.nth(18).and_then(|ticks| ticks.parse().ok());
    !matches!(state, Some("Z" | "X")) && started.is_some() && started == process.start_ticks
}
