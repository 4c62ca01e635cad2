//! What the reports look like.

use std::path::Path;

use crate::snapshot::bless_or_compare;
use crate::{Folder, attribute, golden, tracekit};

/// Compares `got` with the file `tests/cli/NAME`.
fn snapshot(name: &str, got: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    bless_or_compare(&folder.join(name), got);
}

#[test]
fn the_text_report_of_the_sample_folder() {
    snapshot("samples.txt", &tracekit("attribute fixtures/traces").out);
}

#[test]
fn the_text_report_of_a_checkpointed_device_trace() {
    snapshot(
        "checkpoint.txt",
        &tracekit("attribute fixtures/golden/checkpoint-non-reentrant/trace.json").out,
    );
}

#[test]
fn the_text_report_of_a_trace_with_findings() {
    snapshot(
        "odd-events.txt",
        &tracekit("attribute fixtures/golden/odd-events/trace.json").out,
    );
}

#[test]
fn the_csv_and_markdown_reports_of_two_ranks() {
    snapshot(
        "two-ranks.csv",
        &tracekit("attribute fixtures/golden/two-ranks/trace --format csv").out,
    );
    snapshot(
        "two-ranks.md",
        &tracekit("attribute fixtures/golden/two-ranks/trace --format markdown").out,
    );
}

#[test]
fn windows_of_one_rank_are_no_ranks_and_no_devices() {
    let folder = Folder::new();
    let content = std::fs::read_to_string(golden("two-steps")).unwrap();
    for name in ["worker0.1700000001", "worker0.1700000002"] {
        folder.write(&format!("{name}.pt.trace.json"), &content);
    }
    let out = attribute(folder.path(), "").out;
    assert!(
        out.starts_with("4 steps in 2 windows, median 0.100 ms"),
        "{out}"
    );
    assert!(out.contains("by phase, 1 device in 2 windows together\n"));
    assert!(out.contains(" 4 steps         2 captures\n"), "{out}");
    assert!(!out.contains("\nranks:"), "{out}");
    let json = attribute(folder.path(), "--format json").json(0);
    assert_eq!(json["runs"][0]["imbalance"], serde_json::Value::Null);
}

#[test]
fn the_rows_by_step_are_of_the_timeline_of_each_step() {
    let run = attribute(&golden("two-steps"), "--by step");
    let rows: Vec<&str> = run
        .out
        .lines()
        .skip_while(|line| !line.starts_with("Device timeline by step"))
        .take_while(|line| !line.is_empty())
        .collect();
    // The second step is on the device to the end of its work, 5 us after the host.
    assert_eq!(
        rows,
        [
            "Device timeline by step, each instant counted once: phases and idle add up to the window",
            "step            window  forward  backward  recompute  optimizer  other   idle  idle",
            "                    ms       ms        ms         ms         ms     ms     ms     %",
            "ProfilerStep#4   0.100    0.030     0.025          0      0.008      0  0.036  36.5",
            "ProfilerStep#5   0.105    0.030     0.024          0      0.010      0  0.041  38.9",
        ]
    );
}

/// The keys whose numbers are floats.
fn floats(key: &str, value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => found.push(key.to_owned()),
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                floats(key, value, found);
            }
        }
        serde_json::Value::Array(items) => {
            for value in items {
                floats(key, value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn json_begins_with_its_schema_and_has_no_floats_but_ratios() {
    let run = attribute(&golden("checkpoint-reentrant"), "--format json");
    let first = run.out.find("\"schema_version\"").unwrap();
    assert!(
        run.out[..first]
            .chars()
            .all(|c| c == '{' || c.is_whitespace()),
        "{}",
        &run.out[..40]
    );
    let mut found = Vec::new();
    floats("", &run.json(0), &mut found);
    assert!(
        found
            .iter()
            .all(|key| key == "share_of_forward" || key == "spread"),
        "{found:?}"
    );
}

#[test]
fn names_cannot_control_the_terminal() {
    let folder = Folder::new();
    let content = std::fs::read_to_string(golden("two-steps")).unwrap();
    let path = folder.write(
        "trace.json",
        content.replace("\"gemm\"", "\"ge\\u001b[31mm\\u0007\\nm\""),
    );
    for format in ["text", "csv", "markdown"] {
        let out = attribute(&path, &format!("--format {format}")).out;
        assert!(!out.contains(['\u{1b}', '\u{7}']), "{format}: {out:?}");
    }
}

/// Whatever the README shows between ```text marks must be lines of the snapshots.
#[test]
fn the_readme_shows_what_the_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let verdict = tracekit("gate strategies fixtures/gate/results/76_real_gpu_memory.json").out;
    let printed = read("tests/cli/samples.txt") + &read("tests/cli/checkpoint.txt") + &verdict;
    let readme = read("README.md");
    let mut shown = 0;
    for block in readme.split("```text\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let there =
                line.is_empty() || line == "…" || printed.lines().any(|printed| printed == line);
            assert!(
                there,
                "the README shows a line that the program does not print: {line}"
            );
            shown += 1;
        }
    }
    assert!(shown > 10, "the README shows {shown} lines");
}
