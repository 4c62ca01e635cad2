//! Decision files of `tracekit report`: verdicts of gates and records of the evidence chain.

use std::path::PathBuf;

use crate::error::Result;
use crate::gate::Json;
use crate::report::{Block, Section, decision_sections, github, number_pictures};

/// What `files` decided, in order.
pub(super) fn decisions(files: &[PathBuf]) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    for file in files {
        let record = Json::read_object(file)?;
        let name = file.display().to_string();
        sections.extend(decision_sections(&record, &name).map_err(|error| error.in_file(file))?);
    }
    number_pictures(&mut sections);
    Ok(sections)
}

/// One annotation of GitHub Actions a decision: a notice when it accepts, else a warning.
pub(super) fn annotations(sections: &[Section]) -> String {
    let mut out = String::new();
    for section in sections {
        let told = section.blocks.iter().find_map(|block| match block {
            Block::Paragraph(text) => Some(text),
            _ => None,
        });
        let Some((title, told)) = section.title.as_ref().zip(told) else {
            continue;
        };
        let level = if told.starts_with("accept") {
            github::Level::Notice
        } else {
            github::Level::Warning
        };
        out.push_str(&github::render(title, told, level, &[]));
    }
    out
}
