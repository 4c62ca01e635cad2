//! Pictures, before they have a format: every number in them is final, every place still open.

use super::decision::{DecisionGrid, DecisionScopes};
use super::document::Value;
use crate::attribute::{Bucket, DeviceClass};
use crate::gate::Decision;
use crate::units::{Ns, Span};

/// A picture of final values.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// A short name, in kebab case: of the file, and in addresses.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The same in a sentence or two, for those who cannot see it.
    pub about: String,
    /// What is drawn.
    pub picture: Picture,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Picture {
    /// Bars of stacked parts.
    Bars(Bars),
    /// What devices did, over time.
    Timeline(Timeline),
    /// A table whose cells are shaded by their share.
    Heat(Heat),
    /// Levels over time.
    Levels(Levels),
    /// Relative changes with their intervals.
    Changes(Changes),
    /// Decisions over a grid of thresholds.
    Grid(DecisionGrid),
    /// Decisions by scope, with their gates.
    Scopes(DecisionScopes),
}

/// What a part of a picture stands for; it has the same colour in every picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paint {
    /// Time of a phase, or of a bucket beside them.
    Bucket(Bucket),
    /// Time in which nothing ran.
    Idle,
    /// Time of a step that is in no annotated phase.
    Unattributed,
    /// Device work of a class.
    Class(DeviceClass),
    /// Allocated memory.
    Allocated,
    /// Memory held from the driver.
    Reserved,
    /// What was decided.
    Decision(Decision),
}

impl Paint {
    /// The word for it in legends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bucket(bucket) => bucket.as_str(),
            Self::Idle => "idle",
            Self::Unattributed => "in no phase",
            Self::Class(class) => class.as_str(),
            Self::Allocated => "allocated",
            Self::Reserved => "reserved",
            Self::Decision(decision) => decision.as_str(),
        }
    }
}

/// Bars of stacked parts, from top to bottom; many are columns from left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// What a bar is.
    pub of: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// What it is about.
    pub label: String,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// All of it.
    pub total: Value,
}

/// A part of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it stands for.
    pub paint: Paint,
    /// How much it is, in the unit of the bars.
    pub value: Value,
    /// How much of the bar.
    pub share: Value,
}

/// What devices did, over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// One lane a device, all on one axis.
    pub lanes: Vec<TimelineLane>,
    /// Where the axis ends; it starts at zero.
    pub end: Ns,
}

/// What one device did.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineLane {
    /// Rank and device.
    pub label: String,
    /// In order of time, without overlap; where there is none, the device idled.
    pub bins: Vec<TimelineBin>,
    /// True when a bin may hold several stretches of work: their order in it is lost.
    pub merged: bool,
    /// The steps of the device, which may overlap.
    pub steps: Vec<(String, Span)>,
}

/// A stretch of a lane; its times add up to its busy time twice: by class, and by bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelineBin {
    /// On the axis of the timeline.
    pub span: Span,
    /// Time by class, as in [`DeviceClass::ALL`].
    pub classes: [Ns; 4],
    /// Time by bucket, as in [`Bucket::ALL`].
    pub buckets: [Ns; 7],
}

/// A table whose cells are shaded by their share.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// Names of columns.
    pub columns: Vec<String>,
    /// Unit of the values.
    pub unit: &'static str,
    /// Names of rows, with one cell a column.
    pub rows: Vec<(String, Vec<HeatCell>)>,
}

/// A cell of a [`Heat`].
#[derive(Debug, Clone, PartialEq)]
pub struct HeatCell {
    /// What it says.
    pub value: Value,
    /// Its part of the sum of all cells, from 0 to 1.
    pub share: f64,
}

/// Levels over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// Lines.
    pub lines: Vec<LevelLine>,
    /// Where the axis of time ends; it starts at zero.
    pub end: Ns,
}

/// One level over time, which holds from a point to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelLine {
    /// Whose level.
    pub label: String,
    /// Which level.
    pub paint: Paint,
    /// Time and bytes, in order of time.
    pub points: Vec<(Ns, i64)>,
    /// The highest level.
    pub peak: i64,
}

/// Relative changes with their intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// One row a change.
    pub rows: Vec<Change>,
    /// Changes of at most so much do not count.
    pub min_effect: f64,
}

/// A relative change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Of what.
    pub label: String,
    /// How large it is.
    pub change: ChangeSize,
    /// The interval of the change, where there is one.
    pub interval: Option<(f64, f64)>,
    /// The verdict, in words.
    pub verdict: String,
}

/// How large a change is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangeSize {
    /// Relative to the base.
    Relative(f64),
    /// The base has none of it, so there is nothing to relate it to; the candidate has so much.
    New(Ns),
    /// The candidate has none of it; the base has so much.
    Gone(Ns),
}

impl ChangeSize {
    /// The relative change, where there is one.
    pub fn relative(self) -> Option<f64> {
        match self {
            Self::Relative(change) => Some(change),
            Self::New(_) => None,
            Self::Gone(_) => Some(-1.0),
        }
    }
}
