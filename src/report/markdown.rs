//! Reports as GitHub-flavoured Markdown.

use std::fmt::Write as _;

use super::document::{Align, Block, Document, RowKind, Table, Value};
use super::name::{shortened, visible};
use super::number;

/// Longest name that is kept whole.
const LONGEST_NAME: usize = 200;

// Writing to a string cannot fail, so what `write!` returns is ignored throughout.

/// `document` as Markdown.
pub fn render(document: &Document) -> String {
    let mut out = format!(
        "# {}\n\n**{}**\n",
        escaped(&document.title),
        escaped(&document.lead)
    );
    for section in &document.sections {
        if let Some(title) = &section.title {
            let _ = writeln!(out, "\n## {}", escaped(title));
        }
        for block in &section.blocks {
            if matches!(block, Block::Chart(_)) {
                continue;
            }
            out.push('\n');
            match block {
                Block::Paragraph(text) => {
                    let _ = writeln!(out, "{}", escaped(text));
                }
                Block::Table(table) => push_table(&mut out, table, section.title.is_some()),
                Block::Notes(notes) => {
                    for note in notes {
                        let text = escaped(&note.text);
                        let _ = writeln!(out, "- **{}**: {text}", escaped(note.label));
                    }
                }
                Block::Chart(_) => {}
            }
        }
    }
    out
}

fn push_table(out: &mut String, table: &Table, inside: bool) {
    let level = if inside { "###" } else { "##" };
    let _ = writeln!(out, "{level} {}\n", escaped(&table.caption));
    let header = table.columns.iter().map(|column| match column.unit {
        Some(unit) if column.name.is_empty() => unit.to_owned(),
        Some(unit) => format!("{} ({unit})", escaped(&column.name)),
        None => escaped(&column.name),
    });
    line(out, header);
    let rule = table.columns.iter().map(|column| match column.align {
        Align::Left => "---".to_owned(),
        Align::Right => "---:".to_owned(),
    });
    line(out, rule);
    for row in &table.rows {
        let cells = row.cells.iter().enumerate().map(|(number, value)| {
            let text = match value {
                Value::Text(name) | Value::Link { text: name, .. } => {
                    escaped(&shortened(&visible(name), LONGEST_NAME))
                }
                other => escaped(&number::spelled(other)),
            };
            match row.kind {
                RowKind::Part if number == 0 => format!("&emsp;{text}"),
                RowKind::Total if !text.is_empty() => format!("**{text}**"),
                _ => text,
            }
        });
        line(out, cells);
    }
}

fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    for cell in cells {
        let _ = write!(out, "| {cell} ");
    }
    out.push_str("|\n");
}

/// `text` without anything that Markdown, or HTML inside it, would take for markup.
fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 8);
    let mut mention = 0;
    for (place, character) in text.char_indices() {
        let before = &text[..place];
        if place < mention {
            out.push(character);
            if place + 1 == mention {
                out.push('`');
            }
            continue;
        }
        if character == '@' {
            // Somebody would be told of it; a backslash does not keep code hosts from that, code does.
            let name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/');
            let length = text.as_bytes()[place + 1..]
                .iter()
                .take_while(|byte| name(byte));
            mention = place + 1 + length.count();
            if mention > place + 1 {
                out.push_str("`@");
                continue;
            }
        }
        let markup = match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '&' | '$' | '~' => true,
            // An address must not turn into a link.
            '/' => before.ends_with(':') || before.ends_with(":/"),
            '.' => {
                let word = before.len().saturating_sub(3);
                before.as_bytes()[word..].eq_ignore_ascii_case(b"www")
            }
            // A heading, a list or a quotation starts a line.
            '#' | '+' | '-' => before.is_empty(),
            _ => false,
        };
        if markup {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::document::{Column, Note, Row, Section};
    use super::*;
    use crate::units::Ns;

    #[test]
    fn markup_in_names_is_escaped() {
        assert_eq!(
            escaped("a|b`c<d>[e]*f*_g\\"),
            "a\\|b\\`c\\<d\\>\\[e\\]\\*f\\*\\_g\\\\"
        );
        assert_eq!(escaped("&lt; $x$ ~s~"), "\\&lt; \\$x\\$ \\~s\\~");
        assert_eq!(
            escaped("@octocat a@b/c-d_e @ @"),
            "`@octocat` a`@b/c-d`\\_e @ @"
        );
        assert_eq!(escaped("http://x www.y"), "http:\\/\\/x www\\.y");
        assert_eq!(escaped("at::native::add"), "at::native::add");
        assert_eq!(escaped("# no heading"), "\\# no heading");
        assert_eq!(escaped("line\nbreak"), "line\\\\u{a}break");
    }

    #[test]
    fn tables_and_notes_become_markdown() {
        let table = Table {
            caption: "Device time".to_owned(),
            keys: 1,
            columns: vec![Column::text("phase"), Column::ms("time")],
            rows: vec![
                Row::new(vec![Value::text("pre_window"), Value::Ns(Ns(1_000_000))]),
                Row::part(vec![Value::text("rest"), Value::Missing]),
                Row::total(vec![Value::text("total"), Value::Ns(Ns(-1))]),
            ],
        };
        let document = Document {
            title: "t".to_owned(),
            lead: "l".to_owned(),
            sections: vec![Section {
                title: None,
                blocks: vec![
                    Block::Table(table),
                    Block::Notes(vec![Note::new("coverage", "12 % | all")]),
                ],
            }],
        };
        assert_eq!(
            render(&document),
            "# t\n\n**l**\n\n## Device time\n\n\
             | phase | time (ms) |\n| --- | ---: |\n\
             | pre\\_window | 1.000 |\n| &emsp;rest | — |\n| **total** | **\\>-0.001** |\n\n\
             - **coverage**: 12 % \\| all\n"
        );
    }
}
