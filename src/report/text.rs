//! Reports as plain text, for terminals, pipes and files.
//!
//! On a terminal, tables and notes are laid out in its width; elsewhere every note is one line, so
//! that `grep` finds facts whole. Nothing is told by colour alone.

use std::borrow::Cow;

use super::document::{Align, Block, Column, Document, Note, Row, RowKind, Table, Value};
use super::name::{shortened, visible, width};
use super::number;

/// Columns of a name where nothing limits them.
const LONGEST_NAME: usize = 100;
/// Columns that a name keeps however narrow the terminal is.
const SHORTEST_NAME: usize = 20;
/// Space between columns.
const GAP: &str = "  ";

/// How to lay a report out as text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns to stay in; `None` for no limit.
    pub width: Option<usize>,
    /// Use bold and dim type, by ANSI escapes.
    pub styled: bool,
}

/// `document` as text.
pub fn render(document: &Document, options: TextOptions) -> String {
    let mut page = Page {
        out: String::new(),
        options,
    };
    page.bold(&document.lead);
    for section in &document.sections {
        if let Some(title) = &section.title {
            page.gap();
            page.heading(title);
        }
        for block in &section.blocks {
            match block {
                Block::Paragraph(text) => {
                    page.lines(&visible(text), 0);
                }
                Block::Table(table) => {
                    page.gap();
                    page.table(table);
                    page.gap();
                }
                Block::Notes(notes) => page.notes(notes),
                Block::Chart(_) => {}
            }
        }
    }
    while page.out.ends_with("\n\n") {
        page.out.pop();
    }
    page.out
}

struct Page {
    out: String,
    options: TextOptions,
}

#[derive(Clone, Copy)]
enum Style {
    Bold,
    Dim,
}

impl Page {
    /// An empty line, unless there is one.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn styled(&mut self, style: Style, text: &str) {
        let code = match style {
            Style::Bold => "\u{1b}[1m",
            Style::Dim => "\u{1b}[2m",
        };
        if self.options.styled && !text.is_empty() {
            self.out.push_str(code);
            self.out.push_str(text);
            self.out.push_str("\u{1b}[0m");
        } else {
            self.out.push_str(text);
        }
    }

    fn bold(&mut self, text: &str) {
        for line in wrapped(&visible(text), self.options.width) {
            self.styled(Style::Bold, &line);
            self.out.push('\n');
        }
    }

    /// The heading of a section, with a rule to the right of it.
    fn heading(&mut self, title: &str) {
        let title = visible(title);
        self.styled(Style::Bold, &title);
        let room = self
            .options
            .width
            .unwrap_or(80)
            .saturating_sub(width(&title) + 1);
        if room > 0 {
            self.out.push(' ');
            self.styled(Style::Dim, &"─".repeat(room));
        }
        self.out.push('\n');
    }

    /// `text` in lines whose continuations are indented.
    fn lines(&mut self, text: &str, indent: usize) {
        let room = self.options.width.map(|width| width.saturating_sub(indent));
        for (number, line) in wrapped(text, room).iter().enumerate() {
            if number > 0 {
                self.out.extend(std::iter::repeat_n(' ', indent));
            }
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    fn notes(&mut self, notes: &[Note]) {
        let longest = notes
            .iter()
            .map(|note| width(note.label))
            .max()
            .unwrap_or(0);
        // Aligned text helps the eye on a terminal only.
        let aligned = self.options.width.is_some();
        for note in notes {
            self.styled(Style::Bold, note.label);
            self.out.push_str(": ");
            let pad = if aligned {
                longest - width(note.label)
            } else {
                0
            };
            self.out.extend(std::iter::repeat_n(' ', pad));
            self.lines(&visible(&note.text), longest + 2);
        }
    }

    fn table(&mut self, table: &Table) {
        let laid = Laid::new(table, self.options.width);
        self.bold(&table.caption);
        for (number, part) in laid.parts(table, self.options.width).iter().enumerate() {
            if number > 0 {
                self.out.push('\n');
            }
            let header = |cell: &dyn Fn(&Column) -> String| -> Vec<String> {
                table.columns.iter().map(cell).collect()
            };
            let names = header(&|column| visible(&column.name).into_owned());
            let line = laid.line(&names, part);
            self.styled(Style::Dim, &line);
            self.out.push('\n');
            if part
                .iter()
                .any(|column| table.columns[*column].unit.is_some())
            {
                let units = header(&|column| column.unit.unwrap_or_default().to_owned());
                let line = laid.line(&units, part);
                self.styled(Style::Dim, &line);
                self.out.push('\n');
            }
            for (row, cells) in table.rows.iter().zip(&laid.cells) {
                let line = laid.line(cells, part);
                if row.kind == RowKind::Total {
                    self.styled(Style::Bold, &line);
                } else {
                    self.out.push_str(&line);
                }
                self.out.push('\n');
            }
        }
    }
}

/// The cells of a table as text, with the width of each column.
struct Laid {
    cells: Vec<Vec<String>>,
    widths: Vec<usize>,
    aligns: Vec<Align>,
}

impl Laid {
    fn new(table: &Table, limit: Option<usize>) -> Self {
        let mut laid = Self {
            cells: table
                .rows
                .iter()
                .map(|row| cells(row, LONGEST_NAME))
                .collect(),
            widths: Vec::new(),
            aligns: table.columns.iter().map(|column| column.align).collect(),
        };
        laid.measure(table);
        // The last column of text is the one with names that may give way.
        let name = table
            .columns
            .iter()
            .rposition(|column| column.align == Align::Left);
        if let (Some(limit), Some(name)) = (limit, name)
            && laid.total_width() > limit
            && laid.widths[name] > SHORTEST_NAME
        {
            let excess = laid.total_width() - limit;
            let room = laid.widths[name].saturating_sub(excess).max(SHORTEST_NAME);
            for row in &mut laid.cells {
                if let Cow::Owned(shorter) = shortened(&row[name], room) {
                    row[name] = shorter;
                }
            }
            laid.measure(table);
        }
        laid
    }

    fn measure(&mut self, table: &Table) {
        self.widths = table
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| {
                let header = width(&visible(&column.name)).max(column.unit.map_or(0, width));
                self.cells
                    .iter()
                    .map(|row| width(&row[number]))
                    .fold(header, usize::max)
            })
            .collect();
    }

    fn total_width(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP.len() * self.widths.len().saturating_sub(1)
    }

    /// The columns of each part of a table that is broken to stay in `limit`; every part starts
    /// with the key columns.
    fn parts(&self, table: &Table, limit: Option<usize>) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..table.columns.len()).collect();
        let Some(limit) = limit.filter(|limit| self.total_width() > *limit) else {
            return vec![all];
        };
        let (keys, rest) = all.split_at(table.keys);
        let room_of = |columns: &[usize]| {
            columns
                .iter()
                .map(|column| self.widths[*column] + GAP.len())
                .sum::<usize>()
        };
        let room = (limit + GAP.len()).saturating_sub(room_of(keys));
        let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
        for group in rest.chunk_by(|_, next| !table.columns[*next].group) {
            // A group that fits in no part is broken anywhere.
            let pieces: Vec<&[usize]> = if room_of(group) > room {
                group.chunks(1).collect()
            } else {
                vec![group]
            };
            for piece in pieces {
                let last = parts.len() - 1;
                if !parts[last].is_empty() && room_of(&parts[last]) + room_of(piece) > room {
                    parts.push(Vec::new());
                }
                let last = parts.len() - 1;
                parts[last].extend(piece);
            }
        }
        parts
            .into_iter()
            .map(|part| [keys, &part].concat())
            .collect()
    }

    fn line(&self, cells: &[String], columns: &[usize]) -> String {
        let mut line = String::new();
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                line.push_str(GAP);
            }
            let cell = &cells[*column];
            let pad = std::iter::repeat_n(' ', self.widths[*column].saturating_sub(width(cell)));
            match self.aligns[*column] {
                Align::Left => {
                    line.push_str(cell);
                    line.extend(pad);
                }
                Align::Right => {
                    line.extend(pad);
                    line.push_str(cell);
                }
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn cells(row: &Row, longest: usize) -> Vec<String> {
    let mut cells: Vec<String> = row
        .cells
        .iter()
        .map(|value| match value {
            Value::Text(name) | Value::Link { text: name, .. } => {
                shortened(&visible(name), longest).into_owned()
            }
            other => number::spelled(other),
        })
        .collect();
    if row.kind == RowKind::Part
        && let Some(first) = cells.first_mut()
    {
        first.insert_str(0, "  ");
    }
    cells
}

/// `text` in lines of at most `room` columns, broken between words. A word that stands for the
/// unit of the number before it stays with it.
fn wrapped(text: &str, room: Option<usize>) -> Vec<String> {
    let Some(room) = room.filter(|room| width(text) > *room) else {
        return vec![text.to_owned()];
    };
    let mut lines = vec![String::new()];
    let mut start = 0;
    while start < text.len() {
        let mut end = start;
        loop {
            end = text[end..]
                .find(' ')
                .map_or(text.len(), |space| end + space);
            let next = text[end..].trim_start();
            let word = next.split(' ').next().unwrap_or_default();
            if end == text.len() || !is_unit(word) {
                break;
            }
            end += 1;
        }
        let chunk = &text[start..end];
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(chunk);
        } else if width(&lines[last]) + 1 + width(chunk) <= room {
            lines[last].push(' ');
            lines[last].push_str(chunk);
        } else {
            lines.push(chunk.to_owned());
        }
        start = end + 1;
    }
    lines
}

/// True for `%` and `ms`, with or without a mark after them.
fn is_unit(word: &str) -> bool {
    matches!(word.trim_end_matches([',', ';', ':', '.', ')']), "%" | "ms")
}

#[cfg(test)]
mod tests {
    use super::super::document::Section;
    use super::*;
    use crate::units::Ns;

    fn table() -> Table {
        Table {
            caption: "Device time".to_owned(),
            keys: 1,
            columns: vec![
                Column::text("phase"),
                Column::ms("time"),
                Column::percent("share"),
                Column::number("events").starting_group(),
            ],
            rows: vec![
                Row::new(vec![
                    Value::text("other"),
                    Value::Ns(Ns(12_345_678)),
                    Value::Percent(1.0),
                    Value::Count(1_234),
                ]),
                Row::part(vec![
                    Value::text("rest"),
                    Value::Missing,
                    Value::NotApplicable,
                    Value::Blank,
                ]),
                Row::total(vec![
                    Value::text("total"),
                    Value::Ns(Ns(12_345_678)),
                    Value::Percent(1.0),
                    Value::Count(1_234),
                ]),
            ],
        }
    }

    fn document(blocks: Vec<Block>) -> Document {
        Document {
            title: "title".to_owned(),
            lead: "2 steps: all other".to_owned(),
            sections: vec![Section {
                title: None,
                blocks,
            }],
        }
    }

    #[test]
    fn numbers_are_right_aligned_under_their_unit() {
        let text = render(
            &document(vec![Block::Table(table())]),
            TextOptions::default(),
        );
        assert_eq!(
            text,
            "2 steps: all other\n\nDevice time\n\
             phase     time  share  events\n\
             \u{20}           ms      %\n\
             other   12.346  100.0   1,234\n\
             \u{20} rest       —    n/a\n\
             total   12.346  100.0   1,234\n"
        );
    }

    #[test]
    fn a_table_that_is_too_wide_is_broken_between_groups() {
        let options = TextOptions {
            width: Some(24),
            styled: false,
        };
        let text = render(&document(vec![Block::Table(table())]), options);
        assert_eq!(
            text,
            "2 steps: all other\n\nDevice time\n\
             phase     time  share\n\
             \u{20}           ms      %\n\
             other   12.346  100.0\n\
             \u{20} rest       —    n/a\n\
             total   12.346  100.0\n\n\
             phase   events\n\
             other    1,234\n\
             \u{20} rest\n\
             total    1,234\n"
        );
    }

    #[test]
    fn notes_wrap_between_words_and_keep_units() {
        let notes = vec![
            Note::new("idle", "over 31.2 % of the time"),
            Note::new("coverage", "all"),
        ];
        let narrow = TextOptions {
            width: Some(22),
            styled: false,
        };
        let text = render(&document(vec![Block::Notes(notes.clone())]), narrow);
        assert_eq!(
            text,
            "2 steps: all other\n\
             idle:     over 31.2 %\n\
             \u{20}         of the time\n\
             coverage: all\n"
        );
        let text = render(&document(vec![Block::Notes(notes)]), TextOptions::default());
        assert_eq!(
            text,
            "2 steps: all other\nidle: over 31.2 % of the time\ncoverage: all\n"
        );
    }

    #[test]
    fn hostile_names_stay_on_their_line() {
        let mut table = table();
        table.rows[0].cells[0] = Value::text("a\u{1b}[2J\n\u{202e}b");
        let text = render(&document(vec![Block::Table(table)]), TextOptions::default());
        assert!(text.contains("a\\u{1b}[2J\\u{a}\\u{202e}b"));
        assert!(!text.contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn names_give_way_on_a_narrow_terminal_only() {
        let long = "k".repeat(200);
        let table = Table {
            caption: "Kernels".to_owned(),
            keys: 0,
            columns: vec![Column::ms("time"), Column::text("kernel")],
            rows: vec![Row::new(vec![Value::Ns(Ns(1_000_000)), Value::text(long)])],
        };
        let blocks = vec![Block::Table(table)];
        let options = TextOptions {
            width: Some(60),
            styled: false,
        };
        let narrow = render(&document(blocks.clone()), options);
        assert_eq!(narrow.lines().map(width).max(), Some(60));
        let wide = render(&document(blocks), TextOptions::default());
        assert_eq!(wide.lines().map(width).max(), Some(LONGEST_NAME + 7));
    }

    #[test]
    fn type_is_bold_only_when_asked_for() {
        let blocks = vec![Block::Table(table())];
        let options = TextOptions {
            width: None,
            styled: true,
        };
        assert!(render(&document(blocks), options).starts_with("\u{1b}[1m2 steps"));
    }
}
