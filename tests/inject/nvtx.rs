//! Ranges of programs that use NVIDIA's own NVTX: its headers, and the package nvtx for Python.
//!
//! `tests/inject/layouts.sh` fetches them and runs these tests; without them they say that they are
//! skipped.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Run, has_python};

#[expect(clippy::print_stderr, reason = "says why a test does nothing")]
fn wheels() -> Option<PathBuf> {
    let folder = std::env::var_os("TRACEKIT_NVTX_WHEELS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: TRACEKIT_NVTX_WHEELS names no NVTX; see tests/inject/layouts.sh");
    }
    folder.filter(|_| has_python())
}

/// Names of the ranges, with their domains, of a program that needs no CUDA.
fn ranges(run: &Run) -> Vec<String> {
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let trace = done.only();
    let ranges = trace.events("user_annotation");
    let name = |range: &&serde_json::Value| {
        let name = range["name"].as_str().unwrap();
        match range["args"]["domain"].as_str() {
            Some(domain) => format!("{domain}: {name}"),
            None => name.to_owned(),
        }
    };
    assert!(
        ranges
            .iter()
            .all(|range| range["args"]["finished"].is_null())
    );
    ranges.iter().map(name).collect()
}

#[test]
fn programs_with_the_headers_of_nvtx_have_their_ranges() {
    let Some(folder) = wheels() else {
        return;
    };
    let header = "import glob, os, sys; print(os.path.dirname(os.path.dirname(glob.glob(sys.argv[1] + '/**/nvtx3/nvToolsExt.h', recursive=True)[0])))";
    let found = Command::new("python3")
        .args(["-c", header])
        .arg(&folder)
        .output()
        .unwrap();
    let include = String::from_utf8(found.stdout).unwrap();
    let built = tempfile::tempdir().unwrap();
    let program = built.path().join("ranges");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/ranges.c");
    let status = Command::new("cc")
        .args(["-I", include.trim(), source, "-ldl", "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    let want = [
        "phase.forward",
        "wide \u{e9}",
        "library: registered",
        "started",
        "by attributes",
        "library: by attributes",
        "mark",
    ];
    assert_eq!(ranges(&Run::of(&[program.to_str().unwrap()])), want);
}

#[test]
fn programs_with_nvtx_for_python_have_their_ranges() {
    let Some(folder) = wheels() else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/ranges.py");
    let run =
        Run::of(&["python3", script]).set("PYTHONPATH", folder.join("python").to_str().unwrap());
    let want = [
        "phase.forward",
        "library: inner",
        "phase.backward",
        "started",
        "mark",
        "library: decorated",
    ];
    assert_eq!(ranges(&run), want);
}
