//! Rules that stop a record, with the exact error of each: what the tests of the stages leave over.
//!
//! `reports/evidence.md` lists every rule with its test.

use std::path::{Path, PathBuf};

use tracekit::ErrorKind;
use tracekit::evidence::{
    ClosureStage, Label, MeasuredFor, Measurement, Root, build_strategy_report,
    build_training_baseline, create_budget_manifest, create_closure_manifest, normalize_file,
    read_measurements, replace_json, verify_entry,
};
use tracekit::gate::{Json, Thresholds};

use super::chain::{BUDGET, CLOSURE, Chain, EVIDENCE, PHASE, PROFILE, STRATEGY, measured, path};
use super::program::run_in;

type Change = fn(&mut Json);

fn object<'a>(record: &'a mut Json, key: &str) -> &'a mut Json {
    record.get_mut(key).unwrap()
}

#[test]
fn a_file_of_measurements_says_what_it_is() {
    let chain = Chain::new();
    let name = Path::new("measurements/76_baseline.json");
    let place = chain.root.path().join(name);
    let good = Json::read_object(&place).unwrap();
    let changes: [(Change, &str); 8] = [
        (
            |r| r.set("schema_version", "tracekit.measurement/v2"),
            "schema_version: \"tracekit.measurement/v2\" is not tracekit.measurement/v1",
        ),
        (
            |r| {
                r.remove("schema_version");
            },
            "schema_version: null is not tracekit.measurement/v1",
        ),
        (
            |r| r.set("role", "bottleneck_attribution_only"),
            "evidence_role: \"bottleneck_attribution_only\" is not unprofiled_repeated_measurements",
        ),
        (|r| r.set("strategy", ""), "strategy: must be text"),
        (|r| r.set("strategy", 1_i64), "strategy: must be text"),
        (
            |r| r.set("strategy", "../x"),
            "strategy: '../x' cannot be part of a file name",
        ),
        (
            |r| r.set("runs", Vec::<Json>::new()),
            "runs: must be a list of objects",
        ),
        (
            |r| r.set("runs", vec![1.5]),
            "runs: must be a list of objects",
        ),
    ];
    for (change, told) in changes {
        let mut record = good.clone();
        change(&mut record);
        replace_json(&place, &record).unwrap();
        let error = Measurement::read(&chain.root, name, MeasuredFor::Adoption).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("measurements/76_baseline.json: {told}")
        );
    }
}

#[test]
fn a_training_baseline_changes_one_thing_and_repeats_it() {
    let chain = Chain::new();
    let label = Label::new("t").unwrap();
    let sides = [
        "measurements/73_baseline.json",
        "measurements/73_tuned.json",
    ];
    let told = |changes: [Change; 2]| {
        let originals = sides.map(|name| std::fs::read(chain.root.path().join(name)).unwrap());
        for (name, change) in sides.iter().zip(changes) {
            let place = chain.root.path().join(name);
            let mut record = Json::read_object(&place).unwrap();
            change(&mut record);
            replace_json(&place, &record).unwrap();
        }
        let read =
            |name| Measurement::read(&chain.root, Path::new(name), MeasuredFor::Adoption).unwrap();
        let [base, tuned] = sides.map(read);
        for (name, bytes) in sides.iter().zip(originals) {
            std::fs::write(chain.root.path().join(name), bytes).unwrap();
        }
        let built = build_training_baseline(&label, &base, &tuned, &Thresholds::default());
        built.unwrap_err().to_string()
    };
    let same: Change = |_| {};
    let two_runs: Change = |r| {
        let runs = r.at(&["runs"]).items()[..2].to_vec();
        r.set("runs", runs);
    };
    assert_eq!(told([two_runs, same]), "missing_three_repeats ['baseline']");
    assert_eq!(
        told([same, |r| object(r, "config").set("seed", 7_i64)]),
        "changed_variable: the two sides must differ in one field, not in ['amp_dtype', 'seed']"
    );
    assert_eq!(
        told([
            |r| {
                for run in object(r, "runs").items_mut() {
                    run.remove("step_time_ms");
                }
            },
            same
        ]),
        "step_time_ms: a side has no such mean"
    );
}

#[test]
fn strategies_belong_to_their_baseline() {
    let chain = Chain::with_strategies();
    let record = chain.record(super::chain::BASELINE);
    let artifact = chain.root.artifact(&path(super::chain::BASELINE)).unwrap();
    let told = |names: &[&str], change: Change| {
        let mut changed = record.clone();
        change(&mut changed);
        let files: Vec<PathBuf> = names
            .iter()
            .map(|name| PathBuf::from(format!("measurements/76_{name}.json")))
            .collect();
        let measured = read_measurements(&chain.root, &files, MeasuredFor::Adoption)?;
        let thresholds = Thresholds::default();
        build_strategy_report(&chain.label, (&changed, &artifact), &measured, &thresholds)
    };
    let message = |names: &[&str], change: Change| told(names, change).unwrap_err().to_string();
    let same: Change = |_| {};
    assert_eq!(
        message(&["checkpoint"], same),
        "strategies: baseline is not among them"
    );
    assert_eq!(
        message(&["baseline", "baseline"], same),
        "measurements/76_baseline.json: strategy: 'baseline' comes twice"
    );
    assert_eq!(
        message(&["baseline", "checkpoint"], |r| {
            object(r, "config").set("batch_size", 9_i64);
        }),
        "workload_identity_mismatch ['batch_size']"
    );
    let place = chain.root.path().join("measurements/76_offload.json");
    let mut offload = Json::read_object(&place).unwrap();
    object(&mut offload, "config").set("optimizer", "SGD");
    replace_json(&place, &offload).unwrap();
    assert_eq!(
        message(&["baseline", "offload"], same),
        "measurements/76_offload.json: measurement_identity ['optimizer']"
    );
}

#[test]
fn nothing_outside_of_the_project_is_named() {
    let chain = Chain::with_strategies();
    let outside = tempfile::tempdir().unwrap();
    let other = outside.path().join("x.json");
    std::fs::copy(chain.at(STRATEGY), &other).unwrap();
    let root = chain.root.path().display().to_string();
    let told = format!("{}: is outside of the project {root}", other.display());
    let message = |error: tracekit::Error| {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let manifest = create_budget_manifest(&chain.root, &other, Path::new("approved_75.json"));
    assert_eq!(message(manifest.unwrap_err()), told);
    let measurement = Measurement::read(&chain.root, &other, MeasuredFor::Adoption);
    assert!(message(measurement.unwrap_err()).contains("schema_version"));
    let mut project = chain.closure();
    project.pressure = Some(other.clone());
    let mut longer = chain.record(STRATEGY);
    object(&mut longer, "config").set("seq_len", 4096_i64);
    replace_json(&other, &longer).unwrap();
    let pressure = project.pressure_validation(&chain.record(STRATEGY));
    assert_eq!(message(pressure.unwrap_err()), told);
    // Neither is what a link inside leads to.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&other, chain.root.path().join("link.json")).unwrap();
        let mut entry = Json::object();
        entry.set("path", "link.json");
        entry.set("sha256", tracekit::evidence::hash(&other).unwrap());
        let found = verify_entry(&chain.root, &entry, "strategy");
        assert_eq!(
            message(found.unwrap_err()),
            format!("manifest_entry strategy: link.json: is outside of the project {root}")
        );
        entry.set("path", "../x.json");
        let found = verify_entry(&chain.root, &entry, "strategy").unwrap_err();
        assert_eq!(found.kind(), ErrorKind::NotFound);
    }
    let nowhere = tempfile::tempdir().unwrap();
    let error = Root::discover(nowhere.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert_eq!(
        error.to_string(),
        format!(
            "{}: no project: neither here nor above is there tools/project_runtime.py; name the root with --root",
            nowhere.path().display()
        )
    );
}

#[test]
fn the_manifest_of_the_budget_is_whole() {
    let chain = Chain::with_strategies();
    let manifest = chain.budget().manifest;
    let shown = manifest.display().to_string();
    let good = Json::read_object(&manifest).unwrap();
    let changes: [(Change, &str); 3] = [
        (
            |m| {
                m.remove("approved_result");
            },
            "manifest_entry approved_result: must have a path and a sha256",
        ),
        (
            |m| object(m, "approved_result").set("sha256", ""),
            "manifest_entry approved_result: must have a path and a sha256",
        ),
        (
            |m| object(m, "source").set("path", Json::Null),
            "manifest_entry source: must have a path and a sha256",
        ),
    ];
    for (change, told) in changes {
        let mut changed = good.clone();
        change(&mut changed);
        replace_json(&manifest, &changed).unwrap();
        let error = chain.budget().prepare().unwrap_err();
        assert_eq!(error.to_string(), format!("{shown}: {told}"));
    }
}

#[test]
fn a_new_manifest_of_the_closure_names_what_is_there() {
    let chain = Chain::with_budget();
    let good = tracekit::evidence::ClosureArtifacts {
        sources: [
            Some(path(super::chain::BASELINE)),
            Some(path(STRATEGY)),
            Some(path(BUDGET)),
            Some(PathBuf::from("activation.json")),
        ],
        ..Default::default()
    };
    let told = |artifacts: &tracekit::evidence::ClosureArtifacts| {
        let made = create_closure_manifest(&chain.root, artifacts, None);
        made.unwrap_err().to_string()
    };
    let mut artifacts = good.clone();
    artifacts.sources[2] = None;
    assert_eq!(told(&artifacts), "manifest_entry budget: no path is given");
    let mut artifacts = good.clone();
    artifacts.phase = Some(PathBuf::from("activation.json"));
    assert_eq!(
        told(&artifacts),
        "manifest_entry profile.report: no path is given"
    );
    let mut artifacts = good.clone();
    artifacts.profile = Some(PathBuf::from("activation.json"));
    assert_eq!(
        told(&artifacts),
        "trace_dir: must be the path of a folder, and is empty"
    );
    artifacts.trace_dir = Some(PathBuf::from("nowhere"));
    assert_eq!(told(&artifacts), "nowhere: trace_dir: is no folder");
    let mut artifacts = good;
    artifacts.sources[0] = Some(PathBuf::from("nothing.json"));
    assert!(told(&artifacts).ends_with("nothing.json: no such file or directory"));
}

#[test]
fn the_ladder_must_be_whole_to_close() {
    let changes: [(Change, &str); 6] = [
        (
            |r| object(r, "summary").set("comparisons", Vec::<Json>::new()),
            "activation_missing_checkpoint_comparison",
        ),
        (
            |r| r.set("length_records", Vec::<Json>::new()),
            "activation_missing_length_record",
        ),
        (
            |r| {
                for record in object(r, "length_records").items_mut() {
                    record.set("candidates", Vec::<Json>::new());
                }
            },
            "activation_missing_length_candidates",
        ),
        (
            |r| each_candidate(r, |one| one.set("successful_runs", 2_i64)),
            "activation_insufficient_repeats",
        ),
        (
            |r| each_candidate(r, |one| one.set("status", "oom")),
            "activation_insufficient_repeats",
        ),
        (
            |r| {
                each_candidate(r, |one| {
                    one.remove("samples_per_s");
                });
            },
            "activation_missing_metric baseline.samples_per_s",
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
        let error = chain.closure().close(&chain.label).unwrap_err();
        assert_eq!(error.to_string(), told);
        assert!(!chain.at(CLOSURE).exists());
    }
}

fn each_candidate(record: &mut Json, change: impl Fn(&mut Json)) {
    for record in object(record, "length_records").items_mut() {
        object(record, "candidates")
            .items_mut()
            .iter_mut()
            .for_each(&change);
    }
}

#[test]
fn a_pressure_run_is_the_same_training_at_a_greater_length() {
    let chain = Chain::whole();
    let place = chain.root.path().join("pressure.json");
    let good = Json::read_object(&place).unwrap();
    let changes: [(Change, &str); 4] = [
        (
            |r| object(r, "config").set("optimizer", "SGD"),
            "pressure_identity ['optimizer']",
        ),
        (
            |r| object(r, "config").set("seq_len", 768_i64),
            "pressure_seq_len: 768 is no integer above 768",
        ),
        (
            |r| object(r, "config").set("seq_len", 1024.0),
            "pressure_seq_len: 1024.0 is no integer above 768",
        ),
        (
            |r| object(r, "config").set("seq_len", true),
            "pressure_seq_len: true is no integer above 768",
        ),
    ];
    for (change, told) in changes {
        let mut record = good.clone();
        change(&mut record);
        replace_json(&place, &record).unwrap();
        let mut project = chain.closure();
        project.pressure = Some(PathBuf::from("pressure.json"));
        let error = project.close(&chain.label).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn a_phase_record_that_is_not_required_must_hold_all_the_same() {
    for (change, told) in [
        (
            (|r: &mut Json| r.set("schema_version", "x")) as Change,
            "phase_schema: \"x\" is not training-phase-memory/v1",
        ),
        (
            |r| r.set("evidence_level", "guess"),
            "phase_report_invalid: evidence_level must be repeated_phase_memory_measurement, not \"guess\"",
        ),
    ] {
        let chain = Chain::whole();
        chain.change(PHASE, change);
        chain.closure_manifest(true, true);
        let mut project = chain.closure();
        project.thresholds.phase.require_phase_memory = false;
        let error = project.close(&chain.label).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn phase_runs_are_as_many_as_they_say() {
    let chain = Chain::with_budget();
    chain.profile().unwrap();
    chain.closure_manifest(true, false);
    let mut project = chain.closure();
    project.thresholds.phase.repeats = 4;
    let error = project
        .phase(&chain.label, &measured("phase"), None)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "phase_report_invalid: baseline: must have config.repeats runs, not 3; checkpoint: must have \
         config.repeats runs, not 3"
    );
    // Of several files, the least that was free counts.
    let last = chain.root.path().join(&measured("phase")[1]);
    let good = Json::read_object(&last).unwrap();
    let mut record = good.clone();
    object(&mut record, "safety").set("free_memory_mb_before_load", 11261.99);
    replace_json(&last, &record).unwrap();
    let error = chain.phase().unwrap_err().to_string();
    assert!(
        error.starts_with("memory_admission: 11261.99 MiB are free"),
        "{error}"
    );
    replace_json(&last, &good).unwrap();
    // Nothing says what was free, and there is no driver to ask.
    for name in measured("phase") {
        let place = chain.root.path().join(name);
        let mut record = Json::read_object(&place).unwrap();
        record.remove("safety");
        replace_json(&place, &record).unwrap();
    }
    if tracekit::evidence::gpu_memory().is_none() {
        let error = chain.phase().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert_eq!(
            error.to_string(),
            "memory_admission: nothing says how much memory was free"
        );
    }
    assert!(!chain.at(PHASE).exists());
}

#[test]
fn the_baseline_must_say_what_it_reserved() {
    let chain = Chain::with_budget();
    chain.profile().unwrap();
    chain.change(STRATEGY, |record| {
        object(record, "candidates").items_mut()[0].remove("peak_reserved_mb");
    });
    chain.closure_manifest(true, false);
    assert_eq!(
        chain.phase().unwrap_err().to_string(),
        "peak_reserved_mb: the baseline of the strategies must have it as a number above 0"
    );
}

#[test]
fn results_must_be_writable() {
    let chain = Chain::whole();
    let results = chain.root.path().join("benchmarks/results");
    let kept = chain.root.path().join("benchmarks/kept");
    std::fs::rename(&results, &kept).unwrap();
    std::fs::write(&results, "a file where the folder should be").unwrap();
    let mut project = chain.budget();
    project.manifest = kept.join("manifest.json");
    let mut manifest = Json::object();
    for key in ["source", "approved_result"] {
        manifest.set(
            key,
            chain.root.artifact(Path::new("approved_75.json")).unwrap(),
        );
    }
    replace_json(&project.manifest, &manifest).unwrap();
    let error = project.analyze(&chain.label).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    let told = error.to_string();
    assert!(
        told.starts_with("preflight_not_ready {")
            && told.contains("\"output_parent_writable\": false"),
        "{told}"
    );
}

#[test]
fn the_stage_of_a_closure_decides_what_must_be_there() {
    let chain = Chain::with_budget();
    // Profiling needs the sources only, phase memory the profile, closing everything.
    chain.closure().inputs(ClosureStage::Profile).unwrap();
    for (stage, entry) in [
        (ClosureStage::Phase, "profile.report"),
        (ClosureStage::Close, "profile.report"),
        (ClosureStage::Prepare, "profile.report"),
    ] {
        let error = chain.closure().inputs(stage).unwrap_err().to_string();
        let told = format!("manifest_entry {entry}: must have a path and a sha256");
        assert!(error.ends_with(&told), "{error}");
    }
    chain.profile().unwrap();
    chain.closure_manifest(true, false);
    chain.closure().inputs(ClosureStage::Phase).unwrap();
    let error = chain.closure().inputs(ClosureStage::Close).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("manifest_entry profile.phase_memory.report: must have a path and a sha256")
    );
}

#[test]
fn a_placeholder_writes_nothing_in_any_stage() {
    let chain = Chain::with_budget();
    let before = chain.tree();
    let placeholder = "replace_with_unique_label";
    let told = format!("run_label: {placeholder} is a placeholder; choose a label of your own");
    for arguments in [
        &["analyze"][..],
        &["profile", "--traces", "traces"],
        &[
            "phase",
            "--measurement",
            "measurements/74_phase_baseline.json",
        ],
        &["close", "--project", "75"],
        &["close", "--project", "74"],
        &[
            "training",
            "measurements/73_baseline.json",
            "measurements/73_tuned.json",
        ],
        &[
            "strategies",
            "measurements/76_baseline.json",
            "--baseline",
            "benchmarks/results/73_real_gpu_training_t.json",
        ],
    ] {
        for label in [placeholder, "..", "a/b", ""] {
            let all = [&["evidence"], arguments, &["--root", ".", "--label", label]].concat();
            let found = run_in(chain.folder.path(), &all);
            let line = found.refused();
            if label == placeholder {
                assert_eq!(line, told);
            } else {
                let told =
                    format!("run_label: '{label}' must be of letters, digits, '.', '_' and '-'");
                assert_eq!(line, told);
            }
        }
    }
    // Without a label the variable counts, and without that nobody chose one.
    let program = |variable: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"));
        command
            .args(["evidence", "analyze", "--root", "."])
            .current_dir(chain.folder.path());
        command.env_remove("RUN_LABEL");
        if let Some(label) = variable {
            command.env("RUN_LABEL", label);
        }
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(program(None), (Some(2), format!("tracekit: {told}\n")));
    assert_eq!(chain.tree(), before);
    assert_eq!(program(Some("from-variable")).0, Some(0));
    assert!(
        chain
            .root
            .join("benchmarks/results/75_memory_budget_evidence_from-variable.json")
            .exists()
    );
}

#[test]
fn what_is_normalised_is_not_normalised_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x.json");
    std::fs::copy(
        super::fixtures().join("results/old_73_real_gpu_training_v1.json"),
        &place,
    )
    .unwrap();
    assert_eq!(
        normalize_file(&place, None).unwrap_err().to_string(),
        format!("{}: is normalised already", place.display())
    );
}

#[test]
fn records_of_another_schema_are_not_taken_for_todays() {
    let chain = Chain::with_strategies();
    chain.budget().analyze(&chain.label).unwrap();
    for schema in ["memory-budget-evidence/v2", ""] {
        chain.change(EVIDENCE, |record| record.set("schema_version", schema));
        let error = chain.budget().close(&chain.label).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert!(
            error
                .to_string()
                .contains(&format!("\"schema_version\": \"{schema}\"")),
            "{error}"
        );
    }
    let chain = Chain::whole();
    chain.change(PROFILE, |record| {
        record.set("schema_version", "profiling-trace-evidence/v2");
    });
    chain.closure_manifest(true, true);
    let error = chain.closure().close(&chain.label).unwrap_err();
    assert!(
        error.to_string().starts_with("evidence_not_ready {"),
        "{error}"
    );
}
