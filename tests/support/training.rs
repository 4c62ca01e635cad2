//! Made-up traces of training: as many steps, kernels and ranks as asked for.

use std::fmt::Write as _;

/// What is recorded of one rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Training {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) steps: u32,
    /// Kernels of a step; the last is a collective that all ranks share.
    pub(crate) kernels: u32,
    /// How long kernels take, in percent.
    pub(crate) pace: u32,
}

/// Names as C++ has them.
const KERNELS: [&str; 4] = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >(flash::Flash_fwd_params)",
];

/// The trace as the profiler would have written it.
pub(crate) fn trace(of: Training) -> String {
    let mut out = format!(
        "{{\"schemaVersion\": 1, \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n\"traceEvents\": [\n",
        of.rank, of.ranks
    );
    let mut link = 0;
    let mut now = 1_000;
    // Writing to a string cannot fail.
    let mut event = |cat: &str,
                     name: &str,
                     place: (u32, u32),
                     (ts, dur): (u32, u32),
                     args: &str| {
        let _ = writeln!(
            out,
            "{{\"ph\": \"X\", \"cat\": \"{cat}\", \"name\": \"{name}\", \"pid\": {}, \"tid\": {}, \"ts\": {ts}, \"dur\": {dur}{args}}},",
            place.0, place.1
        );
    };
    for step in 0..of.steps {
        let start = now;
        let mut device = start + 8;
        for kernel in 0..of.kernels {
            link += 1;
            let collective = kernel + 1 == of.kernels;
            // Different from step to step, and the same in every run.
            let noise = (step * 7 + kernel * 13 + of.rank * 5) % 11;
            let length = (12 + kernel % 5 * 4 + noise) * of.pace / 100;
            let links = format!(", \"args\": {{\"correlation\": {link}}}");
            let work = format!(
                ", \"args\": {{\"correlation\": {link}, \"device\": {}, \"stream\": 7}}",
                of.rank
            );
            let name = if collective {
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                    .to_owned()
            } else if kernel % 3 == 0 {
                format!("triton_poi_fused_add_native_layer_norm_{}", kernel % 150)
            } else {
                KERNELS[(kernel % 4) as usize].to_owned()
            };
            let operator = format!("aten::operator_{}", kernel % 90);
            event("cpu_op", &operator, (100, 100), (now, 9), "");
            event(
                "cuda_runtime",
                "cudaLaunchKernel",
                (100, 100),
                (now + 2, 5),
                &links,
            );
            device = device.max(now + 9) + noise % 3;
            event("kernel", &name, (of.rank, 7), (device, length), &work);
            device += length;
            now += 10;
            if kernel == of.kernels * 2 / 5 {
                event(
                    "user_annotation",
                    "forward",
                    (100, 100),
                    (start, now - start),
                    "",
                );
            } else if collective {
                let from = start + (of.kernels * 2 / 5 + 1) * 10;
                event(
                    "user_annotation",
                    "backward",
                    (100, 100),
                    (from, now - from),
                    "",
                );
            }
        }
        // The host waits for the device.
        now = now.max(device) + 5;
        let name = format!("ProfilerStep#{}", step + 3);
        event(
            "user_annotation",
            &name,
            (100, 100),
            (start, now - start),
            "",
        );
        now += 20;
    }
    out.truncate(out.len() - 2);
    out.push_str("\n]}\n");
    out
}
