//! Annotated traces: what a viewer drops of the original, it does not drop of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, Attribution, Request, attribute_paths};
use tracekit::ingest::IngestOptions;
use tracekit::rewrite::{AnnotateInput, Annotated, annotate};

use crate::support::{corpus, files_under, folders_in, package, whole_content};

/// How many complete events a viewer drops, by Perfetto's rule: the events of a row go on a stack in order of
/// start, the longer first; one that ends after the one on top of it is dropped. Times are read as floating-point
/// microseconds and cut to nanoseconds.
fn dropped(trace: &Value) -> u64 {
    let events = match trace {
        Value::Array(events) => events,
        object => object["traceEvents"].as_array().unwrap(),
    };
    let mut rows: BTreeMap<(String, String), Vec<(i64, i64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let time = |key: &str| {
            let micros = match &event[key] {
                Value::String(text) => text.parse::<f64>().ok()?,
                number => number.as_f64()?,
            };
            #[expect(clippy::cast_possible_truncation, reason = "the viewer cuts, too")]
            let ns = (micros * 1_000.0) as i64;
            Some(ns)
        };
        let (Some(start), Some(length)) = (time("ts"), time("dur")) else {
            continue;
        };
        let row = (event["pid"].to_string(), event["tid"].to_string());
        rows.entry(row).or_default().push((start, length.max(0)));
    }
    let mut dropped = 0;
    for events in rows.values_mut() {
        // Sorting is stable: what is in the file first comes first.
        events.sort_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)));
        let mut stack: Vec<i64> = Vec::new();
        for (start, length) in events {
            while stack.last().is_some_and(|end| end <= start) {
                stack.pop();
            }
            let end = start.saturating_add(*length);
            if stack.last().is_some_and(|top| end > *top) {
                dropped += 1;
            } else {
                stack.push(end);
            }
        }
    }
    dropped
}

fn annotated(inputs: &[(&[u8], &str)]) -> Option<(Vec<u8>, Annotated)> {
    let inputs: Vec<AnnotateInput<'_>> = inputs
        .iter()
        .map(|(stored, label)| AnnotateInput {
            stored,
            label,
            clock: None,
        })
        .collect();
    let mut out = Vec::new();
    let options = AttributeOptions::default();
    let done = annotate(&inputs, &mut out, &options, &|_, _| {}).ok()?;
    Some((out, done))
}

fn attribution(path: &Path) -> Attribution {
    let options = AttributeOptions::default();
    let paths = [path.to_owned()];
    let request = Request {
        paths: &paths,
        ingest: IngestOptions::default(),
        options: &options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: None,
    };
    attribute_paths(&request, &|_| {}).unwrap()
}

/// Every trace of the fixtures, and of the corpus where there is one.
fn traces() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = ["fixtures/golden", "fixtures/hostile", "fixtures/traces"]
        .into_iter()
        .flat_map(|folder| files_under(&package(folder)))
        .collect();
    if let Some(corpus) = corpus::folder() {
        paths.extend(files_under(&corpus.join("public")));
    }
    paths.retain(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".json") || name.ends_with(".json.gz")
    });
    paths
}

#[test]
fn viewers_drop_nothing_of_an_annotated_trace() {
    let (mut before, mut files) = (0, 0);
    for path in traces() {
        let Some(content) = whole_content(&path) else {
            continue;
        };
        let Some((out, done)) = annotated(&[(&content, "x")]) else {
            continue;
        };
        let name = path.display();
        let trace: Value = match serde_json::from_slice(&out) {
            Ok(trace) => trace,
            // The plain reader of this test knows no number beyond 64 bits, and no such depth.
            Err(error) => {
                let text = error.to_string();
                let beyond = text.contains("out of range") || text.contains("recursion");
                assert!(beyond, "{name}: {text}");
                continue;
            }
        };
        assert_eq!(dropped(&trace), done.crowded, "{name}");
        let events = trace["traceEvents"].as_array().unwrap();
        let own = |event: &&Value| event["cat"] == "tracekit";
        assert_eq!(
            events.iter().filter(own).count() as u64,
            done.added,
            "{name}"
        );
        // Times start at zero.
        let starts = events.iter().filter(|event| event["ph"] != "M");
        let least = starts
            .filter_map(|event| event["ts"].as_f64())
            .fold(f64::INFINITY, f64::min);
        assert!(least.is_infinite() || least == 0.0, "{name}: {least}");
        before += serde_json::from_slice(&content).map_or(0, |original: Value| {
            let is_trace = original.is_array() || original["traceEvents"].is_array();
            if is_trace { dropped(&original) } else { 0 }
        });
        files += 1;
    }
    assert!(
        files > 60 && before > 0,
        "{files} files with {before} dropped events"
    );
}

#[test]
fn the_numbers_of_devices_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("annotated.json");
    let mut compared = 0;
    for case in folders_in(&package("fixtures/golden")) {
        let trace = case.join("trace.json");
        let Ok(content) = std::fs::read(&trace) else {
            continue;
        };
        let Some((out, done)) = annotated(&[(&content, "x")]) else {
            continue;
        };
        if done.moved > 0 || done.left_out > 0 {
            continue;
        }
        std::fs::write(&path, out).unwrap();
        let (was, is) = (attribution(&trace), attribution(&path));
        assert_eq!(was.totals, is.totals, "{}", case.display());
        assert_eq!(
            was.recompute.regions,
            is.recompute.regions,
            "{}",
            case.display()
        );
        compared += 1;
    }
    assert!(compared > 20, "only {compared} were compared");
}

#[test]
fn phases_idle_time_and_recompute_are_rows() {
    let content = std::fs::read(package(
        "fixtures/golden/checkpoint-non-reentrant/trace.json",
    ))
    .unwrap();
    let (out, _) = annotated(&[(&content, "x")]).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let sum = |name: &str| -> f64 {
        let own = events.iter().filter(|event| event["cat"] == "tracekit");
        let named = own.filter(|event| event["name"].as_str().unwrap().starts_with(name));
        named.map(|event| event["dur"].as_f64().unwrap()).sum()
    };
    // As `tracekit attribute` says: 0.030, 0.057, 0.028 and 0.140 ms.
    for (name, micros) in [("forward", 30.0), ("backward", 57.0), ("idle: ", 140.0)] {
        assert!((sum(name) - micros).abs() < 1e-6, "{name}: {}", sum(name));
    }
    let rows: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .filter_map(|event| event["args"]["name"].as_str())
        .filter(|name| name.starts_with("tracekit"))
        .collect();
    assert!(
        rows.contains(&"tracekit: phases") && rows.contains(&"tracekit: idle"),
        "{rows:?}"
    );
    assert!(
        rows.iter().any(|name| name.contains("recompute on thread")),
        "{rows:?}"
    );
}

#[test]
fn ranks_are_merged_and_kept_apart() {
    let folder = package("fixtures/golden/two-ranks/trace");
    let files = files_under(&folder);
    let contents: Vec<Vec<u8>> = files
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    let inputs: Vec<(&[u8], &str)> = contents
        .iter()
        .zip(["rank 0", "rank 1"])
        .map(|(content, label)| (content.as_slice(), label))
        .collect();
    let (out, done) = annotated(&inputs).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(dropped(&trace), done.crowded);
    let kept = tempfile::tempdir().unwrap();
    let path = kept.path().join("merged.json");
    std::fs::write(&path, &out).unwrap();
    let (apart, merged) = (attribution(&folder), attribution(&path));
    assert_eq!(merged.totals, apart.totals);
    let devices: usize = apart.ranks.iter().map(|rank| rank.devices.len()).sum();
    assert_eq!(merged.ranks[0].devices.len(), devices);
}
