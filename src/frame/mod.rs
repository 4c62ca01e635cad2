//! Tables as Polars data frames: for queries in SQL, for files that other tools read, and for rules of
//! inference that users write.
//!
//! ```text
//! paths ─ read_tables ─→ tables ─┬─ query   SQL to one table
//!                                ├─ export  Parquet, Arrow IPC, CSV
//!                                └─ infer   rules of users
//! ```
//! [`TABLES`] says which tables there are, with every column, its type and its meaning. Only tables that
//! are asked for are made.

mod convert;
mod export;
mod query;
mod schema;
mod sql;
mod tables;

pub use polars::prelude::DataFrame;

pub use convert::data_frame;
#[cfg(feature = "batch")]
pub(crate) use export::ParquetParts;
pub use export::{write_arrow, write_parquet};
pub use query::{query, query_frames, tables_in, unanswerable};
pub use schema::{ColumnSchema, Dtype, TABLES, TableSchema};
#[cfg(any(feature = "batch", feature = "cli"))]
pub(crate) use tables::failed;
pub(crate) use tables::{Plan, Taken, of_run};
pub use tables::{Tables, read_tables};
