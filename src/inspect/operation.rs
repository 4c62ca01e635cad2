//! What a collective is called and how much it moves: one name for the many spellings of PyTorch, its
//! backends and NCCL's kernels, bytes of an element, and the factors of bus bandwidth.

/// An operation of many ranks by its name without underscores, suffixes and case, or what else `name`
/// says when it is none that is known.
///
/// `name` is a `Collective name` (`_allgather_base`), an annotation of a backend (`nccl:all_reduce`)
/// or the operator below it.
pub(super) fn operation_of(name: &str) -> String {
    let own = name.rsplit_once(':').map_or(name, |(_, own)| own);
    let letters: String = own
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let known = OPERATIONS.iter().find(|known| letters.starts_with(*known));
    known.map_or_else(|| own.to_owned(), |known| (*known).to_owned())
}

/// The operation that a kernel is for, by its own name.
pub(super) fn operation_of_kernel(name: &str) -> Option<&'static str> {
    let end = name.find(['(', '<']).unwrap_or(name.len());
    let letters: String = name[..end]
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    // `ncclDevKernel_Reduce_Sum_f32` reduces; what else has "reduce" in it does not say so.
    for prefix in ["nccldevkernel", "ncclkernel", "nccl", "rccl"] {
        if let Some(own) = letters.strip_prefix(prefix) {
            return OPERATIONS
                .iter()
                .find(|known| own.starts_with(*known))
                .copied();
        }
    }
    if letters.contains("crossdevicereduce") {
        return Some("allreduce");
    }
    OPERATIONS[..4]
        .iter()
        .find(|known| letters.contains(*known))
        .copied()
}

/// Known operations; one that starts like another comes before it.
const OPERATIONS: [&str; 12] = [
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "sendrecv",
    "send",
    "recv",
    "barrier",
];

/// True when no rank leaves before all have arrived, so that all end together.
pub(super) fn ends_together(operation: &str) -> bool {
    matches!(
        operation,
        "allreduce" | "allgather" | "reducescatter" | "alltoall" | "barrier"
    )
}

/// True for what two ranks do: others of the group take no part.
pub(super) fn is_point_to_point(operation: &str) -> bool {
    matches!(operation, "send" | "recv" | "sendrecv")
}

/// What algorithm bandwidth is multiplied with to get bus bandwidth, as nccl-tests defines it; `None`
/// where it is not defined or the size of the group is not known.
pub(super) fn bus_factor(operation: &str, ranks: Option<u64>) -> Option<f64> {
    let share = || {
        let ranks = ranks.filter(|ranks| *ranks > 0)?;
        Some((ranks - 1) as f64 / ranks as f64)
    };
    match operation {
        "allreduce" => share().map(|share| 2.0 * share),
        "allgather" | "reducescatter" | "alltoall" | "gather" | "scatter" => share(),
        "broadcast" | "reduce" | "send" | "recv" | "sendrecv" => Some(1.0),
        _ => None,
    }
}

/// PyTorch's name for a type of elements, from that name or from a C++ one.
pub(super) fn dtype_of(name: &str) -> &str {
    match name {
        "float" => "Float",
        "double" => "Double",
        "int" => "Int",
        "long" | "long int" => "Long",
        "short" | "short int" => "Short",
        "unsigned char" => "Byte",
        "signed char" | "char" => "Char",
        "bool" => "Bool",
        "c10::complex<float>" => "ComplexFloat",
        "c10::complex<double>" => "ComplexDouble",
        "c10::complex<c10::Half>" => "ComplexHalf",
        _ => name.strip_prefix("c10::").unwrap_or(name),
    }
}

/// Bytes of one element of a type, by PyTorch's name for it.
pub(super) fn element_bytes(dtype: &str) -> Option<i64> {
    Some(match dtype {
        "Byte" | "Char" | "Bool" | "QInt8" | "QUInt8" => 1,
        "Short" | "Half" | "BFloat16" | "UInt16" => 2,
        "Int" | "Float" | "ComplexHalf" | "UInt32" | "QInt32" => 4,
        "Long" | "Double" | "ComplexFloat" | "UInt64" => 8,
        "ComplexDouble" => 16,
        _ if dtype.starts_with("Float8_") => 1,
        _ => return None,
    })
}

/// How many elements a tensor of these dimensions has, for the first of `[[4,2048],[]]`.
pub(super) fn elements_of(dims: &str) -> Option<i64> {
    let first = dims.trim_start_matches('[');
    let depth = dims.len() - first.len();
    if !(2..=3).contains(&depth) || first.starts_with(']') {
        return None;
    }
    let (first, _) = first.split_once(']')?;
    let mut elements = 1_i64;
    for dim in first.split(',') {
        elements = elements.checked_mul(dim.parse().ok().filter(|dim| *dim >= 0)?)?;
    }
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_one_operation() {
        for (name, operation) in [
            ("allreduce", "allreduce"),
            ("_allgather_base", "allgather"),
            ("allgather_into_tensor_coalesced", "allgather"),
            ("reduce_scatter_tensor_coalesced", "reducescatter"),
            ("nccl:_reduce_scatter_base", "reducescatter"),
            ("gloo:all_reduce", "allreduce"),
            ("all_to_allv", "alltoall"),
            ("_broadcast_oop", "broadcast"),
            ("nccl:reduce", "reduce"),
            ("startCoalesced", "startCoalesced"),
        ] {
            assert_eq!(operation_of(name), operation, "{name}");
        }
    }

    #[test]
    fn kernels_say_what_they_are_for() {
        for (name, operation) in [
            (
                "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)",
                Some("allreduce"),
            ),
            (
                "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)",
                Some("sendrecv"),
            ),
            ("ncclDevKernel_Reduce_Sum_f32_RING_LL()", Some("reduce")),
            (
                "ncclDevKernel_ReduceScatter_Sum_bf16()",
                Some("reducescatter"),
            ),
            (
                "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
                None,
            ),
            ("ncclAllReduceRingLLKernel_sum_f32()", Some("allreduce")),
            (
                "void vllm::cross_device_reduce_1stage<float, 2>(x)",
                Some("allreduce"),
            ),
            ("multimem_all_gather_kernel", Some("allgather")),
            ("custom_reduce", None),
        ] {
            assert_eq!(operation_of_kernel(name), operation, "{name}");
        }
    }

    #[test]
    fn elements_have_a_size_and_busses_a_factor() {
        assert_eq!(element_bytes(dtype_of("c10::BFloat16")), Some(2));
        assert_eq!(element_bytes(dtype_of("long int")), Some(8));
        assert_eq!(element_bytes(dtype_of("Float8_e4m3fn")), Some(1));
        assert_eq!(element_bytes(dtype_of("c10::Strange")), None);
        assert_eq!(bus_factor("allreduce", Some(8)), Some(1.75));
        assert_eq!(bus_factor("allgather", Some(4)), Some(0.75));
        assert_eq!(bus_factor("allgather", None), None);
        assert_eq!(bus_factor("allreduce", Some(0)), None);
        assert_eq!(bus_factor("send", None), Some(1.0));
        assert_eq!(bus_factor("barrier", Some(2)), None);
    }

    #[test]
    fn dimensions_multiply() {
        assert_eq!(elements_of("[[4,2048,4096],[]]"), Some(4 * 2048 * 4096));
        assert_eq!(elements_of("[[[2,3]],[]]"), Some(6));
        assert_eq!(elements_of("[[],[3]]"), None);
        assert_eq!(elements_of("[[3,-1]]"), None);
        assert_eq!(
            elements_of("[[9223372036854775807,9223372036854775807]]"),
            None
        );
        assert_eq!(elements_of(""), None);
    }
}
