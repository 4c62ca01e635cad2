//! Frames of inspections as Polars data frames.

use polars::prelude::*;

use crate::inspect::{Frame, Values};

/// `frame` with the same columns, in Polars' types: `String`, `Int64`, `Float64`, `Boolean`.
///
/// # Errors
/// Never for frames that tracekit made: their columns have one length and distinct names.
pub fn data_frame(frame: Frame) -> PolarsResult<DataFrame> {
    let rows = frame.len();
    let columns = frame.columns.into_iter().map(|series| {
        let name = PlSmallStr::from_static(series.name);
        Ok(match series.values {
            Values::Text(values) => {
                StringChunked::from_iter_options(name, values.into_iter()).into_column()
            }
            Values::Name(names) => {
                let texts = StringChunked::from_iter_values(PlSmallStr::EMPTY, names.texts.iter());
                let numbers =
                    IdxCa::from_iter_options(PlSmallStr::EMPTY, names.numbers.into_iter());
                // Rows of texts longer than 12 bytes point to the text, which is stored once.
                let column = texts.into_series().take(&numbers)?;
                column.with_name(name).into_column()
            }
            Values::Int(values) => {
                Int64Chunked::from_iter_options(name, values.into_iter()).into_column()
            }
            Values::Float(values) => {
                Float64Chunked::from_iter_options(name, values.into_iter()).into_column()
            }
            Values::Bool(values) => {
                BooleanChunked::from_iter_options(name, values.into_iter()).into_column()
            }
        })
    });
    DataFrame::new(rows, columns.collect::<PolarsResult<_>>()?)
}
