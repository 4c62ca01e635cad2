//! The tables of a dataset: the only spelling of their names, columns and types.

use crate::frame::Dtype;
use crate::report::{Document, Note, described_tables};

/// A table of a dataset. Folders give every table the columns `run` (text) and `date` (UTC, from the trace
/// or the name of its file; `unknown` when neither tells).
#[derive(Debug, Clone, Copy)]
pub struct DatasetTable {
    /// Name, also of its folder.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Columns in the files, in order.
    pub columns: &'static [(&'static str, Dtype)],
}

use Dtype::{Bool, Float, Int, Text};

/// What times, in nanoseconds, a run, a rank and a step are measured by, in this order.
pub(super) const MEASURES: [&str; 22] = [
    "device_sum_ns",
    "busy_ns",
    "window_ns",
    "compute_ns",
    "communication_ns",
    "exposed_communication_ns",
    "exposed_memcpy_ns",
    "exposed_memset_ns",
    "idle_ns",
    "forward_ns",
    "backward_ns",
    "recompute_ns",
    "optimizer_ns",
    "other_ns",
    "pre_window_ns",
    "unlinked_ns",
    "host_forward_ns",
    "host_backward_ns",
    "host_recompute_ns",
    "host_optimizer_ns",
    "host_other_ns",
    "host_self_ns",
];

macro_rules! with_measures {
    ([$($before:expr),* $(,)?], [$($after:expr),* $(,)?]) => {
        &[
            $($before,)*
            ("device_sum_ns", Int),
            ("busy_ns", Int),
            ("window_ns", Int),
            ("compute_ns", Int),
            ("communication_ns", Int),
            ("exposed_communication_ns", Int),
            ("exposed_memcpy_ns", Int),
            ("exposed_memset_ns", Int),
            ("idle_ns", Int),
            ("forward_ns", Int),
            ("backward_ns", Int),
            ("recompute_ns", Int),
            ("optimizer_ns", Int),
            ("other_ns", Int),
            ("pre_window_ns", Int),
            ("unlinked_ns", Int),
            ("host_forward_ns", Int),
            ("host_backward_ns", Int),
            ("host_recompute_ns", Int),
            ("host_optimizer_ns", Int),
            ("host_other_ns", Int),
            ("host_self_ns", Int),
            $($after,)*
        ]
    };
}

/// Every table of a dataset.
pub const DATASET_TABLES: &[DatasetTable] = &[
    DatasetTable {
        name: "runs",
        about: "a run, over its ranks (status done), or an input that failed (status failed) with its error",
        columns: with_measures!(
            [
                ("status", Text),
                ("strategy", Text),
                ("repeat", Int),
                ("input", Text),
                ("error", Text),
                ("error_kind", Text),
                ("start_ns", Int),
                ("inputs", Int),
                ("failed_inputs", Int),
                ("ranks", Int),
                ("world_size", Int),
                ("size_bytes", Int),
                ("events", Int),
                ("steps", Int),
                ("step_median_ns", Int),
                ("step_min_ns", Int),
                ("step_max_ns", Int),
            ],
            [
                ("imbalance", Float),
                ("verdict", Text),
                ("limited_by", Text),
                ("recognised_by", Text),
            ]
        ),
    },
    DatasetTable {
        name: "ranks",
        about: "an input that was read: one file of one rank",
        columns: with_measures!(
            [
                ("input", Text),
                ("rank", Int),
                ("sha256", Text),
                ("strategy", Text),
                ("repeat", Int),
                ("recognised_by", Text),
                ("rank_by", Text),
                ("world_size", Int),
                ("start_ns", Int),
                ("size_bytes", Int),
                ("events", Int),
                ("partial", Bool),
                ("devices", Int),
                ("device_names", Text),
                ("steps", Int),
                ("step_median_ns", Int),
                ("step_min_ns", Int),
                ("step_max_ns", Int),
            ],
            [
                ("phases", Text),
                ("recompute_evidence", Text),
                ("recompute_observable", Text),
                ("linked_share", Float),
                ("verdict", Text),
            ]
        ),
    },
    DatasetTable {
        name: "steps",
        about: "a training step of one rank, on the host (device null) or one device",
        columns: with_measures!(
            [
                ("input", Text),
                ("rank", Int),
                ("device", Int),
                ("step", Text),
                ("partial", Bool),
                ("inferred", Bool),
                ("wall_ns", Int),
            ],
            [
                ("annotated_forward_ns", Int),
                ("annotated_backward_ns", Int),
                ("annotated_recompute_ns", Int),
                ("annotated_optimizer_ns", Int),
            ]
        ),
    },
    DatasetTable {
        name: "phases",
        about: "time of one phase, or other bucket, of one rank on the host (device null) or one device",
        columns: &[
            ("input", Text),
            ("rank", Int),
            ("device", Int),
            ("bucket", Text),
            ("sum_ns", Int),
            ("busy_ns", Int),
            ("events", Int),
            ("launches", Int),
            ("compute_ns", Int),
            ("communication_ns", Int),
            ("memcpy_ns", Int),
            ("memset_ns", Int),
            ("timeline_ns", Int),
            ("host_wall_ns", Int),
            ("host_self_ns", Int),
        ],
    },
    DatasetTable {
        name: "operators",
        about: "an operator in one phase of one rank, with the device work that it launches",
        columns: &[
            ("input", Text),
            ("rank", Int),
            ("operator", Text),
            ("call", Text),
            ("phase", Text),
            ("calls", Int),
            ("host_total_ns", Int),
            ("host_self_ns", Int),
            ("device_events", Int),
            ("device_direct_ns", Int),
            ("device_total_ns", Int),
        ],
    },
    DatasetTable {
        name: "health",
        about: "a finding about one input",
        columns: &[
            ("input", Text),
            ("rank", Int),
            ("code", Text),
            ("severity", Text),
            ("count", Int),
            ("first_offset", Int),
            ("first_name", Text),
            ("time_ns", Int),
            ("worst_ns", Int),
        ],
    },
    DatasetTable {
        name: "inferences",
        about: "a hypothesis about what limits one rank, after its test",
        columns: &[
            ("input", Text),
            ("rank", Int),
            ("code", Text),
            ("category", Text),
            ("verdict", Text),
            ("summary", Text),
            ("confidence", Text),
            ("effect_ns", Int),
            ("effect_share", Float),
            ("next_action", Text),
        ],
    },
];

/// Every table of a dataset, described.
pub fn dataset_tables_document() -> Document {
    let described = DATASET_TABLES.iter().map(|table| {
        let ends = [("run", Text), ("date", Text)];
        let columns = ends.iter().chain(table.columns);
        let notes = columns.map(|(name, dtype)| Note::new(name, dtype.as_str()));
        (table.name, table.about, notes.collect())
    });
    let lead = format!("{} tables of a dataset", DATASET_TABLES.len());
    described_tables(lead, described)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_measure_have_every_measure_in_order() {
        for name in ["runs", "ranks", "steps"] {
            let table = DATASET_TABLES
                .iter()
                .find(|table| table.name == name)
                .unwrap();
            let from = table
                .columns
                .iter()
                .position(|(column, _)| *column == MEASURES[0])
                .unwrap();
            let columns: Vec<&str> = table.columns[from..]
                .iter()
                .map(|column| column.0)
                .collect();
            assert_eq!(columns[..MEASURES.len()], MEASURES, "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_none_is_that_of_a_folder() {
        for table in DATASET_TABLES {
            let mut names: Vec<&str> = table.columns.iter().map(|column| column.0).collect();
            names.extend(["run", "date"]);
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", table.name);
        }
    }
}
