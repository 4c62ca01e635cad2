//! SQL on its way to Polars, and what Polars says about it in words of the user's.

use polars::prelude::PolarsError;

/// What is added to numbers.
const POINT: &str = ".0";

/// SQL as Polars takes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pointed {
    pub(super) sql: String,
    /// Line and column, from 1 and in characters, behind what was added.
    added: Vec<(usize, usize)>,
}

impl Pointed {
    /// `message`, which says where in the SQL something is, for the SQL as it was given.
    pub(super) fn place_in(&self, message: &str) -> String {
        const LINE: &str = " at line ";
        const COLUMN: &str = ", column ";
        let Some((before, place)) = message.rsplit_once(LINE) else {
            return message.to_owned();
        };
        let Some((line, rest)) = place.split_once(COLUMN) else {
            return message.to_owned();
        };
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        let (column, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let (Ok(line), Ok(column)) = (line.parse::<usize>(), column.parse::<usize>()) else {
            return message.to_owned();
        };
        let added = self.added.iter();
        let added = added.filter(|(of, at)| *of == line && *at <= column);
        let column = column - POINT.len() * added.count();
        format!("{before}{LINE}{line}{COLUMN}{column}{behind}")
    }
}

/// `sql` with a point in numbers such as `1e6`, without which Polars takes them for integers and refuses them.
/// Texts, quoted names and comments stay as they are.
pub(super) fn with_points(sql: &str) -> Pointed {
    let mut added = Vec::new();
    let mut out = String::with_capacity(sql.len() + 8);
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '\'' | '"' | '`' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            // A name, which may hold digits, or a number with what is written into it.
            letter if is_part(letter) || letter == '.' => rest
                .find(|letter: char| !is_part(letter) && letter != '.')
                .unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        let (word, behind) = rest.split_at(len);
        let digits = word.find(|letter: char| !letter.is_ascii_digit());
        match digits {
            Some(at) if at > 0 && has_exponent(&word[at..], behind) => {
                out.push_str(&word[..at]);
                out.push_str(POINT);
                let line = out.rsplit('\n').next().unwrap_or("");
                added.push((out.matches('\n').count() + 1, line.chars().count() + 1));
                out.push_str(&word[at..]);
            }
            _ => out.push_str(word),
        }
        rest = behind;
    }
    Pointed { sql: out, added }
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// True when `word` is `e6`, or `e` with a sign and digits behind it.
fn has_exponent(word: &str, behind: &str) -> bool {
    let Some(digits) = word.strip_prefix(['e', 'E']) else {
        return false;
    };
    if digits.is_empty() {
        let signed = behind.strip_prefix(['+', '-']);
        return signed.is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    }
    digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// What `error` says about a query, in one line and without the plan that Polars had made of it.
pub(super) fn explained(error: &PolarsError) -> String {
    if let PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } = error {
        return explained(error);
    }
    let text = error.to_string();
    let text = text.split("\n\nResolved plan").next().unwrap_or(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let quoted = |after: &str, end: char| {
        let (_, rest) = text.split_once(after)?;
        Some(rest.split_once(end)?.0.to_owned())
    };
    if let Some(name) = quoted("duplicate output name '", '\'') {
        let hint = if name == "len" {
            " (COUNT(*) without a name is called so)"
        } else {
            ""
        };
        return format!("two columns of the result are called '{name}'{hint}: rename one with AS");
    }
    if let Some(name) = quoted("unable to find column \"", '"') {
        let known = quoted("valid columns: [", ']').unwrap_or_default();
        return format!(
            "no column is called '{name}'; there are {}",
            known.replace('"', "")
        );
    }
    if let Some(number) = quoted("cannot parse literal: \"", '"') {
        return format!("the number {number} does not fit into 64 bits");
    }
    if let Some(place) = text.strip_prefix("sql parser error: ") {
        return place
            .replace("Expected: ", "expected ")
            .replace(", found: ", ", found ")
            .replace(" at Line: ", " at line ")
            .replace(", Column: ", ", column ");
    }
    if text.starts_with("one (and only one) statement") {
        return "it has to be one statement".to_owned();
    }
    if text == "unexpected subquery" {
        return "a subquery cannot stand there: use it in FROM, WITH or IN".to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_an_exponent_get_a_point() {
        for (sql, expected) in [
            ("SELECT 1e6", "SELECT 1.0e6"),
            ("a>2E-3 AND b<1e+9", "a>2.0E-3 AND b<1.0e+9"),
            ("(10e2)", "(10.0e2)"),
        ] {
            assert_eq!(with_points(sql).sql, expected);
        }
        for same in [
            "SELECT 1.5e3, 1e, 1ex, e6, a1e6, t.a1e6, 12, 0x1e6, 1e-x",
            "SELECT '1e6', '''1e6', \"1e6\" -- 1e6",
            "SELECT /* 1e6 */ größe1e6, '1e6",
            "SELECT /* 1e6",
        ] {
            assert_eq!(with_points(same).sql, same);
        }
    }
    #[test]
    fn places_are_those_of_the_sql_that_was_given() {
        let pointed = with_points("SELECT 1e6\n, 2e6, 3e6 FROM");
        for (said, expected) in [
            ("x at line 1, column 8", "x at line 1, column 8"),
            ("x at line 1, column 13", "x at line 1, column 11"),
            ("x at line 2, column 6, y", "x at line 2, column 4, y"),
            ("x at line 2, column 14", "x at line 2, column 10"),
            ("x at line one, column 2", "x at line one, column 2"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(pointed.place_in(said), expected);
        }
    }
}
