//! Device time of a group of work.

use crate::attribute::Work;
use crate::units::Ns;

/// Device time of a group of work, counted in order of device and start.
///
/// ```text
/// stream 7   ├── a ──┤
/// stream 20      ├── b ──┤     sum = a + b
/// busy       ├───────────┤     union on a device, added over devices
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceTime {
    /// Pieces of work.
    pub(super) events: u64,
    /// Sum of durations.
    pub(super) sum: Ns,
    /// Union over the streams of a device, added over devices.
    pub(super) busy: Ns,
    /// Sum of durations of kernels on matrix units.
    pub(super) matrix: Ns,
    /// Device, and up to where it is counted as busy.
    until: (i64, Ns),
}

impl Default for DeviceTime {
    fn default() -> Self {
        Self {
            events: 0,
            sum: Ns::ZERO,
            busy: Ns::ZERO,
            matrix: Ns::ZERO,
            until: (0, Ns(i64::MIN)),
        }
    }
}

impl DeviceTime {
    /// Counts `work`, which must not start before the last one counted on its device.
    pub(super) fn count(&mut self, work: &Work, on_matrix_units: bool) {
        self.events += 1;
        self.sum += work.span.len();
        if on_matrix_units {
            self.matrix += work.span.len();
        }
        if self.until.0 != work.device {
            self.until = (work.device, Ns(i64::MIN));
        }
        let start = work.span.start.max(self.until.1);
        if work.span.end > start {
            self.busy += work.span.end - start;
            self.until.1 = work.span.end;
        }
    }
}
