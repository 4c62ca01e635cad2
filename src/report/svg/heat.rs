//! A table whose cells are shaded by their share.

use super::super::chart::{Chart, Heat};
use super::super::colour::{EMPTY, FULL, INK};
use super::super::document::Value;
use super::super::number;
use super::WIDTH;
use super::canvas::{Anchor, fitted, picture};

const NAMES: i32 = 130;
const ROW: i32 = 30;
const TOP: i32 = 34;

pub(super) fn draw(chart: &Chart, heat: &Heat) -> String {
    let columns = i32::try_from(heat.columns.len()).unwrap_or(1).max(1);
    let rows = i32::try_from(heat.rows.len()).unwrap_or(1);
    let cell = ((WIDTH - NAMES) / columns).min(150);
    let height = TOP + ROW + rows * ROW + 8;
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        for (number, name) in (0..).zip(&heat.columns) {
            let x = NAMES + number * cell + cell / 2;
            let name = fitted(name, cell - 8);
            canvas.text(&name, (x, TOP + ROW / 2), Anchor::Middle, INK);
        }
        for (row, (name, cells)) in (1..).zip(&heat.rows) {
            let top = TOP + row * ROW;
            let name = fitted(name, NAMES - 12);
            canvas.text(&name, (NAMES - 10, top + ROW / 2), Anchor::Right, INK);
            for (column, value) in (0..).zip(cells) {
                let left = NAMES + column * cell;
                // Small shares must be seen, too: shades go with the root. They lie on an empty cell, so that both
                // ends of the scale can follow the theme of a page.
                let part = value.share.clamp(0.0, 1.0).sqrt();
                let text = number::spelled(&value.value);
                let title = format!(
                    "{name}, {}: {text} {} ({} %)",
                    heat.columns[usize::try_from(column).unwrap_or(0)],
                    heat.unit,
                    number::spelled(&Value::Percent(value.share)),
                );
                let cell_of = [left + 1, top + 1, left + cell - 1, top + ROW - 1];
                if part > 0.0 {
                    canvas.rect(cell_of, EMPTY, None);
                    canvas.shade(cell_of, FULL, part, title);
                } else {
                    canvas.rect(cell_of, EMPTY, Some(title));
                }
                let place = (left + cell / 2, top + ROW / 2);
                canvas.text(&text, place, Anchor::Middle, INK);
            }
        }
    })
}
