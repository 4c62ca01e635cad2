//! Data transfer and synchronising, as the distributed view of PyTorch's TensorBoard plugin defines them.
//!
//! ```text
//! rank 0   ├──── synchronising ─────┼─ transfer ─┤
//! rank 1                            ├─ transfer ─┤     the shortest call: all of it is transfer
//! ```
//! The transfer of a call is its last part, as long as the shortest call of the collective; transfer of
//! calls at the same time counts once, and what else communication takes is synchronising. The plugin shows
//! nothing when ranks have different numbers of collectives; here calls that match no other are left out
//! and counted.

use std::collections::BTreeMap;

use super::communication::union_len;
use super::frame::Frame;
use super::rank::{Seen, places, with_file};
use super::subject::Inspected;
use super::waiting::Together;
use crate::attribute::NONE;
use crate::units::{Ns, Span};

/// Matched calls of one rank and step.
#[derive(Default)]
struct Calls {
    calls: Vec<Span>,
    /// The last part of each, in which data moves.
    tails: Vec<Span>,
}

struct Row<'a> {
    file: &'a Inspected<'a, Seen>,
    step: u32,
    calls: u64,
    communication: Ns,
    transfer: Ns,
}

/// One row a rank and step with matched collectives.
pub(super) fn transfer_frame(files: &[Inspected<'_, Seen>], all: &[Together<'_>]) -> Frame {
    let mut of_file: BTreeMap<(usize, usize, u32), Calls> = BTreeMap::new();
    for (group, together) in all.iter().enumerate() {
        for matched in &together.matched {
            let shortest = matched.shortest();
            for (place, call) in &matched.calls {
                let calls = of_file.entry((group, *place, call.step)).or_default();
                calls.calls.push(call.span);
                let tail = Span::new(call.span.end - shortest, call.span.end);
                calls.tails.push(tail);
            }
        }
    }
    let mut rows = Vec::new();
    for (file, (group, place)) in files.iter().zip(places(files)) {
        let steps = of_file.range((group, place, 0)..=(group, place, NONE));
        rows.extend(steps.map(|((_, _, step), calls)| Row {
            file,
            step: *step,
            calls: calls.calls.len() as u64,
            communication: union_len(calls.calls.iter().copied()).1,
            transfer: union_len(calls.tails.iter().copied()).1,
        }));
    }
    let frame = Frame::new(
        "transfer",
        "Transferring and synchronising in collectives that are known on several ranks.",
    );
    with_file(frame, &rows, |row| row.file)
        .text("step", &rows, |row| {
            row.file.seen.steps.get(row.step as usize).cloned()
        })
        .count("calls", &rows, |row| Some(row.calls))
        .ns("communication_ns", &rows, |row| Some(row.communication))
        .ns("transfer_ns", &rows, |row| Some(row.transfer))
        .ns("synchronizing_ns", &rows, |row| {
            Some(row.communication - row.transfer)
        })
}
