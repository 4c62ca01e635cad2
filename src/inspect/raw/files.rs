//! The table `files`: the inputs, with where and on what they were recorded.

use super::Columns;
use crate::attribute::{Attribution, InputRecord, RankResult};
use crate::inspect::Frame;

/// One row a file that was read, in order of run, rank and window.
pub(crate) fn files(attribution: &Attribution) -> Frame {
    let ranks = || attribution.ranks.iter();
    let input = |rank: &RankResult| -> &InputRecord { &attribution.inputs[rank.input] };
    let count = |number: usize| i64::try_from(number).ok();
    let bytes = |number: u64| i64::try_from(number).ok();
    let run = |rank: &RankResult| Some(attribution.runs[rank.run].name.clone());
    let devices = |rank: &RankResult| {
        let names = &input(rank).device_names;
        (!names.is_empty()).then(|| names.join(", "))
    };
    Columns::new("files", "A file that was read.", None)
        .text("run", ranks().map(run))
        .int("rank", ranks().map(|rank| rank.rank))
        .int("file", ranks().map(|rank| count(rank.input)))
        .int("window", ranks().map(|rank| count(rank.window)))
        .text("path", ranks().map(|rank| Some(input(rank).path.clone())))
        .int("size_bytes", ranks().map(|rank| bytes(input(rank).bytes)))
        .int("events", ranks().map(|rank| bytes(input(rank).events)))
        .flag("partial", ranks().map(|rank| Some(input(rank).partial)))
        .int("world_size", ranks().map(|rank| input(rank).world_size))
        .int("devices", ranks().map(|rank| count(rank.devices.len())))
        .text("device_names", ranks().map(devices))
        .done()
}
