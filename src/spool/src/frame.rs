//! Frames: the pieces a spool consists of.
//!
//! ```text
//! magic  TKSPOOL2
//! frame  tag u32 | length u32 | crc32 u32 | mark u32 | payload | zeros up to a multiple of 8
//! ```
//!
//! The checksum is over tag, length and payload. Every frame starts at a multiple of eight bytes and
//! has the same mark, so that a reader finds the next whole frame behind damaged ones.

use crate::read::u32_at;

/// The first bytes of a spool.
pub const MAGIC: [u8; 8] = *b"TKSPOOL2";

/// Length of the head of a frame.
pub const HEAD: usize = 16;

/// Stands in every frame: `TKFR`.
const MARK: u32 = u32::from_le_bytes(*b"TKFR");

/// The longest payload. Activity buffers are the longest that there are.
const LONGEST: usize = 256 << 20;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Tag {
    /// Facts about the process, as [fields](crate::fields()). The first frame.
    Header = 0,
    /// A string that activity records point to: its address (8 bytes), then its bytes.
    Text = 1,
    /// An activity buffer as CUPTI filled it.
    Buffer = 2,
    /// NVTX events of one thread: its id (4 bytes), 4 bytes of zeros, then events.
    Nvtx = 3,
    /// The process ended in order: counts, as [fields](crate::fields()). The last frame.
    End = 4,
    /// `CLOCK_REALTIME`, `CLOCK_MONOTONIC` and CUPTI's clock (0 without CUPTI), in nanoseconds,
    /// 8 bytes each, read one after the other.
    Clock = 5,
    /// Name of an API call: domain (4 bytes; 1 driver, 2 runtime), id (4 bytes), then the name.
    Callback = 6,
    /// A line that the user should see.
    Note = 7,
    /// Facts about CUPTI, as [fields](crate::fields()).
    Cupti = 8,
    /// Sizes of activity records: kind (4 bytes) and size (4 bytes), any number of times.
    Sizes = 9,
    /// Capturing starts or ends: `CLOCK_REALTIME` (8 bytes), 1 or 0 (8 bytes).
    Capture = 10,
    /// Name of an NVTX domain: number (4 bytes), then the name.
    Domain = 11,
    /// What earlier pieces of the spool held that were removed to make room, as
    /// [fields](crate::fields()).
    Lost = 12,
    /// NVTX ranges of one thread that were open when this piece of the spool began, as in
    /// [`Nvtx`](Tag::Nvtx). They say nothing new where the piece before is there.
    Open = 13,
}

impl Tag {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Header,
            1 => Self::Text,
            2 => Self::Buffer,
            3 => Self::Nvtx,
            4 => Self::End,
            5 => Self::Clock,
            6 => Self::Callback,
            7 => Self::Note,
            8 => Self::Cupti,
            9 => Self::Sizes,
            10 => Self::Capture,
            11 => Self::Domain,
            12 => Self::Lost,
            13 => Self::Open,
            _ => return None,
        })
    }
}

/// A payload longer than a frame may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// The head of a frame whose payload is `parts`, one after the other.
///
/// # Errors
/// When the payload is longer than 256 MiB.
pub fn head(tag: Tag, parts: &[&[u8]]) -> Result<[u8; HEAD], TooLong> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).ok().filter(|_| length <= LONGEST);
    let length = length.ok_or(TooLong)?;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(tag as u32).to_le_bytes());
    head[4..8].copy_from_slice(&length.to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..8]);
    for part in parts {
        crc.update(part);
    }
    head[8..12].copy_from_slice(&crc.finalize().to_le_bytes());
    head[12..].copy_from_slice(&MARK.to_le_bytes());
    Ok(head)
}

/// The zeros behind a payload of `length` bytes.
pub fn padding(length: usize) -> &'static [u8] {
    &[0; 8][..length.wrapping_neg() % 8]
}

/// One whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it holds; `None` for what a later version may write.
    pub tag: Option<Tag>,
    /// Its payload.
    pub data: &'a [u8],
}

/// The whole frames of a spool, in order; what is damaged is skipped and counted.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    damaged: u64,
    torn: u64,
    /// Bytes of checksums that a damaged spool may still cost.
    patience: u64,
}

impl<'a> Frames<'a> {
    /// The frames in the whole content of a spool; `None` when it is none.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.starts_with(&MAGIC).then_some(Self {
            bytes,
            at: MAGIC.len(),
            damaged: 0,
            torn: 0,
            patience: 4 * bytes.len() as u64,
        })
    }

    /// Bytes skipped so far before whole frames.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Bytes at the end that are no whole frame; known once the last frame was given.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// The frame at `at` and where it ends.
    fn frame_at(&mut self, at: usize) -> Option<(Frame<'a>, usize)> {
        let bytes = self.bytes.get(at..)?;
        if u32_at(bytes, 12)? != MARK {
            return None;
        }
        let length = usize::try_from(u32_at(bytes, 4)?).ok()?;
        let data = bytes[HEAD..].get(..length)?;
        // Marks in damaged bytes may each ask for the checksum of all that follows.
        self.patience = self.patience.checked_sub(length as u64)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[..8]);
        crc.update(data);
        if crc.finalize() != u32_at(bytes, 8)? {
            return None;
        }
        let tag = Tag::from_number(u32_at(bytes, 0)?);
        let end = at + HEAD + length + padding(length).len();
        Some((Frame { tag, data }, end.min(self.bytes.len())))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let start = self.at;
        let mut at = start;
        while at < self.bytes.len() {
            if let Some((frame, end)) = self.frame_at(at) {
                self.damaged += (at - start) as u64;
                self.at = end;
                return Some(frame);
            }
            at += 8;
        }
        self.torn += (self.bytes.len() - start) as u64;
        self.at = self.bytes.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for payload in payloads {
            bytes.extend_from_slice(&head(Tag::Note, &[payload]).unwrap());
            bytes.extend_from_slice(payload);
            bytes.extend_from_slice(padding(payload.len()));
        }
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<&[u8]>, u64, u64) {
        let mut frames = Frames::new(bytes).unwrap();
        let read = frames.by_ref().map(|frame| frame.data).collect();
        (read, frames.damaged(), frames.torn())
    }

    #[test]
    fn frames_come_back_in_order() {
        let bytes = spool(&[b"one", b"", b"12345678", b"123456789"]);
        let all: Vec<&[u8]> = vec![b"one", b"", b"12345678", b"123456789"];
        assert_eq!(read(&bytes), (all, 0, 0));
        assert_eq!(bytes.len() % 8, 0);
        assert!(Frames::new(b"TKSPOOL1").is_none());
        assert!(Frames::new(b"").is_none());
    }

    #[test]
    fn a_torn_end_loses_only_the_last_frame() {
        let bytes = spool(&[b"one", b"two two two"]);
        let first = 8 + HEAD + 8;
        for end in first..bytes.len() - 5 {
            let (frames, damaged, torn) = read(&bytes[..end]);
            assert_eq!((frames, damaged), (vec![&b"one"[..]], 0), "cut at {end}");
            assert_eq!(torn, (end - first) as u64);
        }
        // Only zeros are missing: the frame is whole.
        let (frames, _, torn) = read(&bytes[..bytes.len() - 5]);
        assert_eq!((frames.len(), torn), (2, 0));
    }

    #[test]
    fn any_flipped_bit_loses_one_frame_and_no_other() {
        let bytes = spool(&[b"one", b"two two two", b"three"]);
        let second = 8 + HEAD + 8;
        let third = second + HEAD + 16;
        for bit in second * 8..(third - 5) * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (frames, damaged, torn) = read(&bytes);
            assert_eq!(frames, [&b"one"[..], b"three"], "bit {bit}");
            assert_eq!((damaged, torn), ((third - second) as u64, 0));
        }
    }

    #[test]
    fn a_spool_of_nothing_but_marks_is_left_soon() {
        let mut bytes = MAGIC.to_vec();
        for _ in 0..200_000 {
            bytes.extend_from_slice(&1_000_000_u32.to_le_bytes());
            bytes.extend_from_slice(&MARK.to_le_bytes());
        }
        let (frames, _, torn) = read(&bytes);
        assert_eq!((frames.len(), torn), (0, bytes.len() as u64 - 8));
    }

    #[test]
    fn a_payload_longer_than_a_frame_is_refused() {
        let part = vec![0; 64 << 20];
        let parts: Vec<&[u8]> = vec![&part; 5];
        assert_eq!(head(Tag::Buffer, &parts), Err(TooLong));
    }
}
