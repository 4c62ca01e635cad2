//! The report of an attribution, put together.

use super::super::document::{Block, Document, Note, Section};
use super::{
    comparison, counters, coverage, facts, health, inputs, kernels, label, levels, phases,
    timeline, verdict,
};
use crate::attribute::{Attribution, RunResult};

/// What the rows of the main table are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum By {
    /// Phases.
    #[default]
    Phase,
    /// Steps of each device.
    Step,
    /// Devices.
    Device,
    /// Ranks.
    Rank,
}

/// How an attribution is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttributionView {
    /// What the rows of the main table are.
    pub by: By,
    /// Show top kernels when there are several runs, too.
    pub kernels_of_each_run: bool,
    /// Show findings that are only information, and every file.
    pub verbose: bool,
}

/// `attribution` as a report.
pub fn attribution_document(attribution: &Attribution, view: AttributionView) -> Document {
    let mut sections = vec![Section {
        title: None,
        blocks: vec![Block::Notes(inputs::notes(attribution, view.verbose))],
    }];
    let closing = closing(attribution, view.verbose);
    let title = match attribution.runs.as_slice() {
        [run] => {
            let blocks = &mut sections[0].blocks;
            blocks.extend(run_blocks(attribution, run, view));
            blocks.extend(kernels::table(run).map(Block::Table));
            blocks.push(Block::Notes(closing));
            format!("Attribution of {}", run.name)
        }
        runs => {
            sections[0].blocks.extend(comparison::blocks(attribution));
            for run in runs {
                let mut blocks = vec![Block::Paragraph(verdict::of_run(attribution, run))];
                blocks.extend(run_blocks(attribution, run, view));
                if let Some(Block::Notes(notes)) = blocks.last_mut() {
                    let text =
                        coverage::described(&run.coverage, &run.totals, std::slice::from_ref(run));
                    notes.push(Note::new("coverage", text));
                }
                if view.kernels_of_each_run {
                    blocks.extend(kernels::table(run).map(Block::Table));
                }
                sections.push(Section {
                    title: Some(label::run(runs, run).into_owned()),
                    blocks,
                });
            }
            let blocks = vec![Block::Notes(closing)];
            sections.push(Section {
                title: Some("all runs".to_owned()),
                blocks,
            });
            format!("Attribution of {} runs", runs.len())
        }
    };
    Document {
        title,
        lead: verdict::lead(attribution),
        sections,
    }
}

/// Tables and facts of one run; the facts come last.
fn run_blocks(attribution: &Attribution, run: &RunResult, view: AttributionView) -> Vec<Block> {
    let main = match view.by {
        By::Phase => phases::table(attribution, run),
        by => levels::table(attribution, run, by),
    };
    let mut blocks = vec![Block::Table(main)];
    blocks.extend(timeline::table(attribution, run).map(Block::Table));
    blocks.extend(counters::table(attribution, run).map(Block::Table));
    blocks.push(Block::Notes(facts::of_run(attribution, run)));
    blocks
}

fn closing(attribution: &Attribution, verbose: bool) -> Vec<Note> {
    let placed = coverage::described(
        &attribution.coverage,
        &attribution.totals,
        &attribution.runs,
    );
    let text = format!("{placed}; {}", coverage::dropped(attribution));
    let mut notes = vec![Note::new("coverage", text)];
    notes.extend(health::notes(attribution, verbose));
    notes
}

#[cfg(test)]
mod tests {
    use super::super::super::{markdown, text};
    use super::super::sample;
    use super::*;

    #[test]
    fn a_report_starts_with_the_verdict_and_ends_with_its_health() {
        for attribution in [sample::one_rank(), sample::host_only(), sample::two_runs()] {
            let document = attribution_document(&attribution, AttributionView::default());
            let text = text::render(&document, text::TextOptions::default());
            assert!(text.starts_with(&document.lead), "{text}");
            assert!(text.contains("\ncoverage: "), "{text}");
            assert!(
                text.lines()
                    .last()
                    .is_some_and(|line| line.starts_with("health: ")),
                "{text}"
            );
            assert!(!text.contains("\n\n\n"), "{text}");
            assert!(markdown::render(&document).starts_with("# Attribution of "));
        }
    }

    #[test]
    fn top_kernels_of_several_runs_are_shown_on_demand() {
        let attribution = sample::two_runs();
        let tables = |kernels_of_each_run| {
            let view = AttributionView {
                kernels_of_each_run,
                ..AttributionView::default()
            };
            let document = attribution_document(&attribution, view);
            let blocks = document.sections.iter().flat_map(|section| &section.blocks);
            blocks
                .filter(|block| matches!(block, Block::Table(_)))
                .count()
        };
        assert_eq!(tables(true), tables(false) + 2);
    }
}
