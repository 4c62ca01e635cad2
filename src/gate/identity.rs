//! Whether records are about the same workload, machine and model.

use super::json::{Json, object};
use super::number::python_list;
use crate::error::{Error, ErrorKind, Result};

/// Fields that make a training workload what it is.
pub const IDENTITY_FIELDS: [&str; 7] = [
    "model_id",
    "batch_size",
    "seq_len",
    "dtype",
    "optimizer",
    "workload",
    "seed",
];

/// Fields by which a profile belongs to a strategy report.
pub const PROFILE_FIELDS: [&str; 3] = ["model_id", "batch_size", "seq_len"];

/// The fields of `fields` in which two configurations differ. `strict` counts fields that neither has as
/// different, since nothing is known of them.
pub fn mismatching_fields<'a>(
    a: &Json,
    b: &Json,
    fields: &[&'a str],
    strict: bool,
) -> Vec<&'a str> {
    let differs = |field: &&&str| {
        let sides = [a.at(&[field]), b.at(&[field])];
        sides[0] != sides[1] || (strict && sides[0].is_null())
    };
    fields.iter().filter(differs).copied().collect()
}

/// The workload that a baseline and its strategies share.
///
/// # Errors
/// `workload_identity_mismatch` with the fields that differ.
pub fn build_workload_identity(baseline: &Json, strategy: &Json, strict: bool) -> Result<Json> {
    let config = strategy.at(&["config"]);
    let mismatches = mismatching_fields(baseline.at(&["config"]), config, &IDENTITY_FIELDS, strict);
    if !mismatches.is_empty() {
        let message = format!("workload_identity_mismatch {}", python_list(&mismatches));
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut identity = object! {"status" => "matched"};
    for field in IDENTITY_FIELDS
        .into_iter()
        .chain(["device", "warmup", "iters"])
    {
        identity.set(field, config.at(&[field]));
    }
    Ok(identity)
}

/// Checks that the three reports are what they are taken for.
///
/// # Errors
/// `semantic_id_mismatch` with the identities found.
pub fn check_semantic_ids(baseline: &Json, strategy: &Json, budget: &Json) -> Result<()> {
    let reports = [
        ("baseline", baseline, "PERF-TRAINING-BASELINE"),
        ("strategy", strategy, "PERF-MEMORY-STRATEGY"),
        ("budget", budget, "PERF-MEMORY-BUDGET"),
    ];
    let id = |report: &Json| report.at(&["semantic_id"]).clone();
    if reports
        .iter()
        .any(|(_, report, wanted)| id(report).as_str() != Some(wanted))
    {
        let mut found = Json::object();
        for (name, report, _) in reports {
            found.set(name, id(report));
        }
        let message = format!("semantic_id_mismatch {}", found.to_line());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_neither_side_says_is_equal_unless_strict() {
        let (a, b) = (object! {"seed" => 1_i64}, object! {"seed" => 1.0});
        let fields = ["seed", "dtype"];
        assert!(mismatching_fields(&a, &b, &fields, false).is_empty());
        assert_eq!(mismatching_fields(&a, &b, &fields, true), ["dtype"]);
    }

    #[test]
    fn swapped_reports_are_told_with_what_they_are() {
        let report = |id: &str| object! {"semantic_id" => id};
        let (baseline, strategy, budget) = (
            report("PERF-TRAINING-BASELINE"),
            report("PERF-MEMORY-STRATEGY"),
            report("PERF-MEMORY-BUDGET"),
        );
        check_semantic_ids(&baseline, &strategy, &budget).unwrap();
        let error = check_semantic_ids(&strategy, &baseline, &budget).unwrap_err();
        assert_eq!(
            error.to_string(),
            "semantic_id_mismatch {\"baseline\": \"PERF-MEMORY-STRATEGY\", \
             \"strategy\": \"PERF-TRAINING-BASELINE\", \"budget\": \"PERF-MEMORY-BUDGET\"}"
        );
    }
}
