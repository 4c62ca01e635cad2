//! Lines: numbers over time, with their area in any window.

use crate::units::{Ns, Span};

/// A number over time: disjoint pieces in order, zero between them.
pub(super) struct Line {
    pieces: Vec<(Span, i64)>,
    /// By piece: the area of the pieces before it.
    before: Vec<i128>,
}

impl Line {
    fn new(pieces: Vec<(Span, i64)>) -> Self {
        let mut sum = 0;
        let mut before = vec![sum];
        for piece in &pieces {
            sum += area(*piece, piece.0);
            before.push(sum);
        }
        Self { pieces, before }
    }

    /// One where `spans`, which must be disjoint and in order, are.
    pub(super) fn of(spans: &[Span]) -> Self {
        Self::new(spans.iter().map(|span| (*span, 1)).collect())
    }

    /// At each moment the sum of the numbers of the `ranges` around it, at most `cap`.
    ///
    /// ```text
    /// 2   ├───────────┤
    /// 3        ├──────────────┤
    ///     ├ 2 ─┤─ 5 ──┤── 3 ──┤
    /// ```
    pub(super) fn sum(ranges: &[(Span, i64)], cap: i64) -> Self {
        let ranges = ranges.iter().filter(|(span, _)| !span.is_empty());
        let mut changes: Vec<(Ns, i64)> = ranges
            .flat_map(|(span, number)| [(span.start, *number), (span.end, -number)])
            .collect();
        changes.sort_unstable();
        let mut pieces = Vec::new();
        let mut level: i128 = 0;
        let mut since = Ns(i64::MIN);
        for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
            let at = at_once[0].0;
            let capped = i64::try_from(level.min(i128::from(cap))).unwrap_or(cap);
            if capped != 0 {
                pieces.push((Span::new(since, at), capped));
            }
            level += at_once
                .iter()
                .map(|(_, change)| i128::from(*change))
                .sum::<i128>();
            since = at;
        }
        Self::new(pieces)
    }

    /// Number times time in `window`.
    pub(super) fn area(&self, window: Span) -> i128 {
        if window.is_empty() {
            return 0;
        }
        let from = self
            .pieces
            .partition_point(|(span, _)| span.end <= window.start);
        let to = self
            .pieces
            .partition_point(|(span, _)| span.start < window.end);
        if from >= to {
            return 0;
        }
        let whole = self.before[to] - self.before[from];
        // The first and the last piece may reach over the edges.
        let outside = |place: usize, side: Span| area(self.pieces[place], side);
        whole
            - outside(from, Span::new(Ns(i64::MIN), window.start))
            - outside(to - 1, Span::new(window.end, Ns(i64::MAX)))
    }

    /// Time in `window`, for a line of ones.
    pub(super) fn time(&self, window: Span) -> Ns {
        Ns(i64::try_from(self.area(window)).unwrap_or(i64::MAX))
    }
}

fn area((span, number): (Span, i64), window: Span) -> i128 {
    let start = span.start.max(window.start);
    let end = span.end.min(window.end);
    i128::from(number) * i128::from((end - start).0.max(0))
}

/// The parts of `spans` that are in none of `others`; both disjoint and in order.
pub(super) fn without(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    let mut next = 0;
    for span in spans {
        let mut start = span.start;
        while others.get(next).is_some_and(|other| other.end <= start) {
            next += 1;
        }
        let mut place = next;
        while let Some(other) = others.get(place).filter(|other| other.start < span.end) {
            if other.start > start {
                left.push(Span::new(start, other.start));
            }
            start = start.max(other.end);
            place += 1;
        }
        // The last one may reach into the next span.
        next = place.saturating_sub(1).max(next);
        if start < span.end {
            left.push(Span::new(start, span.end));
        }
    }
    left
}

/// The parts of `spans` that are in some of `others`; both disjoint and in order.
pub(super) fn within(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let mut both = Vec::new();
    let (mut a, mut b) = (0, 0);
    while let (Some(span), Some(other)) = (spans.get(a), others.get(b)) {
        let part = Span::new(span.start.max(other.start), span.end.min(other.end));
        if !part.is_empty() {
            both.push(part);
        }
        if span.end < other.end {
            a += 1;
        } else {
            b += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(pairs: &[(i64, i64)]) -> Vec<Span> {
        let span = |pair: &(i64, i64)| Span::new(Ns(pair.0), Ns(pair.1));
        pairs.iter().map(span).collect()
    }

    #[test]
    fn spans_are_cut_by_others() {
        let a = spans(&[(0, 10), (20, 30), (40, 50)]);
        let b = spans(&[(2, 4), (8, 22), (25, 45)]);
        let rest = spans(&[(0, 2), (4, 8), (22, 25), (45, 50)]);
        assert_eq!(without(&a, &b), rest);
        let both = spans(&[(2, 4), (8, 10), (20, 22), (25, 30), (40, 45)]);
        assert_eq!(within(&a, &b), both);
        assert_eq!(without(&a, &[]), a);
    }

    #[test]
    fn the_area_of_a_window_is_that_of_the_pieces_in_it() {
        let ranges = [
            (Span::new(Ns(0), Ns(10)), 2),
            (Span::new(Ns(4), Ns(20)), 3),
            (Span::new(Ns(7), Ns(7)), 9),
        ];
        let line = Line::sum(&ranges, 4);
        let area = |start, end| line.area(Span::new(Ns(start), Ns(end)));
        assert_eq!(area(0, 20), 2 * 4 + 4 * 6 + 3 * 10);
        assert_eq!(area(3, 5), 2 + 4);
        assert_eq!((area(5, 6), area(20, 30), area(9, 3)), (4, 0, 0));
    }
}
