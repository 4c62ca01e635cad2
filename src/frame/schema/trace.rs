//! What is in files: events, device work, the attribution, findings.

use super::{FILE, RANK, RUN, TableSchema, WINDOW, flag, float, int, text};
use crate::inspect::Topic;

pub(super) const TABLES: &[TableSchema] = &[
    TableSchema {
        name: "events",
        about: "an element of the event array, as it is in the file",
        topic: None,
        columns: &[
            RUN,
            RANK,
            FILE,
            int("event", "place in the event array, from 0"),
            text(
                "ph",
                "the letter that tells the kind of event: X complete, i instant, s and f flow, …",
            ),
            flag(
                "counts",
                "it has a time and a length that can be, so sums and windows count it",
            ),
            text("cat", "category, as written; null when missing"),
            text(
                "activity",
                "kind of event that cat spells, the same of all versions and vendors: cpu_op, user_annotation, runtime, driver, kernel, …; null when it is none that is known",
            ),
            text(
                "call_kind",
                "what a call of a runtime or driver does: launch, replay, copy, blocking_copy, fill, wait, query, memory, …; null for others",
            ),
            text("name", "name"),
            text("pid", "process, or device of device work"),
            text("tid", "thread, or stream of device work"),
            int("ts_ns", "start in ns on the clock of the trace"),
            int("dur_ns", "length in ns"),
            int("offset", "byte offset in the (decompressed) content"),
        ],
    },
    TableSchema {
        name: "device_work",
        about: "a kernel, copy or fill, with its launch, phase and step",
        topic: None,
        columns: &[
            RUN,
            RANK,
            FILE,
            int("event", "place in the event array, from 0"),
            text("name", "name of the kernel, copy or fill"),
            text("class", "compute, communication, memcpy or memset"),
            int("device", "index of the device"),
            text("stream", "stream"),
            int("start_ns", "start in ns on the clock of the trace"),
            int(
                "dur_ns",
                "length in ns, after repair of impossible overlaps",
            ),
            int(
                "held_ns",
                "the part in which nothing more useful runs on the device (compute before communication before copies before fills), each instant counted once",
            ),
            int(
                "idle_before_ns",
                "how long the device was idle before it; null where it was not, or nothing ran before",
            ),
            int(
                "host_late_ns",
                "the part of that before the host began the launch",
            ),
            int(
                "launching_ns",
                "the part of it in which the host was in the call that launched it",
            ),
            text(
                "phase",
                "forward, backward, recompute, optimizer, other, pre_window or unlinked",
            ),
            text("step", "training step of its launch; null outside of all"),
            int("correlation", "correlation id; null when absent"),
            int(
                "launch_event",
                "the call that launched it: place in the event array",
            ),
            text("launch_name", "name of that call"),
            int("launch_ns", "when it was called, in ns"),
            int("launch_dur_ns", "how long the call took"),
            text("operator", "innermost operator open at the launch"),
            text("grid", "blocks of a kernel in x, y and z"),
            text("block", "threads of a block in x, y and z"),
            int("registers_per_thread", "registers of a thread"),
            int("shared_memory_bytes", "shared memory of a block"),
            float(
                "blocks_per_sm",
                "blocks of the kernel for each multiprocessor of the device; below 1 some have none",
            ),
            float(
                "occupancy",
                "estimated achieved occupancy: warps that are active of those that could be; 1 is the whole",
            ),
            int("size_bytes", "bytes that a copy or fill moves"),
        ],
    },
    TableSchema {
        name: "files",
        about: "a file that was read",
        topic: None,
        columns: &[
            RUN,
            RANK,
            FILE,
            int(
                "window",
                "which profiler window of its rank the file is, from 0",
            ),
            text("path", "path"),
            int("size_bytes", "bytes of the file as it lies there"),
            int("events", "elements of the event array"),
            flag(
                "partial",
                "the file is damaged, or was before it was repaired: what is whole in it was read",
            ),
            int(
                "world_size",
                "number of ranks of the job, from distributedInfo",
            ),
            int("devices", "number of devices with work in the file"),
            text(
                "device_names",
                "names of the devices of the machine, from deviceProperties",
            ),
        ],
    },
    TableSchema {
        name: "attribution",
        about: "time of one bucket (phase, idle, …) of one device or host, whole (step 'all') or in one step",
        topic: None,
        columns: &[
            RUN,
            RANK,
            text("input", "path of the file"),
            int(
                "window",
                "which profiler window of its rank the file is, from 0",
            ),
            int("device", "index of the device; null for host time"),
            text(
                "step",
                "training step, or 'all' for the whole capture: select one kind before adding up",
            ),
            flag("partial", "the capture cuts the step"),
            text(
                "bucket",
                "phase, pre_window, unlinked, idle, or unattributed host time",
            ),
            int("sum_ns", "sum of the lengths of the device work"),
            int("busy_ns", "union of the device work over its streams"),
            int("events", "number of device events"),
            int("launches", "number of launches"),
            int("compute_ns", "sum over computing kernels"),
            int("communication_ns", "sum over communication kernels"),
            int("memcpy_ns", "sum over copies"),
            int("memset_ns", "sum over fills"),
            int(
                "timeline_ns",
                "time that the bucket holds the device; adds up to the window with idle. In rows of steps it is by time, where the sums are of what the step launched",
            ),
            int(
                "host_wall_ns",
                "union of the annotations of the phase on the host",
            ),
            int("host_self_ns", "self time of host operators"),
        ],
    },
    TableSchema {
        name: "health",
        about: "a finding about the files",
        topic: None,
        columns: &[
            text(
                "code",
                "name of the finding; tracekit doctor --explain CODE tells more",
            ),
            text("severity", "info, notice, data_loss or error"),
            int("count", "how many events, files or ranks it concerns"),
            text(
                "first_input",
                "path of the file that the first of them is in",
            ),
            int("first_offset", "byte offset of the first of them"),
            text("first_name", "name of one of them"),
            int("time_ns", "summed time concerned, where it was measured"),
            int("worst_ns", "worst single value, where it was measured"),
            int("raw_ns", "summed time before a repair"),
            int("repaired_ns", "summed time that a repair took away"),
        ],
    },
    TableSchema {
        name: "activities",
        about: "a kind of event (cat) in a file",
        topic: Some((Topic::Summary, "activities")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            text("cat", "category, as written"),
            int("events", "number of events"),
            int("names", "number of distinct names"),
            int("tracks", "number of threads or streams that they are on"),
            int("sum_ns", "sum of their lengths"),
            int(
                "first_ns",
                "start of the first in ns on the clock of the trace",
            ),
            int("last_ns", "end of the last in ns on the clock of the trace"),
        ],
    },
    TableSchema {
        name: "step_ranges",
        about: "a training step, as a range on the host",
        topic: Some((Topic::Summary, "steps")),
        columns: &[
            RUN,
            RANK,
            WINDOW,
            text("step", "name of the step"),
            int("start_ns", "start in ns on the clock of the trace"),
            int("wall_ns", "length on the host in ns"),
            flag("partial", "the capture cuts the step"),
            flag("inferred", "no annotation marks the step: it was inferred"),
        ],
    },
];
