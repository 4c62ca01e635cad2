//! Operators: how often each was called, what it cost on the host, and what it had devices do.
//!
//! ```text
//! host     aten::linear ───────────────┐      calls 1, total 14, self 14 − 10 = 4
//!            aten::addmm ──────────┐   │      calls 1, total 10, self 10
//!              ↓ launch  ↓ launch  │   │
//! device       ├─ a ─┤ ├── b ──┤            addmm: direct a + b, total a + b
//!                                             linear: direct 0, total a + b
//! ```
//! - *Host total* sums the calls; *host self* leaves out what operators inside took.
//! - *Device direct* is the work whose launch was made in the operator and in none inside it. Every piece
//!   of device work is in one row: without an operator around its launch in `(no operator)`, by the
//!   name of the launching call; launched before profiling in `(pre-window)`; with its launch missing in
//!   `(unlinked)`. So the direct sums of all rows add up to the total of `tracekit attribute`, exactly.
//! - *Device total* is the work launched in the operator or in any inside it.
//! - An operator inside one of the same name (`aten::sum` calls itself) is a call and has self time, but
//!   adds nothing to a total: no time counts twice under one name. Hence totals, too, add up over the
//!   rows of one name, whatever rows are grouped by: the outermost one has the time.
//! - Device work counts in the phase and step it was launched in, a call in the phase and step in which
//!   it starts. An operator over several has device time in each.
//!
//! Totals of different names overlap, so they do not add up, and `(others)` has none.
//!
//! Sources: the operator view of PyTorch's TensorBoard plugin, and TraceLens's kernel launchers, which
//! both leave out work without an operator.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use super::annotation;
use super::device_time::DeviceTime;
use super::frame::{Frame, Unit};
use super::hta_breakdown;
use super::matrix_units::MatrixUnits;
use super::module::{Modules, Place};
use super::nesting::{self, Sums};
use super::operator_view;
use super::options::{By, Definition};
use super::subject::{Inspected, Subject, stacked};
use super::tensor_core;
use super::view::View;
use crate::attribute::{Bucket, NONE, Op, Work};
use crate::error::Result;
use crate::model::StrId;
use crate::units::Ns;

/// Host and device time by operator.
pub(super) struct Operators;

impl Subject for Operators {
    type Seen = Vec<Frame>;

    fn look(&self, view: &View<'_>) -> Result<Self::Seen> {
        Ok(match view.options.definition {
            Definition::Tracekit => {
                let rows = rows(view);
                let operators = frame(view, &shown(rows, view.options.top));
                vec![operators, annotation::annotations(view)]
            }
            Definition::Hta => hta_breakdown::annotations(view),
            Definition::Tensorboard => vec![operator_view::operators(view)],
        })
    }

    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame> {
        stacked(files)
    }
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// Operators of this name.
    Operator(String),
    /// Work launched in no operator, by this call.
    NoOperator(String),
    /// Work launched before profiling started.
    PreWindow,
    /// Work whose launch is not in the file.
    Unlinked,
    /// The operators that are not named.
    Others,
}

impl About {
    fn name(&self) -> &str {
        match self {
            Self::Operator(name) => name,
            Self::NoOperator(_) => "(no operator)",
            Self::PreWindow => "(pre-window)",
            Self::Unlinked => "(unlinked)",
            Self::Others => "(others)",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone)]
struct Row {
    about: About,
    dims: Option<String>,
    phase: Option<Bucket>,
    step: Option<String>,
    module: Option<String>,
    line: Option<String>,
    calls: u64,
    host_total: Ns,
    host_self: Ns,
    direct: DeviceTime,
    total: Below,
}

/// Device time launched in an operator or in any inside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Below {
    sum: Ns,
    matrix: Ns,
}

impl Below {
    fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.matrix += other.matrix;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    Operator(StrId),
    NoOperator(StrId),
    PreWindow,
    Unlinked,
}

/// Phase and step of a call or of device work, where rows are grouped by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct When {
    phase: Option<Bucket>,
    step: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    who: Who,
    dims: StrId,
    place: Place,
    when: When,
}

#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    calls: u64,
    host_total: Ns,
    host_self: Ns,
    direct: DeviceTime,
    total: Below,
}

/// What operators and work are grouped by.
struct Grouping<'v> {
    view: &'v View<'v>,
    modules: Option<Modules>,
    by_shape: bool,
    by_phase: bool,
    by_step: bool,
    /// By step: the first of its name.
    same_step: Vec<u32>,
}

impl<'v> Grouping<'v> {
    fn new(view: &'v View<'v>) -> Self {
        let is_by = |by| view.options.is_by(by);
        Self {
            view,
            modules: is_by(By::Module).then(|| Modules::new(view)),
            by_shape: is_by(By::Shape),
            by_phase: is_by(By::Phase),
            by_step: is_by(By::Step),
            same_step: view.first_of_name(),
        }
    }

    fn when(&self, phase: impl FnOnce() -> Bucket, step: u32) -> When {
        let step = self.same_step.get(step as usize).copied().unwrap_or(NONE);
        When {
            phase: self.by_phase.then(phase),
            step: if self.by_step { step } else { NONE },
        }
    }

    fn key(&self, thread: usize, number: usize, op: &Op, when: When) -> Key {
        let place = |modules: &Modules| modules.place(thread, number);
        Key {
            who: Who::Operator(op.name),
            dims: if self.by_shape { op.dims } else { StrId::EMPTY },
            place: self.modules.as_ref().map_or(Place::NOWHERE, place),
            when,
        }
    }

    /// The row that has `work` as direct.
    fn key_of_work(&self, work: &Work) -> Key {
        let when = self.when(|| work.bucket, work.step);
        let special = |who| Key {
            who,
            dims: StrId::EMPTY,
            place: Place::NOWHERE,
            when,
        };
        let launcher = self.view.launcher(work.launch);
        if let Some(launcher) = launcher
            && let (Some(number), Some(op)) = (launcher.op, self.view.op(launcher))
        {
            return self.key(launcher.thread, number as usize, op, when);
        }
        match (work.bucket, self.view.launch(work)) {
            (Bucket::PreWindow, _) => special(Who::PreWindow),
            (Bucket::Phase(_), Some(launch)) => {
                let name = self.view.trace().events.name(launch.event);
                special(Who::NoOperator(name))
            }
            _ => special(Who::Unlinked),
        }
    }
}

fn rows(view: &View<'_>) -> Vec<Row> {
    let grouping = Grouping::new(view);
    let mut found: HashMap<Key, Numbers> = HashMap::default();
    let threads = &view.dissection.host.threads;
    let outermost: Vec<Vec<bool>> = threads.iter().map(nesting::outermost_of_name).collect();
    for (number, thread) in threads.iter().enumerate() {
        for (place, op) in thread.ops.iter().enumerate() {
            let step = view.step_at(number, op.span.start);
            if !view.wants(step) {
                continue;
            }
            let phase = || {
                let judge = view.dissection.judge;
                let verdict = judge.verdict(op.span.start, number, number_of(place));
                Bucket::Phase(verdict.placement.phase)
            };
            let when = grouping.when(phase, step.unwrap_or(NONE));
            let numbers = found
                .entry(grouping.key(number, place, op, when))
                .or_default();
            numbers.calls += 1;
            numbers.host_self += op.self_ns;
            if outermost[number][place] {
                numbers.host_total += op.span.len();
            }
        }
    }
    let mut own: Vec<Vec<Sums<When, Below>>> = threads
        .iter()
        .map(|thread| vec![Vec::new(); thread.ops.len()])
        .collect();
    let mut on_matrix_units = MatrixUnits::default();
    for work in view.work() {
        let key = grouping.key_of_work(work);
        let matrix = on_matrix_units.has(view, work);
        found.entry(key).or_default().direct.count(work, matrix);
        let sum = work.span.len();
        let matrix = if matrix { sum } else { Ns::ZERO };
        let below = Below { sum, matrix };
        match view.launcher(work.launch) {
            Some(launcher) if let Some(op) = launcher.op => {
                let sums = &mut own[launcher.thread][op as usize];
                nesting::add(sums, key.when, below, Below::add);
            }
            _ => found.entry(key).or_default().total.add(below),
        }
    }
    for (number, (thread, own)) in threads.iter().zip(own).enumerate() {
        nesting::below(thread, own, Below::add, |place, sums| {
            if !outermost[number][place] {
                return;
            }
            let op = &thread.ops[place];
            for (when, below) in sums {
                let key = grouping.key(number, place, op, *when);
                found.entry(key).or_default().total.add(*below);
            }
        });
    }
    let mut rows: Vec<Row> = Vec::with_capacity(found.len());
    #[expect(clippy::iter_over_hash_type, reason = "sorted by content below")]
    for (key, numbers) in found {
        rows.push(row(view, &grouping, key, numbers));
    }
    rows.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
    rows
}

fn number_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE)
}

fn row(view: &View<'_>, grouping: &Grouping<'_>, key: Key, numbers: Numbers) -> Row {
    let text = |name: StrId| view.trace().strings.get(name).to_owned();
    let given = |name: StrId| (name != StrId::EMPTY).then(|| text(name));
    let modules = grouping.modules.as_ref();
    Row {
        about: match key.who {
            Who::Operator(name) => About::Operator(text(name)),
            Who::NoOperator(call) => About::NoOperator(text(call)),
            Who::PreWindow => About::PreWindow,
            Who::Unlinked => About::Unlinked,
        },
        dims: given(key.dims),
        phase: key.when.phase,
        step: view.step_name(key.when.step).map(str::to_owned),
        module: modules.and_then(|modules| modules.path(view, key.place.module)),
        line: given(key.place.line),
        calls: numbers.calls,
        host_total: numbers.host_total,
        host_self: numbers.host_self,
        direct: numbers.direct,
        total: numbers.total,
    }
}

/// The largest first: by device total, then by host total, then by what the row is about.
fn order(row: &Row) -> impl Ord + '_ {
    (
        Reverse((row.total.sum, row.host_total)),
        &row.about,
        (&row.dims, row.phase, &row.step, &row.module, &row.line),
        (row.calls, row.host_self, row.direct.sum, row.direct.events),
    )
}

/// All rows of the `top` names with the most device and host time, and the others as one. Rows that are
/// about no operator stay. 0 is all.
fn shown(rows: Vec<Row>, top: usize) -> Vec<Row> {
    let mut names: BTreeMap<&About, (Ns, Ns)> = BTreeMap::new();
    for row in &rows {
        if matches!(row.about, About::Operator(_)) {
            let sums = names.entry(&row.about).or_default();
            sums.0 += row.total.sum;
            sums.1 += row.host_total;
        }
    }
    if top == 0 || names.len() <= top {
        return rows;
    }
    let mut ranked: Vec<(Reverse<(Ns, Ns)>, &About)> = names
        .into_iter()
        .map(|(name, sums)| (Reverse(sums), name))
        .collect();
    ranked.sort_unstable();
    let named: BTreeSet<About> = ranked[..top]
        .iter()
        .map(|(_, name)| (*name).clone())
        .collect();
    let mut shown = Vec::new();
    let mut others = Row {
        about: About::Others,
        dims: None,
        phase: None,
        step: None,
        module: None,
        line: None,
        calls: 0,
        host_total: Ns::ZERO,
        host_self: Ns::ZERO,
        direct: DeviceTime::default(),
        total: Below::default(),
    };
    for row in rows {
        if named.contains(&row.about) || !matches!(row.about, About::Operator(_)) {
            shown.push(row);
            continue;
        }
        others.calls += row.calls;
        others.host_self += row.host_self;
        others.direct.events += row.direct.events;
        others.direct.sum += row.direct.sum;
        others.direct.matrix += row.direct.matrix;
    }
    shown.push(others);
    shown
}

fn frame(view: &View<'_>, rows: &[Row]) -> Frame {
    let has_device_work = !view.trace().events.device_args.is_empty();
    let total: Ns = rows.iter().map(|row| row.direct.sum).sum();
    let is_operator = |row: &Row| matches!(row.about, About::Operator(_));
    let has_host = |row: &Row| is_operator(row) || row.about == About::Others;
    let mut frame = Frame::new(
        "operators",
        "Operators by device time launched in them, themselves (direct) or with all inside (total).",
    )
    .text("operator", rows, |row| Some(row.about.name().to_owned()))
    .text("call", rows, |row| match &row.about {
        About::NoOperator(call) => Some(call.clone()),
        _ => None,
    });
    let is_by = |by| view.options.is_by(by);
    if is_by(By::Shape) {
        frame = frame.text("input_dims", rows, |row| row.dims.clone());
    }
    if is_by(By::Phase) {
        frame = frame.text("phase", rows, |row| row.phase.map(Bucket::as_str));
    }
    if is_by(By::Step) {
        frame = frame.text("step", rows, |row| row.step.clone());
    }
    if is_by(By::Module) {
        frame =
            frame
                .text("module", rows, |row| row.module.clone())
                .text("python_line", rows, |row| row.line.clone());
    }
    let device = |row: &Row, time: Ns| {
        let measured = has_device_work && row.about != About::Others;
        measured.then_some(time)
    };
    frame
        .count("calls", rows, |row| has_host(row).then_some(row.calls))
        .ns("host_total_ns", rows, |row| {
            is_operator(row).then_some(row.host_total)
        })
        .ns("host_self_ns", rows, |row| {
            has_host(row).then_some(row.host_self)
        })
        .count("device_events", rows, |row| {
            has_device_work.then_some(row.direct.events)
        })
        .ns("device_direct_ns", rows, |row| {
            has_device_work.then_some(row.direct.sum)
        })
        .ns("device_direct_busy_ns", rows, |row| {
            device(row, row.direct.busy)
        })
        .ns("device_total_ns", rows, |row| device(row, row.total.sum))
        .float("share", Unit::Ratio, rows, |row| {
            row.direct.sum.ratio(total)
        })
        .float("total_share", Unit::Ratio, rows, |row| {
            device(row, row.total.sum)?.ratio(total)
        })
        .flag("tensor_core_eligible", rows, |row| match &row.about {
            About::Operator(name) => Some(tensor_core::is_open_to(name)),
            _ => None,
        })
        .ns("tensor_core_direct_ns", rows, |row| {
            has_device_work.then_some(row.direct.matrix)
        })
        .ns("tensor_core_total_ns", rows, |row| {
            device(row, row.total.matrix)
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cells, frames};
    use super::super::{By, InspectOptions, Topic};
    use crate::attribute::trace_in_lines;

    const TRACE: &str = r"
        note 1/1 0 100 ProfilerStep#4
        frame 1/1 0 90 train.py(9): step
        frame 1/1 1 30 nn.Module: Net_0
        frame 1/1 2 28 net.py(5): forward
        frame 1/1 3 20 nn.Module: Linear_0
        frame 1/1 3 19 torch/nn/modules/linear.py(1): forward
        op 1/1 5 14 aten::linear seq=7 dims=[[2,8],[8,8]]
        op 1/1 6 10 aten::addmm seq=7 dims=[[8]]
        launch 1/1 7 1 cudaLaunchKernel corr=11
        launch 1/1 9 1 cudaLaunchKernel corr=12
        op 1/1 24 4 aten::sum seq=8
        op 1/1 25 2 aten::sum seq=9
        launch 1/1 26 1 cudaLaunchKernel corr=13
        launch 1/1 40 1 cudaMemcpyAsync corr=14
        op 1/2 50 20 autograd::engine::evaluate_function: AddmmBackward0 seq=7 fwd=1
        op 1/2 51 18 AddmmBackward0 seq=7 fwd=1
        launch 1/2 52 1 cudaLaunchKernel corr=15
        kernel 0/7 10 5 s884gemm corr=11
        kernel 0/9 13 5 add corr=12
        kernel 0/7 30 3 reduce corr=13
        memcpy 0/9 45 4 Memcpy HtoD corr=14
        kernel 0/7 60 6 gemm corr=15
        kernel 0/7 1 2 early corr=3
        kernel 0/7 70 1 stray corr=900";

    fn seen(by: &[By], top: usize, columns: &[&str]) -> Vec<String> {
        let options = InspectOptions {
            by: by.to_vec(),
            top,
            ..InspectOptions::default()
        };
        let seen = frames(&trace_in_lines(TRACE), Topic::Operators, &options);
        cells(&seen, "operators", columns)
    }

    #[test]
    fn calls_have_host_and_device_time() {
        let columns = [
            "operator",
            "calls",
            "host_total_ns",
            "host_self_ns",
            "device_events",
            "device_direct_ns",
            "device_direct_busy_ns",
            "device_total_ns",
            "tensor_core_total_ns",
        ];
        // The two kernels of addmm overlap by 2 µs; the inner aten::sum adds nothing to a total.
        assert_eq!(
            seen(&[], 0, &columns),
            [
                "aten::linear 1 14000 4000 0 0 0 10000 5000",
                "aten::addmm 1 10000 10000 2 10000 8000 10000 5000",
                "autograd::engine::evaluate_function: AddmmBackward0 1 20000 2000 0 0 0 6000 0",
                "AddmmBackward0 1 18000 18000 1 6000 6000 6000 0",
                "(no operator) - - - 1 4000 4000 4000 0",
                "aten::sum 2 4000 4000 1 3000 3000 3000 0",
                "(pre-window) - - - 1 2000 2000 2000 0",
                "(unlinked) - - - 1 1000 1000 1000 0",
            ]
        );
    }

    #[test]
    fn the_others_keep_the_sums_and_rows_about_no_operator_stay() {
        let columns = [
            "operator",
            "call",
            "calls",
            "device_direct_ns",
            "device_total_ns",
        ];
        assert_eq!(
            seen(&[], 2, &columns),
            [
                "aten::linear - 1 0 10000",
                "aten::addmm - 1 10000 10000",
                "(no operator) cudaMemcpyAsync - 4000 4000",
                "(pre-window) - - 2000 2000",
                "(unlinked) - - 1000 1000",
                "(others) - 4 9000 -",
            ]
        );
    }

    #[test]
    fn backward_operators_have_the_module_of_the_forward_operator() {
        let columns = ["operator", "module", "python_line", "device_total_ns"];
        let rows = seen(&[By::Module], 0, &columns);
        let of = |name: &str| {
            let row = rows.iter().find(|row| row.starts_with(name)).unwrap();
            row.strip_prefix(name).unwrap().trim().to_owned()
        };
        assert_eq!(of("aten::addmm"), "Net_0.Linear_0 net.py(5): forward 10000");
        assert_eq!(
            of("AddmmBackward0"),
            "Net_0.Linear_0 net.py(5): forward 6000"
        );
        assert_eq!(of("aten::sum"), "Net_0 net.py(5): forward 3000");
    }

    #[test]
    fn rows_may_be_told_apart() {
        let columns = [
            "operator",
            "input_dims",
            "phase",
            "step",
            "calls",
            "device_total_ns",
        ];
        let rows = seen(&[By::Shape, By::Phase, By::Step], 0, &columns);
        for row in [
            "aten::linear [[2,8],[8,8]] forward ProfilerStep#4 1 10000",
            "AddmmBackward0 - backward ProfilerStep#4 1 6000",
            "(pre-window) - pre_window - - 2000",
        ] {
            assert!(
                rows.iter().any(|got| got == row),
                "{row} is not in {rows:#?}"
            );
        }
    }
}
