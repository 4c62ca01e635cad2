//! Communication as HolisticTraceAnalysis (HTA) 0.6 defines it.
//!
//! Differences to tracekit's own definition, each with what makes it:
//! - Times are whole microseconds: starts are rounded up and ends down.
//! - Of two or more `ProfilerStep#` ranges the last is left out, with all device work whose launch is in
//!   it, behind it or not in the file. Correlation decides, so work launched before the capture is left
//!   out as well.
//! - Devices are put together: what computes on one hides what communicates on another.
//! - An event is on a device when it has a stream other than −1; here only device work is looked at, so
//!   synchronisation events, which HTA counts as computing, are not.

use std::collections::BTreeSet;

use super::communication::union_len;
use super::frame::{Frame, Unit};
use super::group::{Combination, Groups, groups_frame};
use super::view::View;
use crate::attribute::{Work, overlap, span_of};
use crate::model::EventId;
use crate::units::{Ns, Span};

const MICROSECOND: i64 = 1000;

/// `span` in whole microseconds: what of it is certain.
pub(super) fn rounded(span: Span) -> Span {
    let start = span.start.0.div_euclid(MICROSECOND) + i64::from(span.start.0 % MICROSECOND != 0);
    let end = span.end.0.div_euclid(MICROSECOND);
    Span::new(Ns(start * MICROSECOND), Ns(end * MICROSECOND))
}

/// What a kernel is by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Computation,
    Communication,
    Memory,
}

impl Type {
    /// Every type; `as u8` is its place.
    pub(super) const ALL: [Self; 3] = [Self::Computation, Self::Communication, Self::Memory];

    /// HTA's word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Computation => "COMPUTATION",
            Self::Communication => "COMMUNICATION",
            Self::Memory => "MEMORY",
        }
    }

    /// The type of work of this name.
    pub(super) fn of(name: &str) -> Self {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if starts(&["Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"]) {
            Self::Memory
        } else if starts(&["nccl", "hip", "hccl"]) || name.contains("ncclKernel") {
            Self::Communication
        } else {
            Self::Computation
        }
    }
}

/// A range called `ProfilerStep#N`, with its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) span: Span,
}

/// The steps that count, in order of time: all but the last where there are several.
pub(super) fn steps(view: &View<'_>) -> Vec<Step> {
    let steps = view.dissection.steps.all.iter();
    let steps = steps.filter(|step| !step.inferred).map(|step| Step {
        number: step.number,
        span: rounded(step.span),
    });
    let mut steps: Vec<Step> = steps.collect();
    steps.sort_by_key(|step| (step.span, step.number));
    steps
}

/// When the last step starts, from which on launches do not count.
pub(super) fn last_start(steps: &[Step]) -> Option<Ns> {
    let last = steps.last()?;
    steps
        .iter()
        .any(|step| step.number != last.number)
        .then_some(last.span.start)
}

/// The device work that counts.
pub(super) fn work<'a>(view: &View<'a>) -> Vec<&'a Work> {
    let trace = view.trace();
    let events = &trace.events;
    let all = view.dissection.work.iter();
    let Some(last) = last_start(&steps(view)) else {
        return all.collect();
    };
    let correlation = |id: EventId| {
        let args = events.launch_args(id)?;
        let counts = events.is_complete(id) && rounded(span_of(trace, id)).start < last;
        counts.then_some(args.correlation)
    };
    let launched: BTreeSet<u64> = events.ids().filter_map(correlation).collect();
    let is_launched = |work: &&Work| {
        let args = events.device_args(work.event);
        args.is_some_and(|args| launched.contains(&args.correlation))
    };
    all.filter(is_launched).collect()
}

/// Overlap of a file, and the combinations of its types of kernels.
pub(super) fn communication(view: &View<'_>) -> Vec<Frame> {
    let work: Vec<(Type, Span)> = work(view)
        .into_iter()
        .map(|work| {
            let kind = Type::of(view.trace().name(work.event));
            // Impossible overlaps are not repaired there.
            (kind, rounded(span_of(view.trace(), work.event)))
        })
        .collect();
    let of = |wanted| {
        let spans = work.iter().filter(move |(kind, _)| *kind == wanted);
        union_len(
            spans
                .map(|(_, span)| *span)
                .filter(|span| span.end > span.start),
        )
    };
    let (communication, held) = of(Type::Communication);
    let (computation, _) = of(Type::Computation);
    let row = Overlap {
        communication: held,
        overlapped: common(&communication, &computation),
    };
    let flagged: Vec<(Span, u32)> = work
        .iter()
        .filter(|(_, span)| span.end > span.start)
        .map(|(kind, span)| {
            let flag = match kind {
                Type::Computation => 1,
                Type::Communication => 2,
                Type::Memory => 4,
            };
            (*span, flag)
        })
        .collect();
    let groups: Vec<Combination> = Groups::Classes.rows(None, &flagged);
    let rows: &[Overlap] = if work.is_empty() { &[] } else { &[row] };
    let overlap = Frame::new(
        "communication",
        "Overlap of communication and computation as HTA defines it.",
    )
    .ns("communication_ns", rows, |row| Some(row.communication))
    .ns("overlapped_ns", rows, |row| Some(row.overlapped))
    .ns("exposed_ns", rows, |row| {
        Some(row.communication - row.overlapped)
    })
    .float("overlap_ratio", Unit::Ratio, rows, |row| {
        row.overlapped.ratio(row.communication)
    });
    vec![overlap, groups_frame(&groups)]
}

#[derive(Debug, Clone, Copy)]
struct Overlap {
    communication: Ns,
    overlapped: Ns,
}

/// Length of what is in both of two unions.
pub(super) fn common(one: &[Span], other: &[Span]) -> Ns {
    let mut next = 0;
    let mut sum = Ns::ZERO;
    for span in one {
        while other.get(next).is_some_and(|other| other.end <= span.start) {
            next += 1;
        }
        let under = other[next..]
            .iter()
            .take_while(|other| other.start < span.end);
        sum += under.map(|other| overlap(*span, *other)).sum();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    #[test]
    fn starts_are_rounded_up_and_ends_down() {
        assert_eq!(rounded(span(1000, 2999)), span(1000, 2000));
        assert_eq!(rounded(span(1001, 3000)), span(2000, 3000));
        assert_eq!(rounded(span(-1500, -500)), span(-1000, -1000));
        let short = rounded(span(1100, 1900));
        assert!(short.end < short.start);
    }

    #[test]
    fn common_time_is_counted_once() {
        let one = [span(0, 10), span(20, 30)];
        let other = [span(5, 22), span(25, 26), span(29, 50)];
        assert_eq!(common(&one, &other), Ns(5 + 2 + 1 + 1));
    }

    #[test]
    fn names_decide_the_type() {
        assert_eq!(Type::of("ncclDevKernel_X"), Type::Communication);
        assert_eq!(Type::of("Memset (Device)"), Type::Memory);
        assert_eq!(Type::of("hipMemcpyAsync"), Type::Memory);
        assert_eq!(Type::of("vllm::cross_device_reduce"), Type::Computation);
    }
}
