//! Columns of names: each distinct string is stored once, and rows share it.

use polars::prelude::*;

/// The distinct strings that rows refer to by number.
pub(super) struct Dictionary {
    strings: Series,
}

impl Dictionary {
    pub(super) fn new<'s>(strings: impl Iterator<Item = &'s str>) -> Self {
        let strings = StringChunked::from_iter_values(PlSmallStr::EMPTY, strings);
        Self {
            strings: strings.into_series(),
        }
    }

    /// A column of the strings with these numbers. Rows of strings longer than 12 bytes point into
    /// the dictionary.
    pub(super) fn column(
        &self,
        name: &'static str,
        numbers: impl Iterator<Item = Option<u32>>,
    ) -> PolarsResult<Column> {
        let numbers = IdxCa::from_iter_options(PlSmallStr::EMPTY, numbers);
        let values = self.strings.take(&numbers)?;
        Ok(values
            .with_name(PlSmallStr::from_static(name))
            .into_column())
    }
}
