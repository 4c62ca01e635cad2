//! Communication: how long it takes, how much of it compute hides, and what it moves.
//!
//! - Communication time is the union of communication kernels on a device; *overlapped* is its part under
//!   computing kernels of the device, *exposed* the rest. Grouped by step or phase, an instant counts for
//!   the call that [started first](super::exposure), so the parts add up to the whole. The overlap ratio
//!   is overlapped over communication time, as HTA's `comm_comp_overlap` is.
//! - A collective is one [call](super::collective). Algorithm bandwidth is bytes of messages over the time
//!   of the calls, waiting for other ranks included; bus bandwidth is that times the factor of nccl-tests.
//! - Without device communication, collectives of the host are listed: of them only the time is known, not
//!   what they overlap with.

use std::collections::{BTreeMap, BTreeSet};

use super::collective::{Call, Communication, Kind};
use super::exposure::{Exposure, exposures};
use super::frame::{Frame, Unit};
use super::group::{Groups, groups_frame};
use super::operation::bus_factor;
use super::options::{By, Definition};
use super::subject::{Inspected, Subject, stacked};
use super::view::View;
use super::{hta, tensorboard};
use crate::attribute::{Bucket, DeviceClass, NONE, union};
use crate::error::Result;
use crate::stats::median_time;
use crate::units::{Ns, Span};

/// Communication, its overlap and its collectives.
pub(super) struct CommunicationTime;

impl Subject for CommunicationTime {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        match view.options.definition {
            Definition::Tracekit => {}
            Definition::Hta => return Ok(hta::communication(view)),
            Definition::Tensorboard => return Ok(vec![tensorboard::overlap(view)]),
        }
        let groups = match view.options.groups.as_slice() {
            [] => Groups::Classes,
            named => Groups::Named(named),
        };
        let found = Communication::new(view)?;
        let exposed = exposed(view, &found);
        Ok(vec![
            overview_frame(view, &overview(view, &found, &exposed)),
            groups_frame(&groups.combinations(view)),
            collectives_frame(view, &collectives(view, &found, &exposed)),
        ])
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// Calls of one kind in one step.
pub(crate) struct CollectiveSum<'a> {
    /// The operation; where nothing says it, the kernel.
    pub(crate) name: &'a str,
    /// PyTorch's name of the type of the elements.
    pub(crate) dtype: Option<&'a str>,
    /// Size of the message of one call.
    pub(crate) bytes: Option<i64>,
    /// The step of the launch: its number among all of the trace, or [`NONE`].
    pub(crate) step: u32,
    pub(crate) calls: u64,
    pub(crate) time: Ns,
}

/// Gives `each` the calls of the table `collectives`, summed by what they are and by step. Two groups or devices with
/// calls of one kind have sums of their own.
///
/// # Errors
/// When the content of the file is not what it was when it was read.
pub(crate) fn collective_sums(
    view: &View<'_>,
    mut each: impl FnMut(CollectiveSum<'_>),
) -> Result<()> {
    let found = Communication::new(view)?;
    let mut sums: BTreeMap<(u32, u32), (u64, Ns)> = BTreeMap::new();
    for call in &found.calls {
        let (calls, time) = sums.entry((call.kind, call.step)).or_default();
        *calls += 1;
        *time += call.span.len();
    }
    for ((kind, step), (calls, time)) in sums {
        let kind = &found.kinds[kind as usize];
        let operation = kind.operation.as_deref().filter(|text| !text.is_empty());
        each(CollectiveSum {
            name: operation.or(kind.kernel.as_deref()).unwrap_or_default(),
            dtype: kind.dtype.as_deref().filter(|text| !text.is_empty()),
            bytes: kind.bytes(),
            step,
            calls,
            time,
        });
    }
    Ok(())
}

/// By call: what it holds of the communication time of its device.
fn exposed(view: &View<'_>, found: &Communication) -> Vec<Exposure> {
    let mut exposed = Vec::with_capacity(found.calls.len());
    for calls in found.calls.chunk_by(|a, b| a.device == b.device) {
        let work = calls[0].device.map(|device| view.all_work_on(device));
        let work = work.into_iter().flatten();
        let computing = work.filter(|work| work.class == DeviceClass::Compute);
        let computing = union(computing.map(|work| work.span));
        exposed.extend(exposures(calls, &computing));
    }
    exposed
}

/// What rows are grouped by beside the device: step and phase, where they are asked for.
type Part = (u32, Option<Bucket>);

fn part(view: &View<'_>, step: u32, bucket: Bucket) -> Part {
    let by = |by| view.options.is_by(by);
    let step = if by(By::Step) { step } else { NONE };
    (step, by(By::Phase).then_some(bucket))
}

/// Sums over calls.
#[derive(Debug, Clone, Default)]
struct Sums {
    calls: u64,
    sum: Ns,
    held: Ns,
    overlapped: Ns,
}

impl Sums {
    fn count(&mut self, call: &Call, exposure: Exposure) {
        self.calls += 1;
        self.sum += call.span.len();
        self.held += exposure.held;
        self.overlapped += exposure.overlapped;
    }
}

/// Communication of one device, or of the host, and one part of it.
struct Overview {
    device: Option<i64>,
    part: Part,
    sums: Sums,
}

fn overview(view: &View<'_>, found: &Communication, exposed: &[Exposure]) -> Vec<Overview> {
    let mut rows: BTreeMap<(Option<i64>, Part), Sums> = BTreeMap::new();
    for (call, exposure) in found.calls.iter().zip(exposed) {
        let part = part(view, call.step, call.bucket);
        let sums = rows.entry((call.device, part)).or_default();
        sums.count(call, *exposure);
    }
    // A device without communication has none, which is not the same as not measured.
    let known: BTreeSet<Option<i64>> = rows.keys().map(|(device, _)| *device).collect();
    for (device, _) in view.devices() {
        let device = Some(device);
        if !known.contains(&device) {
            rows.insert((device, (NONE, None)), Sums::default());
        }
    }
    rows.into_iter()
        .map(|((device, part), sums)| Overview { device, part, sums })
        .collect()
}

fn overview_frame(view: &View<'_>, rows: &[Overview]) -> Frame {
    let on_device = |row: &Overview, time| row.device.map(|_| time);
    let frame = Frame::new(
        "communication",
        "Communication of each device, and how much of it computing kernels hide.",
    )
    .text("place", rows, |row| Some(place(row.device)))
    .id("device", rows, |row| row.device);
    with_part(view, frame, rows, |row| row.part)
        .count("calls", rows, |row| Some(row.sums.calls))
        .ns("sum_ns", rows, |row| Some(row.sums.sum))
        .ns("communication_ns", rows, |row| Some(row.sums.held))
        .ns("overlapped_ns", rows, |row| {
            on_device(row, row.sums.overlapped)
        })
        .ns("exposed_ns", rows, |row| {
            on_device(row, row.sums.held - row.sums.overlapped)
        })
        .float("overlap_ratio", Unit::Ratio, rows, |row| {
            on_device(row, row.sums.overlapped)?.ratio(row.sums.held)
        })
}

fn place(device: Option<i64>) -> &'static str {
    device.map_or("host", |_| "device")
}

/// Adds the columns that tell parts apart.
fn with_part<R>(view: &View<'_>, frame: Frame, rows: &[R], of: impl Fn(&R) -> Part) -> Frame {
    let mut frame = frame;
    if view.options.is_by(By::Step) {
        frame = frame.text("step", rows, |row| view.step_name(of(row).0));
    }
    if view.options.is_by(By::Phase) {
        frame = frame.text("phase", rows, |row| of(row).1.map(Bucket::as_str));
    }
    frame
}

/// Calls of one kind.
struct Collective<'a> {
    device: Option<i64>,
    part: Part,
    /// `None` for the row of all others.
    kind: Option<&'a Kind>,
    /// True for calls on a device: what they overlap with is known.
    on_device: bool,
    sums: Sums,
    durations: Vec<Ns>,
}

/// Device, part and number of the kind.
type Key = (Option<i64>, Part, u32);

fn collectives<'a>(
    view: &View<'_>,
    found: &'a Communication,
    exposed: &[Exposure],
) -> Vec<Collective<'a>> {
    let mut rows: BTreeMap<Key, (Sums, Vec<Ns>)> = BTreeMap::new();
    for (call, exposure) in found.calls.iter().zip(exposed) {
        let part = part(view, call.step, call.bucket);
        let (sums, durations) = rows.entry((call.device, part, call.kind)).or_default();
        sums.count(call, *exposure);
        durations.push(call.span.len());
    }
    let rows = rows
        .into_iter()
        .map(|((device, part, kind), (sums, durations))| Collective {
            device,
            part,
            kind: Some(&found.kinds[kind as usize]),
            on_device: device.is_some(),
            sums,
            durations,
        });
    let mut rows: Vec<Collective<'_>> = rows.collect();
    // The map is in order of content; sorting by time keeps that order among equals.
    rows.sort_by_key(|row| std::cmp::Reverse(row.sums.sum));
    let top = view.options.top;
    if top > 0 && rows.len() > top {
        let mut others = Collective {
            device: None,
            part: (NONE, None),
            kind: None,
            on_device: rows.iter().any(|row| row.on_device),
            sums: Sums::default(),
            durations: Vec::new(),
        };
        for row in rows.drain(top..) {
            others.sums.calls += row.sums.calls;
            others.sums.sum += row.sums.sum;
            others.sums.held += row.sums.held;
            others.sums.overlapped += row.sums.overlapped;
            others.durations.extend(row.durations);
        }
        rows.push(others);
    }
    for row in &mut rows {
        row.durations.sort_unstable();
    }
    rows
}

impl Collective<'_> {
    fn bytes(&self) -> Option<i64> {
        self.kind?.bytes()
    }

    /// Bytes of a message over the mean time of a call, in 10⁹ bytes a second.
    fn algorithm_gbps(&self) -> Option<f64> {
        let bytes = self.bytes()? as f64 * self.sums.calls as f64;
        (self.sums.sum > Ns::ZERO).then(|| bytes / self.sums.sum.0 as f64)
    }

    fn bus_gbps(&self) -> Option<f64> {
        let kind = self.kind?;
        let factor = bus_factor(kind.operation.as_deref()?, kind.size)?;
        Some(self.algorithm_gbps()? * factor)
    }
}

fn collectives_frame(view: &View<'_>, rows: &[Collective<'_>]) -> Frame {
    let of_kind = |row: &Collective<'_>, of: fn(&Kind) -> Option<&String>| {
        row.kind.and_then(|kind| of(kind).cloned())
    };
    let frame = Frame::new(
        "collectives",
        "Collectives by operation, process group, type and size of the message.",
    )
    .text("operation", rows, |row| match row.kind {
        None => Some("(others)".to_owned()),
        Some(kind) => kind.operation.clone(),
    })
    .text("kernel", rows, |row| {
        of_kind(row, |kind| kind.kernel.as_ref())
    })
    .text("place", rows, |row| row.kind.map(|_| place(row.device)))
    .id("device", rows, |row| row.device);
    with_part(view, frame, rows, |row| row.part)
        .text("group", rows, |row| {
            of_kind(row, |kind| kind.group.as_ref())
        })
        .text("description", rows, |row| {
            of_kind(row, |kind| kind.description.as_ref())
        })
        .text("members", rows, |row| {
            of_kind(row, |kind| kind.members.as_ref())
        })
        .count("group_size", rows, |row| row.kind?.size)
        .text("dtype", rows, |row| {
            of_kind(row, |kind| kind.dtype.as_ref())
        })
        .count("in_elements", rows, |row| {
            u64::try_from(row.kind?.in_elements?).ok()
        })
        .count("out_elements", rows, |row| {
            u64::try_from(row.kind?.out_elements?).ok()
        })
        .bytes("message_bytes", rows, Collective::bytes)
        .count("calls", rows, |row| Some(row.sums.calls))
        .ns("sum_ns", rows, |row| Some(row.sums.sum))
        .ns("median_ns", rows, |row| median_time(&row.durations))
        .ns("communication_ns", rows, |row| Some(row.sums.held))
        .ns("exposed_ns", rows, |row| {
            row.on_device.then(|| row.sums.held - row.sums.overlapped)
        })
        .float(
            "algorithm_gbps",
            Unit::GbPerS,
            rows,
            Collective::algorithm_gbps,
        )
        .float("bus_gbps", Unit::GbPerS, rows, Collective::bus_gbps)
}

/// The union of `spans` and its length.
pub(super) fn union_len(spans: impl IntoIterator<Item = Span>) -> (Vec<Span>, Ns) {
    let spans = union(spans);
    let len = spans.iter().map(|span| span.len()).sum();
    (spans, len)
}
