//! Queries in SQL over tables.

use polars::prelude::*;
use polars::sql::SQLContext;

use super::schema::TABLES;
use super::tables::{Tables, failed};
use crate::error::{Error, ErrorKind, Result};

/// The tables that `sql` names: those whose names are words in it, in quotes or not. More than needed
/// only costs time.
pub fn tables_in(sql: &str) -> Vec<&'static str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<String> = sql
        .split(|letter| !is_part(letter))
        .map(str::to_ascii_lowercase)
        .collect();
    let mut names = TABLES.iter().map(|table| table.name);
    let mut found: Vec<&str> = Vec::new();
    found.extend(
        names
            .by_ref()
            .filter(|name| words.iter().any(|word| word == name)),
    );
    found
}

/// Why `sql`, in which no table is named, cannot be answered.
pub fn unanswerable(sql: &str) -> Error {
    if let Err(error) = only_reads(sql) {
        return error;
    }
    let known: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    let reason = match SQLContext::new().execute(sql) {
        Err(error) => failed(&error).to_string(),
        Ok(_) => "the query names no table".to_owned(),
    };
    let message = format!(
        "{reason}; there are {} (--tables tells more)",
        known.join(", ")
    );
    Error::new(ErrorKind::Query, message)
}

/// The result of `sql` over `tables`.
///
/// # Errors
/// When the SQL cannot be understood or names what is not there.
pub fn query(tables: &Tables, sql: &str) -> Result<DataFrame> {
    only_reads(sql)?;
    let mut context = SQLContext::new();
    for (name, frame) in &tables.frames {
        context.register(name, frame.clone().lazy());
    }
    context
        .execute(sql)
        .and_then(LazyFrame::collect)
        .map_err(|error| failed(&error))
}

/// # Errors
/// When `sql` would change a table.
fn only_reads(sql: &str) -> Result<()> {
    let word = sql.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '(');
    let word = word.split(|letter: char| !letter.is_alphabetic()).next();
    let word = word.unwrap_or("").to_ascii_uppercase();
    if ["DELETE", "DROP", "TRUNCATE", "CREATE", "INSERT", "UPDATE"].contains(&word.as_str()) {
        let message = format!("tables can be read only, so there is nothing to {word}");
        return Err(Error::new(ErrorKind::Query, message));
    }
    Ok(())
}
