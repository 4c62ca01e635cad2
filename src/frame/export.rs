//! Tables as files that other tools read.

use std::io::Write;

use polars::prelude::*;
use polars_io::SerWriter as _;
use polars_io::ipc::{IpcCompression, IpcWriter};
use polars_io::parquet::write::{ParquetCompression, ParquetWriter, StatisticsOptions};

use super::tables::failed;
use crate::error::Result;

/// Rows of one row group: small enough for readers that skip by statistics, large enough to compress.
const ROW_GROUP: usize = 1 << 18;

/// Writes `frame` as Parquet, compressed with zstd, with statistics, to `out`.
///
/// # Errors
/// When `out` fails.
pub fn write_parquet(frame: &mut DataFrame, out: impl Write) -> Result<()> {
    let written = ParquetWriter::new(out)
        .with_compression(ParquetCompression::Zstd(None))
        .with_statistics(StatisticsOptions::full())
        .with_row_group_size(Some(ROW_GROUP))
        .finish(frame);
    written.map(drop).map_err(|error| failed(&error))
}

/// Writes `frame` as an Arrow IPC file (Feather version 2), compressed with zstd, to `out`.
///
/// # Errors
/// When `out` fails.
#[expect(
    clippy::default_trait_access,
    reason = "what a level is, is a detail of Polars"
)]
pub fn write_arrow(frame: &mut DataFrame, out: impl Write) -> Result<()> {
    let written = IpcWriter::new(out)
        .with_compression(Some(IpcCompression::ZSTD(Default::default())))
        .with_compat_level(CompatLevel::oldest())
        .finish(frame);
    written.map_err(|error| failed(&error))
}
