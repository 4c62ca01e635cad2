//! `inspect communication`: sums that add up, calls by hand, and other tools' numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tracekit::inspect::{By, Definition, InspectOptions, Topic};

use crate::support::answer::stored;
use crate::support::builder::{Layout, build, few, plans};
use crate::support::inspection::{frames, oracle, rows, sum};
use crate::support::seeded::Seeded;
use crate::support::{corpus, gzip, package};

const TOPIC: Topic = Topic::Communication;

fn by(by: &[By]) -> InspectOptions {
    InspectOptions {
        by: by.to_vec(),
        top: 0,
        ..InspectOptions::default()
    }
}

fn as_defined(definition: Definition) -> InspectOptions {
    InspectOptions {
        definition,
        ..InspectOptions::default()
    }
}

/// Every way of grouping gives the same sums.
fn broken_laws(path: &Path) -> Vec<String> {
    let whole = frames(path, TOPIC, &by(&[]));
    let mut found = Vec::new();
    let mut check = |what: &str, left: i64, right: i64| {
        if left != right {
            found.push(format!("{}: {what}: {left} is not {right}", path.display()));
        }
    };
    let overview = rows(&whole, "communication");
    let columns = [
        "calls",
        "sum_ns",
        "communication_ns",
        "overlapped_ns",
        "exposed_ns",
    ];
    for row in &overview {
        if row["place"] == "device" {
            let parts = sum(std::slice::from_ref(row), "overlapped_ns")
                + sum(std::slice::from_ref(row), "exposed_ns");
            check("parts", parts, row["communication_ns"].as_i64().unwrap());
        }
    }
    for grouping in [
        vec![],
        vec![By::Step],
        vec![By::Phase],
        vec![By::Step, By::Phase],
    ] {
        let grouped = frames(path, TOPIC, &by(&grouping));
        for column in columns {
            let want = sum(&overview, column);
            let got = sum(&rows(&grouped, "communication"), column);
            check(&format!("{column} by {grouping:?}"), got, want);
            if column != "overlapped_ns" {
                let got = sum(&rows(&grouped, "collectives"), column);
                check(
                    &format!("{column} of collectives by {grouping:?}"),
                    got,
                    want,
                );
            }
        }
    }
    let few = InspectOptions {
        top: 1,
        ..InspectOptions::default()
    };
    let few = rows(&frames(path, TOPIC, &few), "collectives");
    for column in ["calls", "sum_ns", "communication_ns", "exposed_ns"] {
        check(column, sum(&few, column), sum(&overview, column));
    }
    // Groups by name and by class fill the same busy time.
    let named = InspectOptions {
        groups: [("a", "nccl"), ("b", "AllReduce"), ("c", "gemm|mm")]
            .map(|(name, pattern)| (name.to_owned(), pattern.parse().unwrap()))
            .to_vec(),
        ..InspectOptions::default()
    };
    let named = rows(&frames(path, TOPIC, &named), "groups");
    check(
        "groups",
        sum(&named, "exclusive_ns"),
        sum(&rows(&whole, "groups"), "exclusive_ns"),
    );
    let communicating = |row: &&Value| row["groups"].as_str().unwrap().contains("communication");
    let classes = rows(&whole, "groups");
    let of_classes: Vec<Value> = classes.iter().filter(communicating).cloned().collect();
    let on_devices: Vec<Value> = overview
        .iter()
        .filter(|row| row["place"] == "device")
        .cloned()
        .collect();
    check(
        "combinations with communication",
        sum(&of_classes, "exclusive_ns"),
        sum(&on_devices, "communication_ns"),
    );
    found
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn sums_add_up_however_rows_are_grouped(plan in plans()) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let found = broken_laws(&path);
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn order_and_compression_change_nothing(plan in plans(), seed in any::<u64>()) {
        let folder = TempDir::new().unwrap();
        let mut trace = build(&plan);
        let plain = stored(folder.path(), "plain", "rank0.json", &trace.write(Layout::Native));
        Seeded::new(seed).shuffle(&mut trace.events);
        let shuffled = stored(folder.path(), "shuffled", "rank0.json.gz", &gzip(&trace.write(Layout::Minified)));
        let options = by(&[By::Step, By::Phase]);
        prop_assert_eq!(frames(&plain, TOPIC, &options), frames(&shuffled, TOPIC, &options));
    }
}

#[test]
fn sums_add_up_over_fixtures_and_the_corpus() {
    let mut paths = vec![package("fixtures/golden")];
    if let Some(corpus) = corpus::folder() {
        let public = corpus.join("public");
        let hta = public.join("facebookresearch+HolisticTraceAnalysis/tests/data");
        paths.extend([
            hta.join("trace_filter"),
            hta.join("nccl_parser_config"),
            public.join("facebookresearch+param/et_replay/tests/inputs/dlrm_kineto"),
            public.join("AMD-AGI+TraceLens/tests/traces/mi300/resnet_act_checkpoint.json.gz"),
            corpus.join("torch-cpu/2.15.0/ddp_gloo"),
        ]);
    }
    let found: Vec<String> = paths.iter().flat_map(|path| broken_laws(path)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A kernel of NCCL or a computing one, in µs.
fn kernel(stream: u64, ts: u64, dur: u64, name: &str, correlation: u64, args: &str) -> String {
    format!(
        r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream}, "ts": {ts}, "dur": {dur},
        "args": {{"device": 0, "stream": {stream}, "correlation": {correlation}{args}}}}}"#
    )
}

fn host(cat: &str, ts: u64, dur: u64, name: &str, args: &str) -> String {
    format!(
        r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 9, "tid": 9, "ts": {ts}, "dur": {dur}, "args": {{{args}}}}}"#
    )
}

#[test]
fn a_call_is_described_by_its_kernel_its_record_its_annotation_or_its_name() {
    let metadata = r#", "Collective name": "allreduce", "In msg nelems": 1250, "Out msg nelems": 1250,
        "Group size": 4, "dtype": "Float", "Process Group Name": "7", "Process Group Description": "dp",
        "Process Group Ranks": "[0, 1, 2, 3]", "Seq": 5"#;
    let events = [
        host(
            "cpu_op",
            0,
            10,
            "record_param_comms",
            r#""Collective name": "_allgather_base",
            "In msg nelems": 10, "Out msg nelems": 20, "Group size": 2, "dtype": "BFloat16", "Process Group Name": "8""#,
        ),
        host(
            "cuda_runtime",
            5,
            1,
            "cudaLaunchKernelExC",
            r#""correlation": 2"#,
        ),
        host(
            "cpu_op",
            20,
            10,
            "record_param_comms",
            r#""Concrete Inputs": ["", "337", "9382", "0", "", "[]", "[]", "8"]"#,
        ),
        host(
            "user_annotation",
            21,
            5,
            "nccl:reduce_scatter",
            r#""Input Dims": [[8, 1250]], "Input type": ["c10::Half"]"#,
        ),
        host(
            "cuda_runtime",
            22,
            1,
            "cudaLaunchKernelExC",
            r#""correlation": 3"#,
        ),
        // Its own arguments count although it has no launch.
        kernel(7, 100, 10, "ncclDevKernel_Generic(x)", 1, metadata),
        kernel(7, 120, 10, "ncclDevKernel_AllGather_RING_LL(x)", 2, ""),
        kernel(7, 140, 20, "ncclDevKernel_Generic(x)", 3, ""),
        kernel(7, 170, 10, "ncclDevKernel_SendRecv(x)", 4, ""),
        kernel(7, 190, 10, "ncclDevKernel_Generic(x)", 5, ""),
        kernel(8, 95, 10, "gemm", 6, ""),
        kernel(8, 150, 25, "gemm", 7, ""),
    ];
    let folder = TempDir::new().unwrap();
    let text = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    let path = stored(folder.path(), "x", "rank0.json", text.as_bytes());
    let frames = frames(&path, TOPIC, &by(&[]));
    let all = rows(&frames, "communication");
    let shares = ["calls", "communication_ns", "overlapped_ns", "exposed_ns"]
        .map(|column| all[0][column].clone());
    assert_eq!(
        shares,
        [json!(5), json!(60_000), json!(20_000), json!(40_000)]
    );
    let mut found: BTreeMap<i64, Value> = BTreeMap::new();
    for row in rows(&frames, "collectives") {
        let columns = [
            "operation",
            "kernel",
            "group",
            "description",
            "members",
            "group_size",
            "dtype",
            "in_elements",
            "out_elements",
            "message_bytes",
            "exposed_ns",
            "algorithm_gbps",
            "bus_gbps",
        ];
        let values: Vec<Value> = columns.iter().map(|column| row[*column].clone()).collect();
        found.insert(
            row["group_size"]
                .as_i64()
                .unwrap_or(90 + i64::try_from(found.len()).unwrap()),
            json!(values),
        );
    }
    let want = |key: i64, values: Value| assert_eq!(found.get(&key), Some(&values));
    want(
        4,
        json!([
            "allreduce",
            null,
            "7",
            "dp",
            "[0,1,2,3]",
            4,
            "Float",
            1250,
            1250,
            5000,
            5000,
            0.5,
            0.75
        ]),
    );
    want(
        2,
        json!([
            "allgather",
            null,
            "8",
            null,
            null,
            2,
            "BFloat16",
            10,
            20,
            40,
            10_000,
            0.004,
            0.002
        ]),
    );
    want(
        8,
        json!([
            "reducescatter",
            null,
            null,
            null,
            null,
            8,
            "Half",
            10_000,
            null,
            20_000,
            10_000,
            1.0,
            0.875
        ]),
    );
    let nameless: Vec<String> = found.range(90..).map(|(_, row)| row.to_string()).collect();
    assert_eq!(nameless.len(), 2);
    assert!(
        nameless
            .iter()
            .any(|row| row.starts_with(r#"["sendrecv",null,null"#))
    );
    assert!(
        nameless
            .iter()
            .any(|row| row.starts_with(r#"[null,"ncclDevKernel_Generic(x)",null"#))
    );
    assert!(
        nameless.iter().all(|row| row.ends_with(",null,null]")),
        "{nameless:?}"
    );
}

#[test]
fn a_device_that_does_not_communicate_says_so() {
    let folder = TempDir::new().unwrap();
    let text = format!(r#"{{"traceEvents": [{}]}}"#, kernel(7, 0, 5, "gemm", 1, ""));
    let path = stored(folder.path(), "x", "rank0.json", text.as_bytes());
    let frames = frames(&path, TOPIC, &by(&[]));
    let all = rows(&frames, "communication");
    assert_eq!(
        (&all[0]["communication_ns"], &all[0]["overlap_ratio"]),
        (&json!(0), &Value::Null)
    );
    assert!(rows(&frames, "collectives").is_empty());
}

#[test]
fn collectives_of_the_host_count_where_no_device_communicates() {
    let range = |ts, name| {
        host(
            "user_annotation",
            ts,
            50,
            name,
            r#""Input Dims": [[33408]], "Input type": ["float"]"#,
        )
    };
    let text = |more: &str| {
        let events = [
            range(0, "gloo:all_reduce"),
            range(20, "gloo:all_reduce"),
            range(200, "nccl:all_reduce"),
        ];
        format!(r#"{{"traceEvents": [{}{more}]}}"#, events.join(","))
    };
    let folder = TempDir::new().unwrap();
    let path = stored(folder.path(), "host", "rank0.json", text("").as_bytes());
    let found = frames(&path, TOPIC, &by(&[]));
    let all = rows(&found, "communication");
    let columns = ["place", "calls", "sum_ns", "communication_ns", "exposed_ns"]
        .map(|column| all[0][column].clone());
    assert_eq!(
        columns,
        [
            json!("host"),
            json!(2),
            json!(100_000),
            json!(70_000),
            Value::Null
        ]
    );
    assert_eq!(rows(&found, "collectives")[0]["message_bytes"], 4 * 33408);
    let more = format!(",{}", kernel(7, 0, 5, "ncclKernel_AllReduce", 1, ""));
    let path = stored(
        folder.path(),
        "device",
        "rank0.json",
        text(&more).as_bytes(),
    );
    let found = frames(&path, TOPIC, &by(&[]));
    assert_eq!(rows(&found, "communication")[0]["place"], "device");
    assert_eq!(sum(&rows(&found, "communication"), "calls"), 1);
}

#[test]
fn sixteen_groups_can_be_told_apart() {
    let folder = TempDir::new().unwrap();
    let kernels: Vec<String> = (0..16)
        .map(|n| kernel(n, 0, 10 + n, &format!("k{n}_"), n + 1, ""))
        .collect();
    let text = format!(r#"{{"traceEvents": [{}]}}"#, kernels.join(","));
    let path = stored(folder.path(), "x", "rank0.json", text.as_bytes());
    let options = InspectOptions {
        groups: (0..16)
            .map(|n| (format!("g{n}"), format!("k{n}_").parse().unwrap()))
            .collect(),
        ..InspectOptions::default()
    };
    let groups = rows(&frames(&path, TOPIC, &options), "groups");
    assert_eq!(groups.len(), 16);
    assert_eq!(
        (&groups[0]["groups"], &groups[0]["exclusive_ns"]),
        (&json!("g15"), &json!(1000))
    );
    assert_eq!(
        (&groups[15]["size"], &groups[15]["exclusive_ns"]),
        (&json!(16), &json!(10_000))
    );
}

/// The traces that an answer of HTA is about.
fn hta_traces(corpus: &Path, oracle: &Value) -> Vec<PathBuf> {
    let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
    let files = oracle["trace_files"].as_array().unwrap();
    files
        .iter()
        .map(|file| data.join(file.as_str().unwrap()))
        .collect()
}

#[test]
fn overlap_is_what_hta_says_under_its_definition() {
    let traces = [
        "alexnet",
        "amd_mi250",
        "nccl",
        "neg_queue",
        "simple_add",
        "trace_filter_2ranks",
        "triton",
    ];
    let mut compared = 0;
    for trace in traces {
        let Some((corpus, oracle)) = oracle(&format!("hta/{trace}__comm_comp_overlap.json")) else {
            return;
        };
        let want = oracle["value"].as_array().unwrap();
        for (path, want) in hta_traces(&corpus, &oracle).iter().zip(want) {
            let found = rows(
                &frames(path, TOPIC, &as_defined(Definition::Hta)),
                "communication",
            );
            let ratio = found[0]["overlap_ratio"].as_f64();
            let percent = ratio.map(|ratio| (ratio * 10_000.0).round() / 100.0);
            assert_eq!(
                percent,
                want["comp_comm_overlap_pctg"].as_f64(),
                "{}",
                path.display()
            );
            compared += 1;
        }
    }
    println!("{compared} overlaps compared");
}

#[test]
fn exact_overlap_is_that_of_an_independent_program() {
    let Some((corpus, oracle)) = oracle("timeline_exact.json") else {
        return;
    };
    let traces = oracle["traces"].as_object().unwrap();
    for (name, want) in traces {
        let found = rows(
            &frames(&corpus.join("public").join(name), TOPIC, &by(&[])),
            "communication",
        );
        assert_eq!(
            sum(&found, "communication_ns"),
            want["comm_ns"].as_i64().unwrap(),
            "{name}"
        );
        assert_eq!(
            sum(&found, "overlapped_ns"),
            want["comm_comp_overlap_ns"].as_i64().unwrap(),
            "{name}"
        );
    }
    println!("{} overlaps compared", traces.len());
}

#[test]
fn combinations_are_the_kernel_types_of_hta_under_its_definition() {
    let mut compared = 0;
    for trace in [
        "amd_mi250",
        "nccl",
        "neg_queue",
        "trace_filter_2ranks",
        "triton",
    ] {
        let Some((corpus, oracle)) = oracle(&format!("hta/{trace}__gpu_kernel_breakdown.json"))
        else {
            return;
        };
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        for path in hta_traces(&corpus, &oracle) {
            for row in rows(
                &frames(&path, TOPIC, &as_defined(Definition::Hta)),
                "groups",
            ) {
                let mut names: Vec<&str> = row["groups"].as_str().unwrap().split(" + ").collect();
                names.sort_unstable();
                *found.entry(names.join(" ")).or_default() +=
                    row["exclusive_ns"].as_i64().unwrap() / 1000;
            }
        }
        let mut want: BTreeMap<String, i64> = BTreeMap::new();
        for row in oracle["value"]["by_type"].as_array().unwrap() {
            let mut names: Vec<String> = row["kernel_type"]
                .as_str()
                .unwrap()
                .split(" overlapping ")
                .map(|name| name.to_lowercase().replace("computation", "compute"))
                .collect();
            names.sort_unstable();
            want.insert(names.join(" "), row["sum"].as_i64().unwrap());
        }
        if found != want {
            println!("{trace}: {found:?} {want:?}");
            continue;
        }
        compared += 1;
    }
    assert_eq!(compared, 4);
}

#[test]
fn overlap_is_what_the_tensorboard_plugin_says_under_its_definition() {
    let Some((corpus, oracle)) = oracle("tb_plugin/tb__hta_nccl.json") else {
        return;
    };
    let path = "public/facebookresearch+HolisticTraceAnalysis/tests/data/nccl_parser_config/nccl_data.json.gz";
    let found = rows(
        &frames(
            &corpus.join(path),
            TOPIC,
            &as_defined(Definition::Tensorboard),
        ),
        "communication",
    );
    let want = oracle["comm_overlap"].as_array().unwrap();
    assert_eq!(found.len(), want.len());
    for (row, want) in found.iter().zip(want) {
        for (column, key) in [
            ("computation_ns", "computation"),
            ("communication_ns", "communication"),
            ("overlapped_ns", "overlap"),
            ("other_ns", "other"),
        ] {
            let (got, want) = (
                row[column].as_i64().unwrap() as f64 / 1e3,
                want[key].as_f64().unwrap(),
            );
            // The plugin adds up times near 2^42 µs as floating-point numbers.
            assert!((got - want).abs() < 0.05, "{column}: {got}, want {want}");
        }
    }
}
