//! Pictures as SVG, drawn with plotters; text stays text, in whatever sans-serif font the reader has.
//!
//! Each mark says its numbers when pointed at (`<title>`), in the spelling of the tables.

mod bars;
mod canvas;
mod changes;
mod grid;
mod heat;
mod levels;
mod scopes;
mod timeline;

use super::chart::{Chart, Paint, Picture};
use super::document::{Block, Document, Value};
use super::number;

/// Width of every picture, in pixels.
const WIDTH: i32 = 920;

/// `chart` as a file of its own.
pub fn render(chart: &Chart) -> String {
    match &chart.picture {
        Picture::Bars(bars) => bars::draw(chart, bars),
        Picture::Timeline(timeline) => timeline::draw(chart, timeline),
        Picture::Heat(heat) => heat::draw(chart, heat),
        Picture::Levels(levels) => levels::draw(chart, levels),
        Picture::Changes(changes) => changes::draw(chart, changes),
        Picture::Grid(grid) => grid::draw(chart, grid),
        Picture::Scopes(scopes) => scopes::draw(chart, scopes),
    }
}

/// Every picture of `document`, in order.
pub fn charts(document: &Document) -> impl Iterator<Item = &Chart> {
    document
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        })
}

/// How long a mark for `value` is, in the unit of its axis.
fn size(value: &Value) -> f64 {
    match value {
        Value::Ns(time) | Value::NsChange(time) => time.as_ms(),
        Value::Count(count) => *count as f64,
        Value::Id(number) | Value::Bytes(number) => *number as f64,
        Value::Number(number) | Value::Percent(number) | Value::PercentChange(number) => *number,
        Value::Text(_)
        | Value::Link { .. }
        | Value::Missing
        | Value::NotApplicable
        | Value::Blank => 0.0,
    }
}

/// `forward: 1.234 ms (31.2 %)`.
fn told(paint: Paint, value: &Value, unit: &str, share: &Value) -> String {
    format!(
        "{}: {} {unit} ({} %)",
        paint.name(),
        number::spelled(value),
        number::spelled(share)
    )
}
