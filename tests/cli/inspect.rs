//! `tracekit inspect` from outside.

use std::path::Path;

use crate::snapshot::bless_or_compare;
use crate::{Folder, tracekit};

/// Every topic, with a fixture that has something for it.
const TOPICS: [(&str, &str); 12] = [
    ("summary", "fixtures/golden/two-ranks/trace"),
    ("communication", "fixtures/golden/two-ranks/trace"),
    ("ranks", "fixtures/golden/two-ranks/trace"),
    ("memory", "fixtures/traces/offload"),
    ("operators", "fixtures/golden/two-steps/trace.json"),
    ("kernels", "fixtures/golden/two-steps/trace.json"),
    ("idle", "fixtures/golden/two-steps/trace.json"),
    ("steps", "fixtures/golden/two-steps/trace.json"),
    ("launches", "fixtures/golden/cuda-graph/trace.json"),
    ("copies", "fixtures/golden/odd-events/trace.json"),
    ("critical-path", "fixtures/golden/two-steps/trace.json"),
    ("roofline", "fixtures/traces/baseline"),
];

#[test]
fn every_topic_has_a_report_for_people() {
    let reports: String = TOPICS
        .map(|(topic, path)| {
            let run = tracekit(&format!("inspect {topic} {path} --top 4"));
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{topic}");
            format!("$ tracekit inspect {topic} {path} --top 4\n{}\n", run.out)
        })
        .concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/inspect.txt");
    bless_or_compare(&path, &reports);
}

#[test]
fn every_table_is_there_as_csv() {
    for (topic, path) in TOPICS {
        let json = tracekit(&format!("inspect {topic} {path} --format json")).json(0);
        assert_eq!(json["schema_version"], "tracekit.inspect/v1");
        for frame in json["frames"].as_array().unwrap() {
            let name = frame["name"].as_str().unwrap();
            let rows = frame["rows"].as_array().map(Vec::len);
            let csv = tracekit(&format!(
                "inspect {topic} {path} --format csv --table {name}"
            ));
            assert_eq!(csv.code, 0, "{topic} {name}: {}", csv.err);
            // No name in these fixtures has a line break.
            assert_eq!(Some(csv.out.lines().count() - 1), rows, "{topic} {name}");
            let header = csv.out.lines().next().unwrap();
            let columns: Vec<&str> = frame["columns"]
                .as_array()
                .unwrap()
                .iter()
                .map(|column| column["name"].as_str().unwrap())
                .collect();
            assert_eq!(header, columns.join(","), "{topic} {name}");
        }
    }
}

#[test]
fn without_a_topic_it_tells_what_is_in_the_trace() {
    let path = "fixtures/golden/two-ranks/trace";
    let bare = tracekit(&format!("inspect {path} --format json")).json(0);
    let summary = tracekit(&format!("inspect summary {path} --format json")).json(0);
    assert_eq!(bare, summary);
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let path = "fixtures/golden/two-steps/trace.json";
    for (arguments, reason) in [
        (format!("idle {path} --by shape"), "phase, step, stream"),
        (format!("steps {path} --by step"), "it has no --by"),
        (
            format!("idle {path} --definition hta --by step"),
            "with the definition of hta it has no --by",
        ),
        (
            format!("idle {path} --definition tensorboard"),
            "tracekit, hta",
        ),
        (format!("kernls {path}"), "topics are summary"),
        (
            format!("idle {path} --format csv --table nothing"),
            "nothing",
        ),
        (
            format!("ranks {path} --devices nowhere.toml"),
            "nowhere.toml",
        ),
        (format!("steps {path} --steps 90..99"), "90"),
        ("idle nowhere.json".to_owned(), "nowhere.json"),
    ] {
        let run = tracekit(&format!("inspect {arguments}"));
        assert!(run.refused().contains(reason), "{arguments}: {}", run.err);
    }
    let usage = tracekit(&format!("inspect idle {path} --by colour"));
    assert_eq!((usage.code, usage.out.as_str()), (2, ""));
}

#[test]
fn grouping_tells_rows_apart_and_changes_no_sum() {
    let path = "fixtures/golden/two-steps/trace.json";
    let total = |arguments: &str, frame: &str, column: &str| -> i64 {
        let json = tracekit(&format!("inspect {arguments} {path} --format json")).json(0);
        let frames = json["frames"].as_array().unwrap();
        let found = frames.iter().find(|it| it["name"] == frame).unwrap();
        let rows = found["rows"].as_array().unwrap();
        rows.iter().filter_map(|row| row[column].as_i64()).sum()
    };
    let kernels = total("kernels", "kernels", "total_ns");
    assert!(kernels > 0);
    for by in ["phase", "step", "stream", "shape"] {
        let grouped = total(&format!("kernels --by {by}"), "kernels", "total_ns");
        assert_eq!(grouped, kernels, "{by}");
    }
}

/// What a topic is said to know changes its answer, and is told apart from what it does not know.
#[test]
fn every_topic_knows_the_definitions_that_it_has() {
    for (topic, path) in TOPICS {
        let ours = tracekit(&format!("inspect {topic} {path} --format json"));
        for whose in ["hta", "tensorboard"] {
            let run = tracekit(&format!(
                "inspect {topic} {path} --format json --definition {whose}"
            ));
            if run.code == 2 {
                assert!(run.refused().contains("definition"), "{topic}: {}", run.err);
            } else {
                assert_eq!(run.code, 0, "{topic}: {}", run.err);
                assert_ne!(run.out, ours.out, "{topic} {whose}");
            }
        }
    }
}

#[test]
fn memory_that_no_number_can_hold_is_refused() {
    let folder = Folder::new();
    let event = |ts: u64| {
        format!(
            r#"{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":{ts},"args":{{"Device Type":1,"Device Id":0,"Addr":{ts},"Bytes":{},"Total Reserved":-5}}}}"#,
            i64::MAX
        )
    };
    let text = format!(r#"{{"traceEvents":[{},{}]}}"#, event(1), event(2));
    let path = folder.write("memory.json", text);
    let run = tracekit(&format!("inspect memory {}", path.display()));
    assert!(run.refused().contains("2^63 bytes"), "{}", run.err);
}
