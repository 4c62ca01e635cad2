//! CUPTI's activity records, read from raw buffers without CUPTI.
//!
//! The fields used here have the same offsets in the headers of CUDA 12.4, 12.9, 13.0 and 13.5;
//! only the sizes of records differ, and those the injected library asks of the CUPTI it runs with.

use crate::read::{u16_at, u32_at, u64_at};

/// Kinds of records (`CUpti_ActivityKind`).
pub mod kind {
    /// A copy.
    pub const MEMCPY: u32 = 1;
    /// A fill.
    pub const MEMSET: u32 = 2;
    /// A kernel, where kernels are serialised.
    pub const KERNEL: u32 = 3;
    /// A call of the driver API.
    pub const DRIVER: u32 = 4;
    /// A call of the runtime API.
    pub const RUNTIME: u32 = 5;
    /// A device.
    pub const DEVICE: u32 = 8;
    /// A context.
    pub const CONTEXT: u32 = 9;
    /// A kernel.
    pub const CONCURRENT_KERNEL: u32 = 10;
    /// Time that CUPTI or the driver takes for itself.
    pub const OVERHEAD: u32 = 17;
    /// A copy between devices.
    pub const MEMCPY2: u32 = 22;
    /// A wait.
    pub const SYNCHRONIZATION: u32 = 38;
}

/// Offset of the pointer to a string that only the traced process can follow.
pub fn text_fields(kind: u32) -> Option<usize> {
    match kind {
        kind::KERNEL | kind::CONCURRENT_KERNEL => Some(104),
        kind::DEVICE => Some(136),
        _ => None,
    }
}

/// How long the records of each kind are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSizes([u32; 128]);

impl Default for RecordSizes {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl RecordSizes {
    /// The sizes in a frame; entries that cannot be are left out.
    pub fn of_frame(data: &[u8]) -> Self {
        let mut sizes = Self::default();
        for entry in data.chunks_exact(8) {
            if let (Some(kind), Some(size)) = (u32_at(entry, 0), u32_at(entry, 4)) {
                sizes.set(kind, size);
            }
        }
        sizes
    }

    /// Says that records of `kind` have `size` bytes, which a multiple of 4 up to 64 KiB can be.
    pub fn set(&mut self, kind: u32, size: u32) {
        let place = usize::try_from(kind)
            .ok()
            .and_then(|kind| self.0.get_mut(kind));
        if let Some(place) = place
            && (8..=1 << 16).contains(&size)
            && size.is_multiple_of(4)
        {
            *place = size;
        }
    }

    /// The size of records of `kind`; `None` when it is not known.
    pub fn get(&self, kind: u32) -> Option<usize> {
        let size = *self.0.get(usize::try_from(kind).ok()?)?;
        usize::try_from(size).ok().filter(|size| *size > 0)
    }

    /// Kinds and sizes, in order of kind.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let known = (0..).zip(self.0);
        known.filter(|(_, size)| *size > 0)
    }
}

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Kernel {
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers_per_thread: u16,
    pub static_shared: u32,
    pub dynamic_shared: u32,
    pub correlation: u32,
    /// Address of its mangled name in the traced process.
    pub name: u64,
    pub graph_node: u64,
    pub graph: u32,
}

/// A copy within one device or between it and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Copy {
    pub copy_kind: u8,
    pub source_kind: u8,
    pub target_kind: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    /// The devices and contexts it goes from and to, for a copy between devices.
    pub peer: Option<Peer>,
}

/// The two sides of a copy between devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names")]
pub struct Peer {
    pub source_device: u32,
    pub source_context: u32,
    pub target_device: u32,
    pub target_context: u32,
}

/// A fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Fill {
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub memory_kind: u16,
}

/// A call of the runtime or driver API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Api {
    /// True for the runtime API.
    pub runtime: bool,
    pub cbid: u32,
    pub start: u64,
    pub end: u64,
    pub thread: u32,
    pub correlation: u32,
}

/// A wait of the host or a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Sync {
    pub sync_kind: u32,
    pub start: u64,
    pub end: u64,
    pub correlation: u32,
    pub context: u32,
    /// `u32::MAX` when it is about no one stream.
    pub stream: u32,
    pub event: u32,
}

/// Time that CUPTI or the driver takes for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Overhead {
    pub overhead_kind: u32,
    pub start: u64,
    pub end: u64,
}

/// A device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names and units")]
pub struct Device {
    pub id: u32,
    pub memory: u64,
    /// KB/s.
    pub memory_bandwidth: u64,
    pub l2_cache: u32,
    pub warp: u32,
    /// kHz.
    pub core_clock: u32,
    pub multiprocessors: u32,
    pub warps_per_multiprocessor: u32,
    pub blocks_per_multiprocessor: u32,
    pub shared_per_multiprocessor: u32,
    pub registers_per_multiprocessor: u32,
    pub registers_per_block: u32,
    pub shared_per_block: u32,
    pub threads_per_block: u32,
    pub compute_capability: [u32; 2],
    pub uuid: [u8; 16],
    /// Address of its name in the traced process.
    pub name: u64,
}

/// A context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "CUPTI's own names")]
pub struct Context {
    pub id: u32,
    pub device: u32,
}

/// One activity record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// A kernel.
    Kernel(Kernel),
    /// A copy.
    Copy(Copy),
    /// A fill.
    Fill(Fill),
    /// A call of the API.
    Api(Api),
    /// A wait.
    Sync(Sync),
    /// Time the tools take.
    Overhead(Overhead),
    /// A device.
    Device(Device),
    /// A context.
    Context(Context),
    /// A kind that is not used here.
    Other(u32),
}

impl Record {
    /// Reads the record in `bytes`; `None` when it is shorter than its fields.
    fn read(kind: u32, bytes: &[u8]) -> Option<Self> {
        let u16_at = |offset| u16_at(bytes, offset);
        let u32_at = |offset| u32_at(bytes, offset);
        let u64_at = |offset| u64_at(bytes, offset);
        Some(match kind {
            kind::KERNEL | kind::CONCURRENT_KERNEL => Self::Kernel(Kernel {
                start: u64_at(16)?,
                end: u64_at(24)?,
                device: u32_at(40)?,
                context: u32_at(44)?,
                stream: u32_at(48)?,
                grid: [u32_at(52)?, u32_at(56)?, u32_at(60)?],
                block: [u32_at(64)?, u32_at(68)?, u32_at(72)?],
                registers_per_thread: u16_at(6)?,
                static_shared: u32_at(76)?,
                dynamic_shared: u32_at(80)?,
                correlation: u32_at(92)?,
                name: u64_at(104)?,
                graph_node: u64_at(144)?,
                graph: u32_at(156)?,
            }),
            kind::MEMCPY | kind::MEMCPY2 => Self::Copy(Copy {
                copy_kind: *bytes.get(4)?,
                source_kind: *bytes.get(5)?,
                target_kind: *bytes.get(6)?,
                bytes: u64_at(8)?,
                start: u64_at(16)?,
                end: u64_at(24)?,
                device: u32_at(32)?,
                context: u32_at(36)?,
                stream: u32_at(40)?,
                correlation: u32_at(if kind == kind::MEMCPY { 44 } else { 60 })?,
                peer: if kind == kind::MEMCPY {
                    None
                } else {
                    Some(Peer {
                        source_device: u32_at(44)?,
                        source_context: u32_at(48)?,
                        target_device: u32_at(52)?,
                        target_context: u32_at(56)?,
                    })
                },
            }),
            kind::MEMSET => Self::Fill(Fill {
                bytes: u64_at(8)?,
                start: u64_at(16)?,
                end: u64_at(24)?,
                device: u32_at(32)?,
                context: u32_at(36)?,
                stream: u32_at(40)?,
                correlation: u32_at(44)?,
                memory_kind: u16_at(50)?,
            }),
            kind::RUNTIME | kind::DRIVER => Self::Api(Api {
                runtime: kind == kind::RUNTIME,
                cbid: u32_at(4)?,
                start: u64_at(8)?,
                end: u64_at(16)?,
                thread: u32_at(28)?,
                correlation: u32_at(32)?,
            }),
            kind::SYNCHRONIZATION => Self::Sync(Sync {
                sync_kind: u32_at(4)?,
                start: u64_at(8)?,
                end: u64_at(16)?,
                correlation: u32_at(24)?,
                context: u32_at(28)?,
                stream: u32_at(32)?,
                event: u32_at(36)?,
            }),
            kind::OVERHEAD => Self::Overhead(Overhead {
                overhead_kind: u32_at(4)?,
                start: u64_at(24)?,
                end: u64_at(32)?,
            }),
            kind::DEVICE => Self::Device(Device {
                id: u32_at(112)?,
                memory: u64_at(16)?,
                memory_bandwidth: u64_at(8)?,
                l2_cache: u32_at(28)?,
                warp: u32_at(32)?,
                core_clock: u32_at(36)?,
                multiprocessors: u32_at(44)?,
                warps_per_multiprocessor: u32_at(52)?,
                blocks_per_multiprocessor: u32_at(56)?,
                shared_per_multiprocessor: u32_at(60)?,
                registers_per_multiprocessor: u32_at(64)?,
                registers_per_block: u32_at(68)?,
                shared_per_block: u32_at(72)?,
                threads_per_block: u32_at(76)?,
                compute_capability: [u32_at(104)?, u32_at(108)?],
                uuid: *bytes.get(120..)?.first_chunk()?,
                name: u64_at(136)?,
            }),
            kind::CONTEXT => Self::Context(Context {
                id: u32_at(4)?,
                device: u32_at(8)?,
            }),
            other => Self::Other(other),
        })
    }
}

/// The records of one activity buffer, up to one that cannot be read.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    sizes: &'a RecordSizes,
}

impl<'a> Records<'a> {
    /// The records in `bytes`, the valid part of a buffer.
    pub fn new(bytes: &'a [u8], sizes: &'a RecordSizes) -> Self {
        let at = 0;
        Self { bytes, at, sizes }
    }

    /// Bytes that were not read: more than 0 at the end when a record is cut or of a kind whose
    /// size is not known.
    pub fn rest(&self) -> usize {
        self.bytes.len() - self.at
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let bytes = &self.bytes[self.at..];
        let kind = u32_at(bytes, 0)?;
        let size = self.sizes.get(kind)?;
        let record = Record::read(kind, bytes.get(..size)?)?;
        self.at += size;
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], offset: usize, value: u64, length: usize) {
        bytes[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
    }

    #[test]
    fn records_are_walked_by_their_sizes() {
        let mut sizes = RecordSizes::default();
        sizes.set(kind::CONCURRENT_KERNEL, 208);
        sizes.set(kind::RUNTIME, 40);
        sizes.set(60, 16);
        let mut bytes = vec![0; 208 + 16 + 40];
        put(&mut bytes, 0, 10, 4);
        put(&mut bytes, 16, 1_000, 8);
        put(&mut bytes, 24, 1_500, 8);
        put(&mut bytes, 92, 7, 4);
        put(&mut bytes, 208, 60, 4);
        put(&mut bytes, 224, 5, 4);
        put(&mut bytes, 224 + 28, 99, 4);
        put(&mut bytes, 224 + 32, 7, 4);
        let mut records = Records::new(&bytes, &sizes);
        let read: Vec<_> = records.by_ref().collect();
        assert_eq!(records.rest(), 0);
        let [Record::Kernel(kernel), Record::Other(60), Record::Api(api)] = read[..] else {
            panic!("{read:?}");
        };
        let times = (kernel.start, kernel.end, kernel.correlation);
        assert_eq!(times, (1_000, 1_500, 7));
        assert_eq!((api.runtime, api.thread, api.correlation), (true, 99, 7));
        for end in 0..bytes.len() {
            let mut records = Records::new(&bytes[..end], &sizes);
            assert!(records.by_ref().count() < 3);
            assert!(end == 0 || end == 208 || end == 224 || records.rest() > 0);
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_left_out() {
        let mut frame = Vec::new();
        for (kind, size) in [(1, 0), (2, 7), (3, 1 << 20), (4, 40), (400, 40), (5, 41)] {
            frame.extend_from_slice(&u32::to_le_bytes(kind));
            frame.extend_from_slice(&u32::to_le_bytes(size));
        }
        let sizes = RecordSizes::of_frame(&frame);
        assert!(sizes.iter().eq([(4, 40)]));
    }

    #[test]
    fn a_size_too_small_for_the_fields_ends_the_walk() {
        let mut sizes = RecordSizes::default();
        sizes.set(kind::CONCURRENT_KERNEL, 8);
        let bytes = [10, 0, 0, 0, 0, 0, 0, 0];
        let mut records = Records::new(&bytes, &sizes);
        assert_eq!((records.next(), records.rest()), (None, 8));
    }
}
