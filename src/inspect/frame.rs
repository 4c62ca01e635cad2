//! A table in columns: what every breakdown results in.
//!
//! A column has one type and one unit, and an entry is `None` when it was not measured or has no meaning
//! in its row. That is the shape in which data frames and Parquet files hold tables, too.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use crate::units::Ns;

/// A table in columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Name, in snake case; unique in an inspection.
    pub name: &'static str,
    /// What a row is, in one sentence.
    pub about: &'static str,
    /// The columns, all of one length.
    pub columns: Vec<Series>,
}

/// A column of a [`Frame`].
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name, in snake case; ends in its unit where it has one (`_ns`, `_bytes`, `_gbps`).
    pub name: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// The values, one a row.
    pub values: Values,
}

/// Unit of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Names, identifiers, flags: nothing to add up.
    None,
    /// Number of things.
    Count,
    /// Integer nanoseconds: a length of time.
    Ns,
    /// Integer nanoseconds since the start of the trace's clock: a moment.
    At,
    /// Bytes.
    Bytes,
    /// A ratio; 1 is the whole.
    Ratio,
    /// 10⁹ bytes a second.
    GbPerS,
    /// 10¹² floating-point operations a second.
    TflopPerS,
    /// A plain number.
    Number,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Text, as it is in the trace.
    Text(Vec<Option<String>>),
    /// Text of which rows share much.
    Name(Names),
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Numbers; never NaN or infinite.
    Float(Vec<Option<f64>>),
    /// Flags.
    Bool(Vec<Option<bool>>),
}

/// Texts that are stored once, however many rows have them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// The texts; some may be equal.
    pub texts: Vec<String>,
    /// Which of them a row has.
    pub numbers: Vec<Option<u32>>,
}

impl Names {
    /// The text in row `row`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        Some(&self.texts[self.numbers[row]? as usize])
    }
}

/// One value of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Entry<'a> {
    /// Not measured, or without meaning here.
    Null,
    /// Text.
    Text(&'a str),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A flag.
    Bool(bool),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Name(names) => names.numbers.len(),
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value in row `row`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> Entry<'_> {
        match self {
            Self::Text(values) => values[row].as_deref().map_or(Entry::Null, Entry::Text),
            Self::Name(names) => names.get(row).map_or(Entry::Null, Entry::Text),
            Self::Int(values) => values[row].map_or(Entry::Null, Entry::Int),
            Self::Float(values) => values[row].map_or(Entry::Null, Entry::Float),
            Self::Bool(values) => values[row].map_or(Entry::Null, Entry::Bool),
        }
    }

    /// Adds the values of the rows that follow, which must be of the same type; tables that are put together have no
    /// [`Values::Name`].
    fn append(&mut self, later: Self) {
        match (self, later) {
            (Self::Text(values), Self::Text(mut later)) => values.append(&mut later),
            (Self::Int(values), Self::Int(mut later)) => values.append(&mut later),
            (Self::Float(values), Self::Float(mut later)) => values.append(&mut later),
            (Self::Bool(values), Self::Bool(mut later)) => values.append(&mut later),
            _ => unreachable!("a column has one type, and none of these is of names"),
        }
    }
}

impl Frame {
    /// An empty frame, to which columns are added by the methods that follow.
    pub(crate) fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            columns: Vec::new(),
        }
    }

    /// Adds a column.
    pub(crate) fn with(mut self, name: &'static str, unit: Unit, values: Values) -> Self {
        debug_assert!(
            self.columns.is_empty() || values.len() == self.len(),
            "{name}"
        );
        self.columns.push(Series { name, unit, values });
        self
    }

    /// Adds a column of names.
    #[must_use]
    pub(crate) fn text<R, T: Into<String>>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<T>,
    ) -> Self {
        let values = rows.iter().map(|row| of(row).map(Into::into)).collect();
        self.with(name, Unit::None, Values::Text(values))
    }

    /// Adds a column of identifiers.
    #[must_use]
    pub(crate) fn id<R>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<i64>,
    ) -> Self {
        self.with(name, Unit::None, Values::Int(rows.iter().map(of).collect()))
    }

    /// Adds a column of flags.
    #[must_use]
    pub(crate) fn flag<R>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<bool>,
    ) -> Self {
        self.with(
            name,
            Unit::None,
            Values::Bool(rows.iter().map(of).collect()),
        )
    }

    /// Adds a column of numbers of things.
    #[must_use]
    pub(crate) fn count<R>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<u64>,
    ) -> Self {
        let of = |row| of(row).map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        self.with(
            name,
            Unit::Count,
            Values::Int(rows.iter().map(of).collect()),
        )
    }

    /// Adds a column of lengths of time.
    #[must_use]
    pub(crate) fn ns<R>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<Ns>,
    ) -> Self {
        let of = |row| of(row).map(|time| time.0);
        self.with(name, Unit::Ns, Values::Int(rows.iter().map(of).collect()))
    }

    /// Adds a column of moments.
    #[must_use]
    pub(crate) fn at<R>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<Ns>,
    ) -> Self {
        let of = |row| of(row).map(|time| time.0);
        self.with(name, Unit::At, Values::Int(rows.iter().map(of).collect()))
    }

    /// Adds a column of bytes.
    #[must_use]
    pub(crate) fn bytes<R>(
        self,
        name: &'static str,
        rows: &[R],
        of: impl Fn(&R) -> Option<i64>,
    ) -> Self {
        self.with(
            name,
            Unit::Bytes,
            Values::Int(rows.iter().map(of).collect()),
        )
    }

    /// Adds a column of numbers in `unit`; what is not finite is null.
    #[must_use]
    pub(crate) fn float<R>(
        self,
        name: &'static str,
        unit: Unit,
        rows: &[R],
        of: impl Fn(&R) -> Option<f64>,
    ) -> Self {
        let of = |row| of(row).filter(|number| number.is_finite());
        self.with(name, unit, Values::Float(rows.iter().map(of).collect()))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<&Series> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Adds the rows of a frame with the same columns.
    pub(crate) fn append(&mut self, later: Self) {
        debug_assert_eq!(self.columns.len(), later.columns.len(), "{}", self.name);
        for (column, later) in self.columns.iter_mut().zip(later.columns) {
            debug_assert_eq!(column.name, later.name);
            column.values.append(later.values);
        }
    }

    /// The rows with these numbers.
    pub(crate) fn only(&self, rows: &[u32]) -> Self {
        fn picked<T: Clone>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter()
                .map(|row| values[*row as usize].clone())
                .collect()
        }
        let columns = self.columns.iter().map(|column| Series {
            name: column.name,
            unit: column.unit,
            values: match &column.values {
                Values::Text(values) => Values::Text(picked(values, rows)),
                Values::Name(names) => Values::Name(Names {
                    texts: names.texts.clone(),
                    numbers: picked(&names.numbers, rows),
                }),
                Values::Int(values) => Values::Int(picked(values, rows)),
                Values::Float(values) => Values::Float(picked(values, rows)),
                Values::Bool(values) => Values::Bool(picked(values, rows)),
            },
        });
        Self {
            name: self.name,
            about: self.about,
            columns: columns.collect(),
        }
    }

    /// The same frame behind columns that say which file its rows are from.
    pub(crate) fn of_file(mut self, run: &str, rank: Option<i64>, window: Option<usize>) -> Self {
        let rows = self.len();
        let window = window.map(|window| i64::try_from(window).unwrap_or(i64::MAX));
        let keys = [
            ("run", Values::Text(vec![Some(run.to_owned()); rows])),
            ("rank", Values::Int(vec![rank; rows])),
            ("window", Values::Int(vec![window; rows])),
        ];
        let keys = keys.map(|(name, values)| Series {
            name,
            unit: Unit::None,
            values,
        });
        self.columns.splice(0..0, keys);
        self
    }
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("about", self.about)?;
        map.serialize_entry("columns", &Headings(&self.columns))?;
        map.serialize_entry("rows", &Rows(self))?;
        map.end()
    }
}

struct Headings<'a>(&'a [Series]);

impl Serialize for Headings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Heading {
            name: &'static str,
            unit: Unit,
        }
        serializer.collect_seq(self.0.iter().map(|column| Heading {
            name: column.name,
            unit: column.unit,
        }))
    }
}

struct Rows<'a>(&'a Frame);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.0.len()))?;
        for row in 0..self.0.len() {
            rows.serialize_element(&Row(self.0, row))?;
        }
        rows.end()
    }
}

struct Row<'a>(&'a Frame, usize);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(frame, row) = self;
        serializer.collect_map(
            frame
                .columns
                .iter()
                .map(|column| (column.name, column.values.get(*row))),
        )
    }
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(rows: &[(&str, Option<i64>)]) -> Frame {
        Frame::new("things", "A thing.")
            .text("name", rows, |row| Some(row.0))
            .ns("sum_ns", rows, |row| row.1.map(Ns))
            .float("share", Unit::Ratio, rows, |row| {
                row.1.map(|sum| 1.0 / sum as f64)
            })
    }

    #[test]
    fn rows_of_files_follow_one_another() {
        let mut both = frame(&[("a", Some(4))]).of_file("base", Some(0), None);
        both.append(frame(&[("b", None), ("c", Some(0))]).of_file("base", Some(1), None));
        assert_eq!(both.len(), 3);
        let json = serde_json::to_value(&both).unwrap();
        assert_eq!(
            json["columns"][4],
            serde_json::json!({"name": "sum_ns", "unit": "ns"})
        );
        let expected = serde_json::json!([
            {"run": "base", "rank": 0, "window": null, "name": "a", "sum_ns": 4, "share": 0.25},
            {"run": "base", "rank": 1, "window": null, "name": "b", "sum_ns": null, "share": null},
            {"run": "base", "rank": 1, "window": null, "name": "c", "sum_ns": 0, "share": null},
        ]);
        assert_eq!(json["rows"], expected);
    }
}
