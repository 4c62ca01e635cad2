//! What a trace is: columns of events, interned names, tracks, metadata.
//!
//! Built by [`crate::ingest`]; every later stage only reads it.

mod activity;
mod call;
mod counter;
mod event;
mod metadata;
mod offset;
mod side;
mod strings;
mod trace;
mod track;

pub use activity::ActivityType;
pub(crate) use call::Call;
pub use counter::CounterKind;
pub(crate) use event::NO_SIDE;
pub use event::{DeviceArgs, EventFlags, EventId, EventTable, LaunchArgs, OpArgs, Ph};
pub use metadata::{DeviceProperties, DistributedInfo, Messages, Metadata, NotedLoss, Rewriting};
pub(crate) use strings::Texts;
pub use strings::{StrId, Strings};
pub use trace::Trace;
pub use track::{Ident, Track, TrackId, Tracks};
