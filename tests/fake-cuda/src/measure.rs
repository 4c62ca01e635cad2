//! Loops for the benchmark: what a range and a launch cost, without the cost of a caller.

use std::ffi::{CString, c_void};
use std::time::Instant;

use crate::nvtx::{nvtxRangePop, nvtxRangePushA};
use crate::work::fake_launch;

fn timed(count: u64, mut work: impl FnMut()) -> u64 {
    let start = Instant::now();
    for _ in 0..count {
        work();
    }
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds that `count` pushes and pops take.
#[unsafe(no_mangle)]
pub extern "C" fn fake_time_ranges(count: u64) -> u64 {
    timed(count, || {
        nvtxRangePushA(c"phase.forward".as_ptr());
        nvtxRangePop();
    })
}

/// Nanoseconds that `count` launches take.
#[unsafe(no_mangle)]
pub extern "C" fn fake_time_launches(count: u64) -> u64 {
    timed(count, || fake_launch(0, 1_000, 7))
}

/// How often the injected library has allocated memory on this thread; all ones when it does not
/// count.
#[unsafe(no_mangle)]
pub extern "C" fn fake_allocations() -> u64 {
    let count = || {
        let path = CString::new(std::env::var("CUDA_INJECTION64_PATH").ok()?).ok()?;
        unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            if library.is_null() {
                return None;
            }
            let function = libc::dlsym(library, c"tracekit_inject_allocations".as_ptr());
            if function.is_null() {
                return None;
            }
            let count: extern "C" fn() -> u64 = std::mem::transmute::<*mut c_void, _>(function);
            Some(count())
        }
    };
    count().unwrap_or(u64::MAX)
}
