//! Which traces of which strategies there are. That a trace exists says nothing about a bottleneck.

use std::path::{Path, PathBuf};

use super::collected::tool_of;
use super::root::Root;
use crate::gate::{Json, PROFILER_METRICS, object};

/// Names of traces; compressed ones, too.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".pt.trace.json", ".pt.trace.json.gz"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The traces in `folder`, not below it, by path.
pub fn traces_in(folder: &Path) -> Vec<PathBuf> {
    let paths = entries(folder).into_iter();
    paths
        .filter(|path| path.is_file() && is_trace(path))
        .collect()
}

fn traces_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        // Links are not followed, so no folder is looked at twice.
        let is_folder = path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir());
        if is_folder && depth < 64 {
            traces_below(&path, depth + 1, found);
        } else if path.is_file() && is_trace(&path) {
            found.push(path);
        }
    }
}

/// What is in the folder of traces `trace_dir`, with a sub-folder a strategy.
pub fn inspect_profile_trace(root: &Root, trace_dir: &Path, expected: &[String]) -> Json {
    let shown = |path: &Path| {
        let relative = root.relative(path);
        relative.unwrap_or_else(|_| path.to_string_lossy().into_owned())
    };
    let mut files = Vec::new();
    if trace_dir.is_dir() {
        traces_below(trace_dir, 0, &mut files);
    }
    files.sort();
    let mut by_strategy = Json::object();
    let mut missing = Vec::new();
    for name in expected {
        let traces = traces_in(&trace_dir.join(name));
        if traces.is_empty() {
            missing.push(name.clone());
        }
        let traces: Vec<String> = traces.iter().map(|path| shown(path)).collect();
        by_strategy.set(name.as_str(), traces);
    }
    let collected = !files.is_empty();
    object! {
        "status" => if collected { "collected" } else { "not_collected" },
        "tool" => files.first().map(|path| tool_of(path)),
        "trace_dir" => shown(trace_dir),
        "trace_files" => files.iter().map(|path| shown(path)).collect::<Vec<_>>(),
        "expected_strategies" => expected.to_vec(),
        "missing_strategies" => missing,
        "trace_files_by_strategy" => by_strategy,
        "measurement_role" => PROFILER_METRICS,
        "timing_for_adoption" => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_told_by_strategy() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path()).unwrap();
        let traces = root.join("traces");
        let expected = ["baseline", "checkpoint"].map(str::to_owned);
        let none = inspect_profile_trace(&root, &traces, &expected);
        assert_eq!(none.at(&["status"]).as_str(), Some("not_collected"));
        assert!(none.get("tool").unwrap().is_null());
        std::fs::create_dir_all(traces.join("baseline/deeper")).unwrap();
        for name in [
            "baseline/b.pt.trace.json",
            "baseline/a.pt.trace.json.gz",
            "baseline/deeper/c.pt.trace.json",
            "baseline/notes.json",
        ] {
            std::fs::write(traces.join(name), "{}").unwrap();
        }
        let found = inspect_profile_trace(&root, &traces, &expected);
        assert_eq!(
            found,
            Json::parse(
                r#"{"status":"collected","tool":"torch.profiler","trace_dir":"traces",
                "trace_files":["traces/baseline/a.pt.trace.json.gz","traces/baseline/b.pt.trace.json",
                    "traces/baseline/deeper/c.pt.trace.json"],
                "expected_strategies":["baseline","checkpoint"],"missing_strategies":["checkpoint"],
                "trace_files_by_strategy":{"baseline":["traces/baseline/a.pt.trace.json.gz",
                    "traces/baseline/b.pt.trace.json"],"checkpoint":[]},
                "measurement_role":"bottleneck_attribution_only","timing_for_adoption":false}"#
            )
            .unwrap()
        );
    }
}
