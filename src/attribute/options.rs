//! What the caller may ask of an attribution.

use regex::Regex;

use super::phase::Phase;

/// Which evidence decides what is recompute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecomputeEvidence {
    /// Per region, the strongest there is: annotation, then stack, then sequence.
    #[default]
    Auto,
    /// Only `recompute` annotations.
    Annotation,
    /// Only Python frames of the checkpoint's re-run.
    Stack,
    /// Only sequence numbers on operators inside backward nodes.
    Sequence,
}

impl RecomputeEvidence {
    /// The spelling used on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Annotation => "annotation",
            Self::Stack => "stack",
            Self::Sequence => "sequence",
        }
    }
}

/// A range of steps, by the number in the step's name, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRange {
    /// First number.
    pub first: u64,
    /// Last number.
    pub last: u64,
}

impl std::fmt::Display for StepRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.first, self.last) {
            (first, last) if first == last => write!(f, "{first}"),
            (first, u64::MAX) => write!(f, "{first}.."),
            (first, last) => write!(f, "{first}..{last}"),
        }
    }
}

/// What the caller may ask of an attribution.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AttributeOptions {
    /// More annotation names: an annotation whose name matches is of that phase.
    pub phases: Vec<(Phase, Regex)>,
    /// More communication kernels.
    pub communication: Vec<Regex>,
    /// Only steps in this range; device work launched elsewhere is left out.
    pub steps: Option<StepRange>,
    /// Treat explicit phase annotations as absent.
    pub ignore_annotations: bool,
    /// Which evidence decides what is recompute.
    pub recompute_evidence: RecomputeEvidence,
    /// Count partial first and last steps in step times.
    pub include_partial_steps: bool,
    /// How many kernels a phase to name.
    pub top: usize,
}

impl Default for AttributeOptions {
    fn default() -> Self {
        Self {
            phases: Vec::new(),
            communication: Vec::new(),
            steps: None,
            ignore_annotations: false,
            recompute_evidence: RecomputeEvidence::Auto,
            include_partial_steps: false,
            top: 3,
        }
    }
}
