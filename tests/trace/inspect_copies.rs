//! `tracekit inspect copies` over random and real traces.

use proptest::prelude::*;
use tempfile::TempDir;
use tracekit::inspect::{By, Definition, InspectOptions, Topic};

use crate::support::answer::{answer, stored};
use crate::support::builder::{Layout, build, few, plans};
use crate::support::inspection::{close, frames, instabilities, int, oracles_of_hta, rows, sum};

fn hta() -> InspectOptions {
    InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    }
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn copies_take_the_time_that_attribution_says(plan in plans()) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let total = answer(&path)["totals"]["total"].take();
        let want = if total.is_null() { 0 } else { int(&total, "memcpy_ns") + int(&total, "memset_ns") };
        for by in [vec![], vec![By::Phase, By::Step, By::Stream]] {
            let options = InspectOptions { by, ..InspectOptions::default() };
            let copies = rows(&frames(&path, Topic::Copies, &options), "copies");
            prop_assert_eq!(sum(&copies, "sum_ns"), want);
        }
    }

    #[test]
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let trace = build(&plan);
        let by = InspectOptions { by: vec![By::Phase, By::Stream], ..InspectOptions::default() };
        for options in [by, hta()] {
            let found = instabilities(&trace, seed, Topic::Copies, &options);
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}

#[test]
fn hta_has_the_same_summary_of_bandwidths() {
    let mut compared = 0;
    for (name, oracle, paths) in oracles_of_hta("memory_bw_summary") {
        let got = rows(
            &frames(&paths[0], Topic::Copies, &hta()),
            "memory_bw_summary",
        );
        let empty = Vec::new();
        let want = oracle["value"].as_array().unwrap_or(&empty);
        let first = want.iter().map(|row| int(row, "rank")).min();
        let want: Vec<_> = want
            .iter()
            .filter(|row| row["rank"].as_i64() == first)
            .collect();
        assert_eq!(got.len(), want.len(), "{name}");
        for (row, want) in got.iter().zip(want) {
            assert_eq!(row["name"], want["name"], "{name}");
            for (theirs, ours) in [
                ("count", "count"),
                ("mean", "mean"),
                ("std", "std"),
                ("min", "min"),
                ("25%", "p25"),
                ("50%", "p50"),
                ("75%", "p75"),
                ("max", "max"),
            ] {
                let value = &want[format!("memory_bw_gbps|{theirs}")];
                assert!(
                    close(&row[ours], value, 1e-6),
                    "{name}: {ours} is {value} in {row}"
                );
                compared += 1;
            }
        }
    }
    println!("{compared} values compared");
}
