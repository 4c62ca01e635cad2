//! `tracekit inspect kernels` over random and real traces.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use tracekit::attribute::AttributeOptions;
use tracekit::inspect::{By, Definition, InspectOptions, Topic};

use crate::support::answer::{answer, attribution, json, stored};
use crate::support::builder::{Layout, build, few, plans};
use crate::support::corpus;
use crate::support::inspection::{close, frames, instabilities, int, oracle, rows};
use crate::support::whole_content;

/// Traces that the plugin was run on, by the name of its answer.
const PLUGIN: [(&str, &str); 4] = [
    (
        "resnet50_w0_a",
        "pytorch+kineto/tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
    ),
    (
        "hta_nccl",
        "facebookresearch+HolisticTraceAnalysis/tests/data/nccl_parser_config/nccl_data.json.gz",
    ),
    (
        "hta_amd",
        "facebookresearch+HolisticTraceAnalysis/tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    ),
    (
        "mi300_ckpt",
        "AMD-AGI+TraceLens/tests/traces/mi300/resnet_act_checkpoint.json.gz",
    ),
];

const GROUPINGS: [&[By]; 4] = [
    &[],
    &[By::Phase, By::Step],
    &[By::Shape],
    &[By::Stream, By::Phase],
];

fn all(by: &[By]) -> InspectOptions {
    InspectOptions {
        by: by.to_vec(),
        top: 0,
        ..InspectOptions::default()
    }
}

/// Broken laws of one trace: rows add up to all device time, and combinations of classes to the time
/// that each device is busy.
fn broken(path: &Path, attribution: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let total = &attribution["totals"]["total"];
    let of = |key: &str| total[key].as_i64().unwrap_or(0);
    for grouping in GROUPINGS {
        for top in [0, 2] {
            let options = InspectOptions {
                top,
                ..all(grouping)
            };
            let seen = frames(path, Topic::Kernels, &options);
            let sum = |frame: &str, column: &str| -> i64 {
                rows(&seen, frame).iter().map(|row| int(row, column)).sum()
            };
            for (frame, column, want) in [
                ("kernels", "total_ns", of("sum_ns")),
                ("kernels", "calls", of("events")),
                ("kernel_classes", "time_ns", of("busy_ns")),
                (
                    "tensor_cores",
                    "kernels_ns",
                    of("compute_ns") + of("communication_ns"),
                ),
            ] {
                if sum(frame, column) != want {
                    let got = sum(frame, column);
                    found.push(format!("{grouping:?}: {column} is {got}, not {want}"));
                }
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn rows_add_up_to_the_attribution(plan in plans()) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let found = broken(&path, &answer(&path));
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let trace = build(&plan);
        let hta = InspectOptions { definition: Definition::Hta, ..InspectOptions::default() };
        for options in GROUPINGS.map(all).into_iter().chain([hta]) {
            let found = instabilities(&trace, seed, Topic::Kernels, &options);
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}

#[test]
fn real_traces_keep_the_laws() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut checked = 0;
    for path in corpus::traces(&corpus) {
        let Ok(attribution) = attribution(&path, &AttributeOptions::default()) else {
            continue;
        };
        let found = broken(&path, &json(&attribution));
        assert!(
            found.is_empty(),
            "{}:\n{}",
            path.display(),
            found.join("\n")
        );
        checked += 1;
    }
    assert!(checked > 50, "only {checked} traces were checked");
}

/// Calls, times, blocks and occupancy are those of the plugin's kernel view on every trace.
#[test]
fn kernels_are_those_of_the_plugin() {
    for (name, file) in PLUGIN {
        let Some((corpus, oracle)) = oracle(&format!("tb_plugin/tb__{name}.json")) else {
            return;
        };
        let path = corpus.join("public").join(file);
        let options = InspectOptions {
            definition: Definition::Tensorboard,
            ..all(&[])
        };
        let seen = frames(&path, Topic::Kernels, &options);
        let seen = rows(&seen, "kernels");
        for want in oracle["top_kernels"].as_array().unwrap() {
            let name = want["name"].as_str().unwrap();
            let got = seen.iter().find(|row| row["kernel"] == name).unwrap();
            let float = |row: &Value, column: &str| row[column].as_f64().unwrap_or(0.0);
            assert_eq!(int(got, "calls"), want["count"].as_i64().unwrap(), "{name}");
            assert_eq!(got["tensor_core"], want["tc_used"], "{name}");
            for (ours, theirs, unit) in [
                ("total_ns", "sum", 1e3),
                ("mean_ns", "mean", 1e3),
                ("max_ns", "max", 1e3),
                ("min_ns", "min", 1e3),
                ("blocks_per_sm", "blocks_per_sm", 1.0),
                ("occupancy", "occupancy", 0.01),
            ] {
                let (got, want) = (float(got, ours) / unit, float(want, theirs));
                // The mean is rounded down to a nanosecond.
                let near = want.abs().mul_add(1e-6, 0.0011);
                assert!(
                    (got - want).abs() < near,
                    "{name}: {ours} {got}, not {want}"
                );
            }
        }
    }
}

/// What is left of the checkpointing trace in the plugin's tree of operators: it has `nn.Module` frames, so
/// backward nodes go where the modules of their forward operators are; the thread for them is the last one
/// with a `ProfilerStep#`, here the mirror on the device, which covers the last step only; and a node whose
/// forward operator is in no module (the loss) goes nowhere.
fn without_what_the_plugin_loses(path: &Path, folder: &Path) -> PathBuf {
    let json = whole_content(path).unwrap();
    let mut json: Value = serde_json::from_slice(&json).unwrap();
    let events = json["traceEvents"].as_array_mut().unwrap();
    let at = |event: &Value| event["ts"].as_f64().unwrap_or(0.0);
    let find = |name: &str, cat: &str| {
        let is = |event: &&Value| event["name"] == name && event["cat"] == cat;
        events.iter().filter(is).cloned().collect::<Vec<Value>>()
    };
    let last_step = at(&find("ProfilerStep#17", "user_annotation")[0]);
    let losses = find(
        "autograd::engine::evaluate_function: MseLossBackward0",
        "cpu_op",
    );
    let thread = losses[0]["tid"].clone();
    let is_lost = |event: &Value| {
        let of_loss = |loss: &Value| {
            at(loss) <= at(event) && at(event) < at(loss) + loss["dur"].as_f64().unwrap()
        };
        let there = event["ph"] == "X" && event["tid"] == thread;
        there && (at(event) < last_step || losses.iter().any(of_loss))
    };
    events.retain(|event| !is_lost(event));
    let path = folder.join("rank0.json");
    std::fs::write(&path, json.to_string()).unwrap();
    path
}

/// The shares of kernels that use tensor cores, and of those whose operators could.
#[test]
fn tensor_cores_are_those_of_the_plugin() {
    for (name, file) in PLUGIN {
        let Some((corpus, oracle)) = oracle(&format!("tb_plugin/tb__{name}.json")) else {
            return;
        };
        let folder = TempDir::new().unwrap();
        let mut path = corpus.join("public").join(file);
        let options = InspectOptions {
            definition: Definition::Tensorboard,
            ..all(&[])
        };
        let share = |path: &Path, column: &str| {
            let seen = frames(path, Topic::Kernels, &options);
            rows(&seen, "tensor_cores")[0][column].clone()
        };
        let used = share(&path, "used_share");
        assert!(
            close(&used, &oracle["tc_used_ratio"], 1e-6),
            "{name}: {used}"
        );
        if name == "mi300_ckpt" {
            path = without_what_the_plugin_loses(&path, folder.path());
        }
        let (got, want) = (
            share(&path, "eligible_share").as_f64().unwrap(),
            oracle["tc_eligible_ops_kernel_ratio"].as_f64().unwrap(),
        );
        // The plugin takes durations as differences of times in floating point.
        assert!((got / want - 1.0).abs() < 1e-5, "{name}: {got}, not {want}");
    }
}

/// HTA's first table is `kernel_types`, its second `kernels`. On `triton_example` HTA counts an operator of
/// the host as computation, because it has a stream.
#[test]
fn breakdowns_are_those_of_hta_under_its_definition() {
    let options = InspectOptions {
        definition: Definition::Hta,
        top: 10,
        ..InspectOptions::default()
    };
    for name in [
        "alexnet",
        "amd_mi250",
        "nccl",
        "neg_queue",
        "simple_add",
        "trace_filter_2ranks",
    ] {
        let Some((corpus, oracle)) = oracle(&format!("hta/{name}__gpu_kernel_breakdown.json"))
        else {
            return;
        };
        let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
        let files = oracle["trace_files"].as_array().unwrap();
        let folder = TempDir::new().unwrap();
        for (rank, file) in files.iter().enumerate() {
            let from = data.join(file.as_str().unwrap());
            std::fs::copy(from, folder.path().join(format!("rank{rank}.json.gz"))).unwrap();
        }
        let seen = frames(folder.path(), Topic::Kernels, &options);
        let types = rows(&seen, "kernel_types");
        let want = oracle["value"]["by_type"].as_array().unwrap();
        assert_eq!(types.len(), want.len(), "{name}");
        for want in want {
            let same = |row: &&Value| row["kernel_type"] == want["kernel_type"];
            let got = types.iter().find(same).unwrap();
            assert_eq!(got["sum_us"], want["sum"], "{name}: {want}");
            assert_eq!(got["percentage"], want["percentage"], "{name}: {want}");
        }
        let kernels = rows(&seen, "kernels");
        let want = oracle["value"]["by_kernel"].as_array().unwrap();
        assert_eq!(kernels.len(), want.len(), "{name}");
        for want in want {
            let got = kernels.iter().find(|row| {
                row["name"] == want["name"]
                    && row["kernel_type"] == want["kernel_type"]
                    && (files.len() == 1 || row["rank"] == want["rank"])
            });
            let got = got.unwrap_or_else(|| panic!("{name}: no {want}"));
            for (ours, theirs) in [
                ("sum_us", "sum (us)"),
                ("max_us", "max (us)"),
                ("min_us", "min (us)"),
                ("mean_us", "mean (us)"),
                ("stddev_us", "stddev"),
            ] {
                let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
                let (got, want) = (number(got, ours), number(want, theirs));
                assert!(
                    (got - want).abs() < 1e-6,
                    "{name}: {ours} {got}, not {want}"
                );
            }
        }
    }
}
