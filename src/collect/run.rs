//! The whole way: run the command, sample beside it, make traces of the spools.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::convert::{Conversion, write_samples};
use super::launch::{self, Ended, Signals};
use super::library;
use super::name::now;
use super::nvml::Sampler;
use super::options::CollectOptions;
use super::spool_files::list;
use crate::error::{Error, ErrorKind, Result};

/// How long processes that are just ending are waited for.
const GRACE: Duration = Duration::from_millis(500);

/// The folder of spools, in that of the traces.
pub(super) const SPOOLS: &str = "spool";

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
        let converted = Conversion {
            folder: &options.folder,
            spools: &spools,
            samples: &samples,
            keep: options.keep_spool,
            grace: GRACE,
            start,
        }
        .run(tell);
        // The status of the command is passed on whatever becomes of the traces.
        converted.tell_errors(tell);
        traces = converted.traces;
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
    let wanted = launch::not_ignored(&[
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ]);
    let mut signals = signal_hook::iterator::Signals::new(wanted).map_err(failed)?;
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
    put("RING", options.ring.then(|| "1".to_owned()));
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
