//! What a rule found.

use serde::Serialize;

use crate::units::Ns;

/// A hypothesis after its test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inference {
    /// Name of the rule.
    pub code: String,
    /// What it is about.
    pub category: Category,
    /// Whether the hypothesis holds.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub summary: String,
    /// The numbers behind it.
    pub evidence: Vec<Evidence>,
    /// The worst events behind it, where single events are to blame.
    pub events: Vec<EventReference>,
    /// How sure that is; `None` without a verdict.
    pub confidence: Option<Confidence>,
    /// The most that could be won, where it was measured.
    pub effect: Option<Effect>,
    /// What to do next.
    pub next_action: String,
}

/// What an inference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The host is too slow for the device.
    Host,
    /// What the device computes, and how.
    Compute,
    /// What moves between memories, and what they hold.
    Memory,
    /// What moves between devices, and who waits for whom.
    Communication,
    /// Whether the capture is typical.
    Measurement,
    /// A rule of the user's.
    Own,
}

impl Category {
    /// The word for it in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Communication => "communication",
            Self::Measurement => "measurement",
            Self::Own => "own",
        }
    }
}

/// Whether a hypothesis holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The evidence says so.
    Supported,
    /// Something that the test needs is not in the traces.
    InsufficientEvidence,
    /// The evidence says otherwise.
    Refuted,
    /// There is nothing that the hypothesis could be about.
    NotApplicable,
}

impl Verdict {
    /// The word for it in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::InsufficientEvidence => "insufficient_evidence",
            Self::Refuted => "refuted",
            Self::NotApplicable => "not_applicable",
        }
    }
}

/// A number with the query that gives it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is.
    pub name: String,
    /// The number; `None` where it was not measured.
    pub value: Option<Number>,
    /// `ns`, `count`, `ratio`, `bytes`, or empty.
    pub unit: &'static str,
    /// The SQL over the tables of the run that gives it, or the rows that it is computed from.
    pub query: String,
}

/// A number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
}

impl Number {
    /// As a floating-point number.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// An event of one of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventReference {
    /// Path of the file.
    pub path: String,
    /// Place in the event array, from 0.
    pub event: i64,
    /// Name.
    pub name: String,
}

/// How sure a verdict is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confidence {
    /// How sure.
    pub level: Level,
    /// Why not more, or why that much.
    pub reason: String,
}

/// How sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A hint.
    Low,
    /// Likely.
    Medium,
    /// Measured, and nothing speaks against it.
    High,
}

impl Level {
    /// The word for it in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The most that could be won by removing a cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    /// Time of devices, summed over devices (of the host, in traces without device work).
    pub ns: Ns,
    /// Of the window of all devices; on hosts, and where it is about whole steps, of what the summary names.
    pub share: f64,
}
