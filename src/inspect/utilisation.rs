//! How well kernels fill a device.
//!
//! - Utilisation: the union of kernels over the window.
//! - Estimated SM efficiency: `blocks per SM` of all kernels that run at a moment are added up; more than
//!   one keeps every multiprocessor busy. Their sum, at most 1, is averaged over the window.
//! - Estimated achieved occupancy: `est. achieved occupancy %` of the kernels, weighted by their time.
//!
//! These are the definitions of PyTorch's TensorBoard plugin. ROCm records neither of the latter two.

use super::line::Line;
use super::view::View;
use crate::attribute::{Work, union};
use crate::error::Result;
use crate::model::{ActivityType, EventId};
use crate::units::Span;

/// Fractions of one that numbers are counted in, so that no sum depends on its order.
const FRACTIONS: f64 = 1e9;

/// So many blocks a multiprocessor fill it however long they run.
const MANY_BLOCKS: f64 = 1e6;

/// The kernels of one device over time.
pub(super) struct Utilisation {
    kernels: Line,
    blocks: Line,
    occupancy: Line,
    /// Kernels that have an occupancy.
    with_occupancy: Line,
}

impl Utilisation {
    /// The kernels among `work` of one device.
    ///
    /// # Errors
    /// When the content is not what it was when the trace was read.
    pub(super) fn new<'w>(view: &View<'_>, work: impl Iterator<Item = &'w Work>) -> Result<Self> {
        let events = &view.trace().events;
        let mut kernels: Vec<(EventId, Span)> = work
            .filter(|work| events.activity(work.event) == ActivityType::Kernel)
            .map(|work| (work.event, work.span))
            .collect();
        kernels.sort_unstable();
        let wanted: Vec<EventId> = kernels.iter().map(|(event, _)| *event).collect();
        let keys = &["blocks per SM", "est. achieved occupancy %"];
        let read = view.arguments(&wanted, keys, |_, args| {
            let blocks = args.float("blocks per SM").filter(|blocks| *blocks > 0.0);
            let occupancy = args.float("est. achieved occupancy %");
            let occupancy = occupancy.filter(|percent| (0.0..=100.0).contains(percent));
            (
                blocks.map(|blocks| whole(blocks.min(MANY_BLOCKS))),
                occupancy,
            )
        })?;
        let mut blocks = Vec::new();
        let mut occupancy = Vec::new();
        let mut with_occupancy = Vec::new();
        for ((_, span), (of_blocks, of_occupancy)) in kernels.iter().zip(read) {
            blocks.extend(of_blocks.map(|blocks| (*span, blocks)));
            if let Some(percent) = of_occupancy {
                occupancy.push((*span, whole(percent / 100.0)));
                with_occupancy.push((*span, 1));
            }
        }
        Ok(Self {
            kernels: Line::of(&union(kernels.iter().map(|(_, span)| *span))),
            blocks: Line::sum(&blocks, whole(1.0)),
            occupancy: Line::sum(&occupancy, i64::MAX),
            with_occupancy: Line::sum(&with_occupancy, i64::MAX),
        })
    }

    /// The share of `window` in which a kernel runs.
    pub(super) fn busy(&self, window: Span) -> Option<f64> {
        self.kernels.time(window).ratio(window.len())
    }

    /// Estimated SM efficiency in `window`; `None` when no kernel in it has blocks.
    pub(super) fn sm_efficiency(&self, window: Span) -> Option<f64> {
        let area = self.blocks.area(window);
        (area > 0).then(|| area as f64 / FRACTIONS / window.len().0 as f64)
    }

    /// Estimated achieved occupancy in `window`, of 1; `None` when no kernel in it has any.
    pub(super) fn occupancy(&self, window: Span) -> Option<f64> {
        let time = self.with_occupancy.area(window);
        (time > 0).then(|| self.occupancy.area(window) as f64 / FRACTIONS / time as f64)
    }
}

/// `number` in fractions.
#[expect(clippy::cast_possible_truncation, reason = "at most 10^15")]
fn whole(number: f64) -> i64 {
    (number * FRACTIONS).round() as i64
}

#[cfg(test)]
mod tests {
    use crate::inspect::testing::{cells, frames};
    use crate::inspect::{InspectOptions, Topic};

    #[test]
    fn blocks_of_kernels_at_once_are_added_up_to_one() {
        let kernel = |stream: u8, start: u8, dur: u8, rest: &str| {
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":{stream},"ts":{start},
                    "dur":{dur},"args":{{"device":0,"stream":{stream}{rest}}}}}"#
            )
        };
        let kernels = [
            kernel(
                7,
                0,
                10,
                r#","blocks per SM":0.25,"est. achieved occupancy %":50"#,
            ),
            kernel(
                8,
                5,
                10,
                r#","blocks per SM":4,"est. achieved occupancy %":20"#,
            ),
            kernel(7, 30, 10, ""),
        ];
        let json = format!(r#"{{"traceEvents":[{}]}}"#, kernels.join(","));
        let frames = frames(&json, Topic::Steps, &InspectOptions::default());
        let columns = [
            "wall_ns",
            "gpu_utilization",
            "est_sm_efficiency",
            "est_occupancy",
        ];
        // Busy 0-15 and 30-40 of 40. 0.25 for 5 µs and 1 for 10. (50 · 10 + 20 · 10) / 20 %.
        assert_eq!(
            cells(&frames, "steps", &columns),
            ["40000 0.6250 0.2812 0.3500"]
        );
    }
}
