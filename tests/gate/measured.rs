//! The records of profiled runs and of memory by phase, and every rule that stops them.

use std::path::Path;

use tracekit::ErrorKind;
use tracekit::evidence::replace_json;
use tracekit::gate::{Json, validate_phase_memory_result};

use super::chain::{Chain, PHASE, PROFILE, STRATEGY, measured};

#[test]
fn profiling_has_rules_of_its_own() {
    let chain = Chain::with_budget();
    let error = chain
        .closure()
        .profile(&chain.label, Path::new("measurements"), &[])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(
        error
            .to_string()
            .ends_with("trace_missing: there is no *.pt.trace.json for baseline")
    );
    // Memory by phase is no measurement under the profiler.
    let error = chain
        .closure()
        .profile(&chain.label, Path::new("traces"), &measured("phase"))
        .unwrap_err();
    assert!(error.to_string().ends_with(
        "evidence_role: \"phase_memory_attribution_only\" is not bottleneck_attribution_only"
    ));
    chain.profile().unwrap();
    let before = chain.tree();
    let error = chain.profile().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    std::fs::remove_file(chain.at(PROFILE)).unwrap();
    let error = chain.profile().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().contains("trace_t: is there already"));
    // Traces that were recorded in their place are taken as they are.
    let place = chain.root.join("benchmarks/results/74_profile/trace_t");
    let report = chain
        .closure()
        .profile(&chain.label, &place, &measured("profile"));
    assert_eq!(
        report.unwrap().record.at(&["status"]).as_str(),
        Some("profiled")
    );
    assert_eq!(chain.tree(), before);

    let chain = Chain::with_budget();
    chain.change(STRATEGY, |record| {
        let candidate = &mut record.get_mut("candidates").unwrap().items_mut()[3];
        let runs = candidate.at(&["runs"]).items()[..2].to_vec();
        candidate.set("runs", runs);
    });
    chain.closure_manifest(false, false);
    let error = chain.profile().unwrap_err();
    assert_eq!(error.to_string(), "missing_three_repeats ['hybrid']");
}

#[test]
fn the_record_of_profiled_runs() {
    let chain = Chain::whole();
    let record = chain.record(PROFILE);
    let keys: Vec<&str> = record.fields().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            "schema_version",
            "semantic_id",
            "run_mode",
            "run_label",
            "task",
            "stage",
            "config",
            "sources",
            "trace_root",
            "candidates",
            "profile",
            "experiment",
            "standard_metrics",
            "attribution",
            "inputs",
            "tool",
        ]
    );
    assert_eq!(record.at(&["profile", "active_steps"]).as_int(), Some(4));
    assert!(
        record
            .at(&["attribution", "active_steps_agree", "baseline"])
            .is_true()
    );
    assert_eq!(
        record.at(&["experiment", "backend"]).as_str(),
        Some("torch.profiler")
    );
    let checkpoint = &record.at(&["candidates"]).items()[1];
    assert_eq!(
        checkpoint.at(&["allocator_slack_mb"]).as_f64(),
        Some(1445.25)
    );
    let costs: Vec<(&str, i64)> = record
        .at(&["attribution", "cost_shift"])
        .items()
        .iter()
        .filter(|row| row.at(&["place"]).as_str() == Some("device"))
        .map(|row| {
            (
                row.at(&["cost"]).as_str().unwrap(),
                row.at(&["delta_ns"]).as_int().unwrap(),
            )
        })
        .collect();
    assert_eq!(costs[0], ("recompute", 80_000_000));
    let classes: Vec<&str> = costs.iter().map(|(cost, _)| *cost).collect();
    assert_eq!(
        classes,
        [
            "recompute",
            "exposed_communication",
            "exposed_copies",
            "exposed_fills",
            "idle"
        ]
    );
    // Peaks by phase out of the memory events of the traces, computed by hand.
    let peaks = record.at(&["attribution", "phase_peaks", "checkpoint"]);
    assert_eq!(
        peaks.at(&["evidence_level"]).as_str(),
        Some("trace_memory_events")
    );
    for (phase, peak) in [
        ("forward", 6000.0),
        ("backward", 8668.0),
        ("optimizer", 9450.0),
    ] {
        let found = peaks.at(&["phase_metrics", phase, "peak_allocated_mb"]);
        assert_eq!(found.as_f64(), Some(peak));
    }
    assert_eq!(peaks.at(&["global_peak_phase"]).as_str(), Some("optimizer"));
}

#[test]
fn a_trace_without_measurements_is_not_measured() {
    let chain = Chain::with_budget();
    chain
        .closure()
        .profile(&chain.label, Path::new("traces"), &[])
        .unwrap();
    let record = chain.record(PROFILE);
    let candidate = &record.at(&["candidates"]).items()[0];
    for key in ["step_time_ms", "peak_memory_mb", "allocator_slack_mb"] {
        assert!(candidate.get(key).unwrap().is_null(), "{key}");
    }
    let table = candidate.at(&["top_operators"]).as_str().unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0].split_whitespace().count(), 15);
    assert!(lines[1].trim_start().starts_with("Name    Self CPU %"));
    assert!(
        lines
            .iter()
            .skip(3)
            .all(|line| !line.starts_with(' ') || line.len() == lines[0].len())
    );
    assert!(table.ends_with("Self CUDA time total: 1.560s\n"), "{table}");
}

#[test]
fn memory_by_phase_is_admitted_first() {
    let chain = Chain::with_budget();
    chain.profile().unwrap();
    chain.closure_manifest(true, false);
    for free in [11261.99, 11262.0] {
        let memory = tracekit::evidence::FreeMemory {
            free_mb: free,
            total_mb: 12227.0,
        };
        let told = chain
            .closure()
            .phase(&chain.label, &measured("phase"), Some(memory));
        if free < 11262.0 {
            let error = told.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::State);
            assert_eq!(
                error.to_string(),
                "memory_admission: 11261.99 MiB are free and 11262.00 are needed (10750.00 reserved by the \
                 baseline and a margin of 512.00)"
            );
            assert!(!chain.at(PHASE).exists());
        } else {
            told.unwrap();
        }
    }
    let record = chain.record(PHASE);
    assert_eq!(validate_phase_memory_result(&record), Vec::<String>::new());
    assert_eq!(
        record.at(&["safety", "required_free_memory_mb"]).as_f64(),
        Some(11262.0)
    );
    assert_eq!(
        record
            .at(&["summary", "allocated_memory_saving_mb", "backward"])
            .as_f64(),
        Some(332.0)
    );
    let error = chain.phase().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
}

#[test]
fn a_run_out_of_memory_is_recorded() {
    let chain = Chain::with_budget();
    chain.profile().unwrap();
    chain.closure_manifest(true, false);
    let place = chain
        .root
        .path()
        .join("measurements/74_phase_checkpoint.json");
    let mut record = Json::read_object(&place).unwrap();
    let oom =
        Json::parse("{\"repeat\":3,\"status\":\"oom\",\"error\":\"CUDA out of memory\"}").unwrap();
    record.get_mut("runs").unwrap().items_mut()[2] = oom;
    replace_json(&place, &record).unwrap();
    chain.phase().unwrap();
    let phase = chain.record(PHASE);
    assert_eq!(
        phase.at(&["candidates"]).items()[1]
            .at(&["status"])
            .as_str(),
        Some("partial_oom")
    );
    assert!(phase.at(&["summary"]).get("global_peak_phase").is_none());
    chain.closure_manifest(true, true);
    let error = chain.closure().close(&chain.label).unwrap_err();
    assert_eq!(error.to_string(), "phase_candidate_not_ok: checkpoint");
}

#[test]
fn phase_measurements_have_rules() {
    let chain = Chain::with_budget();
    chain.profile().unwrap();
    chain.closure_manifest(true, false);
    let error = chain
        .closure()
        .phase(&chain.label, &measured("phase")[..1], None)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "phase_measurement_missing ['checkpoint']"
    );
    let twice = [measured("phase"), measured("phase")].concat();
    let error = chain
        .closure()
        .phase(&chain.label, &twice, None)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("strategy: 'baseline' comes twice")
    );
    let mut project = chain.closure();
    project.thresholds.phase.process_memory_fraction = 1.01;
    let error = project
        .phase(&chain.label, &measured("phase"), None)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "process_memory_fraction: 1.01 is not above 0 and at most 1"
    );
    let place = chain
        .root
        .path()
        .join("measurements/74_phase_baseline.json");
    let mut record = Json::read_object(&place).unwrap();
    record.get_mut("config").unwrap().set("seq_len", 512_i64);
    replace_json(&place, &record).unwrap();
    let error = chain.phase().unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("measurement_identity ['seq_len']")
    );
}

/// A stand-in for PyTorch that has no GPU and says when something is to be loaded.
const NO_TORCH: &str = "
class device:
    def __init__(self, kind): self.type = kind
class cuda:
    OutOfMemoryError = MemoryError
    def is_available(): return False
def manual_seed(seed): raise SystemExit('a model is loaded')
";

#[test]
fn nothing_is_loaded_before_memory_is_admitted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("torch.py"), NO_TORCH).unwrap();
    let python = || std::process::Command::new("python3");
    if python().arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    for (reserved, code, told) in [
        ("1e9", 2, "MiB are free and 1000000512.00 are needed"),
        ("1.0", 1, "a model is loaded"),
        ("0", 1, "must have it as a number above 0"),
        ("true", 1, "must have it as a number above 0"),
    ] {
        let report = folder.path().join("76.json");
        let text = format!(
            "{{\"candidates\":[{{\"name\":\"baseline\",\"peak_reserved_mb\":{reserved}}}]}}"
        );
        std::fs::write(&report, text).unwrap();
        let out = folder.path().join("out.json");
        let mut command = python();
        command
            .arg(super::fixtures().join("measure.py"))
            .args(["--strategy", "baseline", "--role", "phase", "--out"])
            .arg(&out)
            .arg("--admit-for")
            .arg(&report)
            .env("PYTHONPATH", folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{reserved}: {err}");
        assert!(err.contains(told), "{reserved}: {err}");
        assert!(!out.exists());
    }
}

#[test]
fn each_class_of_cost_is_told_for_both_sides() {
    let chain = Chain::with_budget();
    // 4 ms of an allocation in one of four steps of the checkpoint, by hand: 1 ms a step.
    let place = chain
        .root
        .path()
        .join("traces/checkpoint/checkpoint.pt.trace.json");
    let text = std::fs::read_to_string(&place).unwrap();
    let call = "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMalloc\",\"pid\":100,\"tid\":100,\"ts\":4000,\"dur\":4000},";
    let (head, events) = text.split_once('\n').unwrap();
    std::fs::write(&place, format!("{head}\n{call}\n{events}")).unwrap();
    chain.profile().unwrap();
    let record = chain.record(PROFILE);
    let row = |cost: &str, place: &str| {
        let rows = record.at(&["attribution", "cost_shift"]).items();
        let found = rows.iter().find(|row| {
            row.at(&["cost"]).as_str() == Some(cost) && row.at(&["place"]).as_str() == Some(place)
        });
        let found = found.unwrap_or_else(|| panic!("no row for {cost} on {place}"));
        ["base_ns", "candidate_ns", "delta_ns"].map(|key| found.at(&[key]).as_int().unwrap())
    };
    assert_eq!(row("cache_maintenance", "host"), [0, 1_000_000, 1_000_000]);
    assert_eq!(row("recompute", "device"), [0, 80_000_000, 80_000_000]);
    for (cost, place) in [
        ("exposed_copies", "device"),
        ("exposed_communication", "device"),
        ("synchronisation", "host"),
    ] {
        let [base, candidate, delta] = row(cost, place);
        assert_eq!(candidate - base, delta, "{cost}");
    }
}
