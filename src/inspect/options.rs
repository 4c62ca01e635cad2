//! How to break a trace down.

use regex::Regex;

use super::roofline::DeviceTable;
use crate::units::Ns;

/// How to break a trace down.
#[derive(Debug, Clone)]
pub struct InspectOptions {
    /// What to group rows by, beside what each table is grouped by in any case.
    pub by: Vec<By>,
    /// A gap on a stream up to so long, after which the host was ahead, is launch latency. HTA's
    /// `consecutive_kernel_delay` is 30 ns in its documentation.
    pub idle_threshold: Ns,
    /// Whose definitions to follow where they differ.
    pub definition: Definition,
    /// At most so many rows of names, and of examples such as the longest gaps; the others are put
    /// together in one row.
    pub top: usize,
    /// Groups of device work by names, at most [`MAX_GROUPS`](super::MAX_GROUPS); classes when empty.
    pub groups: Vec<(String, Regex)>,
    /// Ranges to look at instead of steps: annotations of the host whose name contains this.
    pub range: Option<String>,
    /// Which of those ranges, from 0 in order of time; all when `None`.
    pub instance: Option<usize>,
    /// Peak rates of devices that come before those that are known.
    pub devices: Option<DeviceTable>,
}

impl Default for InspectOptions {
    fn default() -> Self {
        Self {
            by: Vec::new(),
            idle_threshold: Ns(30_000),
            definition: Definition::Tracekit,
            top: 20,
            groups: Vec::new(),
            range: None,
            instance: None,
            devices: None,
        }
    }
}

impl InspectOptions {
    /// Rows as fine as they can be, with every name: what tables are made with.
    pub(crate) fn finest() -> Self {
        Self {
            by: vec![By::Phase, By::Step, By::Stream, By::Shape],
            top: 0,
            ..Self::default()
        }
    }
}

/// What rows may be grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// The training phase (bucket) of the device work or operator.
    Phase,
    /// The training step.
    Step,
    /// The stream of a device.
    Stream,
    /// The input dimensions of an operator, the grid and block of a kernel.
    Shape,
    /// The `nn.Module` around an operator, from Python frames.
    Module,
}

impl By {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Step => "step",
            Self::Stream => "stream",
            Self::Shape => "shape",
            Self::Module => "module",
        }
    }
}

/// Whose definitions to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// tracekit's own.
    Tracekit,
    /// Those of HolisticTraceAnalysis.
    Hta,
    /// Those of PyTorch's TensorBoard plugin.
    Tensorboard,
}

impl Definition {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tracekit => "tracekit",
            Self::Hta => "hta",
            Self::Tensorboard => "tensorboard",
        }
    }
}

impl InspectOptions {
    /// True when rows are to be grouped by `by`.
    pub fn is_by(&self, by: By) -> bool {
        self.by.contains(&by)
    }
}
