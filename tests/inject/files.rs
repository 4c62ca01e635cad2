//! The spool of a run, and what of it is in a trace.

use std::path::PathBuf;

use crate::run::{Run, has_python};

/// The files of the spool that a run of the fixture leaves, in order.
pub(crate) fn spools(words: &[&str], options: &[&str]) -> Vec<Vec<u8>> {
    let run = Run::new(words)
        .option(&["--keep-spool", "--buffer-size", "16KiB"])
        .option(options);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let entries = std::fs::read_dir(run.output().join("spool")).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tkspool"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// The spool that a run of the fixture leaves.
pub(crate) fn spool(words: &[&str]) -> Vec<u8> {
    let mut spools = spools(words, &[]);
    assert_eq!(spools.len(), 1);
    spools.remove(0)
}

#[test]
fn a_launch_takes_less_than_400_bytes_of_spool() {
    if !has_python() {
        return;
    }
    let few = spool(&["many:1000"]).len();
    let many = spool(&["many:3000"]).len();
    // Clock frames are 40 bytes a flush, and a busy machine may make some more of them.
    let each = (many - few) / 2_000;
    assert!((200..400).contains(&each), "{each} bytes a launch");
}

#[test]
fn the_same_spool_gives_the_same_trace() {
    if !has_python() {
        return;
    }
    let spool = spool(&["steps:3", "everything", "ranges"]);
    let (first, notes) = tracekit::collect::convert_bytes(&[&spool]).unwrap();
    assert_eq!(
        tracekit::collect::convert_bytes(&[&spool]).unwrap().0,
        first
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
    serde_json::from_slice::<serde_json::Value>(&first).unwrap();
}

#[test]
fn a_launch_and_a_range_allocate_nothing_once_they_are_warm() {
    if !has_python() {
        return;
    }
    // Libraries built for tests count; those of a release do when they are asked to.
    if !cfg!(debug_assertions) {
        return;
    }
    let done = Run::new(&["allocations:20000"]).done();
    assert_eq!(done.stdout, "0 0\n", "{}", done.stderr);
    assert_eq!(done.only().count("kernel"), 20_100);
}
