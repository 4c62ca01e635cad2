//! Relative changes with their intervals, around the line of no change.

use super::super::chart::{ChangeSize, Changes, Chart};
use super::super::colour::{Colour, EMPTY, FAINT, INK};
use super::super::document::Value;
use super::super::number;
use super::WIDTH;
use super::canvas::{AXIS, Anchor, Axis, fitted, picture};

const NAMES: i32 = 250;
const WORDS: i32 = 200;
const ROW: i32 = 26;
const TOP: i32 = 34;
/// Less than the base, more than the base, and no difference that counts.
const LESS: Colour = Colour(0x00, 0x72, 0xb2);
const MORE: Colour = Colour(0xd5, 0x5e, 0x00);
const SAME: Colour = Colour(0x65, 0x65, 0x65);
/// Changes beyond are drawn at the border, with an arrow.
const FURTHEST: f64 = 3.0;
/// So much more than the furthest change is on the axis.
const MARGIN: f64 = 1.05;
/// Half of a mark, and how far an arrow reaches beyond it.
const HALF: i32 = 5;
const ARROW: i32 = 9;

pub(super) fn draw(chart: &Chart, changes: &Changes) -> String {
    let rows = i32::try_from(changes.rows.len()).unwrap_or(1);
    let height = TOP + rows * ROW + AXIS;
    let ends = changes.rows.iter().flat_map(|row| {
        let change = row.change.relative().unwrap_or(0.0);
        let (low, high) = row.interval.unwrap_or((change, change));
        [low, high, change]
    });
    let furthest = ends.fold(changes.min_effect * 2.0, |most: f64, end| {
        most.max(end.abs())
    });
    let furthest = furthest.clamp(0.05, FURTHEST);
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        let axis = Axis {
            from: -furthest * MARGIN * 100.0,
            to: furthest * MARGIN * 100.0,
            left: NAMES,
            right: WIDTH - WORDS,
            unit: "% of the base",
        };
        let at = |ratio: f64| axis.at(ratio * 100.0);
        let bottom = TOP + rows * ROW;
        let band = [at(-changes.min_effect), TOP, at(changes.min_effect), bottom];
        canvas.rect(band, EMPTY, None);
        canvas.axis(&axis, (TOP, bottom));
        canvas.line(vec![(at(0.0), TOP), (at(0.0), bottom)], FAINT, 1);
        for (number, row) in (0..).zip(&changes.rows) {
            let y = TOP + number * ROW + ROW / 2;
            let name = fitted(&row.label, NAMES - 14);
            canvas.text(&name, (NAMES - 12, y), Anchor::Right, INK);
            let paint = match row.verdict.as_str() {
                "faster" | "less" => LESS,
                "slower" | "more" => MORE,
                _ => SAME,
            };
            let told = told(row.change);
            let mut title = format!("{}: {told}, {}", row.label, row.verdict);
            if let Some((low, high)) = row.interval {
                let [low_text, high_text] =
                    [low, high].map(|end| number::spelled(&Value::PercentChange(end)));
                title = format!("{title} ({low_text} to {high_text} %)");
                canvas.line(vec![(at(low), y), (at(high), y)], paint, 2);
                for end in [low, high] {
                    canvas.line(vec![(at(end), y - 5), (at(end), y + 5)], paint, 2);
                }
            }
            // What is new has no place on the axis: it is beyond all of it.
            let change = row.change.relative().unwrap_or(f64::INFINITY);
            let x = at(change.clamp(-furthest, furthest));
            canvas.rect([x - HALF, y - HALF, x + HALF, y + HALF], paint, Some(title));
            if change.abs() > furthest {
                let way = if change > 0.0 { 1 } else { -1 };
                let (from, tip) = (x + way * HALF, x + way * (HALF + ARROW));
                canvas.polygon(vec![(from, y - 8), (tip, y), (from, y + 8)], paint);
            }
            let words = fitted(&format!("{told}  {}", row.verdict), WORDS - 16);
            canvas.text(&words, (WIDTH - WORDS + 14, y), Anchor::Left, INK);
        }
    })
}

/// `+12.3 %`, or how much there is of what is new or gone.
fn told(change: ChangeSize) -> String {
    match change {
        ChangeSize::Relative(change) => {
            format!("{} %", number::spelled(&Value::PercentChange(change)))
        }
        ChangeSize::New(time) => format!("new: {} ms", number::ms(time)),
        ChangeSize::Gone(time) => format!("gone: {} ms", number::ms(time)),
    }
}
