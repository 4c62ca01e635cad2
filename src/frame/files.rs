//! The table `files`: the inputs, with where and on what they were recorded.

use polars::prelude::*;

use super::events::{int, text};
use crate::attribute::{Attribution, InputRecord, RankResult};

/// One row a file that was read, in order of run, rank and window.
///
/// # Errors
/// Never: all columns have one length and distinct names.
pub(super) fn files(attribution: &Attribution) -> PolarsResult<DataFrame> {
    let ranks = &attribution.ranks;
    let input = |rank: &RankResult| -> &InputRecord { &attribution.inputs[rank.input] };
    let number = |number: u64| i64::try_from(number).ok();
    let columns = vec![
        text(
            "run",
            ranks
                .iter()
                .map(|rank| Some(attribution.runs[rank.run].name.clone())),
        ),
        int("rank", ranks.iter().map(|rank| rank.rank)),
        int(
            "file",
            ranks.iter().map(|rank| i64::try_from(rank.input).ok()),
        ),
        int(
            "window",
            ranks.iter().map(|rank| i64::try_from(rank.window).ok()),
        ),
        text(
            "path",
            ranks.iter().map(|rank| Some(input(rank).path.clone())),
        ),
        int(
            "size_bytes",
            ranks.iter().map(|rank| number(input(rank).bytes)),
        ),
        int(
            "events",
            ranks.iter().map(|rank| number(input(rank).events)),
        ),
        int(
            "world_size",
            ranks.iter().map(|rank| input(rank).world_size),
        ),
        int(
            "devices",
            ranks
                .iter()
                .map(|rank| i64::try_from(rank.devices.len()).ok()),
        ),
        text(
            "device_names",
            ranks.iter().map(|rank| {
                let names = &input(rank).device_names;
                (!names.is_empty()).then(|| names.join(", "))
            }),
        ),
    ];
    DataFrame::new(ranks.len(), columns)
}
