//! Groups of device work, and how long each combination of them runs alone.
//!
//! ```text
//! compute        ├──────────┤
//! communication        ├──────────┤
//!                ├ compute ─┤     │
//!                      ├both┤     │
//!                           ├comm─┤
//! ```
//! Each instant goes to the [combination](super::combination) of all groups that are active in it, so they add
//! up to the busy time exactly.

use std::collections::BTreeMap;

use regex::Regex;

use super::combination::combinations;
use super::frame::{Frame, Unit};
use super::view::View;
use crate::attribute::{DeviceClass, Work};
use crate::model::StrId;
use crate::units::{Ns, Span};

/// Up to so many groups can be defined.
pub const MAX_GROUPS: usize = 16;

/// What matches no group of the user's.
const OTHERS: &str = "(others)";

/// The groups that device work falls into.
pub(super) enum Groups<'a> {
    /// Compute, communication and memory, by class.
    Classes,
    /// By name; one kernel may be in several.
    Named(&'a [(String, Regex)]),
}

/// How long one combination of groups runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) device: Option<i64>,
    /// Its groups, joined by ` + `.
    pub(super) groups: String,
    /// How many groups those are.
    pub(super) size: u64,
    pub(super) exclusive: Ns,
    /// Busy time of the device.
    pub(super) busy: Ns,
}

impl Groups<'_> {
    /// The combinations on each device of `view`.
    pub(super) fn combinations(&self, view: &View<'_>) -> Vec<Combination> {
        let mut flags: BTreeMap<StrId, u32> = BTreeMap::new();
        let mut rows = Vec::new();
        for (device, work) in view.devices() {
            let spans: Vec<(Span, u32)> = work
                .iter()
                .map(|work| (work.span, self.flags(view, work, &mut flags)))
                .collect();
            rows.extend(self.rows(Some(device), &spans));
        }
        rows
    }

    /// The combinations of `spans` with their flags.
    pub(super) fn rows(&self, device: Option<i64>, spans: &[(Span, u32)]) -> Vec<Combination> {
        let times = combinations(spans.iter().copied());
        let busy = times.values().copied().sum();
        let rows = times.into_iter().map(|(flags, exclusive)| Combination {
            device,
            groups: self.names(flags),
            size: u64::from(flags.count_ones()),
            exclusive,
            busy,
        });
        let mut rows: Vec<Combination> = rows.collect();
        rows.sort_by(|a, b| (a.size, &a.groups).cmp(&(b.size, &b.groups)));
        rows
    }

    fn flags(&self, view: &View<'_>, work: &Work, known: &mut BTreeMap<StrId, u32>) -> u32 {
        match self {
            Self::Classes => Self::of_class(work.class),
            Self::Named(groups) => {
                let name = view.trace().events.name(work.event);
                *known.entry(name).or_insert_with(|| {
                    let name = view.trace().strings.get(name);
                    let groups = groups.iter().enumerate();
                    let flags = groups
                        .filter(|(_, (_, pattern))| pattern.is_match(name))
                        .fold(0, |flags, (place, _)| flags | 1 << place);
                    if flags == 0 { 1 << MAX_GROUPS } else { flags }
                })
            }
        }
    }

    /// The flag of a class among [`Groups::Classes`].
    pub(super) fn of_class(class: DeviceClass) -> u32 {
        match class {
            DeviceClass::Compute => 1,
            DeviceClass::Communication => 2,
            DeviceClass::Memcpy | DeviceClass::Memset => 4,
        }
    }

    fn names(&self, flags: u32) -> String {
        let name = |place: usize| match self {
            Self::Classes => ["compute", "communication", "memory"].get(place).copied(),
            Self::Named(groups) => groups.get(place).map(|(name, _)| name.as_str()),
        };
        let names: Vec<&str> = (0..=MAX_GROUPS)
            .filter(|place| flags & 1 << place != 0)
            .map(|place| name(place).unwrap_or(OTHERS))
            .collect();
        names.join(" + ")
    }
}

/// One row a combination.
pub(super) fn groups_frame(rows: &[Combination]) -> Frame {
    Frame::new(
        "groups",
        "How long each combination of groups runs together and nothing else does.",
    )
    .text("groups", rows, |row| Some(row.groups.clone()))
    .id("device", rows, |row| row.device)
    .count("size", rows, |row| Some(row.size))
    .ns("exclusive_ns", rows, |row| Some(row.exclusive))
    .float("share", Unit::Ratio, rows, |row| {
        row.exclusive.ratio(row.busy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    #[test]
    fn combinations_add_up_to_the_busy_time() {
        let spans = [
            (span(0, 10), 1),
            (span(5, 20), 2),
            (span(8, 9), 4),
            (span(9, 12), 1),
            (span(30, 40), 3),
            (span(35, 35), 4),
        ];
        let rows = Groups::Classes.rows(Some(0), &spans);
        let found: Vec<(&str, i64)> = rows
            .iter()
            .map(|row| (row.groups.as_str(), row.exclusive.0))
            .collect();
        assert_eq!(
            found,
            [
                ("communication", 8),
                ("compute", 5),
                ("compute + communication", 3 + 3 + 10),
                ("compute + communication + memory", 1),
            ]
        );
        assert!(rows.iter().all(|row| row.busy == Ns(30)));
    }

    #[test]
    fn what_matches_no_group_is_one_of_its_own() {
        let groups = [("a2a".to_owned(), Regex::new("SendRecv").unwrap())];
        let groups = Groups::Named(&groups);
        assert_eq!(groups.names(1 | 1 << MAX_GROUPS), "a2a + (others)");
    }
}
