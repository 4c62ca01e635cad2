//! Traces of the spools of a run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::decode::decode;
use super::name::{self, now};
use super::nvml::Samples;
use super::recording::{Process, Recording};
use super::run::{SPOOLS, TraceFile};
use super::sample_file;
use super::spool_files::{SpoolFiles, list};
use super::write::{SPOOL_KEY, Source as TraceSource, link_devices, write_trace};
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::Source;

/// Makes traces of the spools of a run that could not do so itself, because it was killed.
///
/// # Errors
/// When there are no spools in `folder`, or one of them cannot be made a trace of; the others are.
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
    let mut converted = Conversion {
        folder,
        spools: &spools,
        samples: &sample_file::load(&spools)?,
        keep,
        grace: Duration::ZERO,
        start: now(),
    }
    .run(tell);
    match converted.errors.pop() {
        None => Ok(converted.traces),
        Some(last) => {
            converted.tell_errors(tell);
            Err(last)
        }
    }
}

/// The trace of a spool, given as its files in order, uncompressed, and the notes about it; `None` when it
/// is no spool.
#[doc(hidden)]
pub fn convert_bytes(spool: &[&[u8]]) -> Option<(Vec<u8>, Vec<String>)> {
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
        spool: None,
    };
    // Writing to memory cannot fail.
    write_trace(&source, &mut out).ok()?;
    Some((out, recording.notes))
}

/// What became of spools.
#[derive(Default)]
pub(super) struct Converted {
    /// In order of path.
    pub(super) traces: Vec<TraceFile>,
    /// Why there are not more.
    errors: Vec<Error>,
}

impl Converted {
    /// Says what failed.
    pub(super) fn tell_errors(&self, tell: &mut dyn FnMut(&str)) {
        for error in &self.errors {
            tell(&format!(
                "a trace is missing, and its spool is kept: {error}"
            ));
        }
    }
}

/// A spool that was read.
struct Read<'s> {
    spool: &'s SpoolFiles,
    recording: Recording,
    /// Its process goes on.
    running: bool,
}

/// Making traces of spools.
pub(super) struct Conversion<'a> {
    pub(super) folder: &'a Path,
    pub(super) spools: &'a Path,
    pub(super) samples: &'a Samples,
    /// Keep the spools.
    pub(super) keep: bool,
    /// How long processes that are just ending are waited for.
    pub(super) grace: Duration,
    /// When the run started, in nanoseconds since 1970.
    pub(super) start: u64,
}

impl Conversion<'_> {
    /// Writes a trace for each spool, and removes the spools that nothing will be added to. A spool that
    /// fails is kept, and the others are gone on with.
    pub(super) fn run(&self, tell: &mut dyn FnMut(&str)) -> Converted {
        let host = name::host();
        let mut converted = Converted::default();
        let mut kept = self.keep;
        let until = Instant::now() + self.grace;
        let spools = list(self.spools).unwrap_or_else(|error| {
            converted.errors.push(error);
            Vec::new()
        });
        // Counters of devices that no process is known to have used go into the first such trace.
        let mut held = None;
        for spool in &spools {
            match self.read(spool, until, tell) {
                Ok(Some(read)) if held.is_none() && read.recording.devices.is_empty() => {
                    held = Some(read);
                }
                Ok(Some(read)) => kept |= self.finish(&read, &host, false, &mut converted),
                Ok(None) => kept = true,
                Err(error) => {
                    converted.errors.push(error);
                    kept = true;
                }
            }
        }
        if let Some(read) = held {
            let all = converted.traces.iter().all(|trace| trace.samples == 0);
            kept |= self.finish(&read, &host, all, &mut converted);
        }
        if spools.is_empty() {
            tell(
                "no process started CUDA or used NVTX: there is no device activity and no range (is there an NVIDIA driver, and may the program write here?)",
            );
        }
        let traces = &mut converted.traces;
        if traces.iter().all(|trace| trace.samples == 0) && !self.samples.values.is_empty() {
            match write_samples(self.folder, self.samples, self.start) {
                Ok(trace) => traces.push(trace),
                Err(error) => converted.errors.push(error),
            }
        }
        if kept && !self.samples.values.is_empty() {
            let saved = sample_file::save(self.spools, self.samples);
            converted.errors.extend(saved.err());
        } else if !kept {
            // Other files in it are not ours; where there is none of these, all is well.
            let _ = fs::remove_file(self.spools.join(sample_file::NAME));
            let _ = fs::remove_dir(self.spools);
        }
        if traces.is_empty() {
            let _ = fs::remove_dir(self.folder);
        }
        traces.sort_by(|a, b| a.path.cmp(&b.path));
        converted
    }

    /// What is in a spool; `None` when it is none.
    fn read<'s>(
        &self,
        spool: &'s SpoolFiles,
        until: Instant,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Option<Read<'s>>> {
        let (recording, running) = loop {
            let sources = spool.open()?;
            let bytes: Vec<&[u8]> = sources.iter().map(Source::bytes).collect();
            let recording = decode(&bytes);
            let running = recording
                .as_ref()
                .is_some_and(|it| it.end.is_none() && is_running(&it.process));
            if !running || Instant::now() >= until {
                break (recording, running);
            }
            drop(sources);
            std::thread::sleep(Duration::from_millis(20));
        };
        let Some(mut recording) = recording else {
            let folder = self.spools.display();
            tell(&format!("{folder}: {} is no spool", spool.stem));
            return Ok(None);
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
        Ok(Some(Read {
            spool,
            recording,
            running,
        }))
    }

    /// Writes the trace of what was read, with the counters of all devices if `all`; true when its spool is
    /// kept.
    fn finish(&self, read: &Read<'_>, host: &str, all: bool, converted: &mut Converted) -> bool {
        let written = self.write(&read.recording, &read.spool.stem, host, all);
        let done = written.and_then(|trace| {
            converted.traces.push(trace);
            if read.running || self.keep {
                return Ok(());
            }
            read.spool.remove()
        });
        let failed = done.is_err();
        converted.errors.extend(done.err());
        failed || read.running
    }

    /// Writes the trace of one process, whose spool is called `spool`, with the counters of all devices if
    /// `all`.
    fn write(
        &self,
        recording: &Recording,
        spool: &str,
        host: &str,
        all: bool,
    ) -> Result<TraceFile> {
        let mut devices = link_devices(recording, self.samples);
        if all {
            let known = self.samples.devices.iter();
            devices = known.map(|known| (known.index, known.index)).collect();
        }
        let source = TraceSource {
            recording,
            samples: self.samples,
            host,
            base: base_of(recording, self.start),
            notes: &recording.notes,
            devices,
            spool: Some(spool),
        };
        let path = name::trace_path(self.folder, host, &recording.process, |path| {
            is_of_spool(path, spool)
        });
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
pub(super) fn write_samples(folder: &Path, samples: &Samples, start: u64) -> Result<TraceFile> {
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
        spool: Some(sample_file::NAME),
    };
    let path = name::free(folder, &format!("{host}_nvml"), |path| {
        is_of_spool(path, sample_file::NAME)
    });
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

/// True when the trace `path` was made from `spool` before, which it tells at its beginning.
fn is_of_spool(path: &Path, spool: &str) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut head = Vec::new();
    // A file that is cut or no trace is that of another.
    let _ = GzDecoder::new(file).take(1 << 10).read_to_end(&mut head);
    let wanted = format!("\"{SPOOL_KEY}\": {},", serde_json::json!(spool));
    memchr::memmem::find(&head, wanted.as_bytes()).is_some()
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
