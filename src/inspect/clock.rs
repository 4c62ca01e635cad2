//! How far the clocks of ranks are apart, from collectives that end on all of them at once.
//!
//! ```text
//! rank 0   ───── A ┤──── B ┤────────── C ┤
//! rank 1     ───── A ┤──── B ┤────────── C ┤      ahead of rank 0 by the median of the distances
//! ```
//! Ranks that share no collective are compared over others: along the tree of pairs that share the most.
//! Then every rank is compared with the middle of all ends of each of its collectives: the median of these
//! distances corrects its offset, the median of how far they are from that (MAD) is its uncertainty.

use std::collections::BTreeMap;

use super::matching::{Matched, Member};
use crate::units::Ns;

/// The clock of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// How far it is ahead of the median of the files that it can be compared with.
    pub(super) offset: Ns,
    /// Median absolute deviation of the distances; `None` of one.
    pub(super) uncertainty: Option<Ns>,
    /// On how many collectives that rests.
    pub(super) collectives: u64,
    /// The first of the files that it can be compared with.
    pub(super) component: usize,
}

/// One entry a member; `None` where no collective with another file tells.
pub(super) fn clocks(members: &[Member<'_>], matched: &[Matched<'_>]) -> Vec<Option<Clock>> {
    let ends: Vec<Vec<(usize, i128)>> = matched
        .iter()
        .filter(|matched| matched.ends_together())
        .map(|matched| {
            let calls = matched.calls.iter();
            calls
                .map(|(file, call)| (*file, members[*file].end(call)))
                .collect()
        })
        .filter(|ends: &Vec<(usize, i128)>| ends.iter().any(|end| end.0 != ends[0].0))
        .collect();
    let (component, mut ahead) = along_tree(members.len(), &ends);
    let mut distances: Vec<Vec<i128>> = vec![Vec::new(); members.len()];
    for ends in &ends {
        let mut corrected: Vec<i128> = ends.iter().map(|(file, end)| end - ahead[*file]).collect();
        corrected.sort_unstable();
        let middle = middle(&corrected);
        for (file, end) in ends {
            distances[*file].push(end - ahead[*file] - middle);
        }
    }
    for (distances, ahead) in distances.iter_mut().zip(&mut ahead) {
        distances.sort_unstable();
        if !distances.is_empty() {
            *ahead += middle(distances);
        }
    }
    let mut of_component: BTreeMap<usize, Vec<i128>> = BTreeMap::new();
    for file in (0..members.len()).filter(|file| !distances[*file].is_empty()) {
        of_component
            .entry(component[file])
            .or_default()
            .push(ahead[file]);
    }
    let medians: BTreeMap<usize, i128> = of_component
        .into_iter()
        .map(|(component, mut aheads)| {
            aheads.sort_unstable();
            (component, middle(&aheads))
        })
        .collect();
    (0..members.len())
        .map(|file| {
            let distances = &distances[file];
            let median = medians.get(&component[file])?;
            (!distances.is_empty()).then(|| Clock {
                offset: narrow(ahead[file] - median),
                uncertainty: (distances.len() > 1).then(|| narrow(deviation(distances))),
                collectives: distances.len() as u64,
                component: component[file],
            })
        })
        .collect()
}

/// By file: the first file that it is linked with, and how far it is ahead of that one.
fn along_tree(files: usize, ends: &[Vec<(usize, i128)>]) -> (Vec<usize>, Vec<i128>) {
    let mut pairs: BTreeMap<(usize, usize), Vec<i128>> = BTreeMap::new();
    for ends in ends {
        let (first, at) = ends[0];
        for (file, end) in &ends[1..] {
            if *file != first {
                pairs.entry((first, *file)).or_default().push(end - at);
            }
        }
    }
    let mut edges: Vec<(usize, usize, usize, i128)> = pairs
        .into_iter()
        .map(|((one, other), mut apart)| {
            apart.sort_unstable();
            (apart.len(), one, other, middle(&apart))
        })
        .collect();
    edges.sort_by_key(|(count, one, other, _)| (std::cmp::Reverse(*count), *one, *other));
    let mut component: Vec<usize> = (0..files).collect();
    let mut members: Vec<Vec<usize>> = (0..files).map(|file| vec![file]).collect();
    let mut ahead = vec![0_i128; files];
    for (_, one, other, apart) in edges {
        if component[one] == component[other] {
            continue;
        }
        // How far the component of the other moves, so that the two are `apart`; the smaller one moves.
        let distance = ahead[one] + apart - ahead[other];
        let larger = members[component[one]].len() >= members[component[other]].len();
        let (into, from, moved) = if larger {
            (component[one], component[other], distance)
        } else {
            (component[other], component[one], -distance)
        };
        let mut joining = std::mem::take(&mut members[from]);
        for file in &joining {
            component[*file] = into;
            ahead[*file] += moved;
        }
        members[into].append(&mut joining);
    }
    for members in &members {
        let Some(first) = members.iter().min() else {
            continue;
        };
        let base = ahead[*first];
        for file in members {
            component[*file] = *first;
            ahead[*file] -= base;
        }
    }
    (component, ahead)
}

/// The middle of numbers in order; of two, what lies between them.
fn middle(sorted: &[i128]) -> i128 {
    let (lower, upper) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    lower + (upper - lower) / 2
}

/// The median of the distances of `sorted` numbers from their middle.
fn deviation(sorted: &[i128]) -> i128 {
    let own = middle(sorted);
    let mut away: Vec<i128> = sorted.iter().map(|number| (number - own).abs()).collect();
    away.sort_unstable();
    middle(&away)
}

/// `time` in 64 bits, the nearest there is.
pub(super) fn narrow(time: i128) -> Ns {
    let limit = i128::from(i64::MAX);
    Ns(i64::try_from(time.clamp(-limit, limit)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_over_others() {
        // File 0 and 1 share two collectives, 1 and 2 one: 2 is 5 behind 1, which is 100 ahead of 0.
        let ends = vec![
            vec![(0, 10), (1, 110)],
            vec![(0, 20), (1, 120)],
            vec![(1, 200), (2, 195)],
        ];
        let (component, ahead) = along_tree(4, &ends);
        assert_eq!(component, [0, 0, 0, 3]);
        assert_eq!(ahead, [0, 100, 95, 0]);
    }

    #[test]
    fn a_component_moves_as_a_whole() {
        let ends = vec![
            vec![(0, 0), (3, 7)],
            vec![(0, 0), (3, 7)],
            vec![(1, 0), (2, 1)],
            vec![(1, 5), (2, 6)],
            vec![(2, 40), (3, 60)],
        ];
        let (component, ahead) = along_tree(4, &ends);
        assert_eq!(component, [0, 0, 0, 0]);
        assert_eq!(ahead, [0, -14, -13, 7]);
    }

    #[test]
    fn the_middle_of_two_lies_between() {
        assert_eq!(middle(&[-3, 2]), -1);
        assert_eq!(middle(&[1, 2, 9]), 2);
        assert_eq!(deviation(&[-5, 1, 2, 4, 900]), 2);
        assert_eq!(narrow(i128::MAX), Ns(i64::MAX));
    }
}
