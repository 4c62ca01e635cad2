//! Pictures of decisions, before they have a format.

use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};

use super::super::document::Value;
use crate::gate::Decision;

/// The decisions of a grid of thresholds: limits of loss from left to right, of memory and throughput from
/// top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionGrid {
    /// Names of columns.
    pub columns: Vec<String>,
    /// Names of rows, with one cell a column; `None` where the grid has none.
    pub rows: Vec<(String, Vec<Option<DecisionCell>>)>,
}

/// One cell of a [`DecisionGrid`].
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionCell {
    /// What is decided there.
    pub decision: Decision,
    /// Which candidate is best there.
    pub best: String,
    /// Thresholds, decision and candidates that fit, in words.
    pub about: String,
}

/// What was decided in each scope, and how far the gates are from what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionScopes {
    /// The scopes, in order; one never decides about another.
    pub scopes: Vec<DecisionScope>,
}

/// One scope of a [`DecisionScopes`].
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionScope {
    /// Which scope.
    pub label: String,
    /// What is decided in it.
    pub decision: Decision,
    /// The same in the word of its record.
    pub word: String,
    /// Why.
    pub reason: String,
    /// What was compared.
    pub gates: Vec<GateBar>,
}

/// A measured value beside the limit that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct GateBar {
    /// Of what.
    pub label: String,
    /// What was measured.
    pub value: Value,
    /// What was asked for.
    pub limit: Value,
    /// Unit of both.
    pub unit: &'static str,
    /// The limit is the least, else the most.
    pub at_least: bool,
    /// The value keeps the limit; `None` when it was not measured.
    pub holds: Option<bool>,
    /// The value as a multiple of the limit, never below zero.
    pub part: f64,
}

impl Serialize for DecisionCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("DecisionCell", 3)?;
        out.serialize_field("decision", self.decision.as_str())?;
        out.serialize_field("best", &self.best)?;
        out.serialize_field("about", &self.about)?;
        out.end()
    }
}

impl Serialize for DecisionScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("DecisionScope", 4)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("decision", &self.word)?;
        out.serialize_field("reason", &self.reason)?;
        out.serialize_field("gates", &self.gates)?;
        out.end()
    }
}

impl Serialize for GateBar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("GateBar", 6)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("value", &self.value)?;
        out.serialize_field("limit", &self.limit)?;
        out.serialize_field("unit", self.unit)?;
        out.serialize_field("at_least", &self.at_least)?;
        out.serialize_field("holds", &self.holds)?;
        out.end()
    }
}
