//! `tracekit gate` from outside.

use std::path::{Path, PathBuf};

use tracekit::gate::{Json, explain};

use super::program::run;
use super::{fixture, list};

/// The input of a vector, in a file.
fn input_of(folder: &Path, id: &str) -> PathBuf {
    let vectors = list("vectors.json");
    let vector = vectors
        .iter()
        .find(|vector| vector.at(&["id"]).as_str() == Some(id))
        .unwrap();
    let mut input = vector.at(&["input"]).clone();
    // The vectors of the adoption gate hold its evidence; the command wants the records.
    if input.get("original_bottleneck").is_some() {
        let contract = list("vectors.json")[..]
            .iter()
            .find(|vector| vector.at(&["id"]).as_str() == Some("contract-0"))
            .unwrap()
            .at(&["input", "contract"])
            .clone();
        input.set("contract", contract);
    }
    save(folder, id, &input)
}

fn save(folder: &Path, name: &str, record: &Json) -> PathBuf {
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, record.to_text()).unwrap();
    path
}

const REAL: &str = "fixtures/gate/results/76_real_gpu_memory.json";

#[test]
fn decisions_are_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    for (gate, id, code, headline) in [
        (
            "recommend",
            "sum-0",
            0,
            "accept: time_and_resource_gains_reached (时间达到阈值，且显存或吞吐至少一项达到阈值，当前优化值得保留。)",
        ),
        (
            "recommend",
            "rec-2",
            3,
            "tune: time_gain_without_resource_gain (时间改善成立，但资源或吞吐收益还不够稳，建议继续微调。)",
        ),
        (
            "recommend",
            "rec-3",
            1,
            "reject: no_stable_gain (当前优化没有形成稳定的端到端收益，建议回退或重新定位瓶颈。)",
        ),
        (
            "regression",
            "regev-0",
            0,
            "accept: benefit_and_guardrails_passed; next: freeze_candidate_and_thresholds",
        ),
        (
            "regression",
            "regev-1",
            3,
            "tune: benefit_or_bottleneck_evidence_incomplete; next: adjust_and_rerun_regression",
        ),
        (
            "regression",
            "regev-2",
            1,
            "reject: hard_failure_or_primary_missing; next: restore_baseline",
        ),
        (
            "strategies",
            "old75-sum",
            0,
            "accept: compression_strategy_is_best_feasible_option; next: promote_to_training_run",
        ),
        (
            "strategies",
            "nobase-sum",
            1,
            "reject: baseline_missing_or_invalid; next: rerun_baseline_before_comparing_candidates",
        ),
    ] {
        let path = input_of(folder.path(), id);
        let path = path.to_str().unwrap();
        let sets: &[&str] = match gate {
            "strategies" => &[
                "--set",
                "budget.memory_cap_mb=12000",
                "--set",
                "budget.min_samples_per_s=6",
                "--set",
                "budget.max_val_loss=1.15",
            ],
            _ => &[],
        };
        let base = [&["gate", gate, path], sets].concat();
        let found = run(&base);
        assert_eq!(found.code, code, "{id}: {}{}", found.out, found.err);
        assert_eq!(found.out.lines().next().unwrap(), headline, "{id}");
        let forgiving = run(&[&base[..], &["--exit-zero"]].concat());
        assert_eq!((forgiving.code, forgiving.out), (0, found.out));
    }
}

#[test]
fn a_hand_off_is_screened_also_under_stricter_budgets() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = list("vectors.json");
    let vector = |id: &str| {
        let found = vectors
            .iter()
            .find(|one| one.at(&["id"]).as_str() == Some(id));
        found.unwrap().at(&["input"]).clone()
    };
    let mut input = vector("budget-evid-0");
    input.set("budget", vector("budget-eval-0").at(&["budget"]));
    for (stricter, code, reason) in [
        ("budget-eval-1", 0, "selection_stable_across_thresholds"),
        ("budget-eval-2", 3, "selection_is_threshold_sensitive"),
    ] {
        input.set(
            "stricter_budgets",
            vec![vector(stricter).at(&["budget"]).clone()],
        );
        let path = save(folder.path(), stricter, &input);
        let found = run(&["gate", "budget", path.to_str().unwrap(), "--format", "json"]).json(code);
        assert_eq!(found.at(&["reason"]).as_str(), Some(reason));
        assert_eq!(
            found
                .at(&["result", "decision", "selected_candidate"])
                .as_str(),
            Some("checkpoint")
        );
    }
    let path = save(folder.path(), "mismatch", &input);
    let path = path.to_str().unwrap();
    let found = run(&[
        "gate",
        "budget",
        path,
        "--workload",
        "train-b4-s1024",
        "--hardware",
        "gpu-a",
    ]);
    assert_eq!(found.code, 1);
    assert!(found.out.starts_with("reject: workload_mismatch;"));
}

#[test]
fn an_invalid_pairing_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = Json::read_object(&input_of(folder.path(), "regev-0")).unwrap();
    input
        .get_mut("contract")
        .unwrap()
        .set("changed_variable", "");
    let path = save(folder.path(), "pairing", &input);
    let found = run(&["gate", "regression", path.to_str().unwrap()]);
    assert_eq!(found.code, 1);
    assert!(
        found
            .out
            .starts_with("reject: pairing_invalid; next: restore_baseline\n")
    );
    assert!(found.out.contains("changed_variable_missing"));
}

#[test]
fn strategies_and_grids_of_the_stored_report() {
    let found = run(&["gate", "strategies", REAL, "--format", "json"]).json(3);
    let vectors = list("vectors.json");
    let real = |id: &str| {
        let found = vectors
            .iter()
            .find(|one| one.at(&["id"]).as_str() == Some(id));
        found.unwrap().at(&["output"]).clone()
    };
    assert_eq!(*found.at(&["result", "summary"]), real("real76-11200-sum"));
    assert_eq!(*found.at(&["result", "decision"]), real("real76-11200-dec"));
    assert_eq!(
        found.at(&["schema_version"]).as_str(),
        Some("tracekit.gate/v1")
    );
    let sha256 = found.at(&["inputs"]).items()[0].at(&["sha256"]).clone();
    assert_eq!(sha256.as_str().unwrap().len(), 64);
    for (flag, grid) in [(&[][..], "grid75_18"), (&["--relative"], "checklist_27")] {
        let arguments = [&["gate", "sensitivity", REAL, "--format", "json"], flag].concat();
        let found = run(&arguments).json(3);
        assert_eq!(
            found.at(&["result", "sensitivity_summary"]),
            fixture("sensitivity.json").at(&[grid, "summary"])
        );
    }
}

#[test]
fn qualification_takes_names_from_the_profile_and_numbers_from_the_strategies() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "fixtures/gate/results/old_74_real_gpu_profile.json";
    let mut strategy = fixture("results/76_real_gpu_memory.json");
    let run_record = Json::parse("{\"status\":\"ok\"}").unwrap();
    for candidate in strategy.get_mut("candidates").unwrap().items_mut() {
        candidate.set("runs", vec![run_record.clone(); 3]);
    }
    let strategy = save(folder.path(), "76", &strategy);
    let strategy = strategy.to_str().unwrap();
    let budget = folder.path().join("75.json");
    let budget = budget.to_str().unwrap();
    assert_eq!(
        run(&["gate", "strategies", strategy, "--record", budget]).code,
        3
    );
    let base = [
        "gate",
        "qualify",
        "--strategy",
        strategy,
        "--budget",
        budget,
    ];
    let found = run(&[&base[..], &["--profile", profile, "--phase", profile]].concat());
    assert_eq!(found.code, 3);
    assert!(found.out.starts_with(
        "tune: global_peak_memory_saving_below_threshold; next: retain_phase_evidence_and_do_not_adopt_at_fixed_workload\n"
    ));
    // The profile itself is no measurement.
    let mut profiled = fixture("results/old_74_real_gpu_profile.json");
    profiled.set("schema_version", "profiling-trace-evidence/v1");
    let profiled = save(folder.path(), "74", &profiled);
    let profiled = profiled.to_str().unwrap();
    let found = run(&["gate", "strategies", profiled]);
    let line = found.refused();
    assert!(line.ends_with(
        "74.json: evidence_role: schema_version is profiling-trace-evidence/v1; such numbers explain and do not decide"
    ), "{line}");
}

#[test]
fn the_activation_ladder_decides_within_its_scope() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = list("vectors.json");
    for (id, code, word) in [
        ("act-0", 0, "accept_for_activation_memory_scope"),
        ("act-2", 3, "tune"),
    ] {
        let vector = vectors
            .iter()
            .find(|one| one.at(&["id"]).as_str() == Some(id));
        let input = vector.unwrap().at(&["input"]);
        let ladder = save(folder.path(), id, input.at(&["report"]));
        let mut strategy = Json::object();
        strategy.set("config", input.at(&["full_training_config"]));
        let strategy = save(folder.path(), "strategy", &strategy);
        let found = run(&[
            "gate",
            "activation-scope",
            ladder.to_str().unwrap(),
            "--strategy",
            strategy.to_str().unwrap(),
            "--format",
            "json",
        ])
        .json(code);
        assert_eq!(found.at(&["decision"]).as_str(), Some(word));
        assert_eq!(
            *found.at(&["result", "promotable_to_full_training"]),
            Json::Bool(false)
        );
    }
}

#[test]
fn formats_tell_the_same_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let headline = "tune: memory_saving_below_meaningful_threshold; next: test_larger_pressure_or_optimizer_compression";
    let format = |format: &str| {
        let found = run(&["gate", "strategies", REAL, "--format", format]);
        assert_eq!(found.code, 3, "{}", found.err);
        found.out
    };
    assert_eq!(format("text").lines().next().unwrap(), headline);
    assert!(format("markdown").replace('\\', "").contains(headline));
    let junit = format("junit");
    assert!(
        junit.starts_with("<?xml") && junit.contains("tests=\"5\" failures=\"2\""),
        "{junit}"
    );
    assert!(junit.contains(&format!("<failure type=\"tune\" message=\"{headline}\"/>")));
    let github = format("github");
    assert_eq!(
        github.lines().next().unwrap(),
        format!("::warning title=tracekit gate strategies::{headline}")
    );

    let path = input_of(folder.path(), "fmt-0");
    let found = run(&[
        "gate",
        "recommend",
        path.to_str().unwrap(),
        "--format",
        "report",
        "--bottleneck",
        "backward kernel 占比过高",
        "--next-action",
        "保留混合精度并继续检查 optimizer",
    ]);
    let vectors = list("vectors.json");
    let vector = vectors
        .iter()
        .find(|one| one.at(&["id"]).as_str() == Some("fmt-0"));
    let wanted = vector.unwrap().at(&["output"]).as_str().unwrap().to_owned();
    assert_eq!((found.code, found.out), (0, wanted + "\n"));
}

#[test]
fn evidence_is_written_before_a_failing_exit() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("verdict.json");
    let junit = folder.path().join("junit.xml");
    let found = run(&[
        "gate",
        "strategies",
        REAL,
        "--set",
        "budget.min_samples_per_s=100",
        "--record",
        record.to_str().unwrap(),
        "--format",
        "junit",
        "-o",
        junit.to_str().unwrap(),
    ]);
    assert_eq!((found.code, found.out.as_str()), (1, ""));
    let record = Json::read_object(&record).unwrap();
    assert_eq!(record.at(&["decision"]).as_str(), Some("reject"));
    assert!(
        std::fs::read_to_string(junit)
            .unwrap()
            .contains("no_strategy_meets_budget_and_quality")
    );
}

#[test]
fn thresholds_are_printed_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thresholds.toml");
    let printed = run(&["gate", "thresholds"]);
    assert_eq!(printed.code, 0);
    std::fs::write(
        &path,
        printed
            .out
            .replace("memory_cap_mb = 11200.0", "memory_cap_mb = 9600.0"),
    )
    .unwrap();
    let found = run(&[
        "gate",
        "strategies",
        REAL,
        "--format",
        "json",
        "--thresholds",
        path.to_str().unwrap(),
    ])
    .json(3);
    assert_eq!(
        found.at(&["result", "summary", "feasible_count"]).as_int(),
        Some(2)
    );
    std::fs::write(&path, "[budget]\nmemory_cap = 1\n").unwrap();
    let found = run(&[
        "gate",
        "strategies",
        REAL,
        "--thresholds",
        path.to_str().unwrap(),
    ]);
    let line = found.refused();
    assert!(
        line.contains("thresholds.toml: thresholds: unknown field `memory_cap`"),
        "{line}"
    );
}

#[test]
fn every_reason_of_the_vectors_is_explained() {
    for vector in list("vectors.json") {
        let output = vector.at(&["output"]);
        let mut codes: Vec<String> = Vec::new();
        for key in ["reason", "interpretation"] {
            codes.extend(output.at(&[key]).as_str().map(str::to_owned));
        }
        for key in ["issues", "failed_gates"] {
            codes.extend(
                output
                    .at(&[key])
                    .items()
                    .iter()
                    .map(|code| code.as_str().unwrap().to_owned()),
            );
        }
        for evaluation in output.at(&["evaluations"]).items() {
            codes.extend(
                evaluation
                    .at(&["reasons"])
                    .items()
                    .iter()
                    .map(|code| code.as_str().unwrap().to_owned()),
            );
        }
        for code in codes.into_iter().filter(|code| code.is_ascii()) {
            explain(&code).unwrap();
        }
    }
    let found = run(&["gate", "--explain", "memory_saving"]);
    assert!(
        found
            .out
            .starts_with("memory_saving: The strategy saves less")
    );
    assert!(run(&["gate", "--explain"]).out.lines().count() > 50);
    assert!(
        run(&["gate", "--explain", "nothing"])
            .refused()
            .contains("no reason is called 'nothing'")
    );
}

/// Every gate, with arguments that end in each of its decisions where that is easy.
fn every_gate(folder: &Path) -> Vec<Vec<String>> {
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let vectors = list("vectors.json");
    let vector = |id: &str| {
        let mut found = vectors
            .iter()
            .filter(|one| one.at(&["id"]).as_str() == Some(id));
        found.next().unwrap().at(&["input"]).clone()
    };
    let mut gates: Vec<Vec<String>> = Vec::new();
    for id in ["sum-0", "rec-2", "rec-3"] {
        gates.push(words(&["recommend", &text(input_of(folder, id))]));
    }
    for id in ["regev-0", "regev-1", "regev-2"] {
        gates.push(words(&["regression", &text(input_of(folder, id))]));
    }
    let one = text(input_of(folder, "regev-0"));
    for set in [
        "max_memory_growth_mb=0",
        "max_throughput_loss=0",
        "require_adjacent=true",
    ] {
        gates.push(words(&[
            "regression",
            &one,
            "--set",
            &format!("regression.{set}"),
        ]));
    }
    let mut alone = Json::read_object(Path::new(&one)).unwrap();
    let only = alone.at(&["workload_records"]).items()[..1].to_vec();
    alone.set("workload_records", only);
    let alone = text(save(folder, "alone", &alone));
    gates.push(words(&[
        "regression",
        &alone,
        "--set",
        "regression.require_adjacent=true",
    ]));
    gates.push(words(&["strategies", REAL]));
    gates.push(words(&[
        "strategies",
        REAL,
        "--set",
        "budget.min_samples_per_s=100",
    ]));
    gates.push(words(&["sensitivity", REAL]));
    gates.push(words(&["sensitivity", REAL, "--relative"]));
    let mut handoff = vector("budget-evid-0");
    handoff.set("budget", vector("budget-eval-0").at(&["budget"]));
    handoff.set(
        "stricter_budgets",
        vec![vector("budget-eval-2").at(&["budget"]).clone()],
    );
    let path = text(save(folder, "handoff", &handoff));
    gates.push(words(&["budget", &path]));
    gates.push(words(&["budget", &path, "--workload", "other"]));
    for id in ["act-0", "act-2"] {
        let input = vector(id);
        let ladder = text(save(folder, id, input.at(&["report"])));
        let mut strategy = Json::object();
        strategy.set("config", input.at(&["full_training_config"]));
        let strategy = text(save(folder, "strategy", &strategy));
        gates.push(words(&[
            "activation-scope",
            &ladder,
            "--strategy",
            &strategy,
        ]));
    }
    let budget = folder.join("75.json");
    let budget = budget.to_str().unwrap();
    run(&["gate", "strategies", REAL, "--record", budget]);
    let profile = "fixtures/gate/results/old_74_real_gpu_profile.json";
    gates.push(words(&[
        "qualify",
        "--strategy",
        REAL,
        "--budget",
        budget,
        "--profile",
        profile,
    ]));
    gates
}

#[test]
fn every_gate_has_every_format_and_codes_that_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let mut decided = std::collections::BTreeSet::new();
    for gate in every_gate(folder.path()) {
        let gate: Vec<&str> = gate.iter().map(String::as_str).collect();
        let told = |format: &str| {
            let found = run(&[&["gate"], &gate[..], &["--format", format]].concat());
            assert!([0, 1, 3].contains(&found.code), "{gate:?}: {}", found.err);
            found.out
        };
        let record = Json::parse(&told("json")).unwrap();
        let headline = tracekit::gate::headline(&record);
        assert_eq!(told("text").lines().next(), Some(headline.as_str()));
        assert!(told("markdown").replace('\\', "").contains(&headline));
        assert!(told("html").contains("<!DOCTYPE html>"));
        assert!(told("github").starts_with("::"));
        assert!(told("github").lines().next().unwrap().ends_with(&headline));
        let junit = told("junit");
        let checks = record.at(&["checks"]).items();
        assert!(
            junit.contains(&format!("tests=\"{}\"", checks.len() + 1)),
            "{junit}"
        );
        assert_eq!(junit.matches("<testcase ").count(), checks.len() + 1);
        let reason = record.first(&["reason_code", "reason"]).as_str().unwrap();
        explain(reason).unwrap_or_else(|error| panic!("{gate:?}: {error}"));
        for check in checks {
            let codes = check.at(&["codes"]).items();
            assert!(
                !check.at(&["failed"]).is_true() || !codes.is_empty(),
                "{gate:?}: {} failed without a code",
                check.to_line()
            );
            for code in codes {
                explain(code.as_str().unwrap()).unwrap();
            }
        }
        decided.insert((
            gate[0].to_owned(),
            record.at(&["decision"]).as_str().unwrap().to_owned(),
        ));
    }
    // Seven gates, and no gate with one decision only where another was to be had.
    let gates: std::collections::BTreeSet<&str> =
        decided.iter().map(|(gate, _)| gate.as_str()).collect();
    assert_eq!(gates.len(), 7);
    assert!(decided.len() >= 13, "{decided:?}");
}

#[test]
fn unusable_input_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.json");
    let path = path.to_str().unwrap();
    for (content, told) in [
        (
            "{\"candidates\": [",
            "is no valid JSON: EOF while parsing a list at line 1 column 16",
        ),
        ("[]", "holds no JSON object at its top level"),
        ("{}", "candidates is missing or no list"),
        ("{\"candidates\": [1]}", "a candidate is no object"),
        ("{\"candidates\": []}", "max_val_loss is not set"),
        ("\u{feff}{}", "is no valid JSON"),
    ] {
        std::fs::write(path, content).unwrap();
        let found = run(&["gate", "strategies", path]);
        let line = found.refused();
        assert!(line.contains("bad.json: ") && line.contains(told), "{line}");
    }
    std::fs::write(path, b"{\"a\": \"\xff\"}").unwrap();
    assert!(
        run(&["gate", "strategies", path])
            .refused()
            .contains("is no valid UTF-8 at byte 7")
    );
    assert!(
        run(&["gate", "strategies", "missing.json"])
            .refused()
            .contains("no such file")
    );
    assert!(
        run(&["gate", "strategies", REAL, "--format", "report"])
            .refused()
            .contains("of gate recommend only")
    );
}
