//! Decision gates: pure functions over typed records.
//!
//! ```text
//! unprofiled repeats ─→ strategies ─→ budget ─→ sensitivity ─┐
//!                                                            ├─→ qualification ─→ closure: accept, tune, reject
//! profiles, phase memory ─→ names and presence ──────────────┘
//!            └─→ bottleneck assessments (explain, never decide)
//! ```
//! But for [`benchmark_fn`], which times a function, nothing here reads a clock, a file or a device; the same records give the same decisions. Limits are
//! inclusive, comparisons see unrounded numbers, ties go to what was written first. What was not measured,
//! is not applicable, invalid or zero are different things ([`Measure`]). Which numbers may decide is a matter
//! of types ([`Role`]).

mod activation;
mod benchmark;
mod bottleneck;
mod candidate;
mod closure;
mod code;
mod experiment;
mod handoff;
mod identity;
mod json;
mod judgement;
mod measure;
mod number;
mod optimization;
mod phase_memory;
mod pressure;
mod qualification;
mod regression;
mod repeats;
mod report;
mod role;
mod screening;
mod sensitivity;
mod statistics;
mod strategies;
mod thresholds;
mod verdict;

pub use activation::{
    ACTIVATION_SCOPE, ActivationScope, SHARED_FIELDS, assess_activation_memory_scope,
    check_activation_identity, check_activation_ids, check_activation_optimizer,
    check_activation_scope, check_shared_identity,
};
pub use benchmark::benchmark_fn;
pub use bottleneck::{Assessment, Finding, infer_bottleneck_assessments};
pub use candidate::Candidate;
pub use closure::{CLOSURE_SCHEMA, FULL_TRAINING, closure_decision, validate_result};
pub use code::{Explanation, explain, explanations};
pub use experiment::{standard_experiment_config, standard_training_metrics};
pub use handoff::{build_budget_handoff, workload_id};
pub use identity::{
    IDENTITY_FIELDS, PROFILE_FIELDS, build_workload_identity, check_semantic_ids,
    mismatching_fields,
};
pub(crate) use json::object;
pub use json::{Fields, Json};
pub use judgement::{
    Check, VERDICT_SCHEMA, Verdict, headline, input_artifact, judge_activation_scope, judge_budget,
    judge_qualification, judge_recommendation, judge_regression, judge_sensitivity,
    judge_strategies, recommendation_summary,
};
pub use measure::Measure;
pub(crate) use number::python_list;
pub use number::{python_repr, round};
pub use optimization::{
    BaselineSummary, EndToEnd, OptimizationSummary, RecommendationGates, decide_training_baseline,
    format_optimization_report, recommend_optimization_decision, summarize_optimization_result,
    summarize_training_baseline,
};
pub use phase_memory::{
    PHASE_EVIDENCE_LEVEL, PHASE_SCHEMA, PHASES, TRACE_EVIDENCE_LEVEL, summarize_phase_candidates,
    summarize_phase_memory_runs, validate_phase_memory_result,
};
pub use pressure::check_pressure_config;
pub use qualification::{
    CandidateRecord, Qualification, QualificationGates, QualificationMetrics,
    qualify_memory_candidates,
};
pub use regression::{
    AdoptionDecision, ContractCheck, RegressionEvidence, RegressionGates, RegressionRow,
    build_regression_evidence, decide_regression_adoption, validate_regression_contract,
    workload_records,
};
pub use repeats::{RunStatus, aggregate_repeats, run_status};
pub use report::{
    BudgetEvaluations, ProfileCoverage, ProfileReport, StrategyReport, TraceTimes, artifact,
    is_sha256,
};
pub use role::{
    ACTIVATION_METRICS, ADOPTION_METRICS, PHASE_METRICS, PROFILER_METRICS, PhasePeaks, Profiled,
    Role, ScopeLimited, Unprofiled, evidence_roles, refuse_profiled,
};
pub use screening::{
    HandedCandidate, ScreeningBudget, ScreeningResult, Selection, decide_budget_sensitivity,
    evaluate_budget_candidates, validate_budget_evidence,
};
pub use sensitivity::{
    Grid, RelativeGrid, SensitivityRow, SensitivitySummary, sensitivity_rows, summarize_sensitivity,
};
pub use statistics::{
    Bounds, MetricVerdict, Samples, StatisticalVerdict, StatisticsOptions, judge_samples,
    regression_samples, strategy_samples,
};
pub use strategies::{
    BudgetCheck, Evaluation, MemoryBudget, StrategySummary, SummaryFacts,
    decide_memory_budget_project, decide_memory_strategy_project, summarize_memory_strategies,
    validate_memory_budget,
};
pub use thresholds::{
    BudgetThresholds, DEFAULT_THRESHOLDS, HardwareProfile, ModelProfile, PhaseThresholds,
    Thresholds,
};
pub use verdict::{Decision, Outcome};

pub use crate::inspect::{RooflineEstimate, estimate_roofline};
