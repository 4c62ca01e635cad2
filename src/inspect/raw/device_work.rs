//! The table `device_work`: kernels, copies and fills with their launch, phase and step.

use super::Columns;
use super::place::{Place, places};
use crate::attribute::{Bucket, DeviceClass, Work, overlap};
use crate::error::Result;
use crate::inspect::recorded::Recorded;
use crate::inspect::{Frame, View};
use crate::model::EventId;
use crate::units::Span;

/// One row a piece of device work that counts, by device and start. Of its columns, all or those that are
/// `wanted`.
///
/// # Errors
/// When the content of the file is not what it was when it was read.
pub(crate) fn device_work(view: &View<'_>, wanted: Option<&[&'static str]>) -> Result<Frame> {
    let all = &view.dissection.work;
    let places = places(all);
    let recorded = view.recorded()?;
    let rows: Vec<Row<'_>> = all
        .iter()
        .zip(&places)
        .zip(recorded)
        .filter(|((work, _), _)| view.counts(work))
        .map(|((work, place), recorded)| Row {
            work,
            place: *place,
            recorded,
        })
        .collect();
    Ok(frame(view, &rows, wanted))
}

struct Row<'a> {
    work: &'a Work,
    place: Place,
    recorded: &'a Recorded,
}

impl Row<'_> {
    fn idle(&self) -> Option<i64> {
        Some((self.work.span.start - self.place.idle_from?).0)
    }

    /// The part of the gap in which the host had not even begun the launch.
    fn late(&self, view: &View<'_>) -> Option<i64> {
        let from = self.place.idle_from?;
        let at = view.launch(self.work)?.at.min(self.work.span.start);
        Some((at.max(from) - from).0)
    }

    /// The part in which the host was in the call: it may load a module or wait for a full queue.
    fn launching(&self, view: &View<'_>) -> Option<i64> {
        let from = self.place.idle_from?;
        let call = view.call(view.launch(self.work)?);
        let gap = Span::new(from, self.work.span.start);
        Some(overlap(call, gap).0)
    }
}

fn frame(view: &View<'_>, rows: &[Row<'_>], wanted: Option<&[&'static str]>) -> Frame {
    let trace = view.trace();
    let (events, strings) = (&trace.events, &trace.strings);
    let index = |event: EventId| i64::try_from(event.index()).ok();
    let work = || rows.iter().map(|row| row.work);
    let recorded = || rows.iter().map(|row| row.recorded);
    let launch = |work: &Work| view.launch(work);
    let operator = |work: &Work| Some(view.op(view.launcher(work.launch)?)?.name);
    let steps = view.dissection.steps.all.len();
    let step = |step: u32| view.step_name(step).map(str::to_owned);
    let step_of = |work: &Work| Some(work.step).filter(|step| (*step as usize) < steps);
    Columns::new("device_work", "A kernel, copy or fill.", wanted)
        .int("event", work().map(|work| index(work.event)))
        .string(
            "name",
            strings,
            work().map(|work| Some(events.name(work.event))),
        )
        .name(
            "class",
            DeviceClass::ALL.len(),
            |class| class as usize,
            |class: DeviceClass| Some(class.as_str().to_owned()),
            work().map(|work| Some(work.class)),
        )
        .int("device", work().map(|work| Some(work.device)))
        .text("stream", work().map(|work| view.ident(work.stream)))
        .int("start_ns", work().map(|work| Some(work.span.start.0)))
        .int("dur_ns", work().map(|work| Some(work.span.len().0)))
        .int("held_ns", rows.iter().map(|row| Some(row.place.held.0)))
        .int("idle_before_ns", rows.iter().map(Row::idle))
        .int("host_late_ns", rows.iter().map(|row| row.late(view)))
        .int("launching_ns", rows.iter().map(|row| row.launching(view)))
        .name(
            "phase",
            Bucket::ALL.len(),
            Bucket::index,
            |bucket| Some(bucket.as_str().to_owned()),
            work().map(|work| Some(work.bucket)),
        )
        .name(
            "step",
            steps,
            |step| step as usize,
            step,
            work().map(step_of),
        )
        .int(
            "correlation",
            work().map(|work| correlation(view, work.event)),
        )
        .int(
            "launch_event",
            work().map(|work| index(launch(work)?.event)),
        )
        .string(
            "launch_name",
            strings,
            work().map(|work| Some(events.name(launch(work)?.event))),
        )
        .int("launch_ns", work().map(|work| Some(launch(work)?.at.0)))
        .int(
            "launch_dur_ns",
            work().map(|work| Some(view.call(launch(work)?).len().0)),
        )
        .string("operator", strings, work().map(operator))
        .text("grid", recorded().map(|recorded| spelled(recorded.grid)))
        .text("block", recorded().map(|recorded| spelled(recorded.block)))
        .int(
            "registers_per_thread",
            recorded().map(|recorded| count(recorded.registers)),
        )
        .int(
            "shared_memory_bytes",
            recorded().map(|recorded| count(recorded.shared_memory)),
        )
        .float(
            "blocks_per_sm",
            recorded().map(|recorded| positive(recorded.blocks_per_sm)),
        )
        .float(
            "occupancy",
            // Some writers give more than is possible.
            recorded().map(|recorded| Some((positive(recorded.occupancy)? / 100.0).min(1.0))),
        )
        .int(
            "size_bytes",
            recorded().map(|recorded| count(recorded.bytes)),
        )
        .done()
}

fn spelled(sides: Option<[i64; 3]>) -> Option<String> {
    sides.map(|[x, y, z]| format!("[{x},{y},{z}]"))
}

fn count(count: Option<i64>) -> Option<i64> {
    count.filter(|count| *count >= 0)
}

fn positive(number: Option<f64>) -> Option<f64> {
    number.filter(|number| *number >= 0.0)
}

fn correlation(view: &View<'_>, event: EventId) -> Option<i64> {
    let correlation = view.trace().events.device_args(event)?.correlation;
    (correlation != 0)
        .then(|| i64::try_from(correlation).ok())
        .flatten()
}
