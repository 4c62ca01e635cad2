//! The keys of an event whose values columns need, in all their spellings.

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Ph,
    Cat,
    Name,
    Pid,
    Tid,
    Ts,
    Dur,
    Id,
    /// Of an event; those behind it are inside `args`.
    Args,
    External,
    Correlation,
    Device,
    InDevice,
    Stream,
    Sequence,
    FwdThread,
    Index,
    Dims,
    Finished,
}

impl Key {
    /// The key of an event that is spelled `text`.
    #[inline]
    pub(super) fn of_event(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"ph" => Self::Ph,
            b"cat" => Self::Cat,
            b"name" => Self::Name,
            b"pid" => Self::Pid,
            b"tid" => Self::Tid,
            b"ts" => Self::Ts,
            b"dur" => Self::Dur,
            b"id" => Self::Id,
            b"args" => Self::Args,
            _ => return None,
        })
    }

    /// The key of `args` that is spelled `text`.
    #[inline]
    pub(super) fn of_args(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"External id" | b"external id" => Self::External,
            b"correlation" => Self::Correlation,
            b"device" => Self::Device,
            b"inDevice" => Self::InDevice,
            b"stream" => Self::Stream,
            b"Sequence number" => Self::Sequence,
            b"Fwd thread id" => Self::FwdThread,
            b"Ev Idx" | b"Profiler Event Index" => Self::Index,
            b"Input Dims" | b"Input dims" => Self::Dims,
            b"finished" => Self::Finished,
            _ => return None,
        })
    }
}

/// Some of the keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Keys(u32);

impl Keys {
    /// Adds `key`; false when it is there already.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) -> bool {
        let bit = 1 << key as u32;
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new
    }

    /// Adds `others`; false when one of them is there already.
    #[inline]
    pub(super) fn extend(&mut self, others: Self) -> bool {
        let new = self.0 & others.0 == 0;
        self.0 |= others.0;
        new
    }
}
