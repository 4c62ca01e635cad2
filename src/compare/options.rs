//! What counts as a change.

/// What counts as a change.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// A difference is a change when chance makes one as large less often than this.
    pub alpha: f64,
    /// The smallest relative change that counts; by the units of the test when `None`.
    pub min_effect: Option<f64>,
    /// At most so many rows of names in a table; the others are put together in one row. 0 is all.
    pub top: usize,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            alpha: 0.01,
            min_effect: None,
            top: 20,
        }
    }
}

/// The smallest effect that counts between medians of repeats.
pub(super) const EFFECT_OF_REPEATS: f64 = 0.01;
/// The smallest effect that counts between steps of single runs, whose noise between runs is not seen.
pub(super) const EFFECT_OF_STEPS: f64 = 0.03;
