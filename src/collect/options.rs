//! What to collect and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How often NVML is asked unless something else is said.
pub const DEFAULT_INTERVAL: Duration = Duration::from_millis(100);

/// A kind of device activity or API calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityKind {
    /// Kernels.
    Kernel,
    /// Copies, also between devices.
    Memcpy,
    /// Fills.
    Memset,
    /// Calls of the runtime API.
    Runtime,
    /// Calls of the driver API.
    Driver,
    /// Waits.
    Sync,
    /// Time that CUPTI and the driver take for themselves.
    Overhead,
}

impl ActivityKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Kernel,
        Self::Memcpy,
        Self::Memset,
        Self::Runtime,
        Self::Driver,
        Self::Sync,
        Self::Overhead,
    ];

    /// CUPTI's numbers of the kind.
    pub(super) fn numbers(self) -> &'static [u32] {
        use tracekit_spool::kind;
        match self {
            Self::Kernel => &[kind::CONCURRENT_KERNEL],
            Self::Memcpy => &[kind::MEMCPY, kind::MEMCPY2],
            Self::Memset => &[kind::MEMSET],
            Self::Runtime => &[kind::RUNTIME],
            Self::Driver => &[kind::DRIVER],
            Self::Sync => &[kind::SYNCHRONIZATION],
            Self::Overhead => &[kind::OVERHEAD],
        }
    }
}

/// What to collect and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CollectOptions {
    /// The program and its arguments; empty to sample NVML alone.
    pub command: Vec<OsString>,
    /// Variables that the command gets beside those of this process.
    pub environment: Vec<(String, OsString)>,
    /// Where traces go; it is made.
    pub folder: PathBuf,
    /// What to record.
    pub kinds: Vec<ActivityKind>,
    /// Bytes of a CUPTI buffer.
    pub buffer_size: u64,
    /// How long records stay in the process before they are in a file.
    pub flush_period: Duration,
    /// How often NVML is asked; `None` for never.
    pub interval: Option<Duration>,
    /// Record from so long after the start on.
    pub delay: Option<Duration>,
    /// Record for so long.
    pub duration: Option<Duration>,
    /// Record only while an NVTX range of this name is open.
    pub range: Option<String>,
    /// How many bytes the spool of a process may have; 256 KiB at least.
    pub max_spool: Option<u64>,
    /// Keep the newest records that fit; without it, recording stops when the spool is full.
    pub ring: bool,
    /// Keep the spools.
    pub keep_spool: bool,
    /// The library to have loaded; looked for where `None`.
    pub library: Option<PathBuf>,
}

impl CollectOptions {
    /// Everything of `command`, into `folder`.
    pub fn new(command: Vec<OsString>, folder: PathBuf) -> Self {
        Self {
            command,
            environment: Vec::new(),
            folder,
            kinds: ActivityKind::ALL.to_vec(),
            buffer_size: 4 << 20,
            flush_period: Duration::from_millis(500),
            interval: Some(DEFAULT_INTERVAL),
            delay: None,
            duration: None,
            range: None,
            max_spool: None,
            ring: false,
            keep_spool: false,
            library: None,
        }
    }

    /// When to record, for a run that starts at `start` (ns since 1970): from and until.
    pub(super) fn window(&self, start: u64) -> (Option<u64>, Option<u64>) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let from = self
            .delay
            .map(|delay| start.saturating_add(nanoseconds(delay)));
        let until = self
            .duration
            .map(|duration| from.unwrap_or(start).saturating_add(nanoseconds(duration)));
        (from, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_counts_from_the_end_of_the_delay() {
        let mut options = CollectOptions::new(Vec::new(), PathBuf::new());
        assert_eq!(options.window(5), (None, None));
        options.duration = Some(Duration::from_nanos(10));
        assert_eq!(options.window(5), (None, Some(15)));
        options.delay = Some(Duration::from_nanos(100));
        assert_eq!(options.window(5), (Some(105), Some(115)));
        options.delay = Some(Duration::MAX);
        assert_eq!(options.window(5), (Some(u64::MAX), Some(u64::MAX)));
    }
}
