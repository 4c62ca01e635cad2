//! NVTX events as the injected library batches them, by thread.
//!
//! ```text
//! event  op u8 | 0 u8 | length of name u16 | domain u32 | CLOCK_REALTIME ns u64 | id u64 | name
//! ```

use crate::read::{u16_at, u32_at, u64_at};

/// Length of an event without its name.
const FIXED: usize = 24;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum NvtxOp {
    /// A range opens on this thread; the next unmatched pop of the domain closes it.
    Push = 1,
    /// The last range of the domain that was pushed on this thread closes.
    Pop = 2,
    /// A range with an id opens; any thread may close it.
    Start = 3,
    /// The range with the id closes.
    End = 4,
    /// A moment.
    Mark = 5,
    /// The thread with the id gets a name.
    NameThread = 6,
    /// Events of this thread are missing, as many as the id says: it left more than there was room for.
    Gap = 7,
}

impl NvtxOp {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Push,
            2 => Self::Pop,
            3 => Self::Start,
            4 => Self::End,
            5 => Self::Mark,
            6 => Self::NameThread,
            7 => Self::Gap,
            _ => return None,
        })
    }
}

/// One NVTX event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvtxEvent<'a> {
    /// What happened.
    pub op: NvtxOp,
    /// Number of the domain; 0 is the default domain.
    pub domain: u32,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub time: u64,
    /// Id of a range that is started and ended, or of a thread that gets a name; for a gap, a count;
    /// else 0.
    pub id: u64,
    /// Name as the program gave it, cut at 65,535 bytes; empty where there is none.
    pub name: &'a [u8],
}

/// Adds `event` to a batch.
#[inline]
pub fn push_event(batch: &mut Vec<u8>, event: &NvtxEvent<'_>) {
    let length = u16::try_from(event.name.len()).unwrap_or(u16::MAX);
    let mut fixed = [0; FIXED];
    fixed[0] = event.op as u8;
    fixed[2..4].copy_from_slice(&length.to_le_bytes());
    fixed[4..8].copy_from_slice(&event.domain.to_le_bytes());
    fixed[8..16].copy_from_slice(&event.time.to_le_bytes());
    fixed[16..].copy_from_slice(&event.id.to_le_bytes());
    batch.extend_from_slice(&fixed);
    batch.extend_from_slice(&event.name[..usize::from(length)]);
}

/// The events of a batch, up to the first that is cut or unknown.
#[derive(Debug, Clone)]
pub struct NvtxEvents<'a>(&'a [u8]);

impl<'a> NvtxEvents<'a> {
    /// The thread and the events of a frame; `None` when it is too short for a thread.
    pub fn of_frame(data: &'a [u8]) -> Option<(u32, Self)> {
        Some((u32_at(data, 0)?, Self(data.get(8..)?)))
    }

    /// The events of a batch that has no thread in front.
    pub fn of_batch(batch: &'a [u8]) -> Self {
        Self(batch)
    }

    /// Bytes that were not read yet.
    pub fn rest(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for NvtxEvents<'a> {
    type Item = NvtxEvent<'a>;

    fn next(&mut self) -> Option<NvtxEvent<'a>> {
        let bytes = self.0;
        let op = NvtxOp::from_number(*bytes.first()?)?;
        let name = usize::from(u16_at(bytes, 2)?);
        let (domain, time, id) = (u32_at(bytes, 4)?, u64_at(bytes, 8)?, u64_at(bytes, 16)?);
        let (name, rest) = bytes[FIXED..].split_at_checked(name)?;
        self.0 = rest;
        Some(NvtxEvent {
            op,
            domain,
            time,
            id,
            name,
        })
    }
}

/// The name that a range was given, and its sequence number, without what `emit_nvtx` of PyTorch
/// adds behind: `aten::mm, seq = 3, op_id = 7, sizes = [[2, 2]]` is `aten::mm` with 3.
///
/// `None` in the place of the number where there is none; the flag says whether anything was cut.
pub fn plain_name(name: &[u8]) -> (&[u8], Option<i64>, bool) {
    let find = |text: &[u8]| {
        let rest = name.len().checked_sub(text.len())?;
        (0..=rest).rev().find(|at| name[*at..].starts_with(text))
    };
    let number = |at: usize| {
        let digits = name[at..].split(|byte| *byte == b',').next()?;
        let number = std::str::from_utf8(digits).ok()?.trim();
        number.parse::<i64>().ok()
    };
    let seq = find(b", seq = ").and_then(|at| Some((at, number(at + 8)?)));
    let op = find(b", op_id = ").and_then(|at| Some((at, number(at + 10)?)));
    match (seq, op) {
        (Some((at, sequence)), Some((behind, _))) if at < behind => {
            (&name[..at], Some(sequence), true)
        }
        (_, Some((at, _))) => (&name[..at], None, true),
        (Some((at, sequence)), None) => (&name[..at], Some(sequence), true),
        (None, None) => (name, None, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_emit_nvtx_adds_is_cut() {
        let cases: [(&str, &str, Option<i64>, bool); 8] = [
            ("phase.forward", "phase.forward", None, false),
            ("phase.recompute, op_id = 1", "phase.recompute", None, true),
            ("aten::mm, seq = 0, op_id = 3", "aten::mm", Some(0), true),
            ("aten::mm, seq = 12", "aten::mm", Some(12), true),
            (
                "aten::mm, seq = 3, op_id = 7, sizes = [[2, 2]], input_op_ids = [(1, 0)]",
                "aten::mm",
                Some(3),
                true,
            ),
            ("a, b, op_id = 4", "a, b", None, true),
            ("my range, seq = many", "my range, seq = many", None, false),
            ("", "", None, false),
        ];
        for (given, name, sequence, cut) in cases {
            let plain = plain_name(given.as_bytes());
            assert_eq!(plain, (name.as_bytes(), sequence, cut), "{given}");
        }
    }

    #[test]
    fn events_come_back_up_to_the_first_that_is_cut() {
        let event = |op, id, name| NvtxEvent {
            op,
            domain: 3,
            time: u64::MAX - id,
            id,
            name,
        };
        let long = vec![b'x'; 70_000];
        let events = [
            event(NvtxOp::Push, 0, b"phase.forward"),
            event(NvtxOp::Pop, 0, b""),
            event(NvtxOp::Start, 5, &long[..65_535]),
            event(NvtxOp::End, 5, b""),
        ];
        let mut batch = vec![7, 0, 0, 0, 0, 0, 0, 0];
        for event in &events {
            push_event(&mut batch, event);
        }
        let (thread, read) = NvtxEvents::of_frame(&batch).unwrap();
        assert_eq!(thread, 7);
        assert!(read.eq(events));
        for end in [8, 9, 31, 44, 45, 70, 1_000, batch.len() - 1] {
            let (_, read) = NvtxEvents::of_frame(&batch[..end]).unwrap();
            let read: Vec<_> = read.collect();
            assert!(read.len() < 4 && events.starts_with(&read), "cut at {end}");
        }
        assert!(NvtxEvents::of_frame(&batch[..7]).is_none());

        let mut batch = Vec::new();
        push_event(&mut batch, &event(NvtxOp::Mark, 0, &long));
        assert_eq!(NvtxEvents(&batch).next().unwrap().name.len(), 65_535);
    }
}
