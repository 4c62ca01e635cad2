//! What the codes of decisions and reasons mean.

use crate::error::{Error, ErrorKind, Result};

/// What a code means and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The code.
    pub code: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
}

/// All codes, in the order of the gates.
pub fn explanations() -> &'static [Explanation] {
    EXPLANATIONS
}

/// The explanation of `code`.
///
/// # Errors
/// When no code is called so.
pub fn explain(code: &str) -> Result<Explanation> {
    let found = EXPLANATIONS.iter().find(|known| known.code == code);
    found.copied().ok_or_else(|| {
        let message = format!("no reason is called '{code}'; --explain alone lists them");
        Error::new(ErrorKind::Usage, message)
    })
}

const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: "accept",
        meaning: "Admitted to the next combined test; not yet delivered.",
        action: "Freeze the candidate and its thresholds.",
    },
    Explanation {
        code: "tune",
        meaning: "Evidence is missing, a gain is not large or stable enough, or a cost can still be repaired.",
        action: "See the reasons; measure again or adjust.",
    },
    Explanation {
        code: "reject",
        meaning: "A run or a guardrail failed, or the pairing is invalid.",
        action: "Go back to the baseline and repair it.",
    },
    Explanation {
        code: "time_and_resource_gains_reached",
        meaning: "The step got faster by enough, and memory or throughput better by enough.",
        action: "Keep the change.",
    },
    Explanation {
        code: "time_gain_without_resource_gain",
        meaning: "The step got faster by enough, but memory and throughput not better by enough.",
        action: "Tune on.",
    },
    Explanation {
        code: "no_stable_gain",
        meaning: "The step did not get faster by enough, or memory and throughput got worse.",
        action: "Go back, or look for the bottleneck again.",
    },
    Explanation {
        code: "time_gain_below_threshold",
        meaning: "The step saves less time than asked for.",
        action: "Save more, or lower recommend.min_time_delta_ms.",
    },
    Explanation {
        code: "memory_gain_below_threshold",
        meaning: "Less memory is saved than asked for.",
        action: "Save more, or gain throughput instead.",
    },
    Explanation {
        code: "throughput_gain_below_threshold",
        meaning: "Less throughput is gained than asked for.",
        action: "Gain more, or save memory instead.",
    },
    Explanation {
        code: "baseline_id_missing",
        meaning: "The contract does not name its baseline.",
        action: "Give baseline_id.",
    },
    Explanation {
        code: "candidate_id_missing",
        meaning: "The contract does not name its candidate.",
        action: "Give candidate_id.",
    },
    Explanation {
        code: "changed_variable_missing",
        meaning: "The contract does not say what differs between the two sides.",
        action: "Give changed_variable, and change one thing at a time.",
    },
    Explanation {
        code: "primary_workload_count_invalid",
        meaning: "Not exactly one workload has the role primary.",
        action: "Mark one workload as primary and the others as adjacent.",
    },
    Explanation {
        code: "duplicate_workload_id",
        meaning: "Two workloads have the same name, or none.",
        action: "Name each workload once.",
    },
    Explanation {
        code: "pairing_invalid",
        meaning: "The contract is no valid pairing, so nothing about it can be decided.",
        action: "Repair what the issues name and measure again.",
    },
    Explanation {
        code: "hard_failure_or_primary_missing",
        meaning: "A workload did not end well, or the primary one is not there.",
        action: "Go back to the baseline, repair the run and measure again.",
    },
    Explanation {
        code: "quality_guardrail_failed",
        meaning: "Quality got worse than allowed in a workload; no gain outweighs that.",
        action: "Go back to the baseline and repair quality first.",
    },
    Explanation {
        code: "benefit_or_bottleneck_evidence_incomplete",
        meaning: "The primary workload gained too little, an adjacent one lost too much, or the original bottleneck is not smaller.",
        action: "Adjust the change and run the regression again.",
    },
    Explanation {
        code: "original_bottleneck_not_reduced",
        meaning: "The stage that was the bottleneck takes no less time in the primary workload.",
        action: "Look at what the change moved; the gain is from elsewhere.",
    },
    Explanation {
        code: "memory_growth_over_limit",
        meaning: "A workload takes more memory than regression.max_memory_growth_mb allows.",
        action: "Save memory, or raise the limit.",
    },
    Explanation {
        code: "throughput_loss_over_limit",
        meaning: "A workload loses more throughput than regression.max_throughput_loss allows.",
        action: "Make it cheaper, or raise the limit.",
    },
    Explanation {
        code: "adjacent_workload_missing",
        meaning: "No adjacent workload was measured, and regression.require_adjacent asks for one.",
        action: "Measure another load beside the primary one.",
    },
    Explanation {
        code: "benefit_and_guardrails_passed",
        meaning: "The primary workload gained enough, no workload lost too much, and the original bottleneck is smaller.",
        action: "Freeze the candidate and its thresholds.",
    },
    Explanation {
        code: "missing_or_duplicate_name",
        meaning: "The candidate has no name, or one that came before.",
        action: "Name each candidate once.",
    },
    Explanation {
        code: "oom",
        meaning: "The candidate ran out of memory.",
        action: "Measure it with less, or leave it out.",
    },
    Explanation {
        code: "partial_oom",
        meaning: "Some runs of the candidate ran out of memory; its numbers are of the others.",
        action: "Do not adopt it without headroom.",
    },
    Explanation {
        code: "missing_or_non_numeric_metric",
        meaning: "The peak of memory, the throughput or the loss of evaluation is not there or no number.",
        action: "Measure all three.",
    },
    Explanation {
        code: "memory_over_budget",
        meaning: "The peak of memory is above the cap.",
        action: "Save more memory or raise the cap.",
    },
    Explanation {
        code: "throughput_below_floor",
        meaning: "The throughput is below what is asked for.",
        action: "Make it cheaper or lower the floor.",
    },
    Explanation {
        code: "quality_over_floor",
        meaning: "The loss of evaluation is above its limit. Records call the limit a floor of quality.",
        action: "Recover quality first.",
    },
    Explanation {
        code: "baseline_missing_or_invalid",
        meaning: "There is no baseline that ran well with a peak and a throughput.",
        action: "Run the baseline again before comparing candidates.",
    },
    Explanation {
        code: "no_strategy_meets_budget_and_quality",
        meaning: "No candidate fits the budget and the limit of loss.",
        action: "Use a smaller batch or another plan for memory.",
    },
    Explanation {
        code: "compression_strategy_is_best_feasible_option",
        meaning: "A strategy fits best, saves enough and keeps enough throughput.",
        action: "Promote it to a training run.",
    },
    Explanation {
        code: "compression_needs_quality_recovery",
        meaning: "A candidate is above the limit of loss, and none is good enough without it.",
        action: "Change the scope of checkpointing or the batch.",
    },
    Explanation {
        code: "memory_saving_below_meaningful_threshold",
        meaning: "The best candidate saves less memory than asked for.",
        action: "Try more pressure, or compress the optimizer's state.",
    },
    Explanation {
        code: "throughput_loss_exceeds_budget",
        meaning: "The best candidate keeps too little throughput.",
        action: "Compress less.",
    },
    Explanation {
        code: "baseline_still_best_under_current_budget",
        meaning: "The baseline fits best.",
        action: "Look at the mix of strategies again.",
    },
    Explanation {
        code: "strategy_is_best_feasible_option",
        meaning: "A strategy fits best, saves enough and keeps enough throughput.",
        action: "Promote it to a training run.",
    },
    Explanation {
        code: "strategy_needs_quality_recovery",
        meaning: "A candidate is above the limit of loss, and none is good enough without it.",
        action: "Change the granularity of checkpointing or the scope of offloading.",
    },
    Explanation {
        code: "stable",
        meaning: "The same strategy is best and the same ones fit under all thresholds tried.",
        action: "Go on.",
    },
    Explanation {
        code: "sensitive_to_thresholds",
        meaning: "Which strategy is best, or which ones fit, changes within the thresholds tried.",
        action: "Say which threshold is meant, or measure near the border.",
    },
    Explanation {
        code: "no_scenario_accepts",
        meaning: "Under no thresholds tried is a strategy accepted.",
        action: "Try more pressure, or another strategy.",
    },
    Explanation {
        code: "handoff_not_ready",
        meaning: "The hand-off is not marked ready for review.",
        action: "Finish the comparison of strategies.",
    },
    Explanation {
        code: "workload_mismatch",
        meaning: "The hand-off is of another workload.",
        action: "Measure this workload.",
    },
    Explanation {
        code: "hardware_mismatch",
        meaning: "The hand-off is of other hardware.",
        action: "Measure on this hardware; gains do not carry over.",
    },
    Explanation {
        code: "eligible_candidates_missing",
        meaning: "The hand-off names no eligible candidate.",
        action: "Finish the comparison of strategies.",
    },
    Explanation {
        code: "evidence_not_comparable",
        meaning: "The evidence of this candidate cannot be compared with the baseline's.",
        action: "Measure it under the same contract.",
    },
    Explanation {
        code: "memory_saving_below_floor",
        meaning: "The candidate saves less memory than asked for.",
        action: "Save more, or lower the floor.",
    },
    Explanation {
        code: "quality_delta_over_limit",
        meaning: "Quality is worse than allowed.",
        action: "Recover quality first.",
    },
    Explanation {
        code: "no_candidate_meets_base_budget",
        meaning: "No candidate fits the budget.",
        action: "Change the strategy or the budget.",
    },
    Explanation {
        code: "selection_is_threshold_sensitive",
        meaning: "Stricter thresholds would choose another candidate, or none.",
        action: "Measure near the border.",
    },
    Explanation {
        code: "selection_stable_across_thresholds",
        meaning: "Stricter thresholds choose the same candidate.",
        action: "Send it to regression acceptance.",
    },
    Explanation {
        code: "candidate_status",
        meaning: "The strategy did not run well without the profiler. A hard gate.",
        action: "Repair the run.",
    },
    Explanation {
        code: "memory_saving",
        meaning: "The strategy saves less memory than asked for.",
        action: "Save more; the peak may lie outside of activations.",
    },
    Explanation {
        code: "throughput_ratio",
        meaning: "The strategy keeps too little throughput.",
        action: "Make it cheaper.",
    },
    Explanation {
        code: "loss_delta",
        meaning: "The loss differs more than allowed. A hard gate.",
        action: "Find out why: a memory strategy must not change the loss.",
    },
    Explanation {
        code: "budget_feasibility",
        meaning: "The strategy does not fit the budget. A hard gate.",
        action: "See its reasons in the budget decision.",
    },
    Explanation {
        code: "strategy_measurement",
        meaning: "The strategy was profiled but not measured without the profiler.",
        action: "Measure it.",
    },
    Explanation {
        code: "baseline_measurement",
        meaning: "There is no baseline measured without the profiler.",
        action: "Measure it.",
    },
    Explanation {
        code: "repeated_measurements",
        meaning: "Fewer than three runs ended well.",
        action: "Run each side at least three times.",
    },
    Explanation {
        code: "peak_memory_mb",
        meaning: "A side lacks its peak of memory.",
        action: "Measure it.",
    },
    Explanation {
        code: "samples_per_s",
        meaning: "A side lacks its throughput.",
        action: "Measure it.",
    },
    Explanation {
        code: "eval_loss",
        meaning: "A side lacks its loss.",
        action: "Measure it.",
    },
    Explanation {
        code: "budget_evaluation",
        meaning: "The budget decision does not judge the strategy.",
        action: "Run the budget analysis on the same report.",
    },
    Explanation {
        code: "profile_trace",
        meaning: "The profile of the strategy did not end well or names no trace.",
        action: "Profile it again.",
    },
    Explanation {
        code: "checkpoint_passed_activation_memory_and_throughput_gates",
        meaning: "Checkpointing passed within the scope of activation memory. That says nothing about full training.",
        action: "Keep the decision to its scope.",
    },
    Explanation {
        code: "checkpoint_failed_activation_scope_gates",
        meaning: "Checkpointing failed a gate within the scope of activation memory.",
        action: "See the metrics beside the gates.",
    },
    Explanation {
        code: "insufficient_repeats",
        meaning: "A side of the ladder did not run well three times.",
        action: "Run it again.",
    },
    Explanation {
        code: "missing_checkpoint_comparison",
        meaning: "The ladder has no comparison named checkpoint.",
        action: "Compare it.",
    },
    Explanation {
        code: "missing_length_record",
        meaning: "The ladder has no record of the length compared.",
        action: "Measure that length.",
    },
    Explanation {
        code: "missing_length_candidates",
        meaning: "The record of the length compared lacks the baseline or the checkpoint.",
        action: "Measure both.",
    },
    Explanation {
        code: "shared_identity",
        meaning: "The ladder is of another model, batch, type, seed or device.",
        action: "Measure the same training.",
    },
    Explanation {
        code: "comparison_scope",
        meaning: "The ladder does not say that it isolates activation memory.",
        action: "Use a ladder that does.",
    },
    Explanation {
        code: "workload_identity_mismatch",
        meaning: "Two reports are of different workloads; the fields that differ are named.",
        action: "Measure the same workload.",
    },
    Explanation {
        code: "semantic_id_mismatch",
        meaning: "A report is not what it is taken for; what each says is shown.",
        action: "Give the right files.",
    },
    Explanation {
        code: "profile_identity",
        meaning: "The profile is of another model, batch or length than the strategies.",
        action: "Profile the same workload.",
    },
    Explanation {
        code: "pressure_identity",
        meaning: "The pressure run is of another training.",
        action: "Measure the same training at a greater length.",
    },
    Explanation {
        code: "pressure_seq_len",
        meaning: "The pressure run is not longer.",
        action: "Measure a greater length.",
    },
    Explanation {
        code: "evidence_role",
        meaning: "The record was measured under a profiler or at phase borders: it explains and does not decide.",
        action: "Give measurements without a profiler.",
    },
    Explanation {
        code: "invalid_memory_budget",
        meaning: "Fields of the budget are missing or out of range; they are named.",
        action: "Complete the budget.",
    },
    Explanation {
        code: "at_least_one_candidate_passed_profiling_qualification",
        meaning: "A profiled strategy passed all gates with its unprofiled measurements.",
        action: "Write the hand-off to the combined test. That admits it; it is not delivery.",
    },
    Explanation {
        code: "global_peak_memory_saving_below_threshold",
        meaning: "Everything holds but the memory saved at the global peak.",
        action: "Keep the evidence by phase; do not adopt at this workload.",
    },
    Explanation {
        code: "candidate_requires_more_evidence_or_threshold_tuning",
        meaning: "A strategy lacks evidence or failed a gate that tuning can repair.",
        action: "See failed_gates and missing_evidence.",
    },
    Explanation {
        code: "all_candidates_failed_hard_gates",
        meaning: "Every strategy failed a hard gate, or there is none.",
        action: "Restore the baseline.",
    },
    Explanation {
        code: "interval_clears_threshold",
        meaning: "The confidence interval lies on the good side of the threshold.",
        action: "Nothing.",
    },
    Explanation {
        code: "interval_straddles_threshold",
        meaning: "The confidence interval holds the threshold: the repeats do not tell.",
        action: "Add repeats; the least number is told.",
    },
    Explanation {
        code: "interval_misses_threshold",
        meaning: "The confidence interval lies on the bad side of the threshold.",
        action: "The change does not reach the threshold.",
    },
    Explanation {
        code: "inconclusive",
        meaning: "The repeats do not tell: an interval holds its threshold, or cannot be told.",
        action: "Add repeats; the least number is told beside each metric.",
    },
    Explanation {
        code: "too_few_repeats",
        meaning: "There are fewer repeats than the wanted resolution needs.",
        action: "Add repeats.",
    },
    Explanation {
        code: "drift",
        meaning: "Repeats go up or down in order: the machine warmed up, throttled or was shared.",
        action: "Let the machine settle and alternate the sides.",
    },
    Explanation {
        code: "outlier",
        meaning: "A repeat lies far from the others of its side.",
        action: "Look at that run; do not drop it without a reason.",
    },
    Explanation {
        code: "no_repeats",
        meaning: "A side has fewer than two repeats with this metric.",
        action: "Keep the runs of each side.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_there_once() {
        for (place, known) in EXPLANATIONS.iter().enumerate() {
            let before = &EXPLANATIONS[..place];
            assert!(
                before.iter().all(|other| other.code != known.code),
                "{}",
                known.code
            );
            assert!(known.meaning.ends_with('.') && known.action.ends_with('.'));
        }
        assert_eq!(explain("oom").unwrap().code, "oom");
        assert!(explain("nothing").is_err());
    }
}
