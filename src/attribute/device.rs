//! One device: its table by bucket, and its timeline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::class::DeviceClass;
use super::interval::{overlap, union};
use super::phase::Phase;
use super::table::{Bucket, Cell, Table, Timeline};
use super::work::Work;
use crate::units::{Ns, Span};

/// Builds a table from work in order of start.
#[derive(Default)]
pub(crate) struct TableBuilder {
    table: Table,
    ends: Ends,
}

/// Up to where each cell is busy.
struct Ends {
    total: Ns,
    buckets: [Ns; 7],
    other_by: [Ns; 5],
}

impl Default for Ends {
    fn default() -> Self {
        let never = Ns(i64::MIN);
        Self {
            total: never,
            buckets: [never; 7],
            other_by: [never; 5],
        }
    }
}

impl TableBuilder {
    /// Counts one piece of work.
    pub(crate) fn count(&mut self, work: &Work) {
        let count = |cell: &mut Cell, end: &mut Ns| {
            cell.count(work.class, work.span.len());
            cell.launches += u64::from(work.first_of_launch);
            let start = work.span.start.max(*end);
            if work.span.end > start {
                cell.busy_ns += work.span.end - start;
                *end = work.span.end;
            }
        };
        let (table, ends) = (&mut self.table, &mut self.ends);
        let bucket = work.bucket.index();
        count(&mut table.total, &mut ends.total);
        count(&mut table.buckets[bucket], &mut ends.buckets[bucket]);
        if work.bucket == Bucket::Phase(Phase::Other) {
            let kind = work.other as usize;
            count(&mut table.other_by[kind], &mut ends.other_by[kind]);
        }
    }

    pub(crate) fn finish(self) -> Table {
        self.table
    }
}

/// A stretch of time during which one class of one bucket holds the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) span: Span,
    pub(crate) class: DeviceClass,
    pub(crate) bucket: Bucket,
}

/// What a device did, ready to be cut into windows.
///
/// ```text
/// stream 7   ├─ gemm ─┤      ├ gemm ┤
/// stream 20      ├── all-reduce ──────────┤
/// holds      ├compute┤├ comm ┤├compu┤├comm┤
/// ```
/// Each instant goes to the first class active in the order compute, communication, copy, fill,
/// and within it to the event that started first.
pub(crate) struct Activity {
    stretches: Vec<Stretch>,
    communication: Vec<Span>,
}

impl Activity {
    /// `work` of one device, in order of start.
    pub(crate) fn new(work: &[Work]) -> Self {
        let mut sweep = Sweep {
            stretches: Vec::new(),
            open: Default::default(),
            now: Ns(i64::MIN),
        };
        for work in work {
            sweep.hold_until(work.span.start);
            sweep.open(work);
        }
        sweep.hold_until(Ns(i64::MAX));
        let communication = union(
            work.iter()
                .filter(|work| work.class == DeviceClass::Communication)
                .map(|work| work.span),
        );
        Self {
            stretches: sweep.stretches,
            communication,
        }
    }

    /// Who holds the device when, in order of time; it idles in between.
    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The timeline of one window; `base` is added to its absolute times.
    pub(crate) fn timeline(&self, window: Span, base: Ns) -> Timeline {
        let window = Span::new(window.start, window.end.max(window.start));
        let mut line = Timeline {
            start_ns: Ns(base.0.saturating_add(window.start.0)),
            end_ns: Ns(base.0.saturating_add(window.end.0)),
            window_ns: window.len(),
            ..Timeline::default()
        };
        let mut busy = Ns::ZERO;
        let from = self
            .stretches
            .partition_point(|stretch| stretch.span.end <= window.start);
        for stretch in &self.stretches[from..] {
            if stretch.span.start >= window.end {
                break;
            }
            let held = overlap(stretch.span, window);
            busy += held;
            line.phases[stretch.bucket.index()] += held;
            match stretch.class {
                DeviceClass::Compute => line.compute_ns += held,
                DeviceClass::Communication => line.exposed_communication_ns += held,
                DeviceClass::Memcpy => line.exposed_memcpy_ns += held,
                DeviceClass::Memset => line.exposed_memset_ns += held,
            }
        }
        let from = self
            .communication
            .partition_point(|span| span.end <= window.start);
        line.communication_ns = self.communication[from..]
            .iter()
            .take_while(|span| span.start < window.end)
            .map(|span| overlap(*span, window))
            .sum();
        line.overlap_ns = line.communication_ns - line.exposed_communication_ns;
        line.idle_ns = line.window_ns - busy;
        line
    }
}

/// Open work of one class: start, bucket, end; the smallest holds the device.
type Open = BinaryHeap<Reverse<(Ns, Bucket, Ns)>>;

struct Sweep {
    stretches: Vec<Stretch>,
    open: [Open; 4],
    now: Ns,
}

impl Sweep {
    fn open(&mut self, work: &Work) {
        if !work.span.is_empty() {
            let key = (work.span.start, work.bucket, work.span.end);
            self.open[work.class as usize].push(Reverse(key));
        }
    }

    fn hold_until(&mut self, until: Ns) {
        while self.now < until {
            let Some((class, bucket, end)) = self.holder() else {
                self.now = until;
                return;
            };
            let end = end.min(until);
            let start = self.now;
            self.now = end;
            if let Some(last) = self.stretches.last_mut()
                && last.span.end == start
                && last.class == class
                && last.bucket == bucket
            {
                last.span.end = end;
                continue;
            }
            self.stretches.push(Stretch {
                span: Span::new(start, end),
                class,
                bucket,
            });
        }
    }

    /// Who holds the device now; closes what has ended.
    fn holder(&mut self) -> Option<(DeviceClass, Bucket, Ns)> {
        for class in DeviceClass::ALL {
            let open = &mut self.open[class as usize];
            while let Some(Reverse((_, bucket, end))) = open.peek() {
                if *end > self.now {
                    return Some((class, *bucket, *end));
                }
                open.pop();
            }
        }
        None
    }
}

/// Tables of work of one device, in order of start: over all of it, and by listed step.
pub(crate) fn tables<'w>(
    work: impl Iterator<Item = &'w Work>,
    listed: &[u32],
) -> (Table, Vec<Table>) {
    let mut total = TableBuilder::default();
    let mut by_step: Vec<TableBuilder> = listed.iter().map(|_| TableBuilder::default()).collect();
    for work in work {
        total.count(work);
        if let Ok(place) = listed.binary_search(&work.step) {
            by_step[place].count(work);
        }
    }
    (
        total.finish(),
        by_step.into_iter().map(TableBuilder::finish).collect(),
    )
}

/// Marks, for every device, the first piece of work of each launch; `work` must be in order of
/// device, then of start.
pub(crate) fn mark_first_of_launch(work: &mut [Work], launches: usize) {
    let mut last_device: Vec<Option<i64>> = vec![None; launches];
    for work in work {
        if let Some(last) = last_device.get_mut(work.launch as usize) {
            work.first_of_launch = last.replace(work.device) != Some(work.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EventId;

    fn work(class: DeviceClass, bucket: Bucket, start: i64, end: i64) -> Work {
        Work::for_test(EventId(0), Span::new(Ns(start), Ns(end)), class, bucket)
    }

    #[test]
    fn each_instant_goes_to_the_first_class_and_its_earliest_event() {
        let forward = Bucket::Phase(Phase::Forward);
        let backward = Bucket::Phase(Phase::Backward);
        let work = [
            work(DeviceClass::Compute, forward, 0, 10),
            work(DeviceClass::Communication, backward, 5, 40),
            work(DeviceClass::Compute, backward, 8, 12),
            work(DeviceClass::Memcpy, forward, 30, 50),
            work(DeviceClass::Compute, backward, 60, 60),
            work(DeviceClass::Memset, forward, 70, 71),
        ];
        let line = Activity::new(&work).timeline(Span::new(Ns(0), Ns(71)), Ns(1000));
        assert_eq!(line.start_ns, Ns(1000));
        assert_eq!(line.compute_ns, Ns(12));
        assert_eq!(line.communication_ns, Ns(35));
        assert_eq!(line.overlap_ns, Ns(7));
        assert_eq!(line.exposed_communication_ns, Ns(28));
        assert_eq!(line.exposed_memcpy_ns, Ns(10));
        assert_eq!(line.exposed_memset_ns, Ns(1));
        assert_eq!(line.idle_ns, Ns(20));
        assert_eq!(line.phases[0], Ns(10 + 10 + 1));
        assert_eq!(line.phases[1], Ns(2 + 28));
    }
}
