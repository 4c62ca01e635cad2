//! The report that people look at: the verdict, then everything it rests on, with pictures.
//!
//! ```text
//! verdict → comparison → what others add → where the step goes → over time → recompute → communication
//!         → idle → operators, kernels → ranks → memory → health, coverage → provenance
//! ```
//! Sections without anything to say are left out, or say why there is nothing: a CPU run has no timeline.

mod changes;
mod idle;
mod limits;
mod memory;
mod pictures;
mod place;
mod provenance;
mod recompute;
mod time;
mod trust;

use super::attribution::By;
use super::attribution::{
    comparison, facts, inputs, kernels, label, levels, phases, timeline, verdict,
};
use super::compare::comparison_document;
use super::document::{Block, Document, Note, Section, Table};
use super::inference::inferences_section;
use super::inspection::{self, Several};
use super::number::count;
use crate::attribute::{Attribution, RunResult};
use crate::compare::Comparison;
use crate::infer::Inferences;
use crate::inspect::{Frame, Survey, Topic};

pub use changes::comparison_page;
pub use pictures::{attribution_picture, phase_bars};

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct OverviewParts<'a> {
    /// What was seen in the traces.
    pub survey: &'a Survey,
    /// Two sides compared, when there are two.
    pub comparison: Option<&'a Comparison>,
    /// What may limit the runs, tested.
    pub inferences: Option<&'a Inferences>,
    /// What was decided, each a section of its own; they come right behind the verdict.
    pub decisions: &'a [Section],
    /// Show remarks that touch no number.
    pub verbose: bool,
}

/// Rows that a table of the report has at most.
const MOST_ROWS: usize = 1_000;
/// Rows of all files together in a table of names, and the fewest of one.
const MOST_ROWS_OF_FILES: usize = 200;
/// The same of a table of steps, where several files have them.
const MOST_ROWS_OF_STEPS: usize = 320;
const FEWEST_ROWS_OF_A_FILE: usize = 5;

/// The report on everything.
pub fn overview_document(parts: OverviewParts<'_>) -> Document {
    let survey = parts.survey;
    let attribution = &survey.attribution;
    let mut sections = vec![answer(parts)];
    sections.extend_from_slice(parts.decisions);
    if let Some(comparison) = parts.comparison {
        sections.extend(changes::sections(comparison, parts.verbose));
    }
    sections.extend(steps(attribution));
    sections.extend(time::section(survey));
    sections.push(recompute::section(attribution));
    sections.extend(communication(survey));
    sections.extend(idle::section(survey));
    sections.extend(topic(survey, Topic::Operators, "Operators", &["operators"]));
    sections.extend(topic(survey, Topic::Kernels, "Kernels", &["kernels"]));
    sections.extend(ranks(survey));
    sections.extend(memory::section(survey));
    let inferences = parts.inferences;
    sections.extend(inferences.map(|found| inferences_section(found, parts.verbose)));
    sections.push(trust::section(attribution, parts.verbose));
    sections.push(provenance::section(parts));
    Document {
        title: title(parts),
        lead: lead(parts),
        sections,
    }
}

/// The report in short, for the description of a change: the verdict and the main table.
pub fn brief_document(parts: OverviewParts<'_>) -> Document {
    let attribution = &parts.survey.attribution;
    let mut answer = answer(parts);
    answer.title = None;
    let mut sections = vec![answer];
    sections.extend_from_slice(parts.decisions);
    let blocks = match (parts.comparison, attribution.runs.as_slice()) {
        (Some(comparison), _) => {
            let frames = comparison.frames.iter();
            let told = frames
                .filter(|frame| matches!(frame.name, "phases" | "cost_shift") && !frame.is_empty());
            told.map(|frame| frame_table(frame, Several::default()))
                .collect()
        }
        (None, [run]) => vec![Block::Table(phases::table(attribution, run))],
        (None, _) => comparison::blocks(attribution),
    };
    sections.push(Section {
        title: None,
        blocks,
    });
    sections.push(Section {
        title: None,
        blocks: vec![Block::Notes(trust::notes(attribution))],
    });
    Document {
        title: title(parts),
        lead: lead(parts),
        sections,
    }
}

fn title(parts: OverviewParts<'_>) -> String {
    match (parts.comparison, parts.survey.attribution.runs.as_slice()) {
        (Some(_), _) => "Comparison of two sides".to_owned(),
        (None, [run]) => run.name.clone(),
        (None, runs) => format!("{} runs", runs.len()),
    }
}

fn lead(parts: OverviewParts<'_>) -> String {
    match parts.comparison {
        Some(comparison) => comparison_document(comparison, false).lead,
        None => verdict::lead(&parts.survey.attribution),
    }
}

/// What limits the step, and what to do about it.
fn answer(parts: OverviewParts<'_>) -> Section {
    let attribution = &parts.survey.attribution;
    let mut notes = limits::notes(parts);
    notes.extend(inputs::notes(attribution, false));
    if only_compared(parts).next().is_some() {
        let text = "all but the comparison is about the candidate";
        notes.push(Note::new("details", text));
    }
    let mut blocks = vec![Block::Notes(notes)];
    blocks.extend(limits::table(parts).map(Block::Table));
    Section {
        title: Some("Verdict".to_owned()),
        blocks,
    }
}

/// The files that are in the comparison alone.
fn only_compared(parts: OverviewParts<'_>) -> impl Iterator<Item = &str> {
    let inputs = &parts.survey.attribution.inputs;
    let sides = parts.comparison.map(|it| [&it.base, &it.candidate]);
    let paths = sides.into_iter().flatten().flat_map(|side| &side.inputs);
    paths
        .map(String::as_str)
        .filter(|path| inputs.iter().all(|input| input.path != *path))
}

/// The heading of one of several runs, where there are several.
fn run_title(attribution: &Attribution, run: &RunResult, what: &str) -> String {
    if attribution.runs.len() > 1 {
        format!("{what}: {}", label::run(&attribution.runs, run))
    } else {
        what.to_owned()
    }
}

/// Where the step goes: pictures and tables of each run.
fn steps(attribution: &Attribution) -> Vec<Section> {
    let mut sections = Vec::new();
    if attribution.runs.len() > 1 {
        let mut blocks = Vec::new();
        blocks.extend(pictures::runs(attribution).map(Block::Chart));
        blocks.extend(comparison::blocks(attribution));
        sections.push(Section {
            title: Some("Runs side by side".to_owned()),
            blocks,
        });
    }
    for run in &attribution.runs {
        let mut blocks = Vec::new();
        if attribution.runs.len() > 1 {
            blocks.push(Block::Paragraph(verdict::of_run(attribution, run)));
        }
        blocks.extend(phase_bars(attribution, run).map(Block::Chart));
        blocks.push(Block::Table(phases::table(attribution, run)));
        blocks.extend(pictures::classes(attribution, run).map(Block::Chart));
        blocks.extend(timeline::table(attribution, run).map(Block::Table));
        let steps = levels::table(attribution, run, By::Step);
        blocks.extend((!steps.rows.is_empty()).then(|| Block::Table(cut(steps))));
        blocks.extend(kernels::table(run).map(Block::Table));
        blocks.push(Block::Notes(facts::of_run(attribution, run)));
        sections.push(Section {
            title: Some(run_title(attribution, run, "Where the step goes")),
            blocks,
        });
    }
    sections
}

/// At most so many rows as a page can show.
fn cut(mut table: Table) -> Table {
    let more = table.rows.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        table.rows.truncate(MOST_ROWS);
        let most = count(MOST_ROWS as u64);
        table.caption = format!("{} (the first {most} rows)", table.caption);
    }
    table
}

/// The tables `names` of `topic`; nothing when all are empty.
fn topic(survey: &Survey, topic: Topic, title: &str, names: &[&str]) -> Option<Section> {
    let frames: Vec<&Frame> = names
        .iter()
        .filter_map(|name| survey.frame(topic, name))
        .filter(|frame| !frame.is_empty())
        .collect();
    let files = survey.attribution.ranks.len();
    let several = Several::of(&survey.attribution);
    (!frames.is_empty()).then(|| Section {
        title: Some(title.to_owned()),
        blocks: frames
            .into_iter()
            .map(|frame| Block::Table(first_of_each(frame, files, several)))
            .collect(),
    })
}

fn frame_table(frame: &Frame, several: Several) -> Block {
    let shown = 0..frame.len().min(MOST_ROWS);
    Block::Table(inspection::table(frame, shown, several))
}

/// The first rows of each file in `frame`: so few that a page of many ranks stays small.
fn first_of_each(frame: &Frame, files: usize, several: Several) -> Table {
    let (shown, each) = first_rows(frame, files, MOST_ROWS_OF_FILES);
    let all = shown.len() == frame.len();
    let mut table = inspection::table(frame, shown, several);
    if !all {
        table.caption = format!("{} {}", table.caption, first_told(each));
    }
    table
}

/// As many of the first rows of each of `files` that there are `most` of all together, and how many that are of one.
fn first_rows(frame: &Frame, files: usize, most: usize) -> (Vec<usize>, usize) {
    let each = (most / files.max(1)).max(FEWEST_ROWS_OF_A_FILE);
    let file = |row: usize| {
        ["run", "rank", "window"].map(|name| {
            let column = frame.column(name)?;
            Some(column.values.get(row))
        })
    };
    let mut shown = Vec::new();
    let mut of_file = 0;
    for row in 0..frame.len() {
        of_file = if row > 0 && file(row) == file(row - 1) {
            of_file + 1
        } else {
            0
        };
        if of_file < each && shown.len() < MOST_ROWS {
            shown.push(row);
        }
    }
    (shown, each)
}

fn first_told(each: usize) -> String {
    format!("The first {each} rows of each file.")
}

/// How much communication compute hides.
fn communication(survey: &Survey) -> Option<Section> {
    let attribution = &survey.attribution;
    let any = attribution.totals.total.communication_ns.0 > 0;
    let mut section = topic(
        survey,
        Topic::Communication,
        "Communication",
        &["communication", "collectives"],
    )?;
    if !any {
        section.blocks = vec![Block::Paragraph(
            "There is no communication on devices in these traces.".to_owned(),
        )];
    }
    Some(section)
}

/// The ranks of runs that have several.
fn ranks(survey: &Survey) -> Option<Section> {
    let attribution = &survey.attribution;
    let several: Vec<&RunResult> = attribution
        .runs
        .iter()
        .filter(|run| run.ranks.len() > 1)
        .collect();
    if several.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    for run in several {
        let mut table = levels::table(attribution, run, By::Rank);
        if attribution.runs.len() > 1 {
            table.caption = run_title(attribution, run, &table.caption);
        }
        blocks.extend(pictures::ranks(attribution, run).map(Block::Chart));
        blocks.push(Block::Table(cut(table)));
    }
    let matched = survey.frame(Topic::Ranks, "matched_operations");
    if matched.is_none_or(Frame::is_empty) {
        blocks.push(Block::Paragraph(
            "No collective was matched across ranks, so nothing tells who waits for whom, or how far clocks are apart."
                .to_owned(),
        ));
        return Some(Section {
            title: Some("Ranks".to_owned()),
            blocks,
        });
    }
    let several = Several::of(attribution);
    for name in ["stragglers", "clocks", "matched_operations"] {
        let frame = survey.frame(Topic::Ranks, name);
        let frame = frame.filter(|frame| !frame.is_empty());
        blocks.extend(frame.map(|frame| frame_table(frame, several)));
    }
    Some(Section {
        title: Some("Ranks".to_owned()),
        blocks,
    })
}
