//! What the reports look like.

use std::path::Path;

use crate::{Folder, attribute, golden, tracekit};

/// Compares `got` with the file `tests/cli/NAME`, or writes it there when `TRACEKIT_BLESS=1` is set.
fn snapshot(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli")
        .join(name);
    if std::env::var_os("TRACEKIT_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, got).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        want == got,
        "{} is not what the program prints; if the new text is right, run the test with TRACEKIT_BLESS=1 \
         to write it there. It prints:\n{got}",
        path.display()
    );
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
    fn floats(at: &str, value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Number(number) if number.is_f64() => found.push(at.to_owned()),
            serde_json::Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(key, value)| floats(key, value, found));
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|value| floats(at, value, found))
            }
            _ => {}
        }
    }
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
