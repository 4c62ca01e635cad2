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
    let printed = read("tests/cli/samples.txt") + &read("tests/cli/checkpoint.txt");
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
