//! The four questions at the end of the chain, answered from a folder of results.

use std::path::Path;

use super::folder::{Found, records_in};
use super::legacy::Form;
use super::normalize::raw_candidates;
use crate::error::Result;
use crate::gate::{
    CLOSURE_SCHEMA, Decision, Json, SummaryFacts, decide_memory_budget_project, object,
    validate_result,
};

/// What a folder of results answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainVerdict {
    /// `complete` when every answer is yes, else `incomplete`.
    pub complete: bool,
    /// The decision of the closing record, where there is one.
    pub decision: Option<Decision>,
    /// The answers, and the files that were left out.
    pub record: Json,
}

/// What a question is answered with.
struct Answer {
    question: &'static str,
    evidence: Vec<String>,
    /// What stands against a yes.
    missing: Vec<String>,
}

impl Answer {
    fn is_yes(&self) -> bool {
        self.missing.is_empty()
    }

    fn to_json(&self) -> Json {
        let answer = if self.is_yes() {
            "yes"
        } else if self.evidence.is_empty() {
            "not_measured"
        } else {
            "no"
        };
        object! {
            "question" => self.question,
            "answer" => answer,
            "evidence" => self.evidence.clone(),
            "missing" => self.missing.clone(),
        }
    }
}

/// Reads every record in `folder`, not below it, and answers: is the baseline reproducible (73), were
/// candidates and costs compared (76), is the decision stable over budgets (75), does profiling explain it
/// (74)? Of several records of one form, the last by name counts. Files that are no results are told.
///
/// # Errors
/// When the folder cannot be read or holds no result.
pub fn checklist(folder: &Path) -> Result<ChainVerdict> {
    let (found, skipped) = records_in(folder)?;
    let last = |form: Form| found.iter().rfind(|one| one.form == form);
    let closure = last(Form::Closure);
    let answers = [
        baseline(last(Form::Baseline)),
        strategies(last(Form::Strategy)),
        budget(
            [last(Form::BudgetEvidence), last(Form::BudgetDecision)]
                .into_iter()
                .flatten()
                .collect(),
        ),
        profiling(closure),
    ];
    let complete = answers.iter().all(Answer::is_yes);
    // A closing record that does not hold decides nothing.
    let told = closure
        .filter(|one| faults(&one.record).is_empty())
        .map(|one| one.record.at(&["decision"]));
    let decision =
        told.and_then(|decision| Decision::from_name(decision.at(&["decision"]).as_str()?));
    let files: Vec<Json> = found
        .iter()
        .map(|one| object! {"file" => one.name.as_str(), "form" => one.form.as_str()})
        .collect();
    let answers: Vec<Json> = answers.iter().map(Answer::to_json).collect();
    Ok(ChainVerdict {
        complete,
        decision,
        record: object! {
            "schema_version" => "tracekit.checklist/v1",
            "chain" => if complete { "complete" } else { "incomplete" },
            "decision" => told.cloned(),
            "answers" => answers,
            "files" => files,
            "skipped" => skipped,
            "tool" => super::workspace::tool(),
        },
    })
}

/// What is wrong with a closing record of today.
fn faults(closure: &Json) -> Vec<String> {
    if closure.at(&["schema_version"]).as_str() == Some(CLOSURE_SCHEMA) {
        validate_result(closure)
    } else {
        Vec::new()
    }
}

fn answer(question: &'static str, records: &[&Found]) -> Answer {
    Answer {
        question,
        evidence: records.iter().map(|one| one.name.clone()).collect(),
        missing: Vec::new(),
    }
}

fn baseline(found: Option<&Found>) -> Answer {
    let records: Vec<&Found> = found.into_iter().collect();
    let mut answer = answer("73: is the training baseline reproducible?", &records);
    let Some(found) = found else {
        answer.missing.push("no training baseline".to_owned());
        return answer;
    };
    let config = found.record.at(&["config"]);
    for field in [
        "model_id",
        "batch_size",
        "seq_len",
        "dtype",
        "optimizer",
        "warmup",
        "iters",
        "seed",
        "device",
        "torch",
    ] {
        if config.at(&[field]).is_null() {
            answer.missing.push(format!("config.{field}"));
        }
    }
    for side in ["baseline", "tuned"] {
        let runs = found.record.at(&[side, "runs"]).items().len();
        if runs < 3 {
            answer
                .missing
                .push(format!("three runs of {side}, not {runs}"));
        }
        if found.record.at(&[side, "loss"]).as_f64().is_none() {
            answer.missing.push(format!("the loss of {side}"));
        }
    }
    answer
}

fn strategies(found: Option<&Found>) -> Answer {
    let records: Vec<&Found> = found.into_iter().collect();
    let mut answer = answer("76: were candidates and their costs compared?", &records);
    let Some(found) = found else {
        answer.missing.push("no report of strategies".to_owned());
        return answer;
    };
    let candidates = raw_candidates(&found.record);
    for wanted in ["baseline", "checkpoint", "offload", "hybrid"] {
        let candidate = candidates
            .iter()
            .find(|candidate| candidate.at(&["name"]).as_str() == Some(wanted));
        let Some(candidate) = candidate else {
            answer.missing.push(format!("the candidate {wanted}"));
            continue;
        };
        if candidate.at(&["status"]).as_str() == Some("oom") {
            continue;
        }
        let runs = candidate.at(&["runs"]).items().len();
        if runs < 3 {
            answer
                .missing
                .push(format!("three runs of {wanted}, not {runs}"));
        }
        for keys in [
            &["peak_memory_mb", "peak_mem_mb"][..],
            &["samples_per_s"],
            &["eval_loss", "val_loss"],
        ] {
            if candidate.first(keys).as_f64().is_none() {
                answer.missing.push(format!("{} of {wanted}", keys[0]));
            }
        }
    }
    if !found.record.at(&["summary"]).is_object() {
        answer
            .missing
            .push("a summary that counts runs out of memory".to_owned());
    }
    answer
}

fn budget(found: Vec<&Found>) -> Answer {
    let mut answer = answer("75: is the decision stable over several budgets?", &found);
    for one in &found {
        let decision = one.record.at(&["decision"]);
        let facts = SummaryFacts::read(one.record.at(&["summary"]));
        let follows = facts.map(|facts| decide_memory_budget_project(&facts).to_json());
        if decision.is_object() && follows.is_ok_and(|follows| follows != *decision) {
            let fault = format!("a decision that follows from its summary in {}", one.name);
            answer.missing.push(fault);
        }
    }
    let grid = found
        .iter()
        .rfind(|one| one.record.at(&["sensitivity_summary"]).is_object());
    match grid {
        None if found.is_empty() => answer.missing.push("no budget evidence".to_owned()),
        None => answer.missing.push("a grid of thresholds".to_owned()),
        Some(grid) => {
            let summary = grid.record.at(&["sensitivity_summary"]);
            if summary.at(&["interpretation"]).as_str() != Some("stable") {
                let decisions = summary.at(&["decision_counts"]).to_line();
                answer.missing.push(format!(
                    "a stable choice: it is sensitive to thresholds (decisions {decisions})"
                ));
            }
        }
    }
    answer
}

fn profiling(found: Option<&Found>) -> Answer {
    let records: Vec<&Found> = found.into_iter().collect();
    let mut answer = answer(
        "74: does profiling explain the end-to-end result?",
        &records,
    );
    let Some(found) = found else {
        answer.missing.push("no closing record".to_owned());
        return answer;
    };
    for fault in faults(&found.record) {
        let fault = format!("a closing record that holds: {fault}");
        answer.missing.push(fault);
    }
    if found.record.at(&["profile", "status"]).as_str() != Some("collected") {
        answer.missing.push("traces".to_owned());
    }
    for name in found.record.at(&["profile", "missing_strategies"]).items() {
        answer
            .missing
            .push(format!("a trace of {}", name.to_line()));
    }
    let told = found
        .record
        .at(&["bottleneck"])
        .items()
        .iter()
        .filter(|one| {
            ["supported", "refuted"].contains(&one.at(&["status"]).as_str().unwrap_or_default())
        })
        .count();
    if told == 0 {
        answer
            .missing
            .push("a hypothesis that the evidence supports or refutes".to_owned());
    }
    answer
}
