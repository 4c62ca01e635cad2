//! Columns added up row by row, as a number and as SQL.

use std::fmt;

use super::table::{Column, Part};

/// Columns of integers, added or taken away; or a number alone. Null when one of them is null. What does not fit into 64
/// bits is the most that does: of times of 292 years, which no trace has, SQL may say something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    columns: Vec<(Sign, &'static str)>,
    number: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

/// One column.
pub(super) fn column(name: &'static str) -> Sum {
    Sum {
        columns: vec![(Sign::Plus, name)],
        number: 0,
    }
}

/// One number.
pub(super) fn number(number: i64) -> Sum {
    Sum {
        columns: Vec::new(),
        number,
    }
}

impl Sum {
    pub(super) fn plus(mut self, name: &'static str) -> Self {
        self.columns.push((Sign::Plus, name));
        self
    }

    pub(super) fn minus(mut self, name: &'static str) -> Self {
        self.columns.push((Sign::Minus, name));
        self
    }

    /// Its values in `part`.
    pub(super) fn of<'p>(&self, part: &'p Part) -> Summed<'p> {
        let columns = self.columns.iter();
        Summed {
            columns: columns
                .map(|(sign, name)| (*sign, part.column(name)))
                .collect(),
            number: self.number,
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.columns.is_empty() {
            return write!(f, "{}", self.number);
        }
        for (place, (sign, name)) in self.columns.iter().enumerate() {
            match (place, sign) {
                (0, _) => f.write_str(name)?,
                (_, Sign::Plus) => write!(f, " + {name}")?,
                (_, Sign::Minus) => write!(f, " - {name}")?,
            }
        }
        Ok(())
    }
}

/// A [`Sum`] over the rows of one part.
pub(super) struct Summed<'p> {
    columns: Vec<(Sign, Column<'p>)>,
    number: i64,
}

impl Summed<'_> {
    /// In row `row`.
    pub(super) fn at(&self, row: u32) -> Option<i64> {
        let mut sum = self.number;
        for (sign, column) in &self.columns {
            let value = column.int(row)?;
            sum = match sign {
                Sign::Plus => sum.saturating_add(value),
                Sign::Minus => sum.saturating_sub(value),
            };
        }
        Some(sum)
    }
}
