//! Runs of the collector as evidence, in the place of traces of PyTorch's profiler.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::run::{Run, has_python};

fn evidence(root: &Path, label: &str, traces: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["evidence", "profile", "--label", label, "--traces", traces])
        .args(["--manifest", "sources.manifest.json", "--root"])
        .arg(root)
        .current_dir(root)
        .output()
        .unwrap()
}

/// Records `words` of the fixture into a folder of a strategy.
fn record(root: &Path, strategy: &str, words: &[&str], options: &[&str]) {
    let run = Run::new(words)
        .option(options)
        .into_folder(&root.join(strategy));
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn runs_of_the_collector_are_evidence_as_profiled_runs_are() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let chain = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/gate/chain.sh");
    let made = Command::new("bash")
        .arg(chain)
        .arg(root)
        .env("TRACEKIT", env!("CARGO_BIN_EXE_tracekit"))
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );

    // One strategy by the profiler and one by the collector are not compared.
    record(root, "mixed/checkpoint", &["checkpointed:4"], &[]);
    std::fs::create_dir(root.join("mixed/baseline")).unwrap();
    std::fs::copy(
        root.join("traces/baseline/baseline.pt.trace.json"),
        root.join("mixed/baseline/baseline.pt.trace.json"),
    )
    .unwrap();
    let refused = evidence(root, "mixed", "mixed");
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        told.contains("trace_tools_differ: baseline is from torch.profiler"),
        "{told}"
    );

    // A run whose parent was killed has spools and no trace.
    record(root, "runs/baseline", &["training:4"], &[]);
    record(
        root,
        "runs/checkpoint",
        &["checkpointed:4"],
        &["--keep-spool"],
    );
    for entry in std::fs::read_dir(root.join("runs/checkpoint")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    let refused = evidence(root, "collected", "runs");
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        told.contains("trace_missing") && told.contains("collect --convert"),
        "{told}"
    );
    let converted = Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["collect", "--convert"])
        .arg(root.join("runs/checkpoint"))
        .output()
        .unwrap();
    assert!(converted.status.success());

    let done = evidence(root, "collected", "runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let record = root.join("benchmarks/results/74_real_gpu_profile_collected.json");
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["profile"]["tool"], "tracekit collect");
    assert_eq!(record["experiment"]["backend"], "tracekit collect");
    assert_eq!(record["profile"]["timing_for_adoption"], false);
    assert_eq!(record["run_mode"], "real_gpu");
    let strategies = &record["attribution"]["by_strategy"];
    // Four steps of 100, 200 and 50 us, and 100 more to compute again.
    let baseline = &strategies["baseline"];
    assert_eq!(baseline["place"], "device");
    assert_eq!(baseline["phases_ns"]["forward"], 400_000);
    assert_eq!(baseline["phases_ns"]["backward"], 800_000);
    assert_eq!(baseline["recompute_ns"], 0);
    assert_eq!(baseline["steps"], 4);
    let checkpoint = &strategies["checkpoint"];
    assert_eq!(checkpoint["recompute_ns"], 400_000);
    assert_eq!(checkpoint["backward_ns"], 1_200_000);
    assert_eq!(checkpoint["device_counters"][0]["energy_from"], "energy");
    let process = &record["attribution"]["processes"]["checkpoint"][0];
    assert_eq!(
        (&process["ended_in_order"], &process["device_events"]),
        (&true.into(), &16.into())
    );
    let hashes = record["profile"]["trace_sha256"].as_object().unwrap();
    assert_eq!(hashes.len(), 2);
    let folder = root.join("benchmarks/results/74_profile/trace_collected/baseline");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
}
