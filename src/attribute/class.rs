//! Classes of device work: compute, communication, copy, fill.

use regex::Regex;

use crate::model::ActivityType;

/// What a piece of device work does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceClass {
    /// Any other kernel.
    Compute,
    /// Collective or point-to-point communication.
    Communication,
    /// Copy.
    Memcpy,
    /// Fill.
    Memset,
}

impl DeviceClass {
    /// Every class, in the order in which they claim an instant.
    pub const ALL: [Self; 4] = [
        Self::Compute,
        Self::Communication,
        Self::Memcpy,
        Self::Memset,
    ];

    /// The spelling used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
        }
    }

    /// The class of an event of kind `activity` called `name`.
    ///
    /// Kernels are communication when their name has a word of a communication library or of a
    /// custom all-reduce (`comm` adds the user's own), and copies or fills when ROCm runs those as
    /// kernels.
    pub fn of(activity: ActivityType, name: &str, comm: &[Regex]) -> Self {
        match activity {
            ActivityType::GpuMemcpy => Self::Memcpy,
            ActivityType::GpuMemset => Self::Memset,
            _ if comm.iter().any(|pattern| pattern.is_match(name)) => Self::Communication,
            _ if starts_with_any(name, COPY_KERNELS) => Self::Memcpy,
            _ if starts_with_any(name, FILL_KERNELS) => Self::Memset,
            _ if has_any(name, COMMUNICATION_WORDS) => Self::Communication,
            _ => Self::Compute,
        }
    }
}

/// Words in kernel names, in lower case. NCCL and RCCL kernels have `nccl` (`ncclKernel_…`,
/// `ncclDevKernel_…`); the others are oneCCL, MSCCL(++), and the custom all-reduces of PyTorch
/// symmetric memory, vLLM and SGLang.
const COMMUNICATION_WORDS: &[&str] = &[
    "nccl",
    "rccl",
    "oneccl",
    "msccl",
    "cross_device_reduce",
    "multimem_all_reduce",
    "multimem_one_shot_all_reduce",
    "multimem_all_gather",
    "multimem_reduce_scatter",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
    "custom_all_reduce",
    "all_reduce_kernel",
    "allreduce_kernel",
    "allreduce_fusion_kernel",
];
const COPY_KERNELS: &[&str] = &["__amd_rocclr_copyBuffer", "MEMORY_COPY_"];
const FILL_KERNELS: &[&str] = &["__amd_rocclr_fillBuffer"];

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn has_any(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
        || name.starts_with("all_reduce_")
        || name.contains("::all_reduce_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_the_class_of_kernels_only() {
        let of = |activity, name| DeviceClass::of(activity, name, &[]);
        let kernel = |name| of(ActivityType::Kernel, name);
        assert_eq!(
            kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
            DeviceClass::Communication
        );
        assert_eq!(
            kernel("void vllm::cross_device_reduce_1stage<float, 2>"),
            DeviceClass::Communication
        );
        assert_eq!(kernel("__amd_rocclr_copyBuffer"), DeviceClass::Memcpy);
        assert_eq!(kernel("gemm_all"), DeviceClass::Compute);
        assert_eq!(
            of(ActivityType::GpuMemcpy, "nccl copy"),
            DeviceClass::Memcpy
        );
        let user = [Regex::new("^gemm_").unwrap()];
        assert_eq!(
            DeviceClass::of(ActivityType::Kernel, "gemm_all", &user),
            DeviceClass::Communication
        );
    }
}
