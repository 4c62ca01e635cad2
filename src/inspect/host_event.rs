//! What happens on the host, in order of time: operators, runtime and driver calls, data loading.

use super::view::View;
use crate::attribute::{OtherKind, span_of};
use crate::model::{Call, EventId, StrId};
use crate::units::Span;

/// An operator, a runtime or driver call, or a range in which the data loader is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostEvent {
    pub(super) event: EventId,
    pub(super) span: Span,
    pub(super) name: StrId,
    /// Number of the host thread.
    pub(super) thread: u32,
    /// Operators come before calls, which they make, and data loading before both.
    kind: Kind,
    /// A call that may wait for a device.
    pub(super) blocking: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Loading,
    Operator,
    Call,
}

impl HostEvent {
    /// A range of the data loader.
    pub(super) fn is_loading(&self) -> bool {
        self.kind == Kind::Loading
    }
}

/// All host events of a trace, in order of start, longest first.
pub(super) fn host_events(view: &View<'_>) -> Vec<HostEvent> {
    let dissection = view.dissection;
    let trace = view.trace();
    let (events, strings) = (&trace.events, &trace.strings);
    let loads = |name| dissection.names.get(name).other == Some(OtherKind::DataLoading);
    let mut found: Vec<HostEvent> = Vec::new();
    for (thread, own) in (0u32..).zip(&dissection.host.threads) {
        let event = |event, kind| HostEvent {
            event,
            span: span_of(trace, event),
            name: events.name(event),
            thread,
            kind,
            blocking: false,
        };
        found.extend(own.ops.iter().map(|op| {
            let kind = if loads(op.name) {
                Kind::Loading
            } else {
                Kind::Operator
            };
            event(op.event, kind)
        }));
        let loading = own
            .annotations
            .iter()
            .filter(|annotation| annotation.other == Some(OtherKind::DataLoading));
        found.extend(loading.map(|annotation| event(annotation.event, Kind::Loading)));
    }
    let blocking: Vec<StrId> = strings
        .iter()
        .filter(|(_, name)| Call::of(name).may_wait())
        .map(|(id, _)| id)
        .collect();
    for id in events.ids() {
        if !events.activity(id).is_launch() || !events.is_complete(id) {
            continue;
        }
        let Some(thread) = dissection.host.thread(events.track(id)) else {
            continue;
        };
        found.push(HostEvent {
            event: id,
            span: span_of(trace, id),
            name: events.name(id),
            thread: u32::try_from(thread).expect("no more threads than tracks"),
            kind: Kind::Call,
            blocking: blocking.contains(&events.name(id)),
        });
    }
    let correlation = |id| events.launch_args(id).map_or(0, |args| args.correlation);
    found.sort_unstable_by(|a, b| {
        (a.span.start, b.span.end, a.kind)
            .cmp(&(b.span.start, a.span.end, b.kind))
            .then_with(|| strings.get(a.name).cmp(strings.get(b.name)))
            .then_with(|| correlation(a.event).cmp(&correlation(b.event)))
            .then_with(|| {
                trace
                    .row_text(events.track(a.event))
                    .cmp(&trace.row_text(events.track(b.event)))
            })
    });
    found
}
