//! Remarks: what to know about the tables of an inspection before believing them.
//!
//! They are about an answer, where [health](crate::health) is about the traces.

use serde::Serialize;

use super::critical_path::PATHS;
use super::frame::{Entry, Frame};
use super::topic::Topic;
use crate::units::Ns;

/// Something to know about the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Its name, in snake case.
    pub code: &'static str,
    /// Of how many rows it is true.
    pub count: u64,
    /// The time that it is about, in nanoseconds, where that is known.
    pub time_ns: Option<Ns>,
    /// What it means, in a sentence.
    pub message: &'static str,
}

/// What to know about `frames`, the tables of `topic`.
pub(super) fn remarks(topic: Topic, frames: &[Frame]) -> Vec<Remark> {
    let paths = frames.iter().find(|frame| frame.name == PATHS);
    match (topic, paths) {
        (Topic::CriticalPath, Some(paths)) => of_paths(paths),
        _ => Vec::new(),
    }
}

fn of_paths(paths: &Frame) -> Vec<Remark> {
    let entry = |name: &str, row: usize| {
        let column = paths.column(name);
        column.map_or(Entry::Null, |column| column.values.get(row))
    };
    let count = |holds: &dyn Fn(usize) -> bool| {
        let rows = (0..paths.len()).filter(|row| holds(*row));
        rows.count() as u64
    };
    let unseen = |row: usize| entry("has_sync_records", row) == Entry::Bool(false);
    let under = (0..paths.len()).filter(|row| unseen(*row));
    let under = under.filter_map(|row| match entry("overhead_under_communication_ns", row) {
        Entry::Int(time) => Some(Ns(time)),
        _ => None,
    });
    let all = [
        Remark {
            code: "no_sync_records",
            count: count(&unseen),
            time_ns: Some(under.sum()),
            message: "no synchronisation records (cuda_sync events), so nothing is seen to wait: what a stream \
                      waits for communication or another stream is gpu_kernel_kernel_overhead \
                      (overhead_under_communication_ns is the part in which the device communicates), and what \
                      the host waits for the device is on no path; \
                      _ExperimentalConfig(enable_cuda_sync_events=True) records them",
        },
        Remark {
            code: "not_examined",
            count: count(&|row| entry("length_ns", row) == Entry::Null),
            time_ns: None,
            message: "ranges that lie in one another too often to be examined: their numbers are null",
        },
    ];
    all.into_iter().filter(|remark| remark.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::frames;
    use super::super::{InspectOptions, Topic};
    use super::*;
    use crate::attribute::trace_in_lines;

    fn codes(trace: &str, topic: Topic) -> Vec<(&'static str, u64, Option<Ns>)> {
        let frames = frames(&trace_in_lines(trace), topic, &InspectOptions::default());
        let remarks = remarks(topic, &frames).into_iter();
        remarks
            .map(|remark| (remark.code, remark.count, remark.time_ns))
            .collect()
    }

    /// b waits for the all-reduce, of which nothing tells.
    const WAITING: &str = "
        note   1/1   0 100 ProfilerStep#1
        launch 1/1   0 5 cudaLaunchKernel corr=1
        launch 1/1  10 5 cudaLaunchKernel corr=2
        launch 1/1  20 5 cudaLaunchKernel corr=3
        kernel 0/7  30 20 a corr=1
        kernel 0/20 40 60 ncclDevKernel_AllReduce corr=2
        kernel 0/7 105 50 b corr=3
    ";

    #[test]
    fn waiting_that_nothing_tells_of_is_told() {
        // 50 to 105 is between a and b; 50 to 100 of it lies under the all-reduce.
        let want = ("no_sync_records", 1, Some(Ns(50_000)));
        assert_eq!(codes(WAITING, Topic::CriticalPath), [want]);
        assert_eq!(codes(WAITING, Topic::Idle), []);
    }

    #[test]
    fn a_host_alone_has_nothing_to_wait_for() {
        let host = "
            note 1/1 0 100 ProfilerStep#1
            op   1/1 5 50 aten::mm
        ";
        assert_eq!(codes(host, Topic::CriticalPath), []);
    }
}
