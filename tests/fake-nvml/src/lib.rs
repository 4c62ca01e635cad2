//! A `libnvidia-ml` for tests: two devices whose values follow from the time since it was loaded.
//!
//! Device 0 draws 300 W and device 1 draws 500 W, always: energy is exactly power times time.
//!
//! | variable | effect |
//! |---|---|
//! | `FAKE_NVML_DENIED` | nothing is permitted |
//! | `FAKE_NVML_NO_ENERGY` | there is no energy counter, as before Volta |
//! | `FAKE_NVML_NO_GPM` | device 0 has no counters of its own, as before Hopper; device 1 never has |
//! | `FAKE_NVML_NO_PCIE_RECEIVED` | one of those counters is not there |

use std::ffi::{c_char, c_uint, c_ulonglong};
use std::sync::OnceLock;
use std::time::Instant;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t, nvmlMemory_t,
    nvmlMemory_v2_t, nvmlUtilization_t,
};

const SUCCESS: u32 = 0;
const INVALID_ARGUMENT: u32 = 2;
const NOT_SUPPORTED: u32 = 3;
const NO_PERMISSION: u32 = 4;
const INSUFFICIENT_SIZE: u32 = 7;

const DEVICES: c_uint = 2;

fn since_start() -> u128 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos()
}

fn index(device: nvmlDevice_t) -> u32 {
    u32::try_from(device.addr()).unwrap_or(1) - 1
}

fn watts(device: nvmlDevice_t) -> u32 {
    if index(device) == 0 { 300 } else { 500 }
}

unsafe fn put(text: &str, to: *mut c_char, length: c_uint) -> u32 {
    if text.len() + 1 > length as usize {
        return INSUFFICIENT_SIZE;
    }
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        *to.add(text.len()) = 0;
    }
    SUCCESS
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                unsafe { $body }
            }
        )*
    };
}

functions! {
    fn nvmlInit_v2() {
        since_start();
        if std::env::var_os("FAKE_NVML_DENIED").is_some() { NO_PERMISSION } else { SUCCESS }
    }
    fn nvmlShutdown() { SUCCESS }
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) {
        *count = DEVICES;
        SUCCESS
    }
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) {
        if index >= DEVICES {
            return INVALID_ARGUMENT;
        }
        *device = std::ptr::without_provenance_mut(index as usize + 1);
        SUCCESS
    }
    fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) {
        put(&format!("NVIDIA H200 (fake {})", index(device)), name, length)
    }
    fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) {
        let text = format!("GPU-00000000-0000-0000-0000-{:012x}", index(device));
        put(&text, uuid, length)
    }
    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) {
        put("580.95.05", version, length)
    }
    fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, milliwatts: *mut c_uint) {
        *milliwatts = watts(device) * 1_000;
        SUCCESS
    }
    fn nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, millijoules: *mut c_ulonglong) {
        if std::env::var_os("FAKE_NVML_NO_ENERGY").is_some() {
            return NOT_SUPPORTED;
        }
        let used = since_start() * u128::from(watts(device)) / 1_000_000;
        *millijoules = 5_000_000 + u64::try_from(used).unwrap_or(0);
        SUCCESS
    }
    fn nvmlDeviceGetUtilizationRates(_device: nvmlDevice_t, rates: *mut nvmlUtilization_t) {
        (*rates).gpu = 87;
        (*rates).memory = 41;
        SUCCESS
    }
    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) {
        (*memory).total = 150 << 30;
        (*memory).used = u64::from(12 + index(device)) << 30;
        (*memory).reserved = 1 << 30;
        (*memory).free = (*memory).total - (*memory).used - (*memory).reserved;
        SUCCESS
    }
    fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t) {
        (*memory).total = 150 << 30;
        (*memory).used = u64::from(12 + index(device)) << 30;
        (*memory).free = (*memory).total - (*memory).used;
        SUCCESS
    }
    fn nvmlDeviceGetTemperature(_device: nvmlDevice_t, _sensor: c_uint, celsius: *mut c_uint) {
        *celsius = 55;
        SUCCESS
    }
    fn nvmlDeviceGetClockInfo(_device: nvmlDevice_t, clock: c_uint, megahertz: *mut c_uint) {
        *megahertz = if clock == 2 { 3_201 } else { 1_980 };
        SUCCESS
    }
    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: nvmlDevice_t, reasons: *mut c_ulonglong) {
        // The second device is always at its power cap.
        *reasons = if index(device) == 0 { 0 } else { 4 };
        SUCCESS
    }
    fn nvmlGpmQueryDeviceSupport(device: nvmlDevice_t, support: *mut nvmlGpmSupport_t) {
        if (*support).version != 1 {
            return INVALID_ARGUMENT;
        }
        let is_there = index(device) == 0 && std::env::var_os("FAKE_NVML_NO_GPM").is_none();
        (*support).isSupportedDevice = is_there.into();
        SUCCESS
    }
    fn nvmlGpmSampleAlloc(sample: *mut nvmlGpmSample_t) {
        *sample = Box::into_raw(Box::new(0_u128)).cast();
        SUCCESS
    }
    fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) {
        drop(Box::from_raw(sample.cast::<u128>()));
        SUCCESS
    }
    fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) {
        if index(device) != 0 {
            return NOT_SUPPORTED;
        }
        *sample.cast::<u128>() = since_start();
        SUCCESS
    }
    fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) {
        let request = &mut *request;
        let [before, after] =
            [request.sample1, request.sample2].map(|sample| *sample.cast::<u128>());
        if request.version != 1 || before >= after {
            return INVALID_ARGUMENT;
        }
        let count = usize::try_from(request.numMetrics).unwrap_or(0);
        for metric in &mut request.metrics[..count] {
            metric.nvmlReturn = SUCCESS;
            metric.value = match metric.metricId {
                2 => 74.6,
                5 => 51.2,
                10 => 33.0,
                20 => 120.4,
                21 if std::env::var_os("FAKE_NVML_NO_PCIE_RECEIVED").is_none() => 80.0,
                21 => {
                    metric.nvmlReturn = NOT_SUPPORTED;
                    continue;
                }
                _ => return INVALID_ARGUMENT,
            };
        }
        SUCCESS
    }
    fn nvmlDeviceGetPcieThroughput(device: nvmlDevice_t, counter: c_uint, rate: *mut c_uint) {
        if index(device) == 1 {
            return NOT_SUPPORTED;
        }
        *rate = if counter == 0 { 1_000 } else { 2_000 };
        SUCCESS
    }
}
