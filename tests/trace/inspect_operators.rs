//! `tracekit inspect operators` over random and real traces.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use tracekit::attribute::AttributeOptions;
use tracekit::inspect::{By, Definition, InspectOptions, Topic};

use crate::support::answer::{answer, attribution, json, stored};
use crate::support::builder::{Layout, build, few, plans};
use crate::support::corpus;
use crate::support::inspection::{frames, instabilities, int, oracle, rows};

/// Traces that the plugin was run on, by the name of its answer.
const PLUGIN: [(&str, &str); 3] = [
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
];

const GROUPINGS: [&[By]; 4] = [
    &[],
    &[By::Phase, By::Step],
    &[By::Shape],
    &[By::Module, By::Phase],
];

fn all(by: &[By]) -> InspectOptions {
    InspectOptions {
        by: by.to_vec(),
        top: 0,
        ..InspectOptions::default()
    }
}

/// Sums of the columns over the rows of each name.
fn by_name(rows: &[Value], columns: &[&str]) -> BTreeMap<(String, String), Vec<i64>> {
    let mut sums: BTreeMap<(String, String), Vec<i64>> = BTreeMap::new();
    for row in rows {
        let text = |column: &str| row[column].as_str().unwrap_or_default().to_owned();
        let sum = sums.entry((text("operator"), text("call"))).or_default();
        sum.resize(columns.len(), 0);
        for (sum, column) in sum.iter_mut().zip(columns) {
            *sum += row[*column].as_i64().unwrap_or(0);
        }
    }
    sums
}

/// Broken laws of one trace: direct device time adds up to what the attribution has, in each phase, and
/// rows that are told apart add up to those that are not.
fn broken(path: &Path, attribution: &Value) -> Vec<String> {
    const COLUMNS: [&str; 8] = [
        "calls",
        "host_total_ns",
        "host_self_ns",
        "device_events",
        "device_direct_ns",
        "device_total_ns",
        "tensor_core_direct_ns",
        "tensor_core_total_ns",
    ];
    let mut found = Vec::new();
    let plain = frames(path, Topic::Operators, &all(&[]));
    let plain = &rows(&plain, "operators");
    let want = by_name(plain, &COLUMNS);
    let sum = |rows: &[Value]| -> i64 {
        rows.iter()
            .map(|row| row["device_direct_ns"].as_i64().unwrap_or(0))
            .sum()
    };
    let totals = &attribution["totals"];
    let total = totals["total"]["sum_ns"].as_i64().unwrap_or(0);
    if sum(plain) != total {
        found.push(format!("direct {} is not {total}", sum(plain)));
    }
    for grouping in GROUPINGS {
        let seen = frames(path, Topic::Operators, &all(grouping));
        let seen = rows(&seen, "operators");
        let got = by_name(&seen, &COLUMNS);
        if got != want {
            let first = got.iter().zip(&want).find(|(got, want)| got != want);
            found.push(format!("{grouping:?} adds up to something else: {first:?}"));
        }
        if !grouping.contains(&By::Phase) {
            continue;
        }
        for phase in [
            "forward",
            "backward",
            "recompute",
            "optimizer",
            "other",
            "pre_window",
            "unlinked",
        ] {
            let of_phase: Vec<Value> = seen
                .iter()
                .filter(|row| row["phase"] == phase)
                .cloned()
                .collect();
            let want = totals[phase]["sum_ns"].as_i64().unwrap_or(0);
            if sum(&of_phase) != want {
                found.push(format!("{phase}: {} is not {want}", sum(&of_phase)));
            }
        }
    }
    let few = InspectOptions { top: 2, ..all(&[]) };
    let few = frames(path, Topic::Operators, &few);
    if sum(&rows(&few, "operators")) != total {
        found.push("the others do not keep the sum".to_owned());
    }
    found
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn direct_time_adds_up_to_the_attribution(plan in plans()) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let found = broken(&path, &answer(&path));
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let trace = build(&plan);
        let others = [Definition::Hta, Definition::Tensorboard].map(|definition| InspectOptions {
            definition,
            ..InspectOptions::default()
        });
        for options in GROUPINGS.map(all).into_iter().chain(others) {
            let found = instabilities(&trace, seed, Topic::Operators, &options);
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

/// Calls, host total and device time are those of the plugin's operator view, where it has the same
/// calls: not on the trace in which it takes an annotation of a device for a step.
#[test]
fn operators_are_those_of_the_plugin() {
    for (name, file) in PLUGIN {
        let Some((corpus, oracle)) = oracle(&format!("tb_plugin/tb__{name}.json")) else {
            return;
        };
        let path = corpus.join("public").join(file);
        let seen = frames(&path, Topic::Operators, &all(&[]));
        let seen = rows(&seen, "operators");
        for want in oracle["top_ops"].as_array().unwrap() {
            let name = want["name"].as_str().unwrap();
            let got = seen.iter().find(|row| row["operator"] == name).unwrap();
            assert_eq!(int(got, "calls"), want["calls"].as_i64().unwrap(), "{name}");
            if name == "aten::mse_loss_backward" {
                // It calls itself, and the plugin counts the inner one twice.
                continue;
            }
            for (ours, theirs) in [
                ("device_direct_ns", "device_self"),
                ("device_total_ns", "device_total"),
                ("host_total_ns", "host_total"),
            ] {
                let (got, want) = (int(got, ours) as f64 / 1e3, want[theirs].as_f64().unwrap());
                // Times of this size have steps of 2⁻¹⁰ µs in the plugin's floats, call by call.
                let calls = want.abs().mul_add(1e-6, 0.5);
                assert!(
                    (got - want).abs() < calls,
                    "{name}: {ours} {got}, not {want}"
                );
            }
        }
    }
}

/// All five numbers are the plugin's under its definition.
#[test]
fn operators_are_those_of_the_plugin_under_its_definition() {
    let options = InspectOptions {
        definition: Definition::Tensorboard,
        ..all(&[])
    };
    for (name, file) in PLUGIN {
        let Some((corpus, oracle)) = oracle(&format!("tb_plugin/tb__{name}.json")) else {
            return;
        };
        let path = corpus.join("public").join(file);
        let seen = frames(&path, Topic::Operators, &options);
        let seen = rows(&seen, "operators");
        let mut wrong = Vec::new();
        for want in oracle["top_ops"].as_array().unwrap() {
            let op = want["name"].as_str().unwrap();
            let got = seen.iter().find(|row| row["operator"] == op).unwrap();
            assert_eq!(int(got, "calls"), want["calls"].as_i64().unwrap(), "{op}");
            for key in ["device_self", "device_total", "host_self", "host_total"] {
                let got = int(got, &format!("{key}_ns")) as f64 / 1e3;
                let want = want[key].as_f64().unwrap();
                if (got - want).abs() > want.abs().mul_add(1e-6, 0.5) {
                    wrong.push(format!("{name}: {op}: {key} {got}, not {want}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// HTA's breakdowns of annotations, on the host and as mirrored on devices.
#[test]
fn annotations_are_those_of_hta_under_its_definition() {
    let options = InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    };
    for (name, kinds) in [
        ("alexnet", &["cpu"][..]),
        ("amd_mi250", &["cpu", "gpu"]),
        ("nccl", &["cpu", "gpu"]),
        ("neg_queue", &["cpu"]),
        ("simple_add", &["cpu"]),
        ("trace_filter_2ranks", &["cpu"]),
        ("triton", &["cpu"]),
    ] {
        for kind in kinds {
            let file = format!("hta/{name}__{kind}_user_annotation_breakdown.json");
            let Some((corpus, oracle)) = oracle(&file) else {
                return;
            };
            let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
            let files = oracle["trace_files"].as_array().unwrap();
            let folder = TempDir::new().unwrap();
            for (rank, file) in files.iter().enumerate() {
                let from = data.join(file.as_str().unwrap());
                std::fs::copy(from, folder.path().join(format!("rank{rank}.json.gz"))).unwrap();
            }
            let seen = frames(folder.path(), Topic::Operators, &options);
            let seen = rows(&seen, &format!("{kind}_user_annotations"));
            let want = oracle["value"].as_array().unwrap();
            assert_eq!(seen.len(), want.len(), "{name}");
            for want in want {
                let got = seen.iter().find(|row| {
                    row["name"] == want["name"] && (files.len() == 1 || row["rank"] == want["rank"])
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
}
