//! What a gate decides.

use std::fmt;

use super::json::{Json, object};

/// The three decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// Admitted to the next combined test; not yet delivered.
    Accept,
    /// Evidence is missing, a gain is not large or stable enough, or a cost can still be repaired.
    Tune,
    /// A run or a guardrail failed, or the pairing is invalid: back to the baseline.
    Reject,
}

impl Decision {
    /// The spelling in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Tune => "tune",
            Self::Reject => "reject",
        }
    }

    /// The decision of that spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Accept, Self::Tune, Self::Reject]
            .into_iter()
            .find(|decision| decision.as_str() == name)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Decision> for Json {
    fn from(decision: Decision) -> Self {
        decision.as_str().into()
    }
}

/// A decision with the code of its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// Why, as a code (a sentence for the gates of the optimisation report).
    pub reason: &'static str,
    /// What to do now, as a code, where the gate says so.
    pub next_action: Option<&'static str>,
}

impl Outcome {
    pub(crate) fn new(decision: Decision, reason: &'static str, next_action: &'static str) -> Self {
        Self {
            decision,
            reason,
            next_action: Some(next_action),
        }
    }

    /// As part of a record.
    pub fn to_json(&self) -> Json {
        let mut record = object! {"decision" => self.decision, "reason" => self.reason};
        if let Some(next_action) = self.next_action {
            record.set("next_action", next_action);
        }
        record
    }
}
