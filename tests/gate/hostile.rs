//! Input that is damaged, odd or made to do harm: an error of one line or a decision, and never half of one.

use std::path::Path;

use tracekit::evidence::{
    attribution_table, identify, modernized, normalize_report, replace_json, save_or_confirm,
};
use tracekit::gate::*;
use tracekit::report::{decision_sections, evidence_document, json, markdown};

use super::chain::{Chain, PHASE, PROFILE, STRATEGY};
use super::program::{run, run_in};
use super::{fixture, list};

/// What a field is replaced by.
fn odd_values() -> Vec<Option<Json>> {
    let texts = [
        "null",
        "true",
        "\"\"",
        "\"</script>\\u202e\\u001b[31m\\n\"",
        "-1",
        "0",
        "1e308",
        "123456789012345678901234567890",
        "[]",
        "{}",
        "[[[]]]",
    ];
    let values = texts.iter().map(|text| Some(Json::parse(text).unwrap()));
    // Also: the field is not there.
    values.chain([None]).collect()
}

/// The path of every field and item, at any depth.
fn places(value: &Json, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    if !at.is_empty() {
        found.push(at.clone());
    }
    let mut inside = |key: String, value: &Json| {
        at.push(key);
        places(value, at, found);
        at.pop();
    };
    for (key, value) in value.fields() {
        inside(key.to_owned(), value);
    }
    for (place, value) in value.items().iter().enumerate() {
        inside(place.to_string(), value);
    }
}

fn changed(value: &Json, path: &[String], by: Option<&Json>) -> Json {
    let mut whole = value.clone();
    let mut here = &mut whole;
    let (last, way) = path.split_last().unwrap();
    for key in way {
        here = if here.is_list() {
            &mut here.items_mut()[key.parse::<usize>().unwrap()]
        } else {
            here.get_mut(key).unwrap()
        };
    }
    match (by, last.parse::<usize>()) {
        (Some(by), Ok(place)) if here.is_list() => here.items_mut()[place] = by.clone(),
        (None, Ok(place)) if here.is_list() => here.items_mut()[place] = Json::Null,
        (Some(by), _) => here.set(last.as_str(), by),
        (None, _) => {
            here.remove(last);
        }
    }
    whole
}

/// Calls `look` with `record` and every field of it made odd, in one of `each` ways in turn.
fn each_odd(record: &Json, each: usize, mut look: impl FnMut(&Json)) {
    let mut found = Vec::new();
    places(record, &mut Vec::new(), &mut found);
    let odd = odd_values();
    for (place, path) in found.iter().enumerate() {
        for value in odd.iter().skip(place % each).step_by(each) {
            look(&changed(record, path, value.as_ref()));
        }
    }
    assert!(found.len() > 5);
}

/// A verdict must be one that can be written down and read again; an error must have a line.
fn holds(verdict: Result<Verdict, tracekit::Error>) {
    match verdict {
        Ok(verdict) => {
            let record = verdict.to_json();
            assert_eq!(Json::parse(&record.to_text()).unwrap(), record);
            // Whatever it says, a report can show it.
            let sections = decision_sections(&record, "x").unwrap();
            let document = tracekit::report::decision_document(sections);
            let text = markdown::render(&document);
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
            json::render(&document).unwrap();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn vector(id: &str) -> Json {
    let vectors = list("vectors.json");
    let found = vectors
        .iter()
        .find(|one| one.at(&["id"]).as_str() == Some(id));
    found.unwrap().at(&["input"]).clone()
}

#[test]
fn gates_decide_or_refuse_whatever_a_field_holds() {
    let thresholds = Thresholds::default();
    let strategies = fixture("results/76_real_gpu_memory.json");
    each_odd(&strategies, 3, |record| {
        holds(judge_strategies(record, &thresholds));
    });
    let mut small = thresholds.clone();
    small.sensitivity.min_samples_per_s.truncate(1);
    each_odd(&strategies, 6, |record| {
        holds(judge_sensitivity(record, false, &small));
        holds(judge_sensitivity(record, true, &small));
    });
    each_odd(&vector("sum-0"), 1, |record| {
        holds(judge_recommendation(record, &thresholds));
    });
    let mut regression = vector("regev-0");
    regression.set("contract", vector("contract-0").at(&["contract"]));
    each_odd(&regression, 2, |record| {
        holds(judge_regression(record, &thresholds));
    });
    let mut handoff = vector("budget-evid-0");
    handoff.set("budget", vector("budget-eval-0").at(&["budget"]));
    each_odd(&handoff, 2, |record| {
        holds(judge_budget(record, Some("w"), Some("h"), &thresholds));
        holds(judge_budget(record, None, None, &thresholds));
    });
    let ladder = vector("act-0");
    let mut strategy = Json::object();
    strategy.set("config", ladder.at(&["full_training_config"]));
    each_odd(ladder.at(&["report"]), 2, |record| {
        let evidence = Json::object();
        holds(judge_activation_scope(
            record,
            &strategy,
            &evidence,
            &thresholds,
        ));
    });
    let profile = fixture("results/old_74_real_gpu_profile.json");
    each_odd(&profile, 4, |record| {
        holds(judge_qualification(
            &strategies,
            &Json::object(),
            record,
            true,
            &thresholds,
        ));
        attribution_table(record);
    });
}

#[test]
fn a_negative_amount_is_no_measurement_and_wins_nothing() {
    let mut report = fixture("results/76_real_gpu_memory.json");
    let candidates = report.get_mut("candidates").unwrap().items_mut();
    candidates[1].set("peak_memory_mb", -5.0);
    let verdict = judge_strategies(&report, &Thresholds::default()).unwrap();
    let evaluation = &verdict.result.at(&["summary", "evaluations"]).items()[1];
    assert_eq!(evaluation.at(&["status"]).as_str(), Some("invalid"));
    assert_ne!(
        verdict.result.at(&["summary", "best_candidate"]).as_str(),
        Some("checkpoint")
    );
    let mut change = vector("sum-0");
    change.get_mut("tuned").unwrap().set("step_time_ms", -1.0);
    let error = judge_recommendation(&change, &Thresholds::default()).unwrap_err();
    assert_eq!(error.to_string(), "step_time_ms is negative: -1.0");
}

#[test]
fn records_are_looked_at_whatever_a_field_holds() {
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let names = [
        "73_real_gpu_training",
        "75_memory_budget_decision",
        "74_profiling_optimization",
        "74_profile/performance_handoff",
    ];
    for name in names {
        let record = chain.record(name);
        let mut found = Vec::new();
        places(&record, &mut Vec::new(), &mut found);
        // Every place with one odd value each, in turn: all with all takes long.
        let odd = odd_values();
        for (number, path) in found.iter().enumerate() {
            let record = changed(&record, path, odd[number % odd.len()].as_ref());
            let _ = (identify(&record), modernized(&record));
            let _ = decision_sections(&record, "x")
                .map(|sections| markdown::render(&tracekit::report::decision_document(sections)));
            normalize_report(&record, Some("74_x.json"));
            evidence_document(&record);
            validate_result(&record);
            validate_phase_memory_result(&record);
        }
        assert!(found.len() > 50, "{name}: {}", found.len());
    }
}

#[test]
fn stages_refuse_or_finish_whatever_a_record_holds() {
    let chain = Chain::whole();
    for (number, name) in [STRATEGY, PROFILE, PHASE].into_iter().enumerate() {
        let good = chain.record(name);
        let mut found = Vec::new();
        places(&good, &mut Vec::new(), &mut found);
        let odd = odd_values();
        let step = found.len().div_ceil(60);
        for (place, path) in found.iter().enumerate().step_by(step) {
            let value = odd[(place + number) % odd.len()].as_ref();
            replace_json(&chain.at(name), &changed(&good, path, value)).unwrap();
            chain.closure_manifest(true, true);
            match chain.closure().prepare("t") {
                Ok(report) => {
                    assert_eq!(report.record.at(&["status"]).as_str(), Some("prepared"));
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        replace_json(&chain.at(name), &good).unwrap();
    }
}

#[test]
fn files_that_are_no_records_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    };
    file("empty.json", b"");
    file("nan.json", b"{\"candidates\": [{\"samples_per_s\": NaN}]}");
    file(
        "infinite.json",
        b"{\"candidates\": [{\"samples_per_s\": 1e999}]}",
    );
    file("twice.json", b"{\"candidates\": [], \"candidates\": []}");
    file("deep.json", "[".repeat(100_000).as_bytes());
    file("bytes.json", b"\x00\xff\xfe");
    file("more.json", b"{} {}");
    file("list.json", b"[]");
    file("text.json", b"\"candidates\"");
    std::fs::create_dir(folder.path().join("folder.json")).unwrap();
    let mut names = vec![
        (
            "empty.json",
            "is no valid JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "nan.json",
            "is no valid JSON: expected value at line 1 column 35",
        ),
        (
            "infinite.json",
            "is no valid JSON: number out of range at line 1 column 39",
        ),
        (
            "twice.json",
            "is no valid JSON: the field 'candidates' comes twice at line 1 column 31",
        ),
        (
            "deep.json",
            "is no valid JSON: recursion limit exceeded at line 1 column 128",
        ),
        ("bytes.json", "is no valid UTF-8 at byte 1"),
        (
            "more.json",
            "is no valid JSON: trailing characters at line 1 column 4",
        ),
        ("list.json", "holds no JSON object at its top level"),
        ("text.json", "holds no JSON object at its top level"),
        ("folder.json", "is a directory"),
        ("missing.json", "no such file or directory"),
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("loop.json", folder.path().join("loop.json")).unwrap();
        names.push(("loop.json", "symbolic links"));
    }
    let gates: [&[&str]; 6] = [
        &["gate", "strategies"],
        &["gate", "recommend"],
        &["gate", "regression"],
        &["gate", "budget"],
        &["evidence", "attribution"],
        &["report", "--decision"],
    ];
    for (name, told) in names {
        for arguments in gates {
            let found = run_in(folder.path(), &[arguments, &[name]].concat());
            let line = found.refused();
            assert!(
                line.starts_with(&format!("{name}: "))
                    && line.to_lowercase().contains(&told.to_lowercase()),
                "{arguments:?} {name}: {line}"
            );
        }
    }
}

#[test]
fn numbers_on_the_command_line_are_finite() {
    let report = "fixtures/gate/results/76_real_gpu_memory.json";
    for arguments in [
        &[
            "gate",
            "strategies",
            report,
            "--set",
            "budget.memory_cap_mb=nan",
        ][..],
        &[
            "gate",
            "strategies",
            report,
            "--set",
            "budget.memory_cap_mb=-1",
        ],
        &[
            "gate",
            "strategies",
            report,
            "--set",
            "budget.max_val_loss=inf",
        ],
        &[
            "gate",
            "strategies",
            report,
            "--set",
            "qualification.minimum_memory_saving_mb=nan",
        ],
        &[
            "gate",
            "strategies",
            report,
            "--set",
            "sensitivity.max_val_loss=[nan]",
        ],
        &[
            "gate",
            "strategies",
            report,
            "--set",
            "budget.memory_cap_mb=\"9600\"",
        ],
        &[
            "gate",
            "strategies",
            report,
            "--statistics",
            "--alpha",
            "nan",
        ],
        &[
            "evidence",
            "preflight",
            "--strategy",
            report,
            "--free-memory-mb",
            "inf",
            "--total-memory-mb",
            "1",
        ],
        &[
            "evidence",
            "preflight",
            "--strategy",
            report,
            "--free-memory-mb",
            "1",
            "--total-memory-mb",
            "nan",
        ],
    ] {
        let found = run(arguments);
        assert_eq!((found.code, found.out.as_str()), (2, ""), "{arguments:?}");
        assert!(!found.err.contains("panicked"), "{}", found.err);
    }
}

#[test]
fn two_writers_at_once_leave_one_whole_record() {
    let folder = tempfile::tempdir().unwrap();
    let record = |writer: i64| {
        let mut record = Json::object();
        record.set("writer", writer);
        record.set(
            "numbers",
            (0..2_000_i64).map(Json::from).collect::<Vec<_>>(),
        );
        record
    };
    for round in 0..20 {
        let path = folder.path().join(format!("a/{round}/record.json"));
        let won: Vec<bool> = std::thread::scope(|scope| {
            let path = &path;
            let writers: Vec<_> = (0..8)
                .map(|writer| scope.spawn(move || save_or_confirm(path, &record(writer)).is_ok()))
                .collect();
            let ended = writers.into_iter().map(|writer| writer.join().unwrap());
            ended.collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let found = Json::read_object(&path).unwrap();
        let winner = won.iter().position(|won| *won).unwrap();
        assert_eq!(found.at(&["writer"]).as_int(), i64::try_from(winner).ok());
        let names = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1);
    }
}

#[test]
fn two_programs_that_close_at_once_agree() {
    let chain = Chain::whole();
    let close = || {
        let arguments = [
            "evidence",
            "close",
            "--project",
            "74",
            "--label",
            "t",
            "--root",
            ".",
        ];
        run_in(chain.folder.path(), &arguments)
    };
    let ended = std::thread::scope(|scope| {
        let programs: Vec<_> = (0..4).map(|_| scope.spawn(close)).collect();
        let ended = programs.into_iter().map(|program| program.join().unwrap());
        ended.collect::<Vec<_>>()
    });
    // A program that was overtaken between looking and writing says so, and writes nothing.
    for run in &ended {
        assert!(
            run.code == 0 || run.refused().contains("is there already"),
            "{}{}",
            run.out,
            run.err
        );
    }
    assert!(ended.iter().any(|run| run.code == 0));
    assert!(close().out.starts_with("already_complete: tune"));
}

#[cfg(unix)]
#[test]
fn links_are_not_written_through() {
    let chain = Chain::with_strategies();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("victim.json");
    let place = chain.at("75_memory_budget_evidence");
    // A link that leads nowhere is something that is there.
    std::os::unix::fs::symlink(&target, &place).unwrap();
    let error = chain.budget().analyze(&chain.label).unwrap_err();
    assert_eq!(error.kind(), tracekit::ErrorKind::Exists);
    assert!(!target.exists());
    std::fs::write(&target, "{}").unwrap();
    let error = chain.budget().analyze(&chain.label).unwrap_err();
    assert_eq!(error.kind(), tracekit::ErrorKind::Exists);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "{}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_told() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
    let chain = Chain::with_strategies();
    let results = chain.root.path().join("benchmarks/results");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let mode = |bits| std::fs::set_permissions(&results, PermissionsExt::from_mode(bits)).unwrap();
    mode(0o555);
    let told = chain.budget().analyze(&chain.label);
    mode(0o755);
    let before = chain.tree();
    match told {
        Err(error) => assert!(
            error
                .to_string()
                .contains("\"output_parent_writable\": false")
        ),
        // Nothing is closed to root.
        Ok(_) => assert!(is_root),
    }
    assert!(before.iter().all(|(path, _)| !is_temporary(path)));
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(".tracekit-")
}

/// The program, killed at any moment of any stage that writes: every record is whole, and the stage can be
/// finished afterwards.
#[test]
fn a_program_that_is_killed_leaves_whole_records() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let chain = Chain::with_budget();
    let stage: &[&str] = &[
        "evidence", "profile", "--label", "t", "--root", ".", "--traces", "traces",
    ];
    let finish: &[&str] = &[
        "evidence",
        "profile",
        "--label",
        "t",
        "--root",
        ".",
        "--traces",
        "benchmarks/results/74_profile/trace_t",
    ];
    let mut finished = 0;
    for round in 0..24_u64 {
        let _ = std::fs::remove_file(chain.at(PROFILE));
        let _ = std::fs::remove_dir_all(chain.root.path().join("benchmarks/results/74_profile"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_tracekit"))
            .current_dir(chain.folder.path())
            .args(stage)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(round * 3 / 2));
        child.kill().unwrap();
        child.wait().unwrap();
        let traces = chain
            .root
            .path()
            .join("benchmarks/results/74_profile/trace_t");
        if chain.at(PROFILE).exists() {
            finished += 1;
            assert!(chain.record(PROFILE).at(&["tool"]).is_object());
        } else if traces.exists() {
            // The traces are taken in whole or not at all, and go on from there.
            let found = run_in(chain.folder.path(), finish);
            assert_eq!(found.code, 0, "{}", found.err);
        } else {
            let found = run_in(chain.folder.path(), stage);
            assert_eq!(found.code, 0, "{}", found.err);
        }
        let record = chain.record(PROFILE);
        for (path, sha256) in record.at(&["profile", "trace_sha256"]).fields() {
            let found = tracekit::evidence::hash(&chain.root.path().join(path)).unwrap();
            assert_eq!(sha256.as_str(), Some(found.as_str()));
        }
    }
    eprintln!("{finished} of 24 had finished before they were killed");
}
