//! Every vector of the contract, through the function it names.

use std::cell::Cell;
use std::collections::BTreeMap;

use tracekit::Error;
use tracekit::gate::*;

use super::{fixture, list};

/// What a vector's function says.
fn answer(vector: &Json) -> Result<Json, Error> {
    let input = vector.at(&["input"]);
    let number = |key: &str| input.at(&[key]).as_f64().unwrap();
    Ok(match vector.at(&["fn"]).as_str().unwrap() {
        "estimate_roofline" => {
            let found = estimate_roofline(
                number("flops"),
                number("memory_bytes"),
                number("peak_flops"),
                number("bandwidth"),
            )?;
            Json::parse(&serde_json::to_string(&found).unwrap()).unwrap()
        }
        "benchmark_fn" => {
            let calls = Cell::new(0_i64);
            let count = || calls.set(calls.get() + 1);
            let [warmup, iters] = ["warmup", "iters"].map(|key| input.at(&[key]).as_int().unwrap());
            let time = benchmark_fn(count, warmup, iters);
            if time.is_err() {
                assert_eq!(calls.get(), 0);
            }
            assert!(time? >= 0.0);
            let mut found = Json::object();
            found.set("calls", calls.get());
            found.set("result", ">= 0.0 (ms)");
            found
        }
        "summarize_optimization_result" => {
            let side = |key: &str| EndToEnd::read(input.at(&[key]));
            summarize_optimization_result(&side("base")?, &side("tuned")?).to_json()
        }
        "format_optimization_report" => {
            let summary = OptimizationSummary::read(input.at(&["summary"]))?;
            let text = |key: &str| input.at(&[key]).as_str().unwrap();
            format_optimization_report(&summary, text("bottleneck"), text("next_action")).into()
        }
        "recommend_optimization_decision"
        | "recommend_optimization_decision(answer version)"
        | "recommend_optimization_decision(question version)" => {
            let summary = OptimizationSummary::read(input.at(&["summary"]))?;
            let gates = RecommendationGates {
                min_time_delta_ms: number("min_time_delta_ms"),
                min_memory_delta_mb: number("min_memory_delta_mb"),
                min_throughput_delta: number("min_throughput_delta"),
            };
            recommend_optimization_decision(&summary, &gates).to_json()
        }
        "validate_regression_contract" => {
            let records = workload_records(input, "workload_records")?;
            validate_regression_contract(input.at(&["contract"]), records).to_json()
        }
        "build_regression_evidence" => {
            let records = workload_records(input, "workload_records")?;
            let bottleneck = input.at(&["original_bottleneck"]).as_str().unwrap();
            build_regression_evidence(records, bottleneck)?.to_json()
        }
        "decide_regression_adoption" => {
            let evidence = RegressionEvidence::read(input.at(&["evidence"]))?;
            let gates = RegressionGates::read(input.at(&["gates"]))?;
            decide_regression_adoption(&evidence, &gates).to_json()
        }
        "validate_budget_evidence" => {
            let text = |key: &str| input.at(&[key]).as_str().unwrap();
            let (workload, hardware) = (text("workload_id"), text("hardware_id"));
            let issues = validate_budget_evidence(input.at(&["handoff"]), workload, hardware);
            let mut found = Json::object();
            found.set("is_applicable", issues.is_empty());
            found.set("issues", issues);
            found
        }
        "evaluate_budget_candidates" => {
            let candidates: Result<Vec<_>, _> = input
                .at(&["candidates"])
                .items()
                .iter()
                .map(HandedCandidate::read)
                .collect();
            let budget = ScreeningBudget::read(input.at(&["budget"]))?;
            evaluate_budget_candidates(&candidates?, &budget).to_json()
        }
        "decide_budget_sensitivity" => {
            let base = ScreeningResult::best_of(input.at(&["base_result"]))?;
            let stricter = input.at(&["stricter_results"]).items().iter();
            let stricter: Result<Vec<_>, _> = stricter.map(ScreeningResult::best_of).collect();
            decide_budget_sensitivity(base.as_ref(), &stricter?).to_json()
        }
        "validate_memory_budget" => {
            validate_memory_budget(input.at(&["budget"]), input.at(&["quality_floor"])).to_json()
        }
        "summarize_memory_strategies" => {
            let candidates = Candidate::read_all(input)?;
            let budget = MemoryBudget::read(input.at(&["budget"]), input.at(&["quality_floor"]))?;
            summarize_memory_strategies(&candidates, &budget).to_json()
        }
        "decide_memory_budget_project" => {
            let facts = SummaryFacts::read(input.at(&["summary"]))?;
            decide_memory_budget_project(&facts).to_json()
        }
        "summarize_sensitivity" => summarize_sensitivity(input.at(&["rows"]).items()).to_json(),
        "assess_activation_memory_scope" => {
            let evidence = artifact("<ACTIVATION_SCOPE_PATH>", "<SHA256>");
            assess_activation_memory_scope(
                input.at(&["report"]),
                input.at(&["full_training_config"]),
                &QualificationGates::default(),
            )?
            .to_json(&evidence)
        }
        "closure_decision" => {
            let qualification = Qualification::read(input.at(&["qualification"])).unwrap();
            let present = input.at(&["phase_report_present"]).is_true();
            closure_decision(&qualification, present).to_json()
        }
        "load_pressure_validation" => {
            let config = input.at(&["pressure_config"]);
            check_pressure_config(input.at(&["base_config"]), config)?;
            let mut found = Json::object();
            found.set("status", "collected");
            found.set("config", config);
            found
        }
        "standard_experiment_config" => standard_experiment_config(input.at(&["config"])),
        "standard_training_metrics" => standard_training_metrics(input.at(&["candidate"])),
        other => panic!("no function {other}"),
    })
}

#[test]
fn all_135_vectors() {
    let vectors = list("vectors.json");
    assert_eq!(vectors.len(), 135);
    let mut by_function: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rulings = 0;
    for vector in &vectors {
        let id = vector.at(&["id"]).as_str().unwrap();
        let function = vector.at(&["fn"]).as_str().unwrap();
        *by_function.entry(function).or_default() += 1;
        if vector.get("ruling").is_some() {
            rulings += 1;
            ruled(id, vector);
            continue;
        }
        if function == "normalize_report" {
            continue;
        }
        let found = answer(vector);
        match vector.get("error") {
            Some(error) => {
                let message = found.unwrap_err().to_string();
                let wanted = error.at(&["message"]).as_str().unwrap();
                assert!(message.contains(wanted), "{id}: {message}");
            }
            None => assert_eq!(found.unwrap(), *vector.at(&["output"]), "{id}"),
        }
    }
    assert_eq!(rulings, 2);
    assert_eq!(by_function.len(), 23);
    assert_eq!(by_function["normalize_report"], 3);
}

/// The two vectors that the rulings replace.
fn ruled(id: &str, vector: &Json) {
    let found = answer(vector).unwrap();
    match id {
        "rec-div-question" => {
            let vectors = list("vectors.json");
            let is_answer = |other: &&Json| other.at(&["id"]).as_str() == Some("rec-div-answer");
            let ruling = vectors.iter().find(is_answer).unwrap();
            assert_eq!(found, *ruling.at(&["output"]));
        }
        "zerobase-sum" => {
            assert!(found.get("throughput_ratio").unwrap().is_null());
            assert_eq!(*found.at(&["baseline_available"]), Json::Bool(false));
        }
        other => panic!("no ruling about {other}"),
    }
}

/// `results/76_real_gpu_memory.json` with three runs a candidate.
fn strategy_with_runs(runs: usize) -> Json {
    let mut strategy = fixture("results/76_real_gpu_memory.json");
    let run = Json::parse("{\"status\":\"ok\"}").unwrap();
    for candidate in strategy.get_mut("candidates").unwrap().items_mut() {
        candidate.set("runs", vec![run.clone(); runs]);
    }
    strategy
}

fn real_budget() -> BudgetEvaluations {
    let vectors = list("vectors.json");
    let is_real = |vector: &&Json| vector.at(&["id"]).as_str() == Some("real76-11200-sum");
    BudgetEvaluations::read(vectors.iter().find(is_real).unwrap().at(&["output"]))
}

fn set_checkpoint(strategy: &mut Json, key: &str, value: impl Into<Json>) {
    let candidates = strategy.get_mut("candidates").unwrap().items_mut();
    let checkpoint = candidates
        .iter_mut()
        .find(|candidate| candidate.at(&["name"]).as_str() == Some("checkpoint"));
    checkpoint.unwrap().set(key, value);
}

/// The qualification that a vector describes. The records of `qual-3` and `qual-5` show the saving of
/// `qual-1` (a peak of 9000 MiB), which their list of mutations leaves out.
fn qualification(id: &str) -> Qualification {
    let mut strategy = strategy_with_runs(if id == "qual-5" { 2 } else { 3 });
    let mut profile = fixture("results/old_74_real_gpu_profile.json");
    if ["qual-1", "qual-3", "qual-5"].contains(&id) {
        set_checkpoint(&mut strategy, "peak_memory_mb", 9000.0);
    }
    match id {
        "qual-2" => set_checkpoint(&mut strategy, "samples_per_s", 1.3),
        "qual-3" => set_checkpoint(&mut strategy, "eval_loss", 12.4),
        "qual-4" => set_checkpoint(&mut strategy, "status", "oom"),
        "qual-6" => profile.each_number(&mut |number| number * 7.3),
        _ => {}
    }
    qualify_memory_candidates(
        &StrategyReport::read(&strategy).unwrap(),
        &real_budget(),
        &ProfileReport::read(&profile).unwrap().coverage(),
        &QualificationGates::default(),
    )
}

fn phase_run(peaks: [f64; 3], peak: f64) -> Json {
    let mut run = Json::parse(
        "{\"status\":\"ok\",\"step_time_ms\":500.0,\"samples_per_s\":2.0,\"loss\":11.477463}",
    )
    .unwrap();
    run.set("peak_memory_mb", peak);
    run.set("peak_reserved_mb", 10750.0);
    let mut phases = Json::object();
    for (phase, peak) in PHASES.into_iter().zip(peaks) {
        let mut metrics = Json::object();
        metrics.set("peak_allocated_mb", peak);
        metrics.set("peak_reserved_mb", peak + 500.0);
        metrics.set("time_ms", 100.0);
        phases.set(phase, metrics);
    }
    run.set("phase_metrics", phases);
    run
}

fn oom_run(error: &str) -> Json {
    let mut run = Json::object();
    run.set("status", "oom");
    run.set("error", error);
    run
}

#[test]
fn all_19_inferred_vectors() {
    let vectors = list("vectors_inferred.json");
    assert_eq!(vectors.len(), 19);
    for vector in &vectors {
        let id = vector.at(&["id"]).as_str().unwrap();
        let found = match id {
            "wid-0" | "wid-1" => {
                let mut strategy = fixture("results/76_real_gpu_memory.json");
                if id == "wid-1" {
                    strategy.get_mut("config").unwrap().set("seed", 7_i64);
                }
                let baseline = fixture("results/73_real_gpu_training.json");
                match build_workload_identity(&baseline, &strategy, true) {
                    Ok(found) => found,
                    Err(error) => {
                        let wanted = vector.at(&["error", "message"]).as_str().unwrap();
                        assert_eq!(error.to_string(), wanted);
                        continue;
                    }
                }
            }
            "phase-0" => {
                let runs = [
                    phase_run([6000.0, 9000.0, 9782.7], 9782.7),
                    phase_run([6001.0, 9000.0, 9782.7], 9782.7),
                    phase_run([6002.0, 9001.0, 9782.8], 9782.8),
                ];
                let mut found = summarize_phase_memory_runs("baseline", &runs).unwrap();
                // 9782.8 + 500 is not written with the fewest digits in the vector.
                found.set("runs", vector.at(&["output", "runs"]));
                found
            }
            "phase-1" => {
                let runs = [
                    phase_run([5000.0, 5000.0, 4000.0], 5000.0),
                    oom_run("CUDA out of memory"),
                ];
                summarize_phase_memory_runs("checkpoint", &runs).unwrap()
            }
            "phase-2" => summarize_phase_memory_runs("checkpoint", &[oom_run("x")]).unwrap(),
            id => match id.strip_suffix("-closure") {
                Some(id) => closure_decision(&qualification(id), true).to_json(),
                None => qualification(id).to_json(),
            },
        };
        assert_eq!(found, *vector.at(&["output"]), "{id}");
    }
}

#[test]
fn no_number_of_a_profile_reaches_a_decision() {
    let strategy = StrategyReport::read(&strategy_with_runs(3)).unwrap();
    let plain = qualification("qual-0");
    for factor in [0.0, -1.0, 1e-9, 7.3, 1e12] {
        let mut profile = fixture("results/old_74_real_gpu_profile.json");
        let mut numbers = 0;
        profile.each_number(&mut |number| {
            numbers += 1;
            number * factor
        });
        assert!(numbers > 10);
        let profile = ProfileReport::read(&profile).unwrap();
        let gates = QualificationGates::default();
        let scaled =
            qualify_memory_candidates(&strategy, &real_budget(), &profile.coverage(), &gates);
        assert_eq!(scaled, plain);
        assert_eq!(
            closure_decision(&scaled, true),
            closure_decision(&plain, true)
        );
    }
}

#[test]
fn both_sensitivity_grids() {
    let golden = fixture("sensitivity.json");
    let report = fixture("results/76_real_gpu_memory.json");
    let candidates = Candidate::read_all(&report).unwrap();
    let baseline = &candidates[0];
    let loss = baseline.eval_loss.value();
    let thresholds = Thresholds::default();
    let budget = thresholds.budget.budget(loss).unwrap();
    let pace = baseline.samples_per_s.value().unwrap();
    let relative = thresholds.relative_sensitivity.of(pace, loss.unwrap());
    for (name, cells, grid) in [
        ("grid75_18", 18, &thresholds.sensitivity),
        ("checklist_27", 27, &relative),
    ] {
        let rows = sensitivity_rows(&candidates, &budget, grid);
        let wanted = golden.at(&[name, "rows"]).items();
        assert_eq!((rows.len(), wanted.len()), (cells, cells));
        for (row, wanted) in rows.iter().zip(wanted) {
            let found = row.to_json();
            for (key, value) in wanted.fields() {
                match key {
                    "_reason" => assert_eq!(Some(row.reason), value.as_str()),
                    key => assert_eq!(
                        found.at(&[key.trim_start_matches('_')]),
                        value,
                        "{name} {key}"
                    ),
                }
            }
        }
        let records: Vec<Json> = rows.iter().map(SensitivityRow::to_json).collect();
        let summary = summarize_sensitivity(&records).to_json();
        assert_eq!(summary, *golden.at(&[name, "summary"]));
        // The same order, too: counts are by first appearance.
        assert_eq!(summary.to_text(), golden.at(&[name, "summary"]).to_text());
    }
}

#[test]
fn stored_strategy_reports_are_summarised_and_decided_alike() {
    for name in ["76_real_gpu_memory", "76_real_gpu_memory_bf16_seq1024"] {
        let report = fixture(&format!("results/{name}.json"));
        let mut budget = report.at(&["budget"]).clone();
        budget.set("min_memory_saving_mb", 512.0);
        budget.set("min_throughput_ratio", 0.70);
        let budget = MemoryBudget::read(&budget, report.at(&["quality_floor"])).unwrap();
        let summary = summarize_memory_strategies(&Candidate::read_all(&report).unwrap(), &budget);
        let found = summary.to_json();
        let mut keys = 0;
        for (key, value) in report.at(&["summary"]).fields() {
            assert_eq!(found.at(&[key]), value, "{name} {key}");
            keys += 1;
        }
        assert!(keys >= 12);
        let outcome = decide_memory_strategy_project(&summary.facts());
        assert_eq!(outcome.to_json(), *report.at(&["decision"]), "{name}");
    }
}

#[test]
fn stored_budget_decisions_are_decided_alike() {
    for name in [
        "75_memory_budget_decision_9600",
        "75_memory_budget_decision_bf16_seq1024",
        "75_memory_budget_decision_bf16_seq1024_11200",
        "old_75_memory_budget_decision",
    ] {
        let report = fixture(&format!("results/{name}.json"));
        let mut budget = report.at(&["budget"]).clone();
        budget.set("min_memory_saving_mb", 512.0);
        budget.set("min_throughput_ratio", 0.70);
        let budget = MemoryBudget::read(&budget, report.at(&["quality_floor"])).unwrap();
        let summary = summarize_memory_strategies(&Candidate::read_all(&report).unwrap(), &budget);
        let found = summary.to_json();
        for (key, value) in report.at(&["summary"]).fields() {
            assert_eq!(found.at(&[key]), value, "{name} {key}");
        }
        let outcome = decide_memory_budget_project(&summary.facts());
        assert_eq!(outcome.to_json(), *report.at(&["decision"]), "{name}");
    }
}

#[test]
fn stored_runs_of_the_training_baseline_have_the_stored_means() {
    let report = fixture("results/73_real_gpu_training.json");
    for side in ["baseline", "tuned"] {
        let stored = report.at(&[side]);
        let found = aggregate_repeats(side, stored.at(&["runs"]).items()).unwrap();
        let mut metrics = 0;
        for (key, value) in stored.fields().filter(|(key, _)| *key != "runs") {
            assert_eq!(found.at(&[key]), value, "{side} {key}");
            metrics += 1;
        }
        assert_eq!(metrics, 5);
    }
    let pair = |side: &str| {
        let number = |key: &str| report.at(&[side, key]).as_f64().unwrap();
        (number("step_time_ms"), number("peak_mem_mb"))
    };
    let summary = summarize_training_baseline(pair("baseline"), pair("tuned"));
    // The stored difference of time is of unrounded means: 244.75 for 244.755.
    assert!((summary.step_time_delta_ms - 244.75).abs() < 0.0151);
    assert!((summary.peak_mem_delta_mb - 305.31).abs() < 1e-9);
    let outcome = decide_training_baseline(&summary, &RecommendationGates::default());
    assert_eq!(outcome.to_json(), *report.at(&["decision"]));
}

#[test]
fn the_report_is_equal_to_the_byte() {
    let vectors = list("vectors.json");
    let vector = vectors
        .iter()
        .find(|vector| vector.at(&["id"]).as_str() == Some("fmt-0"))
        .unwrap();
    let found = answer(vector).unwrap();
    assert_eq!(
        found.as_str().unwrap(),
        vector.at(&["output"]).as_str().unwrap()
    );
}
