//! `tracekit inspect idle` over random and real traces.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tracekit::attribute::AttributeOptions;
use tracekit::inspect::{By, Definition, InspectOptions, Topic};

use crate::support::answer::{answer, attribution, stored};
use crate::support::builder::{Layout, build, few, plans};
use crate::support::corpus;
use crate::support::inspection::{frames, instabilities, int, oracle, oracles_of_hta, rows, sum};

fn by(by: &[By]) -> InspectOptions {
    InspectOptions {
        by: by.to_vec(),
        ..InspectOptions::default()
    }
}

/// Broken laws of one trace: causes add up to the idle time of a window, and that is what the
/// timelines of its attribution say.
fn broken(path: &Path, attribution: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for grouping in [
        vec![],
        vec![By::Step],
        vec![By::Stream],
        vec![By::Step, By::Stream],
    ] {
        let all = InspectOptions {
            top: 0,
            ..by(&grouping)
        };
        let seen = frames(path, Topic::Idle, &all);
        found.extend(gaps_apart(&seen, grouping.contains(&By::Stream)));
        let windows = rows(&seen, "idle_windows");
        let all_causes = rows(&seen, "idle_causes");
        if sum(&windows, "idle_ns") != sum(&all_causes, "idle_ns") {
            found.push(format!("{grouping:?}: causes do not add up"));
        }
        for window in &windows {
            let same = |row: &&Value| {
                ["rank", "window", "device", "stream", "step"]
                    .iter()
                    .all(|key| row[*key] == window[*key])
            };
            let causes = all_causes.iter().filter(same);
            let idle: i64 = causes.map(|row| int(row, "idle_ns")).sum();
            let alike = windows.iter().filter(same).count();
            if alike == 1 && idle != int(window, "idle_ns") {
                found.push(format!("{grouping:?}: {window} has causes of {idle} ns"));
            }
        }
        if grouping.contains(&By::Stream) {
            continue;
        }
        let lines = timelines(attribution, grouping.contains(&By::Step));
        let got: Vec<[i64; 2]> = windows
            .iter()
            .map(|row| [int(row, "window_ns"), int(row, "idle_ns")])
            .collect();
        if lines != got {
            found.push(format!(
                "{grouping:?}: {got:?}, but timelines are {lines:?}"
            ));
        }
    }
    found
}

/// Steps (and streams) whose gaps do not add up to the causes that are counted for them.
fn gaps_apart(seen: &[Value], by_stream: bool) -> Vec<String> {
    let sums = |frame: &str, column: &str| {
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for row in rows(seen, frame) {
            let stream = Some(&row["stream"]).filter(|_| by_stream);
            // Without steps to tell apart, a gap says in which one it begins.
            let step = Some(&row["step"]).filter(|_| row["window_kind"] != "capture");
            let key = json!([row["rank"], row["device"], stream, step]);
            *sums.entry(key.to_string()).or_default() += int(&row, column);
        }
        sums
    };
    let causes = sums("idle_causes", "idle_ns");
    let by_step = rows(seen, "idle_causes")
        .iter()
        .any(|row| row["window_kind"] == "step");
    let gaps = sums("gaps", "gap_ns");
    let total = |sums: &BTreeMap<String, i64>| sums.values().sum::<i64>();
    if total(&causes) != total(&gaps) {
        return vec![format!("gaps are {gaps:?}, causes {causes:?}")];
    }
    if by_step && causes != gaps {
        return vec![format!("gaps by step are {gaps:?}, causes {causes:?}")];
    }
    Vec::new()
}

/// Window and idle time of the timelines of all devices, or of all of their steps.
fn timelines(attribution: &Value, steps: bool) -> Vec<[i64; 2]> {
    let ranks = attribution["ranks"].as_array().unwrap().iter();
    let devices = ranks.flat_map(|rank| rank["devices"].as_array().unwrap());
    let line = |item: &Value| {
        let line = &item["timeline"];
        [int(line, "window_ns"), int(line, "idle_ns")]
    };
    devices
        .flat_map(|device| {
            if steps {
                device["steps"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(line)
                    .collect()
            } else {
                vec![line(device)]
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn causes_add_up_to_the_idle_time_of_the_timelines(plan in plans()) {
        let folder = TempDir::new().unwrap();
        let path = stored(folder.path(), "plain", "rank0.json", &build(&plan).write(Layout::Native));
        let found = broken(&path, &answer(&path));
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn order_compression_and_threads_change_nothing(plan in plans(), seed in any::<u64>()) {
        let trace = build(&plan);
        let hta = InspectOptions { definition: Definition::Hta, ..InspectOptions::default() };
        for options in [by(&[]), by(&[By::Step, By::Stream]), hta] {
            let found = instabilities(&trace, seed, Topic::Idle, &options);
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}

#[test]
fn causes_add_up_on_real_traces() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut looked = 0;
    for path in corpus::traces(&corpus) {
        let Ok(attribution) = attribution(&path, &AttributeOptions::default()) else {
            continue;
        };
        if attribution.totals.total.events == 0 {
            continue;
        }
        let answer = serde_json::to_value(attribution).unwrap();
        let found = broken(&path, &answer);
        assert!(found.is_empty(), "{}: {}", path.display(), found.join("\n"));
        looked += 1;
    }
    println!("{looked} traces with device work");
    assert!(looked > 0);
}

#[test]
fn hta_has_the_same_idle_time_breakdown() {
    let options = InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    };
    let mut compared = 0;
    for (name, oracle, paths) in oracles_of_hta("idle_time_breakdown") {
        // HTA looks at the first rank unless told otherwise.
        let seen = rows(
            &frames(&paths[0], Topic::Idle, &options),
            "idle_time_breakdown",
        );
        let row = |row: &Value, us: f64| {
            json!([
                row["stream"],
                row["idle_category"],
                us,
                row["idle_time_ratio"]
            ])
        };
        let got: Vec<Value> = seen
            .iter()
            .map(|it| row(it, int(it, "idle_time_ns") as f64 / 1000.0))
            .collect();
        let want = oracle["value"].as_array().unwrap().iter();
        let mut want: Vec<Value> = want
            .map(|it| row(it, it["idle_time"].as_f64().unwrap()))
            .collect();
        want.sort_by_key(|row| row[0].as_i64());
        assert_eq!(got, want, "{name}");
        compared += 1;
    }
    println!("{compared} breakdowns compared");
}

/// On an MTIA device, which has no `cuda` in any name.
#[test]
fn hta_has_the_same_temporal_breakdown_of_another_kind_of_device() {
    let Some((corpus, oracle)) = oracle("hta/mtia__temporal.json") else {
        return;
    };
    let data = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data");
    let path = data.join(oracle["trace_files"][0].as_str().unwrap());
    let options = InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    };
    let seen = rows(&frames(&path, Topic::Idle, &options), "temporal_breakdown");
    let (got, want) = (&seen[0], &oracle["value"][0]);
    for part in ["kernel", "idle", "compute", "non_compute"] {
        let us = int(got, &format!("{part}_time_ns")) as f64 / 1000.0;
        assert_eq!(json!(us), want[format!("{part}_time(us)")], "{part}");
    }
}

#[test]
fn hta_has_the_same_temporal_breakdown() {
    let options = InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    };
    let mut compared = 0;
    for (name, oracle, paths) in oracles_of_hta("temporal_breakdown") {
        let want: Vec<Value> = oracle["value"].as_array().unwrap().clone();
        assert_eq!(want.len(), paths.len(), "{name}");
        for (path, want) in paths.iter().zip(want) {
            let seen = rows(&frames(path, Topic::Idle, &options), "temporal_breakdown");
            let [got] = seen.as_slice() else {
                panic!("{name}: {} rows", seen.len());
            };
            for part in [
                "kernel_time",
                "idle_time",
                "compute_time",
                "non_compute_time",
            ] {
                let us = int(got, &format!("{part}_ns")) as f64 / 1000.0;
                assert_eq!(json!(us), want[format!("{part}(us)")], "{name}: {part}");
            }
            for part in ["idle_time", "compute_time", "non_compute_time"] {
                let percent = format!("{part}_pctg");
                assert_eq!(got[&percent], want[&percent], "{name}: {percent}");
            }
            compared += 1;
        }
    }
    println!("{compared} temporal breakdowns compared");
}
