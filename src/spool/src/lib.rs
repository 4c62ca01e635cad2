//! The spool of `tracekit collect`: what the library inside a CUDA program writes, and what the
//! parent reads.
//!
//! A spool is one file of one process: eight bytes of magic, then [frames](Frames) with a checksum
//! each, only ever appended. Activity buffers stand in it as CUPTI filled them; [`Records`] walks
//! them without CUPTI, by the record sizes that the spool itself holds. Whatever happens to the
//! process or the file, what is whole in it can be read: nothing here panics on any bytes.

mod fields;
mod frame;
mod nvtx;
mod read;
mod record;

pub use fields::{fields, push_field};
pub use frame::{Frame, Frames, HEAD, MAGIC, Tag, TooLong, head, padding};
pub use nvtx::{NvtxEvent, NvtxEvents, NvtxOp, plain_name, push_event};
pub use read::{u16_at, u32_at, u64_at};
pub use record::{
    Api, Context, Copy, Device, Fill, Kernel, Overhead, Peer, Record, RecordSizes, Records, Sync,
    kind, text_fields,
};
