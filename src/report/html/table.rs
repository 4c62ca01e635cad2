//! Tables: numbers as people read them, with the exact value beside where that differs.

use std::fmt::Write as _;

use super::super::document::{Align, RowKind, Table, Value};
use super::super::name::{shortened, visible, width};
use super::super::number;
use super::text::{escaped, prose};

/// Columns of a name that a row is about, and of one beside; all of a longer one shows when pointed at, up to a
/// limit.
const LONGEST_KEY: usize = 160;
const LONGEST_NAME: usize = 100;
const LONGEST_TITLE: usize = 1_200;
/// A name of so many columns stays on one line.
const LONGEST_WORD: usize = 32;

/// Appends table number `number` of the page.
pub(super) fn push(out: &mut String, table: &Table, number: usize) {
    let _ = writeln!(
        out,
        "<p class=\"caption\" id=\"c{number}\">{}</p>\n<div class=\"scroll\" role=\"region\" \
         aria-labelledby=\"c{number}\" tabindex=\"0\">\n<table id=\"t{number}\" aria-labelledby=\"c{number}\">",
        prose(table.caption.trim_end_matches('.'))
    );
    out.push_str("<thead><tr>");
    for column in &table.columns {
        let class = match column.align {
            Align::Left => "",
            Align::Right => " class=\"n\"",
        };
        let name = prose(&shortened(&visible(&column.name), 60));
        let unit = column.unit.map_or_else(String::new, |unit| {
            format!("<span class=\"u\">{}</span>", escaped(unit))
        });
        // A heading of nothing but a unit is hard to hear.
        let name = if name.is_empty() && unit.is_empty() {
            "<span class=\"heard\">what</span>".to_owned()
        } else {
            name
        };
        let _ = write!(out, "<th scope=\"col\"{class}>{name}{unit}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (kind, cells) in table.rows_in_full() {
        push_row(out, table, kind, &cells);
    }
    out.push_str("</tbody></table></div>\n");
}

fn push_row(out: &mut String, table: &Table, kind: RowKind, cells: &[&Value]) {
    out.push_str(match kind {
        RowKind::Plain => "<tr>",
        RowKind::Part => "<tr class=\"part\">",
        RowKind::Total => "<tr class=\"total\">",
    });
    for (place, (value, column)) in cells.iter().copied().zip(&table.columns).enumerate() {
        // The first cell names the row, even where several keys do.
        let (open, close) = if place == 0 && table.keys > 0 {
            ("<th scope=\"row\"", "</th>")
        } else {
            ("<td", "</td>")
        };
        out.push_str(open);
        match (value, column.align) {
            (Value::Text(text) | Value::Link { text, .. }, _) => {
                let longest = match (column.sentences, place < table.keys) {
                    (true, _) => usize::MAX,
                    (false, true) => LONGEST_KEY,
                    (false, false) => LONGEST_NAME,
                };
                let link = match value {
                    Value::Link { to, .. } => Some(to.as_str()),
                    _ => None,
                };
                push_name(out, text, longest, link);
            }
            (value, align) => {
                if align == Align::Right {
                    out.push_str(" class=\"n\"");
                }
                if let Some(raw) = raw(value) {
                    let _ = write!(out, " data-v=\"{raw}\"");
                }
                out.push('>');
                out.push_str(&escaped(&number::spelled(value)));
            }
        }
        out.push_str(close);
    }
    out.push_str("</tr>\n");
}

fn push_name(out: &mut String, name: &str, longest: usize, link: Option<&str>) {
    let seen = visible(name);
    let short = shortened(&seen, longest);
    if short.len() < seen.len() {
        let title = shortened(&seen, LONGEST_TITLE);
        let _ = write!(out, " class=\"t\" title=\"{}\">", escaped(&title));
    } else if width(&seen) <= LONGEST_WORD {
        out.push_str(" class=\"s\">");
    } else {
        out.push_str(" class=\"t\">");
    }
    match link {
        // A page beside this one, whatever is in its name: never an address with a scheme.
        Some(to) => {
            let _ = write!(out, "<a href=\"./{}\">{}</a>", address(to), escaped(&short));
        }
        None => out.push_str(&escaped(&short)),
    }
}

/// A path as it stands in an address.
fn address(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The exact value, where the text does not say it.
fn raw(value: &Value) -> Option<String> {
    match value {
        Value::Ns(time) | Value::NsChange(time) => Some(time.0.to_string()),
        Value::Bytes(bytes) => Some(bytes.to_string()),
        Value::Number(number) | Value::Percent(number) | Value::PercentChange(number) => {
            number.is_finite().then(|| number.to_string())
        }
        // Not a number for the script, either.
        Value::Missing | Value::NotApplicable | Value::Blank => Some(String::new()),
        Value::Text(_) | Value::Link { .. } | Value::Count(_) | Value::Id(_) => None,
    }
}
