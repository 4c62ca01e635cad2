//! Which run, rank and profiler window a file belongs to, from its place, name and metadata.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// `rank-0`, `rank_0`, `rank0`, `worker0`: the number of a rank in a file or folder name.
static RANK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:^|[^a-z])(?:rank|worker)[-_]?([0-9]{1,9})(?:$|[^0-9])")
        .expect("valid pattern")
});

/// Folders that hold one rank each, not one strategy each.
static RANK_FOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:rank|worker|node|host)[-_]?[0-9]{1,9}$").expect("valid pattern")
});

/// `worker0.1623143089861.pt.trace.json.gz`: what names the worker, and when it was written.
static WINDOW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(.*?)\.([0-9]{6,20})((?:\.pt)?\.trace\.json)$").expect("valid pattern")
});

/// The rank that a path names: in the file name, else in the folder's.
pub(crate) fn rank_of_path(path: &Path) -> Option<i64> {
    let mut names = path
        .components()
        .rev()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
    let file = names.next()?;
    if let Some(found) = RANK.captures(file) {
        return found[1].parse().ok();
    }
    let folder = names.next().filter(|folder| RANK_FOLDER.is_match(folder))?;
    RANK.captures(folder)?[1].parse().ok()
}

/// True for the name of a folder that holds one rank.
#[cfg(feature = "batch")]
pub(crate) fn is_rank_folder(name: &str) -> bool {
    RANK_FOLDER.is_match(name)
}

/// Where in a file name its rank is told.
#[cfg(feature = "batch")]
pub(crate) fn rank_in_name(name: &str) -> Option<std::ops::Range<usize>> {
    RANK.find(name).map(|found| found.range())
}

/// Which worker wrote a file, and the timestamp in its name. Files of one worker that differ only
/// in the timestamp are further profiler windows of the same rank.
pub(crate) fn window_of_path(path: &Path) -> (PathBuf, u64) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return (path.to_owned(), 0);
    };
    let plain = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(name);
    let Some(found) = WINDOW.captures(plain) else {
        return (path.with_file_name(plain), 0);
    };
    let worker = format!("{}{}", &found[1], &found[3]);
    (path.with_file_name(worker), found[2].parse().unwrap_or(0))
}

/// The folder whose files are one run: the file's, without rank folders.
pub(crate) fn run_folder(path: &Path, root: Option<&Path>) -> PathBuf {
    let mut folder = path.parent().unwrap_or(Path::new("")).to_owned();
    while root.is_none_or(|root| folder != root)
        && folder
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| RANK_FOLDER.is_match(name))
        && folder.pop()
    {}
    folder
}

/// The name of a run: its folder below the directory given, else what was given.
pub(crate) fn run_name(
    folder: &Path,
    root: Option<&Path>,
    given: &Path,
    several_roots: bool,
) -> String {
    let below = root.and_then(|root| folder.strip_prefix(root).ok());
    let text = |path: &Path| {
        let text = path.to_string_lossy().trim_end_matches('/').to_owned();
        if text.is_empty() {
            path.to_string_lossy().into_owned()
        } else {
            text
        }
    };
    match (below, root) {
        (Some(below), Some(root)) if below.as_os_str().is_empty() => text(root),
        (Some(_), Some(_)) if several_roots => text(folder),
        (Some(below), Some(_)) => text(below),
        _ => text(given),
    }
}

/// True when a run is called `name`, whole or by its last folder.
pub(crate) fn is_called(run: &str, name: &str) -> bool {
    run == name || Path::new(run).file_name().and_then(|last| last.to_str()) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(path: &str) -> Option<i64> {
        rank_of_path(Path::new(path))
    }

    #[test]
    fn ranks_are_read_from_names() {
        assert_eq!(
            rank("t/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"),
            Some(34)
        );
        assert_eq!(rank("worker0.1623143089861.pt.trace.json"), Some(0));
        assert_eq!(rank("t/run_rank_7.json"), Some(7));
        assert_eq!(rank("rank3/trace.json"), Some(3));
        assert_eq!(rank("trace.json"), None);
        assert_eq!(rank("frank1.json"), None);
        assert_eq!(rank("rank_99999999999999999999.json"), None);
    }

    #[test]
    fn windows_of_one_worker_differ_in_the_timestamp() {
        let (worker, time) = window_of_path(Path::new("t/a.1623143089861.pt.trace.json.gz"));
        let (same, later) = window_of_path(Path::new("t/a.1623143089999.pt.trace.json"));
        assert_eq!(worker, same);
        assert!(time < later);
        assert_ne!(
            worker,
            window_of_path(Path::new("t/b.1623143089861.pt.trace.json")).0
        );
    }

    #[test]
    fn runs_are_folders_without_rank_folders() {
        let root = Path::new("traces");
        let folder = run_folder(Path::new("traces/baseline/rank0/a.json"), Some(root));
        assert_eq!(folder, Path::new("traces/baseline"));
        assert_eq!(run_name(&folder, Some(root), root, false), "baseline");
        assert_eq!(run_name(root, Some(root), root, false), "traces");
        let file = Path::new("x/a.json");
        assert_eq!(
            run_name(&run_folder(file, None), None, file, true),
            "x/a.json"
        );
        assert!(is_called("2024/baseline", "baseline"));
    }
}
