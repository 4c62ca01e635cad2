//! The colours of pictures: one for each thing, the same everywhere.
//!
//! They can be told apart with the common kinds of colour blindness (after Okabe and Ito, darkened where they
//! were too pale), and stand out from white paper and from a dark page by 3 to 1 at least.

use super::chart::Paint;
use crate::attribute::{Bucket, DeviceClass, Phase};
use crate::gate::Decision;

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Text, axes and outlines.
pub(crate) const INK: Colour = Colour(0x1f, 0x23, 0x28);
/// Text that matters less, on paper.
pub(crate) const FAINT: Colour = Colour(0x59, 0x63, 0x6e);
/// Lines behind data.
pub(crate) const GRID: Colour = Colour(0xd1, 0xd9, 0xe0);
/// Behind everything.
pub(crate) const PAPER: Colour = Colour(0xff, 0xff, 0xff);
/// Where nothing ran.
pub(crate) const EMPTY: Colour = Colour(0xe6, 0xea, 0xef);

/// A cell of a table of shades that has everything; ink is readable on all of the scale. The style of the page has
/// another one for the dark.
pub(crate) const FULL: Colour = Colour(0x5b, 0x9f, 0xdb);

impl Colour {
    /// As CSS and SVG have it.
    pub(crate) fn hex(self) -> String {
        format!("#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }

    /// Relative luminance, from 0 to 1 (WCAG).
    pub(crate) fn luminance(self) -> f64 {
        let linear = |byte: u8| {
            let part = f64::from(byte) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// How far two colours stand apart, from 1 to 21 (WCAG).
    pub(crate) fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }
}

/// What text on `shade` is written in.
pub(crate) fn ink_on(shade: Colour) -> Colour {
    if shade.contrast(PAPER) > shade.contrast(INK) {
        PAPER
    } else {
        // Not quite the ink of text on paper, which follows the theme of a page.
        Colour(0x1f, 0x23, 0x29)
    }
}

/// What a shape of `paint` is outlined with: what is so pale that it is lost on paper.
pub(crate) fn outline(paint: Paint) -> Option<Colour> {
    matches!(paint, Paint::Idle | Paint::Unattributed).then_some(FAINT)
}

/// The colour of what a part of a picture stands for.
pub(crate) fn of(paint: Paint) -> Colour {
    match paint {
        Paint::Bucket(Bucket::Phase(Phase::Forward))
        | Paint::Allocated
        | Paint::Decision(Decision::Accept) => Colour(0x00, 0x72, 0xb2),
        Paint::Bucket(Bucket::Phase(Phase::Backward)) => Colour(0xd5, 0x5e, 0x00),
        Paint::Bucket(Bucket::Phase(Phase::Recompute)) => Colour(0xcc, 0x79, 0xa7),
        Paint::Bucket(Bucket::Phase(Phase::Optimizer)) => Colour(0x00, 0x9e, 0x73),
        Paint::Bucket(Bucket::Phase(Phase::Other)) => Colour(0x65, 0x65, 0x65),
        Paint::Bucket(Bucket::PreWindow) => Colour(0xa0, 0x52, 0x2d),
        Paint::Reserved => Colour(0x8a, 0x6d, 0x1b),
        Paint::Bucket(Bucket::Unlinked) => Colour(0x7b, 0x4a, 0xe2),
        Paint::Idle | Paint::Unattributed => EMPTY,
        Paint::Decision(Decision::Tune) => Colour(0x94, 0x6f, 0x00),
        Paint::Class(DeviceClass::Compute) => Colour(0x4d, 0x7e, 0xa8),
        Paint::Class(DeviceClass::Communication) | Paint::Decision(Decision::Reject) => {
            Colour(0xc2, 0x4a, 0x3a)
        }
        Paint::Class(DeviceClass::Memcpy) => Colour(0x99, 0x8a, 0x1f),
        Paint::Class(DeviceClass::Memset) => Colour(0x78, 0x38, 0xf4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECISIONS: [Decision; 3] = [Decision::Accept, Decision::Tune, Decision::Reject];

    /// The page in the dark theme of the HTML report.
    const DARK: Colour = Colour(0x12, 0x16, 0x1c);

    /// What a colour is like without cones for long (protanopia) or middle (deuteranopia) waves, by the
    /// matrices of Viénot, Brettel and Mollon on linear light.
    fn seen(colour: Colour, matrix: [[f64; 3]; 3]) -> [f64; 3] {
        let linear = [colour.0, colour.1, colour.2].map(|byte| (f64::from(byte) / 255.0).powf(2.2));
        matrix.map(|row| {
            let sum: f64 = row.iter().zip(linear).map(|(a, b)| a * b).sum();
            sum.clamp(0.0, 1.0).powf(1.0 / 2.2) * 255.0
        })
    }

    const SAME: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    const PROTANOPIA: [[f64; 3]; 3] = [
        [0.112_38, 0.887_62, 0.0],
        [0.112_38, 0.887_62, 0.0],
        [0.004_01, -0.004_01, 1.0],
    ];
    const DEUTERANOPIA: [[f64; 3]; 3] = [
        [0.292_75, 0.707_25, 0.0],
        [0.292_75, 0.707_25, 0.0],
        [-0.022_34, 0.022_34, 1.0],
    ];

    fn all_told_apart(paints: &[Paint]) {
        for matrix in [SAME, PROTANOPIA, DEUTERANOPIA] {
            for (place, one) in paints.iter().enumerate() {
                for other in &paints[place + 1..] {
                    let (a, b) = (seen(of(*one), matrix), seen(of(*other), matrix));
                    let apart: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(apart.sqrt() > 30.0, "{one:?} and {other:?}: {apart:.0}");
                }
            }
        }
    }

    #[test]
    fn phases_and_classes_are_told_apart_by_the_colour_blind() {
        let mut phases = Bucket::ALL.map(Paint::Bucket).to_vec();
        phases.push(Paint::Idle);
        all_told_apart(&phases);
        let mut classes = DeviceClass::ALL.map(Paint::Class).to_vec();
        classes.push(Paint::Idle);
        all_told_apart(&classes);
        all_told_apart(&[Paint::Allocated, Paint::Reserved]);
        all_told_apart(&DECISIONS.map(Paint::Decision));
    }

    #[test]
    fn colours_stand_out_from_both_pages() {
        let paints = Bucket::ALL.map(Paint::Bucket).into_iter().chain(
            DeviceClass::ALL
                .map(Paint::Class)
                .into_iter()
                .chain([Paint::Allocated, Paint::Reserved])
                .chain(DECISIONS.map(Paint::Decision)),
        );
        for paint in paints {
            for page in [PAPER, DARK] {
                let contrast = of(paint).contrast(page);
                assert!(contrast >= 3.0, "{paint:?} on {page:?}: {contrast:.2}");
            }
        }
        // What is pale has an outline instead.
        for paint in [Paint::Idle, Paint::Unattributed] {
            let line = outline(paint).unwrap();
            assert!(line.contrast(PAPER) >= 3.0 && line.contrast(EMPTY) >= 3.0);
        }
        assert!(INK.contrast(PAPER) > 7.0 && FAINT.contrast(PAPER) > 4.5);
    }
}
