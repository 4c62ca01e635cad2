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
    /// One of them holds.
    Any(Vec<Condition>),
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
            Self::IsFalse(column) => {
                let column = part.column(column);
                let flags = |row: u32| match column {
                    Column::Flags(flags) => flags[row as usize],
                    _ => None,
                };
                rows.retain(|row| flags(*row) == Some(false));
                rows
            }
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
            Self::Any(any) => {
                let kept = any.iter().flat_map(|one| one.keep(part, rows.clone()));
                let mut kept: Vec<u32> = kept.collect();
                kept.sort_unstable();
                kept.dedup();
                kept
            }
        }
    }
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
                let like = |text: &str| format!("{column} LIKE {}", quoted(&format!("%{text}%")));
                several(f, &spelled(texts, &like))
            }
            Self::HasNot(column, other) => {
                write!(f, "{column} NOT LIKE {}", quoted(&format!("%{other}%")))
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
            Self::Any(any) => {
                let any: Vec<String> = any.iter().map(ToString::to_string).collect();
                write!(f, "({})", any.join(" OR "))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
