//! Pictures: drawn as SVG, and data for those that the script makes alive.

use std::fmt::Write as _;

use serde::Serialize;

use super::super::chart::{Chart, Paint, Picture};
use super::super::{colour, svg};
use super::text::{escaped, json_in_page, prose};
use crate::attribute::{Bucket, DeviceClass};

/// What the script draws from.
#[derive(Serialize)]
struct Alive<'a> {
    chart: &'a Chart,
    colours: Colours,
}

#[derive(Serialize)]
struct Colours {
    classes: [String; 4],
    buckets: [String; 7],
}

/// Appends picture number `number` of the page.
pub(super) fn push(out: &mut String, chart: &Chart, number: usize) {
    let alive = matches!(chart.picture, Picture::Timeline(_));
    let data = if alive {
        format!(" data-timeline=\"d{number}\"")
    } else {
        String::new()
    };
    let picture = svg::render(chart);
    let about = prose(&chart.about);
    let _ = writeln!(
        out,
        "<figure id=\"f{number}\"{data}>\n<div class=\"picture still\" tabindex=\"0\" role=\"group\" \
         aria-label=\"{}\">\n{picture}</div>\n<figcaption>{about}</figcaption>\n</figure>",
        escaped(&chart.caption)
    );
    if !alive {
        return;
    }
    let hex = |paint: Paint| colour::of(paint).hex();
    let alive = Alive {
        chart,
        colours: Colours {
            classes: DeviceClass::ALL.map(|class| hex(Paint::Class(class))),
            buckets: Bucket::ALL.map(|bucket| hex(Paint::Bucket(bucket))),
        },
    };
    // All keys are text, so this cannot fail; without data the picture stands still.
    let json = serde_json::to_string(&alive).unwrap_or_default();
    let json = json_in_page(&json);
    let _ = writeln!(
        out,
        "<script type=\"application/json\" id=\"d{number}\">{json}</script>"
    );
}
