//! Two sides compared, with a picture of the changes.

use super::super::chart::{Change, ChangeSize, Changes, Chart, Picture};
use super::super::compare::comparison_document;
use super::super::document::{Block, Document, Section};
use crate::compare::{Comparison, Verdict};
use crate::inspect::{Entry, Frame};
use crate::units::Ns;

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
            change: ChangeSize::Relative(change),
            interval: judgement.low.zip(judgement.high),
            verdict: word(judgement.verdict).to_owned(),
        });
    }
    if let Some(bottleneck) = &comparison.bottleneck
        && let Some(judgement) = &bottleneck.judgement
        && let Some(change) = judgement.change
    {
        rows.push(Change {
            label: format!("bottleneck: {} (median)", bottleneck.cost.replace('_', " ")),
            change: ChangeSize::Relative(change),
            interval: judgement.low.zip(judgement.high),
            verdict: word(judgement.verdict).to_owned(),
        });
    }
    let frame = comparison
        .frames
        .iter()
        .find(|frame| frame.name == "phases");
    rows.extend(frame.into_iter().flat_map(phases));
    rows.retain(|row| row.change.relative().is_none_or(f64::is_finite));
    (!rows.is_empty()).then(|| Chart {
        name: "comparison".to_owned(),
        caption: "What changed, relative to the base".to_owned(),
        about: "Changes to the left took less time than the base, changes to the right more; arrows lead to changes \
                beyond the border, and to what the base has none of. Whiskers are the interval of the change, the \
                grey band holds changes that do not count. Changes are of the median step where that is said, of \
                the mean step as in the tables elsewhere."
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
    let time = |name: &str, row: usize| match frame.column(name)?.values.get(row) {
        Entry::Int(time) => Some(Ns(time)),
        _ => None,
    };
    let rows = (0..frame.len()).filter_map(|row| {
        let change = match (time("base_ns", row)?, time("candidate_ns", row)?) {
            // What neither side has did not stay the same.
            (Ns::ZERO, Ns::ZERO) => return None,
            (Ns::ZERO, new) => ChangeSize::New(new),
            (gone, Ns::ZERO) => ChangeSize::Gone(gone),
            _ => match frame.column("change")?.values.get(row) {
                Entry::Float(change) => ChangeSize::Relative(change),
                _ => return None,
            },
        };
        let verdict = text("verdict", row).unwrap_or_else(|| "not tested".to_owned());
        Some(Change {
            label: format!(
                "{} ({} time, mean)",
                text("phase", row)?,
                text("place", row)?
            ),
            change,
            interval: None,
            verdict: verdict.replace('_', " "),
        })
    });
    rows.collect()
}
