//! Counters of a device (NVML) as they stand in a trace: `C` events of one value each.

/// What a counter measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterKind {
    /// Power that is drawn, in milliwatts.
    Power,
    /// Energy used since the driver was loaded, in millijoules.
    Energy,
    /// Share of the last period with any kernel running, in percent.
    Utilization,
    /// Share of the last period with memory read or written, in percent.
    MemoryUtilization,
    /// Memory in use, in bytes.
    MemoryUsed,
    /// Temperature of the chip, in degrees Celsius.
    Temperature,
    /// Clock of the multiprocessors, in MHz.
    SmClock,
    /// Clock of the memory, in MHz.
    MemoryClock,
    /// Why clocks are lower than they could be: a set of bits, as NVML has them.
    ThrottleReasons,
    /// Share of the multiprocessors that had work until the next sample, in percent.
    SmUtilization,
    /// Share of the time in which tensor cores worked until the next sample, in percent.
    TensorUtilization,
    /// Share of the memory's bandwidth that was used until the next sample, in percent.
    MemoryBandwidth,
    /// Sent over PCIe until the next sample, in MiB a second.
    PcieSent,
    /// Received over PCIe until the next sample, in MiB a second.
    PcieReceived,
}

impl CounterKind {
    /// Every kind, in order.
    pub const ALL: [Self; 14] = [
        Self::Power,
        Self::Energy,
        Self::Utilization,
        Self::MemoryUtilization,
        Self::MemoryUsed,
        Self::Temperature,
        Self::SmClock,
        Self::MemoryClock,
        Self::ThrottleReasons,
        Self::SmUtilization,
        Self::TensorUtilization,
        Self::MemoryBandwidth,
        Self::PcieSent,
        Self::PcieReceived,
    ];

    /// The `cat` of the events.
    pub const CATEGORY: &'static str = "nvml";

    /// The name of the events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Power => "GPU power",
            Self::Energy => "GPU energy",
            Self::Utilization => "GPU utilization",
            Self::MemoryUtilization => "GPU memory utilization",
            Self::MemoryUsed => "GPU memory used",
            Self::Temperature => "GPU temperature",
            Self::SmClock => "GPU SM clock",
            Self::MemoryClock => "GPU memory clock",
            Self::ThrottleReasons => "GPU throttle reasons",
            Self::SmUtilization => "GPU SM utilization",
            Self::TensorUtilization => "GPU tensor utilization",
            Self::MemoryBandwidth => "GPU memory bandwidth utilization",
            Self::PcieSent => "GPU PCIe sent",
            Self::PcieReceived => "GPU PCIe received",
        }
    }

    /// The key of the value in `args`: its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Power => "mW",
            Self::Energy => "mJ",
            Self::Utilization
            | Self::MemoryUtilization
            | Self::SmUtilization
            | Self::TensorUtilization
            | Self::MemoryBandwidth => "%",
            Self::PcieSent | Self::PcieReceived => "MiB/s",
            Self::MemoryUsed => "bytes",
            Self::Temperature => "C",
            Self::SmClock | Self::MemoryClock => "MHz",
            Self::ThrottleReasons => "bits",
        }
    }

    /// The kind of the events called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in CounterKind::ALL {
            assert_eq!(CounterKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(CounterKind::from_name("GPU"), None);
    }
}
