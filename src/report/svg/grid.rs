//! The decisions of a grid of thresholds: a cell each, with its decision and best candidate in words.

use super::super::chart::{Chart, Paint};
use super::super::colour::{self, EMPTY, INK};
use super::super::decision::DecisionGrid;
use super::WIDTH;
use super::canvas::{Anchor, LEGEND, fitted, picture};
use crate::gate::Decision;

const NAMES: i32 = 240;
const ROW: i32 = 30;
const TOP: i32 = 34;
const PAINTS: [Paint; 3] = [
    Paint::Decision(Decision::Accept),
    Paint::Decision(Decision::Tune),
    Paint::Decision(Decision::Reject),
];

pub(super) fn draw(chart: &Chart, grid: &DecisionGrid) -> String {
    let columns = i32::try_from(grid.columns.len()).unwrap_or(1).max(1);
    let rows = i32::try_from(grid.rows.len()).unwrap_or(1);
    let cell = ((WIDTH - NAMES) / columns).min(220);
    let head = TOP + LEGEND;
    let height = head + ROW + rows * ROW + 8;
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        canvas.legend(&PAINTS, 0, TOP - 6);
        for (number, name) in (0..).zip(&grid.columns) {
            let x = NAMES + number * cell + cell / 2;
            let name = fitted(name, cell - 8);
            canvas.text(&name, (x, head + ROW / 2), Anchor::Middle, INK);
        }
        for (row, (name, cells)) in (1..).zip(&grid.rows) {
            let top = head + row * ROW;
            let name = fitted(name, NAMES - 12);
            canvas.text(&name, (NAMES - 10, top + ROW / 2), Anchor::Right, INK);
            for (column, found) in (0..).zip(cells) {
                let left = NAMES + column * cell;
                let place = [left + 1, top + 1, left + cell - 1, top + ROW - 1];
                let Some(found) = found else {
                    canvas.rect(place, EMPTY, None);
                    continue;
                };
                let shade = colour::of(Paint::Decision(found.decision));
                canvas.rect(place, shade, Some(found.about.clone()));
                // The word beside the colour: nothing is told by colour alone.
                let text = fitted(&format!("{}: {}", found.decision, found.best), cell - 8);
                let middle = (left + cell / 2, top + ROW / 2);
                canvas.bold(&text, middle, Anchor::Middle, colour::ink_on(shade));
            }
        }
    })
}
