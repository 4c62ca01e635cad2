//! Levels over time.

use super::super::chart::{Chart, LevelLine, Levels};
use super::super::colour::{self, INK};
use super::super::document::Value;
use super::super::number;
use super::WIDTH;
use super::canvas::{AXIS, Anchor, Axis, Canvas, fitted, picture, text_width};

const LEFT: i32 = 100;
const TOP: i32 = 34;
const TALL: i32 = 220;
const MIB: f64 = (1_u32 << 20) as f64;

pub(super) fn draw(chart: &Chart, levels: &Levels) -> String {
    let top = TOP + 28;
    let height = top + TALL + AXIS;
    let most = levels.lines.iter().map(|line| line.peak).max().unwrap_or(0);
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        let mut x = 0;
        for line in &levels.lines {
            let peak = number::spelled(&Value::Bytes(line.peak));
            let text = format!("{}, peak {peak} MiB", line.label);
            canvas.rect([x, TOP - 4, x + 11, TOP + 7], colour::of(line.paint), None);
            canvas.text(&text, (x + 17, TOP + 2), Anchor::Left, INK);
            x += 17 + text_width(&text) + 24;
        }
        let bytes = Axis {
            from: 0.0,
            to: most as f64 / MIB,
            left: 0,
            right: TALL,
            unit: "MiB",
        };
        let bottom = top + TALL;
        canvas.standing_axis(&bytes, bottom, (LEFT, WIDTH));
        let time = Axis {
            from: 0.0,
            to: levels.end.as_ms(),
            left: LEFT,
            right: WIDTH - 40,
            unit: "ms",
        };
        canvas.axis(&time, (top, bottom));
        for line in &levels.lines {
            trace(canvas, line, levels, (&time, &bytes), bottom);
        }
    })
}

/// A level holds until the next one.
fn trace(
    canvas: &mut Canvas<'_, '_>,
    line: &LevelLine,
    levels: &Levels,
    (time, bytes): (&Axis, &Axis),
    bottom: i32,
) {
    let mut points: Vec<(i32, i32)> = Vec::with_capacity(line.points.len() * 2 + 1);
    for (at, level) in &line.points {
        let x = time.at(at.as_ms());
        let y = bottom - bytes.at(*level as f64 / MIB);
        if let Some((_, before)) = points.last().copied() {
            points.push((x, before));
        }
        points.push((x, y));
    }
    if let Some((_, last)) = points.last().copied() {
        points.push((time.at(levels.end.as_ms()), last));
    }
    points.dedup();
    canvas.line(points, colour::of(line.paint), 2);
}
