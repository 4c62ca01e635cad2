//! NVTX events to ranges.
//!
//! ```text
//! thread 1   push a ── push b ── pop ── pop        a: 1st push to 2nd pop, b: 2nd push to 1st pop
//! thread 2   start 7 ─────────────────┐
//! thread 3                            └ end 7      one range, on the thread that started it
//! ```

use std::collections::{BTreeMap, HashMap};

use tracekit_spool::{NvtxEvent, NvtxOp, plain_name};

use super::recording::TextId;

/// A range of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) thread: u32,
    pub(super) name: TextId,
    pub(super) domain: u32,
    /// The sequence number that `emit_nvtx` of PyTorch put into the name.
    pub(super) sequence: Option<i64>,
    /// True for an operator that `emit_nvtx` told of.
    pub(super) is_operator: bool,
    /// False when it was still open at the end.
    pub(super) finished: bool,
}

/// Puts the ends of ranges together.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    done: Vec<Range>,
    /// Open ranges of each thread and domain, the innermost last.
    open: BTreeMap<(u32, u32), Vec<Range>>,
    started: BTreeMap<u64, Range>,
    ended: HashMap<u64, u64>,
    last: u64,
    /// Ends of ranges whose start was not recorded.
    pub(super) unmatched: u64,
    /// Events that are missing.
    pub(super) lost: u64,
}

impl Ranges {
    /// Adds the next event of `thread`; `intern` gives the place of a name.
    pub(super) fn add(
        &mut self,
        thread: u32,
        event: &NvtxEvent<'_>,
        intern: impl FnOnce(&[u8]) -> TextId,
    ) {
        self.last = self.last.max(event.time);
        let key = (thread, event.domain);
        match event.op {
            NvtxOp::Push => {
                let range = Self::begin(thread, event, intern);
                self.open.entry(key).or_default().push(range);
            }
            NvtxOp::Pop => match self.open.get_mut(&key).and_then(Vec::pop) {
                Some(range) => self.close(range, event.time),
                None => self.unmatched += 1,
            },
            // The batches of threads come in any order: the end may be seen first.
            NvtxOp::Start => {
                let range = Self::begin(thread, event, intern);
                match self.ended.remove(&event.id) {
                    Some(end) => self.close(range, end),
                    None => {
                        self.started.insert(event.id, range);
                    }
                }
            }
            NvtxOp::End => match self.started.remove(&event.id) {
                Some(range) => self.close(range, event.time),
                None => {
                    self.ended.insert(event.id, event.time);
                }
            },
            NvtxOp::Mark => {
                let range = Self::begin(thread, event, intern);
                self.close(range, event.time);
            }
            // Which ranges end in the gap is not known: all that are open are cut off here.
            NvtxOp::Gap => {
                self.lost += event.id;
                let of_thread = self.open.range_mut((thread, 0)..=(thread, u32::MAX));
                for range in of_thread.flat_map(|(_, ranges)| ranges.drain(..)) {
                    self.done.push(Range {
                        end: event.time.max(range.start),
                        finished: false,
                        ..range
                    });
                }
            }
            NvtxOp::NameThread => {}
        }
    }

    fn begin(thread: u32, event: &NvtxEvent<'_>, intern: impl FnOnce(&[u8]) -> TextId) -> Range {
        let (name, sequence, cut) = plain_name(event.name);
        Range {
            start: event.time,
            end: event.time,
            thread,
            name: intern(name),
            domain: event.domain,
            sequence,
            is_operator: cut && name.windows(2).any(|pair| pair == b"::"),
            finished: true,
        }
    }

    fn close(&mut self, range: Range, end: u64) {
        let end = end.max(range.start);
        self.done.push(Range { end, ..range });
    }

    /// All ranges. Those that are still open end at `last`, when the process was last heard of.
    pub(super) fn finish(mut self, last: u64) -> Vec<Range> {
        let last = last.max(self.last);
        let open = std::mem::take(&mut self.open).into_values().flatten();
        let started = std::mem::take(&mut self.started).into_values();
        for range in open.chain(started) {
            self.done.push(Range {
                end: last.max(range.start),
                finished: false,
                ..range
            });
        }
        self.done
    }

    /// How many ends of ranges have no start.
    pub(super) fn without_start(&self) -> u64 {
        self.unmatched + self.ended.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(op: NvtxOp, domain: u32, time: u64, id: u64, name: &str) -> NvtxEvent<'_> {
        let name = name.as_bytes();
        NvtxEvent {
            op,
            domain,
            time,
            id,
            name,
        }
    }

    /// Name, start, end, thread, finished.
    type Shown = (String, u64, u64, u32, bool);

    fn ranges(events: &[(u32, NvtxEvent<'_>)]) -> (Vec<Shown>, u64) {
        let mut names = Vec::new();
        let mut ranges = Ranges::default();
        for (thread, event) in events {
            ranges.add(*thread, event, |name| {
                names.push(String::from_utf8_lossy(name).into_owned());
                TextId(u32::try_from(names.len() - 1).unwrap())
            });
        }
        let unmatched = ranges.without_start();
        let ranges = ranges.finish(0);
        let shown = ranges.iter().map(|range| {
            let name = names[range.name.0 as usize].clone();
            (name, range.start, range.end, range.thread, range.finished)
        });
        (shown.collect(), unmatched)
    }

    #[test]
    fn pushes_and_pops_nest_by_thread_and_domain() {
        use NvtxOp::{Pop, Push};
        let (ranges, unmatched) = ranges(&[
            (1, event(Push, 0, 10, 0, "a")),
            (1, event(Push, 1, 11, 0, "other domain")),
            (2, event(Push, 0, 12, 0, "other thread")),
            (1, event(Push, 0, 13, 0, "b, op_id = 4")),
            (1, event(Pop, 0, 14, 0, "")),
            (1, event(Pop, 0, 15, 0, "")),
            (1, event(Pop, 0, 16, 0, "")),
            (1, event(Pop, 1, 17, 0, "")),
        ]);
        let want = [
            ("b", 13, 14, 1, true),
            ("a", 10, 15, 1, true),
            ("other domain", 11, 17, 1, true),
            ("other thread", 12, 17, 2, false),
        ];
        let want = want.map(|(name, start, end, thread, finished)| {
            (name.to_owned(), start, end, thread, finished)
        });
        assert_eq!(ranges, want);
        assert_eq!(unmatched, 1);
    }

    #[test]
    fn a_gap_cuts_off_what_is_open_on_its_thread() {
        use NvtxOp::{Gap, Pop, Push};
        let (ranges, unmatched) = ranges(&[
            (1, event(Push, 0, 10, 0, "a")),
            (2, event(Push, 0, 11, 0, "other thread")),
            (1, event(Push, 3, 12, 0, "other domain")),
            (1, event(Gap, 0, 20, 5, "")),
            (1, event(Push, 0, 21, 0, "b")),
            (1, event(Pop, 0, 22, 0, "")),
            (1, event(Pop, 0, 23, 0, "")),
            (2, event(Pop, 0, 24, 0, "")),
        ]);
        let want = [
            ("a", 10, 20, 1, false),
            ("other domain", 12, 20, 1, false),
            ("b", 21, 22, 1, true),
            ("other thread", 11, 24, 2, true),
        ];
        let want = want.map(|(name, start, end, thread, finished)| {
            (name.to_owned(), start, end, thread, finished)
        });
        assert_eq!(ranges, want);
        // The end of `a` came behind the gap.
        assert_eq!(unmatched, 1);
    }

    #[test]
    fn a_range_may_end_on_another_thread_that_is_read_first() {
        use NvtxOp::{End, Mark, Start};
        let (ranges, unmatched) = ranges(&[
            (3, event(End, 0, 30, 7, "")),
            (3, event(End, 0, 31, 9, "")),
            (2, event(Start, 0, 20, 7, "step")),
            (2, event(Start, 0, 21, 8, "open")),
            (2, event(Mark, 0, 22, 0, "here")),
        ]);
        let want = [
            ("step", 20, 30, 2, true),
            ("here", 22, 22, 2, true),
            ("open", 21, 31, 2, false),
        ];
        let want = want.map(|(name, start, end, thread, finished)| {
            (name.to_owned(), start, end, thread, finished)
        });
        assert_eq!(ranges, want);
        assert_eq!(unmatched, 1);
    }
}
