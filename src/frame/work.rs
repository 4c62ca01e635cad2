//! The table `device_work`: kernels, copies and fills with their launch, phase and step.

use polars::prelude::*;

use super::events::{int, text};
use super::line::{Place, places};
use super::name::Dictionary;
use crate::attribute::{Work, overlap};
use crate::error::Result;
use crate::inspect::View;
use crate::model::{EventId, StrId};
use crate::units::Span;

/// Arguments that no column of a trace holds, as libkineto calls them.
const KEYS: [&str; 7] = [
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "blocks per SM",
    "est. achieved occupancy %",
    "bytes",
];

/// What the arguments of one event say.
#[derive(Debug, Clone, Default)]
struct Said {
    grid: Option<String>,
    block: Option<String>,
    registers: Option<i64>,
    shared_memory: Option<i64>,
    blocks_per_sm: Option<f64>,
    occupancy: Option<f64>,
    bytes: Option<i64>,
}

/// One row a piece of device work, by device and start.
///
/// # Errors
/// When the content of the file is not what it was when it was read.
pub(super) fn device_work(view: &View<'_>) -> Result<DataFrame> {
    let said = Sayings::read(view)?;
    let all = &view.dissection.work;
    let places = places(all);
    let selected: Vec<Row<'_>> = view
        .dissection
        .work
        .iter()
        .zip(&places)
        .filter(|(work, _)| view.counts(work))
        .map(|(work, place)| Row {
            work,
            place: *place,
            said: said.of(work.event),
        })
        .collect();
    frame(view, &selected).map_err(|error| super::tables::failed(&error))
}

struct Row<'a> {
    work: &'a Work,
    place: Place,
    said: &'a Said,
}

fn frame(view: &View<'_>, rows: &[Row<'_>]) -> PolarsResult<DataFrame> {
    let trace = view.trace();
    let events = &trace.events;
    let names = Dictionary::new(trace.strings.iter().map(|(_, text)| text));
    let number = |id: StrId| u32::try_from(id.index()).ok();
    let work = || rows.iter().map(|row| row.work);
    let launch = |work: &Work| view.launch(work);
    let op = |number: u32| view.op(view.launcher(number)?);
    let idle = |row: &Row<'_>| Some(row.work.span.start - row.place.idle_from?);
    // The part of the gap in which the host had not even begun the launch.
    let late = |row: &Row<'_>| {
        let from = row.place.idle_from?;
        let at = launch(row.work)?.at.min(row.work.span.start);
        Some((at.max(from) - from).0)
    };
    // The part in which the host was in the call: it may load a module or wait for a full queue.
    let launching = |row: &Row<'_>| {
        let from = row.place.idle_from?;
        let call = view.call(launch(row.work)?);
        let gap = Span::new(from, row.work.span.start);
        Some(overlap(call, gap).0)
    };
    let columns = vec![
        int(
            "event",
            work().map(|work| i64::try_from(work.event.index()).ok()),
        ),
        names.column("name", work().map(|work| number(events.name(work.event))))?,
        text(
            "class",
            work().map(|work| Some(work.class.as_str().to_owned())),
        ),
        int("device", work().map(|work| Some(work.device))),
        text("stream", work().map(|work| view.ident(work.stream))),
        int("start_ns", work().map(|work| Some(work.span.start.0))),
        int("dur_ns", work().map(|work| Some(work.span.len().0))),
        int("held_ns", rows.iter().map(|row| Some(row.place.held.0))),
        int("idle_before_ns", rows.iter().map(|row| Some(idle(row)?.0))),
        int("host_late_ns", rows.iter().map(late)),
        int("launching_ns", rows.iter().map(launching)),
        text(
            "phase",
            work().map(|work| Some(work.bucket.as_str().to_owned())),
        ),
        text(
            "step",
            work().map(|work| view.step_name(work.step).map(str::to_owned)),
        ),
        int(
            "correlation",
            work().map(|work| correlation(view, work.event)),
        ),
        int(
            "launch_event",
            work().map(|work| i64::try_from(launch(work)?.event.index()).ok()),
        ),
        names.column(
            "launch_name",
            work().map(|work| number(events.name(launch(work)?.event))),
        )?,
        int("launch_ns", work().map(|work| Some(launch(work)?.at.0))),
        int(
            "launch_dur_ns",
            work().map(|work| Some(view.call(launch(work)?).len().0)),
        ),
        names.column("operator", work().map(|work| number(op(work.launch)?.name)))?,
        text("grid", rows.iter().map(|row| row.said.grid.clone())),
        text("block", rows.iter().map(|row| row.said.block.clone())),
        int(
            "registers_per_thread",
            rows.iter().map(|row| row.said.registers),
        ),
        int(
            "shared_memory_bytes",
            rows.iter().map(|row| row.said.shared_memory),
        ),
        float(
            "blocks_per_sm",
            rows.iter().map(|row| row.said.blocks_per_sm),
        ),
        float("occupancy", rows.iter().map(|row| row.said.occupancy)),
        int("size_bytes", rows.iter().map(|row| row.said.bytes)),
    ];
    DataFrame::new(rows.len(), columns)
}

fn correlation(view: &View<'_>, event: EventId) -> Option<i64> {
    let correlation = view.trace().events.device_args(event)?.correlation;
    (correlation != 0)
        .then(|| i64::try_from(correlation).ok())
        .flatten()
}

fn float(name: &'static str, values: impl Iterator<Item = Option<f64>>) -> Column {
    Float64Chunked::from_iter_options(PlSmallStr::from_static(name), values).into_column()
}

/// What the arguments of device events say.
struct Sayings {
    /// In order.
    events: Vec<EventId>,
    said: Vec<Said>,
}

impl Sayings {
    fn read(view: &View<'_>) -> Result<Self> {
        let mut events: Vec<EventId> = view.work().map(|work| work.event).collect();
        events.sort_unstable();
        events.dedup();
        let said = view.arguments(&events, &KEYS, |_, args| {
            let count = |key| args.int(key).filter(|count| *count >= 0);
            let positive = |key| args.float(key).filter(|number| *number >= 0.0);
            Said {
                grid: args.compact("grid"),
                block: args.compact("block"),
                registers: count("registers per thread"),
                shared_memory: count("shared memory"),
                blocks_per_sm: positive("blocks per SM"),
                // Some writers give more than is possible.
                occupancy: positive("est. achieved occupancy %")
                    .map(|percent| (percent / 100.0).min(1.0)),
                bytes: count("bytes"),
            }
        })?;
        Ok(Self { events, said })
    }

    fn of(&self, event: EventId) -> &Said {
        const NOTHING: &Said = &Said {
            grid: None,
            block: None,
            registers: None,
            shared_memory: None,
            blocks_per_sm: None,
            occupancy: None,
            bytes: None,
        };
        let place = self.events.binary_search(&event);
        place.map_or(NOTHING, |place| &self.said[place])
    }
}
