//! Ranges that are open, for a ring: a file that loses the ones before it has to say what they left open.

use std::collections::BTreeMap;

use tracekit_spool::{NvtxEvent, NvtxEvents, NvtxOp, push_event};

/// More open ranges than any program nests. Those beyond have no beginning once theirs is removed, which
/// the reader counts.
const MOST: usize = 1 << 12;

/// Ranges that are open in what was written so far.
#[derive(Default)]
pub(crate) struct OpenRanges {
    /// By thread and domain, the innermost last; each as the event that opened it.
    pushed: BTreeMap<(u32, u32), Vec<Vec<u8>>>,
    /// By id, with the thread.
    started: BTreeMap<u64, (u32, Vec<u8>)>,
    /// Names of threads, which are told once.
    named: BTreeMap<u64, (u32, Vec<u8>)>,
    count: usize,
}

fn encoded(event: &NvtxEvent<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_event(&mut bytes, event);
    bytes
}

impl OpenRanges {
    /// Follows the events of `thread`.
    pub(crate) fn add(&mut self, thread: u32, events: NvtxEvents<'_>) {
        for event in events {
            match event.op {
                NvtxOp::Push if self.count < MOST => {
                    let ranges = self.pushed.entry((thread, event.domain)).or_default();
                    ranges.push(encoded(&event));
                    self.count += 1;
                }
                NvtxOp::Pop => {
                    let ranges = self.pushed.get_mut(&(thread, event.domain));
                    if ranges.and_then(Vec::pop).is_some() {
                        self.count -= 1;
                    }
                }
                NvtxOp::Start if self.count < MOST => {
                    let range = (thread, encoded(&event));
                    let before = self.started.insert(event.id, range);
                    self.count += usize::from(before.is_none());
                }
                NvtxOp::End => {
                    if self.started.remove(&event.id).is_some() {
                        self.count -= 1;
                    }
                }
                NvtxOp::NameThread if self.named.len() < MOST => {
                    self.named.insert(event.id, (thread, encoded(&event)));
                }
                NvtxOp::Gap => {
                    let of_thread = self.pushed.range_mut((thread, 0)..=(thread, u32::MAX));
                    for (_, ranges) in of_thread {
                        self.count -= ranges.len();
                        ranges.clear();
                    }
                }
                NvtxOp::Push | NvtxOp::Start | NvtxOp::Mark | NvtxOp::NameThread => {}
            }
        }
    }

    /// The ranges that are open, and names, as events of their threads.
    pub(crate) fn batches(&self) -> BTreeMap<u32, Vec<u8>> {
        let mut batches: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for ((thread, _), ranges) in &self.pushed {
            let batch = batches.entry(*thread).or_default();
            batch.extend(ranges.iter().flatten());
        }
        for (thread, event) in self.started.values().chain(self.named.values()) {
            batches.entry(*thread).or_default().extend(event);
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_told_as_it_was_opened() {
        let event = |op, domain, id, name: &'static str| NvtxEvent {
            op,
            domain,
            time: 5,
            id,
            name: name.as_bytes(),
        };
        let frame = |thread: u32, events: &[NvtxEvent<'_>]| {
            let mut frame = thread.to_le_bytes().to_vec();
            frame.extend([0; 4]);
            for event in events {
                push_event(&mut frame, event);
            }
            frame
        };
        let first = [
            event(NvtxOp::Push, 0, 0, "step"),
            event(NvtxOp::Push, 0, 0, "forward"),
            event(NvtxOp::Push, 2, 0, "library"),
            event(NvtxOp::Pop, 0, 0, ""),
            event(NvtxOp::Start, 0, 9, "started"),
            event(NvtxOp::Start, 0, 10, "ended elsewhere"),
            event(NvtxOp::Mark, 0, 0, "mark"),
            event(NvtxOp::NameThread, 0, 1, "trainer"),
        ];
        let second = [
            event(NvtxOp::End, 0, 10, ""),
            event(NvtxOp::Pop, 0, 0, ""),
            event(NvtxOp::Push, 0, 0, "data"),
        ];
        let mut open = OpenRanges::default();
        for (thread, events) in [(1, &first[..]), (2, &second[..])] {
            let frame = frame(thread, events);
            let (thread, events) = NvtxEvents::of_frame(&frame).unwrap();
            open.add(thread, events);
        }
        let batches = open.batches();
        assert_eq!(batches.len(), 2);
        let names = |thread: u32| -> Vec<String> {
            let frame = [&[0; 8][..], &batches[&thread]].concat();
            let (_, events) = NvtxEvents::of_frame(&frame).unwrap();
            events
                .map(|event| String::from_utf8_lossy(event.name).into_owned())
                .collect()
        };
        assert_eq!(names(1), ["step", "library", "started", "trainer"]);
        assert_eq!(names(2), ["data"]);
    }
}
