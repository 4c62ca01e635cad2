//! The threads that the work is done on.

use crate::error::{Error, ErrorKind, Result};

/// Starts the pool: `threads` of them, or one a core. Where the system allows no more threads, the
/// calling one does the work, unless a number was asked for.
pub(super) fn start(threads: Option<u16>) -> Result<()> {
    let pool = || rayon::ThreadPoolBuilder::new();
    let Some(threads) = threads else {
        if pool().build_global().is_ok() {
            return Ok(());
        }
        let alone = pool().num_threads(1).use_current_thread().build_global();
        return alone.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot start any thread: {error}"))
        });
    };
    pool()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|error| {
            Error::new(
                ErrorKind::Usage,
                format!("cannot start {threads} threads: {error}"),
            )
        })
}
