//! The memory budget: what it writes, and every rule that stops it.

use tracekit::ErrorKind;
use tracekit::evidence::{
    BudgetStage, Label, PLACEHOLDER_LABEL, check_input_contract, replace_json,
};
use tracekit::gate::{
    HandedCandidate, Json, ScreeningBudget, build_budget_handoff, evaluate_budget_candidates,
    validate_budget_evidence,
};

use super::chain::{BUDGET, Chain, EVIDENCE, STRATEGY};
use super::fixture;

#[test]
fn the_evidence_has_the_golden_summary_and_grid() {
    let chain = Chain::with_strategies();
    let report = chain.budget().analyze(&chain.label).unwrap();
    assert_eq!(report.record.at(&["status"]).as_str(), Some("analyzed"));
    assert_eq!(report.record.at(&["next_stage"]).as_str(), Some("close"));
    let evidence = chain.record(EVIDENCE);
    let keys: Vec<&str> = evidence.fields().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            "schema_version",
            "semantic_id",
            "run_mode",
            "run_label",
            "task",
            "stage",
            "source",
            "budget",
            "quality_floor",
            "evidence_mode",
            "planning_context",
            "candidates",
            "summary",
            "sensitivity",
            "sensitivity_summary",
            "experiment",
            "standard_metrics",
            "inputs",
            "tool",
        ]
    );
    assert_eq!(
        evidence.at(&["schema_version"]).as_str(),
        Some("memory-budget-evidence/v1")
    );
    assert_eq!(
        evidence.at(&["quality_floor", "max_val_loss"]).as_f64(),
        Some(12.60414)
    );
    let golden = fixture("sensitivity.json");
    assert_eq!(evidence.at(&["sensitivity"]).items().len(), 18);
    // Means over runs are rounded to three decimals, so the loss is 12.357 and not 12.356503: no cell of
    // the grid lies between the two.
    for (row, wanted) in evidence
        .at(&["sensitivity"])
        .items()
        .iter()
        .zip(golden.at(&["grid75_18", "rows"]).items())
    {
        for key in ["feasible_names", "best_candidate", "decision"] {
            assert_eq!(row.at(&[key]), wanted.at(&[key]));
        }
    }
    assert_eq!(
        evidence.at(&["sensitivity_summary"]),
        golden.at(&["grid75_18", "summary"])
    );
    let names: Vec<&str> = evidence
        .at(&["standard_metrics"])
        .fields()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(names, ["baseline", "checkpoint", "offload", "hybrid"]);
}

#[test]
fn preparing_writes_nothing() {
    let chain = Chain::with_strategies();
    let before = chain.tree();
    let report = chain.budget().prepare().unwrap();
    assert_eq!(report.record.at(&["status"]).as_str(), Some("prepared"));
    assert_eq!(
        report.record.at(&["decision", "decision"]).as_str(),
        Some("tune")
    );
    assert_eq!(
        report
            .record
            .at(&["decision_identity", "sensitivity_scenarios"])
            .as_int(),
        Some(18)
    );
    assert_eq!(chain.tree(), before);
}

#[test]
fn a_source_that_is_not_the_manifests_is_not_ready() {
    for (key, value, field) in [
        ("sha256", "0".repeat(64), "source_hash_matches"),
        ("schema_version", "other/v1".to_owned(), "source_schema"),
        ("semantic_id", "PERF-OTHER".to_owned(), "source_semantic_id"),
    ] {
        let chain = Chain::with_strategies();
        let project = chain.budget();
        let mut manifest = Json::read_object(&project.manifest).unwrap();
        manifest.get_mut("source").unwrap().set(key, value);
        replace_json(&project.manifest, &manifest).unwrap();
        let before = chain.tree();
        let preflight = project.preflight(BudgetStage::Analyze).unwrap();
        assert_eq!(*preflight.at(&["ready"]), Json::Bool(false), "{field}");
        let errors = [
            project.prepare().unwrap_err(),
            project.analyze(&chain.label).unwrap_err(),
            project.close(&chain.label).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::State);
            assert!(
                error
                    .to_string()
                    .starts_with("preflight_not_ready {\"project_root\": ")
            );
            assert!(error.to_string().ends_with("\"ready\": false}"));
        }
        assert_eq!(chain.tree(), before);
    }
}

#[test]
fn a_changed_byte_of_the_source_stops_everything() {
    let chain = Chain::with_strategies();
    let mut bytes = std::fs::read(chain.at(STRATEGY)).unwrap();
    bytes.push(b'\n');
    std::fs::write(chain.at(STRATEGY), bytes).unwrap();
    let error = chain.budget().analyze(&chain.label).unwrap_err();
    assert!(error.to_string().contains("\"source_hash_matches\": false"));
    std::fs::remove_file(chain.at(STRATEGY)).unwrap();
    let error = chain.budget().analyze(&chain.label).unwrap_err();
    assert!(error.to_string().contains("\"source_exists\": false"));
    std::fs::remove_file(chain.budget().manifest).unwrap();
    let error = chain.budget().analyze(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn the_input_contract_tells_all_that_is_missing() {
    let chain = Chain::with_strategies();
    let mut report = chain.record(STRATEGY);
    check_input_contract(&report).unwrap();
    report.get_mut("config").unwrap().set("dtype", Json::Null);
    report.get_mut("config").unwrap().set("workload", "");
    let candidates = report.get_mut("candidates").unwrap().items_mut();
    candidates[0].set("name", "base");
    let runs = candidates[1].at(&["runs"]).items()[..2].to_vec();
    candidates[1].set("runs", runs);
    candidates[2].remove("runs");
    let error = check_input_contract(&report).unwrap_err();
    assert_eq!(
        error.to_string(),
        "input_contract {\"missing_source_fields\": [\"workload\", \"dtype\"], \"candidate_names\": \
         [\"base\", \"checkpoint\", \"offload\", \"hybrid\"], \"missing_three_repeats\": \
         [\"checkpoint\", \"offload\"]}"
    );
    let error = check_input_contract(&Json::object()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "input_contract {\"missing_source_fields\": [\"model_id\", \"workload\", \"batch_size\", \
         \"seq_len\", \"dtype\", \"optimizer\"], \"candidate_names\": [], \"missing_three_repeats\": []}"
    );
}

#[test]
fn analysing_again_is_refused_and_changes_nothing() {
    let chain = Chain::with_strategies();
    chain.budget().analyze(&chain.label).unwrap();
    let before = chain.tree();
    let error = chain.budget().analyze(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(chain.tree(), before);
}

#[test]
fn closing_twice_is_complete_and_an_edited_decision_stays() {
    let chain = Chain::with_strategies();
    let error = chain.budget().close(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().ends_with(
        "75_memory_budget_evidence_t.json: there is no such evidence; run the stages before this one"
    ));
    chain.budget().analyze(&chain.label).unwrap();
    let statuses = [0, 1].map(|_| {
        let report = chain.budget().close(&chain.label).unwrap();
        report.record.at(&["status"]).as_str().unwrap().to_owned()
    });
    assert_eq!(statuses, ["saved", "already_complete"]);
    let decision = chain.record(BUDGET);
    assert_eq!(
        decision.at(&["schema_version"]).as_str(),
        Some("training-performance-project/v1")
    );
    assert_eq!(
        decision.at(&["stage"]).as_str(),
        Some("memory_budget_decision")
    );
    assert_eq!(
        *decision.at(&["source_evidence"]),
        chain.root.artifact(&chain.at(EVIDENCE)).unwrap()
    );
    chain.change(BUDGET, |record| record.set("note", "edited"));
    let before = chain.tree();
    let error = chain.budget().close(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(chain.tree(), before);
}

#[test]
fn evidence_that_is_not_ready_is_not_decided_by() {
    type Change = fn(&mut Json);
    let changes: [(&str, Change); 4] = [
        ("schema", |record| record.set("schema_version", "other/v1")),
        ("semantic id", |record| {
            record.set("semantic_id", "PERF-OTHER");
        }),
        ("candidates", |record| {
            record.set("candidates", Vec::<Json>::new());
        }),
        ("summary", |record| record.set("summary", "none")),
    ];
    for (what, change) in changes {
        let chain = Chain::with_strategies();
        chain.budget().analyze(&chain.label).unwrap();
        chain.change(EVIDENCE, change);
        let review = chain.budget().review(&chain.at(EVIDENCE), None).unwrap();
        assert_eq!(
            *review.at(&["ready_for_decision"]),
            Json::Bool(false),
            "{what}"
        );
        let error = chain.budget().close(&chain.label).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State, "{what}");
        assert!(
            error
                .to_string()
                .starts_with("evidence_not_ready {\"path\": "),
            "{what}"
        );
        assert!(!chain.at(BUDGET).exists());
    }
    let chain = Chain::with_strategies();
    chain.budget().analyze(&chain.label).unwrap();
    let review = |sha256: &str| {
        let review = chain
            .budget()
            .review(&chain.at(EVIDENCE), Some(sha256))
            .unwrap();
        [
            review.at(&["hash_matches"]),
            review.at(&["ready_for_decision"]),
        ]
        .map(Json::is_true)
    };
    assert_eq!(review(&"0".repeat(64)), [false, false]);
    assert_eq!(
        review(&tracekit::evidence::hash(&chain.at(EVIDENCE)).unwrap()),
        [true, true]
    );
}

#[test]
fn a_stored_summary_must_follow_from_its_candidates() {
    let chain = Chain::with_strategies();
    chain.budget().analyze(&chain.label).unwrap();
    chain.change(EVIDENCE, |record| {
        record
            .get_mut("summary")
            .unwrap()
            .set("memory_saving_mb", 9999.0);
    });
    let error = chain.budget().close(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert_eq!(
        error.to_string(),
        "stored_summary: does not follow from the candidates in ['memory_saving_mb']"
    );
}

#[test]
fn an_approved_decision_that_changed_is_not_approved() {
    let chain = Chain::with_strategies();
    let path = chain.root.path().join("approved_75.json");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.push(b'\n');
    std::fs::write(&path, bytes).unwrap();
    let error = chain.budget().prepare().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.to_string().contains("\"hash_matches\": false"));
}

#[test]
fn the_placeholder_is_no_label() {
    let error = Label::new(PLACEHOLDER_LABEL).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run_label: replace_with_unique_label is a placeholder; choose a label of your own"
    );
}

#[test]
fn strategies_are_handed_to_a_budget() {
    let chain = Chain::with_strategies();
    let handoff = build_budget_handoff(&chain.record(STRATEGY), "w", "h").unwrap();
    assert!(validate_budget_evidence(&handoff, "w", "h").is_empty());
    let candidates: Vec<HandedCandidate> = handoff
        .at(&["candidates"])
        .items()
        .iter()
        .map(|candidate| HandedCandidate::read(candidate).unwrap())
        .collect();
    let budget = ScreeningBudget {
        min_memory_saving_mb: 300.0,
        ..ScreeningBudget::default()
    };
    let result = evaluate_budget_candidates(&candidates, &budget);
    assert_eq!(result.best_candidate, Some("checkpoint".into()));
    assert_eq!(result.evaluations[1].reasons, ["throughput_below_floor"]);
    // Without three runs, nothing can be compared.
    let stored = fixture("results/76_real_gpu_memory.json");
    let draft = build_budget_handoff(&stored, "w", "h").unwrap();
    assert_eq!(
        validate_budget_evidence(&draft, "w", "h"),
        ["handoff_not_ready", "eligible_candidates_missing"]
    );
}
