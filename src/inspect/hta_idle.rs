//! Idle time as HolisticTraceAnalysis (0.6.1) breaks it down.
//!
//! It knows streams and no devices, and takes what has a `stream` for device work: see [`HtaEvents`].

use super::communication::union_len;
use super::frame::{Frame, Unit};
use super::hta::Type;
use super::hta_event::{HtaEvent, HtaEvents, rounded};
use super::view::View;
use crate::error::Result;
use crate::model::ActivityType;
use crate::units::{Ns, Span};

/// HTA's breakdowns of idle time.
///
/// # Errors
/// When the content is not what it was when the trace was read.
pub(super) fn frames(view: &View<'_>) -> Result<Vec<Frame>> {
    let events = HtaEvents::new(view)?;
    Ok(vec![
        idle_time_breakdown(view, &events),
        temporal_breakdown(view, &events),
    ])
}

/// HTA's `get_temporal_breakdown`: all streams of all devices together.
fn temporal_breakdown(view: &View<'_>, events: &HtaEvents) -> Frame {
    let span = |event: &HtaEvent| Span::new(event.start, event.end());
    let device = &events.device;
    let start = device.iter().map(|event| event.start).min();
    let end = device.iter().map(HtaEvent::end).max();
    let rows: Vec<[Ns; 4]> = start
        .zip(end)
        .map(|(start, end)| {
            // Waiting is busy there, and neither computation nor anything else.
            let computes = |event: &&HtaEvent| {
                event.activity != ActivityType::CudaSync
                    && Type::of(view.trace().strings.get(event.name)) == Type::Computation
            };
            let (_, busy) = union_len(device.iter().map(span));
            let (_, compute) = union_len(device.iter().filter(computes).map(span));
            let kernel = end - start;
            [kernel, kernel - busy, compute, busy - compute]
        })
        .into_iter()
        .collect();
    let percent = |row: &[Ns; 4], part: usize| Some(rounded(row[part].ratio(row[0])? * 100.0));
    Frame::new(
        "temporal_breakdown",
        "What HTA's get_temporal_breakdown says.",
    )
    .ns("kernel_time_ns", &rows, |row| Some(row[0]))
    .ns("idle_time_ns", &rows, |row| Some(row[1]))
    .ns("compute_time_ns", &rows, |row| Some(row[2]))
    .ns("non_compute_time_ns", &rows, |row| Some(row[3]))
    .float("idle_time_pctg", Unit::Number, &rows, |row| percent(row, 1))
    .float("compute_time_pctg", Unit::Number, &rows, |row| {
        percent(row, 2)
    })
    .float("non_compute_time_pctg", Unit::Number, &rows, |row| {
        percent(row, 3)
    })
}

/// HTA's `get_idle_time_breakdown`.
fn idle_time_breakdown(view: &View<'_>, events: &HtaEvents) -> Frame {
    const NAMES: [&str; 3] = ["host_wait", "kernel_wait", "other"];

    let threshold = view.options.idle_threshold;
    let kernels: Vec<&HtaEvent> = events.device.iter().filter(|it| it.is_kernel()).collect();
    let mut rows: Vec<(i64, usize, Ns, Ns)> = Vec::new();
    for stream in kernels.chunk_by(|a, b| a.stream == b.stream) {
        // The first kernel has no gap, and is in the last category nevertheless.
        let mut causes = [None, None, Some(Ns::ZERO)];
        for pair in stream.windows(2) {
            let (end, gap) = (pair[0].end(), pair[1].start - pair[0].end());
            let cause = match pair[1].launched {
                Some(launched) if launched > end => 0,
                _ if gap < threshold => 1,
                _ => 2,
            };
            *causes[cause].get_or_insert(Ns::ZERO) += gap;
        }
        let total: Ns = causes.iter().flatten().copied().sum();
        let number = stream[0].stream.unwrap_or_default();
        for (cause, idle) in causes.into_iter().enumerate() {
            rows.extend(idle.map(|idle| (number, cause, idle, total)));
        }
    }
    Frame::new(
        "idle_time_breakdown",
        "What HTA's get_idle_time_breakdown says.",
    )
    .id("stream", &rows, |row| Some(row.0))
    .text("idle_category", &rows, |row| Some(NAMES[row.1]))
    .ns("idle_time_ns", &rows, |row| Some(row.2))
    .float("idle_time_ratio", Unit::Ratio, &rows, |row| {
        Some(rounded(row.2.ratio(row.3)?))
    })
}
