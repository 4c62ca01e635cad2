//! Which rows of a table a rule is about, as a test of rows and as SQL. Both are made from one value, so
//! that the query that is shown with a number asks for the number.

use std::fmt;

use regex::Regex;

use super::sum::Sum;
use super::table::{Column, Part};

/// A condition on rows. Nothing holds of what is null, as in SQL.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    /// A column of text is one of these.
    Is(&'static str, &'static [&'static str]),
    /// It is another text.
    IsNot(&'static str, &'static str),
    /// It has one of these texts in it.
    Has(&'static str, &'static [&'static str]),
    /// It does not have this text in it.
    HasNot(&'static str, &'static str),
    /// It starts with one of these.
    Starts(&'static str, &'static [&'static str]),
    /// It matches.
    Matches(&'static str, &'static Regex),
    /// It does not.
    MatchesNot(&'static str, &'static Regex),
    /// A flag is set.
    IsTrue(&'static str),
    /// A flag is not set.
    IsFalse(&'static str),
    /// There is no value.
    IsNull(&'static str),
    /// There is a value.
    IsKnown(&'static str),
    /// A number compared with another.
    Compared(Sum, Order, Sum),
    /// A ratio is below 1.
    IsPart(&'static str),
    /// All of them hold.
    All(Vec<Condition>),
}

/// How numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Above,
    Below,
    AtMost,
}

impl Order {
    fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Above => left > right,
            Self::Below => left < right,
            Self::AtMost => left <= right,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::Below => "<",
            Self::AtMost => "<=",
        }
    }
}

impl Condition {
    /// Every row.
    pub(super) fn any_row() -> Self {
        Self::All(Vec::new())
    }

    /// This and `other`.
    pub(super) fn and(&self, other: Self) -> Self {
        let mut all = match self {
            Self::All(all) => all.clone(),
            one => vec![one.clone()],
        };
        match other {
            Self::All(others) => all.extend(others),
            one => all.push(one),
        }
        Self::All(all)
    }

    /// Those of `rows` of `part` of which it holds.
    pub(super) fn keep(&self, part: &Part, mut rows: Vec<u32>) -> Vec<u32> {
        match self {
            Self::Is(column, texts) => of_text(part, column, rows, |text| texts.contains(&text)),
            Self::IsNot(column, other) => of_text(part, column, rows, |text| text != *other),
            Self::Has(column, texts) => of_text(part, column, rows, |text| {
                texts.iter().any(|known| text.contains(known))
            }),
            Self::HasNot(column, other) => {
                of_text(part, column, rows, |text| !text.contains(other))
            }
            Self::Starts(column, texts) => of_text(part, column, rows, |text| {
                texts.iter().any(|known| text.starts_with(known))
            }),
            Self::Matches(column, regex) => {
                of_text(part, column, rows, |text| regex.is_match(text))
            }
            Self::MatchesNot(column, regex) => {
                of_text(part, column, rows, |text| !regex.is_match(text))
            }
            Self::IsTrue(column) => of_flag(part, column, rows, true),
            Self::IsFalse(column) => of_flag(part, column, rows, false),
            Self::IsNull(column) => {
                let column = part.column(column);
                rows.retain(|row| !column.is_known(*row));
                rows
            }
            Self::IsKnown(column) => {
                let column = part.column(column);
                rows.retain(|row| column.is_known(*row));
                rows
            }
            Self::Compared(left, order, right) => {
                let (left, right) = (left.of(part), right.of(part));
                rows.retain(|row| {
                    let both = left.at(*row).zip(right.at(*row));
                    both.is_some_and(|(left, right)| order.holds(left, right))
                });
                rows
            }
            Self::IsPart(column) => {
                let column = part.column(column);
                rows.retain(|row| column.float(*row).is_some_and(|ratio| ratio < 1.0));
                rows
            }
            Self::All(all) => all.iter().fold(rows, |rows, one| one.keep(part, rows)),
        }
    }
}

/// Those of `rows` whose flag in column `name` is `set`.
fn of_flag(part: &Part, name: &str, mut rows: Vec<u32>, set: bool) -> Vec<u32> {
    if let Column::Flags(flags) = part.column(name) {
        rows.retain(|row| flags[*row as usize] == Some(set));
    }
    rows
}

/// Those of `rows` whose text in column `name` is known and passes `test`.
fn of_text(part: &Part, name: &str, mut rows: Vec<u32>, test: impl Fn(&str) -> bool) -> Vec<u32> {
    let column = part.column(name);
    if let Column::Names(names) = column {
        // Few texts, many rows.
        let holds: Vec<bool> = names.texts.iter().map(|text| test(text)).collect();
        let number = |row: u32| names.numbers[row as usize];
        rows.retain(|row| number(*row).is_some_and(|number| holds[number as usize]));
    } else {
        rows.retain(|row| column.text(*row).is_some_and(&test));
    }
    rows
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |f: &mut fmt::Formatter<'_>, all: &[String]| match all {
            [one] => f.write_str(one),
            all => write!(f, "({})", all.join(" OR ")),
        };
        let spelled = |texts: &[&str], spell: &dyn Fn(&str) -> String| -> Vec<String> {
            texts.iter().map(|text| spell(text)).collect()
        };
        match self {
            Self::Is(column, [one]) => write!(f, "{column} = {}", quoted(one)),
            Self::Is(column, texts) => {
                let texts = spelled(texts, &quoted);
                write!(f, "{column} IN ({})", texts.join(", "))
            }
            Self::IsNot(column, other) => write!(f, "{column} <> {}", quoted(other)),
            Self::Has(column, texts) => {
                let like = |text: &str| format!("{column} LIKE {}", containing(text));
                several(f, &spelled(texts, &like))
            }
            Self::HasNot(column, other) => {
                write!(f, "{column} NOT LIKE {}", containing(other))
            }
            Self::Starts(column, texts) => {
                let starts = |text: &str| format!("STARTS_WITH({column}, {})", quoted(text));
                several(f, &spelled(texts, &starts))
            }
            Self::Matches(column, regex) => {
                write!(f, "REGEXP_LIKE({column}, {})", quoted(regex.as_str()))
            }
            Self::MatchesNot(column, regex) => {
                write!(f, "NOT REGEXP_LIKE({column}, {})", quoted(regex.as_str()))
            }
            Self::IsTrue(column) => write!(f, "{column} = TRUE"),
            Self::IsFalse(column) => write!(f, "{column} = FALSE"),
            Self::IsNull(column) => write!(f, "{column} IS NULL"),
            Self::IsKnown(column) => write!(f, "{column} IS NOT NULL"),
            Self::Compared(left, order, right) => write!(f, "{left} {} {right}", order.as_str()),
            Self::IsPart(column) => write!(f, "{column} < 1"),
            Self::All(all) => {
                for (number, one) in all.iter().enumerate() {
                    let and = if number > 0 { " AND " } else { "" };
                    write!(f, "{and}{one}")?;
                }
                Ok(())
            }
        }
    }
}

/// `LIKE` has wildcards, which no text here has.
fn containing(text: &str) -> String {
    debug_assert!(!text.contains(['%', '_']), "{text}");
    quoted(&format!("%{text}%"))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(all(test, feature = "frames"))]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::LazyLock;

    use super::super::sum::{column, number};
    use super::*;
    use crate::frame::{data_frame, query_frames};
    use crate::inspect::{Frame, Names, Unit, Values};

    /// Rows with everything that could be taken for something else.
    fn frame() -> Frame {
        const TEXTS: [Option<&str>; 8] = [
            Some("gemm_a"),
            Some("gemmXa"),
            Some("it's 100 %"),
            Some(""),
            None,
            Some("two\nlines"),
            Some("Gemm"),
            Some("gemm"),
        ];
        let texts = TEXTS.map(|text| text.map(str::to_owned));
        let numbers = [
            Some(1),
            Some(2),
            None,
            Some(0),
            Some(-1),
            None,
            Some(5),
            Some(2),
        ];
        let others = [
            Some(2),
            Some(2),
            Some(2),
            None,
            Some(-2),
            None,
            Some(4),
            Some(3),
        ];
        let flags = [
            Some(true),
            Some(false),
            None,
            Some(true),
            None,
            Some(false),
            None,
            None,
        ];
        let ratios = [
            Some(0.5),
            None,
            Some(1.0),
            Some(2.0),
            Some(0.0),
            None,
            None,
            Some(0.9),
        ];
        let names = Names {
            texts: texts.iter().flatten().cloned().collect(),
            numbers: vec![
                Some(0),
                Some(1),
                Some(2),
                Some(3),
                None,
                Some(4),
                Some(5),
                Some(6),
            ],
        };
        Frame::new("things", "A thing.")
            .with("row", Unit::None, Values::Int((0..8).map(Some).collect()))
            .with("text", Unit::None, Values::Text(texts.into()))
            .with("name", Unit::None, Values::Name(names))
            .with("one", Unit::None, Values::Int(numbers.into()))
            .with("two", Unit::None, Values::Int(others.into()))
            .with("flag", Unit::None, Values::Bool(flags.into()))
            .with("ratio", Unit::None, Values::Float(ratios.into()))
    }

    /// The rows of which `condition` holds are those that its SQL gives; there are `count`.
    #[track_caller]
    fn check(condition: &Condition, count: usize) {
        let part = Part::new(frame());
        let kept: Vec<i64> = condition
            .keep(&part, part.rows())
            .into_iter()
            .map(i64::from)
            .collect();
        let frames = BTreeMap::from([(
            "things",
            data_frame(frame()).expect("columns of one length"),
        )]);
        let sql = format!("SELECT row FROM things WHERE {condition} ORDER BY row");
        let answer = query_frames(&frames, &sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = answer
            .column("row")
            .and_then(|rows| rows.i64())
            .expect("a column of integers");
        let rows: Vec<i64> = (0..rows.len()).filter_map(|row| rows.get(row)).collect();
        assert_eq!(kept, rows, "{sql}");
        assert_eq!(kept.len(), count, "{sql}");
    }

    #[test]
    fn conditions_are_what_their_sql_says() {
        use Condition::{
            Compared, Has, HasNot, Is, IsFalse, IsKnown, IsNot, IsNull, IsPart, IsTrue, Matches,
            MatchesNot, Starts,
        };
        static PATTERN: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"gemm_|(?i)^GEMM$|100 %|it's").unwrap());
        for name in ["text", "name"] {
            check(&Is(name, &["gemm_a"]), 1);
            check(&Is(name, &["gemm_a", "it's 100 %", "", "none"]), 3);
            check(&IsNot(name, "gemm"), 6);
            check(&Has(name, &["emm"]), 4);
            check(&Has(name, &["mX", "lines"]), 2);
            check(&HasNot(name, "emm"), 3);
            check(&Starts(name, &["gemm_", "it's"]), 2);
            check(&Matches(name, &PATTERN), 4);
            check(&MatchesNot(name, &PATTERN), 3);
            check(&IsNull(name), 1);
            check(&IsKnown(name), 7);
            check(&Is(name, &["gemm_a"]).and(IsKnown("one")), 1);
        }
        check(&IsTrue("flag"), 2);
        check(&IsFalse("flag"), 2);
        check(&IsNull("flag"), 4);
        check(&IsPart("ratio"), 3);
        check(&IsKnown("ratio"), 5);
        check(&Compared(column("one"), Order::Above, number(1)), 3);
        check(&Compared(column("one"), Order::AtMost, column("two")), 3);
        check(&Compared(column("one"), Order::Below, column("two")), 2);
        let sum = column("one").plus("two").minus("row");
        check(&Compared(sum, Order::Above, number(0)), 3);
    }

    #[test]
    fn every_row_is_what_no_condition_gives() {
        let part = Part::new(frame());
        assert_eq!(Condition::any_row().keep(&part, part.rows()).len(), 8);
        assert_eq!(Condition::any_row().to_string(), "");
    }
}
