//! Examples of the subcommands of `tracekit evidence`.

/// Puts how commands end behind their examples.
macro_rules! examples {
    ($($name:ident = $($line:literal)+;)+) => {
        $(pub(super) const $name: &str = concat!(
            "Examples:\n",
            $("  ", $line, "\n",)+
            "\nExit codes: those of tracekit evidence --help; 2 when a rule does not hold, and nothing is written.",
        );)+
    };
}

examples! {
    MANIFEST =
        "tracekit evidence manifest create --help"
        "tracekit evidence manifest verify --project 74";
    PREPARE =
        "tracekit evidence prepare --project 75"
        "tracekit evidence prepare --project 74 --label run1 --format json";
    TRAINING =
        "tracekit evidence training --label run1 measurements/73_baseline.json measurements/73_tuned.json";
    STRATEGIES =
        "tracekit evidence strategies --label run1 --baseline benchmarks/results/73_real_gpu_training_run1.json \\"
        "    measurements/76_baseline.json measurements/76_checkpoint.json";
    ANALYZE =
        "tracekit evidence analyze --label run1"
        "tracekit evidence analyze --label run2 --set budget.memory_cap_mb=9600";
    PROFILE =
        "tracekit evidence profile --label run1 --traces runs/ --measurement measurements/74_profile_baseline.json \\"
        "    --measurement measurements/74_profile_checkpoint.json";
    PHASE =
        "tracekit evidence phase --label run1 --measurement measurements/74_phase_baseline.json \\"
        "    --measurement measurements/74_phase_checkpoint.json";
    CLOSE =
        "tracekit evidence close --project 75 --label run1"
        "tracekit evidence close --project 74 --label run1 --exit-by-decision";
    HANDOFF =
        "tracekit evidence handoff benchmarks/results/76_real_gpu_memory_run1.json -o handoff.json"
        "tracekit gate budget handoff.json --workload NAME --hardware NAME";
    NORMALIZE =
        "tracekit evidence normalize fixtures/gate/results/76_real_gpu_memory.json --output-dir normalized";
    IDENTIFY =
        "tracekit evidence identify fixtures/gate/results/*.json"
        "tracekit evidence identify old.json --modern benchmarks/results/73_old.json";
    ATTRIBUTION =
        "tracekit evidence attribution fixtures/gate/results/old_74_real_gpu_profile.json";
    PREFLIGHT =
        "tracekit evidence preflight --require torch --require-gpu"
        "tracekit evidence preflight --strategy 76.json && python train.py    # nothing is loaded unless it fits";
    CHECKLIST =
        "tracekit evidence checklist benchmarks/results";
    MANIFEST_CREATE =
        "tracekit evidence manifest create --project 75 --strategy 76.json --approved 75_approved.json"
        "tracekit evidence manifest create --project 74 --baseline 73.json --strategy 76.json --budget 75.json \\"
        "    --activation ladder.json"
        "tracekit evidence manifest create --project 74 --from sources.json --profile 74_profile.json --trace-dir traces";
    MANIFEST_VERIFY =
        "tracekit evidence manifest verify --project 74";
}
