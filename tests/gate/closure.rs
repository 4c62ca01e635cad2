//! The closure: what it writes, and every rule that stops it, in order.

use std::path::PathBuf;

use tracekit::ErrorKind;
use tracekit::evidence::{ClosureStage, hash, replace_json};
use tracekit::gate::{Json, validate_phase_memory_result, validate_result};

use super::chain::{BASELINE, BUDGET, CLOSURE, Chain, HANDOFF, PHASE, PROFILE, STRATEGY, path};

/// What is done to a record.
type Change = fn(&mut Json);

fn prepared(chain: &Chain) -> String {
    chain.closure().prepare("t").unwrap_err().to_string()
}

#[test]
fn preparing_writes_nothing_and_tells_everything() {
    let chain = Chain::whole();
    let before = chain.tree();
    let record = chain.closure().prepare("t").unwrap().record;
    assert_eq!(chain.tree(), before);
    assert!(record.at(&["preflight", "ready"]).is_true());
    assert!(
        record
            .at(&["evidence_review", "ready_for_decision"])
            .is_true()
    );
    let identity = record.at(&["profile_identity"]);
    assert_eq!(identity.at(&["warmup"]).as_int(), Some(2));
    assert_eq!(identity.at(&["phase_repeats"]).as_int(), Some(3));
    assert_eq!(
        identity.at(&["adoption_metrics"]).as_str(),
        Some("unprofiled_repeated_measurements")
    );
    let transitions = record.at(&["attribution", "transitions"]);
    assert_eq!(
        transitions.at(&["peak_allocated_mb"]).as_str(),
        Some("9782.73 -> 9450.75")
    );
}

#[test]
fn closing_decides_and_hands_over() {
    let chain = Chain::whole();
    let report = chain.closure().close(&chain.label).unwrap();
    assert_eq!(report.record.at(&["status"]).as_str(), Some("completed"));
    assert_eq!(
        report.record.at(&["report_status"]).as_str(),
        Some("written")
    );
    let closure = chain.record(CLOSURE);
    assert_eq!(validate_result(&closure), Vec::<String>::new());
    assert_eq!(
        closure.at(&["decision", "reason"]).as_str(),
        Some("global_peak_memory_saving_below_threshold")
    );
    let scopes = closure.at(&["decision_scopes"]);
    assert_eq!(
        scopes
            .at(&["activation_memory_mechanism", "decision"])
            .as_str(),
        Some("accept_for_activation_memory_scope")
    );
    assert_eq!(
        scopes.at(&["full_training_adoption", "decision"]).as_str(),
        Some("tune")
    );
    let statuses: Vec<&str> = closure
        .at(&["bottleneck"])
        .items()
        .iter()
        .map(|one| one.at(&["status"]).as_str().unwrap())
        .collect();
    assert_eq!(
        statuses,
        [
            "supported",
            "supported",
            "supported",
            "insufficient_evidence",
            "not_applicable"
        ]
    );
    assert_eq!(
        closure
            .at(&[
                "profile",
                "attribution",
                "by_strategy",
                "baseline",
                "communication_ratio"
            ])
            .as_str(),
        Some("not_applicable")
    );
    let handoff = chain.record(HANDOFF);
    assert_eq!(handoff.at(&["status"]).as_str(), Some("not_qualified"));
    assert_eq!(
        handoff
            .at(&["source_artifacts", "closure", "sha256"])
            .as_str(),
        Some(hash(&chain.at(CLOSURE)).unwrap().as_str())
    );
    let artifacts: Vec<&str> = handoff
        .at(&["source_artifacts"])
        .fields()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(
        artifacts,
        [
            "baseline",
            "strategy",
            "budget",
            "activation_memory_scope",
            "phase_memory",
            "profile_trace",
            "closure",
        ]
    );
}

/// What `tracekit infer` says about the traces is what the assessments of the closing record rest on.
#[cfg(feature = "frames")]
#[test]
fn inferences_reach_the_assessments() {
    use tracekit::infer::{Thresholds, infer_paths};
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let closure = chain.record(CLOSURE);
    let assessed = |id: &str| {
        let all = closure.at(&["bottleneck"]).items().iter();
        let mut found = all.filter(|one| one.at(&["id"]).as_str() == Some(id));
        found.next().unwrap().at(&["observations"]).clone()
    };
    for strategy in ["baseline", "checkpoint"] {
        let paths = [chain.folder.path().join("traces").join(strategy)];
        let options = tracekit::attribute::AttributeOptions::default();
        let request = tracekit::attribute::Request {
            paths: &paths,
            ingest: tracekit::ingest::IngestOptions::default(),
            options: &options,
            ranks: Vec::new(),
            expect: Vec::new(),
            hash_inputs: false,
            salvage: None,
        };
        let inferences = infer_paths(&request, &Thresholds::default(), &|_| {}).unwrap();
        let inferred = serde_json::to_value(&inferences.runs[0]).unwrap();
        // The ratios of the record are those of infer.
        let times = closure.at(&["profile", "attribution", "by_strategy", strategy]);
        for ratio in [
            "compute_ratio",
            "memory_ratio",
            "communication_ratio",
            "idle_ratio",
        ] {
            match times.at(&[ratio]).as_f64() {
                Some(found) => {
                    let expected = inferred[ratio].as_f64().unwrap();
                    assert!((found - expected).abs() < 1e-6, "{strategy} {ratio}");
                }
                None => assert_eq!(times.at(&[ratio]).as_str(), inferred[ratio].as_str()),
            }
        }
        assert_eq!(inferred["communication_ratio"], "not_applicable");
        // And so are the verdicts, each with the hypothesis that it is about.
        for (id, rules) in [
            (
                "launch_or_sync_wait",
                ["host_bound", "launch_bound", "synchronisation"].as_slice(),
            ),
            ("recompute_overhead", &["recompute_overhead"]),
            ("communication", &["exposed_communication", "stragglers"]),
        ] {
            let seen = assessed(id);
            for rule in rules {
                let all = inferred["inferences"].as_array().unwrap();
                let own = all.iter().find(|one| one["code"] == *rule).unwrap();
                let key = format!("{strategy}_inferences");
                let told = seen.at(&[&key, rule, "verdict"]).as_str();
                let expected = own["verdict"].as_str().unwrap();
                let expected = (expected != "not_applicable").then_some(expected);
                assert_eq!(told, expected, "{strategy} {id} {rule}");
                let effect = seen.at(&[&key, rule, "effect_ns"]).as_int();
                assert_eq!(
                    effect,
                    own["effect"]["ns"].as_i64(),
                    "{strategy} {id} {rule}"
                );
            }
        }
    }
}

#[test]
fn the_states_of_closing() {
    let chain = Chain::whole();
    let closed = || {
        let record = chain.closure().close(&chain.label)?.record;
        Ok::<_, tracekit::Error>(
            ["status", "report_status", "handoff_status"]
                .map(|key| record.at(&[key]).as_str().unwrap().to_owned()),
        )
    };
    assert_eq!(closed().unwrap(), ["completed", "written", "written"]);
    assert_eq!(closed().unwrap(), ["already_complete"; 3]);
    std::fs::remove_file(chain.at(HANDOFF)).unwrap();
    assert_eq!(
        closed().unwrap(),
        ["completed", "already_complete", "written"]
    );
    let whole = std::fs::read(chain.at(CLOSURE)).unwrap();
    std::fs::remove_file(chain.at(CLOSURE)).unwrap();
    let error = closed().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(
        error
            .to_string()
            .ends_with("broken_chain: the hand-off is there and its closing record is not")
    );
    std::fs::write(chain.at(CLOSURE), &whole).unwrap();
    for name in [HANDOFF, CLOSURE] {
        chain.change(name, |record| record.set("note", "edited"));
        let before = chain.tree();
        let error = closed().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert!(
            error
                .to_string()
                .ends_with("is there with other content and is not overwritten; change the label")
        );
        assert_eq!(chain.tree(), before);
    }
}

#[test]
fn every_artefact_is_hashed() {
    for (name, file) in [
        ("baseline", path(BASELINE)),
        ("strategy", path(STRATEGY)),
        ("budget", path(BUDGET)),
        ("activation_memory_scope", PathBuf::from("activation.json")),
        ("profile.report", path(PROFILE)),
        ("profile.phase_memory.report", path(PHASE)),
    ] {
        let chain = Chain::whole();
        let place = chain.root.path().join(&file);
        let old = hash(&place).unwrap();
        let mut bytes = std::fs::read(&place).unwrap();
        let last = bytes.len() - 1;
        bytes[last] = b' ';
        std::fs::write(&place, bytes).unwrap();
        let new = hash(&place).unwrap();
        let shown = file.display();
        let message = prepared(&chain);
        assert!(
            message.ends_with(&format!(
                "manifest_entry {name}: {shown} has sha256 {new}, not {old}"
            )),
            "{message}"
        );
        std::fs::remove_file(&place).unwrap();
        let error = chain.closure().close(&chain.label).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(
            error
                .to_string()
                .ends_with(&format!("manifest_entry {name}: there is no file {shown}")),
            "{error}"
        );
        assert!(!chain.at(CLOSURE).exists());
    }
}

#[test]
fn a_manifest_must_be_one_and_whole() {
    let changes: [(Change, &str); 8] = [
        (
            |m| m.set("schema_version", "x"),
            "manifest_schema_version: \"x\" is not performance-evidence-manifest/v1",
        ),
        (
            |m| m.set("semantic_id", Json::Null),
            "manifest_semantic_id: null is not PERF-PROFILING-CLOSURE",
        ),
        (
            |m| m.get_mut("source_artifacts").unwrap().set("budget", "text"),
            "manifest_entry budget: must have a path and a sha256",
        ),
        (
            |m| {
                let sources = m.get_mut("source_artifacts").unwrap();
                sources.get_mut("baseline").unwrap().set("path", "");
            },
            "manifest_entry baseline: must have a path and a sha256",
        ),
        (
            |m| {
                let sources = m.get_mut("source_artifacts").unwrap();
                sources
                    .get_mut("baseline")
                    .unwrap()
                    .set("sha256", "A".repeat(64));
            },
            "is no SHA-256 in lower case",
        ),
        (
            |m| {
                m.get_mut("profile").unwrap().remove("report");
            },
            "manifest_entry profile.report: must have a path and a sha256",
        ),
        (
            |m| m.get_mut("profile").unwrap().set("trace_dir", ""),
            "trace_dir: must be the path of a folder, and is empty",
        ),
        (
            |m| m.get_mut("profile").unwrap().set("trace_dir", "nowhere"),
            "trace_dir: there is no folder nowhere",
        ),
    ];
    let chain = Chain::whole();
    let manifest = chain.closure().manifest;
    let good = Json::read_object(&manifest).unwrap();
    for (change, told) in changes {
        let mut changed = good.clone();
        change(&mut changed);
        replace_json(&manifest, &changed).unwrap();
        let message = prepared(&chain);
        assert!(message.ends_with(told), "{message}");
    }
    std::fs::remove_file(&manifest).unwrap();
    let error = chain.closure().prepare("t").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().ends_with("there is no such manifest"));
}

/// A chain whose record `name` was changed, with a manifest that knows the change.
fn changed(name: &str, change: impl FnOnce(&mut Json)) -> Chain {
    let chain = Chain::whole();
    chain.change(name, change);
    chain.closure_manifest(true, true);
    chain
}

#[test]
fn swapped_records_are_told_with_what_they_say() {
    let chain = changed(BASELINE, |record| {
        record.set("semantic_id", "PERF-MEMORY-STRATEGY");
    });
    assert_eq!(
        prepared(&chain),
        "semantic_id_mismatch {\"baseline\": \"PERF-MEMORY-STRATEGY\", \"strategy\": \
         \"PERF-MEMORY-STRATEGY\", \"budget\": \"PERF-MEMORY-BUDGET\"}"
    );
}

#[test]
fn each_field_of_the_identity_is_compared() {
    for field in [
        "model_id",
        "batch_size",
        "seq_len",
        "dtype",
        "optimizer",
        "workload",
        "seed",
    ] {
        let chain = changed(BASELINE, |record| {
            record.get_mut("config").unwrap().set(field, "other");
        });
        assert_eq!(
            prepared(&chain),
            format!("workload_identity_mismatch ['{field}']")
        );
    }
}

#[test]
fn fields_that_nobody_says_count_when_strict() {
    let chain = Chain::whole();
    for name in [BASELINE, STRATEGY] {
        chain.change(name, |record| {
            record.get_mut("config").unwrap().remove("workload");
        });
    }
    chain.closure_manifest(true, true);
    let mut project = chain.closure();
    project.prepare("t").unwrap();
    project.strict = true;
    assert_eq!(
        project.prepare("t").unwrap_err().to_string(),
        "workload_identity_mismatch ['workload']"
    );
}

#[test]
fn the_ladder_must_belong_to_the_training() {
    fn config(record: &mut Json) -> &mut Json {
        record.get_mut("config").unwrap()
    }
    let changes: [(Change, &str); 10] = [
        (
            |r| r.set("schema_version", "x"),
            "activation_schema: \"x\" is not training-performance-project/v1",
        ),
        (
            |r| r.set("semantic_id", "x"),
            "activation_semantic_id: \"x\" is not PERF-MEMORY-STRATEGY",
        ),
        (
            |r| config(r).set("model_id", "x"),
            "activation_shared_identity ['model_id']",
        ),
        (
            |r| config(r).set("batch_size", 9_i64),
            "activation_shared_identity ['batch_size']",
        ),
        (
            |r| config(r).set("dtype", "x"),
            "activation_shared_identity ['dtype']",
        ),
        (
            |r| config(r).set("seed", 9_i64),
            "activation_shared_identity ['seed']",
        ),
        (
            |r| config(r).set("device", "x"),
            "activation_shared_identity ['device']",
        ),
        (
            |r| config(r).set("optimizer", "AdamW"),
            "activation_optimizer: \"AdamW\" with momentum 0.0 is not SGD with momentum 0.0",
        ),
        (
            |r| config(r).set("optimizer_momentum", 0.9),
            "activation_optimizer: \"SGD\" with momentum 0.9 is not SGD with momentum 0.0",
        ),
        (
            |r| config(r).set("comparison_scope", Json::Null),
            "activation_comparison_scope: null is not activation_memory_isolation",
        ),
    ];
    let chain = Chain::whole();
    let place = chain.root.path().join("activation.json");
    let good = Json::read_object(&place).unwrap();
    for (change, told) in changes {
        let mut record = good.clone();
        change(&mut record);
        replace_json(&place, &record).unwrap();
        chain.closure_manifest(true, true);
        assert_eq!(prepared(&chain), told);
    }
}

#[test]
fn sizes_and_strategies_are_checked() {
    for (field, value, told) in [
        (
            "batch_size",
            Json::from(0_i64),
            "batch_size: must be an integer of 1 or more, not 0",
        ),
        (
            "seq_len",
            Json::Null,
            "seq_len: must be an integer of 1 or more, not null",
        ),
        (
            "warmup",
            (-1_i64).into(),
            "warmup: must be an integer of 0 or more, not -1",
        ),
        (
            "iters",
            true.into(),
            "iters: must be an integer of 1 or more, not true",
        ),
    ] {
        let chain = Chain::whole();
        for name in [BASELINE, STRATEGY] {
            chain.change(name, |record| {
                record.get_mut("config").unwrap().set(field, value.clone());
            });
        }
        let place = chain.root.path().join("activation.json");
        let mut ladder = Json::read_object(&place).unwrap();
        if field == "batch_size" {
            ladder.get_mut("config").unwrap().set(field, value.clone());
        }
        replace_json(&place, &ladder).unwrap();
        chain.closure_manifest(true, true);
        assert_eq!(prepared(&chain), told);
    }
    let chain = Chain::whole();
    for (strategies, told) in [
        (&[][..], "profile_strategies: there are none"),
        (
            &["baseline", "baseline"],
            "profile_strategies: ['baseline', 'baseline'] repeats one",
        ),
        (
            &["baseline", "offload"],
            "profile_strategies: ['offload'] are left to the budget gate",
        ),
    ] {
        let mut project = chain.closure();
        project.thresholds.phase.strategies =
            strategies.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(project.prepare("t").unwrap_err().to_string(), told);
    }
    let chain = changed(STRATEGY, |record| {
        record.get_mut("candidates").unwrap().items_mut()[1].set("name", "other");
    });
    assert_eq!(prepared(&chain), "strategy_not_in_report ['checkpoint']");
}

#[test]
fn evidence_must_be_ready_to_close() {
    let chain = changed(PROFILE, |record| record.set("schema_version", "old"));
    let error = chain.closure().close(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(
        error
            .to_string()
            .starts_with("evidence_not_ready {\"profile\": ")
    );
    assert!(error.to_string().contains("\"schema_ok\": false"));

    let chain = changed(PHASE, |record| record.set("evidence_level", "guess"));
    let error = chain.closure().close(&chain.label).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("evidence_level must be repeated_phase_memory_measurement, not")
    );
    // Without a record of memory by phase, the review says so.
    let chain = Chain::whole();
    chain.closure_manifest(true, false);
    let inputs = chain.closure().inputs(ClosureStage::Phase).unwrap();
    let review = chain.closure().review(&inputs).unwrap();
    assert_eq!(
        *review.at(&["phase_memory", "errors"]),
        vec!["phase report missing"].into()
    );
    assert_eq!(*review.at(&["ready_for_decision"]), Json::Bool(false));
}

#[test]
fn a_trace_that_changed_is_told() {
    let chain = Chain::whole();
    let trace = "benchmarks/results/74_profile/trace_t/baseline/baseline.pt.trace.json";
    let place = chain.root.path().join(trace);
    let mut bytes = std::fs::read(&place).unwrap();
    bytes.push(b'\n');
    std::fs::write(&place, bytes).unwrap();
    let error = chain.closure().close(&chain.label).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("trace_hash: {trace} has sha256 ")),
        "{error}"
    );
}

#[test]
fn the_pressure_run_is_optional_and_checked() {
    let chain = Chain::whole();
    let mut project = chain.closure();
    let strategy = chain.record(STRATEGY);
    let unset = project.pressure_validation(&strategy).unwrap();
    assert_eq!(unset.at(&["status"]).as_str(), Some("not_collected"));
    assert_eq!(
        unset.at(&["reason"]).as_str(),
        Some("optional_pressure_validation_path_not_set")
    );
    project.pressure = Some(PathBuf::from("pressure.json"));
    let set = project.pressure_validation(&strategy).unwrap();
    assert_eq!(set.at(&["status"]).as_str(), Some("collected"));
    project.pressure = Some(PathBuf::from("nothing.json"));
    let error = project.pressure_validation(&strategy).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn no_number_of_a_profile_or_of_phase_memory_changes_the_closing_decision() {
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let plain = chain.record(CLOSURE);
    let scaled = Chain::whole();
    let good = [PROFILE, PHASE].map(|name| scaled.record(name));
    // What a record says about its workload and its counts is its identity and stays.
    let places: [&[&[&str]]; 2] = [
        &[
            &["candidates"],
            &["attribution"],
            &["profile"],
            &["experiment"],
            &["standard_metrics"],
        ],
        &[
            &["candidates"],
            &["safety"],
            &["summary", "allocated_memory_saving_mb"],
            &["experiment"],
            &["standard_metrics"],
        ],
    ];
    for factor in [1e-6, 0.5, 7.3, 1e9] {
        for ((name, good), places) in [PROFILE, PHASE].into_iter().zip(&good).zip(places) {
            let mut record = good.clone();
            let mut numbers = 0;
            for place in places {
                let mut here = &mut record;
                for key in *place {
                    here = here.get_mut(key).unwrap();
                }
                here.each_number(&mut |number| {
                    numbers += 1;
                    number * factor
                });
            }
            assert!(numbers > 50, "{name}: {numbers}");
            replace_json(&scaled.at(name), &record).unwrap();
        }
        scaled.closure_manifest(true, true);
        scaled.closure().close(&scaled.label).unwrap();
        let found = scaled.record(CLOSURE);
        for key in [
            "candidates",
            "decision",
            "decision_scopes",
            "standard_metrics",
        ] {
            assert_eq!(found.at(&[key]), plain.at(&[key]), "{factor}");
        }
        assert_ne!(found.at(&["profile"]), plain.at(&["profile"]));
        for name in [CLOSURE, HANDOFF] {
            std::fs::remove_file(scaled.at(name)).unwrap();
        }
    }
}

#[test]
fn validators_find_each_fault() {
    let chain = Chain::whole();
    chain.closure().close(&chain.label).unwrap();
    let closure = chain.record(CLOSURE);
    let faults: [(Change, &str); 8] = [
        (
            |r| {
                r.remove("bottleneck");
            },
            "bottleneck is missing",
        ),
        (|r| r.set("project", "75"), "project must be 74"),
        (
            |r| {
                r.get_mut("profile")
                    .unwrap()
                    .set("timing_for_adoption", true);
            },
            "profile.timing_for_adoption must be false",
        ),
        (
            |r| {
                let roles = r
                    .get_mut("validation")
                    .unwrap()
                    .get_mut("evidence_roles")
                    .unwrap();
                roles.set("profiler_metrics", "adoption");
            },
            "validation.evidence_roles must be the three roles",
        ),
        (
            |r| {
                let artifacts = r
                    .get_mut("validation")
                    .unwrap()
                    .get_mut("source_artifacts")
                    .unwrap();
                artifacts.get_mut("budget").unwrap().set("sha256", "12");
            },
            "validation.source_artifacts.budget must have a path and a sha256",
        ),
        (
            |r| r.get_mut("bottleneck").unwrap().items_mut()[0].set("status", "likely"),
            "bottleneck.0.status is no finding",
        ),
        (
            |r| {
                let scopes = r.get_mut("decision_scopes").unwrap();
                let scope = scopes.get_mut("activation_memory_mechanism").unwrap();
                scope.set("promotable_to_full_training", true);
            },
            "decision_scopes.activation_memory_mechanism.promotable_to_full_training must be false",
        ),
        (
            |r| r.get_mut("decision").unwrap().set("decision", "accept"),
            "decision must be that of decision_scopes.full_training_adoption",
        ),
    ];
    for (change, told) in faults {
        let mut record = closure.clone();
        change(&mut record);
        let errors = validate_result(&record);
        assert!(
            errors.iter().any(|error| error == told),
            "{told}: {errors:?}"
        );
    }
    let phase = chain.record(PHASE);
    let faults: [(Change, &str); 9] = [
        (
            |r| r.set("schema_version", "x"),
            "schema_version must be training-phase-memory/v1, not \"x\"",
        ),
        (
            |r| r.set("semantic_id", "x"),
            "semantic_id must be PERF-PROFILING-CLOSURE, not \"x\"",
        ),
        (
            |r| r.set("stage", "x"),
            "stage must be phase_memory_attribution, not \"x\"",
        ),
        (
            |r| {
                r.get_mut("measurement")
                    .unwrap()
                    .set("timing_for_adoption", true);
            },
            "measurement.timing_for_adoption must be false",
        ),
        (
            |r| r.get_mut("safety").unwrap().set("admitted", false),
            "safety.admitted must be true",
        ),
        (
            |r| r.get_mut("config").unwrap().set("repeats", 2_i64),
            "config.repeats must be 3 or more, not 2",
        ),
        (
            |r| r.get_mut("candidates").unwrap().items_mut()[1].set("name", "baseline"),
            "candidates must have names, each once",
        ),
        (
            |r| r.get_mut("candidates").unwrap().items_mut()[0].set("global_peak_phase", "forward"),
            "baseline: global_peak_phase must be the phase with the highest peak",
        ),
        (
            |r| r.get_mut("summary").unwrap().set("candidate_count", 3_i64),
            "summary.candidate_count must be 2",
        ),
    ];
    for (change, told) in faults {
        let mut record = phase.clone();
        change(&mut record);
        let errors = validate_phase_memory_result(&record);
        assert!(
            errors.iter().any(|error| error == told),
            "{told}: {errors:?}"
        );
    }
}
