//! Shows results: as a [`Document`] in text or Markdown, as tidy rows in CSV, as JSON.
//!
//! A result becomes a document or a table whose numbers are final; renderers lay those out, make
//! names from traces safe to show, and compute nothing.

mod attribution;
mod chart;
mod colour;
mod compare;
pub mod csv;
#[cfg(feature = "frames")]
mod data_frame;
mod decision;
mod doctor;
mod document;
mod evidence;
pub(crate) mod findings;
mod gate;
pub mod github;
pub mod html;
mod inference;
mod inspection;
pub mod json;
pub mod markdown;
mod name;
mod number;
mod overview;
mod serialised;
pub mod svg;
pub mod text;

pub use attribution::{AttributionView, By, attribution_document, attribution_rows};
pub use chart::{
    Bar, Bars, Change, Changes, Chart, Heat, HeatCell, LevelLine, Levels, Paint, Part, Picture,
    Timeline, TimelineBin, TimelineLane,
};
pub use compare::comparison_document;
#[cfg(feature = "batch")]
pub(crate) use data_frame::described_tables;
#[cfg(feature = "frames")]
pub use data_frame::{data_frame_document, data_frame_json, data_frame_rows, tables_document};
pub use decision::{
    DecisionCell, DecisionGrid, DecisionScope, DecisionScopes, GateBar, decision_document,
    decision_sections, number_pictures, verdict_document,
};
pub use doctor::{codes_document, diagnosis_document};
pub use document::{Align, Block, Column, Document, Note, Row, RowKind, Section, Table, Value};
pub use evidence::evidence_document;
pub use gate::{explanations_document, verdict_github, verdict_junit};
pub use inference::{inferences_document, inferences_section, rules_document};
pub use inspection::{frame_rows, frames_document, inspection_document};
#[cfg(feature = "cli")]
pub(crate) use name::visible;
#[cfg(all(feature = "cli", feature = "collect"))]
pub(crate) use number::counted;
pub use overview::{
    OverviewParts, attribution_picture, brief_document, comparison_page, overview_document,
    phase_bars,
};
pub use serialised::REPORT_SCHEMA;
