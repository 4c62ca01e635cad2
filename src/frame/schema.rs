//! Which tables there are: the only spelling of their names, columns and types.

mod collective;
mod launch;
mod memory;
mod time;
mod trace;
mod work;

use crate::inspect::Topic;

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// Name.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Which breakdown makes it, when one does, and what that calls it.
    pub(crate) topic: Option<(Topic, &'static str)>,
    /// The columns, in order.
    pub columns: &'static [ColumnSchema],
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSchema {
    /// Name; ends in its unit.
    pub name: &'static str,
    /// Type.
    pub dtype: Dtype,
    /// What the values are.
    pub about: &'static str,
}

/// Type of a column, by Polars' name. Every column may have nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// `String`.
    Text,
    /// `Int64`.
    Int,
    /// `Float64`.
    Float,
    /// `Boolean`.
    Bool,
}

impl Dtype {
    /// Polars' name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "String",
            Self::Int => "Int64",
            Self::Float => "Float64",
            Self::Bool => "Boolean",
        }
    }
}

const fn column(name: &'static str, dtype: Dtype, about: &'static str) -> ColumnSchema {
    ColumnSchema { name, dtype, about }
}

const fn text(name: &'static str, about: &'static str) -> ColumnSchema {
    column(name, Dtype::Text, about)
}

const fn int(name: &'static str, about: &'static str) -> ColumnSchema {
    column(name, Dtype::Int, about)
}

const fn float(name: &'static str, about: &'static str) -> ColumnSchema {
    column(name, Dtype::Float, about)
}

const fn flag(name: &'static str, about: &'static str) -> ColumnSchema {
    column(name, Dtype::Bool, about)
}

const RUN: ColumnSchema = text(
    "run",
    "name of the run: the strategy folder, else the path given",
);
const RANK: ColumnSchema = int(
    "rank",
    "rank, from distributedInfo, else from the name of the file",
);
const WINDOW: ColumnSchema = int(
    "window",
    "which profiler window of its rank the file is, from 0; null when it has one",
);
const DEVICE: ColumnSchema = int("device", "index of the device; null on the host");
const PLACE: ColumnSchema = text("place", "device or host");
const MEMORY: ColumnSchema = text("device", "whose memory: cpu, or cuda:N");
const PROCESS: ColumnSchema = text(
    "process",
    "process of the allocator, where there are several",
);
const MAKER: ColumnSchema = text("operator", "innermost operator open at the allocation");
const OPERATION: ColumnSchema = text(
    "operation",
    "operation, such as allreduce; null where nothing tells",
);
const GROUP: ColumnSchema = text("group", "name of the process group");
const DESCRIPTION: ColumnSchema = text("description", "description of the process group");
const MEMBERS: ColumnSchema = text("members", "ranks of the process group");
const GROUP_SIZE: ColumnSchema = int("group_size", "number of ranks of the process group");
const MATCHED: ColumnSchema = text("matched_by", "what tells which calls belong together");
const SHAPE: ColumnSchema = text("shape", "input dimensions of the operator");
const STEP: ColumnSchema = text("step", "training step; null outside of all");
const PHASE: ColumnSchema = text(
    "phase",
    "forward, backward, recompute, optimizer, other, pre_window or unlinked",
);
const STREAM: ColumnSchema = text("stream", "stream");
const RANGE: ColumnSchema = text("range", "name of the step; null for the whole capture");
const INSTANCE: ColumnSchema = int("instance", "which of the ranges of this name, from 0");
const EDGE: ColumnSchema = text(
    "edge",
    "operator_kernel, dependency, kernel_launch_delay, kernel_kernel_delay or sync_dependency",
);
const FILE: ColumnSchema = int("file", "number of the file in the list of inputs, from 0");

/// The tables by what they are about, in the order in which they are listed.
const PARTS: &[&[TableSchema]] = &[
    trace::TABLES,
    time::TABLES,
    launch::TABLES,
    collective::TABLES,
    memory::TABLES,
    work::TABLES,
];

const COUNT: usize = {
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

const ALL: [TableSchema; COUNT] = {
    let mut all = [PARTS[0][0]; COUNT];
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut place = 0;
        while place < PARTS[part].len() {
            all[count] = PARTS[part][place];
            count += 1;
            place += 1;
        }
        part += 1;
    }
    all
};

/// Every table, in the order in which they are listed.
pub const TABLES: &[TableSchema] = &ALL;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_tables() {
        for topic in Topic::ALL {
            let is_made = |table: &TableSchema| table.topic.is_some_and(|(own, _)| own == topic);
            assert!(TABLES.iter().any(is_made), "{}", topic.name());
        }
    }

    #[test]
    fn no_two_tables_have_one_name() {
        let mut names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLES.len());
    }
}
