//! What one input says, as it is kept: a function of its content and of the options.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// Counted up whenever records made before must be made anew.
pub(super) const RECORD_VERSION: u32 = 2;

/// Rows of a table without the columns that say which input they are about.
pub(super) type Rows = Vec<Vec<Value>>;

/// What one input says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) facts: Facts,
    /// By name of the table.
    pub(super) tables: BTreeMap<String, Rows>,
}

/// What is known about an input that was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) brief: Brief,
    pub(super) events: u64,
    pub(super) partial: bool,
    pub(super) devices: i64,
    pub(super) device_names: Vec<String>,
    /// Lengths of the steps that count.
    pub(super) steps: Vec<i64>,
    /// By [`MEASURES`](super::schema::MEASURES).
    pub(super) measures: Vec<Option<i64>>,
    pub(super) phases: String,
    pub(super) recompute_evidence: String,
    pub(super) recompute_observable: String,
    pub(super) linked_share: Option<f64>,
    pub(super) verdict: String,
    /// The supported inference with the largest effect, and that.
    pub(super) limited_by: Option<(String, i64)>,
}

/// What is needed of an input to tell which run it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Brief {
    pub(super) rank: Option<i64>,
    pub(super) world_size: Option<i64>,
    /// When the first event starts, in nanoseconds since the epoch, when the trace tells.
    pub(super) start_ns: Option<i64>,
}

/// Why an input could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    /// A word for the kind of failure.
    pub(super) kind: String,
    /// The reason in one line.
    pub(super) error: String,
    /// The content is that of a trace, as far as one can tell.
    pub(super) is_trace: bool,
    /// Trying again may help: it was not for the content.
    pub(super) may_pass: bool,
}

impl Failure {
    pub(super) fn of(error: &Error, is_trace: bool) -> Self {
        let kind = match error.kind() {
            ErrorKind::Io => "io",
            ErrorKind::NotATrace => "not_a_trace",
            ErrorKind::Json => "json",
            ErrorKind::Truncated => "truncated",
            ErrorKind::Gzip => "gzip",
            ErrorKind::Zstd => "zstd",
            ErrorKind::TooLarge => "memory",
            ErrorKind::Query => "query",
            ErrorKind::Usage => "usage",
            ErrorKind::Invalid => "refused",
            _ => "other",
        };
        Self {
            kind: kind.to_owned(),
            error: error.reason(),
            is_trace,
            may_pass: matches!(error.kind(), ErrorKind::Io | ErrorKind::TooLarge),
        }
    }

    /// The failure of an input that needs more memory than it may have.
    pub(super) fn too_large(need: u64, limit: u64) -> Self {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Self {
            kind: "memory".to_owned(),
            error: format!(
                "needs about {} MiB of memory, more than the {} MiB there may be (--memory-limit)",
                mib(need),
                mib(limit)
            ),
            is_trace: true,
            may_pass: true,
        }
    }

    /// True when it may be another with more memory.
    pub(super) fn is_too_large(&self) -> bool {
        self.kind == "memory"
    }

    /// The failure of an input that is not looked into.
    pub(super) fn refused(reason: String) -> Self {
        Self {
            kind: "refused".to_owned(),
            error: reason,
            is_trace: true,
            may_pass: false,
        }
    }

    /// The failure of an input that cannot even be opened.
    pub(super) fn unreadable(reason: &str) -> Self {
        Self {
            kind: "io".to_owned(),
            error: reason.to_owned(),
            is_trace: true,
            may_pass: true,
        }
    }

    /// The failure of tracekit itself.
    pub(super) fn panic(message: &str) -> Self {
        Self {
            kind: "internal".to_owned(),
            error: format!("internal error (please report): {message}"),
            is_trace: true,
            may_pass: false,
        }
    }
}
