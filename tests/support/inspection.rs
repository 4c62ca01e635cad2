//! Inspections as rows of JSON, and what other tools say, where their answers lie beside the corpus.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use tracekit::attribute::{AttributeOptions, Request};
use tracekit::ingest::IngestOptions;
use tracekit::inspect::{InspectOptions, Topic, inspect_paths};

use super::answer::{differences, stored};
use super::builder::{Content, Layout};
use super::seeded::Seeded;
use super::{corpus, gzip};

/// The frames of `topic` over `path`.
pub(crate) fn frames(path: &Path, topic: Topic, options: &InspectOptions) -> Vec<Value> {
    let attribute = AttributeOptions::default();
    let request = Request {
        salvage: None,
        paths: &[path.to_owned()],
        ingest: IngestOptions::default(),
        options: &attribute,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    };
    let inspection = inspect_paths(&request, topic, options, &|_| {})
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let inspection = serde_json::to_value(inspection).unwrap();
    inspection["frames"].as_array().unwrap().clone()
}

/// The rows of the frame called `name`.
pub(crate) fn rows(frames: &[Value], name: &str) -> Vec<Value> {
    let frame = frames.iter().find(|frame| frame["name"] == name);
    let frame = frame.unwrap_or_else(|| panic!("no frame is called {name}"));
    frame["rows"].as_array().unwrap().clone()
}

/// The sum of a column; rows without it do not count.
pub(crate) fn sum(rows: &[Value], column: &str) -> i64 {
    rows.iter().filter_map(|row| row[column].as_i64()).sum()
}

/// An integer of a row.
pub(crate) fn int(row: &Value, column: &str) -> i64 {
    row[column]
        .as_i64()
        .unwrap_or_else(|| panic!("no integer {column} in {row}"))
}

/// Whether two numbers, or their absence, are the same up to `tolerance` of their size.
pub(crate) fn close(got: &Value, want: &Value, tolerance: f64) -> bool {
    match (got.as_f64(), want.as_f64()) {
        (Some(got), Some(want)) => (got - want).abs() <= tolerance * want.abs().max(1.0),
        (got, want) => got == want,
    }
}

/// What HTA said about `metric`, by the name of the trace, with the files of its ranks.
pub(crate) fn oracles_of_hta(metric: &str) -> Vec<(&'static str, Value, Vec<PathBuf>)> {
    let traces = [
        "alexnet",
        "amd_mi250",
        "nccl",
        "neg_queue",
        "simple_add",
        "trace_filter_2ranks",
        "triton",
    ];
    let read = |trace| {
        let (corpus, oracle) = oracle(&format!("hta/{trace}__{metric}.json"))?;
        let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
        let files = oracle["trace_files"].as_array().unwrap().iter();
        let files = files
            .map(|file| data.join(file.as_str().unwrap()))
            .collect();
        Some((trace, oracle, files))
    };
    traces.into_iter().map_while(read).collect()
}

/// The corpus folder, and what another tool said: the JSON file `oracles/{name}` beside it.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn oracle(name: &str) -> Option<(PathBuf, Value)> {
    let corpus = corpus::folder()?;
    let path = corpus.parent().unwrap().join("oracles").join(name);
    let Ok(text) = std::fs::read(&path) else {
        eprintln!("skipped: there is no {}", path.display());
        return None;
    };
    Some((corpus, serde_json::from_slice(&text).unwrap()))
}

/// How the frames of `trace` change with its order, compression, white space and the number of threads.
pub(crate) fn instabilities(
    trace: &Content,
    seed: u64,
    topic: Topic,
    options: &InspectOptions,
) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let place =
        |variant: &str, file: &str, bytes: &[u8]| stored(folder.path(), variant, file, bytes);
    let native = trace.write(Layout::Native);
    let plain = place("plain", "rank0.json", &native);
    let want = Value::from(frames(&plain, topic, options));
    let mut shuffled = trace.clone();
    Seeded::new(seed).shuffle(&mut shuffled.events);
    let others = [
        place("gz", "rank0.json.gz", &gzip(&native)),
        place("small", "rank0.json", &trace.write(Layout::Minified)),
        place("shuffled", "rank0.json", &shuffled.write(Layout::Native)),
    ];
    let mut found: Vec<String> = Vec::new();
    for other in others {
        let got = Value::from(frames(&other, topic, options));
        found.extend(differences(&want, &got));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let alone = pool.unwrap().install(|| frames(&plain, topic, options));
    found.extend(differences(&want, &Value::from(alone)));
    found
}
