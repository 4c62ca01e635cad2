//! Clocks and thread ids of the operating system.

/// Nanoseconds of the clock `id`.
fn nanoseconds(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result; a failure leaves it zero.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(rest)
}

/// Nanoseconds since 1970: the clock of every time in a spool.
pub(crate) fn realtime() -> u64 {
    nanoseconds(libc::CLOCK_REALTIME)
}

/// Nanoseconds of a clock that is never set.
pub(crate) fn monotonic() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// The id of this thread as the system counts it, which is what CUPTI is asked to use, too.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}
