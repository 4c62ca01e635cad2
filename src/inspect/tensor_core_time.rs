//! Time of kernels on tensor cores, and of kernels that could be there.
//!
//! What could be there (*eligible*) was launched by an operator that autocast runs in half precision, the
//! innermost around its launch. PyTorch's TensorBoard plugin says otherwise (`--definition tensorboard`):
//!
//! ```text
//! aten::conv2d                          in its list, but so is one inside: not eligible itself
//!   aten::cudnn_convolution             in its list, none inside: eligible with all its kernels
//!     ↓ nchwToNhwc  ↓ s884gemm
//! ConvolutionBackward0
//!   aten::convolution_backward  #1      not in its list, but launches s1688gemm: eligible
//!     ↓ nchwToNhwc  ↓ s1688gemm
//!   aten::convolution_backward  #2      not in its list, and launches none of the kind: not eligible
//!     ↓ wgrad_alg0_engine
//! ```
//! - An operator is eligible when it is in the plugin's list or launches a kernel that it takes to use tensor
//!   cores; what has an eligible operator inside does not count itself.
//! - The share is of kernels that operators launched, not of all.
//! - An operator that is one call with one inside it has the kernels of that one only.

use super::frame::{Frame, Unit};
use super::matrix_units::MatrixUnits;
use super::operator_view::{is_shown, merged};
use super::options::Definition;
use super::tensor_core;
use super::view::{Launcher, View};
use crate::attribute::{DeviceClass, NONE, Work};
use crate::model::ActivityType;
use crate::units::Ns;

/// Kernels of one device.
#[derive(Default)]
struct Row {
    device: i64,
    kernels: Ns,
    used: Ns,
    /// Launched by operators.
    launched: Ns,
    eligible: Ns,
}

/// One row a device.
pub(super) fn frame(view: &View<'_>) -> Frame {
    let is_plugin = view.options.definition == Definition::Tensorboard;
    let rows = if is_plugin {
        by_plugin(view)
    } else {
        own(view)
    };
    let mut frame = Frame::new(
        "tensor_cores",
        "Time of kernels on tensor cores, and of kernels launched by operators that could use them.",
    )
    .id("device", &rows, |row| Some(row.device))
    .ns("kernels_ns", &rows, |row| Some(row.kernels))
    .ns("used_ns", &rows, |row| Some(row.used))
    .float("used_share", Unit::Ratio, &rows, |row| {
        row.used.ratio(row.kernels)
    });
    if is_plugin {
        frame = frame.ns("in_operators_ns", &rows, |row| Some(row.launched));
    }
    let whole = |row: &Row| {
        if is_plugin { row.launched } else { row.kernels }
    };
    frame
        .ns("eligible_ns", &rows, |row| Some(row.eligible))
        .float("eligible_share", Unit::Ratio, &rows, |row| {
            row.eligible.ratio(whole(row))
        })
}

fn own(view: &View<'_>) -> Vec<Row> {
    let strings = &view.trace().strings;
    let is_kernel = |work: &Work| {
        matches!(
            work.class,
            DeviceClass::Compute | DeviceClass::Communication
        )
    };
    rows(view, is_kernel, |row, work| {
        let op = view.launcher(work.launch).and_then(|it| view.op(it));
        if op.is_some_and(|op| tensor_core::is_open_to(strings.get(op.name))) {
            row.eligible += work.span.len();
        }
    })
}

fn by_plugin(view: &View<'_>) -> Vec<Row> {
    let events = &view.trace().events;
    let is_kernel = |work: &Work| events.activity(work.event) == ActivityType::Kernel;
    let eligible = Eligible::new(view, is_kernel);
    rows(view, is_kernel, |row, work| {
        let Some((launcher, op)) = launcher(view, work) else {
            return;
        };
        let counts = eligible.counts(view, launcher.thread, op);
        if counts.in_operators {
            row.launched += work.span.len();
        }
        if counts.is_eligible {
            row.eligible += work.span.len();
        }
    })
}

/// One row a device with kernels; `count` is given each kernel.
fn rows(
    view: &View<'_>,
    is_kernel: impl Fn(&Work) -> bool,
    count: impl Fn(&mut Row, &Work),
) -> Vec<Row> {
    let mut on_matrix_units = MatrixUnits::default();
    let mut rows = Vec::new();
    for (device, work) in view.devices() {
        let mut row = Row {
            device,
            ..Row::default()
        };
        for work in work.into_iter().filter(|work| is_kernel(work)) {
            row.kernels += work.span.len();
            if on_matrix_units.has(view, work) {
                row.used += work.span.len();
            }
            count(&mut row, work);
        }
        rows.push(row);
    }
    rows
}

/// Where `work` was launched: in which operator.
fn launcher(view: &View<'_>, work: &Work) -> Option<(Launcher, usize)> {
    let launcher = view.launcher(work.launch)?;
    Some((launcher, launcher.op? as usize))
}

/// Which operators the plugin takes to be eligible.
struct Eligible {
    /// By thread, by operator.
    eligible: Vec<Vec<bool>>,
    /// An operator inside is one call with it: its own kernels are lost.
    is_around: Vec<Vec<bool>>,
}

/// How the kernels that an operator launched itself count.
struct Counts {
    in_operators: bool,
    is_eligible: bool,
}

impl Eligible {
    fn new(view: &View<'_>, is_kernel: impl Fn(&Work) -> bool) -> Self {
        let strings = &view.trace().strings;
        let threads = &view.dissection.host.threads;
        let mut uses: Vec<Vec<bool>> = threads
            .iter()
            .map(|thread| vec![false; thread.ops.len()])
            .collect();
        let mut on_matrix_units = MatrixUnits::default();
        for work in view.work().filter(|work| is_kernel(work)) {
            if let Some((launcher, op)) = launcher(view, work)
                && on_matrix_units.has(view, work)
            {
                uses[launcher.thread][op] = true;
            }
        }
        let mut found = Self {
            eligible: Vec::with_capacity(threads.len()),
            is_around: Vec::with_capacity(threads.len()),
        };
        for (thread, mut uses) in threads.iter().zip(uses) {
            let merged = merged(&thread.ops);
            let mut eligible = vec![false; thread.ops.len()];
            let mut is_around = vec![false; thread.ops.len()];
            // Some operator inside is eligible.
            let mut inside = vec![false; thread.ops.len()];
            // An operator lies behind the one around it.
            for (place, op) in thread.ops.iter().enumerate().rev() {
                let parent = op.parent as usize;
                if merged[place] {
                    is_around[parent] = true;
                    uses[parent] = uses[place];
                    inside[parent] = inside[place];
                    continue;
                }
                let name = strings.get(op.name);
                let own = uses[place] || tensor_core::is_open_to_by_plugin(name);
                eligible[place] = own && !inside[place];
                if op.parent != NONE {
                    inside[parent] |= own || inside[place];
                }
            }
            // Those that are one call with the one around them, from the outside in.
            for (place, op) in thread.ops.iter().enumerate() {
                if merged[place] {
                    eligible[place] = eligible[op.parent as usize];
                }
            }
            found.eligible.push(eligible);
            found.is_around.push(is_around);
        }
        found
    }

    fn counts(&self, view: &View<'_>, thread: usize, op: usize) -> Counts {
        let name = view.thread(thread).ops[op].name;
        let is_there = !self.is_around[thread][op];
        Counts {
            in_operators: is_there && is_shown(view.trace().strings.get(name)),
            is_eligible: is_there && self.eligible[thread][op],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cells, frames};
    use super::super::{Definition, InspectOptions, Topic};
    use crate::attribute::trace_in_lines;

    #[test]
    fn the_plugin_takes_an_operator_by_its_kernels_and_only_the_innermost() {
        let trace = trace_in_lines(
            r"
            op 1/1 0 20 aten::conv2d
            launch 1/1 1 1 cudaLaunchKernel corr=10
            op 1/1 5 10 aten::cudnn_convolution
            launch 1/1 6 1 cudaLaunchKernel corr=11
            op 1/1 30 8 aten::convolution_backward
            launch 1/1 31 1 cudaLaunchKernel corr=12
            launch 1/1 33 1 cudaLaunchKernel corr=13
            op 1/1 40 8 aten::convolution_backward
            launch 1/1 41 1 cudaLaunchKernel corr=14
            op 1/1 50 9 aten::mm
            launch 1/1 51 1 cudaLaunchKernel corr=15
            op 1/1 53 4 aten::mm
            launch 1/1 54 1 cudaLaunchKernel corr=16
            op 1/1 60 9 Optimizer.step#SGD.step
            launch 1/1 61 1 cudaLaunchKernel corr=17
            launch 1/1 90 1 cudaLaunchKernel corr=18
            kernel 0/7 100 1 pad corr=10
            kernel 0/7 110 2 s884gemm corr=11
            kernel 0/7 120 4 pad corr=12
            kernel 0/7 130 8 s1688gemm corr=13
            kernel 0/7 140 16 wgrad_alg0_engine corr=14
            kernel 0/7 160 32 gemm corr=15
            kernel 0/7 200 64 gemm corr=16
            kernel 0/7 300 128 adam corr=17
            kernel 0/7 500 256 stray corr=18",
        );
        let seen = |definition| {
            let options = InspectOptions {
                definition,
                ..InspectOptions::default()
            };
            frames(&trace, Topic::Kernels, &options)
        };
        // cudnn_convolution 2; the first convolution_backward 4 + 8; the inner aten::mm 64.
        // Of what operators launched: not the outer aten::mm (32), not the optimizer, not the stray.
        let columns = ["kernels_ns", "used_ns", "in_operators_ns", "eligible_ns"];
        assert_eq!(
            cells(&seen(Definition::Tensorboard), "tensor_cores", &columns),
            ["511000 10000 95000 78000"]
        );
        // Ours: whatever the innermost of these operators launched.
        let columns = ["kernels_ns", "used_ns", "eligible_ns"];
        assert_eq!(
            cells(&seen(Definition::Tracekit), "tensor_cores", &columns),
            ["511000 10000 127000"]
        );
    }
}
