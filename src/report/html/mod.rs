//! Reports as one HTML file: no network, no fonts, nothing beside it.
//!
//! ```text
//! page.html   the frame, with places to fill        report.css   looks: light, dark, on paper
//! text        text and JSON made safe               report.js    sorting, searching, zooming
//! table       tables                                figure       pictures
//! ```
//! The page is whole without its script. Nothing in it can run but that script: all text is escaped, data is JSON
//! without `<`, and the page forbids itself (by a content security policy) what has not the hash of the script.

mod figure;
mod table;
mod text;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::document::{Block, Document, Section};
use text::{base64, escaped, prose};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

// Writing to a string cannot fail, so what `write!` returns is ignored throughout.

/// `document` as a page.
pub fn render(document: &Document) -> String {
    let sections = named(document);
    let mut nav = String::new();
    let mut body = String::new();
    let mut page = Page::default();
    for (name, section) in &sections {
        if let Some(title) = &section.title {
            let _ = writeln!(
                nav,
                "<li><a href=\"#{name}\">{}</a></li>",
                prose(&short(title))
            );
        }
        page.section(&mut body, name, section);
    }
    let tool = format!("tracekit {}", env!("CARGO_PKG_VERSION"));
    let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
    filled(|place| match place {
        "script-hash" => hash.clone(),
        "title" => escaped(&short(&document.title)),
        "lead" => prose(&document.lead),
        "tool" => escaped(&tool),
        "style" => STYLE.to_owned(),
        "nav" => nav.clone(),
        "body" => body.clone(),
        "script" => SCRIPT.to_owned(),
        other => unreachable!("no place is called {other}"),
    })
}

/// The page with its places filled; what fills them is not looked into.
fn filled(content: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    for (number, part) in PAGE.split("{{").enumerate() {
        match part.split_once("}}") {
            Some((place, rest)) if number > 0 => {
                out.push_str(&content(place));
                out.push_str(rest);
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// A title may hold the name of a run, which is a path of any length.
fn short(title: &str) -> String {
    super::name::shortened(&super::name::visible(title), 90).into_owned()
}

/// Every section with a name for addresses, no two alike.
fn named(document: &Document) -> Vec<(String, &Section)> {
    let mut used: Vec<String> = Vec::new();
    let sections = document.sections.iter().enumerate();
    sections
        .map(|(number, section)| {
            let title = section.title.as_deref().unwrap_or("more");
            let mut name: String = title
                .chars()
                .take(40)
                .map(|character| match character {
                    letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
                    _ => '-',
                })
                .collect();
            if used.contains(&name) || name == "report" {
                name = format!("{name}-{number}");
            }
            used.push(name.clone());
            (name, section)
        })
        .collect()
}

/// Numbers what is referred to inside the page.
#[derive(Default)]
struct Page {
    tables: usize,
    figures: usize,
}

impl Page {
    fn section(&mut self, out: &mut String, name: &str, section: &Section) {
        let _ = match &section.title {
            Some(title) => writeln!(
                out,
                "<section id=\"{name}\" aria-labelledby=\"{name}-title\">\n<h2 id=\"{name}-title\">{}</h2>",
                prose(&short(title))
            ),
            None => writeln!(out, "<section id=\"{name}\">"),
        };
        for block in &section.blocks {
            match block {
                Block::Paragraph(text) => {
                    let _ = writeln!(out, "<p>{}</p>", prose(text));
                }
                Block::Notes(notes) => {
                    if notes.is_empty() {
                        continue;
                    }
                    out.push_str("<dl>\n");
                    for note in notes {
                        let (label, text) = (escaped(note.label), prose(&note.text));
                        let _ = writeln!(out, "<dt>{label}</dt><dd>{text}</dd>");
                    }
                    out.push_str("</dl>\n");
                }
                Block::Table(table) => {
                    self.tables += 1;
                    table::push(out, table, self.tables);
                }
                Block::Chart(chart) => {
                    self.figures += 1;
                    figure::push(out, chart, self.figures);
                }
            }
        }
        out.push_str("</section>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::{Column, Note, Row, Table, Value};
    use super::*;

    #[test]
    fn names_do_not_run_and_do_not_fill_places() {
        let evil = "</h1><script>alert(1)</script>\"'{{script}}\u{202e}\u{1b}";
        let document = Document {
            title: evil.to_owned(),
            lead: evil.to_owned(),
            sections: vec![
                Section {
                    title: Some(evil.to_owned()),
                    blocks: vec![
                        Block::Paragraph(evil.to_owned()),
                        Block::Notes(vec![Note::new("x", evil)]),
                        Block::Table(Table {
                            caption: evil.to_owned(),
                            keys: 1,
                            columns: vec![Column::text(evil)],
                            rows: vec![Row::new(vec![Value::text(evil)])],
                        }),
                    ],
                },
                Section {
                    title: Some(evil.to_owned()),
                    blocks: Vec::new(),
                },
            ],
        };
        let page = render(&document);
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches(SCRIPT).count(), 1);
        assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
        assert!(page.contains(
            "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;{{script}}\\u{202e}\\u{1b}"
        ));
        let ids = page
            .split(" id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next());
        let mut ids: Vec<_> = ids.collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{ids:?}");
    }

    #[test]
    fn links_lead_beside_the_page_whatever_they_are_called() {
        let link = |to: &str| {
            let cell = Value::Link {
                text: "<b>".to_owned(),
                to: to.to_owned(),
            };
            let table = Table {
                columns: vec![Column::text("x")],
                rows: vec![Row::new(vec![cell])],
                ..Table::default()
            };
            let mut out = String::new();
            table::push(&mut out, &table, 1);
            out
        };
        assert!(link("a/b%2Fc.html").contains("<a href=\"./a/b%252Fc.html\">&lt;b&gt;</a>"));
        assert!(link("javascript:alert(1)\"").contains("\"./javascript%3Aalert%281%29%22\""));
    }

    #[test]
    fn the_page_reaches_for_nothing_outside() {
        let page = render(&Document::default());
        for outside in [
            "http:", "https:", "@import", "url(", "src=", "fetch(", "import(",
        ] {
            let found = page.replace("http-equiv", "").contains(outside);
            assert!(!found, "{outside}");
        }
    }
}
