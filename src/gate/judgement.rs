//! Verdicts: each gate from its input to a decision with its checks.

mod change;
mod memory;

use super::json::{Json, object};
use super::report::artifact;
use super::verdict::{Decision, Outcome};

pub use change::{judge_recommendation, judge_regression, recommendation_summary};
pub use memory::{
    judge_activation_scope, judge_budget, judge_qualification, judge_sensitivity, judge_strategies,
};

/// Schema of a verdict.
pub const VERDICT_SCHEMA: &str = "tracekit.gate/v1";

/// What a gate says about its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which gate.
    pub gate: &'static str,
    /// The decision, by which a program ends.
    pub decision: Decision,
    /// The decision in the gate's own word, such as `accept_for_activation_memory_scope`.
    pub word: String,
    /// Why, as a code or sentence.
    pub reason: String,
    /// The code for a reason that is a sentence.
    pub reason_code: Option<&'static str>,
    /// What to do now.
    pub next_action: Option<String>,
    /// What was looked at, one by one.
    pub checks: Vec<Check>,
    /// The gate's own record.
    pub result: Json,
    /// Files that were read, as artefacts.
    pub inputs: Vec<Json>,
    /// Repeats as samples, when that was asked for; stands beside the decision and never replaces it.
    pub statistics: Option<Json>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What: a candidate, a workload, a metric.
    pub subject: String,
    /// What became of it.
    pub status: String,
    /// It stands against the candidate.
    pub failed: bool,
    /// Why, as codes.
    pub codes: Vec<String>,
    /// The numbers.
    pub detail: String,
}

impl Verdict {
    fn new(gate: &'static str, outcome: &Outcome, checks: Vec<Check>, result: Json) -> Self {
        Self {
            gate,
            decision: outcome.decision,
            word: outcome.decision.as_str().to_owned(),
            reason: outcome.reason.to_owned(),
            reason_code: None,
            next_action: outcome.next_action.map(str::to_owned),
            checks,
            result,
            inputs: Vec::new(),
            statistics: None,
        }
    }

    /// The verdict in one line: decision, reason, next action.
    pub fn headline(&self) -> String {
        headline(&self.to_json())
    }

    /// As a record.
    pub fn to_json(&self) -> Json {
        let checks: Vec<Json> = self
            .checks
            .iter()
            .map(|check| {
                object! {
                    "subject" => check.subject.as_str(),
                    "status" => check.status.as_str(),
                    "failed" => check.failed,
                    "codes" => check.codes.clone(),
                    "detail" => check.detail.as_str(),
                }
            })
            .collect();
        let mut record = object! {
            "schema_version" => VERDICT_SCHEMA,
            "tool" => object! {"name" => "tracekit", "version" => env!("CARGO_PKG_VERSION")},
            "gate" => self.gate,
            "decision" => self.word.as_str(),
            "reason" => self.reason.as_str(),
            "next_action" => self.next_action.clone(),
            "checks" => checks,
            "result" => &self.result,
            "inputs" => self.inputs.clone(),
        };
        if let Some(code) = self.reason_code {
            record.set("reason_code", code);
        }
        if let Some(statistics) = &self.statistics {
            record.set("statistics", statistics);
        }
        record
    }
}

/// Decision, reason and next action of a record in one line. A reason that is a sentence stands behind its code.
pub fn headline(record: &Json) -> String {
    let text = |key: &str| record.at(&[key]).as_str();
    let decision = text("decision").unwrap_or("no decision");
    let reason = match (text("reason_code"), text("reason")) {
        (Some(code), Some(reason)) => format!(": {code} ({reason})"),
        (None, Some(reason)) => format!(": {reason}"),
        _ => String::new(),
    };
    let next = text("next_action").map_or_else(String::new, |next| format!("; next: {next}"));
    format!("{decision}{reason}{next}")
}

fn check(subject: &str, status: &str, failed: bool, codes: &[&str], detail: String) -> Check {
    Check {
        subject: subject.to_owned(),
        status: status.to_owned(),
        failed,
        codes: codes.iter().map(|code| (*code).to_owned()).collect(),
        detail,
    }
}

fn shown(name: &Json) -> String {
    name.as_str().map_or_else(|| name.to_line(), str::to_owned)
}

/// An artefact for a file that a gate read, by the hash of its bytes.
pub fn input_artifact(path: &str, bytes: &[u8]) -> Json {
    use sha2::{Digest as _, Sha256};
    use std::fmt::Write as _;
    let mut sha256 = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(sha256, "{byte:02x}");
    }
    artifact(path, &sha256)
}
