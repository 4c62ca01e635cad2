//! What a host thread was doing during a stretch of time.
//!
//! ```text
//! gap              ├──────────────────────────┤
//! thread  ├─ enumerate(DataLoader)… ────────────┤├─ aten::linear ─┤
//!              ├ stack ┤ ├ stack ┤ ├ stack ┤
//! ```
//! It is the innermost operator, annotation or API call that takes more than half of it: here the data
//! loader, since no single `stack` does. Such a call contains the middle of the stretch. Steps do not
//! count, since they contain everything.

use std::cmp::Reverse;

use super::view::View;
use crate::attribute::{overlap, span_of};
use crate::model::StrId;
use crate::units::{Ns, Span};

/// How many open calls are looked through. Real threads nest some dozens deep.
const MAX_DEPTH: usize = 512;

/// For each stretch of a host thread the name of what it was doing, if anything.
pub(super) fn occupations<'a>(
    view: &View<'a>,
    stretches: &[(Option<usize>, Span)],
) -> Vec<Option<&'a str>> {
    let mut by_thread: Vec<Vec<usize>> = vec![Vec::new(); view.dissection.host.threads.len()];
    for (number, (thread, _)) in stretches.iter().enumerate() {
        if let Some(thread) = thread {
            by_thread[*thread].push(number);
        }
    }
    let mut calls = api_calls(view, &by_thread);
    let mut found = vec![None; stretches.len()];
    for (thread, mut wanted) in by_thread.into_iter().enumerate() {
        if wanted.is_empty() {
            continue;
        }
        wanted.sort_by_key(|number| middle(stretches[*number].1));
        let ranges = ranges(view, thread, std::mem::take(&mut calls[thread]));
        sweep(&ranges, stretches, &wanted, |number, name| {
            found[number] = Some(view.trace().strings.get(name));
        });
    }
    found
}

fn middle(span: Span) -> Ns {
    Ns(span.start.0.midpoint(span.end.0))
}

/// The API calls on each of the threads from which something is wanted.
fn api_calls(view: &View<'_>, by_thread: &[Vec<usize>]) -> Vec<Vec<(Span, StrId)>> {
    let events = &view.trace().events;
    let mut calls = vec![Vec::new(); by_thread.len()];
    for id in events.ids() {
        if !events.activity(id).is_launch() || !events.is_complete(id) {
            continue;
        }
        let thread = view.dissection.host.thread(events.track(id));
        if let Some(thread) = thread.filter(|thread| !by_thread[*thread].is_empty()) {
            calls[thread].push((span_of(view.trace(), id), events.name(id)));
        }
    }
    calls
}

/// All that goes on on a thread, by start, longest first.
fn ranges(view: &View<'_>, thread: usize, calls: Vec<(Span, StrId)>) -> Vec<(Span, StrId)> {
    let host = view.thread(thread);
    let name = |event| view.trace().events.name(event);
    let ops = host.ops.iter().map(|op| (op.span, op.name));
    let notes = host.annotations.iter().filter(|note| note.step.is_none());
    let notes = notes.map(|note| (note.span, name(note.event)));
    let mut ranges = calls;
    ranges.extend(ops.chain(notes));
    let key = |range: &(Span, StrId)| (range.0.start, Reverse(range.0.end));
    let text = |range: &(Span, StrId)| view.trace().strings.get(range.1);
    ranges.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| text(a).cmp(text(b))));
    ranges
}

fn sweep(
    ranges: &[(Span, StrId)],
    stretches: &[(Option<usize>, Span)],
    wanted: &[usize],
    mut found: impl FnMut(usize, StrId),
) {
    let mut open: Vec<(Span, StrId)> = Vec::new();
    let mut next = ranges.iter().peekable();
    for number in wanted {
        let stretch = stretches[*number].1;
        let at = middle(stretch);
        while let Some(range) = next.next_if(|range| range.0.start <= at) {
            while open.last().is_some_and(|top| top.0.end <= range.0.start) {
                open.pop();
            }
            open.push(*range);
        }
        let over_half = |range: &&(Span, StrId)| {
            let part = i128::from(overlap(range.0, stretch).0);
            part * 2 > i128::from(stretch.len().0)
        };
        if let Some((_, name)) = open.iter().rev().take(MAX_DEPTH).find(over_half) {
            found(*number, *name);
        }
    }
}
