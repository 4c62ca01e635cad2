//! Where events stand in their file, in half the space.

/// Byte offsets of events in file order: 32 bits each, over bases that change every 4 GiB or where
/// the parts of a file were joined.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offsets {
    low: Vec<u32>,
    /// The first event a base holds for, and the base.
    bases: Vec<(usize, u64)>,
}

impl Offsets {
    /// Makes space for more, if there is as much.
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.low.try_reserve(additional).ok();
    }

    #[inline]
    pub(crate) fn push(&mut self, offset: u64) {
        let base = self.bases.last().map_or(offset, |(_, base)| *base);
        let low = offset
            .checked_sub(base)
            .and_then(|low| u32::try_from(low).ok());
        if low.is_none() || self.bases.is_empty() {
            self.bases.push((self.low.len(), offset));
        }
        self.low.push(low.unwrap_or(0));
    }

    pub(crate) fn get(&self, number: usize) -> u64 {
        let after = self.bases.partition_point(|(first, _)| *first <= number);
        self.bases[after - 1].1 + u64::from(self.low[number])
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.low.truncate(len);
        self.bases.retain(|(first, _)| *first < len);
    }

    /// Moves all offsets on by `by` bytes.
    pub(crate) fn shift(&mut self, by: u64) {
        for (_, base) in &mut self.bases {
            *base = base.saturating_add(by);
        }
    }

    /// By how much `later` offsets are more over the last base than over their own, when they all fit.
    fn distance(&self, later: &Self) -> Option<u32> {
        let [(_, base)] = later.bases[..] else {
            return None;
        };
        let by = u32::try_from(base.checked_sub(self.bases.last()?.1)?).ok()?;
        by.checked_add(later.low.iter().copied().max()?)?;
        Some(by)
    }

    /// Moves over the offsets of the events that follow; `later` keeps its space.
    pub(crate) fn append(&mut self, later: &mut Self) {
        if let Some(by) = self.distance(later) {
            self.low.extend(later.low.drain(..).map(|low| low + by));
            later.bases.clear();
            return;
        }
        let before = self.low.len();
        let bases = later.bases.drain(..);
        self.bases
            .extend(bases.map(|(first, base)| (before + first, base)));
        self.low.append(&mut later.low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_come_back_whatever_their_order_and_size() {
        let wanted = [5, 7, 1 << 32, (1 << 32) + 9, 3, 4, u64::MAX, 0];
        let mut all = Offsets::default();
        for half in wanted.chunks(3) {
            let mut part = Offsets::default();
            for offset in half {
                part.push(*offset);
            }
            all.append(&mut part);
        }
        let found: Vec<u64> = (0..all.low.len()).map(|number| all.get(number)).collect();
        assert_eq!(found, wanted);
        all.truncate(4);
        all.push(1 << 40);
        assert_eq!((all.get(3), all.get(4)), ((1 << 32) + 9, 1 << 40));
    }

    #[test]
    fn parts_share_a_base_as_far_as_it_reaches() {
        let starts = [10, 1000, (1 << 32) - 5, (1 << 32) + 100, 7];
        let mut all = Offsets::default();
        for start in starts {
            let mut part = Offsets::default();
            part.push(start);
            part.push(start + 9);
            part.push(start + 3);
            all.append(&mut part);
            assert!(part.low.is_empty() && part.bases.is_empty());
        }
        let found: Vec<u64> = (0..all.low.len()).map(|number| all.get(number)).collect();
        let wanted: Vec<u64> = starts.iter().flat_map(|at| [*at, at + 9, at + 3]).collect();
        assert_eq!(found, wanted);
        let bases: Vec<usize> = all.bases.iter().map(|(first, _)| *first).collect();
        assert_eq!(bases, [0, 9, 12]);
    }
}
