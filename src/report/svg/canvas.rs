//! A picture being drawn with plotters: shapes in pixels, text as text.

use plotters::coord::Shift;
use plotters::prelude::{
    Color as _, DrawingArea, FontStyle, IntoDrawingArea as _, IntoFont as _, PathElement, Polygon,
    RGBColor, Rectangle, SVGBackend, ShapeStyle, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use unicode_width::UnicodeWidthChar as _;

use super::super::chart::Paint;
use super::super::colour::{self, Colour, FAINT, GRID, INK, PAPER};
use super::super::name::{shortened, visible};
use super::super::number;

/// Height of text.
pub(super) const TEXT: i32 = 12;
/// About how wide a column of text is, in thousandths of its height.
const COLUMN: i32 = 600;
/// The same of capitals, and of the widest letters.
const CAPITAL: i32 = 760;
const WIDE: i32 = 980;
/// plotters gives text this much less height than it was asked for.
const SHRINK: f64 = 1.24;
/// Height of a line of a legend.
pub(super) const LEGEND: i32 = 22;

/// Height of an axis below what it measures.
pub(super) const AXIS: i32 = 2 * TEXT + 4;

/// What is drawn on.
pub(super) struct Canvas<'a, 'b> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// One entry a rectangle, in order: what it says when pointed at.
    titles: &'b mut Vec<Option<String>>,
    pub(super) width: i32,
}

/// Where text stands at its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Left,
    Middle,
    Right,
}

/// A picture `width` times `height` pixels large that `draw` fills.
pub(super) fn picture(
    width: i32,
    height: i32,
    caption: &str,
    about: &str,
    draw: impl FnOnce(&mut Canvas<'_, '_>),
) -> String {
    let mut out = String::new();
    let mut titles = Vec::new();
    let size = [width, height].map(|length| u32::try_from(length).unwrap_or(1).max(1));
    {
        let area = SVGBackend::with_string(&mut out, (size[0], size[1])).into_drawing_area();
        let mut canvas = Canvas {
            area,
            titles: &mut titles,
            width,
        };
        canvas.rect([0, 0, width, height], PAPER, None);
        draw(&mut canvas);
        drawn(canvas.area.present());
    }
    finished(&out, &titles, caption, about)
}

/// Drawing into memory does not fail.
fn drawn<T, E>(result: Result<T, E>) {
    debug_assert!(result.is_ok(), "drawing into memory");
}

/// Adds what plotters has no words for: a title and a description of the whole, and titles of shapes.
fn finished(svg: &str, titles: &[Option<String>], caption: &str, about: &str) -> String {
    let mut out = String::with_capacity(svg.len() + svg.len() / 2);
    let head = svg.find('>').map_or(svg.len(), |end| end + 1);
    out.push_str(svg[..head].trim_end_matches('>'));
    out.push_str(" role=\"img\">\n<title>");
    push_escaped(&mut out, caption);
    out.push_str("</title>\n<desc>");
    push_escaped(&mut out, about);
    out.push_str("</desc>");
    let mut titles = titles.iter();
    for (place, part) in svg[head..].split("<rect ").enumerate() {
        if place == 0 {
            out.push_str(part);
            continue;
        }
        out.push_str("<rect ");
        match (titles.next(), part.split_once("/>")) {
            (Some(Some(title)), Some((shape, rest))) => {
                out.push_str(shape);
                out.push_str("><title>");
                push_escaped(&mut out, title);
                out.push_str("</title></rect>");
                out.push_str(rest);
            }
            _ => out.push_str(part),
        }
    }
    out
}

fn push_escaped(out: &mut String, text: &str) {
    for character in visible(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

fn rgb(colour: Colour) -> RGBColor {
    RGBColor(colour.0, colour.1, colour.2)
}

/// `text` in at most `room` pixels.
pub(super) fn fitted(text: &str, room: i32) -> String {
    let text = visible(text);
    let mut columns = usize::try_from(room * 1_000 / (TEXT * COLUMN))
        .unwrap_or(0)
        .max(1);
    loop {
        let short = shortened(&text, columns);
        if columns == 1 || text_width(&short) <= room {
            return short.into_owned();
        }
        columns -= 1;
    }
}

/// About how many pixels `text` takes.
pub(super) fn text_width(text: &str) -> i32 {
    let widths = text.chars().map(|character| match character {
        'W' | 'M' | 'm' | 'w' | '@' | '%' | '—' | '…' => WIDE,
        'A'..='Z' => CAPITAL,
        _ => i32::try_from(character.width().unwrap_or(0)).unwrap_or(0) * COLUMN,
    });
    let sum = widths.fold(0_i32, i32::saturating_add);
    (i64::from(sum) * i64::from(TEXT) / 1_000)
        .try_into()
        .unwrap_or(i32::MAX)
}

impl Canvas<'_, '_> {
    /// A filled rectangle from left and top to right and bottom.
    pub(super) fn rect(&mut self, place: [i32; 4], colour: Colour, title: Option<String>) {
        let [left, top, right, bottom] = place;
        let style = ShapeStyle {
            color: rgb(colour).into(),
            filled: true,
            stroke_width: 0,
        };
        drawn(
            self.area
                .draw(&Rectangle::new([(left, top), (right, bottom)], style)),
        );
        self.titles.push(title);
    }

    /// A rectangle that lets what is below it shine through; `part` of 1 hides all of it, and is above zero.
    pub(super) fn shade(&mut self, place: [i32; 4], colour: Colour, part: f64, title: String) {
        let [left, top, right, bottom] = place;
        // In thousandths; what would be seen through wholly is not drawn at all, and could not say its title.
        let part = ((part * 1_000.0).round() / 1_000.0).max(0.001);
        let style = ShapeStyle {
            color: rgb(colour).mix(part),
            filled: true,
            stroke_width: 0,
        };
        drawn(
            self.area
                .draw(&Rectangle::new([(left, top), (right, bottom)], style)),
        );
        self.titles.push(Some(title));
    }

    /// A rectangle in the colour of `paint`, with an outline where that is lost on paper.
    pub(super) fn painted(&mut self, place: [i32; 4], paint: Paint, title: Option<String>) {
        self.rect(place, colour::of(paint), title);
        if let Some(line) = colour::outline(paint) {
            let [left, top, right, bottom] = place;
            let corners = [
                (left, top),
                (right, top),
                (right, bottom),
                (left, bottom),
                (left, top),
            ];
            self.line(corners.to_vec(), line, 1);
        }
    }

    /// A line of `width` pixels through `points`.
    pub(super) fn line(&mut self, points: Vec<(i32, i32)>, colour: Colour, width: u32) {
        let style = ShapeStyle {
            color: rgb(colour).into(),
            filled: false,
            stroke_width: width,
        };
        drawn(self.area.draw(&PathElement::new(points, style)));
    }

    /// A filled shape.
    pub(super) fn polygon(&mut self, points: Vec<(i32, i32)>, colour: Colour) {
        let style = ShapeStyle {
            color: rgb(colour).into(),
            filled: true,
            stroke_width: 0,
        };
        drawn(self.area.draw(&Polygon::new(points, style)));
    }

    /// Text whose middle is at height `y`.
    pub(super) fn text(&mut self, text: &str, (x, y): (i32, i32), anchor: Anchor, colour: Colour) {
        self.styled(text, (x, y), anchor, colour, FontStyle::Normal);
    }

    /// The same in bold type.
    pub(super) fn bold(&mut self, text: &str, (x, y): (i32, i32), anchor: Anchor, colour: Colour) {
        self.styled(text, (x, y), anchor, colour, FontStyle::Bold);
    }

    fn styled(
        &mut self,
        text: &str,
        place: (i32, i32),
        anchor: Anchor,
        colour: Colour,
        style: FontStyle,
    ) {
        let h_pos = match anchor {
            Anchor::Left => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let font = ("sans-serif", f64::from(TEXT) * SHRINK)
            .into_font()
            .style(style);
        let colour = rgb(colour);
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(h_pos, VPos::Center));
        drawn(
            self.area
                .draw(&Text::new(visible(text).into_owned(), place, style)),
        );
    }

    /// Vertical lines with numbers at round places of an axis, from the left end to the right end.
    pub(super) fn axis(&mut self, axis: &Axis, (top, bottom): (i32, i32)) {
        for (value, label) in axis.labels() {
            let x = axis.at(value);
            self.line(vec![(x, top), (x, bottom)], GRID, 1);
            self.text(&label, (x, bottom + TEXT), Anchor::Middle, FAINT);
        }
    }

    /// Horizontal lines with numbers at round places of an axis that stands on `bottom`.
    pub(super) fn standing_axis(&mut self, axis: &Axis, bottom: i32, (left, right): (i32, i32)) {
        for (value, label) in axis.labels() {
            let y = bottom - axis.at(value);
            self.line(vec![(left, y), (right, y)], GRID, 1);
            self.text(&label, (left - 8, y), Anchor::Right, FAINT);
        }
    }

    /// What the colours mean, from `left` on; returns the height that it takes.
    pub(super) fn legend(&mut self, paints: &[Paint], left: i32, top: i32) -> i32 {
        let (mut x, mut y) = (left, top);
        for paint in paints {
            let room = 16 + text_width(paint.name()) + 20;
            if x + room > self.width && x > left {
                x = left;
                y += LEGEND;
            }
            self.painted([x, y + 4, x + 11, y + 15], *paint, None);
            self.text(paint.name(), (x + 17, y + 10), Anchor::Left, INK);
            x += room;
        }
        y + LEGEND - top
    }
}

/// Lines that a legend of `paints` takes in so many pixels.
pub(super) fn legend_height(paints: &[Paint], room: i32) -> i32 {
    let (mut x, mut lines) = (0, 1);
    for paint in paints {
        let own = 16 + text_width(paint.name()) + 20;
        if x + own > room && x > 0 {
            x = 0;
            lines += 1;
        }
        x += own;
    }
    lines * LEGEND
}

/// An axis of numbers: of times in milliseconds, of ratios in percent, …
pub(super) struct Axis {
    /// What stands at the left end.
    pub(super) from: f64,
    /// What stands at the right end.
    pub(super) to: f64,
    /// In pixels.
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) unit: &'static str,
}

/// About so many pixels lie between two numbers.
const APART: i32 = 110;

impl Axis {
    /// Where `value` stands.
    pub(super) fn at(&self, value: f64) -> i32 {
        let whole = (self.to - self.from).max(f64::MIN_POSITIVE);
        let part = ((value - self.from) / whole).clamp(0.0, 1.0);
        self.left + rounded(part * f64::from(self.right - self.left))
    }

    /// Round numbers along the axis, with their text; the unit stands once, with the last one.
    fn labels(&self) -> Vec<(f64, String)> {
        let mut labels = self.ticks();
        if let Some((_, label)) = labels.last_mut() {
            *label = format!("{label} {}", self.unit);
        }
        labels
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let room = f64::from((self.right - self.left).max(1));
        let most = (room / f64::from(APART)).max(4.0);
        let step = round_step((self.to - self.from) / most);
        if !(step.is_finite() && step > 0.0) {
            return vec![(self.from, plain(self.from, 0))];
        }
        let digits = decimals(step);
        let mut ticks = Vec::new();
        let mut number = (self.from / step - 1e-9).ceil();
        while number * step <= self.to + step * 1e-6 && ticks.len() < 64 {
            ticks.push((number * step, plain(number * step, digits)));
            number += 1.0;
        }
        ticks
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

fn decimals(step: f64) -> usize {
    let digits = (-step.log10().floor()).clamp(0.0, 6.0);
    usize::try_from(rounded(digits)).unwrap_or(0)
}

fn plain(value: f64, digits: usize) -> String {
    // Zero has no sign.
    let value = if value.abs() < 1e-12 { 0.0 } else { value };
    number::grouped(&format!("{value:.digits$}"))
}

/// The nearest pixel.
pub(super) fn rounded(value: f64) -> i32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "casts of floats saturate, and pictures are small"
    )]
    let pixel = value.round() as i32;
    pixel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_more_room() {
        for letter in ["W", "A", "i", "核"] {
            let text = fitted(&letter.repeat(200), 188);
            assert!((160..=188).contains(&text_width(&text)), "{text}");
        }
        assert!(fitted(&"W".repeat(200), 188).len() < fitted(&"A".repeat(200), 188).len());
        assert!(text_width(&"W".repeat(10)) > 113);
        assert_eq!(fitted("forward", 188), "forward");
    }

    #[test]
    fn numbers_at_an_axis_are_round() {
        let axis = |from, to| Axis {
            from,
            to,
            left: 0,
            right: 550,
            unit: "ms",
        };
        let labels = |from, to| -> Vec<String> {
            let ticks = axis(from, to).ticks();
            ticks.into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(0.0, 23.7), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(0.0, 0.12), ["0.00", "0.05", "0.10"]);
        assert_eq!(labels(-0.5, 1.0), ["-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(0.0, 0.0), ["0"]);
        assert_eq!(
            labels(0.0, 4_000.0),
            ["0", "1,000", "2,000", "3,000", "4,000"]
        );
        assert_eq!(axis(0.0, 10.0).at(5.0), 275);
        assert_eq!(axis(0.0, 10.0).at(50.0), 550);
    }
}
