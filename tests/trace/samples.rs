//! The sample traces against what the same process measured about itself while it was recorded:
//! wall clocks around every phase and PyTorch's own operator times (`fixtures/truth`).

use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, ProgressEvent, Request, attribute_paths};
use tracekit::doctor::{Examination, diagnose_paths};
use tracekit::ingest::IngestOptions;

use crate::support::answer::{attribution, json};
use crate::support::{files_under, package};

const STRATEGIES: [&str; 3] = ["baseline", "checkpoint", "offload"];

/// How much clock reads may lie around the code that an annotation covers.
const CLOCK_READS_NS: i64 = 100_000;

fn truth(strategy: &str) -> Value {
    let text = std::fs::read(package(&format!("fixtures/truth/{strategy}.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn samples() -> Value {
    json(&attribution(&package("fixtures/traces"), &AttributeOptions::default()).unwrap())
}

fn int(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("no integer: {value}"))
}

#[test]
fn the_sample_folder_is_three_strategies_with_the_baseline_first() {
    let answer = samples();
    let names: Vec<&str> = answer["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, STRATEGIES);
    assert_eq!(answer["skipped"].as_array().unwrap().len(), 0);
    for rank in answer["ranks"].as_array().unwrap() {
        assert_eq!(rank["rank"], 0);
        let steps = rank["host"]["steps"].as_array().unwrap();
        let names: Vec<&str> = steps
            .iter()
            .map(|step| step["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["ProfilerStep#2", "ProfilerStep#3"]);
        assert!(steps.iter().all(|step| step["partial"] == false));
    }
}

#[test]
fn self_times_add_up_to_what_pytorch_counted() {
    let answer = samples();
    for (index, strategy) in STRATEGIES.iter().enumerate() {
        let truth = truth(strategy);
        let counted: i64 = truth["operators"]
            .as_array()
            .unwrap()
            .iter()
            .map(|operator| int(&operator[2]))
            .sum();
        let phases = answer["ranks"][index]["host"]["phases"]
            .as_object()
            .unwrap();
        let found: i64 = phases.values().map(|phase| int(&phase["self_ns"])).sum();
        if *strategy == "checkpoint" {
            // PyTorch takes the annotation around the re-run out of the operator around it.
            assert!(
                (found - counted).abs() < counted / 20,
                "{found} and {counted}"
            );
        } else {
            assert_eq!(found, counted, "{strategy}");
        }
    }
}

#[test]
fn annotated_phases_lie_between_the_clocks_inside_and_outside_of_them() {
    let answer = samples();
    for (index, strategy) in STRATEGIES.iter().enumerate() {
        let truth = truth(strategy);
        let measured = truth["steps"].as_array().unwrap();
        let steps = answer["ranks"][index]["host"]["steps"].as_array().unwrap();
        assert_eq!(steps.len(), measured.len(), "{strategy}");
        for (step, measured) in steps.iter().zip(measured) {
            let within = |what: &str, found: i64, inner: i64, outer: i64| {
                assert!(
                    (inner - CLOCK_READS_NS..=outer + CLOCK_READS_NS).contains(&found),
                    "{strategy} {what}: {found} is not within {inner} and {outer}"
                );
            };
            let wall = int(&measured["wall_ns"]);
            within("step", int(&step["wall_ns"]), wall - CLOCK_READS_NS, wall);
            for phase in measured["phases"].as_array().unwrap() {
                let name = phase["name"].as_str().unwrap();
                let found = int(&step["phases"][name]["wall_ns"]);
                within(name, found, int(&phase["inner_ns"]), int(&phase["wall_ns"]));
            }
        }
    }
}

#[test]
fn only_the_checkpointed_sample_recomputes() {
    let answer = samples();
    let of = |index: usize| &answer["runs"][index]["recompute"];
    for index in [0, 2] {
        assert_eq!(of(index)["evidence"], "none");
        assert_eq!(of(index)["ops"], 0);
    }
    let checkpoint = of(1);
    let truth = truth("checkpoint");
    let reruns: Vec<&Value> = truth["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["checkpointed"].as_array().unwrap())
        .filter(|block| block["in_backward"] == true)
        .collect();
    assert_eq!(checkpoint["evidence"], "sequence");
    assert_eq!(
        int(&checkpoint["regions"]),
        i64::try_from(reruns.len()).unwrap()
    );
    let wall: i64 = reruns
        .iter()
        .map(|block| int(&block["t1_ns"]) - int(&block["t0_ns"]))
        .sum();
    let found = int(&checkpoint["host_self_ns"]);
    assert!(
        found < wall && found > wall / 2,
        "{found} of self time in {wall} of re-runs"
    );
}

#[test]
fn the_samples_have_no_findings_but_that_they_are_host_only() {
    let findings: Vec<(String, i64)> = samples()["health"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let code = finding["code"].as_str().unwrap();
            (code.to_owned(), int(&finding["count"]))
        })
        .collect();
    assert_eq!(findings, [("no_device_work".to_owned(), 3)]);
}

/// What is told of the progress over the samples: the total first, then every file once.
fn check_progress(work: impl FnOnce(&[PathBuf], &(dyn Fn(ProgressEvent) + Sync))) {
    let folder = package("fixtures/traces");
    let told = Mutex::new(Vec::new());
    work(std::slice::from_ref(&folder), &|event| {
        told.lock().unwrap().push(event);
    });
    let mut stored: Vec<u64> = files_under(&folder)
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .collect();
    let total = ProgressEvent::Total {
        files: stored.len(),
        bytes: stored.iter().sum(),
    };
    let told = told.into_inner().unwrap();
    assert_eq!(told.first(), Some(&total));
    let mut done: Vec<u64> = told[1..]
        .iter()
        .map(|event| match event {
            ProgressEvent::FileDone { bytes } => *bytes,
            ProgressEvent::Total { .. } => panic!("the total comes once: {told:?}"),
        })
        .collect();
    stored.sort_unstable();
    done.sort_unstable();
    assert_eq!(done, stored);
}

#[test]
fn progress_tells_the_total_and_every_file_of_an_attribution() {
    check_progress(|paths, progress| {
        let request = Request {
            paths,
            ingest: IngestOptions::default(),
            options: &AttributeOptions::default(),
            ranks: Vec::new(),
            expect: Vec::new(),
            hash_inputs: false,
            salvage: None,
        };
        attribute_paths(&request, progress).unwrap();
    });
}

#[test]
fn progress_tells_the_total_and_every_file_of_a_diagnosis() {
    check_progress(|paths, progress| {
        let examination = Examination {
            paths,
            ingest: IngestOptions::default(),
            salvage: None,
        };
        diagnose_paths(&examination, progress).unwrap();
    });
}
