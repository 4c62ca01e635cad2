//! Where time goes: steps, idle time, critical paths.

use super::{
    DEVICE, EDGE, INSTANCE, PHASE, RANGE, RANK, RUN, STEP, STREAM, TableSchema, WINDOW, flag,
    float, int, text,
};
use crate::inspect::Topic;

pub(super) const TABLES: &[TableSchema] = &[
    TableSchema {
        name: "steps",
        about: "a step on a device, whose time is in one column each; a file without steps has one row a device",
        topic: Some((Topic::Steps, "steps")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STEP,
            int("start_ns", "start in ns on the clock of the trace"),
            int(
                "wall_ns",
                "length in ns; the times up to other_ns add up to it",
            ),
            int("kernel_ns", "a kernel computes; null without device work"),
            int("memcpy_ns", "else: it copies"),
            int("memset_ns", "else: it fills"),
            int("communication_ns", "else: it communicates"),
            int(
                "runtime_ns",
                "else: a host thread is in a runtime or driver call",
            ),
            int("data_loading_ns", "else: a thread loads data"),
            int("cpu_op_ns", "else: a thread is in an operator"),
            int("other_ns", "none of that"),
            float(
                "gpu_utilization",
                "union of the kernels, communication too, of the step",
            ),
            float(
                "est_sm_efficiency",
                "estimated share of multiprocessors with blocks; null where not recorded",
            ),
            float(
                "est_occupancy",
                "estimated achieved occupancy, weighted with time; null where not recorded",
            ),
            flag("partial", "the capture cuts the step"),
        ],
    },
    TableSchema {
        name: "step_phases",
        about: "time in which a phase (or idle) holds a device in a step",
        topic: Some((Topic::Steps, "step_phases")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STEP,
            text(
                "phase",
                "forward, backward, recompute, optimizer, other, pre_window, unlinked or idle",
            ),
            int("time_ns", "time in ns; adds up to the step"),
            float("share", "of the step"),
        ],
    },
    TableSchema {
        name: "idle_causes",
        about: "idle time of a stream in a step, of one cause",
        topic: Some((Topic::Idle, "idle_causes")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STREAM,
            STEP,
            flag("partial", "the capture cuts the step"),
            CAUSE,
            PHASE,
            int("gaps", "number of gaps"),
            int(
                "idle_ns",
                "their sum; the causes of a window add up to its idle time",
            ),
            float("share_of_idle", "of the idle time of the window"),
            float("share_of_window", "of the window"),
            int("longest_ns", "the longest gap"),
            WINDOW_KIND,
        ],
    },
    TableSchema {
        name: "idle_windows",
        about: "a window of a stream in a step, with its idle time",
        topic: Some((Topic::Idle, "idle_windows")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STREAM,
            STEP,
            int("start_ns", "start in ns on the clock of the trace"),
            int("window_ns", "length"),
            int("busy_ns", "union of the work in it"),
            int("idle_ns", "the rest"),
            float("idle_share", "of the window"),
            WINDOW_KIND,
        ],
    },
    TableSchema {
        name: "gaps",
        about: "a time in which a stream has nothing to do",
        topic: Some((Topic::Idle, "gaps")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            DEVICE,
            STREAM,
            STEP,
            text(
                "last_step",
                "the step in which it ends, where that is another one",
            ),
            int("start_ns", "start in ns on the clock of the trace"),
            int("gap_ns", "length"),
            CAUSE,
            text(
                "host",
                "what the launching thread did for more than half of it",
            ),
            PHASE,
            text("before", "name of the work before"),
            text("after", "name of the work after"),
        ],
    },
    TableSchema {
        name: "critical_paths",
        about: "the critical path of a step, or of the capture when there are none",
        topic: Some((Topic::CriticalPath, "critical_paths")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            RANGE,
            INSTANCE,
            int("start_ns", "start in ns on the clock of the trace"),
            int("wall_ns", "length of the range on the host"),
            int("extent_ns", "from its first to its last node"),
            int("length_ns", "time on the path"),
            float("share_of_extent", "length of extent"),
            int("nodes", "starts and ends in the graph"),
            int("edges", "edges of the graph"),
            int("critical_edges", "edges of the path"),
            int("edges_left_out", "edges that would go back in time"),
            int(
                "overhead_under_communication_ns",
                "delays between kernels on the path in which their device communicates; null without device work",
            ),
            flag(
                "has_sync_records",
                "the file says what waited for what (cuda_sync events); null without device work",
            ),
        ],
    },
    TableSchema {
        name: "critical_path_bounds",
        about: "time on a critical path bound by one thing in one phase",
        topic: Some((Topic::CriticalPath, "critical_path_summary")),
        columns: &[
            RUN, RANK, WINDOW, RANGE, INSTANCE, BOUND_BY, PHASE, SUM, SHARE, EDGES,
        ],
    },
    TableSchema {
        name: "critical_path_names",
        about: "time on a critical path of one operator, call or kernel",
        topic: Some((Topic::CriticalPath, "critical_path")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            RANGE,
            INSTANCE,
            text(
                "name",
                "operator, call or kernel; of delays the kernel that starts late",
            ),
            EDGE,
            BOUND_BY,
            PHASE,
            SUM,
            SHARE,
            EDGES,
        ],
    },
    TableSchema {
        name: "critical_path_edges",
        about: "the edges of one type in the graph of a critical path",
        topic: Some((Topic::CriticalPath, "edges")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            RANGE,
            INSTANCE,
            EDGE,
            EDGES,
            int("critical_edges", "those on the path"),
            int("critical_ns", "their time"),
        ],
    },
];

const CAUSE: super::ColumnSchema = text(
    "cause",
    "host_bound, launch_latency, communication_wait, dependency, lead_in, tail or unknown",
);
const WINDOW_KIND: super::ColumnSchema = text(
    "window_kind",
    "what the window is: capture (first to last work of the device), stream (of the stream), step or selected steps",
);
const BOUND_BY: super::ColumnSchema = text(
    "bound_by",
    "cpu_bound, data_loading, gpu_compute_bound, gpu_communication_bound or one of the overheads",
);
const SUM: super::ColumnSchema = int("sum_ns", "time of the edges");
const SHARE: super::ColumnSchema = float("share", "of the length of the path");
const EDGES: super::ColumnSchema = int("edges", "number of edges");
