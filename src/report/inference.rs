//! Inferences as a document: the largest supported effect first.

use super::document::{Block, Column, Document, Note, Row, Section, Table, Value};
use super::findings::{in_brief, left_out};
use super::name::{shortened, visible};
use super::number::{counted, mib, ms, number, percent};
use crate::infer::{
    Effect, Evidence, Inference, Inferences, Number, Ratio, RuleText, RunInferences, Verdict,
};
use crate::units::Ns;

/// Names in evidence have at most so many columns.
const LONGEST_NAME: usize = 100;

/// `inferences` as a report. Evidence of hypotheses that are not supported is told when `verbose`.
pub fn inferences_document(inferences: &Inferences, verbose: bool) -> Document {
    let mut document = of_runs(inferences, verbose);
    let mut notes = left_out(&inferences.skipped, verbose);
    let health = in_brief(&inferences.health, verbose);
    let health = health.unwrap_or_else(|| "nothing unusual".to_owned());
    notes.push(Note::new("health", health));
    document.sections.push(Section {
        title: None,
        blocks: vec![Block::Notes(notes)],
    });
    document
}

/// The same without what is wrong with the inputs.
fn of_runs(inferences: &Inferences, verbose: bool) -> Document {
    let several = inferences.runs.len() > 1;
    let mut sections = Vec::new();
    for run in &inferences.runs {
        let title = several.then(|| run.run.clone());
        let mut blocks = Vec::new();
        if several {
            blocks.push(Block::Paragraph(verdict_of(run)));
        }
        blocks.push(Block::Notes(ratios(run)));
        blocks.push(Block::Table(verdicts(run)));
        sections.push(Section { title, blocks });
        let told = run
            .inferences
            .iter()
            .filter(|inference| verbose || inference.verdict == Verdict::Supported);
        sections.extend(told.map(|inference| Section {
            title: Some(if several {
                format!("{}: {}", run.run, inference.code)
            } else {
                inference.code.clone()
            }),
            blocks: vec![Block::Notes(details(run, inference))],
        }));
    }
    Document {
        title: "Inferences".to_owned(),
        lead: match inferences.runs.as_slice() {
            [run] => verdict_of(run),
            runs => counted(runs.len() as u64, "run"),
        },
        sections,
    }
}

/// `inferences` as a section of a page, which tells elsewhere what is wrong with the inputs.
pub fn inferences_section(inferences: &Inferences, verbose: bool) -> Section {
    let document = of_runs(inferences, verbose);
    let mut blocks = vec![Block::Paragraph(document.lead)];
    for section in document.sections {
        let mut own = section.blocks;
        match (section.title, own.first_mut()) {
            (Some(title), Some(Block::Notes(notes))) => notes.insert(0, Note::new("rule", title)),
            (title, _) => blocks.extend(title.map(Block::Paragraph)),
        }
        blocks.append(&mut own);
    }
    Section {
        title: Some("What limits the run".to_owned()),
        blocks,
    }
}

/// The answer in one sentence.
fn verdict_of(run: &RunInferences) -> String {
    let mut supported = run
        .inferences
        .iter()
        .filter(|inference| inference.verdict == Verdict::Supported);
    match supported.next() {
        None => match run.ratios.idle_ratio {
            Ratio::Of(idle) => format!(
                "nothing that is tested for limits this run; devices are idle {} % of the window",
                percent(idle)
            ),
            Ratio::NotApplicable => {
                "no device work, which most rules are about; the others find nothing that limits this run".to_owned()
            }
        },
        Some(first) => {
            let effect = first.effect.map_or_else(String::new, |effect| {
                format!(" (at most {} ms could be won)", ms(effect.ns))
            });
            let more = match supported.count() {
                0 => String::new(),
                others => format!("; {} more", counted(others as u64, "finding")),
            };
            format!("{}: {}{effect}{more}", first.code, first.summary)
        }
    }
}

fn ratios(run: &RunInferences) -> Vec<Note> {
    let ratios = run.ratios;
    // Other parts of a report take steps where there are any: which window this is has to be said.
    let window = Note::new(
        "window",
        "the whole captures of all devices together, also what is in no step; shares are of it, and effects where a finding does not say of what else",
    );
    let shares = [
        ("compute", ratios.compute_ratio),
        ("communication", ratios.communication_ratio),
        ("memory", ratios.memory_ratio),
        ("idle", ratios.idle_ratio),
    ]
    .map(|(name, ratio)| {
        Note::new(
            name,
            match ratio {
                Ratio::Of(ratio) => format!("{} % of the window", percent(ratio)),
                Ratio::NotApplicable => "not applicable".to_owned(),
            },
        )
    });
    std::iter::once(window).chain(shares).collect()
}

fn verdicts(run: &RunInferences) -> Table {
    let rows = run.inferences.iter().map(|inference| {
        let confidence = inference.confidence.as_ref();
        Row::new(vec![
            Value::text(inference.code.as_str()),
            Value::text(inference.verdict.as_str()),
            inference
                .effect
                .map_or(Value::NotApplicable, |effect| Value::Ns(effect.ns)),
            inference
                .effect
                .map_or(Value::NotApplicable, |effect: Effect| {
                    Value::Percent(effect.share)
                }),
            confidence.map_or(Value::NotApplicable, |found| {
                Value::text(found.level.as_str())
            }),
        ])
    });
    Table {
        caption: "What was tested".to_owned(),
        keys: 1,
        columns: vec![
            Column::text("rule"),
            Column::text("verdict"),
            Column::ms("effect"),
            Column::percent("share"),
            Column::text("confidence"),
        ],
        rows: rows.collect(),
    }
}

fn details(run: &RunInferences, inference: &Inference) -> Vec<Note> {
    let mut notes = vec![Note::new("finding", inference.summary.clone())];
    notes.extend(
        inference
            .evidence
            .iter()
            .map(|evidence| Note::new("evidence", spelled(evidence))),
    );
    notes.extend(inference.events.iter().map(|event| {
        let name = visible(&event.name);
        let text = format!("{} #{}", shortened(&name, LONGEST_NAME), event.event);
        Note::new(
            "event",
            match run.files.as_slice() {
                [_] => text,
                _ => format!("{text} of {}", event.path),
            },
        )
    }));
    if let Some(confidence) = &inference.confidence {
        let text = format!("{}: {}", confidence.level.as_str(), confidence.reason);
        notes.push(Note::new("confidence", text));
    }
    notes.push(Note::new("next", inference.next_action.clone()));
    notes
}

fn spelled(evidence: &Evidence) -> String {
    let value = match (evidence.value, evidence.unit) {
        (None, _) => "not measured".to_owned(),
        (Some(Number::Int(time)), "ns") => format!("{} ms", ms(Ns(time))),
        (Some(Number::Int(bytes)), "bytes") => format!("{} MiB", mib(bytes)),
        (Some(Number::Float(ratio)), "ratio") => number(ratio),
        (Some(Number::Int(count)), _) => count.to_string(),
        (Some(Number::Float(value)), _) => number(value),
    };
    format!("{}: {value}", evidence.name)
}

/// What rules ask and how.
pub fn rules_document(rules: &[RuleText]) -> Document {
    let (title, lead, notes) = match rules {
        [only] => (
            format!("Rule {}", only.code),
            format!(
                "{} ({}): {}",
                only.code,
                only.category.as_str(),
                only.question
            ),
            vec![
                Note::new("tested by", only.method),
                Note::new("what to do", only.next_action),
            ],
        ),
        all => (
            "Rules".to_owned(),
            format!(
                "{}; --explain CODE tells more about one",
                counted(all.len() as u64, "rule")
            ),
            all.iter()
                .map(|rule| Note::new(rule.code, rule.question))
                .collect(),
        ),
    };
    Document {
        title,
        lead,
        sections: vec![Section {
            title: None,
            blocks: vec![Block::Notes(notes)],
        }],
    }
}
