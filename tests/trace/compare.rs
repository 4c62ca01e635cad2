//! Comparisons: values computed by hand, laws over random traces, and pairs of the corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use tracekit::attribute::{AttributeOptions, Request};
use tracekit::compare::{CompareOptions, compare_paths};
use tracekit::ingest::IngestOptions;

use crate::support::builder::{Layout, build, few, plans};
use crate::support::inspection::{rows, sum};
use crate::support::seeded::Seeded;
use crate::support::{corpus, gzip, package};

fn compare_all(base: &[PathBuf], candidate: &[PathBuf], options: &CompareOptions) -> Value {
    let attribute = AttributeOptions::default();
    let request = |paths| Request {
        salvage: None,
        paths,
        ingest: IngestOptions::default(),
        options: &attribute,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    };
    let comparison = compare_paths(&request(base), &request(candidate), options, &|_| {}).unwrap();
    serde_json::to_value(comparison).unwrap()
}

fn compare(base: &Path, candidate: &Path) -> Value {
    let options = CompareOptions {
        top: 0,
        ..CompareOptions::default()
    };
    compare_all(&[base.to_owned()], &[candidate.to_owned()], &options)
}

fn frame(comparison: &Value, name: &str) -> Vec<Value> {
    rows(comparison["frames"].as_array().unwrap(), name)
}

fn row<'a>(rows: &'a [Value], keys: &[(&str, &str)]) -> &'a Value {
    let found = |row: &&Value| keys.iter().all(|(column, value)| row[column] == *value);
    let row = rows.iter().find(found);
    row.unwrap_or_else(|| panic!("no row has {keys:?}"))
}

/// Everything that says something about a pair of equal sides.
fn verdicts(comparison: &Value) -> Vec<String> {
    let frames = comparison["frames"].as_array().unwrap().iter();
    let rows = frames.flat_map(|frame| frame["rows"].as_array().unwrap());
    let of_row = |row: &Value| ["verdict", "device_verdict"].map(|column| row[column].clone());
    let mut found: Vec<String> = rows
        .flat_map(of_row)
        .filter_map(|verdict| verdict.as_str().map(str::to_owned))
        .collect();
    found.push(comparison["step"]["verdict"].as_str().unwrap().to_owned());
    found.sort();
    found.dedup();
    found
}

/// A training run on one device; times in nanoseconds.
///
/// ```text
/// host    ├─ ProfilerStep, 1 ms ──┤                       every 20 ms
///           ├ aten::mm ┤ ├ aten::copy_ ┤ (with copies only)
/// device  50 µs ├──── kernel ────┤├─ copy ─┤
/// ```
struct Run {
    steps: i64,
    /// Every step takes 20 µs more than the one before, for five steps.
    kernel: i64,
    /// Nothing is copied when 0.
    copy: i64,
    dims: &'static str,
}

impl Run {
    fn write(&self, path: &Path) {
        let mut events = vec![];
        let mut push =
            |name: &str, cat: &str, tid: i64, (start, length): (i64, i64), args: Value| {
                events.push(json!({
                    "ph": "X", "name": name, "cat": cat, "pid": 1, "tid": tid,
                    "ts": start as f64 / 1e3, "dur": length as f64 / 1e3, "args": args,
                }));
            };
        let device = |stream: i64, number: i64| json!({"device": 0, "stream": stream, "correlation": number, "External id": number});
        for step in 0..self.steps {
            let start = 1_000_000 + step * 20_000_000;
            let kernel = self.kernel + step % 5 * 20_000;
            let name = format!("ProfilerStep#{}", step + 3);
            push(&name, "user_annotation", 1, (start, 1_000_000), json!({}));
            push(
                "forward",
                "user_annotation",
                1,
                (start + 1_000, 900_000),
                json!({}),
            );
            let dims = json!({"Input Dims": [self.dims], "Input type": ["float"]});
            push("aten::mm", "cpu_op", 1, (start + 10_000, 100_000), dims);
            let launch = json!({"correlation": 2 * step + 1});
            let at = (start + 20_000, 10_000);
            push("cudaLaunchKernel", "cuda_runtime", 1, at, launch);
            let at = (start + 50_000, kernel);
            push("gemm", "kernel", 7, at, device(7, 2 * step + 1));
            if self.copy > 0 {
                push(
                    "aten::copy_",
                    "cpu_op",
                    1,
                    (start + 200_000, 50_000),
                    json!({}),
                );
                let launch = json!({"correlation": 2 * step + 2});
                let at = (start + 210_000, 10_000);
                push("cudaMemcpyAsync", "cuda_runtime", 1, at, launch);
                let at = (start + 50_000 + kernel, self.copy);
                push("Memcpy DtoH", "gpu_memcpy", 7, at, device(7, 2 * step + 2));
            }
        }
        let trace = json!({
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "Example GPU"}],
            "traceEvents": events,
        });
        std::fs::write(path, trace.to_string()).unwrap();
    }
}

const BASE: Run = Run {
    steps: 10,
    kernel: 10_000_000,
    copy: 0,
    dims: "[[8, 8], [8, 8]]",
};

#[test]
fn a_faster_kernel_that_is_paid_for_with_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (base, candidate) = (folder.path().join("a.json"), folder.path().join("b.json"));
    BASE.write(&base);
    Run {
        kernel: 8_000_000,
        copy: 500_000,
        ..BASE
    }
    .write(&candidate);
    let found = compare(&base, &candidate);
    let step = &found["step"];
    // 50 µs + 10 ms + 40 µs; 50 µs + 8 ms + 40 µs + 500 µs.
    assert_eq!(step["base_ns"], 10_090_000);
    assert_eq!(step["candidate_ns"], 8_590_000);
    assert_eq!(
        (&step["verdict"], &step["clock"]),
        (&json!("faster"), &json!("device"))
    );
    assert_eq!(
        (&step["units"], &step["base_units"]),
        (&json!("steps"), &json!(10))
    );
    assert_eq!(step["min_effect"], 0.03);
    assert!(step["p"].as_f64().unwrap() < 0.01);
    let change = step["change"].as_f64().unwrap();
    assert!((change - (8_590.0 / 10_090.0 - 1.0)).abs() < 1e-12);
    assert_eq!(step["same_work"], true);

    let phases = frame(&found, "phases");
    let forward = row(&phases, &[("place", "device"), ("phase", "forward")]);
    assert_eq!(
        (&forward["base_ns"], &forward["candidate_ns"]),
        (&json!(10_040_000), &json!(8_540_000))
    );
    assert_eq!(forward["verdict"], "less");

    let costs = frame(&found, "cost_shift");
    let copies = row(&costs, &[("cost", "exposed_copies")]);
    assert_eq!(
        (&copies["base_ns"], &copies["candidate_ns"]),
        (&json!(0), &json!(500_000))
    );
    assert_eq!(copies["verdict"], "more");
    // 5 % of a step: large enough to be named.
    assert_eq!(found["costs"][0]["cost"], "exposed_copies");
    assert_eq!(found["costs"].as_array().unwrap().len(), 1);
    // The 50 µs before the first work, on both sides.
    assert_eq!(found["bottleneck"]["cost"], "idle");
    assert_eq!(found["bottleneck"]["base_ns"], 50_000);
    assert_eq!(found["bottleneck"]["judgement"]["verdict"], "no_difference");

    let operators = frame(&found, "operators");
    let copy = row(&operators, &[("operator", "aten::copy_")]);
    assert_eq!(
        (&copy["state"], &copy["candidate_calls"]),
        (&json!("new"), &json!(1.0))
    );
    assert_eq!(
        (&copy["candidate_ns"], &copy["delta_device_ns"]),
        (&json!(50_000), &json!(500_000))
    );
    let mm = row(&operators, &[("operator", "aten::mm")]);
    assert_eq!(
        (&mm["state"], &mm["verdict"]),
        (&json!("same_calls"), &json!("no_difference"))
    );
    assert_eq!(
        (&mm["delta_device_ns"], &mm["device_verdict"]),
        (&json!(-2_000_000), &json!("less"))
    );

    let kernels = frame(&found, "kernels");
    let gemm = row(&kernels, &[("kernel", "gemm")]);
    assert_eq!(
        (&gemm["delta_ns"], &gemm["verdict"]),
        (&json!(-2_000_000), &json!("less"))
    );
    let other_way = compare(&candidate, &base);
    assert_eq!(other_way["step"]["verdict"], "slower");
    assert_eq!(frame(&other_way, "kernels")[1]["state"], "gone");
}

#[test]
fn other_shapes_are_other_work() {
    let folder = tempfile::tempdir().unwrap();
    let (base, candidate) = (folder.path().join("a.json"), folder.path().join("b.json"));
    BASE.write(&base);
    Run {
        dims: "[[4, 8], [8, 8]]",
        kernel: 5_000_000,
        ..BASE
    }
    .write(&candidate);
    let found = compare(&base, &candidate);
    assert_eq!(found["step"]["verdict"], "faster");
    assert_eq!(found["step"]["same_work"], false);
    let contract = frame(&found, "contract");
    assert_eq!(row(&contract, &[("item", "model_shapes")])["same"], false);
    assert_eq!(row(&contract, &[("item", "dtypes")])["base"], "float");
}

#[test]
fn repeats_are_the_units_where_there_are_three() {
    let folder = tempfile::tempdir().unwrap();
    let side = |name: &str, faster: i64| -> Vec<PathBuf> {
        let write = |repeat: i64| {
            let path = folder.path().join(format!("{name}{repeat}/trace.json"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            Run {
                // Repeats differ more than the steps of one.
                kernel: 10_000_000 + repeat * 200_000 - faster,
                ..BASE
            }
            .write(&path);
            path
        };
        (0..5).map(write).collect()
    };
    let (base, candidate) = (side("a", 0), side("b", 3_000_000));
    let found = compare_all(&base, &candidate, &CompareOptions::default());
    let step = &found["step"];
    assert_eq!(
        (&step["units"], &step["base_units"]),
        (&json!("repeats"), &json!(5))
    );
    assert_eq!(step["min_effect"], 0.01);
    assert_eq!(step["sees_noise_between_runs"], true);
    // 2 of 252 splits.
    assert_eq!(step["p"], 2.0 / 252.0);
    assert_eq!(step["verdict"], "faster");
    assert_eq!(found["base"]["repeats"], 5);
    // They differ in time, not in what they do.
    assert_eq!(found["base"]["mixed"], Value::Null);
    // Between four and four, 2 of 70 splits are as far apart: that cannot reach 0.01.
    let few = compare_all(&base[..4], &candidate[..4], &CompareOptions::default());
    assert_eq!(few["step"]["verdict"], "inconclusive");
    assert_eq!(few["step"]["reason"], "too_few");
    // A folder holds the same repeats; the order of paths does not matter.
    let mut turned = base.clone();
    turned.reverse();
    assert_eq!(
        compare_all(&turned, &candidate, &CompareOptions::default())["step"],
        found["step"]
    );
}

#[test]
fn many_steps_are_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("a.json");
    Run { steps: 250, ..BASE }.write(&base);
    let found = compare(&base, &base);
    assert_eq!(found["step"]["units"], "groups_of_steps");
    // Three steps a group.
    assert_eq!(found["step"]["base_units"], 84);
    assert_eq!(verdicts(&found), ["no_difference"]);
}

#[test]
fn a_saved_attribution_says_the_same_about_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (base, candidate) = (folder.path().join("a.json"), folder.path().join("b.json"));
    BASE.write(&base);
    Run {
        kernel: 8_000_000,
        copy: 500_000,
        ..BASE
    }
    .write(&candidate);
    let attribute = AttributeOptions::default();
    let paths = [base.clone()];
    let request = Request {
        salvage: None,
        paths: &paths,
        ingest: IngestOptions::default(),
        options: &attribute,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: true,
    };
    let saved = folder.path().join("saved.json");
    let attribution = tracekit::attribute::attribute_paths(&request, &|_| {}).unwrap();
    std::fs::write(&saved, serde_json::to_vec(&attribution).unwrap()).unwrap();
    let (whole, part) = (compare(&base, &candidate), compare(&saved, &candidate));
    for value in ["verdict", "p", "base_ns", "candidate_ns", "low", "high"] {
        assert_eq!(whole["step"][value], part["step"][value], "{value}");
    }
    let devices = |comparison: &Value| -> Vec<Value> {
        let mut rows = frame(comparison, "phases");
        rows.retain(|row| row["place"] == "device");
        rows
    };
    assert_eq!(devices(&whole), devices(&part));
    assert_eq!(part["base"]["source"], "attribution");
    let absent: Vec<&Value> = part["absent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["what"])
        .collect();
    assert!(absent.contains(&&json!("operators")));
    assert_eq!(part["step"]["same_work"], Value::Null);
}

#[test]
fn a_saved_attribution_names_the_bottleneck_of_its_traces_or_says_that_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, path: &Path| {
        let attribute = AttributeOptions::default();
        let paths = [path.to_owned()];
        let request = Request {
            salvage: None,
            paths: &paths,
            ingest: IngestOptions::default(),
            options: &attribute,
            ranks: Vec::new(),
            expect: Vec::new(),
            hash_inputs: false,
        };
        let attribution = tracekit::attribute::attribute_paths(&request, &|_| {}).unwrap();
        let saved = folder.path().join(name);
        std::fs::write(&saved, serde_json::to_vec(&attribution).unwrap()).unwrap();
        saved
    };
    let bottleneck = |comparison: &Value| comparison["bottleneck"].clone();
    // With device work both say the same.
    for case in ["two-steps", "checkpoint-reentrant", "timeline-classes"] {
        let path = package("fixtures/golden").join(case).join("trace.json");
        let saved = save(&format!("{case}.json"), &path);
        let whole = compare(&path, &path);
        assert!(!bottleneck(&whole).is_null(), "{case}");
        for (base, candidate) in [(&saved, &path), (&path, &saved), (&saved, &saved)] {
            let found = bottleneck(&compare(base, candidate));
            assert_eq!(found, bottleneck(&whole), "{case}");
        }
    }
    // Without, some costs of the host are not in a saved attribution.
    let samples = package("fixtures/traces");
    let saved = save("samples.json", &samples.join("baseline"));
    let whole = compare(&samples.join("baseline"), &samples.join("checkpoint"));
    assert_eq!(whole["bottleneck"]["place"], "host");
    let part = compare(&saved, &samples.join("checkpoint"));
    assert!(bottleneck(&part).is_null());
    let absent = part["absent"].as_array().unwrap();
    assert!(
        absent.iter().any(|it| it["what"] == "bottleneck"),
        "{absent:?}"
    );
    // What it does hold is the cost all the same.
    assert_eq!(part["costs"][0]["cost"], "recompute");
}

#[test]
fn strategies_are_no_repeats_of_one_program() {
    let samples = package("fixtures/traces");
    let found = compare(&samples, &samples.join("baseline"));
    let mixed = &found["base"]["mixed"];
    assert_eq!(
        mixed["repeats"],
        json!(["baseline", "checkpoint", "offload"])
    );
    assert_eq!(mixed["differ_in"], json!(["operators", "recompute"]));
    assert_eq!(found["candidate"]["mixed"], Value::Null);
    assert_eq!(found["step"]["same_work"], false);
    assert!(
        found["step"]["differences"]
            .as_array()
            .unwrap()
            .contains(&json!("programs"))
    );
    // Offloading recomputes nothing; it shows in its operators.
    let two = ["baseline", "offload"].map(|name| samples.join(name));
    let found = compare_all(&two, &two[..1], &CompareOptions::default());
    assert_eq!(found["base"]["mixed"]["differ_in"], json!(["operators"]));
    // The same strategies on both sides are the same work.
    let same = compare(&samples, &samples);
    assert_eq!(same["step"]["same_work"], true);
    assert_eq!(same["candidate"]["mixed"], *mixed);
    // A saved attribution tells by the recompute.
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.json");
    let options = AttributeOptions::default();
    let paths = [samples.clone()];
    let request = Request {
        salvage: None,
        paths: &paths,
        ingest: IngestOptions::default(),
        options: &options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    };
    let attribution = tracekit::attribute::attribute_paths(&request, &|_| {}).unwrap();
    std::fs::write(&saved, serde_json::to_vec(&attribution).unwrap()).unwrap();
    let found = compare(&saved, &samples.join("baseline"));
    assert_eq!(found["base"]["mixed"]["differ_in"], json!(["recompute"]));
}

#[test]
fn sides_without_steps_or_without_anything_are_inconclusive() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let empty = write("empty.json", r#"{"traceEvents": []}"#);
    let operator =
        r#"[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":5}]"#;
    let operator = write("operator.json", operator);
    let steps = folder.path().join("steps.json");
    BASE.write(&steps);
    for (base, candidate) in [
        (&empty, &empty),
        (&empty, &steps),
        (&operator, &steps),
        (&steps, &empty),
    ] {
        let found = compare(base, candidate);
        assert_eq!(found["step"]["verdict"], "inconclusive");
        assert_eq!(found["step"]["reason"], "not_measured");
        assert_eq!(found["step"]["base_ns"], Value::Null);
        assert_eq!(found["step"]["units"], "captures");
    }
    let found = compare(&operator, &operator);
    let operators = frame(&found, "operators");
    assert_eq!(
        (&operators[0]["base_ns"], &operators[0]["base_calls"]),
        (&json!(5_000), &json!(1.0))
    );
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn a_trace_is_no_different_from_itself_whatever_its_form(plan in plans()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        let mut content = build(&plan);
        std::fs::write(&path, content.write(Layout::Native)).unwrap();
        let own = compare(&path, &path);
        let verdict = own["step"]["verdict"].clone();
        // Without whole steps there are no step times.
        let expected = if own["step"]["base_ns"].is_null() { "inconclusive" } else { "no_difference" };
        prop_assert_eq!(verdict, expected);
        for name in ["phases", "cost_shift", "operators", "kernels", "collectives"] {
            for row in frame(&own, name) {
                prop_assert_eq!(&row["base_ns"], &row["candidate_ns"]);
                prop_assert_eq!(&row["verdict"], "no_difference", "{} {}", name, row);
            }
        }
        for place in ["device", "host"] {
            let mut rows = frame(&own, "phases");
            rows.retain(|row| row["place"] == place);
            let total = rows.pop().map_or(0, |total| total["base_ns"].as_i64().unwrap());
            prop_assert_eq!(sum(&rows, "base_ns"), total);
        }
        Seeded::new(plan.seed).shuffle(&mut content.events);
        std::fs::write(&path, gzip(&content.write(Layout::Minified))).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let shuffled = pool.install(|| compare(&path, &path));
        prop_assert_eq!(own, shuffled);
    }
}

#[test]
fn checkpointing_in_the_corpus_is_paid_for_with_recompute() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let runs = corpus::runs(&corpus);
    let mut compared = 0;
    for run in &runs {
        let checkpointed = matches!(
            run.variant.as_str(),
            "ckpt_nonreentrant_min" | "ckpt_nonreentrant_truth" | "ckpt_reentrant_truth"
        );
        if !checkpointed {
            continue;
        }
        let version = run.name.split('/').next().unwrap();
        let baseline = runs.iter().find(|other| {
            other.variant == "baseline_gz" && other.name.starts_with(&format!("{version}/"))
        });
        let base = &baseline.unwrap().path;
        let found = compare(base, &run.path);
        compared += 1;
        assert_eq!(found["costs"][0]["cost"], "recompute", "{}", run.name);
        let phases = frame(&found, "phases");
        let recompute = row(&phases, &[("place", "host"), ("phase", "recompute")]);
        assert_eq!(recompute["base_ns"], 0);
        assert!(recompute["candidate_ns"].as_i64().unwrap() > 0);
        // Two steps; the truth counts over both.
        let operators = frame(&found, "operators");
        let total = |column: &str| -> f64 {
            operators
                .iter()
                .filter_map(|row| row[column].as_f64())
                .sum()
        };
        assert_eq!(json!(total("base_recomputed")), json!(0.0));
        assert_eq!(
            json!(total("candidate_recomputed") * 2.0),
            json!(run.truth_ops as f64),
            "{}",
            run.name
        );
        // What multiplies matrices is recomputed exactly as often as it is called more often.
        let mut more: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for row in &operators {
            let number = |column: &str| row[column].as_f64().unwrap();
            let sums = more.entry(row["operator"].as_str().unwrap()).or_default();
            sums[0] += number("candidate_calls") - number("base_calls");
            sums[1] += number("candidate_recomputed");
        }
        for name in ["aten::addmm", "aten::bmm", "aten::gelu", "aten::_softmax"] {
            let [added, recomputed] = more[name];
            assert!(recomputed > 0.0, "{name} of {}", run.name);
            assert_eq!(json!(added), json!(recomputed), "{name} of {}", run.name);
        }
        // Without input shapes it is not known.
        let known = run.variant.ends_with("truth");
        assert_eq!(
            found["step"]["same_work"],
            json!(known.then_some(true)),
            "{}",
            run.name
        );
    }
    assert!(compared >= 6, "only {compared}");
}

#[test]
fn traces_of_the_corpus_are_no_different_from_themselves() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let own = |run: &&corpus::Run| {
        let variants = [
            "baseline_gz",
            "ckpt_reentrant",
            "ddp_gloo/rank0",
            "amp_bf16",
            "inference",
        ];
        variants.contains(&run.variant.as_str())
    };
    let runs = corpus::runs(&corpus);
    for run in runs.iter().filter(own) {
        assert_eq!(
            verdicts(&compare(&run.path, &run.path)),
            ["no_difference"],
            "{}",
            run.name
        );
    }
}

#[test]
fn the_pair_of_the_public_corpus_differs_in_what_was_changed_in_it() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let folder =
        corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data/trace_compare");
    let [base, test] = ["base/base.json.gz", "test/test.json.gz"].map(|name| folder.join(name));
    let found = compare(&base, &test);
    // One launch of the second step has no kernel in the test trace, so that step is cut.
    let steps = frame(&found, "steps");
    let partial: Vec<(&Value, &Value)> = steps
        .iter()
        .filter(|row| row["partial"] == true)
        .map(|row| (&row["side"], &row["step"]))
        .collect();
    assert_eq!(
        partial,
        [(&json!("candidate"), &json!("ProfilerStep#1010"))]
    );
    // The step that is whole on both sides takes as long on both.
    let first = |side| row(&steps, &[("side", side), ("step", "ProfilerStep#1009")]);
    assert_eq!(first("base")["device_ns"], first("candidate")["device_ns"]);
    assert_eq!(found["step"]["verdict"], "inconclusive");
    let contract = frame(&found, "contract");
    assert_eq!(
        row(&contract, &[("item", "forward_operators")])["same"],
        false
    );
    // What was changed in the file: three operators more, one kernel less.
    let captures = frame(&found, "captures");
    let told: Vec<(&str, &str, i64, i64)> = captures
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap().split('<').next().unwrap(),
                row["state"].as_str().unwrap(),
                row["base_calls"].as_i64().unwrap(),
                row["candidate_calls"].as_i64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("All2All_Pooled_Req", "new", 0, 1),
        ("AddmmBackward0", "new", 0, 1),
        ("CatBackward0", "new", 0, 1),
        (
            "void at::native::vectorized_elementwise_kernel",
            "fewer_calls",
            3,
            2,
        ),
    ];
    assert_eq!(told.len(), expected.len(), "{captures:?}");
    for row in expected {
        assert!(told.contains(&row), "{row:?} in {told:?}");
    }
}

#[test]
fn what_only_a_cut_step_calls_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (base, candidate) = (folder.path().join("a.json"), folder.path().join("b.json"));
    BASE.write(&base);
    let mut trace: Value = serde_json::from_str(&std::fs::read_to_string(&base).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array_mut().unwrap();
    // Outside of every step.
    events.push(json!({
        "ph": "X", "name": "aten::linalg_inv", "cat": "cpu_op", "pid": 1, "tid": 1,
        "ts": 900, "dur": 50, "args": {},
    }));
    std::fs::write(&candidate, trace.to_string()).unwrap();
    let found = compare(&base, &candidate);
    let captures = frame(&found, "captures");
    assert_eq!(captures.len(), 1, "{captures:?}");
    let expected = json!({
        "kind": "operator", "name": "aten::linalg_inv", "input_dims": null, "state": "new",
        "base_calls": 0, "candidate_calls": 1,
    });
    assert_eq!(captures[0], expected);
    let operators = frame(&found, "operators");
    assert!(
        operators
            .iter()
            .all(|row| row["operator"] != "aten::linalg_inv")
    );
    // Nothing of it where all is the same.
    let own = compare(&candidate, &candidate);
    let names: Vec<&Value> = own["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert!(!names.contains(&&json!("captures")), "{names:?}");
}
