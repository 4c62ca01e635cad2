//! Which communication is exposed: no kernel computes on the device meanwhile.
//!
//! ```text
//! compute        ├─ gemm ─┤           ├ gemm ┤
//! communication      ├─ all-reduce ─────────────┤
//!                          ├─ all-gather ─────────┤
//! held               ├ all-reduce ──────────────┤├┤ all-gather
//! overlapped         ├────┤           ├──────┤
//! exposed                  ├──────────┤       ├───┤
//! ```
//! Of communication at the same time the call that started first holds the instant, so the calls of a
//! device hold its communication time exactly once, however they are grouped.

use super::collective::Call;
use crate::attribute::overlap;
use crate::units::{Ns, Span};

/// The part of the communication time that one call holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Exposure {
    /// Time that it holds.
    pub(super) held: Ns,
    /// The part of it under computing kernels.
    pub(super) overlapped: Ns,
}

/// One entry a call of one device, which must be in order of start. `computing` is disjoint and in order.
pub(super) fn exposures(calls: &[Call], computing: &[Span]) -> Vec<Exposure> {
    let mut until = Ns(i64::MIN);
    let mut next = 0;
    calls
        .iter()
        .map(|call| {
            let held = Span::new(call.span.start.max(until), call.span.end);
            if held.end <= held.start {
                return Exposure::default();
            }
            until = held.end;
            while computing
                .get(next)
                .is_some_and(|span| span.end <= held.start)
            {
                next += 1;
            }
            let under = computing[next..]
                .iter()
                .take_while(|span| span.start < held.end);
            Exposure {
                held: held.len(),
                overlapped: under.map(|span| overlap(*span, held)).sum(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Bucket, NONE, Phase};

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    #[test]
    fn the_call_that_started_first_holds_the_instant() {
        let calls = [(10, 40), (20, 30), (35, 50), (60, 60), (60, 70)].map(|(start, end)| Call {
            device: Some(0),
            lane: 0,
            span: span(start, end),
            kind: 0,
            sequence: None,
            step: NONE,
            bucket: Bucket::Phase(Phase::Other),
        });
        let computing = [span(0, 12), span(22, 24), span(38, 42), span(49, 61)];
        let got = exposures(&calls, &computing);
        let want = [(30, 2 + 2 + 2), (0, 0), (10, 2 + 1), (0, 0), (10, 1)];
        assert_eq!(
            got,
            want.map(|(held, overlapped)| Exposure {
                held: Ns(held),
                overlapped: Ns(overlapped),
            })
        );
    }
}
