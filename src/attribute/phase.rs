//! Training phases and the annotations that name them.

use std::fmt;

use regex::Regex;
use serde::Serialize;

/// A phase of training. *Recompute* is disjoint from *backward*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The forward pass.
    Forward,
    /// The backward pass, without recompute.
    Backward,
    /// Forward work run again inside the backward pass (activation checkpointing).
    Recompute,
    /// The optimizer step.
    Optimizer,
    /// In no phase.
    Other,
}

impl Phase {
    /// Every phase, in the order of output.
    pub const ALL: [Self; 5] = [
        Self::Forward,
        Self::Backward,
        Self::Recompute,
        Self::Optimizer,
        Self::Other,
    ];

    /// The spelling used in JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Recompute => "recompute",
            Self::Optimizer => "optimizer",
            Self::Other => "other",
        }
    }

    /// The phase with this spelling; `update` is an alias of `optimizer`. Case matters.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "forward" => Some(Self::Forward),
            "backward" => Some(Self::Backward),
            "recompute" => Some(Self::Recompute),
            "optimizer" | "update" => Some(Self::Optimizer),
            _ => None,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an annotation's name says about the phase under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    /// The user's own annotation of a phase.
    Explicit(Phase),
    /// A range that PyTorch itself writes.
    Framework(Phase),
}

impl Marker {
    pub(crate) fn phase(self) -> Phase {
        match self {
            Self::Explicit(phase) | Self::Framework(phase) => phase,
        }
    }

    /// The phase that an annotation called `name` names.
    ///
    /// Exact names only, bare or as `phase.x` or `## x ##`; words inside longer names decide
    /// nothing. `user` adds the caller's patterns, which come first.
    pub(crate) fn of(name: &str, user: &[(Phase, Regex)]) -> Option<Self> {
        if let Some((phase, _)) = user.iter().find(|(_, pattern)| pattern.is_match(name)) {
            return Some(Self::Explicit(*phase));
        }
        let bare = name
            .strip_prefix("phase.")
            .or_else(|| {
                name.strip_prefix("## ")
                    .and_then(|rest| rest.strip_suffix(" ##"))
            })
            .unwrap_or(name);
        if let Some(phase) = Phase::from_name(bare) {
            return Some(Self::Explicit(phase));
        }
        if name.starts_with("Optimizer.step#") {
            return Some(Self::Framework(Phase::Optimizer));
        }
        matches!(
            name,
            "DistributedDataParallel.forward" | "FullyShardedDataParallel.forward"
        )
        .then_some(Self::Framework(Phase::Forward))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_phases() {
        let of = |name| Marker::of(name, &[]).map(Marker::phase);
        for name in [
            "forward",
            "phase.forward",
            "## forward ##",
            "DistributedDataParallel.forward",
        ] {
            assert_eq!(of(name), Some(Phase::Forward), "{name}");
        }
        for name in [
            "Forward",
            "forward pass",
            "my.forward",
            "##forward##",
            "phase.fwd",
            "nn.forward",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(of("update"), Some(Phase::Optimizer));
        assert_eq!(of("Optimizer.step#AdamW.step"), Some(Phase::Optimizer));
        assert_eq!(of("Optimizer.zero_grad#AdamW.zero_grad"), None);
        let user = [(Phase::Forward, Regex::new("^fwd$").unwrap())];
        assert_eq!(
            Marker::of("fwd", &user),
            Some(Marker::Explicit(Phase::Forward))
        );
    }
}
