//! Activity types: Kineto's own names for the kinds of events (`cat`).

/// The kind of an event, from its `cat`, matched without regard to case over all spellings that
/// Kineto has used since 2020.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ActivityType {
    /// Host operator (`cpu_op`, `Operator`).
    CpuOp,
    /// `record_function` range on the host.
    UserAnnotation,
    /// Mirror of an annotation on a device row: never work, never a phase.
    GpuUserAnnotation,
    /// Device kernel.
    Kernel,
    /// Device copy.
    GpuMemcpy,
    /// Device fill.
    GpuMemset,
    /// Kernel-like device work of MTIA (`mtia_ccp_events`).
    MtiaCcp,
    /// Runtime API call (`cuda_runtime`, `Runtime`, HIP, `xpu_runtime`, `mtia_runtime`, …).
    Runtime,
    /// Driver API call (`cuda_driver`, `xpu_driver`, …).
    Driver,
    /// Python frame.
    PythonFunction,
    /// Host instant such as `[memory]`.
    CpuInstantEvent,
    /// Profiler overhead.
    Overhead,
    /// Synchronisation record on a device row: not work.
    CudaSync,
    /// Event record on a device row: not work.
    CudaEvent,
    /// Counter or range of the hardware-counter profiler: not work.
    ProfilerRange,
    /// Launch flow between host and device (`ac2g` and older spellings).
    LaunchFlow,
    /// Flow between a forward operator and its backward node (`fwdbwd`).
    ForwardBackwardFlow,
    /// The capture span itself (`Trace`).
    Trace,
    /// Any other known host activity.
    OtherHost,
    /// No `cat`.
    Missing,
    /// A `cat` this table does not know.
    Unknown,
}

/// Spellings in lower case. Sources: the `ActivityType` table of libkineto over its history, and
/// the legacy exporters of PyTorch.
const NAMES: &[(&str, ActivityType)] = &[
    ("cpu_op", ActivityType::CpuOp),
    ("operator", ActivityType::CpuOp),
    ("net", ActivityType::CpuOp),
    ("hpu_op", ActivityType::CpuOp),
    ("user_annotation", ActivityType::UserAnnotation),
    ("user", ActivityType::UserAnnotation),
    ("gpu_user_annotation", ActivityType::GpuUserAnnotation),
    ("kernel", ActivityType::Kernel),
    ("gpu_memcpy", ActivityType::GpuMemcpy),
    ("memcpy", ActivityType::GpuMemcpy),
    ("gpu_memset", ActivityType::GpuMemset),
    ("memset", ActivityType::GpuMemset),
    ("mtia_ccp_events", ActivityType::MtiaCcp),
    ("cuda_runtime", ActivityType::Runtime),
    ("runtime", ActivityType::Runtime),
    ("hip_runtime", ActivityType::Runtime),
    ("xpu_runtime", ActivityType::Runtime),
    ("mtia_runtime", ActivityType::Runtime),
    ("glow_runtime", ActivityType::Runtime),
    ("privateuse1_runtime", ActivityType::Runtime),
    ("cuda_driver", ActivityType::Driver),
    ("xpu_driver", ActivityType::Driver),
    ("privateuse1_driver", ActivityType::Driver),
    ("python_function", ActivityType::PythonFunction),
    ("cpu_instant_event", ActivityType::CpuInstantEvent),
    ("overhead", ActivityType::Overhead),
    ("cuda_sync", ActivityType::CudaSync),
    ("xpu_sync", ActivityType::CudaSync),
    ("cuda_event", ActivityType::CudaEvent),
    ("cuda_profiler_range", ActivityType::ProfilerRange),
    ("xpu_scope_profiler", ActivityType::ProfilerRange),
    ("hardware_counters", ActivityType::ProfilerRange),
    ("nvml", ActivityType::ProfilerRange),
    ("ac2g", ActivityType::LaunchFlow),
    ("async_cpu_to_gpu", ActivityType::LaunchFlow),
    ("async_gpu", ActivityType::LaunchFlow),
    ("async", ActivityType::LaunchFlow),
    ("cpu_to_cuda", ActivityType::LaunchFlow),
    ("fwdbwd", ActivityType::ForwardBackwardFlow),
    ("forward_backward", ActivityType::ForwardBackwardFlow),
    ("trace", ActivityType::Trace),
    ("mtia_insight", ActivityType::OtherHost),
    ("mtia_counters", ActivityType::OtherHost),
    ("mtia_workloadd", ActivityType::OtherHost),
    ("collective_comm", ActivityType::OtherHost),
    ("external_correlation", ActivityType::OtherHost),
];

impl ActivityType {
    /// The type that the text of a `cat` names.
    pub fn from_cat(cat: &str) -> Self {
        if cat.is_empty() {
            return Self::Missing;
        }
        NAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(cat))
            .map_or(Self::Unknown, |(_, activity)| *activity)
    }

    /// The name of the type, whatever spelling a file has; `None` of what has no type that is known.
    pub(crate) fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::CpuOp => "cpu_op",
            Self::UserAnnotation => "user_annotation",
            Self::GpuUserAnnotation => "gpu_user_annotation",
            Self::Kernel => "kernel",
            Self::GpuMemcpy => "gpu_memcpy",
            Self::GpuMemset => "gpu_memset",
            Self::MtiaCcp => "mtia_ccp",
            Self::Runtime => "runtime",
            Self::Driver => "driver",
            Self::PythonFunction => "python_function",
            Self::CpuInstantEvent => "cpu_instant_event",
            Self::Overhead => "overhead",
            Self::CudaSync => "device_sync",
            Self::CudaEvent => "device_event",
            Self::ProfilerRange => "profiler_range",
            Self::LaunchFlow => "launch_flow",
            Self::ForwardBackwardFlow => "forward_backward_flow",
            Self::Trace => "trace",
            Self::OtherHost => "other_host",
            Self::Missing | Self::Unknown => return None,
        })
    }

    /// True for kinds that keep a device busy. Decided by `cat` alone, never by pid or stream.
    pub fn is_device_work(self) -> bool {
        matches!(
            self,
            Self::Kernel | Self::GpuMemcpy | Self::GpuMemset | Self::MtiaCcp
        )
    }

    /// True for the kinds whose arguments are in the table of launches: calls and flows.
    pub(crate) fn has_launch_args(self) -> bool {
        self.is_launch() || matches!(self, Self::LaunchFlow | Self::ForwardBackwardFlow)
    }

    /// True for host ranges whose arguments later stages use.
    pub(crate) fn has_op_args(self) -> bool {
        matches!(self, Self::CpuOp | Self::UserAnnotation)
    }

    /// True for host API calls that may launch device work.
    pub fn is_launch(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_kernel_are_kernels() {
        for cat in ["kernel", "Kernel", "KERNEL"] {
            assert_eq!(ActivityType::from_cat(cat), ActivityType::Kernel);
        }
        assert_eq!(
            ActivityType::from_cat("gpu_user_Annotation"),
            ActivityType::GpuUserAnnotation
        );
        assert_eq!(ActivityType::from_cat("kernels"), ActivityType::Unknown);
        assert_eq!(ActivityType::from_cat(""), ActivityType::Missing);
    }
}
