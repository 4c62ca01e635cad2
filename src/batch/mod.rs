//! Many traces at once: an archive of them becomes a dataset of tables.
//!
//! ```text
//! input       folders, patterns, lists and archives to inputs          (ingest::archive)
//! work        inputs, the largest first, to records                    (memory, analyse)
//! journal     what is done, on disk before it counts                   (record)
//! recognise   names and metadata to runs, strategies, repeats, ranks   (pattern)
//! place       whether inputs are of the run that has their name
//! dataset     records to runs, and their tables in Parquet             (schema, rows, table, page)
//! manifest    what the dataset was made of                             (summary)
//! merge       shards to one dataset
//! check       runs against earlier ones
//! ```
//! What an input says depends on its content alone and is kept under its SHA-256; the run that it belongs to
//! follows from its name. So a dataset does not depend on the order of inputs, on threads, on shards, or on
//! how often the work was interrupted.

mod analyse;
mod check;
mod dataset;
mod input;
mod journal;
mod manifest;
mod memory;
mod merge;
mod page;
mod pattern;
mod place;
mod recognise;
mod record;
mod rows;
mod run;
mod schema;
mod summary;
mod table;
mod work;

pub use check::{Baseline, CheckOptions, Checked, Moved, RunCheck, check, junit};
pub use input::{Inputs, find_inputs};
pub use manifest::{MANIFEST, SCHEMA_VERSION};
pub use memory::{default_memory_limit, peak_memory};
pub use merge::{Merged, merge};
pub use pattern::Pattern;
pub use run::{BatchEvent, BatchOptions, BatchReport, RecognisedRun, Shard, batch};
pub use schema::{DATASET_TABLES, DatasetTable, dataset_tables_document};
pub use summary::{checked_document, report_document};
pub use table::{is_dataset, read_dataset, tables_named};
