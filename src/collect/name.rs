//! Names of files and of this machine.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::recording::Process;

/// Nanoseconds since 1970 now.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// The name of this machine, of letters that file names may have anywhere.
pub(super) fn host() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().take(64).map(plain).collect();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

/// Where the trace of `process` goes in `folder`.
pub(super) fn trace_path(
    folder: &Path,
    host: &str,
    process: &Process,
    is_same: impl Fn(&Path) -> bool,
) -> PathBuf {
    let rank = process
        .rank
        .map_or_else(String::new, |rank| format!("_rank{rank}"));
    free(folder, &format!("{host}_{}{rank}", process.pid), is_same)
}

/// A trace called `stem` that is not in `folder` yet, or `is_same` as the one to write: a process id may be
/// used again, and `exec` keeps it.
pub(super) fn free(folder: &Path, stem: &str, is_same: impl Fn(&Path) -> bool) -> PathBuf {
    let path = |stem: &str| folder.join(format!("{stem}.pt.trace.json.gz"));
    let first = path(stem);
    if !first.exists() || is_same(&first) {
        return first;
    }
    let mut number = 2_u32;
    loop {
        let next = path(&format!("{stem}-{number}"));
        if !next.exists() || is_same(&next) {
            return next;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_host_process_and_rank() {
        let folder = tempfile::tempdir().unwrap();
        let process = Process {
            pid: 7,
            rank: Some(3),
            ..Process::default()
        };
        let path = trace_path(folder.path(), "node1", &process, |_| false);
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name(&path), "node1_7_rank3.pt.trace.json.gz");
        std::fs::write(&path, "").unwrap();
        let next = trace_path(folder.path(), "node1", &process, |_| false);
        assert_eq!(name(&next), "node1_7_rank3-2.pt.trace.json.gz");
        let same = trace_path(folder.path(), "node1", &process, |it| it == path);
        assert_eq!(same, path);
        assert!(
            host()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        );
    }
}
