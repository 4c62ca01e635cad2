//! Small deterministic random numbers: the same seed gives the same trace on every machine.

/// A generator of 64-bit numbers (a counter, mixed).
#[derive(Debug, Clone)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xA076_1D64_78BD_642F);
        let wide = u128::from(self.0) * u128::from(self.0 ^ 0xE703_7ED1_A0B4_28DB);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are folded in")]
        let mixed = (wide as u64) ^ ((wide >> 64) as u64);
        mixed
    }

    /// A number in `0..below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    /// A place in `0..len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    /// True once in `often` times on average.
    pub(crate) fn one_in(&mut self, often: u64) -> bool {
        self.below(often) == 0
    }

    /// The elements in another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}
