//! Small traces broken down, for the tests of the topics.

use super::frame::{Entry, Frame};
use super::{InspectOptions, Topic, inspect_paths};
use crate::attribute::{AttributeOptions, Request};
use crate::ingest::IngestOptions;

/// What `ask` makes of a request for the trace in `json`.
pub(super) fn asked<T>(json: &str, ask: impl FnOnce(&Request<'_>) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, json).unwrap();
    let attribute = AttributeOptions::default();
    ask(&Request {
        salvage: None,
        paths: &[path],
        ingest: IngestOptions::default(),
        options: &attribute,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    })
}

/// The frames of the trace in `json`.
pub(super) fn frames(json: &str, topic: Topic, options: &InspectOptions) -> Vec<Frame> {
    let inspected = asked(json, |request| {
        inspect_paths(request, topic, options, &|_| {})
    });
    inspected.unwrap().frames
}

/// The rows of the frame called `name`, with these columns as words; `-` is null.
pub(super) fn cells(frames: &[Frame], name: &str, columns: &[&str]) -> Vec<String> {
    let frame = frames.iter().find(|frame| frame.name == name).unwrap();
    let row = |row: usize| {
        let words: Vec<String> = columns
            .iter()
            .map(|column| {
                let column = frame
                    .column(column)
                    .unwrap_or_else(|| panic!("no {column}"));
                match column.values.get(row) {
                    Entry::Null => "-".to_owned(),
                    Entry::Text(text) => text.to_owned(),
                    Entry::Int(number) => number.to_string(),
                    Entry::Float(number) => format!("{number:.4}"),
                    Entry::Bool(flag) => flag.to_string(),
                }
            })
            .collect();
        words.join(" ")
    };
    (0..frame.len()).map(row).collect()
}
