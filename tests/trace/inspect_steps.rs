//! `tracekit inspect steps` over random and real traces.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tracekit::inspect::{Definition, InspectOptions, Topic};

use crate::support::answer::stored;
use crate::support::builder::{Layout, build, few, plans};
use crate::support::corpus;
use crate::support::inspection::{
    close, frames, instabilities, int, oracle, oracles_of_hta, rows, sum,
};

const CATEGORIES: [&str; 8] = [
    "kernel_ns",
    "memcpy_ns",
    "memset_ns",
    "communication_ns",
    "runtime_ns",
    "data_loading_ns",
    "cpu_op_ns",
    "other_ns",
];

fn tensorboard() -> InspectOptions {
    InspectOptions {
        definition: Definition::Tensorboard,
        ..InspectOptions::default()
    }
}

/// Steps whose parts do not add up.
fn broken(path: &Path) -> Vec<String> {
    let seen = frames(path, Topic::Steps, &InspectOptions::default());
    let mut found = Vec::new();
    let steps = rows(&seen, "steps");
    for step in &steps {
        let parts = CATEGORIES.iter().filter_map(|name| step[*name].as_i64());
        let parts: Vec<i64> = parts.collect();
        if parts.iter().sum::<i64>() != int(step, "wall_ns") || parts.iter().any(|part| *part < 0) {
            found.push(step.to_string());
        }
    }
    let on_devices: Vec<Value> = steps
        .into_iter()
        .filter(|step| !step["device"].is_null())
        .collect();
    let phases = seen.iter().any(|frame| frame["name"] == "step_phases");
    if phases && sum(&rows(&seen, "step_phases"), "time_ns") != sum(&on_devices, "wall_ns") {
        found.push("phases do not add up".to_owned());
    }
    found
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn parts_add_up_to_steps(plan in plans()) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let found = broken(&path);
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let trace = build(&plan);
        for options in [InspectOptions::default(), tensorboard()] {
            let found = instabilities(&trace, seed, Topic::Steps, &options);
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}

#[test]
fn parts_add_up_on_real_traces() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut looked = 0;
    for path in corpus::traces(&corpus) {
        let options = tracekit::attribute::AttributeOptions::default();
        if crate::support::answer::attribution(&path, &options).is_ok() {
            let found = broken(&path);
            assert!(found.is_empty(), "{}: {}", path.display(), found.join("\n"));
            looked += 1;
        }
    }
    println!("{looked} traces");
    assert!(looked > 0);
}

/// Files that the plugin was asked about, and where they are in the corpus.
const ASKED: [(&str, &str); 4] = [
    (
        "tb__hta_amd",
        "facebookresearch+HolisticTraceAnalysis/tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    ),
    (
        "tb__hta_nccl",
        "facebookresearch+HolisticTraceAnalysis/tests/data/nccl_parser_config/nccl_data.json.gz",
    ),
    (
        "tb__mi300_ckpt",
        "AMD-AGI+TraceLens/tests/traces/mi300/resnet_act_checkpoint.json.gz",
    ),
    (
        "tb__resnet50_w0_a",
        "pytorch+kineto/tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
    ),
];

/// HTA names the numbers of all steps but the last of several.
#[test]
fn hta_has_the_same_steps_without_the_last() {
    for (name, oracle, paths) in oracles_of_hta("profiler_steps") {
        let seen = frames(&paths[0], Topic::Summary, &InspectOptions::default());
        let steps = rows(&seen, "steps");
        let mut numbers: Vec<u64> = steps
            .iter()
            .filter_map(|step| {
                step["step"]
                    .as_str()?
                    .strip_prefix("ProfilerStep#")?
                    .parse()
                    .ok()
            })
            .collect();
        if numbers.len() > 1 {
            numbers.pop();
        }
        assert_eq!(json!(numbers), oracle["value"], "{name}");
    }
}

#[test]
fn the_plugin_has_the_same_steps() {
    let names = [
        "Kernel",
        "Memcpy",
        "Memset",
        "Communication",
        "Runtime",
        "DataLoader",
        "CpuOp",
        "Other",
    ];
    for (name, file) in ASKED {
        let Some((corpus, oracle)) = oracle(&format!("tb_plugin/{name}.json")) else {
            return;
        };
        let seen = frames(
            &corpus.join("public").join(file),
            Topic::Steps,
            &tensorboard(),
        );
        let steps = rows(&seen, "steps");
        let called: Vec<&Value> = steps.iter().map(|step| &step["step"]).collect();
        assert_eq!(json!(called), oracle["steps_names"], "{name}");
        for (step, want) in steps
            .iter()
            .zip(oracle["steps_costs_us"].as_array().unwrap())
        {
            let us = |column: &str| json!(int(step, column) as f64 / 1000.0);
            for (ours, theirs) in CATEGORIES
                .into_iter()
                .zip(names)
                .chain([("wall_ns", "Total")])
            {
                // Exact where times are whole microseconds; the plugin adds fractions in floating point.
                let whole = name == "tb__resnet50_w0_a";
                let same = if whole {
                    us(ours).as_f64() == want[theirs].as_f64()
                } else {
                    (us(ours).as_f64().unwrap() - want[theirs].as_f64().unwrap()).abs() < 2.0
                };
                assert!(same, "{name}: {ours} is {want}, not {step}");
            }
        }
        for device in rows(&seen, "gpu_metrics") {
            let want = &oracle["gpu"][int(&device, "device").to_string()];
            let percent = device["est_occupancy"].as_f64().map(|share| share * 100.0);
            for (got, want) in [
                (&device["gpu_utilization"], &want["util"]),
                (&device["est_sm_efficiency"], &want["sm_eff"]),
                (&json!(percent), &want["occupancy"]),
            ] {
                assert!(close(got, want, 1e-5), "{name}: {got}, want {want}");
            }
        }
    }
}
