//! Bars of stacked parts: a few lie below each other, many stand side by side.

use super::super::chart::{Bar, Bars, Chart, Paint};
use super::super::colour::{FAINT, INK};
use super::super::number;
use super::canvas::{
    AXIS, Anchor, Axis, Canvas, TEXT, fitted, legend_height, picture, rounded, text_width,
};
use super::{WIDTH, size, told};

/// More bars than this stand side by side.
const MOST_LYING: usize = 16;
/// Height of a lying bar, with the space to the next.
const ROW: i32 = 28;
const THICK: i32 = 18;
/// Room for names on the left of lying bars.
const NAMES: i32 = 200;
/// Room for totals on the right.
const TOTALS: i32 = 100;
const TOP: i32 = 34;
/// Height of standing bars.
const TALL: i32 = 240;

pub(super) fn draw(chart: &Chart, bars: &Bars) -> String {
    let mut paints: Vec<Paint> = Vec::new();
    for part in bars.bars.iter().flat_map(|bar| &bar.parts) {
        if !paints.contains(&part.paint) {
            paints.push(part.paint);
        }
    }
    paints.sort_unstable();
    let legend = legend_height(&paints, WIDTH);
    let most = bars
        .bars
        .iter()
        .map(|bar| size(&bar.total))
        .fold(0.0, f64::max);
    let lying = bars.bars.len() <= MOST_LYING;
    if bars.bars.is_empty() {
        return picture(WIDTH, TOP, &chart.caption, &chart.about, |canvas| {
            canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        });
    }
    let body = if lying {
        i32::try_from(bars.bars.len()).unwrap_or(1) * ROW
    } else {
        TALL
    };
    let height = TOP + legend + body + AXIS;
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        canvas.legend(&paints, 0, TOP - 8);
        let top = TOP + legend;
        if lying {
            lie(canvas, bars, most, top, top + body);
        } else {
            stand(canvas, bars, most, top, top + body);
        }
    })
}

fn title(bar: &Bar, number: usize, unit: &str) -> String {
    let part = &bar.parts[number];
    format!(
        "{}, {}",
        bar.label,
        told(part.paint, &part.value, unit, &part.share)
    )
}

fn lie(canvas: &mut Canvas<'_, '_>, bars: &Bars, most: f64, top: i32, bottom: i32) {
    let longest = bars.bars.iter().map(|bar| text_width(&bar.label)).max();
    let names = (longest.unwrap_or(0) + 16).clamp(60, NAMES);
    let axis = Axis {
        from: 0.0,
        to: most,
        left: names,
        right: WIDTH - TOTALS,
        unit: bars.unit,
    };
    canvas.axis(&axis, (top, bottom));
    let mut y = top;
    for bar in &bars.bars {
        let middle = y + ROW / 2;
        let name = fitted(&bar.label, names - 12);
        canvas.text(&name, (names - 10, middle), Anchor::Right, INK);
        let mut before = 0.0;
        for (place, part) in bar.parts.iter().enumerate() {
            let after = before + size(&part.value);
            let (left, right) = (axis.at(before), axis.at(after));
            before = after;
            if right > left {
                let place_of = [left, middle - THICK / 2, right, middle + THICK / 2];
                let title = title(bar, place, bars.unit);
                canvas.painted(place_of, part.paint, Some(title));
            }
        }
        let total = format!("{} {}", number::spelled(&bar.total), bars.unit);
        canvas.text(&total, (axis.at(before) + 8, middle), Anchor::Left, INK);
        y += ROW;
    }
}

fn stand(canvas: &mut Canvas<'_, '_>, bars: &Bars, most: f64, top: i32, bottom: i32) {
    // The axis lies on its side: from the bottom up.
    let axis = Axis {
        from: 0.0,
        to: most,
        left: 0,
        right: bottom - top,
        unit: bars.unit,
    };
    let left = 80;
    canvas.standing_axis(&axis, bottom, (left, WIDTH));
    let room = f64::from(WIDTH - left) / bars.bars.len() as f64;
    let mut labelled = left;
    for (number, bar) in bars.bars.iter().enumerate() {
        let start = left + rounded(room * number as f64);
        let end = left + rounded(room * (number + 1) as f64);
        let gap = i32::from(end - start > 3);
        let mut before = 0.0;
        for (place, part) in bar.parts.iter().enumerate() {
            let after = before + size(&part.value);
            let (low, high) = (bottom - axis.at(before), bottom - axis.at(after));
            before = after;
            if low > high {
                let title = title(bar, place, bars.unit);
                let place = [start, high, end - gap, low];
                canvas.painted(place, part.paint, Some(title));
            }
        }
        // Names only where they do not run into each other.
        let name = fitted(&bar.label, 230);
        let own = text_width(&name) + 14;
        if start >= labelled && start + own <= WIDTH + 14 {
            canvas.line(vec![(start, bottom), (start, bottom + 5)], FAINT, 1);
            canvas.text(&name, (start, bottom + 8 + TEXT / 2), Anchor::Left, FAINT);
            labelled = start + own;
        }
    }
}
