//! `tracekit doctor`.

use std::io::Write as _;
use std::path::Path;

use flate2::write::GzEncoder;
use serde_json::Value;
use tracekit::HealthCode;

use crate::snapshot::bless_or_compare;
use crate::{Folder, Run, command, finish, golden, tracekit};

fn doctor(path: &Path, arguments: &str) -> Run {
    let mut command = command();
    command
        .arg("doctor")
        .arg(path)
        .args(arguments.split_whitespace());
    finish(command)
}

#[test]
fn the_text_report_of_a_trace_with_findings_and_of_skewed_ranks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    for (case, path) in [
        ("odd-events", "odd-events/trace.json"),
        ("skewed-ranks", "skewed-ranks/trace"),
    ] {
        let run = tracekit(&format!("doctor fixtures/golden/{path}"));
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        bless_or_compare(&folder.join(format!("doctor-{case}.txt")), &run.out);
    }
}

#[test]
fn the_verdict_comes_first() {
    let first = |case: &str| {
        let run = doctor(&golden(case), "");
        run.out.lines().next().unwrap().to_owned()
    };
    assert!(first("two-steps").ends_with("two-steps/trace.json: trustworthy"));
    assert!(first("rocm").ends_with(": usable with care for phases and recompute"));
    assert!(first("no-operators").ends_with(": not usable for phases and recompute"));
    assert!(first("foreign-trace").ends_with(": not usable"));
}

#[test]
fn a_clean_trace_has_nothing_to_tell() {
    let run = doctor(&golden("two-steps"), "");
    assert!(
        run.out.contains("findings: nothing unusual\n"),
        "{}",
        run.out
    );
    assert!(run.out.contains("2 steps"), "{}", run.out);
}

#[test]
fn strict_turns_loss_and_error_into_one() {
    for (case, code) in [
        ("two-steps", 0),
        ("no-annotations", 0),
        ("no-operators", 0),
        ("rocm", 1),
        ("foreign-trace", 1),
        ("empty-capture", 1),
        // What was out of range was not missing.
        ("lost-records", 0),
    ] {
        assert_eq!(doctor(&golden(case), "--strict").code, code, "{case}");
        assert_eq!(doctor(&golden(case), "").code, 0, "{case}");
    }
}

#[test]
fn a_named_file_that_is_no_trace_is_refused_and_told_what_it_is() {
    let folder = Folder::new();
    let graph = folder.write("et.json", r#"{"schema": "1.0.1", "pid": 7, "nodes": []}"#);
    let run = doctor(&graph, "");
    assert!(run.refused().contains("an execution trace"), "{}", run.err);
    for name in ["empty.json", "string.json", "zip.json", "no-events.json"] {
        tracekit(&format!("doctor fixtures/hostile/{name}")).refused();
    }
    tracekit("doctor no/such/file.json").refused();
    folder.write("notes.txt", "nothing here");
    doctor(folder.path(), "").refused();
}

#[test]
fn a_damaged_trace_is_diagnosed() {
    let run = tracekit("doctor fixtures/hostile/cut-in-name.json");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out
            .starts_with("fixtures/hostile/cut-in-name.json: not usable\n"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("unexpected end of input at byte 122"),
        "{}",
        run.out
    );
    let strict = tracekit("doctor fixtures/hostile/cut-in-name.json --strict");
    assert_eq!(strict.code, 1);
}

#[test]
fn what_is_whole_in_a_damaged_trace_is_diagnosed_on_demand() {
    let whole = std::fs::read_to_string(golden("odd-events")).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(whole.as_bytes()).unwrap();
    let mut behind = gzip.finish().unwrap();
    behind.extend_from_slice(b"garbage");
    let open = whole.trim_end().strip_suffix('}').unwrap();
    let folder = Folder::new();
    let findings = |run: &Run| -> Vec<String> {
        let answer = run.json(0);
        let findings = answer["files"][0]["findings"].as_array().unwrap().iter();
        findings
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut want = findings(&doctor(&golden("odd-events"), "--format json"));
    want.push("salvaged".to_owned());
    want.sort();
    for content in [open.as_bytes(), behind.as_slice()] {
        let path = folder.write("damaged.pt.trace.json", content);
        let refused = doctor(&path, "");
        assert!(refused.out.contains("not usable"), "{}", refused.out);
        assert!(
            refused.out.contains("--salvage reads what is whole in it"),
            "{}",
            refused.out
        );
        let mut got = findings(&doctor(&path, "--salvage --format json"));
        got.sort();
        assert_eq!(got, want);
        assert_eq!(doctor(&path, "--salvage --strict").code, 1);
    }
    // What is no trace is none with it, either; a whole file is told as without.
    let none = folder.write("none.pt.trace.json", "{\"a\":");
    assert_eq!(doctor(&none, "--salvage").out, doctor(&none, "").out);
    let whole = golden("odd-events");
    assert_eq!(doctor(&whole, "--salvage").out, doctor(&whole, "").out);
}

#[test]
fn other_files_of_a_folder_are_listed_with_their_kind() {
    let folder = Folder::new();
    folder.copy("rank0.pt.trace.json", "two-steps");
    folder.write("et.json", r#"{"schema": "1.0.1", "pid": 7, "nodes": []}"#);
    folder.write("notes.txt", "nothing here");
    let answer = doctor(folder.path(), "--format json").json(0);
    let skipped = answer["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 2);
    assert_eq!(skipped[0]["kind"], "execution_trace");
    assert_eq!(skipped[1]["kind"], Value::Null);
    let text = doctor(folder.path(), "").out;
    assert!(text.contains("et.json: "), "{text}");
    assert!(
        text.contains("skipped: 1 other file; -v names them"),
        "{text}"
    );
    assert!(doctor(folder.path(), "-v").out.contains("notes.txt"));
}

#[test]
fn json_begins_with_its_schema_and_has_no_floats_but_shares() {
    let run = doctor(&golden("skewed-ranks"), "--format json");
    let start: String = run
        .out
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(60)
        .collect();
    assert!(
        start.starts_with(r#"{"schema_version":"tracekit.doctor/v1","tool":"#),
        "{start}"
    );
    let answer = run.json(0);
    let mut floats = Vec::new();
    walk("", &answer, &mut |key, value| {
        if value.is_f64() {
            floats.push(key.to_owned());
        }
        if key.ends_with("_ns") {
            assert!(value.is_i64() || value.is_null(), "{key}: {value}");
        }
    });
    assert!(
        !floats.is_empty() && floats.iter().all(|key| key == "share"),
        "{floats:?}"
    );
}

fn walk(key: &str, value: &Value, see: &mut impl FnMut(&str, &Value)) {
    see(key, value);
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| walk(key, value, see)),
        Value::Array(items) => items.iter().for_each(|item| walk(key, item, see)),
        _ => {}
    }
}

/// What holds in every diagnosis.
#[test]
fn verdicts_follow_from_findings() {
    for case in [
        "odd-events",
        "pre-window",
        "two-ranks",
        "skewed-ranks",
        "cuda-graph",
        "rocm",
    ] {
        let answer = doctor(&golden(case), "--format json").json(0);
        let order = ["trustworthy", "usable_with_care", "not_usable"];
        let rank = |value: &Value| order.iter().position(|name| value == name).unwrap();
        let files = answer["files"].as_array().unwrap();
        let worst = files
            .iter()
            .map(|file| rank(&file["verdict"]["judgement"]))
            .max();
        assert_eq!(worst, Some(rank(&answer["verdict"])), "{case}");
        for file in files {
            let run = &answer["runs"][usize::try_from(file["run"].as_u64().unwrap()).unwrap()];
            let of_run = run["findings"].as_array().unwrap();
            let findings: Vec<&Value> = file["findings"]
                .as_array()
                .unwrap()
                .iter()
                .chain(of_run)
                .collect();
            let impacts = |impact: &str| -> Vec<&Value> {
                findings
                    .iter()
                    .copied()
                    .filter(|finding| finding["impact"] == impact)
                    .collect()
            };
            let verdict = &file["verdict"];
            let judgement = match (impacts("spoils").len(), impacts("care").len()) {
                (0, 0) => "trustworthy",
                (0, _) => "usable_with_care",
                _ => "not_usable",
            };
            assert_eq!(verdict["judgement"], judgement, "{case}");
            let named = |list: &str| verdict[list].as_array().unwrap().clone();
            assert_eq!(
                named("because").len(),
                impacts("spoils").len() + impacts("care").len(),
                "{case}"
            );
            assert!(
                named("care_for")
                    .iter()
                    .all(|it| !named("not_usable_for").contains(it))
            );
            for finding in findings {
                let share = finding["share"].as_f64().unwrap_or(0.0);
                assert!((0.0..=1.0).contains(&share), "{case}: {finding}");
                assert_eq!(
                    finding["share"].is_null(),
                    finding["share_of"].is_null(),
                    "{case}"
                );
                let touches = !finding["affects"].as_array().unwrap().is_empty();
                assert_eq!(touches, finding["impact"] != "none", "{case}: {finding}");
            }
        }
    }
}

#[test]
fn every_code_is_explained() {
    let list = tracekit("doctor --explain");
    assert_eq!((list.code, list.err.as_str()), (0, ""));
    let codes = tracekit("doctor --explain --format json").json(0);
    let codes = codes["codes"].as_array().unwrap();
    assert_eq!(codes.len(), HealthCode::ALL.len());
    for (code, told) in HealthCode::ALL.iter().zip(codes) {
        assert!(
            list.out
                .lines()
                .any(|line| line.starts_with(&format!("{}: ", code.as_str())))
        );
        assert_eq!(told["code"], code.as_str());
        assert_eq!(told["severity"], code.severity().as_str());
        for key in ["meaning", "detection", "effect", "action"] {
            assert!(!told[key].as_str().unwrap().is_empty(), "{code:?}: {key}");
        }
    }
    let one = tracekit("doctor --explain pre_window").out;
    assert!(
        one.starts_with("pre_window (notice): ") && one.contains("\nwhat to do: "),
        "{one}"
    );
    let markdown = tracekit("doctor --explain pre_window --format markdown").out;
    assert!(
        markdown.starts_with("# Finding pre\\_window\n"),
        "{markdown}"
    );
}

#[test]
fn an_unknown_code_and_a_code_with_a_path_are_wrong_usage() {
    let run = tracekit("doctor --explain pre-window");
    assert!(run.refused().contains("no finding is called 'pre-window'"));
    assert_eq!(
        tracekit("doctor fixtures/traces --explain pre_window").code,
        2
    );
    assert_eq!(tracekit("doctor").code, 2);
}

#[test]
fn names_cannot_control_the_terminal() {
    let folder = Folder::new();
    let content = std::fs::read_to_string(golden("rocm")).unwrap();
    let path = folder.write(
        "trace.json",
        content.replace("\"name\": \"", "\"name\": \"\\u001b[31m\\u0007|\\n"),
    );
    for format in ["text", "markdown"] {
        let run = doctor(&path, &format!("-v --format {format}"));
        assert_eq!(run.code, 0);
        assert!(
            !run.out.contains(['\u{1b}', '\u{7}']),
            "{format}: {:?}",
            run.out
        );
        assert!(run.out.contains("u{1b}"), "{format}: {:?}", run.out);
    }
}

#[test]
fn the_answer_does_not_depend_on_threads_compression_or_where_the_file_lies() {
    let plain = std::fs::read(golden("odd-events")).unwrap();
    let folder = Folder::new();
    let path = folder.write("trace.json", &plain);
    let answer = |arguments: &str| {
        let mut answer = doctor(&path, &format!("--format json {arguments}")).json(0);
        answer["files"][0]["path"] = Value::Null;
        answer["runs"][0]["name"] = Value::Null;
        answer
    };
    let one = answer("-j 1");
    assert_eq!(answer("-j 4"), one);
    assert_eq!(answer("--no-mmap"), one);
}

#[test]
fn the_diagnosis_goes_to_a_file_and_never_over_an_input() {
    let folder = Folder::new();
    let input = folder.copy("trace.json", "two-steps");
    let output = folder.path().join("out.md");
    let run = doctor(
        &input,
        &format!("--format markdown -o {}", output.display()),
    );
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    let written = std::fs::read_to_string(&output).unwrap();
    assert!(written.starts_with("# Diagnosis of "), "{written}");
    let run = doctor(&input, &format!("-o {}", input.display()));
    assert!(run.refused().contains("is an input"), "{}", run.err);
}
