//! Exit codes.

use std::io::Write;
use std::process::Stdio;

use crate::{Folder, attribute, command, finding, golden, tracekit};

#[test]
fn help_and_version_are_results() {
    for arguments in ["--help", "-h", "attribute --help", "--version"] {
        let run = tracekit(arguments);
        assert_eq!(run.code, 0, "{arguments}");
        assert!(!run.out.is_empty() && run.err.is_empty(), "{arguments}");
    }
    let version = tracekit("--version").out;
    assert!(
        version.starts_with(concat!("tracekit ", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
}

/// Help that could not be written is none.
#[test]
#[cfg(target_os = "linux")]
fn help_for_a_full_device_is_a_failure() {
    for arguments in ["--help", "-h", "attribute --help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut command = command();
        command.args(arguments.split_whitespace());
        let run = command.stdout(full.unwrap()).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{arguments}");
        let told = String::from_utf8(run.stderr).unwrap();
        assert!(told.starts_with("tracekit: standard output: "), "{told}");
    }
}

#[test]
fn wrong_usage_exits_with_two_and_prints_nothing_on_standard_output() {
    for arguments in [
        "",
        "nonsense",
        "attribute",
        "attribute --no-such-flag x",
        "attribute x --format pdf",
    ] {
        let run = tracekit(arguments);
        assert_eq!(run.code, 2, "{arguments}: {}", run.err);
        assert_eq!(run.out, "", "{arguments}");
        assert!(!run.err.is_empty(), "{arguments}");
    }
}

#[test]
fn a_good_trace_exits_with_zero_and_is_silent_on_standard_error() {
    let run = attribute(&golden("two-steps"), "");
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.err, "");
    assert!(run.out.contains("forward"));
}

#[test]
fn a_missing_file_is_refused_by_name() {
    let run = tracekit("attribute no/such/trace.json");
    assert!(run.refused().contains("no/such/trace.json"));
}

#[test]
fn a_broken_file_is_refused_with_its_byte() {
    let run = tracekit("attribute fixtures/hostile/cut-in-name.json");
    let line = run.refused();
    assert!(line.contains("cut-in-name.json"), "{line}");
    assert!(line.contains("at byte 122"), "{line}");
}

#[test]
fn what_is_no_trace_is_refused() {
    for name in ["empty.json", "no-events.json", "string.json", "zip.json"] {
        let run = tracekit(&format!("attribute fixtures/hostile/{name}"));
        assert!(run.refused().contains(name));
    }
}

#[test]
fn a_folder_without_traces_is_refused() {
    let folder = Folder::new();
    folder.write("notes.txt", "nothing here");
    let run = attribute(folder.path(), "");
    assert!(run.refused().contains(&folder.path().display().to_string()));
}

#[test]
fn a_folder_with_a_broken_trace_gives_its_results_and_exits_with_four() {
    let folder = Folder::new();
    folder.copy("rank0.pt.trace.json", "two-steps");
    folder.write("rank1.pt.trace.json", "{\"traceEvents\": [{\"ph\":");
    let run = attribute(folder.path(), "--format json");
    let answer = run.json(4);
    assert_eq!(answer["totals"]["total"]["sum_ns"], 127_625);
    assert_eq!(answer["skipped"][0]["failed"], true);
    assert!(
        answer["skipped"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with("rank1.pt.trace.json")
    );
    assert!(
        answer["skipped"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("at byte")
    );
    assert_eq!(
        finding(&answer, "failed_input").unwrap()["severity"],
        "data_loss"
    );
    let text = attribute(folder.path(), "");
    assert_eq!(text.code, 4);
    assert!(text.out.contains("forward"));
    assert!((text.out + &text.err).contains("rank1.pt.trace.json"));
}

#[test]
fn other_files_of_a_folder_are_listed_and_harm_nothing() {
    let folder = Folder::new();
    folder.copy("rank0.pt.trace.json", "two-steps");
    folder.write("notes.txt", "nothing here");
    folder.write("settings.json", "{\"batch\": 2}");
    folder.write(".hidden.json", "{");
    folder.write("rank2.pt.trace.json", "{\"nodes\": []}");
    folder.write("rank1.pt.trace.json.tmp", "{\"traceEvents\": [");
    let answer = attribute(folder.path(), "--format json").json(0);
    let skipped = answer["skipped"].as_array().unwrap();
    let named = |end: &str| {
        skipped
            .iter()
            .find(|file| file["path"].as_str().unwrap().ends_with(end))
    };
    for name in [
        "settings.json",
        "rank2.pt.trace.json",
        ".hidden.json",
        "rank1.pt.trace.json.tmp",
    ] {
        let file = named(name).unwrap_or_else(|| panic!("{name} is not listed: {skipped:?}"));
        assert_eq!(file["failed"], false, "{name}");
        assert_ne!(file["reason"], "", "{name}");
    }
    assert_eq!(answer["inputs"].as_array().unwrap().len(), 1);
}

#[test]
fn strict_turns_data_loss_into_one_and_still_prints_the_results() {
    let loss = attribute(&golden("rocm"), "--strict --format json");
    assert_eq!(loss.json(1)["totals"]["total"]["sum_ns"], 122_000);
    // Notices are no loss.
    assert_eq!(attribute(&golden("no-annotations"), "--strict").code, 0);
    assert_eq!(attribute(&golden("two-steps"), "--strict").code, 0);
}

#[test]
fn two_files_of_one_rank_are_both_kept_and_said_to_be_wrong() {
    let folder = Folder::new();
    folder.copy("a.pt.trace.json", "two-steps");
    folder.copy("b.pt.trace.json", "two-steps");
    let content = std::fs::read_to_string(golden("two-steps")).unwrap();
    let claimed = content.replace(
        "\"schemaVersion\": 1",
        "\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 0}",
    );
    folder.write("a.pt.trace.json", &claimed);
    folder.write("b.pt.trace.json", &claimed);
    let answer = attribute(folder.path(), "--format json").json(0);
    assert_eq!(answer["ranks"].as_array().unwrap().len(), 2);
    assert_eq!(answer["totals"]["total"]["sum_ns"], 2 * 127_625);
    assert_eq!(
        finding(&answer, "duplicate_rank").unwrap()["severity"],
        "error"
    );
    assert_eq!(attribute(folder.path(), "--strict").code, 1);
}

#[test]
fn files_that_differ_in_their_time_only_are_windows_of_one_rank() {
    let folder = Folder::new();
    folder.copy("rank0.1700000000000000002.pt.trace.json", "two-steps");
    folder.copy("rank0.1700000000000000001.pt.trace.json", "bleeding-launch");
    let answer = attribute(folder.path(), "--format json").json(0);
    let windows: Vec<_> = answer["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rank| &rank["window"])
        .collect();
    assert_eq!(windows, [0, 1]);
    assert_eq!(answer["ranks"][0]["totals"]["total"]["sum_ns"], 25_000);
    assert!(finding(&answer, "duplicate_rank").is_none());
}

#[test]
fn windows_are_told_apart_whether_compressed_or_not() {
    let folder = Folder::new();
    let zipped = std::process::Command::new("gzip")
        .arg("-c")
        .arg(golden("two-steps"))
        .output();
    let Ok(zipped) = zipped else {
        println!("skipped: there is no gzip");
        return;
    };
    folder.write("rank0.1700000000000000002.pt.trace.json.gz", zipped.stdout);
    folder.copy("rank0.1700000000000000001.pt.trace.json", "bleeding-launch");
    let answer = attribute(folder.path(), "--format json").json(0);
    assert!(finding(&answer, "duplicate_rank").is_none());
    assert_eq!(answer["ranks"][1]["window"], 1);
    assert_eq!(answer["inputs"][1]["compressed"], true);
}

#[test]
fn a_broken_file_that_was_named_is_refused_among_good_ones() {
    let run = tracekit(
        "attribute fixtures/golden/two-steps/trace.json fixtures/hostile/cut-in-name.json",
    );
    assert!(run.refused().contains("cut-in-name.json"));
}

#[test]
fn runs_are_folders_in_order_of_name_with_the_baseline_first() {
    let folder = Folder::new();
    for run in ["a_first", "baseline", "zero"] {
        folder.copy(&format!("{run}/rank0.pt.trace.json"), "two-steps");
        folder.copy(&format!("{run}/rank1.pt.trace.json"), "bleeding-launch");
    }
    let answer = attribute(folder.path(), "--format json").json(0);
    let runs = answer["runs"].as_array().unwrap();
    let names: Vec<_> = runs.iter().map(|run| &run["name"]).collect();
    assert_eq!(names, ["baseline", "a_first", "zero"]);
    assert_eq!(runs[1]["ranks"], serde_json::json!([2, 3]));
    assert_eq!(answer["totals"]["total"]["sum_ns"], 3 * (127_625 + 25_000));
}

#[test]
fn coverage_of_a_run_says_where_its_phases_come_from() {
    let folder = Folder::new();
    let phases = || attribute(folder.path(), "--format json").json(0)["coverage"]["phases"].clone();
    folder.copy("rank0.pt.trace.json", "two-steps");
    let kernel = r#"[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}]"#;
    folder.write("rank1.pt.trace.json", kernel);
    assert_eq!(phases(), "annotated");
    folder.copy("rank2.pt.trace.json", "no-annotations");
    assert_eq!(phases(), "mixed");
}

#[test]
fn a_missing_expected_strategy_exits_with_two() {
    let run = tracekit("attribute fixtures/traces --expect baseline,checkpoint,offload");
    assert_eq!(run.code, 0, "{}", run.err);
    let run = tracekit("attribute fixtures/traces --expect baseline,selective");
    assert!(run.refused().contains("selective"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = command();
    command.args(["attribute", "fixtures/traces", "--format", "json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn standard_input_is_a_trace_like_any_other() {
    let content = std::fs::read(golden("two-steps")).unwrap();
    for broken in [false, true] {
        let mut command = command();
        command.args(["attribute", "-", "--format", "json"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let content = if broken { &content[..500] } else { &content };
        child.stdin.take().unwrap().write_all(content).unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        if broken {
            assert_eq!(output.status.code(), Some(2));
            assert!(err.contains("at byte 500"), "{err}");
        } else {
            assert_eq!(output.status.code(), Some(0), "{err}");
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(answer["totals"]["total"]["sum_ns"], 127_625);
        }
    }
}
