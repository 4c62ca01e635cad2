//! What is compared beside the attribution: operators, kernels, collectives and memory of one file.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashSet};

use crate::attribute::{DeviceClass, NONE, Phase, overlap, span_of, union};
use crate::error::Result;
use crate::inspect::{View, collective_sums, memory_peaks};
use crate::model::{Call, EventId, StrId};
use crate::units::{Ns, Span};

/// Work in no selected step.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// By place of the step among the selected ones of the file, or [`OUTSIDE`].
pub(super) type ByStep<T> = BTreeMap<u32, T>;

/// Number of calls and their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) calls: u64,
    pub(super) time: Ns,
}

impl Calls {
    pub(super) fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time += other.time;
    }
}

/// An operator in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OpCalls {
    /// Calls with their self time.
    pub(super) host: Calls,
    /// Device work that it launched itself.
    pub(super) device: Calls,
    /// How many of the calls are recompute.
    pub(super) recomputed: u64,
}

/// Name and input dimensions, as in the trace.
pub(super) type OpKey = (String, String);

/// The largest amounts of memory of one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Peak {
    pub(super) allocated: Option<i64>,
    pub(super) reserved: Option<i64>,
}

/// Kind of device and its number.
pub(super) type MemoryKey = (String, i64);

/// One file.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    pub(super) operators: BTreeMap<OpKey, ByStep<OpCalls>>,
    /// By name and class.
    pub(super) kernels: BTreeMap<(String, &'static str), ByStep<Calls>>,
    /// By operation, type and size of the message.
    pub(super) collectives: BTreeMap<(String, String), ByStep<Calls>>,
    /// Self time of host operators by phase.
    pub(super) host_phases: ByStep<[Ns; Phase::ALL.len()]>,
    /// Host calls that wait for the device; `None` when no calls were recorded.
    pub(super) synchronisation: Option<ByStep<Ns>>,
    /// Host calls with which an allocator takes memory from the driver and gives it back; `None` as above.
    pub(super) cache_maintenance: Option<ByStep<Ns>>,
    /// Self time of `aten::copy_`, which copies between tensors of the host, too.
    pub(super) host_copies: ByStep<Ns>,
    /// Step time under no operator on any thread of the process; `None` without operators.
    pub(super) outside_operators: Option<ByStep<Ns>>,
    /// Forward operators.
    pub(super) forward: BTreeSet<OpKey>,
    /// Types of the inputs of [`MODEL`] operators.
    pub(super) dtypes: BTreeSet<String>,
    pub(super) memory: BTreeMap<MemoryKey, Peak>,
}

/// Operators whose shapes are those of the model and its input.
pub(super) const MODEL: [&str; 9] = [
    "aten::linear",
    "aten::addmm",
    "aten::mm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::matmul",
    "aten::convolution",
    "aten::embedding",
    "aten::layer_norm",
];

impl Observed {
    /// What `view` shows.
    ///
    /// # Errors
    /// When the content of the file is not what it was when it was read.
    pub(super) fn of(view: &View<'_>) -> Result<Self> {
        let places = places(view);
        let mut observed = Self {
            collectives: collectives(view, &places)?,
            memory: memory(view)?,
            ..Self::default()
        };
        observed.count_operators(view, &places)?;
        observed.count_work(view, &places);
        observed.count_calls(view, &places);
        observed.outside_operators = outside_operators(view, &places);
        Ok(observed)
    }

    fn count_operators(&mut self, view: &View<'_>, places: &Places) -> Result<()> {
        let dissection = view.dissection;
        let trace = view.trace();
        let copy = trace.strings.find("aten::copy_");
        let model: Vec<StrId> = MODEL
            .iter()
            .filter_map(|name| trace.strings.find(name))
            .collect();
        let mut sums = HashMap::<(StrId, StrId, u32), OpCalls>::default();
        let mut forward = HashSet::<(StrId, StrId)>::default();
        let mut typed: Vec<EventId> = Vec::new();
        for (number, thread) in dissection.host.threads.iter().enumerate() {
            let process = dissection.processes.threads[number].process;
            for (place, op) in (0u32..).zip(&thread.ops) {
                let step = dissection.steps.at(process, op.span.start);
                let Some(step) = places.of(step) else {
                    continue;
                };
                let verdict = dissection.judge.verdict(op.span.start, number, place);
                let phase = verdict.placement.phase;
                let sum = sums.entry((op.name, op.dims, step)).or_default();
                sum.host.add(Calls {
                    calls: 1,
                    time: op.self_ns,
                });
                sum.recomputed += u64::from(phase == Phase::Recompute);
                self.host_phases.entry(step).or_default()[phase as usize] += op.self_ns;
                if Some(op.name) == copy {
                    *self.host_copies.entry(step).or_default() += op.self_ns;
                }
                if phase == Phase::Forward {
                    forward.insert((op.name, op.dims));
                    if model.contains(&op.name) {
                        typed.push(op.event);
                    }
                }
            }
        }
        for work in view.work() {
            let (Some(launcher), Some(step)) = (
                view.launcher(work.launch),
                places.of((work.step != NONE).then_some(work.step)),
            ) else {
                continue;
            };
            if let Some(op) = view.op(launcher) {
                let sum = sums.entry((op.name, op.dims, step)).or_default();
                sum.device.add(Calls {
                    calls: 1,
                    time: work.span.len(),
                });
            }
        }
        let text = |name: StrId| trace.strings.get(name).to_owned();
        #[expect(clippy::iter_over_hash_type, reason = "into ordered maps")]
        for ((name, dims, step), sum) in sums {
            let row = self.operators.entry((text(name), text(dims))).or_default();
            row.insert(step, sum);
        }
        let forward = forward.into_iter();
        self.forward = forward
            .map(|(name, dims)| (text(name), text(dims)))
            .collect();
        typed.sort_unstable();
        let types = view.arguments(&typed, &["Input type"], |_, args| {
            args.compact("Input type")
                .map_or_else(BTreeSet::new, |text| float_types(&text))
        })?;
        self.dtypes = types.into_iter().flatten().collect();
        Ok(())
    }

    fn count_work(&mut self, view: &View<'_>, places: &Places) {
        let trace = view.trace();
        let mut sums = HashMap::<(StrId, DeviceClass, u32), Calls>::default();
        for work in view.work() {
            let Some(step) = places.of((work.step != NONE).then_some(work.step)) else {
                continue;
            };
            let name = trace.events.name(work.event);
            sums.entry((name, work.class, step))
                .or_default()
                .add(Calls {
                    calls: 1,
                    time: work.span.len(),
                });
        }
        #[expect(clippy::iter_over_hash_type, reason = "into ordered maps")]
        for ((name, class, step), sum) in sums {
            let key = (trace.strings.get(name).to_owned(), class.as_str());
            self.kernels.entry(key).or_default().insert(step, sum);
        }
    }

    /// Waits for the device, and maintenance of the allocator's cache.
    fn count_calls(&mut self, view: &View<'_>, places: &Places) {
        let dissection = view.dissection;
        let trace = view.trace();
        let events = &trace.events;
        let mut kinds: Vec<Option<Call>> = vec![None; trace.strings.len()];
        for event in events.ids() {
            if !events.activity(event).is_launch() {
                continue;
            }
            let waits = self.synchronisation.get_or_insert_with(BTreeMap::new);
            let cache = self.cache_maintenance.get_or_insert_with(BTreeMap::new);
            let name = events.name(event);
            let kind = kinds[name.index()].get_or_insert_with(|| Call::of(trace.strings.get(name)));
            let sums = match *kind {
                call if call.waits() => waits,
                Call::Memory => cache,
                _ => continue,
            };
            if !events.is_complete(event) {
                continue;
            }
            let thread = dissection.host.thread(events.track(event));
            let process = thread.map_or(usize::MAX, |thread| {
                dissection.processes.threads[thread].process
            });
            let span = span_of(trace, event);
            if let Some(step) = places.of(dissection.steps.at(process, span.start)) {
                *sums.entry(step).or_default() += span.len();
            }
        }
    }
}

/// By step of the trace: its place among the selected ones.
struct Places {
    places: Vec<u32>,
    /// Everything counts, also what is in no step.
    all: bool,
}

impl Places {
    /// Where what happens in `step` is counted; `None` when it is not.
    fn of(&self, step: Option<u32>) -> Option<u32> {
        let place = step.map_or(OUTSIDE, |step| self.places[step as usize]);
        (self.all || place != OUTSIDE).then_some(place)
    }
}

fn places(view: &View<'_>) -> Places {
    let dissection = view.dissection;
    let mut next = 0;
    let places = dissection.selected.iter().map(|selected| {
        let place = if *selected { next } else { OUTSIDE };
        next += u32::from(*selected);
        place
    });
    Places {
        places: places.collect(),
        all: dissection.options.steps.is_none(),
    }
}

/// The types of floating point numbers among the input types of an operator, such as
/// `["float","float","Scalar"]`.
fn float_types(text: &str) -> BTreeSet<String> {
    let types: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let names = types.iter().filter_map(serde_json::Value::as_str);
    names
        .filter(|name| matches!(*name, "float" | "double") || name.starts_with("c10::"))
        .map(str::to_owned)
        .collect()
}

/// The part of each step in which no operator runs on any thread of its process; `None` without
/// operators.
fn outside_operators(view: &View<'_>, places: &Places) -> Option<ByStep<Ns>> {
    let dissection = view.dissection;
    let mut spans: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
    for (number, thread) in dissection.host.threads.iter().enumerate() {
        let process = dissection.processes.threads[number].process;
        let roots = thread.ops.iter().filter(|op| op.parent == NONE);
        let own = spans.entry(process).or_default();
        own.extend(roots.map(|op| op.span));
    }
    spans.values().find(|spans| !spans.is_empty())?;
    let busy = spans.into_iter();
    let busy: BTreeMap<usize, Busy> = busy
        .map(|(process, spans)| (process, Busy::new(spans)))
        .collect();
    let steps = dissection.steps.all.iter().zip(&places.places);
    let selected = steps.filter(|(_, place)| **place != OUTSIDE);
    let outside = selected.map(|(step, place)| {
        let busy = busy.get(&step.process);
        let inside = busy.map_or(Ns::ZERO, |busy| busy.inside(step.span));
        (*place, step.span.len() - inside)
    });
    Some(outside.collect())
}

/// Times at which something runs, ready for many windows.
struct Busy {
    /// Disjoint and in order.
    spans: Vec<Span>,
    /// By span: the length of those before it.
    before: Vec<Ns>,
}

impl Busy {
    fn new(spans: Vec<Span>) -> Self {
        let spans = union(spans);
        let mut sum = Ns::ZERO;
        let mut before = vec![sum];
        for span in &spans {
            sum += span.len();
            before.push(sum);
        }
        Self { spans, before }
    }

    /// How much of `window` it is.
    fn inside(&self, window: Span) -> Ns {
        let from = self.spans.partition_point(|span| span.end <= window.start);
        let to = self.spans.partition_point(|span| span.start < window.end);
        if from >= to {
            return Ns::ZERO;
        }
        let whole = self.before[to] - self.before[from];
        let mut edges = vec![self.spans[from]];
        if from + 1 < to {
            edges.push(self.spans[to - 1]);
        }
        let outside = edges.iter().map(|span| span.len() - overlap(*span, window));
        whole - outside.sum()
    }
}

/// Collectives by step, as `inspect communication` finds them.
fn collectives(
    view: &View<'_>,
    places: &Places,
) -> Result<BTreeMap<(String, String), ByStep<Calls>>> {
    let mut sums = BTreeMap::<(String, String), ByStep<Calls>>::new();
    collective_sums(view, |sum| {
        let Some(step) = places.of((sum.step != NONE).then_some(sum.step)) else {
            return;
        };
        let size = sum.bytes.map(|bytes| format!("{bytes} B"));
        let message: Vec<&str> = sum.dtype.into_iter().chain(size.as_deref()).collect();
        let row = sums
            .entry((sum.name.to_owned(), message.join(" ")))
            .or_default();
        row.entry(step).or_default().add(Calls {
            calls: sum.calls,
            time: sum.time,
        });
    })?;
    Ok(sums)
}

/// The largest amounts of memory of each device, as `inspect memory` finds them; of several processes, those of the
/// one that has most.
fn memory(view: &View<'_>) -> Result<BTreeMap<MemoryKey, Peak>> {
    let mut peaks = BTreeMap::<MemoryKey, Peak>::new();
    for found in memory_peaks(view)? {
        let peak = peaks.entry((found.kind, found.index)).or_default();
        peak.allocated = peak.allocated.max(found.allocated);
        peak.reserved = peak.reserved.max(found.reserved);
    }
    Ok(peaks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_in_a_window_is_cut_at_its_edges() {
        let span = |start, end| Span::new(Ns(start), Ns(end));
        // ├─ 0..10 ─┤  ├─ 20..30 ─┤  ├─ 40..50 ─┤
        let busy = Busy::new(vec![span(20, 30), span(0, 6), span(4, 10), span(40, 50)]);
        assert_eq!(busy.inside(span(5, 45)), Ns(20));
        assert_eq!(busy.inside(span(22, 25)), Ns(3));
        assert_eq!(busy.inside(span(10, 20)), Ns(0));
        assert_eq!(busy.inside(span(-5, 100)), Ns(30));
        assert_eq!(busy.inside(span(60, 70)), Ns(0));
    }

    #[test]
    fn types_of_floating_point_numbers_are_those_of_c10() {
        let types = float_types(r#"["c10::BFloat16","long int","float","","Scalar"]"#);
        assert_eq!(
            types,
            BTreeSet::from(["c10::BFloat16".to_owned(), "float".to_owned()])
        );
        assert!(float_types("no list").is_empty());
    }
}
