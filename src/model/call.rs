//! Calls of the runtimes and drivers of devices: what each does, by its name.

/// What a call of a runtime or driver does. Of calls that do several things, what its caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Call {
    /// Launches a kernel.
    Launch,
    /// Replays a graph.
    Replay,
    /// Begins to record launches into a graph.
    CaptureBegin,
    /// Ends it.
    CaptureEnd,
    /// Copies, and returns when that is asked for. A copy from pageable memory may still block.
    Copy,
    /// Copies, and returns when the copy is done.
    BlockingCopy,
    /// Fills memory of a device.
    Fill,
    /// Waits until a device has done what was asked of it.
    Wait,
    /// Asks whether it has.
    Query,
    /// Takes memory from the driver or gives it back: what a cache of memory is there to avoid.
    Memory,
    /// Anything else.
    Other,
}

/// How calls of CUDA and HIP begin. What follows is spelled alike.
const ALIKE: [&str; 3] = ["cuda", "cu", "hip"];

/// How calls for memory of CUDA and HIP go on; copies and fills go on otherwise.
const MEMORY: [&str; 15] = [
    "Malloc",
    "ExtMalloc",
    "Free",
    "HostAlloc",
    "HostMalloc",
    "HostFree",
    "MemAlloc",
    "MemFree",
    "MemHostAlloc",
    "MemCreate",
    "MemRelease",
    "MemMap",
    "MemUnmap",
    "MemAddress",
    "MemSetAccess",
];

/// How those of Level Zero begin.
const MEMORY_OF_ZE: [&str; 4] = ["zeMemAlloc", "zeMemFree", "zePhysicalMem", "zeVirtualMem"];

/// Calls of oneAPI's Unified Runtime, and of the plug-ins before it, that wait.
const WAITS_OF_UR: [&str; 4] = [
    "urQueueFinish",
    "urEventWait",
    "piQueueFinish",
    "piEventsWait",
];

/// Copies that concern no memory of the host: their calls return before they are done.
const ON_DEVICES: [&str; 6] = ["Async", "Peer", "DtoD", "DtoA", "AtoD", "AtoA"];

impl Call {
    /// How calls begin that are told apart here: of CUDA, HIP, Level Zero, and oneAPI's runtimes. Of others nobody
    /// knows that they do not wait, copy or take memory.
    pub(crate) const KNOWN: &'static [&'static str] = &["cu", "hip", "ze", "ur", "pi"];

    /// What the call named `name` does.
    pub(crate) fn of(name: &str) -> Self {
        let bare = ALIKE.iter().find_map(|library| name.strip_prefix(library));
        if (name.contains("Launch") && name.contains("Kernel"))
            || name.contains("EnqueueKernelLaunch")
        {
            Self::Launch
        } else if bare.is_some_and(|bare| bare.starts_with("GraphLaunch")) {
            Self::Replay
        } else if name.contains("StreamBeginCapture") {
            Self::CaptureBegin
        } else if name.contains("StreamEndCapture") {
            Self::CaptureEnd
        } else if name.ends_with("Synchronize") || WAITS_OF_UR.contains(&name) {
            Self::Wait
        } else if let Some(bare) = bare {
            Self::of_bare(bare)
        } else if name.contains("Memcpy") || name.contains("memcpy") {
            Self::Copy
        } else if MEMORY_OF_ZE.iter().any(|start| name.starts_with(start)) || is_memory_of_ur(name)
        {
            Self::Memory
        } else {
            Self::Other
        }
    }

    /// A call of CUDA or HIP, without the name of its library.
    fn of_bare(bare: &str) -> Self {
        if bare.starts_with("Memcpy") {
            let returns = ON_DEVICES.iter().any(|word| bare.contains(word));
            if returns {
                Self::Copy
            } else {
                Self::BlockingCopy
            }
        } else if bare.starts_with("Memset") {
            Self::Fill
        } else if matches!(bare, "EventQuery" | "StreamQuery") {
            Self::Query
        } else if MEMORY.iter().any(|start| bare.starts_with(start)) {
            Self::Memory
        } else {
            Self::Other
        }
    }

    /// Its name in tables; `None` of what has none.
    pub(crate) fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::Launch => "launch",
            Self::Replay => "replay",
            Self::CaptureBegin => "capture_begin",
            Self::CaptureEnd => "capture_end",
            Self::Copy => "copy",
            Self::BlockingCopy => "blocking_copy",
            Self::Fill => "fill",
            Self::Wait => "wait",
            Self::Query => "query",
            Self::Memory => "memory",
            Self::Other => return None,
        })
    }

    /// True for calls that return when a device has done what was asked of it.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Wait | Self::BlockingCopy)
    }

    /// True for calls after which a device may have done what was asked of it: also those that ask, for a program may
    /// ask until it has, and copies, for those of pageable memory block.
    pub(crate) fn may_wait(self) -> bool {
        self.waits() || matches!(self, Self::Query | Self::Copy)
    }
}

/// Calls of oneAPI's Unified Runtime and of the plug-ins before it, such as `urUSMDeviceAlloc` and `piextUSMFree`.
fn is_memory_of_ur(name: &str) -> bool {
    name.split_once("USM")
        .is_some_and(|(_, bare)| bare.ends_with("Alloc") || bare == "Free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: Call, names: &[&str]) {
        for name in names {
            assert_eq!(Call::of(name), expected, "{name}");
        }
    }

    #[test]
    fn calls_for_memory_are_no_copies() {
        check(
            Call::Memory,
            &[
                "cudaMalloc",
                "cudaFree",
                "cudaMallocAsync",
                "cudaFreeAsync",
                "cudaHostAlloc",
                "cudaFreeHost",
                "cuMemAlloc_v2",
                "cuMemFree_v2",
                "cuMemCreate",
                "cuMemUnmap",
                "cuMemAddressReserve",
                "hipMalloc",
                "hipFree",
                "hipHostFree",
                "hipExtMallocWithFlags",
                "urUSMDeviceAlloc",
                "urUSMFree",
                "zeMemAllocDevice",
            ],
        );
        check(
            Call::Other,
            &["Malloc", "aten::empty", "cudaMemGetInfo", "cudaEventRecord"],
        );
        check(
            Call::Fill,
            &["cudaMemsetAsync", "cuMemsetD8Async", "hipMemset"],
        );
    }

    #[test]
    fn a_copy_waits_unless_it_says_that_it_does_not() {
        check(
            Call::BlockingCopy,
            &[
                "cudaMemcpy",
                "cudaMemcpy2D",
                "cuMemcpyDtoH_v2",
                "hipMemcpy",
                "hipMemcpyWithStream",
            ],
        );
        check(
            Call::Copy,
            &[
                "cudaMemcpyAsync",
                "cudaMemcpyPeerAsync",
                "cuMemcpyDtoD_v2",
                "hipMemcpyAsync",
                "urEnqueueUSMMemcpy",
            ],
        );
    }

    #[test]
    fn calls_that_wait_end_in_synchronize() {
        check(
            Call::Wait,
            &[
                "cudaDeviceSynchronize",
                "cuCtxSynchronize",
                "hipStreamSynchronize",
                "zeEventHostSynchronize",
            ],
        );
        check(Call::Query, &["cudaEventQuery", "hipStreamQuery"]);
        check(
            Call::Launch,
            &[
                "cudaLaunchKernelExC",
                "hipExtModuleLaunchKernel",
                "urEnqueueKernelLaunch",
            ],
        );
        check(Call::Replay, &["cudaGraphLaunch", "hipGraphLaunch"]);
    }
}
