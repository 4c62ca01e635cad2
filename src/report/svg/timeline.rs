//! What devices did over time: two strips a device, by class and by phase.
//!
//! A picture on paper has no more detail than pixels, so work is put together in columns; a column is as full
//! as the device was busy in it.

use super::super::chart::{Chart, Paint, Timeline, TimelineBin, TimelineLane};
use super::super::colour::{self, FAINT, GRID, INK};
use super::WIDTH;
use super::canvas::{AXIS, Anchor, Axis, Canvas, fitted, legend_height, picture, rounded};
use crate::attribute::{Bucket, DeviceClass};
use crate::units::Ns;

/// Devices that are drawn; the interactive picture of the HTML report has more.
const MOST_LANES: usize = 16;
/// Pixels of a column.
const COLUMN: i32 = 2;
const NAMES: i32 = 150;
const STRIP: i32 = 18;
const LANE: i32 = 2 * STRIP + 16;
const TOP: i32 = 34;

pub(super) fn draw(chart: &Chart, timeline: &Timeline) -> String {
    let lanes = &timeline.lanes[..timeline.lanes.len().min(MOST_LANES)];
    let used = |number: usize, of: fn(&TimelineBin) -> &[Ns]| {
        let mut bins = lanes.iter().flat_map(|lane| &lane.bins);
        bins.any(|bin| of(bin)[number] > Ns::ZERO)
    };
    let classes: Vec<Paint> = (DeviceClass::ALL.iter().enumerate())
        .filter(|(number, _)| used(*number, |bin| &bin.classes))
        .map(|(_, class)| Paint::Class(*class))
        .collect();
    let buckets: Vec<Paint> = (Bucket::ALL.iter().enumerate())
        .filter(|(number, _)| used(*number, |bin| &bin.buckets))
        .map(|(_, bucket)| Paint::Bucket(*bucket))
        .collect();
    let legends = [
        ("above:", classes, TOP - 8),
        ("below:", buckets, TOP - 8 + 22),
    ];
    let legend: i32 = legends
        .iter()
        .map(|(_, paints, _)| legend_height(paints, WIDTH - NAMES))
        .sum();
    let hidden = timeline.lanes.len() - lanes.len();
    let body = i32::try_from(lanes.len()).unwrap_or(1) * LANE;
    let more = if hidden > 0 { 20 } else { 0 };
    let height = TOP + legend + 6 + body + AXIS + more;
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        for (what, paints, y) in &legends {
            canvas.text(what, (0, y + 10), Anchor::Left, FAINT);
            canvas.legend(paints, 60, *y);
        }
        let axis = Axis {
            from: 0.0,
            to: timeline.end.as_ms(),
            left: NAMES,
            right: WIDTH - 40,
            unit: "ms",
        };
        let top = TOP + legend + 6;
        canvas.axis(&axis, (top, top + body));
        for (number, one) in (0..).zip(lanes) {
            lane(canvas, one, &axis, timeline.end, top + number * LANE + 6);
        }
        if hidden > 0 {
            let text = format!("{hidden} more devices are not drawn here");
            canvas.text(&text, (0, height - 12), Anchor::Left, FAINT);
        }
    })
}

fn lane(canvas: &mut Canvas<'_, '_>, lane: &TimelineLane, axis: &Axis, end: Ns, top: i32) {
    let name = fitted(&lane.label, NAMES - 10);
    canvas.text(&name, (NAMES - 8, top + STRIP), Anchor::Right, INK);
    let columns = usize::try_from((axis.right - axis.left) / COLUMN).unwrap_or(1);
    let (first, last) = (lane.bins.first(), lane.bins.last());
    if let (Some(first), Some(last)) = (first, last) {
        let from = axis.at(first.span.start.as_ms());
        let to = axis.at(last.span.end.as_ms()).max(from + 1);
        canvas.painted([from, top, to, top + 2 * STRIP + 1], Paint::Idle, None);
    }
    let classes = shares(lane, columns, end, |bin| &bin.classes);
    strip(canvas, &classes, axis.left, top, |number| {
        Paint::Class(DeviceClass::ALL[number])
    });
    let buckets = shares(lane, columns, end, |bin| &bin.buckets);
    strip(canvas, &buckets, axis.left, top + STRIP + 1, |number| {
        Paint::Bucket(Bucket::ALL[number])
    });
    // Borders of steps, unless they would fill the strip.
    if lane.steps.len() <= 60 {
        for (_, span) in &lane.steps {
            let x = axis.at(span.start.as_ms());
            canvas.line(vec![(x, top - 3), (x, top + 2 * STRIP + 4)], GRID, 1);
        }
    }
}

/// By column: the part of its time that each kind takes. A bin of a column or more takes the columns nearest to it,
/// so that its ends are straight; what is smaller is shared out between the columns that it lies in.
fn shares(
    lane: &TimelineLane,
    columns: usize,
    end: Ns,
    times: fn(&TimelineBin) -> &[Ns],
) -> Vec<Vec<f64>> {
    let kinds = lane.bins.first().map_or(0, |bin| times(bin).len());
    let mut shares = vec![vec![0.0; kinds]; columns];
    let each = end.0 as f64 / columns as f64;
    for bin in &lane.bins {
        let (from, to) = (bin.span.start.0 as f64 / each, bin.span.end.0 as f64 / each);
        let length = (to - from).max(f64::MIN_POSITIVE);
        if length >= 1.0 {
            let place = |column: f64| usize::try_from(rounded(column)).unwrap_or(0);
            let last = place(to).min(columns);
            for shares in &mut shares[place(from).min(last)..last] {
                for (share, time) in shares.iter_mut().zip(times(bin)) {
                    *share += time.0 as f64 / (each * length);
                }
            }
            continue;
        }
        let mut column = from.floor().max(0.0);
        while column < to && column < columns as f64 {
            let inside = (to.min(column + 1.0) - from.max(column)).max(0.0) / length;
            let place = usize::try_from(rounded(column)).unwrap_or(0);
            if let Some(shares) = shares.get_mut(place) {
                for (share, time) in shares.iter_mut().zip(times(bin)) {
                    *share += time.0 as f64 * inside / each;
                }
            }
            column += 1.0;
        }
    }
    shares
}

/// One shape a kind, stacked from the bottom; kinds without time have none.
fn strip(
    canvas: &mut Canvas<'_, '_>,
    shares: &[Vec<f64>],
    left: i32,
    top: i32,
    paint: impl Fn(usize) -> Paint,
) {
    let kinds = shares.first().map_or(0, Vec::len);
    let bottom = top + STRIP;
    let height = |share: f64| rounded(share.clamp(0.0, 1.0) * f64::from(STRIP));
    let mut below = vec![0.0; shares.len()];
    for kind in 0..kinds {
        let above: Vec<f64> = below
            .iter()
            .zip(shares)
            .map(|(below, column)| below + column[kind])
            .collect();
        // Stretches of columns in which there is something of the kind.
        let mut column = 0;
        while column < shares.len() {
            if height(above[column]) == height(below[column]) {
                column += 1;
                continue;
            }
            let from = column;
            while column < shares.len() && height(above[column]) != height(below[column]) {
                column += 1;
            }
            let x = |column: usize| left + COLUMN * i32::try_from(column).unwrap_or(0);
            let points = outline(from, column, |column| {
                (x(column), bottom - height(above[column]))
            })
            .chain(
                outline(from, column, |column| {
                    (x(column), bottom - height(below[column]))
                })
                .collect::<Vec<_>>()
                .into_iter()
                .rev(),
            )
            .collect();
            canvas.polygon(points, colour::of(paint(kind)));
        }
        below = above;
    }
}

/// The steps of a line over columns, with as few points as it takes.
fn outline(
    from: usize,
    to: usize,
    at: impl Fn(usize) -> (i32, i32),
) -> impl Iterator<Item = (i32, i32)> {
    let mut points: Vec<(i32, i32)> = Vec::new();
    for column in from..to {
        let (x, y) = at(column);
        match points.last() {
            Some((_, last)) if *last == y => {}
            Some((_, last)) => {
                points.push((x, *last));
                points.push((x, y));
            }
            None => points.push((x, y)),
        }
    }
    if let Some((_, last)) = points.last() {
        let x = at(to - 1).0 + COLUMN;
        points.push((x, *last));
    }
    points.into_iter()
}
