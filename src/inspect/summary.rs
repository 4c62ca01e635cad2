//! What is in a trace: how many events of which kind, on how many rows, over how much time.

use std::collections::{BTreeMap, BTreeSet};

use super::frame::Frame;
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use crate::attribute::span_of;
use crate::error::Result;
use crate::model::{EventId, TrackId};
use crate::units::{Ns, Span};

/// What is in each trace.
pub(super) struct Summary;

impl Subject for Summary {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        Ok(vec![activities(view), steps(view)])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

#[derive(Default)]
struct Activity {
    events: u64,
    names: BTreeSet<u32>,
    rows: BTreeSet<TrackId>,
    sum: Ns,
    extent: Option<Span>,
}

/// One row a `cat`, as written in the trace.
fn activities(view: &View<'_>) -> Frame {
    let trace = view.trace();
    let events = &trace.events;
    let mut by_cat: BTreeMap<&str, Activity> = BTreeMap::new();
    for id in events.ids() {
        let activity = by_cat.entry(trace.strings.get(events.cat(id))).or_default();
        activity.count(view, id);
    }
    let rows: Vec<(&str, Activity)> = by_cat.into_iter().collect();
    Frame::new("activities", "What each kind of event (cat) amounts to.")
        .text("cat", &rows, |row| Some(row.0))
        .count("events", &rows, |row| Some(row.1.events))
        .count("names", &rows, |row| Some(row.1.names.len() as u64))
        .count("tracks", &rows, |row| Some(row.1.rows.len() as u64))
        .ns("sum_ns", &rows, |row| row.1.extent.map(|_| row.1.sum))
        .at("first_ns", &rows, |row| {
            row.1.extent.map(|extent| extent.start)
        })
        .at("last_ns", &rows, |row| {
            row.1.extent.map(|extent| extent.end)
        })
}

impl Activity {
    fn count(&mut self, view: &View<'_>, id: EventId) {
        let events = &view.trace().events;
        self.events += 1;
        self.names
            .insert(u32::try_from(events.name(id).index()).unwrap_or(u32::MAX));
        self.rows.insert(events.track(id));
        if events.is_complete(id) {
            let span = span_of(view.trace(), id);
            self.sum += span.len();
            let extent = self.extent.get_or_insert(span);
            extent.start = extent.start.min(span.start);
            extent.end = extent.end.max(span.end);
        }
    }
}

/// One row a step.
fn steps(view: &View<'_>) -> Frame {
    let steps = view.dissection.steps.all.iter().enumerate();
    let rows: Vec<_> = steps
        .filter(|(number, _)| view.dissection.selected[*number])
        .map(|(number, step)| (step, view.dissection.partial[number]))
        .collect();
    Frame::new("steps", "The training steps, as ranges on the host.")
        .text("step", &rows, |row| Some(row.0.name.as_str()))
        .at("start_ns", &rows, |row| Some(row.0.span.start))
        .ns("wall_ns", &rows, |row| Some(row.0.span.len()))
        .flag("partial", &rows, |row| Some(row.1))
        .flag("inferred", &rows, |row| Some(row.0.inferred))
}
