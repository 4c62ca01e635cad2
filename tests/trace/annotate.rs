//! Annotated traces: what a viewer drops of the original, it does not drop of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, Attribution, Request, attribute_paths};
use tracekit::ingest::IngestOptions;
use tracekit::rewrite::{AnnotateInput, Annotated, annotate};
use tracekit::{Ns, Severity};

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

/// Sets of ranks of the corpus, and the folders that have them.
const SETS: [&str; 5] = [
    "public/facebookresearch+HolisticTraceAnalysis/tests/data/trace_filter",
    "public/facebookresearch+param/et_replay/tests/inputs/dlrm_kineto",
    "public/astra-sim+astra-sim/my_test/inputs/workload/megatron-tp8",
    "torch-cpu/2.15.0/ddp_gloo",
    "torch-cpu/2.1.2/ddp_gloo_ckpt_nonreentrant",
];

#[test]
fn sets_of_real_ranks_become_one_trace() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    for set in SETS {
        let folder = corpus.join(set);
        let mut files = files_under(&folder);
        files.retain(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".json.gz") && !name.contains("truth")
        });
        let contents: Vec<Vec<u8>> = files
            .iter()
            .map(|path| whole_content(path).unwrap())
            .collect();
        let labels: Vec<String> = (0..files.len())
            .map(|rank| format!("rank {rank}"))
            .collect();
        // Clocks that are far apart, so that what they are moved by shows.
        let ahead = |rank: usize| Ns(i64::try_from(rank).unwrap() * 1_234_567);
        let inputs: Vec<AnnotateInput<'_>> = contents
            .iter()
            .zip(&labels)
            .enumerate()
            .map(|(rank, (stored, label))| AnnotateInput {
                stored,
                label,
                clock: Some((ahead(rank), None)),
            })
            .collect();
        let mut out = Vec::new();
        let options = AttributeOptions::default();
        let done = annotate(&inputs, &mut out, &options, &|_, _| {}).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (dropped(&trace), done.crowded, done.left_out),
            (0, 0, 0),
            "{set}"
        );

        // Every event is there, in processes of its rank, with identifiers that no other rank has.
        let events = trace["traceEvents"].as_array().unwrap();
        let own = events.iter().filter(|event| event["cat"] != "tracekit");
        let mut ranks: BTreeMap<i64, (u64, BTreeSet<String>)> = BTreeMap::new();
        for event in own {
            let Some(pid) = event["pid"].as_i64() else {
                continue;
            };
            let (count, links) = ranks.entry(pid / 100_000).or_default();
            *count += u64::from(event["ph"] == "X");
            for key in ["correlation", "External id"] {
                let link = &event["args"][key];
                if !link.is_null() && link != 0 {
                    links.insert(format!("{key} {link}"));
                }
            }
        }
        assert_eq!(ranks.len(), files.len(), "{set}");
        let mut all: BTreeSet<&String> = BTreeSet::new();
        for ((_, (count, links)), content) in ranks.iter().zip(&contents) {
            let original: Value = serde_json::from_slice(content).unwrap();
            let events = original["traceEvents"].as_array().unwrap();
            let complete = events.iter().filter(|event| event["ph"] == "X").count();
            assert_eq!(*count, complete as u64, "{set}");
            assert!(links.iter().all(|link| all.insert(link)), "{set}");
        }

        // The times are those of the ranks, moved by what their clocks are ahead.
        let kept = tempfile::tempdir().unwrap();
        let path = kept.path().join("merged.json");
        std::fs::write(&path, &out).unwrap();
        let merged = attribution(&path);
        let apart: i64 = files
            .iter()
            .map(|file| attribution(file).totals.total.sum_ns.0)
            .sum();
        assert_eq!(merged.totals.total.sum_ns.0, apart, "{set}");
        let shifts = trace["tracekit_annotate"]["inputs"].as_array().unwrap();
        for (rank, shift) in shifts.iter().enumerate() {
            assert_eq!(shift["clock"]["ahead_ns"], ahead(rank).0, "{set}");
        }
    }
}

/// A viewer's copy of a damaged trace is a trace of which something is missing, alone and among others.
#[test]
fn what_was_wrong_with_the_inputs_is_noted() {
    let replaced = std::fs::read(package("fixtures/golden/replaced-events/trace.json")).unwrap();
    let clean = std::fs::read(package("fixtures/golden/two-steps/trace.json")).unwrap();
    let lost = String::from_utf8(clean.clone()).unwrap().replacen(
        '{',
        r#"{"tracekit_repair": {"tool": "tracekit 0.1.0", "lost": [[12, 40]], "lost_bytes": 28},"#,
        1,
    );
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("annotated.json");
    for (inputs, lost) in [
        (vec![&replaced[..]], true),
        (vec![lost.as_bytes()], true),
        (vec![&clean, &replaced], true),
        (vec![&clean, lost.as_bytes(), &replaced], true),
        (vec![&clean], false),
        (vec![&clean, &clean], false),
    ] {
        let labelled: Vec<(&[u8], &str)> = inputs.into_iter().zip(["a", "b", "c"]).collect();
        let (annotated, _) = annotated(&labelled).unwrap();
        std::fs::write(&path, annotated).unwrap();
        let found = attribution(&path).health;
        let worst = found.iter().map(|entry| entry.severity).max();
        assert_eq!(worst >= Some(Severity::DataLoss), lost, "{found:?}");
    }
}
