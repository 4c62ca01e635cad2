//! Tables as files that other tools read.

use std::io::Write;

use polars::prelude::*;
use polars_io::SerWriter as _;
use polars_io::ipc::{IpcCompression, IpcWriter};
#[cfg(feature = "batch")]
use polars_io::parquet::write::BatchedWriter;
use polars_io::parquet::write::{ParquetCompression, ParquetWriter, StatisticsOptions};

use super::tables::failed;
use crate::error::Result;

/// Rows of one row group: small enough for readers that skip by statistics, large enough to compress.
const ROW_GROUP: usize = 1 << 18;

/// Tables of fewer rows are small.
#[cfg(feature = "batch")]
const SMALL: usize = 4096;

/// Writes `frame` as Parquet, compressed with zstd, with statistics, to `out`.
///
/// # Errors
/// When `out` fails.
pub fn write_parquet(frame: &mut DataFrame, out: impl Write) -> Result<()> {
    let written = writer(out).finish(frame);
    written.map(drop).map_err(|error| failed(&error))
}

fn writer<W: Write>(out: W) -> ParquetWriter<W> {
    ParquetWriter::new(out)
        .with_compression(ParquetCompression::Zstd(None))
        .with_statistics(StatisticsOptions::full())
        .with_row_group_size(Some(ROW_GROUP))
}

/// A Parquet file that is written part by part, each a row group.
#[cfg(feature = "batch")]
pub(crate) struct ParquetParts<W: Write>(BatchedWriter<W>);

#[cfg(feature = "batch")]
impl<W: Write> ParquetParts<W> {
    /// Starts a file of frames like `first`. A small one is compressed with Snappy: setting up zstd for each of
    /// its columns takes longer than anything else about it, and so does handing them out to threads.
    ///
    /// # Errors
    /// When `out` fails.
    pub(crate) fn new(first: &DataFrame, out: W) -> Result<Self> {
        let writer = writer(out).set_parallel(false);
        let writer = if first.height() < SMALL {
            writer.with_compression(ParquetCompression::Snappy)
        } else {
            writer
        };
        let started = writer.batched(first.schema());
        started.map(Self).map_err(|error| failed(&error))
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When `out` fails.
    pub(crate) fn add(&mut self, part: &DataFrame) -> Result<()> {
        self.0.write_batch(part).map_err(|error| failed(&error))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When `out` fails.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.0.finish().map(drop).map_err(|error| failed(&error))
    }
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
