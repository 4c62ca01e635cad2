//! Decisions beside traces: what gates and records of the evidence chain decided, as parts of a report.
//!
//! ```text
//! verdict of a gate ─┐
//! 73, 76, 75, 74 ────┼─→ headline → scopes (picture) → candidates, gates → grid (picture) → hypotheses → inputs
//! checklist ─────────┘
//! ```
//! A record is shown as it is: nothing is decided again, and every number is one of the record.

mod grid;
mod picture;
mod scope;
mod table;
mod verdict;

use super::document::{Block, Document, Note, Section, Table};
use crate::error::{Error, ErrorKind, Result};
use crate::evidence::{Form, identify};
use crate::gate::{CLOSURE_SCHEMA, Decision, Json, VERDICT_SCHEMA, headline, validate_result};

/// Rows that a table has at most.
const MOST_ROWS: usize = 2_000;

pub use picture::{DecisionCell, DecisionGrid, DecisionScope, DecisionScopes, GateBar};
pub use verdict::verdict_document;

/// What `record` decided, as sections of a report; `name` tells it apart from others.
///
/// # Errors
/// When it is no verdict, no record of the chain, or one without a decision.
pub fn decision_sections(record: &Json, name: &str) -> Result<Vec<Section>> {
    let mut sections = if record.at(&["schema_version"]).as_str() == Some(VERDICT_SCHEMA) {
        verdict::sections(record)?
    } else {
        vec![of_chain(record)?]
    };
    for block in sections.iter_mut().flat_map(|section| &mut section.blocks) {
        if let Block::Table(table) = block {
            cut(table);
        }
    }
    if let Some(first) = sections.first_mut() {
        first
            .blocks
            .push(Block::Notes(vec![Note::new("file", name)]));
    }
    Ok(sections)
}

/// At most so many rows as a page can show: records may have any number.
fn cut(table: &mut Table) {
    let rows = table.rows.len();
    if rows > MOST_ROWS {
        table.rows.truncate(MOST_ROWS);
        table.caption = format!("{} (the first {MOST_ROWS} of {rows} rows)", table.caption);
    }
}

/// `sections` as a report of their own.
pub fn decision_document(sections: Vec<Section>) -> Document {
    let lead = sections.iter().find_map(|section| {
        section.blocks.iter().find_map(|block| match block {
            Block::Paragraph(text) => Some(text.clone()),
            _ => None,
        })
    });
    Document {
        title: "Decisions".to_owned(),
        lead: lead.unwrap_or_default(),
        sections,
    }
}

/// The pictures of several decision files have names of their own.
pub fn number_pictures(sections: &mut [Section]) {
    let mut seen: Vec<String> = Vec::new();
    for block in sections.iter_mut().flat_map(|section| &mut section.blocks) {
        if let Block::Chart(chart) = block {
            let before = seen.iter().filter(|name| **name == chart.name).count();
            seen.push(chart.name.clone());
            if before > 0 {
                chart.name = format!("{}-{}", chart.name, before + 1);
            }
        }
    }
}

/// The decision that a word in a record stands for.
fn decision_of(word: &Json) -> Option<Decision> {
    let word = word.as_str()?;
    Decision::from_name(word)
        .or_else(|| word.starts_with("accept_for_").then_some(Decision::Accept))
}

/// A record of the chain, or the answers of its checklist.
fn of_chain(record: &Json) -> Result<Section> {
    let is_checklist = record.at(&["answers"]).is_list() && record.get("chain").is_some();
    let title = if is_checklist {
        "Evidence chain".to_owned()
    } else {
        title(identify(record)?.form, record)
    };
    let decision = record.at(&["decision"]);
    let scopes = record.at(&["decision_scopes"]);
    let mut blocks = Vec::new();
    if is_checklist {
        let chain = record.at(&["chain"]).as_str().unwrap_or_default();
        let told = if decision.is_object() {
            format!("chain {chain}; {}", headline(decision))
        } else {
            format!("chain {chain}")
        };
        blocks.push(Block::Paragraph(told));
        blocks.push(Block::Table(table::answers(
            record.at(&["answers"]).items(),
        )));
    } else if decision_of(decision.at(&["decision"])).is_some() {
        blocks.push(Block::Paragraph(headline(decision)));
    } else if scopes.is_object() {
        // A hand-off has its decision among the scopes.
        blocks.push(Block::Paragraph(headline(
            scopes.at(&["full_training_adoption"]),
        )));
    } else {
        let message = "holds no decision";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if record.at(&["schema_version"]).as_str() == Some(CLOSURE_SCHEMA) {
        let faults = validate_result(record).into_iter();
        let faults: Vec<Note> = faults.map(|fault| Note::new("invalid", fault)).collect();
        blocks.extend((!faults.is_empty()).then_some(Block::Notes(faults)));
    }
    let candidates = [&["candidate_records"][..], &["candidates"]]
        .into_iter()
        .map(|path| record.at(path).items())
        .find(|items| !items.is_empty())
        .unwrap_or_default();
    let (judged, measured): (Vec<&Json>, Vec<&Json>) = candidates
        .iter()
        .partition(|one| one.get("failed_gates").is_some());
    blocks.extend(scope::blocks(scopes, &judged));
    let sides = ["baseline", "tuned"].map(|side| (side, record.at(&[side])));
    let sides = sides.into_iter().filter(|(_, side)| side.is_object());
    let evaluations = record.at(&["summary", "evaluations"]).items();
    blocks.extend(table::measured(&measured, evaluations, sides).map(Block::Table));
    blocks.extend(
        table::limits(record.at(&["budget"]), record.at(&["quality_floor"])).map(Block::Table),
    );
    blocks.extend(grid::blocks(
        record.at(&["sensitivity"]).items(),
        record.at(&["sensitivity_summary"]),
        &[],
    ));
    blocks.extend(table::hypotheses(record.at(&["bottleneck"]).items()).map(Block::Table));
    blocks.extend(table::inputs(record).map(Block::Notes));
    Ok(Section {
        title: Some(title),
        blocks,
    })
}

fn title(form: Form, record: &Json) -> String {
    let what = match form {
        Form::Baseline => "Training baseline",
        Form::Strategy | Form::ActivationLadder => "Memory strategies",
        Form::BudgetEvidence | Form::BudgetDecision => "Memory budget",
        Form::Closure | Form::Merge => "Closing decision",
        Form::Handoff => "Hand-off",
        _ => "Decision",
    };
    match record.at(&["run_label"]).as_name() {
        Some(label) => format!("{what}: {label}"),
        None => what.to_owned(),
    }
}
