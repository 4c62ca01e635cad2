//! Which operators of a trace count, each FLOP once, and which device work is theirs.
//!
//! ```text
//! aten::linear               launches through addmm only: does not count
//!   aten::t
//!   aten::addmm              the innermost operator with a cost around its launch: counts
//!     cudaLaunchKernel ───→  its device work
//! ```
//! A launch belongs to the innermost operator around it whose cost is known. Such an operator counts
//! unless another of its kind below it counts, too: of products of matrices (matmul, convolution,
//! attention) or of its own family. A copy inside a convolution counts beside it. What launches nothing
//! ran on the host, was captured for a graph, or lost its device records: it does not count, as its time
//! is not known either. In a file without device work the operators of the host count: products of
//! matrices without another below them, and others with nothing below them that has a cost.

use std::collections::BTreeMap;

use super::super::view::View;
use super::cost::{Cost, Model, model_of};
use super::inputs::{Inputs, KEYS};
use super::precision::Precision;
use crate::attribute::{Bucket, DeviceClass, HostThread, NONE, Work};
use crate::error::Result;
use crate::model::{EventId, StrId};

/// An operator that counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) name: StrId,
    pub(super) dims: StrId,
    pub(super) model: Model,
    pub(super) cost: Cost,
    /// The first device that it put work on; `None` on the host.
    pub(super) device: Option<i64>,
    /// Of its first work, or its own on the host.
    pub(super) step: u32,
    pub(super) bucket: Bucket,
    /// A kernel of it computes in TF32.
    pub(super) tf32: bool,
    /// Some of its work is a copy between host and device.
    pub(super) over_bus: bool,
}

impl Counted {
    /// What the numbers are that the device computed with.
    pub(super) fn precision(&self) -> Option<Precision> {
        match self.cost.precision {
            Some(Precision::Fp32) if self.tf32 && self.model.family.is_model() => {
                Some(Precision::Tf32)
            }
            own => own,
        }
    }
}

/// Device work, and the operator that it counts for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owned<'a> {
    pub(super) work: &'a Work,
    /// Number among those that count.
    pub(super) counted: Option<u32>,
    /// Name of the innermost operator around the launch.
    pub(super) operator: Option<StrId>,
}

/// What counts in one trace.
#[derive(Default)]
pub(super) struct Count<'a> {
    pub(super) counted: Vec<Counted>,
    /// In order of device and start.
    pub(super) work: Vec<Owned<'a>>,
}

impl<'a> Count<'a> {
    /// What counts in `view`.
    ///
    /// # Errors
    /// When the content of the file is not what it was when it was read.
    pub(super) fn new(view: &View<'a>) -> Result<Self> {
        let on_device = !view.dissection.work.is_empty();
        let near = Nearby::new(view, on_device);
        let costs = costs(view, &near)?;
        let mut owners: Vec<Vec<u32>> = Vec::new();
        let mut found = Self::default();
        let mut of_op: Vec<(usize, u32)> = Vec::new();
        for (number, costs) in costs.iter().enumerate() {
            let thread = view.thread(number);
            let mut owner = chosen(thread, costs, &near.launching[number], on_device);
            for place in 0..owner.len() {
                if owner[place] == NONE {
                    let parent = thread.ops[place].parent;
                    owner[place] = owner.get(parent as usize).copied().unwrap_or(NONE);
                    continue;
                }
                let own = u32::try_from(place).expect("fewer than 2^32 operators");
                owner[place] = u32::try_from(of_op.len()).expect("no more than operators");
                of_op.push((number, own));
            }
            owners.push(owner);
        }
        let mut counted: Vec<Option<Counted>> = vec![None; of_op.len()];
        let fresh = |own: u32, work: Option<&Work>| {
            let (thread, op) = of_op[own as usize];
            let (model, cost) = costs[thread][op as usize].expect("only what has a cost is chosen");
            Self::counted(view, thread, op, (model, cost), work)
        };
        if !on_device {
            for own in 0..u32::try_from(of_op.len()).unwrap_or(NONE) {
                let one = fresh(own, None);
                if view.dissection.options.steps.is_none()
                    || (one.step != NONE && view.dissection.selected[one.step as usize])
                {
                    found.counted.push(one);
                }
            }
            return Ok(found);
        }
        let mut kernels = KernelNames::default();
        for work in view.work() {
            let launcher = view.launcher(work.launch);
            let op = launcher.and_then(|launcher| Some((launcher.thread, launcher.op?)));
            let owner = op.map_or(NONE, |(thread, op)| owners[thread][op as usize]);
            let operator = op.map(|(thread, op)| view.thread(thread).ops[op as usize].name);
            if owner != NONE {
                let slot = &mut counted[owner as usize];
                let own = slot.get_or_insert_with(|| fresh(owner, Some(work)));
                own.tf32 |= kernels.is_tf32(view, work);
                own.over_bus |= KernelNames::is_over_bus(view, work);
            }
            found.work.push(Owned {
                work,
                counted: (owner != NONE).then_some(owner),
                operator,
            });
        }
        // Those of steps that are not selected have no work here.
        let mut place = vec![NONE; counted.len()];
        for (number, counted) in counted.into_iter().enumerate() {
            if let Some(counted) = counted {
                place[number] = u32::try_from(found.counted.len()).unwrap_or(NONE);
                found.counted.push(counted);
            }
        }
        for work in &mut found.work {
            work.counted = work.counted.map(|number| place[number as usize]);
        }
        Ok(found)
    }

    fn counted(
        view: &View<'_>,
        thread: usize,
        op: u32,
        (model, cost): (Model, Cost),
        work: Option<&Work>,
    ) -> Counted {
        let dissection = view.dissection;
        let own = &view.thread(thread).ops[op as usize];
        let (step, bucket) = if let Some(work) = work {
            (work.step, work.bucket)
        } else {
            let process = dissection.processes.threads[thread].process;
            let step = dissection.steps.at(process, own.span.start);
            let verdict = dissection.judge.verdict(own.span.start, thread, op);
            let bucket = Bucket::Phase(verdict.placement.phase);
            (step.unwrap_or(NONE), bucket)
        };
        Counted {
            name: own.name,
            dims: own.dims,
            model,
            cost,
            device: work.map(|work| work.device),
            step,
            bucket,
            tf32: false,
            over_bus: false,
        }
    }
}

/// Operators that may own a launch.
struct Nearby {
    /// By thread and operator: it or something in it launched device work. All of them without devices.
    around: Vec<Vec<bool>>,
    /// By thread and operator: it is the innermost operator around a launch. Likewise.
    launching: Vec<Vec<bool>>,
}

impl Nearby {
    fn new(view: &View<'_>, on_device: bool) -> Self {
        let threads = &view.dissection.host.threads;
        let flags = |flag| {
            threads
                .iter()
                .map(move |thread| vec![flag; thread.ops.len()])
        };
        let mut around: Vec<Vec<bool>> = flags(!on_device).collect();
        let mut launching: Vec<Vec<bool>> = flags(!on_device).collect();
        if on_device {
            // All of them, selected or not: whether an operator counts does not depend on that.
            for work in &view.dissection.work {
                let Some(launcher) = view.launcher(work.launch) else {
                    continue;
                };
                let mut next = launcher.op.unwrap_or(NONE);
                if let Some(op) = launcher.op {
                    launching[launcher.thread][op as usize] = true;
                }
                let ops = &threads[launcher.thread].ops;
                while next != NONE && !around[launcher.thread][next as usize] {
                    around[launcher.thread][next as usize] = true;
                    next = ops[next as usize].parent;
                }
            }
        }
        Self { around, launching }
    }
}

type Costs = Vec<Option<(Model, Cost)>>;

/// The costs of all operators that may own a launch, by thread and operator.
fn costs(view: &View<'_>, near: &Nearby) -> Result<Vec<Costs>> {
    let trace = view.trace();
    let mut models: Vec<Option<Option<Model>>> = vec![None; trace.strings.len()];
    let mut wanted: Vec<(EventId, usize, u32)> = Vec::new();
    for (number, thread) in view.dissection.host.threads.iter().enumerate() {
        for (place, op) in (0u32..).zip(&thread.ops) {
            if op.dims.is_empty() || !near.around[number][place as usize] {
                continue;
            }
            let model =
                models[op.name.index()].get_or_insert_with(|| model_of(trace.strings.get(op.name)));
            if model.is_some() {
                wanted.push((op.event, number, place));
            }
        }
    }
    wanted.sort_unstable_by_key(|(event, _, _)| *event);
    let events: Vec<EventId> = wanted.iter().map(|(event, _, _)| *event).collect();
    let found = view.arguments(&events, &KEYS, |event, args| {
        let model = models[trace.events.name(event).index()]??;
        Some((model, (model.rule)(&Inputs::read(args)?)?))
    })?;
    let threads = view.dissection.host.threads.iter();
    let mut costs: Vec<Costs> = threads.map(|thread| vec![None; thread.ops.len()]).collect();
    for ((_, thread, op), cost) in wanted.into_iter().zip(found) {
        costs[thread][op as usize] = cost;
    }
    Ok(costs)
}

/// By operator: its own number when it counts, else [`NONE`].
fn chosen(thread: &HostThread, costs: &Costs, launching: &[bool], on_device: bool) -> Vec<u32> {
    let ops = &thread.ops;
    // Whether it is the innermost with a cost around some launch: parents come before their children.
    let mut nearest = vec![NONE; ops.len()];
    let mut owns = vec![false; ops.len()];
    for place in 0..ops.len() {
        nearest[place] = match costs[place] {
            Some(_) => u32::try_from(place).expect("fewer than 2^32 operators"),
            None => nearest
                .get(ops[place].parent as usize)
                .copied()
                .unwrap_or(NONE),
        };
        if launching[place] && nearest[place] != NONE {
            owns[nearest[place] as usize] = true;
        }
    }
    let mut chosen = vec![NONE; ops.len()];
    // By operator: the families that count in it and below.
    let mut below = vec![0_u16; ops.len()];
    for place in (0..ops.len()).rev() {
        if let (Some((model, _)), true) = (costs[place], owns[place]) {
            let excluded = match model.family {
                family if on_device || family.is_model() => family.excluded(),
                _ => u16::MAX,
            };
            if below[place] & excluded == 0 {
                chosen[place] = u32::try_from(place).expect("fewer than 2^32 operators");
                below[place] |= model.family.bit();
            }
        }
        let families = below[place];
        if let Some(parent) = below.get_mut(ops[place].parent as usize) {
            *parent |= families;
        }
    }
    chosen
}

/// What names of device work say, each looked at once.
#[derive(Default)]
struct KernelNames {
    tf32: BTreeMap<StrId, bool>,
}

impl KernelNames {
    /// True for kernels whose name says that they compute in TF32: `…_f32f32_tf32f32_f32_…`,
    /// `…_s1688gemm_…` (its instruction takes nothing else of 32 bits), `…xf32…` of AMD.
    fn is_tf32(&mut self, view: &View<'_>, work: &Work) -> bool {
        let name = view.trace().events.name(work.event);
        work.class == DeviceClass::Compute
            && *self.tf32.entry(name).or_insert_with(|| {
                let name = view.trace().strings.get(name).to_ascii_lowercase();
                ["tf32", "s1688", "xf32"]
                    .iter()
                    .any(|word| name.contains(word))
            })
    }

    /// True for copies between host and device.
    fn is_over_bus(view: &View<'_>, work: &Work) -> bool {
        let name = view.trace().name(work.event);
        work.class == DeviceClass::Memcpy
            && ["HtoD", "DtoH", "HostToDevice", "DeviceToHost"]
                .iter()
                .any(|word| name.contains(word))
    }
}
