//! What the parent asks for, in the environment.

use std::ffi::OsString;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use tracekit_spool::kind;

/// All kinds, in the order in which they are enabled: what others refer to comes first.
const KINDS: [u32; 10] = [
    kind::DEVICE,
    kind::CONTEXT,
    kind::CONCURRENT_KERNEL,
    kind::MEMCPY,
    kind::MEMCPY2,
    kind::MEMSET,
    kind::RUNTIME,
    kind::DRIVER,
    kind::SYNCHRONIZATION,
    kind::OVERHEAD,
];

/// CUPTI's own advice for buffers is 1 to 10 MB.
const BUFFER_SIZE: usize = 4 << 20;

/// A spool with less has no room for what stands in every one.
const LEAST_SPOOL: u64 = 256 << 10;

/// What the parent asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The folder that spools are written to.
    pub(crate) folder: PathBuf,
    /// Kinds of activity to enable, in order.
    pub(crate) kinds: Vec<u32>,
    /// Bytes of an activity buffer.
    pub(crate) buffer_size: usize,
    /// How long anything stays in memory before it is in the file.
    pub(crate) flush_period: Duration,
    /// Capture from this time on (`CLOCK_REALTIME`, ns).
    pub(crate) from: Option<u64>,
    /// Capture up to this time.
    pub(crate) until: Option<u64>,
    /// Capture only while a range of this name is open.
    pub(crate) range: Option<Vec<u8>>,
    /// How many bytes the spool may have.
    pub(crate) max_spool: Option<u64>,
    /// Keep the newest that fits; without it, stop when the spool is full.
    pub(crate) ring: bool,
}

impl Config {
    fn new(get: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let number = |name: &str| get(name)?.to_str()?.trim().parse::<u64>().ok();
        let kinds = get("TRACEKIT_INJECT_KINDS").map(|text| {
            let text = text.to_string_lossy().into_owned();
            let asked: Vec<u32> = text
                .split(',')
                .filter_map(|kind| kind.parse().ok())
                .collect();
            KINDS
                .into_iter()
                .filter(|kind| asked.contains(kind))
                .collect()
        });
        let size =
            number("TRACEKIT_INJECT_BUFFER_SIZE").and_then(|size| usize::try_from(size).ok());
        let period = number("TRACEKIT_INJECT_FLUSH_MS").unwrap_or(500);
        Some(Self {
            folder: get("TRACEKIT_INJECT_DIR")
                .filter(|folder| !folder.is_empty())?
                .into(),
            kinds: kinds.unwrap_or_else(|| KINDS.to_vec()),
            buffer_size: size.unwrap_or(BUFFER_SIZE).clamp(1 << 12, 1 << 27) & !7,
            flush_period: Duration::from_millis(period.clamp(10, 60_000)),
            from: number("TRACEKIT_INJECT_FROM_NS"),
            until: number("TRACEKIT_INJECT_UNTIL_NS"),
            range: get("TRACEKIT_INJECT_RANGE").map(OsString::into_encoded_bytes),
            max_spool: number("TRACEKIT_INJECT_MAX_SPOOL").map(|bytes| bytes.max(LEAST_SPOOL)),
            ring: get("TRACEKIT_INJECT_RING").is_some_and(|value| value == "1"),
        })
    }

    /// What this process was started with; `None` when it is not to be traced.
    pub(crate) fn get() -> Option<&'static Self> {
        // Not a lock: a process may fork at any moment.
        static CONFIG: AtomicPtr<Option<Config>> = AtomicPtr::new(null_mut());
        let mut config = CONFIG.load(Ordering::Acquire);
        if config.is_null() {
            let read = Self::new(|name| std::env::var_os(name));
            let new = Box::into_raw(Box::new(read));
            let set = CONFIG.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
            // Another thread that was faster has read the same; a few bytes are not worth more.
            config = set.map_or_else(|other| other, |_| new);
        }
        // SAFETY: never null here, and leaked.
        unsafe { &*config }.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(set: &[(&str, &str)]) -> Option<Config> {
        Config::new(|name| {
            let found = set
                .iter()
                .find(|(key, _)| name.strip_prefix("TRACEKIT_INJECT_") == Some(key));
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn without_a_folder_nothing_is_traced() {
        assert_eq!(config(&[]), None);
        assert_eq!(config(&[("DIR", "")]), None);
        assert_eq!(config(&[("DIR", "/x")]).unwrap().kinds, KINDS);
    }

    #[test]
    fn values_that_make_no_sense_are_the_usual_ones() {
        let config = config(&[
            ("DIR", "/x"),
            ("KINDS", "5,10,99,x"),
            ("BUFFER_SIZE", "5001"),
            ("FLUSH_MS", "1"),
            ("MAX_SPOOL", "many"),
            ("RANGE", "phase.forward"),
            ("RING", "yes"),
        ])
        .unwrap();
        assert_eq!(config.kinds, [kind::CONCURRENT_KERNEL, kind::RUNTIME]);
        assert_eq!(config.buffer_size, 5_000);
        assert_eq!(config.flush_period, Duration::from_millis(10));
        assert_eq!((config.max_spool, config.ring), (None, false));
        assert_eq!(config.range.as_deref(), Some(&b"phase.forward"[..]));
    }
}
