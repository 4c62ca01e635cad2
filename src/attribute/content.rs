//! Whether a file holds anything to attribute at all.

use crate::health::{Health, HealthCode};
use crate::model::{ActivityType, EventId, Ph, Trace};

/// Names that the profiler writes into every capture, however little it recorded.
const MARKS: [&str; 2] = ["Iteration Start: PyTorch Profiler", "Record Window End"];

/// Counts a file without anything to attribute: an empty capture, or something else, such as the trace
/// of another program.
pub(crate) fn check(trace: &Trace, health: &mut Health) {
    let events = &trace.events;
    if events.ids().any(|id| is_work(trace, id)) {
        return;
    }
    let metadata = &trace.metadata;
    let of_profiler = metadata.schema_version.is_some()
        || metadata.base_time_ns.is_some()
        || events.ids().any(|id| {
            events.activity(id) == ActivityType::Trace || MARKS.contains(&trace.name(id))
        });
    let mut other = events.ids().filter(|id| events.ph(*id) != Ph::METADATA);
    match other.next() {
        Some(first) if !of_profiler => {
            for id in std::iter::once(first).chain(other) {
                trace.note(health, HealthCode::ForeignTrace, id);
            }
        }
        _ => health.add(HealthCode::EmptyCapture, 1, None),
    }
}

/// True for events that attribution can use: operators, Python frames, launches, device work, and
/// annotations other than those of steps.
fn is_work(trace: &Trace, id: EventId) -> bool {
    let events = &trace.events;
    let activity = events.activity(id);
    match activity {
        ActivityType::CpuOp | ActivityType::UserAnnotation => {
            !trace.name(id).starts_with("ProfilerStep#")
        }
        ActivityType::PythonFunction => true,
        _ => activity.is_device_work() || activity.is_launch(),
    }
}
