//! A function timed plainly.

use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};

/// Calls `function` `warmup` times, then `iters` times, and gives the mean time of the latter in
/// milliseconds, by a clock that never goes back.
///
/// # Errors
/// When `warmup` is negative or `iters` is not positive, before any call.
pub fn benchmark_fn(mut function: impl FnMut(), warmup: i64, iters: i64) -> Result<f64> {
    if warmup < 0 || iters <= 0 {
        let message = "warmup must be >= 0 and iters must be > 0";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    for _ in 0..warmup {
        function();
    }
    let start = Instant::now();
    for _ in 0..iters {
        function();
    }
    Ok(start.elapsed().as_secs_f64() / iters as f64 * 1000.0)
}
