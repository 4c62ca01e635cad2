//! Activation memory alone: does a strategy help where the optimizer holds nothing?
//!
//! The ladder of lengths is measured with SGD without momentum, so that what is saved are activations. What
//! passes here says nothing about training with the real optimizer, and is never promoted to it.

use super::candidate::Candidate;
use super::json::{Json, object};
use super::number::{python_list, round};
use super::qualification::QualificationGates;
use crate::error::{Error, ErrorKind, Result};

/// Name of the scope.
pub const ACTIVATION_SCOPE: &str = "activation_memory_isolation";

/// Fields that the ladder shares with the full training.
pub const SHARED_FIELDS: [&str; 5] = ["model_id", "batch_size", "dtype", "seed", "device"];

/// What the ladder shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivationScope {
    /// All gates hold, within the scope.
    pub passed: bool,
    /// Which model.
    pub model_id: Json,
    /// Length at which both sides are compared, in tokens.
    pub comparison_seq_len: Json,
    /// Memory saved, MiB, three decimals.
    pub memory_saving_mb: f64,
    /// Share of throughput kept, six decimals.
    pub throughput_ratio: f64,
    /// Difference of losses, eight decimals.
    pub loss_delta: f64,
    /// Peaks of the baseline and the strategy, MiB.
    pub peaks_mb: [f64; 2],
    /// What had to hold.
    pub gates: QualificationGates,
    /// How the ladder ended.
    pub evidence_status: Json,
    /// Lengths that were measured.
    pub tested_seq_lens: Json,
}

impl ActivationScope {
    /// `accept_for_activation_memory_scope` or `tune`.
    pub fn decision(&self) -> &'static str {
        if self.passed {
            "accept_for_activation_memory_scope"
        } else {
            "tune"
        }
    }

    /// Why.
    pub fn reason(&self) -> &'static str {
        if self.passed {
            "checkpoint_passed_activation_memory_and_throughput_gates"
        } else {
            "checkpoint_failed_activation_scope_gates"
        }
    }

    /// As part of a record, with the artefact it was read from.
    pub fn to_json(&self, evidence: &Json) -> Json {
        object! {
            "scope" => ACTIVATION_SCOPE,
            "decision" => self.decision(),
            "reason" => self.reason(),
            "model_id" => &self.model_id,
            "optimizer" => "SGD",
            "optimizer_momentum" => 0.0,
            "comparison_seq_len" => &self.comparison_seq_len,
            "metrics" => object! {
                "memory_saving_mb" => self.memory_saving_mb,
                "throughput_ratio" => self.throughput_ratio,
                "loss_delta" => self.loss_delta,
                "baseline_peak_memory_mb" => self.peaks_mb[0],
                "checkpoint_peak_memory_mb" => self.peaks_mb[1],
            },
            "gates" => self.gates.to_json(),
            "evidence" => evidence,
            "evidence_status" => &self.evidence_status,
            "tested_seq_lens" => &self.tested_seq_lens,
            "promotable_to_full_training" => false,
            "limitations" => vec![
                "optimizer_state_is_intentionally_removed_with_zero_momentum_sgd",
                "result_does_not_establish_adamw_full_training_adoption",
                "length_ladder_stopped_at_the_safety_boundary",
            ],
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Reads the ladder and weighs the strategy `checkpoint` in it. `full_training_config` is the
/// configuration of the strategies, to which the ladder has to belong.
///
/// # Errors
/// At the first rule that does not hold, in this order: `schema`, `semantic_id`, `comparison_scope`,
/// `shared_identity`, `optimizer`, `missing_checkpoint_comparison`, `missing_length_record`,
/// `missing_length_candidates`, `insufficient_repeats`, and numbers that are missing.
pub fn assess_activation_memory_scope(
    report: &Json,
    full_training_config: &Json,
    gates: &QualificationGates,
) -> Result<ActivationScope> {
    super::role::refuse_profiled(report)?;
    check_activation_identity(report, full_training_config)?;
    let comparison = report
        .at(&["summary", "comparisons"])
        .items()
        .iter()
        .rfind(|comparison| comparison.at(&["name"]).as_str() == Some("checkpoint"))
        .ok_or_else(|| invalid("missing_checkpoint_comparison"))?;
    let comparison_seq_len = comparison.at(&["comparison_seq_len"]);
    let record = report
        .at(&["length_records"])
        .items()
        .iter()
        .find(|record| {
            let seq_len = record.at(&["seq_len"]);
            seq_len.as_f64().is_some() && seq_len == comparison_seq_len
        })
        .ok_or_else(|| invalid("missing_length_record"))?;
    let side = |name: &str| {
        record
            .at(&["candidates"])
            .items()
            .iter()
            .rfind(|candidate| candidate.at(&["name"]).as_str() == Some(name))
            .ok_or_else(|| invalid("missing_length_candidates"))
            .and_then(Candidate::read_scope_limited)
    };
    let sides = [side("baseline")?, side("checkpoint")?];
    let is_repeated = sides
        .iter()
        .all(|side| side.is_ok() && side.successful_runs.is_some_and(|runs| runs >= 3));
    if !is_repeated {
        return Err(invalid("insufficient_repeats"));
    }
    let [base, checkpoint] = &sides;
    let number = |measure: super::measure::Measure, what: &str| {
        let missing = || invalid(format!("missing_metric {what}"));
        measure.value().ok_or_else(missing)
    };
    let peaks_mb = [
        number(base.peak_memory_mb, "baseline.peak_memory_mb")?,
        number(checkpoint.peak_memory_mb, "checkpoint.peak_memory_mb")?,
    ];
    let pace = [
        number(base.samples_per_s, "baseline.samples_per_s")?,
        number(checkpoint.samples_per_s, "checkpoint.samples_per_s")?,
    ];
    if pace[0] <= 0.0 {
        return Err(invalid("missing_metric baseline.samples_per_s"));
    }
    let losses = [
        number(base.eval_or_train_loss, "baseline.eval_loss")?,
        number(checkpoint.eval_or_train_loss, "checkpoint.eval_loss")?,
    ];
    let saving = peaks_mb[0] - peaks_mb[1];
    let ratio = pace[1] / pace[0];
    let loss_delta = (losses[1] - losses[0]).abs();
    let passed = saving >= gates.minimum_memory_saving_mb
        && ratio >= gates.minimum_throughput_ratio
        && loss_delta <= gates.maximum_loss_delta
        && comparison.at(&["accepted"]).is_true();
    let tested = report.at(&["summary"]).get("tested_seq_lens").cloned();
    Ok(ActivationScope {
        passed,
        model_id: report.at(&["config", "model_id"]).clone(),
        comparison_seq_len: comparison_seq_len.clone(),
        memory_saving_mb: round(saving, 3),
        throughput_ratio: round(ratio, 6),
        loss_delta: round(loss_delta, 8),
        peaks_mb,
        gates: *gates,
        evidence_status: report.at(&["status"]).clone(),
        tested_seq_lens: tested.unwrap_or_else(|| Json::List(Vec::new())),
    })
}

/// Checks that the ladder is one, and of the same training as `full_training_config`.
///
/// # Errors
/// At the first rule that does not hold.
pub fn check_activation_identity(report: &Json, full_training_config: &Json) -> Result<()> {
    check_activation_ids(report)?;
    check_activation_scope(report)?;
    check_shared_identity(report, full_training_config)?;
    check_activation_optimizer(report)
}

/// Checks that the ladder is a report of strategies.
///
/// # Errors
/// `schema` or `semantic_id`, with what is there.
pub fn check_activation_ids(report: &Json) -> Result<()> {
    for (key, wanted, code) in [
        (
            "schema_version",
            "training-performance-project/v1",
            "schema",
        ),
        ("semantic_id", "PERF-MEMORY-STRATEGY", "semantic_id"),
    ] {
        let found = report.at(&[key]);
        if found.as_str() != Some(wanted) {
            return Err(invalid(format!(
                "{code}: {} is not {wanted}",
                found.to_line()
            )));
        }
    }
    Ok(())
}

/// Checks that the ladder says that it isolates activation memory.
///
/// # Errors
/// `comparison_scope`, with what is there.
pub fn check_activation_scope(report: &Json) -> Result<()> {
    let scope = report.at(&["config", "comparison_scope"]);
    if scope.as_str() != Some(ACTIVATION_SCOPE) {
        let message = format!(
            "comparison_scope: {} is not {ACTIVATION_SCOPE}",
            scope.to_line()
        );
        return Err(invalid(message));
    }
    Ok(())
}

/// Checks that the ladder is of the same training as `full_training_config`.
///
/// # Errors
/// `shared_identity`, with the fields that differ.
pub fn check_shared_identity(report: &Json, full_training_config: &Json) -> Result<()> {
    let config = report.at(&["config"]);
    let mismatches: Vec<&str> = SHARED_FIELDS
        .into_iter()
        .filter(|field| config.at(&[field]) != full_training_config.at(&[field]))
        .collect();
    if !mismatches.is_empty() {
        let message = format!("shared_identity {}", python_list(&mismatches));
        return Err(invalid(message));
    }
    Ok(())
}

/// Checks that the optimizer of the ladder holds nothing.
///
/// # Errors
/// `optimizer`, with what is there.
pub fn check_activation_optimizer(report: &Json) -> Result<()> {
    let config = report.at(&["config"]);
    let momentum = config.at(&["optimizer_momentum"]).as_f64();
    let without_momentum = momentum.is_some_and(|momentum| momentum == 0.0);
    if config.at(&["optimizer"]).as_str() != Some("SGD") || !without_momentum {
        let message = format!(
            "optimizer: {} with momentum {} is not SGD with momentum 0.0",
            config.at(&["optimizer"]).to_line(),
            config.at(&["optimizer_momentum"]).to_line()
        );
        return Err(invalid(message));
    }
    Ok(())
}
