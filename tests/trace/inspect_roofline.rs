//! `inspect roofline`: laws over random and real traces, and FLOPs of a model that is known.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use tracekit::inspect::{By, InspectOptions, Topic};

use crate::support::answer::stored;
use crate::support::builder::{Layout, build, few, plans};
use crate::support::inspection::{frames, instabilities, int, rows, sum};
use crate::support::{corpus, package};
use tempfile::TempDir;

const TOPIC: Topic = Topic::Roofline;

fn by(by: &[By], top: usize) -> InspectOptions {
    InspectOptions {
        by: by.to_vec(),
        top,
        ..InspectOptions::default()
    }
}

/// Sums stay the same however rows are grouped, and nothing runs faster than its device.
fn broken_laws(path: &Path) -> Vec<String> {
    let whole = frames(path, TOPIC, &by(&[], 0));
    let operators = rows(&whole, "roofline");
    let mut found = Vec::new();
    for grouping in [
        by(&[], 1),
        by(&[By::Phase], 0),
        by(&[By::Step, By::Shape], 3),
    ] {
        let grouped = rows(&frames(path, TOPIC, &grouping), "roofline");
        for column in ["calls", "device_events", "flops", "sum_ns"] {
            let (want, got) = (sum(&operators, column), sum(&grouped, column));
            if want != got {
                found.push(format!("{}: {column}: {got} is not {want}", path.display()));
            }
        }
    }
    for row in &operators {
        let time = |column: &str| row[column].as_i64();
        if time("busy_ns") > time("sum_ns") {
            found.push(format!(
                "{}: busy for longer than all: {row}",
                path.display()
            ));
        }
        if row["family"].is_null() != row["flops"].is_null() {
            found.push(format!("{}: FLOPs without a model: {row}", path.display()));
        }
    }
    for row in rows(&whole, "utilisation") {
        let ratio = |column: &str| row[column].as_f64().unwrap_or(0.0);
        let in_order = ratio("mfu") <= ratio("hfu") && ratio("hfu") <= 1.0;
        if !in_order || !(0.0..=1.0).contains(&ratio("coverage")) {
            found.push(format!("{}: utilisation: {row}", path.display()));
        }
    }
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
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let options = by(&[By::Step, By::Phase, By::Shape], 0);
        let found = instabilities(&build(&plan), seed, TOPIC, &options);
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// FLOPs of one family and phase, in all steps.
fn flops(rows: &[Value], family: &str, phase: &str) -> i64 {
    let of = |row: &&Value| row["family"] == family && row["phase"] == phase;
    rows.iter().filter(of).map(|row| int(row, "flops")).sum()
}

/// The sample traces are of a two-layer transformer with 2 sequences of 64, 64 channels and 4 heads, so
/// that its products can be counted by hand.
#[test]
fn the_flops_of_the_sample_are_those_of_its_model() {
    let tokens = 2 * 64;
    let width = 64;
    // Queries, keys and values; output; up and down by 4.
    let linear = 2 * tokens * width * (3 * width + width + 8 * width);
    // Q·Kᵀ and P·V of 64 × 64 pairs, all heads together.
    let attention = 2 * 2 * tokens * 64 * width;
    let layers = 2 * (linear + attention);
    let path = |strategy: &str| package("fixtures/traces").join(strategy);
    let of = |strategy: &str| {
        rows(
            &frames(&path(strategy), TOPIC, &by(&[By::Phase], 0)),
            "roofline",
        )
    };
    let base = of("baseline");
    let steps = 2;
    let forward = flops(&base, "matmul", "forward");
    // The head: 256 tokens to choose from.
    assert_eq!(forward, steps * (layers + 2 * tokens * width * 256));
    // Each product has two in backward.
    assert_eq!(flops(&base, "matmul", "backward"), 2 * forward);
    assert_eq!(flops(&base, "matmul", "recompute"), 0);
    let checkpoint = of("checkpoint");
    assert_eq!(flops(&checkpoint, "matmul", "forward"), forward);
    assert_eq!(flops(&checkpoint, "matmul", "backward"), 2 * forward);
    // Both blocks run again whole, the head does not.
    let again = flops(&checkpoint, "matmul", "recompute");
    assert_eq!(again, steps * layers);
    let utilisation = rows(
        &frames(&path("checkpoint"), TOPIC, &by(&[], 0)),
        "utilisation",
    );
    let all = utilisation.last().unwrap();
    assert_eq!(int(all, "model_flops"), 3 * forward);
    assert_eq!(int(all, "recomputed_flops"), again);
    assert!(all["mfu"].is_null() && all["device"].is_null());
}

/// The same model on two devices has the same FLOPs, and no row beats its device where its data has to
/// come from memory.
#[test]
fn a_model_has_the_same_flops_on_every_device() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let of = |device: &str| {
        let lens = corpus.join("public/AMD-AGI+TraceLens/tests/traces");
        let path = lens
            .join(device)
            .join("Falconsai_nsfw_image_detection__1016002.json.gz");
        frames(&path, TOPIC, &by(&[], 0))
    };
    let (nvidia, amd) = (of("h100"), of("mi300"));
    let all = |frames: &[Value]| rows(frames, "utilisation").last().unwrap().clone();
    assert!(int(&all(&nvidia), "model_flops") > 0);
    assert_eq!(all(&nvidia)["model_flops"], all(&amd)["model_flops"]);
    for frames in [nvidia, amd] {
        let row = all(&frames);
        let mfu = row["mfu"].as_f64().unwrap();
        assert!(mfu > 0.001 && mfu < 0.5, "{row}");
        assert!(row["coverage"].as_f64().unwrap() > 0.9, "{row}");
        for row in rows(&frames, "roofline") {
            assert!(row["roofline_share"].as_f64().unwrap_or(0.0) < 1.0, "{row}");
        }
    }
}

#[test]
fn sums_add_up_over_fixtures_and_the_corpus() {
    let mut paths = vec![package("fixtures/golden"), package("fixtures/traces")];
    if let Some(corpus) = corpus::folder() {
        let public = corpus.join("public");
        let lens = public.join("AMD-AGI+TraceLens/tests/traces");
        paths.extend([
            lens.join("h100/Falconsai_nsfw_image_detection__1016002.json.gz"),
            lens.join("mi300/Falconsai_nsfw_image_detection__1016002.json.gz"),
            lens.join("mi300/resnet_act_checkpoint.json.gz"),
            lens.join("b200/eager_trace.json.gz"),
            lens.join("torch_compile_triton/trace.json.gz"),
            public.join("astra-sim+astra-sim/my_test/inputs/workload/megatron-tp8/megatron_kineto_0.json.gz"),
            public.join("facebookresearch+HolisticTraceAnalysis/tests/data/trace_filter"),
        ]);
        for variant in [
            "baseline_sdpa",
            "convnet_baseline",
            "opt_adamw_fused",
            "ddp_gloo",
        ] {
            paths.push(corpus.join("torch-cpu/2.15.0").join(variant));
        }
    }
    let found: Vec<String> = paths.iter().flat_map(|path| broken_laws(path)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
