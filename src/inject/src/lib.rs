//! The library that `tracekit collect` has loaded into a CUDA program.
//!
//! The CUDA driver loads it inside `cuInit` (`CUDA_INJECTION64_PATH`) and calls `InitializeInjection`;
//! every module that uses NVTX loads it at its first call (`NVTX_INJECTION64_PATH`) and calls
//! `InitializeInjectionNvtx2`. Both only ever answer that all is well: whatever fails here, the
//! program runs as it would without.
//!
//! Rules: no panic leaves the library, no lock that a callback takes is held across a call of CUPTI,
//! nothing is printed (but for `TRACEKIT_INJECT_LOG`), there is one thread of ours, and what a launch
//! or a range passes through allocates nothing once it is warm.

#[cfg(any(debug_assertions, feature = "count-allocations"))]
mod allocation;
mod attach;
mod buffer;
mod clock;
mod config;
mod cupti;
mod file;
mod gate;
mod library;
mod nvtx;
mod open;
mod process;
mod ring;
mod session;
mod spool;
mod worker;

use std::ffi::c_int;
use std::panic::catch_unwind;

/// Entry point for the CUDA driver.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    // A panic was already reported nowhere, and there is nobody to tell.
    let _ = catch_unwind(|| {
        if let Some(session) = session::current() {
            attach::attach(session);
        }
    });
    1
}

/// Entry point for NVTX: 1 when its calls come here from now on.
///
/// # Safety
/// `table` must be the function that NVTX 3 passes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(table: Option<nvtx::GetExportTable>) -> c_int {
    let attached = catch_unwind(|| {
        let table = table?;
        session::current()?;
        // SAFETY: the caller passes NVTX's own function.
        unsafe { nvtx::attach(table) }
    });
    c_int::from(matches!(attached, Ok(Some(()))))
}
