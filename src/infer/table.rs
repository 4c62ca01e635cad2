//! Tables as rules read them: rows of one run, in parts.

use std::collections::BTreeMap;

use crate::inspect::{Frame, Names, Values};

/// Rows of one table that are from one file, or of which columns say where they are from.
pub(super) struct Part {
    frame: Frame,
    /// Columns that have one value.
    constants: Vec<(&'static str, Option<i64>)>,
}

/// The values of a column.
pub(super) enum Column<'a> {
    Same(Option<i64>),
    Ints(&'a [Option<i64>]),
    Floats(&'a [Option<f64>]),
    Flags(&'a [Option<bool>]),
    Texts(&'a [Option<String>]),
    Names(&'a Names),
}

impl Part {
    /// All rows of `frame`.
    pub(super) fn new(frame: Frame) -> Self {
        Self {
            frame,
            constants: Vec::new(),
        }
    }

    /// The rows of `frame`, which are from `file` of `rank`.
    pub(super) fn of_file(frame: Frame, file: usize, rank: Option<i64>) -> Self {
        Self {
            frame,
            constants: vec![("file", i64::try_from(file).ok()), ("rank", rank)],
        }
    }

    /// The number of every row.
    pub(super) fn rows(&self) -> Vec<u32> {
        (0..u32::try_from(self.frame.len()).unwrap_or(u32::MAX)).collect()
    }

    /// The column called `name`.
    ///
    /// # Panics
    /// When there is none: rules ask for columns of their tables only.
    pub(super) fn column(&self, name: &str) -> Column<'_> {
        let mut constants = self.constants.iter();
        if let Some((_, value)) = constants.find(|(known, _)| *known == name) {
            return Column::Same(*value);
        }
        let table = self.frame.name;
        let column = self.frame.column(name);
        match &column
            .unwrap_or_else(|| panic!("{table} has no column {name}"))
            .values
        {
            Values::Int(values) => Column::Ints(values),
            Values::Float(values) => Column::Floats(values),
            Values::Bool(values) => Column::Flags(values),
            Values::Text(values) => Column::Texts(values),
            Values::Name(names) => Column::Names(names),
        }
    }
}

impl<'a> Column<'a> {
    /// The integer in row `row`.
    pub(super) fn int(&self, row: u32) -> Option<i64> {
        match self {
            Self::Same(value) => *value,
            Self::Ints(values) => values[row as usize],
            _ => None,
        }
    }

    /// The number in row `row`.
    pub(super) fn float(&self, row: u32) -> Option<f64> {
        match self {
            Self::Floats(values) => values[row as usize],
            _ => self.int(row).map(|number| number as f64),
        }
    }

    /// The text in row `row`.
    pub(super) fn text(&self, row: u32) -> Option<&'a str> {
        match self {
            Self::Texts(values) => values[row as usize].as_deref(),
            Self::Names(names) => names.get(row as usize),
            _ => None,
        }
    }

    /// True when row `row` has a value.
    pub(super) fn is_known(&self, row: u32) -> bool {
        match self {
            Self::Floats(values) => values[row as usize].is_some(),
            Self::Flags(values) => values[row as usize].is_some(),
            Self::Texts(_) | Self::Names(_) => self.text(row).is_some(),
            Self::Same(_) | Self::Ints(_) => self.int(row).is_some(),
        }
    }
}

/// The tables of one run, by name.
#[derive(Default)]
pub(super) struct Tables {
    parts: BTreeMap<&'static str, Vec<Part>>,
}

impl Tables {
    /// Adds rows to the table called `name`.
    pub(super) fn add(&mut self, name: &'static str, part: Part) {
        self.parts.entry(name).or_default().push(part);
    }

    /// The parts of the table called `name`; none when it has no rows.
    pub(super) fn parts(&self, name: &str) -> &[Part] {
        self.parts.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The rows of `frame` that are of each of `runs`; all of them for each where rows are of no run.
pub(super) fn by_run(frame: Frame, runs: &[&str]) -> Vec<Part> {
    if runs.len() == 1 {
        return vec![Part::new(frame)];
    }
    let part = Part::new(frame);
    let rows = part.rows();
    let mut of_runs: BTreeMap<Option<&str>, Vec<u32>> = BTreeMap::new();
    if part.frame.column("run").is_some() {
        let names = part.column("run");
        for row in rows {
            of_runs.entry(names.text(row)).or_default().push(row);
        }
    } else {
        of_runs.extend(runs.iter().map(|run| (Some(*run), rows.clone())));
    }
    let of_run = |run: &&str| {
        let rows = of_runs.get(&Some(*run)).map_or(&[][..], Vec::as_slice);
        Part::new(part.frame.only(rows))
    };
    runs.iter().map(of_run).collect()
}
