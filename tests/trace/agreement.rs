//! Parts of tracekit that answer one question give one answer.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tracekit::attribute::{AttributeOptions, Request};
use tracekit::compare::{CompareOptions, compare_paths};
use tracekit::infer::{Inference, Thresholds, infer_paths};
use tracekit::ingest::IngestOptions;
use tracekit::inspect::{InspectOptions, Topic};

use crate::support::inspection::{frames, rows};

/// Four steps of 1 ms with a kernel at the end of each, beside which `more` happens; it gets the start of the step.
fn write(folder: &Path, more: impl Fn(i64) -> Vec<Value>) -> PathBuf {
    let mut events = Vec::new();
    for step in 0..4 {
        let at = 1000 + step * 1000;
        let name = format!("ProfilerStep#{step}");
        events.push(host("user_annotation", &name, at, 1000));
        let mut launch = host("cuda_runtime", "cudaLaunchKernel", at + 890, 4);
        launch["args"] = json!({"correlation": step + 1});
        events.push(launch);
        let mut kernel = host("kernel", "gemm", at + 895, 50);
        kernel["pid"] = json!(0);
        kernel["args"] = json!({"device": 0, "stream": 1, "correlation": step + 1});
        events.push(kernel);
        events.extend(more(at));
    }
    let path = folder.join("trace.json");
    std::fs::write(&path, json!({ "traceEvents": events }).to_string()).unwrap();
    path
}

fn host(cat: &str, name: &str, ts: i64, dur: i64) -> Value {
    json!({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur})
}

fn request<'a>(paths: &'a [PathBuf], options: &'a AttributeOptions) -> Request<'a> {
    Request {
        salvage: None,
        paths,
        ingest: IngestOptions::default(),
        options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    }
}

/// The rows of a table of the comparison of `path` with itself.
fn compared(path: &Path, table: &str) -> Vec<Value> {
    let (paths, options) = ([path.to_owned()], AttributeOptions::default());
    let request = request(&paths, &options);
    let compare = CompareOptions {
        top: 0,
        ..CompareOptions::default()
    };
    let comparison = compare_paths(&request, &request, &compare, &|_| {}).unwrap();
    let comparison = serde_json::to_value(comparison).unwrap();
    rows(comparison["frames"].as_array().unwrap(), table)
}

/// The mean nanoseconds of a step that `compare` gives for a cost of the host.
fn cost(path: &Path, name: &str) -> i64 {
    let costs = compared(path, "cost_shift");
    let is_meant = |row: &&Value| row["cost"] == name && row["place"] == "host";
    let row = costs.iter().find(is_meant);
    row.map_or(0, |row| row["base_ns"].as_i64().unwrap())
}

fn inference(path: &Path, code: &str) -> Inference {
    let (paths, options) = ([path.to_owned()], AttributeOptions::default());
    let request = request(&paths, &options);
    let inferences = infer_paths(&request, &Thresholds::default(), &|_| {}).unwrap();
    let of_run = inferences.runs.into_iter().flat_map(|run| run.inferences);
    of_run
        .into_iter()
        .find(|inference| inference.code == code)
        .unwrap()
}

/// A number of the evidence for a rule.
fn evidence(path: &Path, code: &str, name: &str) -> Value {
    let inference = serde_json::to_value(inference(path, code)).unwrap();
    let evidence = inference["evidence"].as_array().unwrap().iter();
    let mut evidence = evidence.filter(|evidence| evidence["name"] == name);
    evidence.next().unwrap()["value"].clone()
}

#[test]
fn compare_and_infer_know_the_same_calls() {
    let folder = tempfile::tempdir().unwrap();
    // Times of 40 us a step count, or do not.
    for (code, cost_name, counted, names) in [
        (
            "allocator_growth",
            "cache_maintenance",
            40_000,
            &[
                "cudaMalloc",
                "cudaMallocAsync",
                "cudaHostAlloc",
                "cudaFreeHost",
                "cuMemAddressReserve",
                "hipExtMallocWithFlags",
                "urUSMDeviceAlloc",
            ][..],
        ),
        (
            "synchronisation",
            "synchronisation",
            40_000,
            &[
                "cudaStreamSynchronize",
                "cudaMemcpy",
                "cuMemcpyDtoH_v2",
                "hipMemcpyWithStream",
                "hipEventSynchronize",
                "zeEventHostSynchronize",
            ],
        ),
        (
            "synchronisation",
            "synchronisation",
            0,
            &["cudaMemcpyAsync", "cudaMemsetAsync", "cudaEventQuery"],
        ),
        (
            "allocator_growth",
            "cache_maintenance",
            0,
            &["cudaMemcpyAsync", "cudaMemsetAsync", "cuMemGetInfo_v2"],
        ),
    ] {
        for name in names {
            // Behind the kernel, so that every one of them counts for a growing allocator.
            let path = write(folder.path(), |at| {
                vec![host("cuda_runtime", name, at + 950, 40)]
            });
            assert_eq!(cost(&path, cost_name), counted, "{name}");
            let sum = evidence(&path, code, "time in them");
            assert_eq!(sum, json!(4 * counted), "{name}");
        }
    }
}

#[test]
fn compare_and_inspect_know_the_same_peaks() {
    let folder = tempfile::tempdir().unwrap();
    let change = |at: i64, (kind, index): (i64, i64), bytes: i64, total: i64| {
        let mut event = host("cpu_instant_event", "[memory]", at, 0);
        event["ph"] = json!("i");
        event["args"] = json!({
            "Device Type": kind, "Device Id": index, "Addr": at, "Bytes": bytes,
            "Total Allocated": total, "Total Reserved": if kind == 0 { 0 } else { 4096 },
        });
        event
    };
    let path = write(folder.path(), |at| match at {
        1000 => vec![
            // Of 1000 bytes that were there before 700 are freed.
            change(at + 10, (1, 0), -700, 300),
            change(at + 20, (19, 0), 100, 500),
            change(at + 30, (0, -1), 64, 64),
            change(at + 40, (33, 2), 8, 8),
        ],
        _ => vec![change(at + 10, (1, 0), 100, 400 + at / 100)],
    });
    let inspected = rows(
        &frames(&path, Topic::Memory, &InspectOptions::default()),
        "memory",
    );
    let compared = compared(&path, "memory");
    let name = |row: &Value| match (row["kind"].as_str().unwrap(), row["device"].as_i64()) {
        (kind, Some(index)) if index >= 0 => format!("{kind}:{index}"),
        (kind, _) => kind.to_owned(),
    };
    let mut got: Vec<(String, Value, Value)> = compared
        .iter()
        .map(|row| {
            let peak = |column: &str| row[column].clone();
            let [allocated, reserved] = ["base_allocated_bytes", "base_reserved_bytes"].map(peak);
            (name(row), allocated, reserved)
        })
        .collect();
    let mut want: Vec<(String, Value, Value)> = inspected
        .iter()
        .map(|row| {
            let [allocated, reserved] =
                ["peak_allocated_bytes", "peak_reserved_bytes"].map(|column| row[column].clone());
            (
                row["device"].as_str().unwrap().to_owned(),
                allocated,
                reserved,
            )
        })
        .collect();
    got.sort_by(|one, other| one.0.cmp(&other.0));
    want.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(got, want);
    let peak =
        |name: &str, allocated: i64, reserved: Value| (name.to_owned(), json!(allocated), reserved);
    let expected = [
        peak("cpu", 64, Value::Null),
        peak("cuda:0", 1000, json!(4096)),
        peak("device type 33:2", 8, json!(4096)),
        peak("mtia:0", 500, json!(4096)),
    ];
    assert_eq!(got, expected);
}

#[test]
fn collectives_are_compared_in_the_steps_of_their_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    let mut correlation = 0;
    // Two processes with steps of one name; the first step of the first is cut, for a launch has no work.
    for process in 1..=2 {
        for step in 0..4 {
            let at = process + 1000 + step * 1000;
            let lost = usize::from(process == 1 && step == 0);
            let mut of_process = vec![host(
                "user_annotation",
                &format!("ProfilerStep#{step}"),
                at,
                990,
            )];
            for launch in 0..=lost {
                correlation += 1;
                let ids = json!({"correlation": correlation});
                let mut call = host("cuda_runtime", "cudaLaunchKernel", at + 10, 4);
                call["args"] = ids;
                of_process.push(call);
                if launch > 0 {
                    continue;
                }
                let mut kernel = host(
                    "kernel",
                    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                    at + 20,
                    50,
                );
                kernel["args"] =
                    json!({"device": process, "stream": 1, "correlation": correlation});
                events.push(kernel);
            }
            for event in &mut of_process {
                event["pid"] = json!(process);
            }
            events.extend(of_process);
        }
    }
    let path = folder.path().join("trace.json");
    std::fs::write(&path, json!({ "traceEvents": events }).to_string()).unwrap();
    let [kernels, collectives] = ["kernels", "collectives"].map(|table| compared(&path, table));
    assert_eq!((kernels.len(), collectives.len()), (1, 1));
    assert_eq!(collectives[0]["operation"], "allreduce");
    for column in ["base_calls", "base_ns"] {
        assert_eq!(collectives[0][column], kernels[0][column], "{column}");
    }
    assert_eq!(collectives[0]["base_calls"], 1.0);
}
