//! Two sides compared, with a picture of the changes.

use super::super::chart::{Change, Changes, Chart, Picture};
use super::super::compare::comparison_document;
use super::super::document::{Block, Document, Section};
use crate::compare::{Comparison, Verdict};
use crate::inspect::{Entry, Frame};

/// `comparison` as a report with a picture, for pages; all rows when `verbose`.
pub fn comparison_page(comparison: &Comparison, verbose: bool) -> Document {
    let mut document = comparison_document(comparison, verbose);
    if let Some(first) = document.sections.first_mut() {
        let chart = chart(comparison).map(Block::Chart);
        first.blocks.splice(0..0, chart);
    }
    document
}

/// The same under one heading.
pub(super) fn sections(comparison: &Comparison, verbose: bool) -> Vec<Section> {
    let document = comparison_page(comparison, verbose);
    let mut blocks = vec![Block::Paragraph(document.lead)];
    for section in document.sections {
        blocks.extend(section.blocks);
    }
    vec![Section {
        title: Some("Comparison".to_owned()),
        blocks,
    }]
}

/// The change of the step time and of each phase; nothing where no change is known.
fn chart(comparison: &Comparison) -> Option<Chart> {
    let step = &comparison.step;
    let judgement = &step.judgement;
    let mut rows = Vec::new();
    if let Some(change) = judgement.change {
        rows.push(Change {
            label: "step time (median)".to_owned(),
            change,
            interval: judgement.low.zip(judgement.high),
            verdict: word(judgement.verdict).to_owned(),
        });
    }
    if let Some(bottleneck) = &comparison.bottleneck
        && let Some(judgement) = &bottleneck.judgement
        && let Some(change) = judgement.change
    {
        rows.push(Change {
            label: format!("bottleneck: {}", bottleneck.cost.replace('_', " ")),
            change,
            interval: judgement.low.zip(judgement.high),
            verdict: word(judgement.verdict).to_owned(),
        });
    }
    let frame = comparison
        .frames
        .iter()
        .find(|frame| frame.name == "phases");
    rows.extend(frame.into_iter().flat_map(phases));
    rows.retain(|row| row.change.is_finite());
    (!rows.is_empty()).then(|| Chart {
        name: "comparison".to_owned(),
        caption: "What changed, relative to the base".to_owned(),
        about: "Changes to the left took less time than the base, changes to the right more. Whiskers are the \
                interval of the change, the grey band holds changes that do not count."
            .to_owned(),
        picture: Picture::Changes(Changes {
            rows,
            min_effect: step.min_effect,
        }),
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifference => "no difference",
        other => other.as_str(),
    }
}

fn phases(frame: &Frame) -> Vec<Change> {
    let text =
        |name: &str, row: usize| match frame.column(name).map(|column| column.values.get(row)) {
            Some(Entry::Text(text)) => Some(text.to_owned()),
            _ => None,
        };
    let rows = (0..frame.len()).filter_map(|row| {
        let Entry::Float(change) = frame.column("change")?.values.get(row) else {
            return None;
        };
        // What neither side has did not stay the same.
        let is_none = |name| Some(frame.column(name)?.values.get(row) == Entry::Int(0));
        if is_none("base_ns")? && is_none("candidate_ns")? {
            return None;
        }
        let verdict = text("verdict", row).unwrap_or_else(|| "not tested".to_owned());
        Some(Change {
            label: format!("{} ({} time)", text("phase", row)?, text("place", row)?),
            change,
            interval: None,
            verdict: verdict.replace('_', " "),
        })
    });
    rows.collect()
}
