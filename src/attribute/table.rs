//! The tables of an attribution: buckets of device time that add up exactly.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::class::DeviceClass;
use super::phase::Phase;
use crate::units::Ns;

/// Where a piece of device work is counted: in a phase, or in a bucket beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// Launched in a phase (or in none: [`Phase::Other`]).
    Phase(Phase),
    /// Launched before profiling started.
    PreWindow,
    /// Its launch is not in the file.
    Unlinked,
}

impl Bucket {
    /// Every bucket, in the order of output.
    pub const ALL: [Self; 7] = [
        Self::Phase(Phase::Forward),
        Self::Phase(Phase::Backward),
        Self::Phase(Phase::Recompute),
        Self::Phase(Phase::Optimizer),
        Self::Phase(Phase::Other),
        Self::PreWindow,
        Self::Unlinked,
    ];

    /// The spelling used in JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Phase(phase) => phase.as_str(),
            Self::PreWindow => "pre_window",
            Self::Unlinked => "unlinked",
        }
    }

    /// Position in [`Bucket::ALL`].
    pub fn index(self) -> usize {
        match self {
            Self::Phase(phase) => phase as usize,
            Self::PreWindow => 5,
            Self::Unlinked => 6,
        }
    }
}

/// Device time of one bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Sum of durations.
    pub sum_ns: Ns,
    /// Union over the lanes of a device, added over devices.
    pub busy_ns: Ns,
    /// Number of device events.
    pub events: u64,
    /// Number of distinct launches.
    pub launches: u64,
    /// Sum of durations of computing kernels.
    pub compute_ns: Ns,
    /// Sum of durations of communication kernels.
    pub communication_ns: Ns,
    /// Sum of durations of copies.
    pub memcpy_ns: Ns,
    /// Sum of durations of fills.
    pub memset_ns: Ns,
}

impl Cell {
    /// Counts one device event of `class` and length `dur`.
    pub(crate) fn count(&mut self, class: DeviceClass, dur: Ns) {
        self.sum_ns += dur;
        self.events += 1;
        match class {
            DeviceClass::Compute => self.compute_ns += dur,
            DeviceClass::Communication => self.communication_ns += dur,
            DeviceClass::Memcpy => self.memcpy_ns += dur,
            DeviceClass::Memset => self.memset_ns += dur,
        }
    }

    /// Adds the time of another device.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.busy_ns += other.busy_ns;
        self.events += other.events;
        self.launches += other.launches;
        self.compute_ns += other.compute_ns;
        self.communication_ns += other.communication_ns;
        self.memcpy_ns += other.memcpy_ns;
        self.memset_ns += other.memset_ns;
    }
}

/// A known marker that says more about work in no phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OtherKind {
    /// `Optimizer.zero_grad#…`.
    ZeroGrad,
    /// `enumerate(DataLoader)#…`, `enumerate(DataPipe)#…`.
    DataLoading,
    /// Between the backward pass and the optimizer (gradient clipping).
    PostBackward,
    /// Launched in no step although the trace has steps.
    OutsideSteps,
    /// Everything else.
    Rest,
}

impl OtherKind {
    /// Every kind, in the order of output.
    pub const ALL: [Self; 5] = [
        Self::ZeroGrad,
        Self::DataLoading,
        Self::PostBackward,
        Self::OutsideSteps,
        Self::Rest,
    ];

    /// The spelling used in JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ZeroGrad => "zero_grad",
            Self::DataLoading => "data_loading",
            Self::PostBackward => "post_backward",
            Self::OutsideSteps => "outside_steps",
            Self::Rest => "rest",
        }
    }
}

/// Device time by bucket. The `sum_ns`, `events` and class columns of the buckets add up to the
/// total exactly; `busy_ns` need not, since buckets overlap in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Table {
    /// All device work.
    pub total: Cell,
    pub(crate) buckets: [Cell; 7],
    pub(crate) other_by: [Cell; 5],
}

impl Table {
    /// Device time of one bucket.
    pub fn bucket(&self, bucket: Bucket) -> &Cell {
        &self.buckets[bucket.index()]
    }

    /// Device time of one phase.
    pub fn phase(&self, phase: Phase) -> &Cell {
        self.bucket(Bucket::Phase(phase))
    }

    /// The part of [`Phase::Other`] under one kind of marker.
    pub fn other(&self, kind: OtherKind) -> &Cell {
        &self.other_by[kind as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.total.add(&other.total);
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            ours.add(theirs);
        }
        for (ours, theirs) in self.other_by.iter_mut().zip(&other.other_by) {
            ours.add(theirs);
        }
    }
}

/// The cell of [`Phase::Other`] with its sub-rows.
#[derive(Serialize)]
struct OtherCell {
    sum_ns: Ns,
    busy_ns: Ns,
    events: u64,
    launches: u64,
    compute_ns: Ns,
    communication_ns: Ns,
    memcpy_ns: Ns,
    memset_ns: Ns,
    by: BTreeMap<&'static str, Cell>,
}

impl OtherCell {
    fn new(table: &Table) -> Self {
        let cell = table.phase(Phase::Other);
        let kinds = OtherKind::ALL
            .iter()
            .map(|kind| (kind.as_str(), *table.other(*kind)));
        Self {
            sum_ns: cell.sum_ns,
            busy_ns: cell.busy_ns,
            events: cell.events,
            launches: cell.launches,
            compute_ns: cell.compute_ns,
            communication_ns: cell.communication_ns,
            memcpy_ns: cell.memcpy_ns,
            memset_ns: cell.memset_ns,
            by: kinds.filter(|(_, cell)| cell.events > 0).collect(),
        }
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(8))?;
        map.serialize_entry("total", &self.total)?;
        for bucket in Bucket::ALL {
            if bucket == Bucket::Phase(Phase::Other) {
                map.serialize_entry(bucket.as_str(), &OtherCell::new(self))?;
            } else {
                map.serialize_entry(bucket.as_str(), self.bucket(bucket))?;
            }
        }
        map.end()
    }
}

/// Writes the table of files without device work as an empty object: nothing was measured there.
pub(crate) fn measured<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    if table.total.events == 0 {
        return serializer.serialize_map(Some(0))?.end();
    }
    table.serialize(serializer)
}

/// What a device did over one window; each instant counts once, for the first class active in the
/// order compute, communication, copy, fill.
///
/// `compute_ns + exposed_communication_ns + exposed_memcpy_ns + exposed_memset_ns + idle_ns =
/// window_ns`, exactly; so do `phases` and `idle_ns`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// First instant, in absolute time where the file gives a base time.
    pub start_ns: Ns,
    /// First instant after.
    pub end_ns: Ns,
    /// `end_ns - start_ns`.
    pub window_ns: Ns,
    /// Union of computing kernels.
    pub compute_ns: Ns,
    /// Union of communication kernels.
    pub communication_ns: Ns,
    /// Communication under computing kernels.
    pub overlap_ns: Ns,
    /// Communication while no kernel computes.
    pub exposed_communication_ns: Ns,
    /// Copies while nothing computes or communicates.
    pub exposed_memcpy_ns: Ns,
    /// Fills while nothing else runs.
    pub exposed_memset_ns: Ns,
    /// Nothing runs.
    pub idle_ns: Ns,
    /// Busy time by the phase of the winning class's earliest-started event.
    #[serde(serialize_with = "phases_of_timeline")]
    pub phases: [Ns; 7],
}

impl Timeline {
    /// Time that is not idle.
    pub fn busy_ns(&self) -> Ns {
        self.window_ns - self.idle_ns
    }
}

fn phases_of_timeline<S: Serializer>(phases: &[Ns; 7], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        Bucket::ALL
            .iter()
            .map(|bucket| (bucket.as_str(), phases[bucket.index()])),
    )
}
