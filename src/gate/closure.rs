//! The closing decision of the chain, and what its record has to be.

use super::json::Json;
use super::qualification::Qualification;
use super::report::is_sha256;
use super::role::{PROFILER_METRICS, evidence_roles};
use super::verdict::{Decision, Outcome};

/// Schema of the closing record.
pub const CLOSURE_SCHEMA: &str = "profiling-optimization-benchmark/v1";
/// Scope of its top-level decision.
pub const FULL_TRAINING: &str = "full_training_adoption";

/// Decides by the qualification alone. `has_phase_report` changes only what to do next.
pub fn closure_decision(qualification: &Qualification, has_phase_report: bool) -> Outcome {
    let records = &qualification.candidate_records;
    let mut tunes = records
        .iter()
        .filter(|record| record.decision == Decision::Tune)
        .peekable();
    if !qualification.qualified_candidates.is_empty() {
        return Outcome::new(
            Decision::Accept,
            "at_least_one_candidate_passed_profiling_qualification",
            "write_part05_handoff",
        );
    }
    if tunes.peek().is_none() {
        return Outcome::new(
            Decision::Reject,
            "all_candidates_failed_hard_gates",
            "restore_baseline",
        );
    }
    let only_saving = tunes.all(|record| {
        record.failed_gates == ["memory_saving"] && record.missing_evidence.is_empty()
    });
    Outcome::new(
        Decision::Tune,
        if only_saving {
            "global_peak_memory_saving_below_threshold"
        } else {
            "candidate_requires_more_evidence_or_threshold_tuning"
        },
        if has_phase_report {
            "retain_phase_evidence_and_do_not_adopt_at_fixed_workload"
        } else {
            "collect_phase_memory_evidence"
        },
    )
}

const KEYS: [&str; 13] = [
    "schema_version",
    "semantic_id",
    "run_label",
    "project",
    "stage",
    "config",
    "candidates",
    "profile",
    "bottleneck",
    "validation",
    "decision",
    "decision_scopes",
    "standard_metrics",
];

/// What is wrong with a closing record, one sentence each; nothing when it is valid.
pub fn validate_result(report: &Json) -> Vec<String> {
    let mut errors = Vec::new();
    let mut check = |holds: bool, message: &str| {
        if !holds {
            errors.push(message.to_owned());
        }
    };
    for key in KEYS {
        check(report.get(key).is_some(), &format!("{key} is missing"));
    }
    let is = |path: &[&str], wanted: &str| report.at(path).as_str() == Some(wanted);
    for (path, wanted) in [
        (&["schema_version"][..], CLOSURE_SCHEMA),
        (&["semantic_id"], "PERF-PROFILING-CLOSURE"),
        (&["project"], "74"),
        (&["stage"], "profiling_driven_optimization"),
        (&["profile", "measurement_role"], PROFILER_METRICS),
    ] {
        check(
            is(path, wanted),
            &format!("{} must be {wanted}", path.join(".")),
        );
    }
    check(
        report.at(&["run_label"]).as_name().is_some(),
        "run_label must be text",
    );
    for path in [
        &["profile", "timing_for_adoption"][..],
        &[
            "validation",
            "scope_boundary",
            "activation_scope_promotable_to_full_training",
        ],
        &[
            "decision_scopes",
            "activation_memory_mechanism",
            "promotable_to_full_training",
        ],
    ] {
        check(
            *report.at(path) == Json::Bool(false),
            &format!("{} must be false", path.join(".")),
        );
    }
    check(
        *report.at(&["validation", "evidence_roles"]) == evidence_roles(),
        "validation.evidence_roles must be the three roles",
    );
    check(
        is(
            &["validation", "scope_boundary", "top_level_decision_scope"],
            FULL_TRAINING,
        ),
        "validation.scope_boundary.top_level_decision_scope must be full_training_adoption",
    );
    for (name, artifact) in report.at(&["validation", "source_artifacts"]).fields() {
        check(
            is_artifact(artifact),
            &format!("validation.source_artifacts.{name} must have a path and a sha256"),
        );
    }
    for name in ["baseline", "strategy", "budget", "activation_memory_scope"] {
        check(
            report
                .at(&["validation", "source_artifacts"])
                .get(name)
                .is_some(),
            &format!("validation.source_artifacts.{name} is missing"),
        );
    }
    check(
        is_artifact(report.at(&["profile", "report"])),
        "profile.report must have a path and a sha256",
    );
    let phase = report.at(&["profile", "phase_memory"]);
    let phase_holds = match phase.at(&["status"]).as_str() {
        Some("collected") => {
            is_artifact(phase.at(&["report"]))
                && *phase.at(&["timing_for_adoption"]) == Json::Bool(false)
        }
        Some("not_collected") => true,
        _ => false,
    };
    check(
        phase_holds,
        "profile.phase_memory must be collected with its report, or not_collected",
    );
    for (place, assessment) in report.at(&["bottleneck"]).items().iter().enumerate() {
        let known = [
            "supported",
            "refuted",
            "insufficient_evidence",
            "not_applicable",
        ];
        let status = assessment.at(&["status"]).as_str();
        check(
            status.is_some_and(|status| known.contains(&status)),
            &format!("bottleneck.{place}.status is no finding"),
        );
        check(
            assessment.at(&["measurement_role"]).as_str() == Some(PROFILER_METRICS),
            &format!("bottleneck.{place}.measurement_role must be {PROFILER_METRICS}"),
        );
    }
    let scope = report.at(&["decision_scopes", "activation_memory_mechanism"]);
    check(
        ["accept_for_activation_memory_scope", "tune"]
            .contains(&scope.at(&["decision"]).as_str().unwrap_or_default()),
        "decision_scopes.activation_memory_mechanism.decision is none of its decisions",
    );
    check(
        is_artifact(scope.at(&["evidence"])),
        "decision_scopes.activation_memory_mechanism.evidence must have a path and a sha256",
    );
    errors.extend(decision_errors(report, phase));
    errors
}

fn decision_errors(report: &Json, phase: &Json) -> Vec<String> {
    let mut errors = Vec::new();
    let decision = report.at(&["decision"]);
    let name = |value: &Json| value.as_str().and_then(Decision::from_name);
    if name(decision.at(&["decision"])).is_none() {
        errors.push("decision.decision must be accept, tune or reject".to_owned());
    }
    let full = report.at(&["decision_scopes", FULL_TRAINING]);
    let same = ["decision", "reason", "next_action"]
        .iter()
        .all(|key| full.at(&[key]) == decision.at(&[key]));
    if !same {
        errors.push("decision must be that of decision_scopes.full_training_adoption".to_owned());
    }
    let candidates = report.at(&["candidates"]);
    for candidate in candidates.items() {
        if name(candidate.at(&["decision"])).is_none() {
            let who = candidate.at(&["name"]).to_line();
            errors.push(format!(
                "candidates: {who}: decision must be accept, tune or reject"
            ));
        }
    }
    let mut stored = Json::object();
    let accepted: Vec<Json> = candidates
        .items()
        .iter()
        .filter(|one| one.at(&["decision"]).as_str() == Some("accept"))
        .map(|one| one.at(&["name"]).clone())
        .collect();
    stored.set("qualified_candidates", accepted);
    stored.set("candidate_records", candidates);
    if let Some(qualification) = Qualification::read(&stored) {
        let collected = phase.at(&["status"]).as_str() == Some("collected");
        let expected = closure_decision(&qualification, collected).to_json();
        if expected != *decision {
            let expected = expected.to_line();
            errors.push(format!(
                "decision must follow from the candidates: {expected}"
            ));
        }
    }
    errors
}

/// True for an object with a path and a hash.
fn is_artifact(value: &Json) -> bool {
    value.at(&["path"]).as_name().is_some() && value.at(&["sha256"]).as_str().is_some_and(is_sha256)
}
