//! Sets of half-open intervals.

use crate::units::{Ns, Span};

/// The union of `spans` as disjoint spans in order; empty ones are dropped.
pub(crate) fn union(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = spans.into_iter().filter(|span| !span.is_empty()).collect();
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// The disjoint span of `sorted` that contains `at`.
pub(crate) fn find(sorted: &[Span], at: Ns) -> Option<Span> {
    let after = sorted.partition_point(|span| span.start <= at);
    sorted[..after]
        .last()
        .copied()
        .filter(|span| span.contains(at))
}

/// Length of the part of `span` inside `within`.
pub(crate) fn overlap(span: Span, within: Span) -> Ns {
    let start = span.start.max(within.start);
    let end = span.end.min(within.end);
    if end > start { end - start } else { Ns::ZERO }
}

/// A piece of a line on which the innermost of nested ranges is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<T> {
    pub(crate) span: Span,
    pub(crate) value: T,
    /// Start of the range that the piece is cut from.
    pub(crate) opened: Ns,
}

/// Flattens ranges to disjoint pieces; where several are open, the one that started last counts.
///
/// ```text
/// a   ├──────────────────┤
/// b        ├───────┤
/// c            ├─┤
///     ├ a ─┤ b ┤c┤b├─ a ─┤
/// ```
/// `ranges` must be sorted by start, longest first.
pub(crate) fn innermost<T: Copy>(ranges: &[(Span, T)]) -> Vec<Piece<T>> {
    let mut pieces: Vec<Piece<T>> = Vec::new();
    let mut open: Vec<(Span, T)> = Vec::new();
    let mut cursor = Ns(i64::MIN);
    let mut advance = |open: &mut Vec<(Span, T)>, until: Ns| {
        while let Some(&(span, value)) = open.last() {
            let start = span.start.max(cursor);
            let end = span.end.min(until);
            if end > start {
                pieces.push(Piece {
                    span: Span::new(start, end),
                    value,
                    opened: span.start,
                });
                cursor = end;
            }
            if span.end > until {
                break;
            }
            open.pop();
        }
    };
    for &(span, value) in ranges {
        advance(&mut open, span.start);
        if !span.is_empty() {
            open.push((span, value));
        }
    }
    advance(&mut open, Ns(i64::MAX));
    pieces
}

/// The piece of `pieces` that contains `at`.
pub(crate) fn piece_at<T: Copy>(pieces: &[Piece<T>], at: Ns) -> Option<Piece<T>> {
    let after = pieces.partition_point(|piece| piece.span.start <= at);
    pieces[..after]
        .last()
        .copied()
        .filter(|piece| piece.span.contains(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    #[test]
    fn union_joins_what_touches() {
        let joined = union([span(5, 7), span(0, 2), span(2, 4), span(6, 6), span(6, 9)]);
        assert_eq!(joined, [span(0, 4), span(5, 9)]);
        assert_eq!(find(&joined, Ns(3)), Some(span(0, 4)));
        assert_eq!(find(&joined, Ns(4)), None);
    }

    #[test]
    fn the_range_that_started_last_counts() {
        let ranges = [
            (span(0, 10), 'a'),
            (span(2, 6), 'b'),
            (span(3, 4), 'c'),
            (span(5, 12), 'd'),
        ];
        let pieces: Vec<_> = innermost(&ranges)
            .iter()
            .map(|piece| (piece.span, piece.value))
            .collect();
        assert_eq!(
            pieces,
            [
                (span(0, 2), 'a'),
                (span(2, 3), 'b'),
                (span(3, 4), 'c'),
                (span(4, 5), 'b'),
                (span(5, 12), 'd')
            ]
        );
    }
}
