//! Gaps: when a device or a stream has nothing to do, and why.
//!
//! ```text
//! host      launch b         launch c                              launch d
//!             │                 │                                     │
//! stream 7  ├─ a ─┤1├─ b ─┤  2  ·   ├─ c ─┤          3           ├─ d ─┤
//! stream 20                                  ├─ all-reduce ─────┤
//! ```
//! With every launch but that of c made before the gap opens: gap 1 is short, so it is the latency of a
//! launch; 2 is host bound, since c was launched only after b had ended; 3 waits for the all-reduce that
//! ends right before d starts. The device as a whole is busy during the all-reduce: its gaps are 1, 2 and
//! what is left of 3 on either side.
//!
//! The rule that a launch after the end of the work before means a waiting host, and a short gap the
//! latency of launches, is that of HTA's `get_idle_time_breakdown`.

use std::cmp::Ordering;

use super::view::View;
use crate::attribute::{DeviceClass, Work};
use crate::units::{Ns, Span};

/// Why nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// The next work was launched only after the work before it had ended.
    HostBound,
    /// The next work was launched in time, and started not later than the threshold after the end of the
    /// work before it.
    LaunchLatency,
    /// The next work was launched in time, and started later than that, right after communication on
    /// another stream had ended.
    CommunicationWait,
    /// The next work was launched in time, and started later than that: it waited for another stream, an
    /// event or a synchronisation.
    Dependency,
    /// From the start of a window to its first work.
    LeadIn,
    /// From the last work to the end of a window.
    Tail,
    /// The launch of the next work is not known.
    Unknown,
}

impl Cause {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::HostBound => "host_bound",
            Self::LaunchLatency => "launch_latency",
            Self::CommunicationWait => "communication_wait",
            Self::Dependency => "dependency",
            Self::LeadIn => "lead_in",
            Self::Tail => "tail",
            Self::Unknown => "unknown",
        }
    }
}

/// A stretch of time without work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap<'w> {
    pub(super) span: Span,
    pub(super) cause: Cause,
    /// The work that ended last before it.
    pub(super) before: Option<&'w Work>,
    /// The work that ends it; of several, the one that was launched first.
    pub(super) after: Option<&'w Work>,
}

/// All gaps of a device or stream, in order of time; the first and the last have no end on their outside.
pub(super) struct Gaps<'w>(Vec<Gap<'w>>);

impl<'w> Gaps<'w> {
    /// The gaps between `work`, which must be in order of start. For the gaps of one stream, `waits` has
    /// the communication of its device.
    pub(super) fn new(
        view: &View<'_>,
        work: &[&'w Work],
        waits: Option<(u32, &Communication)>,
    ) -> Self {
        let mut gaps = Vec::new();
        let mut end = Ns(i64::MIN);
        let mut before: Option<&Work> = None;
        for together in work.chunk_by(|a, b| a.span.start == b.span.start) {
            let start = together[0].span.start;
            if start > end || before.is_none() {
                let after = together.iter().copied().min_by(|a, b| order(view, a, b));
                let span = Span::new(end, start);
                gaps.push(Gap {
                    span,
                    cause: after.map_or(Cause::Unknown, |after| cause(view, span, after, waits)),
                    before,
                    after,
                });
            }
            for work in together.iter().copied() {
                let later = match work.span.end.cmp(&end) {
                    Ordering::Equal => {
                        before.is_none_or(|known| name(view, work) < name(view, known))
                    }
                    order => order == Ordering::Greater,
                };
                if later {
                    end = work.span.end;
                    before = Some(work);
                }
            }
        }
        gaps.push(Gap {
            span: Span::new(end, Ns(i64::MAX)),
            cause: Cause::Unknown,
            before,
            after: None,
        });
        Self(gaps)
    }

    /// The parts of gaps inside `window`. When the window has `edges` that are not work, what touches
    /// them is [lead-in](Cause::LeadIn) or [tail](Cause::Tail).
    pub(super) fn within(&self, window: Span, edges: bool) -> impl Iterator<Item = Gap<'w>> {
        let from = self.0.partition_point(|gap| gap.span.end <= window.start);
        self.0[from..]
            .iter()
            .take_while(move |gap| gap.span.start < window.end)
            .filter_map(move |gap| {
                let start = gap.span.start.max(window.start);
                let end = gap.span.end.min(window.end);
                let cause = match gap.cause {
                    _ if edges && start == window.start => Cause::LeadIn,
                    _ if edges && end == window.end => Cause::Tail,
                    cause => cause,
                };
                (start < end).then_some(Gap {
                    span: Span::new(start, end),
                    cause,
                    ..*gap
                })
            })
    }
}

fn name<'a>(view: &View<'a>, work: &Work) -> &'a str {
    view.trace().name(work.event)
}

/// Which of two pieces of work that start at once was launched first; by content when that is the same.
fn order(view: &View<'_>, a: &Work, b: &Work) -> Ordering {
    let launched = |work: &Work| {
        let launch = view.launch(work);
        let row = launch.map(|launch| view.trace().row_text(launch.track));
        (launch.is_none(), launch.map(|launch| launch.at), row)
    };
    let key = |work: &Work| (work.bucket, work.step, work.span.end);
    launched(a)
        .cmp(&launched(b))
        .then_with(|| name(view, a).cmp(name(view, b)))
        .then_with(|| key(a).cmp(&key(b)))
        .then_with(|| view.ident(a.stream).cmp(&view.ident(b.stream)))
}

fn cause(view: &View<'_>, gap: Span, after: &Work, waits: Option<(u32, &Communication)>) -> Cause {
    let threshold = view.options.idle_threshold;
    let Some(launch) = view.launch(after) else {
        return Cause::Unknown;
    };
    if launch.at > gap.start {
        Cause::HostBound
    } else if gap.len() <= threshold {
        Cause::LaunchLatency
    } else if waits.is_some_and(|(lane, waits)| waits.ends_with(gap, lane, threshold)) {
        Cause::CommunicationWait
    } else {
        Cause::Dependency
    }
}

/// When communication ends on which stream of a device.
pub(super) struct Communication(Vec<(Ns, u32)>);

impl Communication {
    pub(super) fn new<'w>(work: impl IntoIterator<Item = &'w Work>) -> Self {
        let work = work.into_iter();
        let communication = work.filter(|work| work.class == DeviceClass::Communication);
        let mut ends: Vec<_> = communication
            .map(|work| (work.span.end, work.lane))
            .collect();
        ends.sort_unstable();
        Self(ends)
    }

    /// True when communication on another stream than `lane` ends in `gap`, and not longer than
    /// `threshold` before its end.
    fn ends_with(&self, gap: Span, lane: u32, threshold: Ns) -> bool {
        let to = self.0.partition_point(|(end, _)| *end <= gap.end);
        self.0[..to]
            .iter()
            .rev()
            .take_while(|(end, _)| *end > gap.start && gap.end - *end <= threshold)
            .any(|(_, other)| *other != lane)
    }
}
