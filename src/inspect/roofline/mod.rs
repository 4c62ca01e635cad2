//! How near operators come to what their device can do: model FLOPs, the roofline, utilisation.
//!
//! - FLOPs and bytes follow from what an operator was given: [`inputs`] reads it, a module a family has the
//!   formulas, [`count`] says which operators count, so that no FLOP counts twice. What has no model, or
//!   too little in its arguments for it, is a row of its own without FLOPs, not one with none.
//! - Device time of a row is the union of the work launched under its calls, as TraceLens takes it; sums
//!   of durations add up to those of the device exactly.
//! - The roofline time of a call is the longer of FLOPs over the [peak](device) of its units and precision
//!   and bytes over bandwidth of memory; a row has the sum over its calls, and its share of the roofline is
//!   that over its device time. Peaks are theoretical unless the user's table says that they were measured,
//!   bytes the least that must move: a share says how much there is to gain at most, not how much can be
//!   had. It may exceed 1 when what is read lies in a cache.
//! - [Utilisation](utilisation) is FLOPs of matrix products over what the device could do in the time.

mod attention;
mod convolution;
mod copy;
mod cost;
mod count;
mod device;
mod elementwise;
mod embedding;
mod estimate;
mod foreach;
mod inputs;
mod matmul;
mod normalization;
mod precision;
mod reduction;
mod row;
mod softmax;
#[cfg(test)]
mod tests;
mod utilisation;

pub use device::DeviceTable;
pub use estimate::{Bound, RooflineEstimate, estimate_roofline};

use count::Count;

use super::frame::Frame;
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::error::Result;

/// FLOPs, roofline and utilisation.
pub(super) struct Roofline;

impl Subject for Roofline {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        let count = Count::new(view)?;
        Ok(vec![
            row::frame(view, &row::rows(view, &count)),
            utilisation::frame(
                view,
                &utilisation::rows(view, &count),
                !count.counted.is_empty(),
            ),
        ])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// Every operator that has a model.
#[cfg(test)]
fn names() -> Vec<String> {
    let plain = [
        &matmul::NAMES[..],
        &convolution::NAMES,
        &attention::NAMES,
        &normalization::NAMES,
        &softmax::NAMES,
        &embedding::NAMES,
        &copy::NAMES,
        &foreach::NAMES,
    ];
    let plain = plain.concat().into_iter().map(str::to_owned);
    let reductions = reduction::names().map(str::to_owned);
    let elementwise = elementwise::names().map(|name| format!("aten::{name}"));
    plain.chain(reductions).chain(elementwise).collect()
}
