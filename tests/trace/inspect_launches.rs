//! `tracekit inspect launches` over random and real traces.

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use tracekit::inspect::{By, Definition, InspectOptions, Topic};

use crate::support::answer::{answer, stored};
use crate::support::builder::{Layout, build, few, plans};
use crate::support::inspection::{
    close, frames, instabilities, int, oracle, oracles_of_hta, rows, sum,
};

fn hta() -> InspectOptions {
    InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    }
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn every_launch_is_in_one_row(plan in plans(), top in 0..4usize) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let attribution = answer(&path);
        let linked = &attribution["coverage"]["linked_by"];
        let linked: i64 = ["correlation", "flow", "external_id"].iter().map(|key| int(linked, key)).sum();
        let calls = |options: &InspectOptions| rows(&frames(&path, Topic::Launches, options), "launches");
        let whole = calls(&InspectOptions { top: 0, ..InspectOptions::default() });
        prop_assert_eq!(sum(&whole, "device_events"), linked);
        let by = InspectOptions { top, by: vec![By::Phase, By::Step], ..InspectOptions::default() };
        let parts = calls(&by);
        for column in [
            "launches", "device_events", "call_sum_ns", "delay_sum_ns", "started_in_call",
            "shorter_than_call", "long_calls", "long_delays",
        ] {
            prop_assert_eq!(sum(&whole, column), sum(&parts, column), "{}", column);
        }
        let queues = rows(&frames(&path, Topic::Launches, &by), "queue");
        prop_assert_eq!(sum(&queues, "launched"), linked);
    }

    #[test]
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let trace = build(&plan);
        let by = InspectOptions { by: vec![By::Phase], top: 2, ..InspectOptions::default() };
        for options in [by, hta()] {
            let found = instabilities(&trace, seed, Topic::Launches, &options);
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}

/// Columns of pandas' `describe`, with ours.
const DESCRIBED: [(&str, &str); 8] = [
    ("count", "count"),
    ("mean", "mean"),
    ("std", "std"),
    ("min", "min"),
    ("25%", "p25"),
    ("50%", "p50"),
    ("75%", "p75"),
    ("max", "max"),
];

#[test]
fn hta_has_the_same_launch_stats() {
    let mut compared = 0;
    for (name, oracle, paths) in oracles_of_hta("launch_stats") {
        let got = rows(&frames(&paths[0], Topic::Launches, &hta()), "launch_stats");
        for row in &got {
            let quantity = row["quantity"].as_str().unwrap();
            let want = &oracle["value"];
            assert!(close(&row["count"], &want["rows"], 0.0), "{name}: {row}");
            assert!(
                close(&row["sum"], &want["sum"][quantity], 1e-9),
                "{name}: {row}"
            );
            let described = want["describe"].as_array().unwrap();
            for (theirs, ours) in DESCRIBED {
                let line = described.iter().find(|line| line["index"] == theirs);
                let want = &line.unwrap()[quantity];
                assert!(
                    close(&row[ours], want, 1e-9),
                    "{name}: {ours} is {want} in {row}"
                );
                compared += 1;
            }
        }
    }
    println!("{compared} values compared");
}

#[test]
fn hta_has_the_same_queue_lengths_but_for_ties() {
    let (mut same, mut tied) = (0, Vec::new());
    for (name, oracle, paths) in oracles_of_hta("queue_length_summary") {
        let got = rows(
            &frames(&paths[0], Topic::Launches, &hta()),
            "queue_length_summary",
        );
        let want = oracle["value"].as_array().unwrap().iter();
        let want: Vec<&Value> = want
            .filter(|row| row["rank"] == want_rank(&oracle))
            .collect();
        assert_eq!(got.len(), want.len(), "{name}");
        for (row, want) in got.iter().zip(want) {
            assert_eq!(row["stream"], want["stream"], "{name}");
            for (theirs, ours) in DESCRIBED {
                let value = &want[format!("queue_length|{theirs}")];
                if close(&row[ours], value, 1e-6) {
                    same += 1;
                } else {
                    // Where several changes happen in one microsecond, the order of HTA's sort decides.
                    assert!(
                        close(&row[ours], value, 0.02),
                        "{name}: {ours} is {value} in {row}"
                    );
                    tied.push(format!("{name}, stream {}: {ours}", row["stream"]));
                }
            }
        }
    }
    println!("{same} values are the same, up to ties: {tied:?}");
}

/// On an MTIA device: HTA was asked for the five most frequent sequences.
#[test]
fn hta_has_the_same_sequences_of_kernels() {
    let Some((corpus, oracle)) = oracle("hta/mtia__aten_op_delay.json") else {
        return;
    };
    let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
    let path = data.join(oracle["trace_files"][0].as_str().unwrap());
    let got = rows(&frames(&path, Topic::Launches, &hta()), "aten_op_kernels");
    let want = oracle["value"].as_array().unwrap();
    assert_eq!(want.len(), 5);
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got["operator"], want["aten_op_name"], "{want}");
        assert_eq!(got["kernel_sequence"], want["kernel_sequence"], "{want}");
        assert_eq!(got["count"], want["occurrence_count"], "{want}");
        for (ours, theirs) in [
            ("avg_op_launch_delay_us", "avg_aten_op_launch_delay"),
            ("avg_runtime_delay_us", "avg_runtime_delay"),
        ] {
            let (got, want) = (got[ours].as_f64().unwrap(), want[theirs].as_f64().unwrap());
            // It prints three decimals.
            assert!((got - want).abs() < 0.0006, "{ours} is {got}, not {want}");
        }
    }
}

/// The rank of the first file.
fn want_rank(oracle: &Value) -> i64 {
    let rows = oracle["value"].as_array().unwrap().iter();
    rows.map(|row| int(row, "rank")).min().unwrap_or(0)
}
