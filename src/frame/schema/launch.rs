//! Calls that launch work, the queues of streams, copies.

use super::{DEVICE, PHASE, RANK, RUN, STEP, STREAM, TableSchema, WINDOW, float, int, text};
use crate::inspect::Topic;

pub(super) const TABLES: &[TableSchema] = &[
    TableSchema {
        name: "launches",
        about: "the launches by one API call in one phase and step",
        topic: Some((Topic::Launches, "launches")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            text(
                "name",
                "name of the call; (no API call) for work that none launches",
            ),
            PHASE,
            STEP,
            int("launches", "number of calls that own device work"),
            int("device_events", "pieces of device work"),
            int("call_sum_ns", "sum of the lengths of the calls"),
            int("call_median_ns", "their median"),
            int("call_p95_ns", "their 95th percentile"),
            int("call_max_ns", "the longest"),
            int(
                "delay_sum_ns",
                "sum over launches from the end of the call to the start of its work",
            ),
            int("delay_median_ns", "their median"),
            int("delay_p95_ns", "their 95th percentile"),
            int("delay_max_ns", "the longest"),
            int(
                "started_in_call",
                "launches whose work starts before the call ends",
            ),
            int(
                "shorter_than_call",
                "pieces of work shorter than their call",
            ),
            int("long_calls", "calls over 50 us"),
            int("long_delays", "delays over 100 us"),
        ],
    },
    TableSchema {
        name: "queue",
        about: "the work of a stream that was launched and has not started",
        topic: Some((Topic::Launches, "queue")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STREAM,
            int("launched", "pieces of work"),
            int("max_length", "most that waited at once"),
            float("mean_length", "how many waited, on average over time"),
            int("time_ns", "from the first launch to the last start"),
            int("not_empty_ns", "time with any waiting"),
            int(
                "full_ns",
                "time with 1024 or more waiting, at which hosts block",
            ),
        ],
    },
    TableSchema {
        name: "queue_series",
        about: "the queue of a stream in one of 100 pieces of time",
        topic: Some((Topic::Launches, "queue_series")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STREAM,
            int("start_ns", "start in ns on the clock of the trace"),
            int("max_length", "most that waited at once"),
            float("mean_length", "how many waited, on average over time"),
        ],
    },
    TableSchema {
        name: "copies",
        about: "copies or fills of one kind on one stream, in one phase and step",
        topic: Some((Topic::Copies, "copies")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            text(
                "kind",
                "HtoD, DtoH, DtoD, PtoP, memset, …; copy or fill where the name says no more",
            ),
            text("source", "kind of memory that is read, such as Pageable"),
            text("target", "kind of memory that is written"),
            PHASE,
            STEP,
            STREAM,
            int("events", "number of copies or fills"),
            int("sum_ns", "their time"),
            int("events_with_bytes", "those whose bytes are recorded"),
            int("size_bytes", "those bytes; null where none are"),
            float(
                "mean_gbps",
                "those bytes over the time of those events, in 10^9 bytes a second",
            ),
            float(
                "recorded_mean_gbps",
                "bandwidth that the profiler recorded, mean over time",
            ),
            float(
                "recorded_max_gbps",
                "largest bandwidth that the profiler recorded",
            ),
        ],
    },
];
