//! Made-up traces of training with many names and with events of memory.

use std::fmt::Write as _;

use super::training::{Training, trace};

/// What kernels are called, before their number.
const KERNEL: &str =
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>";

/// The trace of `of` with a name of its own for each operator and kernel of a step, and what each allocates and frees.
pub(crate) fn rich(of: Training) -> String {
    let mut out = String::new();
    let mut link = 0_u32;
    let mut memory = 0_u32;
    for line in trace(of).lines() {
        let is_operator = line.contains("\"cat\": \"cpu_op\"");
        let is_kernel = line.contains("\"cat\": \"kernel\"") && !line.contains("ncclDev");
        if !is_operator && !is_kernel {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let number = link % of.kernels;
        let (head, rest) = line.split_once("\"name\": \"").unwrap_or((line, "\","));
        let (_, rest) = rest.split_once("\",").unwrap_or((rest, ""));
        let name = if is_operator {
            format!("aten::some_operator_with_a_long_name_{number}")
        } else {
            format!("{KERNEL}_{number}")
        };
        let _ = writeln!(out, "{head}\"name\": \"{name}\",{rest}");
        if is_kernel {
            link += 1;
        }
        let ts = line
            .split_once("\"ts\": ")
            .and_then(|(_, rest)| rest.split_once(','));
        if let (true, Some((ts, _))) = (is_operator, ts) {
            memory += 1;
            let sign = if memory.is_multiple_of(2) { -1 } else { 1 };
            let level = 1_000_000 + memory * 7_919 % 5_000_000;
            let _ = writeln!(
                out,
                "{{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": 100, \
                 \"tid\": 100, \"ts\": {ts}, \"args\": {{\"Total Allocated\": {level}, \"Total Reserved\": 9000000, \
                 \"Device Id\": {}, \"Device Type\": 1, \"Addr\": {}, \"Bytes\": {}}}}},",
                of.rank,
                memory / 2,
                sign * 1_000,
            );
        }
    }
    out
}
