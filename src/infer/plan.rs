//! What rules need from each file, and their test once all files are read.

use super::rules::{asks_for_activity, asks_for_name};
use super::run::{RunInferences, of_run};
use super::table::{Part, Tables, by_run};
use super::thresholds::Thresholds;
use crate::attribute::Attribution;
use crate::error::Result;
#[cfg(feature = "frames")]
use crate::frame;
use crate::inspect::{
    Frame, InspectOptions, Inspected, Seen, Topic, View, attribution_frame, device_work, events,
    files, health_frame, subject_of,
};
use crate::model::{EventId, Trace};

/// Columns of device work that rules ask for.
const WORK: &[&str] = &[
    "event",
    "name",
    "class",
    "device",
    "start_ns",
    "dur_ns",
    "held_ns",
    "idle_before_ns",
    "host_late_ns",
    "launching_ns",
    "phase",
    "launch_event",
    "launch_name",
    "launch_ns",
    "launch_dur_ns",
    "blocks_per_sm",
    "occupancy",
    "size_bytes",
];

/// Columns of events that rules ask for.
const EVENTS: &[&str] = &[
    "event",
    "counts",
    "activity",
    "call_kind",
    "name",
    "ts_ns",
    "dur_ns",
];

/// Tables of breakdowns that rules ask for: what rules call them, which breakdown makes them, and what that
/// calls them.
const TOPICS: [(&str, Topic, &str); 3] = [
    ("memory_steps", Topic::Memory, "memory_steps"),
    ("step_ranges", Topic::Summary, "steps"),
    ("stragglers", Topic::Ranks, "stragglers"),
];

/// How rules are tested.
pub(crate) struct Plan<'t> {
    thresholds: &'t Thresholds,
    pub(super) options: InspectOptions,
    /// Tables for rules of the user's, which may ask for anything.
    #[cfg(feature = "frames")]
    own: Option<frame::Plan>,
}

/// What is taken from one file.
pub(crate) struct Taken {
    work: Frame,
    events: Frame,
    /// One entry an element of [`TOPICS`].
    topics: Vec<Seen>,
    #[cfg(feature = "frames")]
    own: Option<frame::Taken>,
}

impl<'t> Plan<'t> {
    /// A plan for the built-in rules and those of the user's, with these limits.
    pub(crate) fn new(thresholds: &'t Thresholds) -> Self {
        Self {
            thresholds,
            options: InspectOptions::finest(),
            #[cfg(feature = "frames")]
            own: super::custom::plan(thresholds.rules()),
        }
    }

    /// What one file has for the rules.
    ///
    /// # Errors
    /// As those who look at it.
    pub(crate) fn take(&self, view: &View<'_>) -> Result<Taken> {
        let view = view.with(&self.options);
        let trace = view.trace();
        let topics = TOPICS.iter();
        let topics: Result<Vec<Seen>> = topics
            .map(|(_, topic, _)| subject_of(*topic).look(&view))
            .collect();
        let asked = asked_for(trace);
        Ok(Taken {
            work: device_work(&view, Some(WORK))?,
            events: events(trace, || asked.iter().copied(), Some(EVENTS)),
            topics: topics?,
            #[cfg(feature = "frames")]
            own: self.own.as_ref().map(|plan| plan.take(&view)).transpose()?,
        })
    }

    /// Tests every rule on every run. `taken` has one entry a rank of `attribution`.
    ///
    /// # Errors
    /// When the query of a rule of the user's cannot be answered.
    #[cfg_attr(
        not(feature = "frames"),
        expect(
            clippy::unnecessary_wraps,
            reason = "without data frames there are no such rules"
        )
    )]
    pub(crate) fn infer(
        &self,
        attribution: &Attribution,
        taken: Vec<Taken>,
    ) -> Result<Vec<RunInferences>> {
        let mut runs: Vec<Tables> = Vec::new();
        runs.resize_with(attribution.runs.len(), Tables::default);
        let mut of_topics = TOPICS.map(|_| Vec::new());
        #[cfg(feature = "frames")]
        let mut own = Vec::new();
        for (rank, taken) in attribution.ranks.iter().zip(taken) {
            let tables = &mut runs[rank.run];
            let of_file = |frame| Part::of_file(frame, rank.input, rank.rank);
            tables.add("device_work", of_file(taken.work));
            tables.add("events", of_file(taken.events));
            for (list, seen) in of_topics.iter_mut().zip(taken.topics) {
                list.push(seen);
            }
            #[cfg(feature = "frames")]
            own.extend(taken.own);
        }
        let mut shared = vec![
            ("files", files(attribution)),
            ("attribution", attribution_frame(attribution)),
            ("health", health_frame(attribution)),
        ];
        for ((name, topic, own), seen) in TOPICS.iter().zip(of_topics) {
            let made = subject_of(*topic).tables(Inspected::of(attribution, seen));
            let made = made.into_iter().filter(|frame| frame.name == *own);
            shared.extend(made.map(|frame| (*name, frame)));
        }
        let names: Vec<&str> = attribution
            .runs
            .iter()
            .map(|run| run.name.as_str())
            .collect();
        for (name, frame) in shared {
            for (part, tables) in by_run(frame, &names).into_iter().zip(&mut runs) {
                tables.add(name, part);
            }
        }
        let mut found: Vec<RunInferences> = (0..)
            .zip(&runs)
            .map(|(run, tables)| of_run(attribution, run, tables, self.thresholds))
            .collect();
        #[cfg(feature = "frames")]
        if let Some(plan) = &self.own {
            super::custom::infer(plan, self.thresholds.rules(), attribution, own, &mut found)?;
        }
        for run in &mut found {
            run.put_in_order();
        }
        Ok(found)
    }
}

/// The events of `trace` that rules ask for, in order.
fn asked_for(trace: &Trace) -> Vec<EventId> {
    let (events, strings) = (&trace.events, &trace.strings);
    // Few names, many events.
    let names: Vec<bool> = strings
        .iter()
        .map(|(_, text)| asks_for_name(text))
        .collect();
    let is_asked =
        |id: &EventId| asks_for_activity(events.activity(*id)) || names[events.name(*id).index()];
    events.ids().filter(is_asked).collect()
}

#[cfg(all(test, feature = "frames"))]
mod tests {
    use super::*;
    use crate::frame::TABLES;

    #[test]
    fn tables_are_called_as_those_of_queries() {
        for (name, topic, own) in TOPICS {
            let table = TABLES.iter().find(|table| table.name == name).unwrap();
            assert_eq!(table.topic, Some((topic, own)));
        }
        for (name, columns) in [("device_work", WORK), ("events", EVENTS)] {
            let table = TABLES.iter().find(|table| table.name == name).unwrap();
            let is_known = |name: &&&str| table.columns.iter().any(|column| column.name == **name);
            assert_eq!(columns.iter().filter(is_known).count(), columns.len());
        }
    }
}
