//! Profiled runs that `tracekit collect` recorded in the place of PyTorch's profiler.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::trace_folder::traces_in;
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, object};

/// The name of the profiler in records.
pub(crate) const PROFILER: &str = "torch.profiler";

/// The name of the collector in records.
pub(crate) const COLLECTOR: &str = "tracekit collect";

/// How the collector tells of itself in a trace, in front of the events.
const KEY: &[u8] = b"\"tracekit_collect\":";
const EVENTS: &[u8] = b"\"traceEvents\":";

/// What is in front of the events is shorter, whatever the command was.
const LONGEST_HEAD: u64 = 4 << 20;

/// What the trace `path` says about how it was collected; `None` when another tool wrote it.
fn about(path: &Path) -> Result<Option<Json>> {
    let failed = |error| Error::io(path, error);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let is_gzip = file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    let mut head = Vec::new();
    // A damaged file is told of when it is attributed.
    let _ = if is_gzip {
        let content = MultiGzDecoder::new(file);
        content.take(LONGEST_HEAD).read_to_end(&mut head)
    } else {
        file.take(LONGEST_HEAD).read_to_end(&mut head)
    };
    let end = memchr::memmem::find(&head, EVENTS).unwrap_or(head.len());
    let head = &head[..end];
    let Some(at) = memchr::memmem::find(head, KEY) else {
        return Ok(None);
    };
    let mut values = serde_json::Deserializer::from_slice(&head[at + KEY.len()..]).into_iter();
    let value: Option<serde_json::Result<Json>> = values.next();
    Ok(value.and_then(std::result::Result::ok))
}

/// The tool that wrote the trace `path`.
pub(crate) fn tool_of(path: &Path) -> &'static str {
    match about(path) {
        Ok(Some(_)) => COLLECTOR,
        Ok(None) | Err(_) => PROFILER,
    }
}

/// What the runs of each strategy were recorded with.
pub(crate) struct Recorded {
    /// One tool for all of them: what two tools measure is not compared.
    pub(crate) tool: &'static str,
    /// By strategy, in order, the processes that were recorded; `null` for the profiler, which does not
    /// say.
    pub(crate) processes: Vec<Json>,
}

impl Recorded {
    /// Looks at the traces of `strategies` in folders of that name in `root`.
    ///
    /// # Errors
    /// When a trace cannot be read, a folder holds nothing but spools, or the tools differ.
    pub(crate) fn read(root: &Path, strategies: &[String]) -> Result<Self> {
        let mut tools: Vec<(String, &'static str)> = Vec::new();
        let mut processes = Vec::new();
        for name in strategies {
            let folder = root.join(name);
            let mut of_strategy = Vec::new();
            for path in traces_in(&folder) {
                let about = about(&path)?;
                let tool = if about.is_some() { COLLECTOR } else { PROFILER };
                tools.push((name.clone(), tool));
                of_strategy.extend(about.map(|about| process(&about)));
            }
            processes.push(if of_strategy.is_empty() {
                Json::Null
            } else {
                of_strategy.into()
            });
        }
        let first = tools.first().map_or(PROFILER, |(_, tool)| *tool);
        if let Some((name, tool)) = tools.iter().find(|(_, tool)| *tool != first) {
            let message = format!(
                "trace_tools_differ: {} is from {first}, {name} from {tool}; record both in the same way",
                tools[0].0
            );
            return Err(Error::new(ErrorKind::State, message).in_file(root));
        }
        Ok(Self {
            tool: first,
            processes,
        })
    }

    /// What the tool looked at.
    pub(crate) fn activities(&self) -> Vec<&'static str> {
        if self.tool == COLLECTOR {
            vec!["CUDA", "NVTX", "NVML"]
        } else {
            vec!["CPU", "CUDA"]
        }
    }
}

/// Why there is no trace in `folder`, when the reason is a run that was killed.
pub(crate) fn without_trace(folder: &Path) -> Option<String> {
    let spools: Vec<PathBuf> = std::fs::read_dir(folder.join("spool"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "tkspool"))
        .collect();
    (!spools.is_empty()).then(|| {
        format!(
            "it has spools of a run that was killed: tracekit collect --convert {}",
            folder.display()
        )
    })
}

/// What of a process is kept: whether all of it is there.
fn process(about: &Json) -> Json {
    object! {
        "pid" => about.at(&["pid"]),
        "ended_in_order" => about.at(&["ended_in_order"]),
        "device_events" => about.at(&["device_events"]),
        "ranges" => about.at(&["ranges"]),
        "removed" => about.at(&["removed"]),
        "notes" => about.at(&["notes"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(traces: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in traces {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    const OURS: &str = r#"{"schemaVersion":1,"tracekit_collect": {"pid": 7, "ended_in_order": true, "x": 1},
        "traceEvents":[]}"#;
    const THEIRS: &str =
        r#"{"schemaVersion":1,"traceEvents":[{"name":"\"tracekit_collect\":{\"pid\":8}"}]}"#;

    fn read(traces: &[(&str, &str)]) -> Result<Recorded> {
        let names = ["baseline", "checkpoint"].map(str::to_owned);
        Recorded::read(folder(traces).path(), &names)
    }

    #[test]
    fn the_tool_is_told_by_the_head_of_the_trace() {
        let both = read(&[
            ("baseline/a.pt.trace.json", OURS),
            ("checkpoint/a.pt.trace.json", OURS),
        ]);
        let both = both.unwrap();
        assert_eq!(both.tool, COLLECTOR);
        let first = &both.processes[0].items()[0];
        assert_eq!(first.at(&["pid"]).as_int(), Some(7));
        assert!(first.get("x").is_none());
        let profiled = read(&[("baseline/a.pt.trace.json", THEIRS)]).unwrap();
        assert_eq!(profiled.tool, PROFILER);
        assert!(profiled.processes[0].is_null());
    }

    #[test]
    fn two_tools_are_not_compared() {
        let error = read(&[
            ("baseline/a.pt.trace.json", OURS),
            ("checkpoint/a.pt.trace.json", THEIRS),
        ]);
        let message = error.err().unwrap().to_string();
        let want = "trace_tools_differ: baseline is from tracekit collect, checkpoint from torch.profiler; record both in the same way";
        assert!(message.contains(want), "{message}");
    }

    #[test]
    fn a_killed_run_is_told_what_to_do() {
        let folder = folder(&[("spool/7-1.tkspool", ""), ("other/x", "")]);
        let told = without_trace(folder.path()).unwrap();
        assert!(told.contains("tracekit collect --convert"), "{told}");
        assert_eq!(without_trace(&folder.path().join("other")), None);
    }
}
