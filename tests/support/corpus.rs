//! The corpus of real traces, where there is one: a folder named by `TRACEKIT_CORPUS` with the
//! sub-folders `torch-cpu` (own runs, with `manifest.json`) and `public`.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Name of the variable that holds the corpus folder.
pub(crate) const VARIABLE: &str = "TRACEKIT_CORPUS";

/// The corpus folder, or `None` after saying that the test is skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn folder() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        eprintln!("skipped: {VARIABLE} is not set");
        return None;
    };
    let folder = PathBuf::from(folder);
    assert!(
        folder.is_dir(),
        "{VARIABLE} is no folder: {}",
        folder.display()
    );
    Some(folder)
}

/// One of our own runs in the corpus.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    /// Path below `torch-cpu`.
    pub(crate) name: String,
    pub(crate) variant: String,
    pub(crate) strict_json: bool,
    pub(crate) events: u64,
    /// How the truth was recorded: `annotation`, `pystack` or `wallclock`.
    pub(crate) truth: String,
    /// Host operators that are recompute according to the truth.
    pub(crate) truth_ops: u64,
}

/// Our own runs, as the manifest of `corpus` lists them.
pub(crate) fn runs(corpus: &Path) -> Vec<Run> {
    let folder = corpus.join("torch-cpu");
    let text = std::fs::read(folder.join("manifest.json"))
        .expect("the corpus has torch-cpu/manifest.json");
    let manifest: Vec<Value> = serde_json::from_slice(&text).unwrap();
    manifest
        .iter()
        .map(|entry| {
            let name = entry["path"].as_str().unwrap().to_owned();
            Run {
                path: folder.join(&name),
                variant: entry["variant"].as_str().unwrap().to_owned(),
                strict_json: entry["strict_json"].as_bool().unwrap(),
                events: entry["events"].as_u64().unwrap(),
                truth: entry["recompute"]["truth"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                truth_ops: entry["recompute"]["truth_ops"].as_u64().unwrap_or_default(),
                name,
            }
        })
        .collect()
}

/// Every file of the corpus that may be a trace.
pub(crate) fn traces(corpus: &Path) -> Vec<PathBuf> {
    super::files_under(corpus)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            !matches!(
                name.as_ref(),
                "manifest.json" | "truth.json" | "truth_events.json.gz" | "INDEX.tsv" | "gen.py"
            )
        })
        .collect()
}
