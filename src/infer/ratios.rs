//! What a run does with its devices, in four numbers that add up to 1.

use serde::{Serialize, Serializer};

use super::case::{Case, Rows, captures, work_of};
use super::condition::Condition;
use super::sum::column;

/// Shares of the window of all devices. An instant counts for the most useful thing that runs in it:
/// compute before communication before copies and fills.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratios {
    /// What window: `capture`, from the first to the last work of each device; all devices together.
    pub window: &'static str,
    /// A kernel computes.
    pub compute_ratio: Ratio,
    /// Only copies and fills run.
    pub memory_ratio: Ratio,
    /// Communication runs and no kernel computes; not applicable without collectives, which is not 0.
    pub communication_ratio: Ratio,
    /// Nothing runs.
    pub idle_ratio: Ratio,
}

/// The window of every ratio.
const WINDOW: &str = "capture";

/// A share, where there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ratio {
    /// A share of the window.
    Of(f64),
    /// There is nothing that it could be the share of.
    NotApplicable,
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Of(ratio) => serializer.serialize_f64(*ratio),
            Self::NotApplicable => serializer.serialize_str("not_applicable"),
        }
    }
}

/// The ratios of the run that `case` is about.
pub(super) fn ratios(case: &Case<'_>) -> Ratios {
    let time = column("timeline_ns");
    let window = case.sum_of(&time, &captures()).unwrap_or(0);
    let of = |part: Option<i64>| match window {
        0 => Ratio::NotApplicable,
        window => Ratio::Of(part.unwrap_or(0) as f64 / window as f64),
    };
    let held = |rows: &Rows| of(case.sum_of(&column("held_ns"), rows));
    let collectives = work_of(&["communication"]);
    let idle = captures().and(Condition::Is("bucket", &["idle"]));
    Ratios {
        window: WINDOW,
        compute_ratio: held(&work_of(&["compute"])),
        memory_ratio: held(&work_of(&["memcpy", "memset"])),
        communication_ratio: match case.how_many(&collectives) {
            0 => Ratio::NotApplicable,
            _ => held(&collectives),
        },
        idle_ratio: of(case.sum_of(&time, &idle)),
    }
}
