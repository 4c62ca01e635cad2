//! What a run does with its devices, in four numbers that add up to 1.

use serde::{Serialize, Serializer};

use super::case::{Case, first_number};
use super::inference::Number;
use super::thresholds::Thresholds;
use crate::error::Result;
use crate::frame::Tables;

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

/// The ratios of the run that `tables` are of.
pub(super) fn ratios(tables: &Tables, thresholds: &Thresholds) -> Result<Ratios> {
    let mut case = Case::new(tables, thresholds, "");
    let Some(window) = case.window()? else {
        let none = Ratio::NotApplicable;
        return Ok(Ratios {
            window: WINDOW,
            compute_ratio: none,
            memory_ratio: none,
            communication_ratio: none,
            idle_ratio: none,
        });
    };
    let number = |sql: &str| -> Result<Option<i64>> {
        Ok(match first_number(&case.rows(sql)?) {
            Some(Number::Int(number)) => Some(number),
            _ => None,
        })
    };
    let held = |classes: &str| {
        number(&format!(
            "SELECT SUM(held_ns) FROM device_work WHERE class IN ({classes})"
        ))
    };
    let calls = number("SELECT COUNT(*) FROM device_work WHERE class = 'communication'")?;
    let idle = number(
        "SELECT SUM(timeline_ns) FROM attribution WHERE step = 'all' AND device IS NOT NULL AND bucket = 'idle'",
    )?;
    let of = |part: Option<i64>| Ratio::Of(part.unwrap_or(0) as f64 / window as f64);
    Ok(Ratios {
        window: WINDOW,
        compute_ratio: of(held("'compute'")?),
        memory_ratio: of(held("'memcpy', 'memset'")?),
        communication_ratio: match calls {
            Some(0) | None => Ratio::NotApplicable,
            Some(_) => of(held("'communication'")?),
        },
        idle_ratio: of(idle),
    })
}
