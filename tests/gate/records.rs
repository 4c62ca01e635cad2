//! Records on disk: normalised, of every age, whole after a kill.

use std::process::{Command, Stdio};
use std::time::Duration;

use tracekit::evidence::{
    Form, checklist, environment_preflight, hash, identify, modernized, normalize_file,
    normalize_report, save_json_record_once,
};
use tracekit::gate::{Json, StrategyReport};

use super::chain::Chain;
use super::program::{run, run_in};
use super::{fixture, fixtures, list};

#[test]
fn normalised_results_equal_the_stored_ones() {
    let mut pairs = 0;
    for vector in list("vectors.json") {
        if vector.at(&["fn"]).as_str() != Some("normalize_report") {
            continue;
        }
        pairs += 1;
        let input = fixture(vector.at(&["input", "file"]).as_str().unwrap());
        let source = vector.at(&["input", "legacy_source"]).as_str();
        let name = vector.at(&["output", "file"]).as_str().unwrap();
        let found = normalize_report(&input, source);
        assert_eq!(found, fixture(name), "{name}");
        // The order of fields and the spelling of numbers, too.
        let stored = std::fs::read_to_string(fixtures().join(name)).unwrap();
        assert_eq!(found.to_text().trim_end(), stored.trim_end(), "{name}");
    }
    assert_eq!(pairs, 3);
}

#[test]
fn normalising_leaves_the_input_and_replaces_the_older_form() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("76_x.json");
    std::fs::copy(fixtures().join("results/76_real_gpu_memory.json"), &input).unwrap();
    let before = hash(&input).unwrap();
    let output = normalize_file(&input, None).unwrap();
    assert_eq!(output, folder.path().join("76_x_v1.json"));
    let first = std::fs::read(&output).unwrap();
    std::fs::write(&output, "old").unwrap();
    normalize_file(&input, None).unwrap();
    assert_eq!(std::fs::read(&output).unwrap(), first);
    assert_eq!(hash(&input).unwrap(), before);
    let record = Json::read_object(&output).unwrap();
    assert_eq!(record.at(&["project"]).as_str(), Some("76"));
    assert!(normalize_file(&output, None).is_err());
}

#[test]
fn every_stored_result_loads_or_is_refused_with_its_reason() {
    let mut forms = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir(fixtures().join("results"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 16);
    for name in &names {
        let record = fixture(&format!("results/{name}"));
        let found = identify(&record).unwrap();
        let modern = modernized(&record);
        match found.form {
            Form::Probe | Form::Merge => {
                let error = modern.unwrap_err().to_string();
                assert!(
                    error.contains("has no place in today's envelope"),
                    "{name}: {error}"
                );
            }
            Form::Strategy => {
                StrategyReport::read(&modern.unwrap()).unwrap();
                assert!(
                    found.missing[0].starts_with("three runs of every candidate"),
                    "{name}"
                );
            }
            _ => {
                let modern = modern.unwrap();
                assert!(modern.at(&["schema_version"]).as_str().is_some(), "{name}");
            }
        }
        forms.push(found.form);
    }
    let count = |form: Form| forms.iter().filter(|found| **found == form).count();
    assert_eq!(count(Form::Strategy), 3);
    assert_eq!(count(Form::BudgetDecision), 4);
    assert_eq!(count(Form::Normalized), 3);
    assert_eq!(count(Form::Baseline), 2);
    assert_eq!(
        (count(Form::Probe), count(Form::Profile), count(Form::Merge)),
        (2, 1, 1)
    );
    for (text, told) in [
        (
            "{}",
            "has no schema_version, and stage null with these fields is no result of the chain",
        ),
        (
            "{\"schema_version\":\"x\"}",
            "schema_version: 'x' with semantic_id null is not known",
        ),
    ] {
        assert_eq!(
            identify(&Json::parse(text).unwrap())
                .unwrap_err()
                .to_string(),
            told
        );
    }
}

#[test]
fn the_stored_profile_is_shown_for_attribution_only() {
    let found = run(&[
        "evidence",
        "attribution",
        "fixtures/gate/results/old_74_real_gpu_profile.json",
    ]);
    assert_eq!(found.code, 0);
    for told in [
        "attribution only: these numbers explain and do not decide",
        "9782.73 -> 9450.75",
        "10750.00 -> 10896.00",
        "690.38 -> 825.06",
        "967.27",
    ] {
        assert!(found.out.contains(told), "{told} in {}", found.out);
    }
}

#[test]
fn the_four_questions_are_answered_from_a_folder() {
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let results = chain.root.path().join("benchmarks/results");
    let verdict = checklist(&results).unwrap();
    let answers: Vec<&str> = verdict
        .record
        .at(&["answers"])
        .items()
        .iter()
        .map(|answer| answer.at(&["answer"]).as_str().unwrap())
        .collect();
    // The choice of strategy is sensitive to the thresholds of the grid.
    assert_eq!(answers, ["yes", "yes", "no", "yes"]);
    assert!(!verdict.complete);
    let evidence = verdict.record.at(&["answers"]).items()[3]
        .at(&["evidence"])
        .items();
    assert_eq!(evidence, ["74_profiling_optimization_t.json".into()]);
    let old = checklist(&fixtures().join("results")).unwrap();
    assert_eq!(
        old.record.at(&["answers"]).items()[3]
            .at(&["answer"])
            .as_str(),
        Some("not_measured")
    );
    let empty = tempfile::tempdir().unwrap();
    assert!(checklist(empty.path()).is_err());
}

#[test]
fn preflight_exits_with_2_when_it_is_blocked() {
    let found = run(&[
        "evidence",
        "preflight",
        "--python",
        "no-such-python",
        "--format",
        "json",
    ]);
    let record = found.json(0);
    assert_eq!(record.at(&["status"]).as_str(), Some("ok"));
    let found = run(&[
        "evidence",
        "preflight",
        "--python",
        "no-such-python",
        "--require-gpu",
    ]);
    assert_eq!(found.code, 2);
    assert!(found.out.starts_with("blocked\n"));
    let facts = tracekit::evidence::RuntimeFacts::default();
    let wanted = tracekit::evidence::Requirements::default();
    assert!(
        environment_preflight(&facts, &wanted)
            .at(&["ready"])
            .is_true()
    );
    let strategy = "fixtures/gate/results/76_real_gpu_memory.json";
    for (free, code) in [("11261.99", 2), ("11262", 0)] {
        let found = run(&[
            "evidence",
            "preflight",
            "--python",
            "no-such-python",
            "--strategy",
            strategy,
            "--free-memory-mb",
            free,
            "--total-memory-mb",
            "12227",
            "--format",
            "json",
        ]);
        let record = found.json(code);
        let admission = record.at(&["memory_admission"]);
        assert_eq!(
            admission.at(&["required_free_memory_mb"]).as_f64(),
            Some(11262.0)
        );
        assert_eq!(admission.at(&["admitted"]).is_true(), code == 0);
    }
}

#[cfg(unix)]
#[test]
fn the_whole_chain_runs_twice() {
    let folder = tempfile::tempdir().unwrap();
    let script = fixtures().join("chain.sh");
    let mut told = Vec::new();
    for _ in 0..2 {
        let output = Command::new("bash")
            .arg(&script)
            .arg(folder.path())
            .env("TRACEKIT", env!("CARGO_BIN_EXE_tracekit"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        told.push(String::from_utf8(output.stdout).unwrap());
    }
    let first = &told[0];
    for line in [
        "analyze                  analyzed",
        "close 75                 saved: tune, memory_saving_below_meaningful_threshold",
        "close 74                 completed: tune, global_peak_memory_saving_below_threshold",
    ] {
        assert!(first.contains(line), "{first}");
    }
    // The second time, every stage that writes is complete.
    let stages: Vec<&str> = told[1]
        .lines()
        .filter(|line| !line.starts_with("prepare"))
        .collect();
    assert_eq!(stages.len(), 12, "{}", told[1]);
    for line in &stages[..11] {
        assert!(line.contains(" already_complete"), "{line}");
    }
}

#[test]
fn commands_refuse_in_one_line_and_write_nothing() {
    let chain = Chain::with_strategies();
    let folder = chain.folder.path();
    let before = chain.tree();
    for (arguments, told) in [
        (
            &["close", "--project", "75"][..],
            "run_label: replace_with_unique_label is a placeholder",
        ),
        (
            &["close", "--project", "74", "--label", "a/b"],
            "run_label: 'a/b' must be of letters",
        ),
        (
            &["close", "--project", "74", "--label", "t"],
            "there is no such manifest",
        ),
        (
            &["analyze", "--label", "t", "--manifest", "nowhere.json"],
            "nowhere.json: no such file or directory",
        ),
        (
            &[
                "training",
                "measurements/73_baseline.json",
                "measurements/73_baseline.json",
                "--label",
                "t",
            ],
            "changed_variable: the two sides must differ in one field, not in []",
        ),
        (
            &[
                "training",
                "measurements/74_phase_baseline.json",
                "measurements/73_tuned.json",
                "--label",
                "t",
            ],
            "evidence_role: \"phase_memory_attribution_only\" is not unprofiled_repeated_measurements",
        ),
    ] {
        let all = [&["evidence"], arguments, &["--root", "."]].concat();
        let found = run_in(folder, &all);
        assert!(found.refused().contains(told), "{}", found.err);
    }
    // A hand-off says what it is from, and by what.
    let handoff = run_in(
        folder,
        &[
            "evidence",
            "handoff",
            "benchmarks/results/76_real_gpu_memory_t.json",
        ],
    )
    .json(0);
    let input = &handoff.at(&["inputs"]).items()[0];
    let strategy = chain.at("76_real_gpu_memory");
    assert_eq!(
        input.at(&["sha256"]).as_str(),
        Some(hash(&strategy).unwrap().as_str())
    );
    assert_eq!(handoff.at(&["tool", "name"]).as_str(), Some("tracekit"));
    // Names that were chosen and hold something else.
    let strategy = "benchmarks/results/76_real_gpu_memory_t.json";
    let baseline = "benchmarks/results/73_real_gpu_training_t.json";
    for arguments in [
        &["handoff", strategy, "-o", baseline][..],
        &["identify", strategy, "--modern", baseline],
        &[
            "manifest",
            "create",
            "--project",
            "75",
            "--strategy",
            strategy,
            "--approved",
            "approved_75.json",
            "--manifest",
            baseline,
            "--root",
            ".",
        ],
    ] {
        let found = run_in(folder, &[&["evidence"], arguments].concat());
        let told =
            "is there already with other content and is not overwritten; choose another name";
        assert!(found.refused().ends_with(told), "{}", found.err);
    }
    let found = run_in(folder, &["evidence", "close", "--project", "73"]);
    assert_eq!(found.code, 2);
    let found = run_in(folder, &["evidence", "prepare", "--project", "75"]);
    assert!(
        found.refused().contains("name the root with --root"),
        "{}",
        found.err
    );
    assert_eq!(chain.tree(), before);
}

#[test]
fn a_decision_can_be_an_exit_code() {
    let chain = Chain::with_strategies();
    chain.budget().analyze(&chain.label).unwrap();
    let close = [
        "evidence",
        "close",
        "--project",
        "75",
        "--label",
        "t",
        "--root",
        ".",
    ];
    assert_eq!(run_in(chain.folder.path(), &close).code, 0);
    let strict = [&close[..], &["--exit-by-decision"]].concat();
    assert_eq!(run_in(chain.folder.path(), &strict).code, 3);
}

/// Writes records until it is killed; runs only as the child of the next test.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os("TRACEKIT_TEST_WRITER") else {
        return;
    };
    let mut record = Json::object();
    record.set(
        "numbers",
        (0..20_000_i64).map(Json::from).collect::<Vec<_>>(),
    );
    for number in 0..100_000 {
        let path = std::path::Path::new(&folder).join(format!("record_{number}.json"));
        save_json_record_once(&path, &record).unwrap();
    }
}

#[test]
fn a_kill_at_any_moment_leaves_no_half_record() {
    let mut records = 0;
    for round in 0..12_u64 {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "records::writer"])
            .env("TRACEKIT_TEST_WRITER", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // However busy the machine is: some records are there before the kill.
        let whole = || {
            let entries = std::fs::read_dir(folder.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| name.to_string_lossy().ends_with(".json"))
                .count()
        };
        for _ in 0..12_000 {
            if whole() >= 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(7 * round + round % 3));
        child.kill().unwrap();
        child.wait().unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let record = Json::read_object(&path).unwrap();
                assert_eq!(record.at(&["numbers"]).items().len(), 20_000);
                records += 1;
            }
        }
    }
    assert!(records > 12, "only {records} records were written");
}
