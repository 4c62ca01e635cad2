//! What traces can be broken down into.

use serde::Serialize;

use super::options::{By, Definition};

/// What traces are broken down into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// What is in each trace.
    Summary,
    /// Communication, its overlap with compute, and collectives.
    Communication,
    /// Memory by device, step, phase and operator.
    Memory,
    /// The ranks of a run beside each other.
    Ranks,
    /// Operators, with the device work that they launch.
    Operators,
    /// Kernels, copies and fills.
    Kernels,
    /// Why devices idle.
    Idle,
    /// Where the time of steps goes.
    Steps,
    /// What launches cost, and how long queues are.
    Launches,
    /// Copies and fills.
    Copies,
    /// The longest path through what a step waits for.
    CriticalPath,
    /// FLOPs and bytes of operators against what the device can do.
    Roofline,
}

impl Topic {
    /// Every topic, in the order in which they are listed.
    pub const ALL: [Self; 12] = [
        Self::Summary,
        Self::Communication,
        Self::Memory,
        Self::Ranks,
        Self::Operators,
        Self::Kernels,
        Self::Idle,
        Self::Steps,
        Self::Launches,
        Self::Copies,
        Self::CriticalPath,
        Self::Roofline,
    ];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Communication => "communication",
            Self::Memory => "memory",
            Self::Ranks => "ranks",
            Self::Operators => "operators",
            Self::Kernels => "kernels",
            Self::Idle => "idle",
            Self::Steps => "steps",
            Self::Launches => "launches",
            Self::Copies => "copies",
            Self::CriticalPath => "critical-path",
            Self::Roofline => "roofline",
        }
    }

    /// The topic called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }

    /// What it tells, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Summary => "what is in each trace: kinds of events, steps",
            Self::Communication => "how much communication compute hides, and what it moves",
            Self::Memory => "peaks of memory, who holds it then, growth over steps",
            Self::Ranks => "ranks beside each other: who waits for whom, whose clock is off",
            Self::Operators => "operators: calls, host time, the device work they launch",
            Self::Kernels => "kernels: calls, times, occupancy, tensor cores, what runs at once",
            Self::Idle => "why devices idle: causes, longest gaps",
            Self::Steps => "where the time of steps goes, and how well kernels fill devices",
            Self::Launches => "API calls that launch work, launch delays, queues of streams",
            Self::Copies => "copies and fills: bytes, bandwidth",
            Self::CriticalPath => "what would make a step faster, by what it is bound by",
            Self::Roofline => "FLOPs and bytes of operators, the roofline, MFU of steps",
        }
    }

    /// What its rows can be told apart by, by the definitions of `whose`; anything else changes nothing. Tables of
    /// other tools have the rows that they have there.
    pub fn groups_by(self, whose: Definition) -> &'static [By] {
        use By::{Module, Phase, Shape, Step, Stream};
        let is_own = whose == Definition::Tracekit;
        if !is_own && (self, whose) != (Self::Kernels, Definition::Tensorboard) {
            return &[];
        }
        match self {
            Self::Summary | Self::Ranks | Self::Steps => &[],
            Self::Communication | Self::Launches => &[Phase, Step],
            Self::Memory | Self::Roofline => &[Phase, Step, Shape],
            Self::Operators => &[Phase, Step, Shape, Module],
            Self::Kernels => &[Phase, Step, Stream, Shape],
            Self::Idle | Self::Copies => &[Phase, Step, Stream],
            Self::CriticalPath => &[Phase],
        }
    }

    /// Whose definitions it has; for any other it follows tracekit's.
    pub fn definitions(self) -> &'static [Definition] {
        use Definition::{Hta, Tensorboard, Tracekit};
        match self {
            Self::Communication | Self::Ranks | Self::Operators | Self::Kernels => {
                &[Tracekit, Hta, Tensorboard]
            }
            Self::Idle | Self::Launches | Self::Copies => &[Tracekit, Hta],
            Self::Steps => &[Tracekit, Tensorboard],
            Self::Summary | Self::Memory | Self::CriticalPath | Self::Roofline => &[Tracekit],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_other_tools_have_their_own_rows() {
        assert_eq!(Topic::Idle.groups_by(Definition::Hta), []);
        assert_eq!(Topic::Kernels.groups_by(Definition::Hta), []);
        let whose = [Definition::Tracekit, Definition::Tensorboard];
        let [own, plugin] = whose.map(|whose| Topic::Kernels.groups_by(whose));
        assert_eq!(own, plugin);
    }

    #[test]
    fn names_are_those_of_json() {
        for topic in Topic::ALL {
            assert_eq!(serde_json::to_value(topic).unwrap(), topic.name());
            assert_eq!(Topic::from_name(topic.name()), Some(topic));
        }
    }
}
