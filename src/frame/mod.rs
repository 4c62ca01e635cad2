//! Tables as Polars data frames: for queries in SQL, for files that other tools read, and for the rules
//! of inference.
//!
//! ```text
//! paths ─ read_tables ─→ tables ─┬─ query   SQL to one table
//!                                ├─ export  Parquet, Arrow IPC, CSV
//!                                └─ infer   what limits the run
//! ```
//! [`TABLES`] says which tables there are, with every column, its type and its meaning. Only tables that
//! are asked for are made.

mod convert;
mod events;
mod export;
mod files;
mod line;
mod name;
mod query;
mod schema;
mod sql;
mod tables;
mod work;

pub use polars::prelude::DataFrame;

pub use convert::data_frame;
#[cfg(feature = "batch")]
pub(crate) use export::ParquetParts;
pub use export::{write_arrow, write_parquet};
pub use query::{query, query_frames, tables_in, unanswerable};
pub use schema::{ColumnSchema, Dtype, TABLES, TableSchema};
#[cfg(any(feature = "batch", feature = "cli"))]
pub(crate) use tables::Plan;
pub use tables::{Tables, read_tables};
#[cfg(feature = "batch")]
pub(crate) use tables::{Taken, failed};
