//! What the environment asks for, and clocks.

use std::ffi::{CString, c_void};

/// A number in the environment.
pub(crate) fn number(name: &str) -> Option<i64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `CLOCK_REALTIME` in nanoseconds.
pub(crate) fn realtime() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// CUPTI's clock.
pub(crate) fn device_time() -> u64 {
    static OFFSET: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    let offset = OFFSET.get_or_init(|| number("FAKE_CUDA_CLOCK_OFFSET").unwrap_or(0));
    realtime().wrapping_sub_signed(*offset)
}

/// The function `symbol` of the library that `variable` names.
pub(crate) fn injected(variable: &str, symbol: &str) -> Option<*mut c_void> {
    let path = std::env::var(variable).ok()?;
    let path = CString::new(path).ok()?;
    let symbol = CString::new(symbol).ok()?;
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return None;
        }
        let function = libc::dlsym(library, symbol.as_ptr());
        (!function.is_null()).then_some(function)
    }
}
