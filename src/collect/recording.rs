//! What one process did, as its spool tells it.

use tracekit_spool::{Api, Context, Copy, Device, Fill, Kernel, Overhead, Sync};

use super::range::Range;

/// Who a process is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The traced process that it was forked from.
    pub(super) forked_from: Option<u32>,
    /// When the system started it, in its own ticks.
    pub(super) start_ticks: Option<u64>,
    /// When its spool was started, in nanoseconds since 1970.
    pub(super) start: u64,
    pub(super) command: Vec<String>,
    pub(super) rank: Option<i64>,
    pub(super) local_rank: Option<i64>,
    pub(super) world_size: Option<i64>,
    pub(super) visible_devices: Option<String>,
    /// When the run started that it is part of.
    pub(super) run: Option<u64>,
}

/// Which CUPTI recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cupti {
    pub(super) version: Option<u64>,
    pub(super) path: String,
}

/// What the last frame counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct End {
    pub(super) records_dropped: u64,
    pub(super) buffers_outstanding: u64,
    pub(super) records_unkept: u64,
    pub(super) device_records_unkept: u64,
    pub(super) ranges_unkept: u64,
}

/// What a ring removed so that the newest had room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) records: u64,
    /// Kernels, copies and fills among them.
    pub(super) device_records: u64,
    pub(super) ranges: u64,
    /// When the last of it was written, in nanoseconds since 1970.
    pub(super) until: u64,
}

/// A text of the recording, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(pub(super) u32);

/// What one process did. Times are in nanoseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) process: Process,
    pub(super) cupti: Option<Cupti>,
    /// Texts by their ids: names as they are to be shown.
    pub(super) texts: Vec<String>,
    pub(super) kernels: Vec<(Kernel, TextId)>,
    pub(super) copies: Vec<Copy>,
    pub(super) fills: Vec<Fill>,
    pub(super) calls: Vec<(Api, TextId)>,
    pub(super) syncs: Vec<Sync>,
    pub(super) overheads: Vec<Overhead>,
    pub(super) devices: Vec<(Device, TextId)>,
    pub(super) contexts: Vec<Context>,
    pub(super) ranges: Vec<Range>,
    /// Names of NVTX domains by their numbers.
    pub(super) domains: Vec<(u32, TextId)>,
    /// Names that the program gave to threads.
    pub(super) threads: Vec<(u32, TextId)>,
    /// `None` when the process did not end in order.
    pub(super) end: Option<End>,
    /// `None` when nothing was removed.
    pub(super) lost: Option<Lost>,
    /// NVTX events that a thread left and that there was no room for in the process.
    pub(super) events_lost: u64,
    /// Records of device work that have no times.
    pub(super) without_times: u64,
    /// Bytes of the spool that could not be read.
    pub(super) unreadable: u64,
    /// Activity buffers that were not read to their end.
    pub(super) cut_buffers: u64,
    /// Lines for the user, in order.
    pub(super) notes: Vec<String>,
}

impl Recording {
    pub(super) fn text(&self, id: TextId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// Work of the device that is in the trace.
    pub(super) fn device_events(&self) -> usize {
        self.kernels.len() + self.copies.len() + self.fills.len()
    }
}
