//! Ranges of time in rows of tables.

use crate::attribute::{overlap, union};
use crate::units::{Ns, Span};

/// The ranges of rows of file, start and end; by file, in order.
pub(super) fn ranges(rows: &[[i64; 3]]) -> Vec<(i64, Span)> {
    let mut ranges: Vec<(i64, Span)> = rows
        .iter()
        .filter(|[_, from, to]| from < to)
        .map(|[file, from, to]| (*file, Span::new(Ns(*from), Ns(*to))))
        .collect();
    ranges.sort_unstable_by_key(|(file, span)| (*file, span.start, span.end));
    ranges
}

/// How long the `gaps` are under the union of `others`, file by file; both are in order of file.
pub(super) fn common(gaps: &[(i64, Span)], others: &[(i64, Span)]) -> Ns {
    let mut sum = Ns::ZERO;
    for gaps in gaps.chunk_by(|one, other| one.0 == other.0) {
        let from = others.partition_point(|(file, _)| *file < gaps[0].0);
        let of_file = others[from..]
            .iter()
            .take_while(|(file, _)| *file == gaps[0].0);
        let others = union(of_file.map(|(_, span)| *span));
        // Gaps of several devices overlap, so each starts its own search.
        for (_, gap) in gaps {
            let from = others.partition_point(|span| span.end <= gap.start);
            let under = others[from..]
                .iter()
                .take_while(|span| span.start < gap.end);
            sum += under.map(|span| overlap(*span, *gap)).sum();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_compared_file_by_file() {
        let span = |file, start, end| (file, Span::new(Ns(start), Ns(end)));
        let gaps = [span(0, 0, 10), span(0, 5, 20), span(1, 0, 10)];
        let others = [span(0, 8, 12), span(0, 11, 15), span(2, 0, 100)];
        assert_eq!(common(&gaps, &others), Ns(2 + 7));
    }
}
