//! Launches: what a program does, with durations that it chooses.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use cudarc::cupti::sys::{
    CUpti_ActivityAPI, CUpti_ActivityKernel10, CUpti_ActivityKind, CUpti_ActivityMemcpy6,
    CUpti_ActivityMemcpyPtoP4, CUpti_ActivityMemset4, CUpti_ActivityOverhead3,
    CUpti_ActivityOverheadKind, CUpti_ActivitySynchronization2, CUpti_ActivitySynchronizationType,
};

use crate::cupti::{TORN_DOWN, emit, is_muted};
use crate::environment::{device_time, number};

/// Kernel names as compilers mangle them; the third is what a hostile program might choose.
const NAMES: [&CStr; 4] = [
    c"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    c"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
    c"evil\"\\\x01\x1b[31m</script>\xff name",
    c"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
];

const RUNTIME: u32 = 5;
const DRIVER: u32 = 4;

static CORRELATION: AtomicU32 = AtomicU32::new(1);

/// When the device will have done all that was launched.
static FREE: AtomicU64 = AtomicU64::new(0);

fn zeroed<T>() -> T {
    // Every record is plain numbers, pointers and enums that have a zero.
    unsafe { std::mem::zeroed() }
}

fn thread() -> u32 {
    thread_local! {
        static THREAD: u32 = u32::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap_or(0);
    }
    THREAD.with(|thread| *thread)
}

fn process() -> u32 {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    *PROCESS.get_or_init(std::process::id)
}

/// A call that starts now and takes `duration`; what it started is linked by the answer.
fn call(kind: u32, id: u32, duration: u64) -> (u64, u32) {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let start = device_time();
    call_at(kind, id, start, duration, correlation);
    (start, correlation)
}

fn call_at(kind: u32, id: u32, start: u64, duration: u64, correlation: u32) {
    let mut record: CUpti_ActivityAPI = zeroed();
    record.kind = if kind == RUNTIME {
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_RUNTIME
    } else {
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER
    };
    record.cbid = id;
    record.start = start;
    record.end = start + duration;
    record.processId = process();
    record.threadId = thread();
    record.correlationId = correlation;
    emit(kind, &record);
}

/// Work of `duration` that can start at `after`, behind all earlier work.
fn slot(after: u64, duration: u64) -> (u64, u64) {
    let free = FREE.fetch_max(after, Ordering::Relaxed).max(after);
    FREE.fetch_add(duration, Ordering::Relaxed);
    (free, free + duration)
}

fn kernel(which: c_int, span: (u64, u64), stream: u32, correlation: u32, graph_node: u64) {
    let mut record: CUpti_ActivityKernel10 = zeroed();
    record.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    (record.start, record.end) = span;
    record.contextId = 1;
    record.streamId = stream;
    (record.gridX, record.gridY, record.gridZ) = (1_024, 1, 1);
    (record.blockX, record.blockY, record.blockZ) = (256, 1, 1);
    record.registersPerThread = 32;
    record.staticSharedMemory = 64;
    record.dynamicSharedMemory = 1_024;
    record.correlationId = correlation;
    record.gridId = correlation.into();
    let which = usize::try_from(which).unwrap_or(0);
    record.name = NAMES[which % NAMES.len()].as_ptr();
    record.graphNodeId = graph_node;
    record.graphId = u32::from(graph_node > 0);
    emit(10, &record);
}

extern "C" fn tear_down() {
    TORN_DOWN.store(true, Ordering::SeqCst);
}

fn register_teardown() {
    static LATE: Once = Once::new();
    LATE.call_once(|| {
        if number("FAKE_CUDA_LATE_TEARDOWN").is_some() {
            unsafe { libc::atexit(tear_down) };
        }
    });
}

/// Launches kernel number `which`, which takes `duration` on `stream`.
#[unsafe(no_mangle)]
pub extern "C" fn fake_launch(which: c_int, duration: u64, stream: u32) {
    register_teardown();
    let (start, correlation) = call(RUNTIME, 211, 4_000);
    kernel(which, slot(start + 2_500, duration), stream, correlation, 0);
}

/// Launches as the runtime does: its call and the driver's inside it have one correlation.
#[unsafe(no_mangle)]
pub extern "C" fn fake_launch_nested(which: c_int, duration: u64, stream: u32) {
    let (start, correlation) = call(RUNTIME, 211, 4_000);
    call_at(DRIVER, 307, start + 500, 3_000, correlation);
    kernel(which, slot(start + 2_500, duration), stream, correlation, 0);
}

/// Launches through the driver's own API, as Triton does.
#[unsafe(no_mangle)]
pub extern "C" fn fake_launch_driver(which: c_int, duration: u64, stream: u32) {
    let (start, correlation) = call(DRIVER, 307, 3_000);
    kernel(which, slot(start + 2_000, duration), stream, correlation, 0);
}

/// Launches a graph of `kernels` kernels of `duration` each.
#[unsafe(no_mangle)]
pub extern "C" fn fake_launch_graph(kernels: u32, duration: u64, stream: u32) {
    let (start, correlation) = call(RUNTIME, 311, 8_000);
    for node in 1..=kernels {
        let span = slot(start + 5_000, duration);
        kernel(0, span, stream, correlation, node.into());
    }
}

/// Copies `bytes` from the host to the device.
#[unsafe(no_mangle)]
pub extern "C" fn fake_copy(bytes: u64, duration: u64, stream: u32) {
    let (start, correlation) = call(RUNTIME, 41, 6_000);
    let mut record: CUpti_ActivityMemcpy6 = zeroed();
    record.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY;
    (record.copyKind, record.srcKind, record.dstKind) = (1, 1, 3);
    record.bytes = bytes;
    (record.start, record.end) = slot(start + 3_000, duration);
    record.contextId = 1;
    record.streamId = stream;
    record.correlationId = correlation;
    emit(1, &record);
}

/// Copies `bytes` from this device to the next.
#[unsafe(no_mangle)]
pub extern "C" fn fake_copy_peer(bytes: u64, duration: u64, stream: u32) {
    let (start, correlation) = call(RUNTIME, 48, 6_000);
    let mut record: CUpti_ActivityMemcpyPtoP4 = zeroed();
    record.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY2;
    (record.copyKind, record.srcKind, record.dstKind) = (10, 3, 3);
    record.bytes = bytes;
    (record.start, record.end) = slot(start + 3_000, duration);
    record.contextId = 1;
    record.streamId = stream;
    (record.srcContextId, record.dstContextId, record.dstDeviceId) = (1, 2, 1);
    record.correlationId = correlation;
    emit(22, &record);
}

/// Fills `bytes` of the device.
#[unsafe(no_mangle)]
pub extern "C" fn fake_fill(bytes: u64, duration: u64, stream: u32) {
    let (start, correlation) = call(RUNTIME, 51, 5_000);
    let mut record: CUpti_ActivityMemset4 = zeroed();
    record.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET;
    record.bytes = bytes;
    (record.start, record.end) = slot(start + 3_000, duration);
    record.contextId = 1;
    record.streamId = stream;
    record.correlationId = correlation;
    record.memoryKind = 3;
    emit(2, &record);
}

/// Waits until the device has done everything, for real.
#[unsafe(no_mangle)]
pub extern "C" fn fake_sync() {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let start = device_time();
    let end = FREE.load(Ordering::Relaxed).max(start) + 2_000;
    std::thread::sleep(std::time::Duration::from_nanos(end - start));
    call_at(RUNTIME, 165, start, end - start, correlation);
    let mut record: CUpti_ActivitySynchronization2 = zeroed();
    record.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.type_ =
        CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    (record.start, record.end) = (start, end);
    record.correlationId = correlation;
    record.contextId = 1;
    record.streamId = u32::MAX;
    emit(38, &record);
}

/// CUPTI takes `duration` for itself.
#[unsafe(no_mangle)]
pub extern "C" fn fake_overhead(duration: u64) {
    let mut record: CUpti_ActivityOverhead3 = zeroed();
    record.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_OVERHEAD;
    record.overheadKind = CUpti_ActivityOverheadKind::CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    record.start = device_time();
    record.end = record.start + duration;
    emit(17, &record);
}

/// A call that says nothing and is made all the time.
#[unsafe(no_mangle)]
pub extern "C" fn fake_get_device() {
    if !is_muted(2, 17) {
        call(RUNTIME, 17, 300);
    }
}

/// A kernel whose times CUPTI does not know.
#[unsafe(no_mangle)]
pub extern "C" fn fake_launch_without_times(which: c_int, stream: u32) {
    let (_, correlation) = call(RUNTIME, 211, 4_000);
    kernel(which, (0, 0), stream, correlation, 0);
}
