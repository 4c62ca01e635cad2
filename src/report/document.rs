//! What a report says, before it has a format: every number in it is final.
//!
//! Renderers lay a [`Document`] out and spell its values; they compute nothing.

use super::chart::Chart;
use crate::units::Ns;

/// A whole report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// What the report is about.
    pub title: String,
    /// The answer in one sentence.
    pub lead: String,
    /// The rest, in order.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Heading; `None` for parts that belong to the report as a whole.
    pub title: Option<String>,
    /// Content, in order.
    pub blocks: Vec<Block>,
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A sentence.
    Paragraph(String),
    /// A table.
    Table(Table),
    /// Labelled facts, one a line.
    Notes(Vec<Note>),
    /// A picture. Formats that have no pictures leave it out: a table beside it has its numbers.
    Chart(Chart),
}

/// One labelled fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub label: &'static str,
    /// The fact.
    pub text: String,
}

impl Note {
    /// The fact `text` about `label`.
    pub fn new(label: &'static str, text: impl Into<String>) -> Self {
        Self {
            label,
            text: text.into(),
        }
    }
}

/// A table of final values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// How many leading columns say what a row is about.
    pub keys: usize,
    /// Columns, in order.
    pub columns: Vec<Column>,
    /// Rows, in order; each has one value a column.
    pub rows: Vec<Row>,
}

impl Table {
    /// The rows, each by itself: a key that the row above says stands in the row, too. For formats whose rows are
    /// sorted, searched or read one by one.
    pub fn rows_in_full(&self) -> impl Iterator<Item = (RowKind, Vec<&Value>)> {
        let mut keys: Vec<&Value> = vec![&Value::Blank; self.keys];
        self.rows.iter().map(move |row| {
            let mut cells: Vec<&Value> = row.cells.iter().collect();
            for (cell, above) in cells.iter_mut().zip(&mut keys) {
                match **cell {
                    Value::Blank => *cell = *above,
                    _ => *above = *cell,
                }
            }
            (row.kind, cells)
        })
    }
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Unit of the values.
    pub unit: Option<&'static str>,
    /// How values are aligned.
    pub align: Align,
    /// True when a table that is too wide may be broken before this column.
    pub group: bool,
    /// True when its texts are sentences, of which nothing may be left out.
    pub sentences: bool,
}

/// How the values of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

impl Column {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: None,
            align: Align::Left,
            group: false,
            sentences: false,
        }
    }

    /// A column of sentences.
    pub fn sentences(name: impl Into<String>) -> Self {
        Self {
            sentences: true,
            ..Self::text(name)
        }
    }

    /// A column of numbers without a unit.
    pub fn number(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: None,
            align: Align::Right,
            group: false,
            sentences: false,
        }
    }

    /// A column of times.
    pub fn ms(name: impl Into<String>) -> Self {
        Self {
            unit: Some("ms"),
            ..Self::number(name)
        }
    }

    /// A column of ratios.
    pub fn percent(name: impl Into<String>) -> Self {
        Self {
            unit: Some("%"),
            ..Self::number(name)
        }
    }

    /// The same column, before which a table that is too wide may be broken.
    #[must_use]
    pub fn starting_group(mut self) -> Self {
        self.group = true;
        self
    }
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What kind of row it is.
    pub kind: RowKind,
    /// Values, one a column.
    pub cells: Vec<Value>,
}

/// What a row is to the rows around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A row like any other.
    Plain,
    /// A part of the plain row above it.
    Part,
    /// The sum of the plain rows.
    Total,
}

impl Row {
    /// A row like any other.
    pub fn new(cells: Vec<Value>) -> Self {
        Self {
            kind: RowKind::Plain,
            cells,
        }
    }

    /// A part of the row above.
    pub fn part(cells: Vec<Value>) -> Self {
        Self {
            kind: RowKind::Part,
            cells,
        }
    }

    /// The sum of the rows above.
    pub fn total(cells: Vec<Value>) -> Self {
        Self {
            kind: RowKind::Total,
            cells,
        }
    }
}

/// A final value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text, as it is in the trace: renderers make it safe.
    Text(String),
    /// Text that leads to a page beside this one, where pages can.
    Link {
        /// What it says.
        text: String,
        /// Where it leads, relative to this page.
        to: String,
    },
    /// A time.
    Ns(Ns),
    /// A difference of times.
    NsChange(Ns),
    /// A number of things.
    Count(u64),
    /// A number that names a thing: a rank, a device.
    Id(i64),
    /// A number of bytes.
    Bytes(i64),
    /// A plain number.
    Number(f64),
    /// A ratio, shown in percent.
    Percent(f64),
    /// A relative difference, shown in percent.
    PercentChange(f64),
    /// Was not collected.
    Missing,
    /// Has no meaning here.
    NotApplicable,
    /// Nothing is said here because the row above says it, or there is nothing to say.
    Blank,
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// `part / whole` in percent, or [`Value::NotApplicable`] of nothing.
    pub fn share(part: Ns, whole: Ns) -> Self {
        part.ratio(whole).map_or(Self::NotApplicable, Self::Percent)
    }

    /// A time, or [`Value::Missing`] when it was not collected.
    pub fn ns_or_missing(time: Option<Ns>) -> Self {
        time.map_or(Self::Missing, Self::Ns)
    }
}
