//! Communication of one file: every call with what is known about it.
//!
//! ```text
//! host    ├─ record_param_comms (group, elements, type) ─┤
//!            ├─ nccl:all_reduce (dimensions, type) ─┤
//!               ├ launch ┤
//! device                     ├─ ncclDevKernel_AllReduce_Sum_f32 (newer: group, elements, type) ─┤
//! ```
//! What the kernel says counts first, then the `record_param_comms` around its launch, then the
//! annotation there, then the name of the kernel. What none of them says is not known.
//!
//! A file in which no device communicates may still have collectives that run on the host: those of the
//! backends Gloo and MPI, whose annotations (`gloo:all_reduce`) last as long as the collective does.
//! Those of NCCL last as long as its launch, and are not counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::operation::{dtype_of, element_bytes, elements_of, operation_of, operation_of_kernel};
use super::view::View;
use crate::attribute::{Bucket, DeviceClass, NONE, Piece, Work, innermost, piece_at};
use crate::error::Result;
use crate::ingest::Args;
use crate::model::EventId;
use crate::units::Span;

/// What one call has in common with others of its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// What it does; `None` when nothing says so.
    pub(super) operation: Option<String>,
    /// The kernel, when the operation is not known.
    pub(super) kernel: Option<String>,
    /// `Process Group Name`.
    pub(super) group: Option<String>,
    /// `Process Group Description`.
    pub(super) description: Option<String>,
    /// `Process Group Ranks`, as text.
    pub(super) members: Option<String>,
    /// Number of ranks in the group.
    pub(super) size: Option<u64>,
    /// PyTorch's name of the type of the elements.
    pub(super) dtype: Option<String>,
    /// Elements that this rank gives.
    pub(super) in_elements: Option<i64>,
    /// Elements that this rank gets.
    pub(super) out_elements: Option<i64>,
}

impl Kind {
    /// Size of the message, as nccl-tests defines it: what a rank gets in an all-gather, else what it
    /// gives.
    pub(super) fn bytes(&self) -> Option<i64> {
        let elements = match self.operation.as_deref() {
            Some("allgather") => self.out_elements.or_else(|| self.gathered()),
            _ => self.in_elements,
        }?;
        elements.checked_mul(element_bytes(self.dtype.as_deref()?)?)
    }

    /// What all ranks of the group give together, each as much as this one.
    fn gathered(&self) -> Option<i64> {
        self.in_elements?
            .checked_mul(i64::try_from(self.size?).ok()?)
    }

    /// Takes from `other` what is not known yet.
    fn complete(&mut self, other: &Self) {
        let text = |own: &mut Option<String>, other: &Option<String>| {
            if own.is_none() {
                own.clone_from(other);
            }
        };
        text(&mut self.operation, &other.operation);
        text(&mut self.group, &other.group);
        text(&mut self.description, &other.description);
        text(&mut self.members, &other.members);
        self.size = self.size.or(other.size);
        // Elements of one source have the type that the same source says.
        if self.in_elements.is_none() && self.out_elements.is_none() {
            self.in_elements = other.in_elements;
            self.out_elements = other.out_elements;
            if other.dtype.is_some() {
                self.dtype.clone_from(&other.dtype);
            }
        }
        text(&mut self.dtype, &other.dtype);
    }
}

/// One call: a kernel on a device, or an annotation on the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The device; `None` on the host.
    pub(super) device: Option<i64>,
    /// Number of its stream among those of the file with communication, or of its host thread.
    pub(super) lane: u32,
    pub(super) span: Span,
    /// Number of its kind.
    pub(super) kind: u32,
    /// `Seq`: its number in its process group, the same on all ranks.
    pub(super) sequence: Option<i64>,
    /// Step of its launch, or [`NONE`].
    pub(super) step: u32,
    pub(super) bucket: Bucket,
}

/// The communication of one file.
#[derive(Debug, Default)]
pub(super) struct Communication {
    /// In order of content.
    pub(super) kinds: Vec<Kind>,
    /// By device and start; where those are equal, in order of content.
    pub(super) calls: Vec<Call>,
}

const KEYS: [&str; 11] = [
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "dtype",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Seq",
    "Concrete Inputs",
    "Input type",
];

/// Backends whose annotations last as long as the collective.
const HOST_BACKENDS: [&str; 2] = ["gloo:", "mpi:"];
/// Backends that launch device work under their annotations.
const DEVICE_BACKENDS: [&str; 6] = ["nccl:", "rccl:", "ucc:", "xccl:", "hccl:", "c10d:"];

/// A kind and a sequence number, found at one source.
type Said = (Kind, Option<i64>);

impl Communication {
    /// The communication that `view` selects.
    ///
    /// # Errors
    /// When the content of the file is not what it was when it was read.
    pub(super) fn new(view: &View<'_>) -> Result<Self> {
        let work: Vec<&Work> = view
            .work()
            .filter(|work| work.class == DeviceClass::Communication)
            .collect();
        let mut found = Found::default();
        if work.is_empty() {
            if !communicates(view) {
                host_calls(view, &mut found)?;
            }
        } else {
            device_calls(view, &work, &mut found)?;
        }
        Ok(found.finish())
    }

    pub(super) fn kind(&self, call: &Call) -> &Kind {
        &self.kinds[call.kind as usize]
    }
}

/// True when some device communicates, selected or not.
fn communicates(view: &View<'_>) -> bool {
    let work = &view.dissection.work;
    work.iter()
        .any(|work| work.class == DeviceClass::Communication)
}

/// Calls with their kinds, in the order in which they were found.
#[derive(Default)]
struct Found {
    numbers: BTreeMap<Kind, u32>,
    calls: Vec<Call>,
}

impl Found {
    fn number(&mut self, kind: Kind) -> u32 {
        let next = u32::try_from(self.numbers.len()).expect("no more kinds than events");
        *self.numbers.entry(kind).or_insert(next)
    }

    /// Numbers kinds in order of content and puts calls in order.
    fn finish(self) -> Communication {
        let mut place = vec![0_u32; self.numbers.len()];
        let mut kinds = Vec::with_capacity(self.numbers.len());
        for (own, (kind, number)) in (0u32..).zip(self.numbers) {
            place[number as usize] = own;
            kinds.push(kind);
        }
        let mut calls = self.calls;
        for call in &mut calls {
            call.kind = place[call.kind as usize];
        }
        calls.sort_unstable_by_key(|call| {
            (
                call.device,
                call.span.start,
                call.span.end,
                call.step,
                call.bucket,
                call.kind,
                call.sequence,
                call.lane,
            )
        });
        Communication { kinds, calls }
    }
}

fn device_calls(view: &View<'_>, work: &[&Work], found: &mut Found) -> Result<()> {
    let mut events: Vec<EventId> = work.iter().map(|work| work.event).collect();
    events.sort_unstable();
    let by_kernel = Sayings::read(view, &events)?;
    let mut surroundings = Surroundings {
        view,
        threads: BTreeMap::new(),
    };
    let around: Vec<Around> = work.iter().map(|work| surroundings.of(work)).collect();
    let mut events: Vec<EventId> = around
        .iter()
        .flat_map(|around| [around.record, around.annotation])
        .flatten()
        .collect();
    events.sort_unstable();
    events.dedup();
    let by_host = Sayings::read(view, &events)?;
    let mut lanes = Lanes::default();
    for (work, around) in work.iter().zip(around) {
        let (mut kind, mut sequence) = by_kernel.of(work.event);
        if let Some(record) = around.record {
            let (other, number) = by_host.of(record);
            kind.complete(&other);
            sequence = sequence.or(number);
        }
        if let Some(annotation) = around.annotation {
            kind.complete(&annotated(view, annotation, by_host.of(annotation).0));
        }
        if kind.operation.is_none() {
            let name = view.trace().name(work.event);
            match operation_of_kernel(name) {
                Some(operation) => kind.operation = Some(operation.to_owned()),
                None => kind.kernel = Some(name.to_owned()),
            }
        }
        let call = Call {
            device: Some(work.device),
            lane: lanes.number((work.device, view.ident(work.stream))),
            span: work.span,
            kind: found.number(kind),
            sequence,
            step: work.step,
            bucket: work.bucket,
        };
        found.calls.push(call);
    }
    lanes.put_in_order(&mut found.calls);
    Ok(())
}

/// What an annotation says by its name and its first input, beside what its arguments do.
fn annotated(view: &View<'_>, annotation: EventId, said: Kind) -> Kind {
    let trace = view.trace();
    let dims = trace.events.op_args(annotation).map(|args| args.dims);
    Kind {
        operation: Some(operation_of(trace.name(annotation))),
        in_elements: dims.and_then(|dims| elements_of(trace.strings.get(dims))),
        ..said
    }
}

fn host_calls(view: &View<'_>, found: &mut Found) -> Result<()> {
    let dissection = view.dissection;
    let mut events = Vec::new();
    for (number, thread) in dissection.host.threads.iter().enumerate() {
        let ranges = thread.annotations.iter();
        let ranges =
            ranges.filter(|range| starts_with_any(view.trace().name(range.event), &HOST_BACKENDS));
        events.extend(ranges.map(|range| (range.event, range.span, number)));
    }
    events.sort_unstable_by_key(|(event, _, _)| *event);
    let ids: Vec<EventId> = events.iter().map(|(event, _, _)| *event).collect();
    let said = Sayings::read(view, &ids)?;
    let mut lanes = Lanes::default();
    for (event, span, number) in events {
        let thread = view.thread(number);
        let process = dissection.processes.threads[number].process;
        let step = dissection.steps.at(process, span.start).unwrap_or(NONE);
        if dissection.options.steps.is_some()
            && (step == NONE || !dissection.selected[step as usize])
        {
            continue;
        }
        let verdict = dissection.judge.verdict(span.start, number, NONE);
        let call = Call {
            device: None,
            lane: lanes.number((0, view.ident(thread.tid))),
            span,
            kind: found.number(annotated(view, event, said.of(event).0)),
            sequence: None,
            step,
            bucket: Bucket::Phase(verdict.placement.phase),
        };
        found.calls.push(call);
    }
    lanes.put_in_order(&mut found.calls);
    Ok(())
}

/// Numbers of streams and threads.
#[derive(Default)]
struct Lanes(BTreeMap<(i64, Option<String>), u32>);

impl Lanes {
    fn number(&mut self, lane: (i64, Option<String>)) -> u32 {
        let next = u32::try_from(self.0.len()).expect("no more lanes than events");
        *self.0.entry(lane).or_insert(next)
    }

    /// Numbers lanes in their own order.
    fn put_in_order(&self, calls: &mut [Call]) {
        let mut place = vec![0_u32; self.0.len()];
        for (own, number) in (0u32..).zip(self.0.values()) {
            place[*number as usize] = own;
        }
        for call in calls {
            call.lane = place[call.lane as usize];
        }
    }
}

/// What is around launches on their threads.
struct Surroundings<'v, 'a> {
    view: &'v View<'a>,
    /// By thread: what is around where.
    threads: BTreeMap<usize, OnThread>,
}

/// What is around the moments and operators of one thread.
struct OnThread {
    /// Annotations of backends, as disjoint pieces.
    pieces: Vec<Piece<EventId>>,
    /// By operator: the innermost `record_param_comms`, itself or around it.
    records: Vec<Option<EventId>>,
}

/// What is around one launch.
#[derive(Clone, Copy, Default)]
struct Around {
    /// The innermost `record_param_comms`.
    record: Option<EventId>,
    /// The innermost annotation of a backend.
    annotation: Option<EventId>,
}

impl Surroundings<'_, '_> {
    fn of(&mut self, work: &Work) -> Around {
        let view = self.view;
        let (Some(launcher), Some(launch)) = (view.launcher(work.launch), view.launch(work)) else {
            return Around::default();
        };
        let thread = self
            .threads
            .entry(launcher.thread)
            .or_insert_with(|| OnThread {
                pieces: backend_pieces(view, launcher.thread),
                records: records(view, launcher.thread),
            });
        Around {
            record: launcher.op.and_then(|op| thread.records[op as usize]),
            annotation: piece_at(&thread.pieces, launch.at).map(|piece| piece.value),
        }
    }
}

/// By operator of one thread: the innermost `record_param_comms`, itself or around it.
fn records(view: &View<'_>, thread: usize) -> Vec<Option<EventId>> {
    let name = view.trace().strings.find("record_param_comms");
    let ops = &view.thread(thread).ops;
    let mut records: Vec<Option<EventId>> = Vec::with_capacity(ops.len());
    // An operator lies behind the one around it.
    for op in ops {
        let around = records.get(op.parent as usize).copied().flatten();
        records.push(if Some(op.name) == name {
            Some(op.event)
        } else {
            around
        });
    }
    records
}

/// The annotations of backends on one thread, as disjoint pieces.
fn backend_pieces(view: &View<'_>, thread: usize) -> Vec<Piece<EventId>> {
    let ranges = view.thread(thread).annotations.iter().filter(|range| {
        let name = view.trace().name(range.event);
        starts_with_any(name, &DEVICE_BACKENDS) || starts_with_any(name, &HOST_BACKENDS)
    });
    let ranges: Vec<(Span, EventId)> = ranges.map(|range| (range.span, range.event)).collect();
    innermost(&ranges)
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// What the arguments of events say.
struct Sayings {
    /// In order.
    events: Vec<EventId>,
    /// By event: which saying.
    numbers: Vec<(u32, Option<i64>)>,
    kinds: Vec<Kind>,
}

impl Sayings {
    fn read(view: &View<'_>, events: &[EventId]) -> Result<Self> {
        // Texts repeat from call to call; one of each is kept.
        let known: Mutex<BTreeMap<Kind, u32>> = Mutex::default();
        let numbers = view.arguments(events, &KEYS, |_, args| {
            let (kind, sequence) = said(args);
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let next = u32::try_from(known.len()).expect("no more kinds than events");
            (*known.entry(kind).or_insert(next), sequence)
        })?;
        let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut kinds = vec![Kind::default(); known.len()];
        for (kind, number) in known {
            kinds[number as usize] = kind;
        }
        Ok(Self {
            events: events.to_vec(),
            numbers,
            kinds,
        })
    }

    fn of(&self, event: EventId) -> Said {
        let Ok(place) = self.events.binary_search(&event) else {
            return Said::default();
        };
        let (number, sequence) = self.numbers[place];
        (self.kinds[number as usize].clone(), sequence)
    }
}

fn said(args: &Args<'_>) -> Said {
    let text = |key| {
        let text = args.text(key).map(Cow::into_owned);
        text.filter(|text| !text.is_empty())
    };
    let count = |key| args.int(key).filter(|count| *count >= 0);
    let dtype = text("dtype").or_else(|| {
        let types = args.compact("Input type")?;
        let first = types.strip_prefix("[\"")?.split_once('"')?.0.to_owned();
        (!first.is_empty() && first != "TensorList").then_some(first)
    });
    let size = count("Group size").or_else(|| group_size(&args.compact("Concrete Inputs")?));
    let members = args
        .compact("Process Group Ranks")
        .or_else(|| text("Process Group Ranks"));
    let kind = Kind {
        operation: text("Collective name").map(|name| operation_of(&name)),
        kernel: None,
        group: text("Process Group Name"),
        description: text("Process Group Description"),
        members: members.filter(|members| members != "[]" && !members.is_empty()),
        size: size.and_then(|size| u64::try_from(size).ok()),
        dtype: dtype.map(|dtype| dtype_of(&dtype).to_owned()),
        in_elements: count("In msg nelems"),
        out_elements: count("Out msg nelems"),
    };
    (kind, count("Seq"))
}

/// The size of the group from the inputs of `record_param_comms`, of which it is the last: first the
/// tensor, then the sequence number, the group, the rank, the name and the splits.
fn group_size(inputs: &str) -> Option<i64> {
    let inputs: Vec<serde_json::Value> = serde_json::from_str(inputs).ok()?;
    if !(8..=10).contains(&inputs.len()) || inputs.first()?.as_str() != Some("") {
        return None;
    }
    let size = inputs.last()?.as_str()?.parse().ok();
    size.filter(|size| *size > 0)
}
