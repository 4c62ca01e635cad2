//! A plain reader of pictures: the marks of an SVG file, and the scales that its axes spell out.

use std::collections::BTreeMap;

pub(crate) use super::page::plain;

/// One element of a picture.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) kind: String,
    attributes: BTreeMap<String, String>,
    /// What it says: the content of text, the title of a shape.
    pub(crate) says: String,
}

/// The marks of a picture in order, without its own title and description.
pub(crate) fn marks(svg: &str) -> Vec<Mark> {
    let body = svg.split_once("</desc>").map_or(svg, |(_, body)| body);
    let mut marks: Vec<Mark> = Vec::new();
    for part in body.split('<').skip(1) {
        let (tag, content) = part.split_once('>').unwrap();
        if tag.starts_with('/') {
            continue;
        }
        if tag.starts_with("title") {
            marks.last_mut().unwrap().says = plain(content.trim());
            continue;
        }
        let tag = tag.trim_end_matches('/');
        let (kind, rest) = tag.split_once(' ').unwrap();
        let attributes = rest.split("\" ").filter_map(|pair| {
            let (key, value) = pair.trim().split_once("=\"")?;
            Some((key.to_owned(), plain(value.trim_end_matches('"'))))
        });
        marks.push(Mark {
            kind: kind.to_owned(),
            attributes: attributes.collect(),
            says: plain(content.trim()),
        });
    }
    marks
}

impl Mark {
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.attributes[name].parse().unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// The corners of a polygon or a line.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let points = self.text("points").split_whitespace();
        let number = |text: &str| text.parse::<f64>().unwrap();
        let point = |text: &str| text.split_once(',').map(|(x, y)| (number(x), number(y)));
        points.filter_map(point).collect()
    }

    /// Area of a polygon.
    pub(crate) fn area(&self) -> f64 {
        let points = self.points();
        let next = points.iter().cycle().skip(1);
        let twice: f64 = points
            .iter()
            .zip(next)
            .map(|(a, b)| a.0 * b.1 - b.0 * a.1)
            .sum();
        twice.abs() / 2.0
    }

    /// True when a polygon covers the place, by the number of its edges to the right.
    pub(crate) fn covers(&self, (x, y): (f64, f64)) -> bool {
        let points = self.points();
        let next = points.iter().cycle().skip(1);
        let crossed = points.iter().zip(next).filter(|(a, b)| {
            let spans = (a.1 > y) != (b.1 > y);
            spans && x < a.0 + (y - a.1) / (b.1 - a.1) * (b.0 - a.0)
        });
        crossed.count() % 2 == 1
    }
}

/// Where numbers stand, as the axis says it: pixels of a number are `at + number * each`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) at: f64,
    pub(crate) each: f64,
}

impl Scale {
    pub(crate) fn place(self, number: f64) -> f64 {
        self.at + number * self.each
    }
}

/// The scale of the numbers that lines of the grid stand at: `x` for one from left to right, `y` upwards.
pub(crate) fn scale(marks: &[Mark], along: &str) -> Option<Scale> {
    let mut known: Vec<(f64, f64)> = Vec::new();
    for (line, text) in marks.iter().zip(marks.iter().skip(1)) {
        if line.kind != "polyline" || text.kind != "text" {
            continue;
        }
        let points = line.points();
        let [a, b] = points.as_slice() else { continue };
        let upright = (a.0 - b.0).abs() < 0.5;
        let number = text.says.split(' ').next().unwrap().replace(',', "");
        let Ok(number) = number.parse::<f64>() else {
            continue;
        };
        match along {
            "x" if upright && text.text("text-anchor") == "middle" => known.push((number, a.0)),
            "y" if !upright && text.text("text-anchor") == "end" => known.push((number, a.1)),
            _ => {}
        }
    }
    let (first, last) = (known.first()?, known.last()?);
    let each = (last.1 - first.1) / (last.0 - first.0);
    each.is_finite().then_some(Scale {
        at: first.1 - first.0 * each,
        each,
    })
}
