//! Tables as CSV (quoted as in RFC 4180, lines end in LF), for spreadsheets and data frames.
//!
//! Times are integer nanoseconds, ratios are plain numbers, and what was not collected or has no
//! meaning is empty.

use super::document::{Table, Value};
use super::name::{is_hidden, push_escaped};

/// `table` as CSV with one header line. Units belong in the column names.
pub fn render(table: &Table) -> String {
    let mut out = String::new();
    line(
        &mut out,
        table.columns.iter().map(|column| text(&column.name)),
    );
    for row in &table.rows {
        line(&mut out, row.cells.iter().map(cell));
    }
    out
}

fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&cell);
    }
    out.push('\n');
}

fn cell(value: &Value) -> String {
    match value {
        Value::Text(name) | Value::Link { text: name, .. } => text(name),
        Value::Ns(time) | Value::NsChange(time) => time.0.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Id(number) | Value::Bytes(number) => number.to_string(),
        Value::Number(number) if number.is_finite() => number.to_string(),
        Value::Percent(ratio) | Value::PercentChange(ratio) if ratio.is_finite() => {
            ratio.to_string()
        }
        Value::Percent(_)
        | Value::PercentChange(_)
        | Value::Number(_)
        | Value::Missing
        | Value::NotApplicable
        | Value::Blank => String::new(),
    }
}

/// A text cell. A leading `'` keeps a spreadsheet from taking a name for a formula.
fn text(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    if name.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        out.push('\'');
    }
    for character in name.chars() {
        match character {
            '\t' | '\r' | '\n' => out.push(character),
            hidden if is_hidden(hidden) => push_escaped(&mut out, hidden),
            plain => out.push(plain),
        }
    }
    if out.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", out.replace('"', "\"\""));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::document::{Column, Row};
    use super::*;
    use crate::units::Ns;

    #[test]
    fn text_is_quoted_and_never_a_formula() {
        assert_eq!(text("plain"), "plain");
        assert_eq!(text("a,b"), "\"a,b\"");
        assert_eq!(text("say \"hi\""), "\"say \"\"hi\"\"\"");
        assert_eq!(text("a\r\nb"), "\"a\r\nb\"");
        assert_eq!(text("=1+1"), "'=1+1");
        assert_eq!(text("@x,y"), "\"'@x,y\"");
        assert_eq!(text("\rx"), "\"'\rx\"");
        assert_eq!(text("\u{1b}[0m"), "\\u{1b}[0m");
    }

    #[test]
    fn numbers_are_bare_and_missing_values_empty() {
        let table = Table {
            caption: "not shown".to_owned(),
            keys: 1,
            columns: vec![
                Column::text("name"),
                Column::number("sum_ns"),
                Column::number("share"),
            ],
            rows: vec![
                Row::new(vec![
                    Value::text("x"),
                    Value::Ns(Ns(-5)),
                    Value::Percent(0.25),
                ]),
                Row::new(vec![
                    Value::text("-y"),
                    Value::Missing,
                    Value::NotApplicable,
                ]),
            ],
        };
        assert_eq!(render(&table), "name,sum_ns,share\nx,-5,0.25\n'-y,,\n");
    }
}
