//! Every flag of `tracekit attribute` changes what it says and nothing else.

use serde_json::Value;

use crate::{Folder, attribute, golden, tracekit};

fn sums(answer: &Value) -> Vec<i64> {
    [
        "forward",
        "backward",
        "recompute",
        "optimizer",
        "other",
        "total",
    ]
    .iter()
    .map(|bucket| answer["totals"][bucket]["sum_ns"].as_i64().unwrap())
    .collect()
}

fn json(case: &str, arguments: &str) -> Value {
    attribute(&golden(case), &format!("--format json {arguments}")).json(0)
}

#[test]
fn phase_gives_a_meaning_to_further_annotations() {
    assert_eq!(
        sums(&json("annotations", "")),
        [11_000, 23_000, 17_000, 5_000, 13_000, 69_000]
    );
    let mut command = crate::command();
    command.arg("attribute").arg(golden("annotations"));
    let run = crate::finish({
        command.args(["--format", "json", "--phase", "forward=^forward pass$"]);
        command
    });
    assert_eq!(
        sums(&run.json(0)),
        [17_000, 23_000, 17_000, 5_000, 7_000, 69_000]
    );
    for wrong in ["--phase nonsense", "--phase warmup=x", "--phase forward=("] {
        assert_eq!(attribute(&golden("annotations"), wrong).code, 2, "{wrong}");
    }
}

#[test]
fn comm_adds_communication_kernels() {
    let compute = |arguments: &str| {
        json("timeline-classes", arguments)["totals"]["total"]["communication_ns"].clone()
    };
    assert_eq!(compute(""), 120_000);
    assert_eq!(compute("--comm ^my_a2a"), 130_000);
    assert_eq!(attribute(&golden("timeline-classes"), "--comm (").code, 2);
}

#[test]
fn steps_keeps_the_work_of_a_range_of_steps() {
    let total = |arguments: &str| json("two-steps", arguments)["totals"]["total"]["sum_ns"].clone();
    assert_eq!(total(""), 127_625);
    assert_eq!(total("--steps 4..4"), 63_500);
    assert_eq!(total("--steps 5..9"), 64_125);
    for wrong in ["--steps x", "--steps 5..4"] {
        assert_eq!(attribute(&golden("two-steps"), wrong).code, 2, "{wrong}");
    }
}

#[test]
fn rank_keeps_one_rank() {
    let answer = json("two-ranks", "--rank 1");
    assert_eq!(answer["ranks"].as_array().unwrap().len(), 1);
    assert_eq!(answer["ranks"][0]["rank"], 1);
    assert_eq!(answer["totals"]["total"]["sum_ns"], 44_000);
    attribute(&golden("two-ranks"), "--rank 7").refused();
}

#[test]
fn ignore_annotations_infers_the_phases() {
    let answer = json("checkpoint-reentrant", "--ignore-annotations");
    assert_eq!(answer["coverage"]["phases"], "inferred");
    assert_eq!(sums(&answer), [45_000, 60_000, 42_000, 0, 0, 147_000]);
}

#[test]
fn recompute_evidence_chooses_the_evidence() {
    let ops = |evidence: &str| {
        let answer = json(
            "checkpoint-stack",
            &format!("--recompute-evidence {evidence}"),
        );
        (
            answer["recompute"]["evidence"].as_str().unwrap().to_owned(),
            answer["recompute"]["ops"].as_u64().unwrap(),
        )
    };
    assert_eq!(ops("auto"), ("stack".into(), 2));
    assert_eq!(ops("stack"), ("stack".into(), 2));
    assert_eq!(ops("sequence"), ("sequence".into(), 2));
    assert_eq!(ops("annotation"), ("none".into(), 0));
    assert_eq!(
        attribute(&golden("checkpoint-stack"), "--recompute-evidence luck").code,
        2
    );
}

#[test]
fn include_partial_steps_counts_them_in_the_step_time() {
    let time = |arguments: &str| json("partial-steps", arguments)["runs"][0]["step_time"].clone();
    assert_eq!(time("")["steps"], 1);
    let all = time("--include-partial-steps");
    assert_eq!(
        (&all["steps"], &all["min_ns"], &all["median_ns"]),
        (&3.into(), &40_000.into(), &100_000.into())
    );
}

#[test]
fn top_says_how_many_kernels_to_name() {
    let kernels = |arguments: &str| {
        json("checkpoint-reentrant", arguments)["runs"][0]["top_kernels"]["forward"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        (kernels("--top 1"), kernels("--top 2"), kernels("--top 9")),
        (1, 2, 3)
    );
}

#[test]
fn threads_and_mapping_change_nothing() {
    let want = tracekit("attribute fixtures/traces --format json");
    let mut want = want.json(0);
    for arguments in ["-j 1", "--threads 4", "--no-mmap"] {
        let mut got = tracekit(&format!(
            "attribute fixtures/traces --format json {arguments}"
        ))
        .json(0);
        for answer in [&mut want, &mut got] {
            answer.as_object_mut().unwrap().remove("options");
        }
        assert_eq!(got, want, "{arguments}");
    }
}

#[test]
fn whoever_maps_files_says_what_happens_when_they_are_cut() {
    for command in [
        "attribute",
        "inspect",
        "doctor",
        "repair",
        "slice",
        "redact",
    ] {
        let help = tracekit(&format!("{command} --help")).out;
        let (_, help) = help.split_once("--no-mmap").unwrap();
        assert!(help.contains("SIGBUS"), "{command}");
    }
}

#[test]
fn output_writes_the_same_into_a_file() {
    let folder = Folder::new();
    for format in ["text", "json", "csv", "markdown"] {
        let printed = tracekit(&format!(
            "attribute fixtures/golden/two-steps/trace.json --format {format}"
        ));
        let file = folder.path().join(format);
        let run = tracekit(&format!(
            "attribute fixtures/golden/two-steps/trace.json --format {format} -o {}",
            file.display()
        ));
        assert_eq!(
            (run.code, run.out.as_str(), run.err.as_str()),
            (0, "", ""),
            "{format}"
        );
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            printed.out,
            "{format}"
        );
    }
    let run = tracekit("attribute fixtures/golden/two-steps/trace.json -o no/such/folder/file");
    assert!(run.refused().contains("no/such/folder/file"));
}

#[test]
fn a_failed_run_leaves_an_old_result_alone() {
    let folder = Folder::new();
    let file = folder.write("result.txt", "the old result");
    let run = tracekit(&format!(
        "attribute fixtures/hostile/cut-in-name.json -o {}",
        file.display()
    ));
    run.refused();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "the old result");
}

#[test]
fn hashes_are_those_of_the_stored_bytes() {
    let folder = Folder::new();
    let path = folder.write("abc.json", "[]\n");
    let answer = attribute(&path, "--format json").json(0);
    let sha = answer["inputs"][0]["sha256"].as_str().unwrap();
    // printf '[]\n' | sha256sum
    assert_eq!(
        sha,
        "37517e5f3dc66819f61f5a7bb8ace1921282415f10551d2defa5c3eb0985b570"
    );
}

#[test]
fn by_chooses_the_rows_of_the_main_table() {
    let rows = |case: &str, by: &str| attribute(&golden(case), &format!("--by {by}")).out;
    assert!(!rows("step-border", "phase").contains("ProfilerStep#1"));
    let steps = rows("step-border", "step");
    assert!(
        steps.contains("ProfilerStep#1") && steps.contains("ProfilerStep#2"),
        "{steps}"
    );
    assert_ne!(rows("two-ranks", "rank"), rows("two-ranks", "phase"));
    assert_ne!(
        rows("shared-correlation", "device"),
        rows("shared-correlation", "phase")
    );
    assert_eq!(attribute(&golden("two-ranks"), "--by mood").code, 2);
}

#[test]
fn verbose_adds_remarks_that_touch_no_number() {
    let remarks = |arguments: &str| {
        attribute(&golden("lane-overlap-kept"), arguments)
            .out
            .matches("lane_overlap")
            .count()
    };
    assert_eq!((remarks(""), remarks("--verbose")), (0, 1));
    assert_eq!(attribute(&golden("two-steps"), "-v -q").code, 2);
}

#[test]
fn quiet_takes_the_warnings_from_standard_error() {
    let folder = Folder::new();
    folder.copy("rank0.pt.trace.json", "two-steps");
    folder.write("rank1.pt.trace.json", "{");
    let said = |arguments: &str| attribute(folder.path(), &format!("--format csv {arguments}")).err;
    assert!(said("").starts_with("tracekit: skipped "), "{}", said(""));
    let health = "tracekit: health: data_loss failed_input ×1";
    assert!(said("").contains(health), "{}", said(""));
    assert_eq!(said("").lines().count(), 2);
    assert_eq!(said("--quiet"), "");
}

#[test]
fn color_and_quiet_and_progress_are_accepted() {
    let plain = attribute(&golden("two-steps"), "");
    for arguments in [
        "--color never",
        "--color auto",
        "--progress never",
        "-q",
        "--quiet",
    ] {
        let run = attribute(&golden("two-steps"), arguments);
        assert_eq!(
            (run.code, run.out.as_str(), run.err.as_str()),
            (0, plain.out.as_str(), ""),
            "{arguments}"
        );
    }
    assert!(!plain.out.contains('\u{1b}'));
    let colored = attribute(&golden("two-steps"), "--color always").out;
    assert!(colored.contains('\u{1b}'), "no colour in {colored}");
}
