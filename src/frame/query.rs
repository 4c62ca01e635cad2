//! Queries in SQL over tables.

use std::collections::BTreeMap;

use polars::prelude::*;
use polars::sql::SQLContext;

use super::schema::TABLES;
use super::sql::{explained, with_points};
use super::tables::Tables;
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

/// Why `sql`, in which none of the tables that are `known` is named, cannot be answered.
pub fn unanswerable(sql: &str, known: &[&str]) -> Error {
    if let Err(error) = only_reads(sql) {
        return error;
    }
    if sql.trim().is_empty() {
        return refused("the query is empty");
    }
    let reason = match guarded(sql, || SQLContext::new().execute(sql).map(drop)) {
        // It names what there is not, and nothing that there is.
        Err(error) if error.reason().contains("not found") => error.reason(),
        Err(error) => return error,
        Ok(()) => "it names no table".to_owned(),
    };
    let known = known.join(", ");
    refused(&format!(
        "{reason}; there are {known} (--tables tells more)"
    ))
}

/// The result of `sql` over `tables`.
///
/// # Errors
/// When the SQL cannot be understood or names what is not there.
pub fn query(tables: &Tables, sql: &str) -> Result<DataFrame> {
    query_frames(&tables.frames, sql)
}

/// The result of `sql` over data frames by name.
///
/// # Errors
/// When the SQL cannot be understood or names what is not there.
pub fn query_frames(frames: &BTreeMap<&'static str, DataFrame>, sql: &str) -> Result<DataFrame> {
    only_reads(sql)?;
    let pointed = with_points(sql);
    let sql = pointed.sql.as_str();
    let answer = guarded(sql, || {
        let mut context = SQLContext::new();
        // Every table that is known takes time, whether it is named or not.
        let lower = sql.to_ascii_lowercase();
        let named = frames.iter().filter(|(name, _)| lower.contains(**name));
        for (name, frame) in named {
            context.register(name, frame.clone().lazy());
        }
        context.execute(sql).and_then(LazyFrame::collect)
    });
    answer.map_err(|error| Error::new(ErrorKind::Query, pointed.place_in(&error.reason())))
}

/// More words and signs than any query that people write; each takes stack when Polars looks at them.
const MAX_WORDS: usize = 4000;

/// Enough for a query of [`MAX_WORDS`] that are all inside one another. Only what is used is taken.
const STACK: usize = 1 << 30;

/// Name of the threads whose panics are answers.
const THREAD: &str = "tracekit query";

/// What `run` gives, which asks Polars for the answer to `sql`: it overflows the stack on long expressions,
/// and panics on some that make no sense (`GROUP BY 0`).
fn guarded<T: Send>(sql: &str, run: impl FnOnce() -> PolarsResult<T> + Send) -> Result<T> {
    let mut inside = false;
    let words = sql.chars().filter(|letter| {
        let goes_on = inside && (letter.is_alphanumeric() || *letter == '_');
        inside = letter.is_alphanumeric() || *letter == '_';
        !goes_on && !letter.is_whitespace()
    });
    let words = words.count();
    if words > MAX_WORDS {
        let reason = format!("it has {words} words and signs; at most {MAX_WORDS} are read");
        return Err(refused(&reason));
    }
    quiet();
    let builder = std::thread::Builder::new()
        .name(THREAD.to_owned())
        .stack_size(STACK);
    std::thread::scope(|scope| {
        let started = builder.spawn_scoped(scope, run);
        let thread = started.map_err(|error| refused(&format!("no thread for it: {error}")))?;
        match thread.join() {
            Ok(answer) => answer.map_err(|error| refused(&explained(&error))),
            Err(_) => Err(refused("it makes no sense to Polars, which gave up on it")),
        }
    })
}

/// Why a query has no answer.
fn refused(reason: &str) -> Error {
    let reason = reason.strip_prefix("SQL: ").unwrap_or(reason);
    Error::new(ErrorKind::Query, format!("SQL: {reason}"))
}

/// Keeps panics of queries, which are told as errors, from standard error.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            if name != THREAD && !name.starts_with("polars") {
                before(panic);
            }
        }));
    });
}

/// # Errors
/// When `sql` would change a table.
fn only_reads(sql: &str) -> Result<()> {
    let word = sql.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '(');
    let word = word.split(|letter: char| !letter.is_alphabetic()).next();
    let word = word.unwrap_or("").to_ascii_uppercase();
    if ["DELETE", "DROP", "TRUNCATE", "CREATE", "INSERT", "UPDATE"].contains(&word.as_str()) {
        let reason = format!("tables can be read only, so there is nothing to {word}");
        return Err(refused(&reason));
    }
    Ok(())
}
