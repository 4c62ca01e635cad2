//! Critical paths against those of HTA, and their laws over random and real traces.

use proptest::prelude::*;
use serde_json::{Value, json};
use tracekit::inspect::{By, InspectOptions, Topic};

use crate::support::builder::{Layout, build, few, plans};
use crate::support::corpus;
use crate::support::inspection::{frames, instabilities, int, oracle, rows, sum};

/// HTA's names of types of edges, with ours.
const TYPES: [(&str, &str); 5] = [
    ("OPERATOR_KERNEL", "operator_kernel"),
    ("DEPENDENCY", "dependency"),
    ("KERNEL_LAUNCH_DELAY", "kernel_launch_delay"),
    ("KERNEL_KERNEL_DELAY", "kernel_kernel_delay"),
    ("SYNC_DEPENDENCY", "sync_dependency"),
];

/// The numbers of the annotation that HTA was asked about, in its words and microseconds.
fn ours(frames: &[Value]) -> Value {
    let edges = rows(frames, "edges");
    let of = |name: &str, column: &str, per: i64| -> Value {
        let row = edges.iter().find(|row| row["edge"] == name).unwrap();
        assert_eq!(int(row, column) % per, 0);
        json!(int(row, column) / per)
    };
    let by = |column: &str, per: i64| -> Value {
        let pairs = TYPES
            .iter()
            .map(|(theirs, ours)| ((*theirs).to_owned(), of(ours, column, per)));
        // HTA has no entry for what is not there.
        let there = pairs.filter(|(_, number)| *number != 0 || per == 1000);
        there.collect::<serde_json::Map<_, _>>().into()
    };
    let path = &rows(frames, "critical_paths")[0];
    json!({
        "nodes": path["nodes"],
        "edges": path["edges"],
        "edge_types": by("edges", 1),
        "critical_edges": path["critical_edges"],
        "critical_edge_types": by("critical_edges", 1),
        "critical_weight_by_type": by("critical_ns", 1000),
        "total_weight": int(path, "length_ns") / 1000,
        "bounds": bounds(frames),
    })
}

fn bounds(frames: &[Value]) -> Value {
    let of = |row: &Value| (int(row, "sum_ns") / 1000, int(row, "edges"));
    rows(frames, "critical_path_summary")
        .iter()
        .filter(|row| int(row, "edges") > 0)
        .map(|row| (row["bound_by"].as_str().unwrap().to_owned(), json!(of(row))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The same of HTA's answer.
fn theirs(value: &Value) -> Value {
    let mut answer = serde_json::Map::new();
    for key in [
        "nodes",
        "edges",
        "edge_types",
        "critical_edges",
        "critical_edge_types",
        "total_weight",
    ] {
        answer.insert(key.to_owned(), value[key].clone());
    }
    let mut weights = value["critical_weight_by_type"].clone();
    for (name, _) in TYPES {
        let weight = weights[name].as_i64().unwrap_or(0);
        weights[name] = json!(weight);
    }
    answer.insert("critical_weight_by_type".into(), weights);
    let bounds: serde_json::Map<String, Value> = value["breakdown_by_bound"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["bound_by"] != "")
        .map(|row| {
            #[expect(clippy::cast_possible_truncation, reason = "whole microseconds")]
            let us = row["sum"].as_f64().unwrap() as i64;
            (
                row["bound_by"].as_str().unwrap().to_owned(),
                json!((us, &row["count"])),
            )
        })
        .collect();
    answer.insert("bounds".into(), bounds.into());
    answer.into()
}

fn annotation(value: &Value) -> InspectOptions {
    let params = &value["params"];
    InspectOptions {
        range: Some(params["annotation"].as_str().unwrap().to_owned()),
        instance: Some(usize::try_from(params["instance_id"].as_u64().unwrap()).unwrap()),
        top: 0,
        ..InspectOptions::default()
    }
}

#[test]
fn critical_paths_are_those_of_hta() {
    for name in ["simple_add", "alexnet"] {
        let Some((corpus, value)) = oracle(&format!("hta/{name}__critical_path.json")) else {
            return;
        };
        let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
        let folder = data.join(value["trace_files"][0].as_str().unwrap());
        let frames = frames(&folder, Topic::CriticalPath, &annotation(&value));
        assert_eq!(broken(&frames), Vec::<String>::new());
        assert_eq!(ours(&frames), theirs(&value["value"]), "{name}");
    }
}

/// Every broken law.
fn broken(frames: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for path in rows(frames, "critical_paths") {
        if path["length_ns"].is_null() {
            continue;
        }
        let of_range = |frame: &str| -> Vec<Value> {
            let same =
                |row: &Value| row["range"] == path["range"] && row["instance"] == path["instance"];
            let rows = rows(frames, frame);
            rows.into_iter().filter(|row| same(row)).collect()
        };
        let length = int(&path, "length_ns");
        if length > int(&path, "extent_ns") {
            found.push(format!("longer than its extent: {path}"));
        }
        for (frame, column) in [
            ("critical_path_summary", "sum_ns"),
            ("critical_path", "sum_ns"),
            ("edges", "critical_ns"),
        ] {
            let got = sum(&of_range(frame), column);
            if got != length {
                found.push(format!("{frame} adds up to {got}, not {length}: {path}"));
            }
        }
        let edges = of_range("edges");
        for column in ["edges", "critical_edges"] {
            if sum(&edges, column) != int(&path, column) {
                found.push(format!("{column} do not add up: {path}"));
            }
        }
    }
    found
}

#[test]
fn critical_paths_of_real_traces_are_no_longer_than_their_time() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut paths = 0;
    let mut wrong = Vec::new();
    let folders = [
        "torch-cpu/2.15.0/baseline",
        "torch-cpu/2.15.0/ckpt_nonreentrant",
        "public/facebookresearch+HolisticTraceAnalysis/tests/data/critical_path",
        "public/AMD-AGI+TraceLens/tests/traces/h100",
        "public/AMD-AGI+TraceLens/tests/traces/mi300",
    ];
    for path in folders
        .iter()
        .flat_map(|folder| corpus::traces(&corpus.join(folder)))
    {
        let options = InspectOptions {
            by: vec![By::Phase],
            ..InspectOptions::default()
        };
        let frames = frames(&path, Topic::CriticalPath, &options);
        paths += rows(&frames, "critical_paths").len();
        let found = broken(&frames);
        wrong.extend(found.iter().map(|law| format!("{}: {law}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(paths > 5, "only {paths} paths were seen");
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn critical_paths_add_up(plan in plans(), by_phase: bool, top in 0..4usize) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("rank0.json");
        std::fs::write(&path, build(&plan).write(Layout::Native)).unwrap();
        let options = InspectOptions {
            by: if by_phase { vec![By::Phase] } else { Vec::new() },
            top,
            ..InspectOptions::default()
        };
        let found = broken(&frames(&path, Topic::CriticalPath, &options));
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn critical_paths_do_not_depend_on_how_a_trace_is_stored(plan in plans()) {
        let options = InspectOptions {
            by: vec![By::Phase],
            ..InspectOptions::default()
        };
        let found = instabilities(&build(&plan), plan.seed, Topic::CriticalPath, &options);
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
