//! The driver: it starts, and has one device.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::Once;

use cudarc::cupti::sys::{CUpti_ActivityContext3, CUpti_ActivityDevice5, CUpti_ActivityKind};

use crate::{cupti, environment};

const NAME: &CStr = c"NVIDIA H200 (fake)";
const MEMORY: u64 = 150_000_000_000;

/// As the real one does, loads the library that `CUDA_INJECTION64_PATH` names.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(found) = environment::injected("CUDA_INJECTION64_PATH", "InitializeInjection") {
            let initialize: extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
            initialize();
        }
        describe();
    });
    0
}

fn describe() {
    let mut device: CUpti_ActivityDevice5 = unsafe { std::mem::zeroed() };
    device.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DEVICE;
    device.name = NAME.as_ptr();
    device.globalMemorySize = MEMORY;
    device.globalMemoryBandwidth = 4_916_760_000;
    device.l2CacheSize = 50 << 20;
    device.numThreadsPerWarp = 32;
    device.coreClockRate = 1_980_000;
    device.numMultiprocessors = 132;
    device.maxWarpsPerMultiprocessor = 64;
    device.maxBlocksPerMultiprocessor = 32;
    device.maxSharedMemoryPerMultiprocessor = 233_472;
    device.maxRegistersPerMultiprocessor = 65_536;
    device.maxRegistersPerBlock = 65_536;
    device.maxSharedMemoryPerBlock = 49_152;
    device.maxThreadsPerBlock = 1_024;
    device.computeCapabilityMajor = 9;
    let last = environment::number("FAKE_CUDA_UUID").unwrap_or(0);
    device.uuid.bytes[15] = c_char::try_from(last).unwrap_or(0);
    cupti::emit(8, &device);
    let mut context: CUpti_ActivityContext3 = unsafe { std::mem::zeroed() };
    context.kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONTEXT;
    context.contextId = 1;
    cupti::emit(9, &context);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    unsafe { *version = 13_000 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    unsafe { *count = 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    unsafe { *device = ordinal };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(
    name: *mut c_char,
    length: c_int,
    _device: c_int,
) -> c_int {
    let bytes = NAME.to_bytes_with_nul();
    if usize::try_from(length).unwrap_or(0) < bytes.len() {
        return 1;
    }
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), name, bytes.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> c_int {
    unsafe { *bytes = usize::try_from(MEMORY).unwrap_or(0) };
    0
}

/// Multiprocessors, compute capability, clocks, bus width; nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _device: c_int,
) -> c_int {
    let answer = match attribute {
        13 => 1_980_000,
        16 => 132,
        36 => 3_201_000,
        37 => 6_144,
        38 => 50 << 20,
        75 => 9,
        76 => 0,
        _ => return 1,
    };
    unsafe { *value = answer };
    0
}
