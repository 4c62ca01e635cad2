//! What the arguments of device events say: shapes, registers, memory, blocks, occupancy, bytes.

use super::view::View;
use crate::error::Result;
use crate::model::EventId;

/// What the arguments of one device event say, by libkineto's names and in its units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Recorded {
    /// `grid`.
    pub(crate) grid: Option<[i64; 3]>,
    /// `block`.
    pub(crate) block: Option<[i64; 3]>,
    /// `registers per thread`.
    pub(crate) registers: Option<i64>,
    /// `shared memory`, bytes.
    pub(crate) shared_memory: Option<i64>,
    /// `blocks per SM`.
    pub(crate) blocks_per_sm: Option<f64>,
    /// `est. achieved occupancy %`: percent, as estimated by the writer.
    pub(crate) occupancy: Option<f64>,
    /// `bytes`.
    pub(crate) bytes: Option<i64>,
}

const KEYS: [&str; 7] = [
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "blocks per SM",
    "est. achieved occupancy %",
    "bytes",
];

/// What is recorded at `events`, which are in order.
///
/// # Errors
/// When the content is not what it was when the trace was read.
pub(super) fn recorded_at(view: &View<'_>, events: &[EventId]) -> Result<Vec<Recorded>> {
    view.arguments(events, &KEYS, |_, args| {
        let three = |key| args.ints(key, 3).and_then(|sides| sides.try_into().ok());
        Recorded {
            grid: three("grid"),
            block: three("block"),
            registers: args.int("registers per thread"),
            shared_memory: args.int("shared memory"),
            blocks_per_sm: args.float("blocks per SM"),
            occupancy: args.float("est. achieved occupancy %"),
            bytes: args.int("bytes"),
        }
    })
}

/// What is recorded about each piece of the dissection's device work, in its order; nothing about what
/// does not count.
pub(super) fn of_work(view: &View<'_>) -> Result<Vec<Recorded>> {
    let work = &view.dissection.work;
    let mut numbered: Vec<(EventId, usize)> = work
        .iter()
        .enumerate()
        .filter(|(_, work)| view.counts(work))
        .map(|(number, work)| (work.event, number))
        .collect();
    numbered.sort_unstable();
    // An event is at most one piece of work.
    let events: Vec<EventId> = numbered.iter().map(|(event, _)| *event).collect();
    let mut recorded = vec![Recorded::default(); work.len()];
    for ((_, number), read) in numbered.iter().zip(recorded_at(view, &events)?) {
        recorded[*number] = read;
    }
    Ok(recorded)
}
