//! A document as JSON: `tracekit.report/v1`. Values are raw: integer nanoseconds, bytes, ratios, `null`.

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use super::chart::{Bar, Change, ChangeSize, Chart, Heat, LevelLine, Part, Picture, TimelineLane};
use super::document::{Block, Column, Document, Note, RowKind, Section, Table, Value};
use crate::attribute::{Bucket, DeviceClass, Tool};
use crate::units::Ns;

/// Name and version of the JSON schema of reports.
pub const REPORT_SCHEMA: &str = "tracekit.report/v1";

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Document", 5)?;
        out.serialize_field("schema_version", REPORT_SCHEMA)?;
        out.serialize_field("tool", &Tool::this())?;
        out.serialize_field("title", &self.title)?;
        out.serialize_field("verdict", &self.lead)?;
        out.serialize_field("sections", &self.sections)?;
        out.end()
    }
}

impl Serialize for Section {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Section", 2)?;
        out.serialize_field("title", &self.title)?;
        out.serialize_field("blocks", &self.blocks)?;
        out.end()
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(1))?;
        match self {
            Self::Paragraph(text) => out.serialize_entry("paragraph", text)?,
            Self::Table(table) => out.serialize_entry("table", table)?,
            Self::Notes(notes) => out.serialize_entry("notes", notes)?,
            Self::Chart(chart) => out.serialize_entry("chart", chart)?,
        }
        out.end()
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Note", 2)?;
        out.serialize_field("label", self.label)?;
        out.serialize_field("text", &self.text)?;
        out.end()
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Table", 4)?;
        out.serialize_field("caption", &self.caption)?;
        out.serialize_field("keys", &self.keys)?;
        out.serialize_field("columns", &self.columns)?;
        out.serialize_field("rows", &Rows(self))?;
        out.end()
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Column", 2)?;
        out.serialize_field("name", &self.name)?;
        // The unit in which people read it; values here are nanoseconds, bytes and ratios.
        out.serialize_field("shown_in", &self.unit)?;
        out.end()
    }
}

struct Rows<'a>(&'a Table);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            kind: &'static str,
            cells: Vec<&'a Value>,
        }
        serializer.collect_seq(self.0.rows_in_full().map(|(kind, cells)| Row {
            kind: match kind {
                RowKind::Plain => "plain",
                RowKind::Part => "part",
                RowKind::Total => "total",
            },
            cells,
        }))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) | Self::Link { text, .. } => serializer.serialize_str(text),
            Self::Ns(time) | Self::NsChange(time) => serializer.serialize_i64(time.0),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Id(number) | Self::Bytes(number) => serializer.serialize_i64(*number),
            Self::Number(number) | Self::Percent(number) | Self::PercentChange(number)
                if number.is_finite() =>
            {
                serializer.serialize_f64(*number)
            }
            Self::Number(_)
            | Self::Percent(_)
            | Self::PercentChange(_)
            | Self::Missing
            | Self::NotApplicable
            | Self::Blank => serializer.serialize_none(),
        }
    }
}

impl Serialize for Chart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("name", &self.name)?;
        out.serialize_entry("caption", &self.caption)?;
        out.serialize_entry("about", &self.about)?;
        match &self.picture {
            Picture::Bars(bars) => {
                out.serialize_entry("kind", "bars")?;
                out.serialize_entry("of", bars.of)?;
                out.serialize_entry("bars", &bars.bars)?;
            }
            Picture::Timeline(timeline) => {
                out.serialize_entry("kind", "timeline")?;
                out.serialize_entry("end_ns", &timeline.end)?;
                out.serialize_entry("classes", &DeviceClass::ALL.map(DeviceClass::as_str))?;
                out.serialize_entry("buckets", &Bucket::ALL.map(Bucket::as_str))?;
                out.serialize_entry("lanes", &timeline.lanes)?;
            }
            Picture::Heat(heat) => {
                out.serialize_entry("kind", "heat")?;
                out.serialize_entry("columns", &heat.columns)?;
                out.serialize_entry("rows", &HeatRows(heat))?;
            }
            Picture::Levels(levels) => {
                out.serialize_entry("kind", "levels")?;
                out.serialize_entry("end_ns", &levels.end)?;
                out.serialize_entry("lines", &levels.lines)?;
            }
            Picture::Changes(changes) => {
                out.serialize_entry("kind", "changes")?;
                out.serialize_entry("min_effect", &changes.min_effect)?;
                out.serialize_entry("rows", &changes.rows)?;
            }
            Picture::Grid(grid) => {
                out.serialize_entry("kind", "grid")?;
                out.serialize_entry("columns", &grid.columns)?;
                out.serialize_entry("rows", &grid.rows)?;
            }
            Picture::Scopes(scopes) => {
                out.serialize_entry("kind", "scopes")?;
                out.serialize_entry("scopes", &scopes.scopes)?;
            }
        }
        out.end()
    }
}

impl Serialize for Bar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Bar", 3)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("total", &self.total)?;
        out.serialize_field("parts", &self.parts)?;
        out.end()
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Part", 3)?;
        out.serialize_field("name", self.paint.name())?;
        out.serialize_field("value", &self.value)?;
        out.serialize_field("share", &self.share)?;
        out.end()
    }
}

/// Bins as short arrays, for a page has thousands: start, length, then pairs of number and time of each class
/// and bucket that has any.
struct Bins<'a>(&'a TimelineLane);

impl Serialize for Bins<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.bins.iter().map(|bin| {
            let pairs = |times: &[Ns]| -> Vec<i64> {
                (0_i64..)
                    .zip(times)
                    .filter(|(_, time)| **time > Ns::ZERO)
                    .flat_map(|(number, time)| [number, time.0])
                    .collect()
            };
            (
                bin.span.start,
                bin.span.len(),
                pairs(&bin.classes),
                pairs(&bin.buckets),
            )
        }))
    }
}

impl Serialize for TimelineLane {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("TimelineLane", 4)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("merged", &self.merged)?;
        out.serialize_field("bins", &Bins(self))?;
        let steps = self.steps.iter();
        let steps: Vec<(&str, Ns, Ns)> = steps
            .map(|(name, span)| (name.as_str(), span.start, span.len()))
            .collect();
        out.serialize_field("steps", &steps)?;
        out.end()
    }
}

struct HeatRows<'a>(&'a Heat);

impl Serialize for HeatRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'a> {
            label: &'a str,
            cells: Vec<&'a Value>,
            shares: Vec<f64>,
        }
        serializer.collect_seq(self.0.rows.iter().map(|(label, cells)| Named {
            label,
            cells: cells.iter().map(|cell| &cell.value).collect(),
            shares: cells.iter().map(|cell| cell.share).collect(),
        }))
    }
}

impl Serialize for LevelLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("LevelLine", 3)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("peak_bytes", &self.peak)?;
        out.serialize_field("points", &self.points)?;
        out.end()
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (state, time) = match self.change {
            ChangeSize::Relative(_) => ("changed", None),
            ChangeSize::New(time) => ("new", Some(time)),
            ChangeSize::Gone(time) => ("gone", Some(time)),
        };
        let mut out = serializer.serialize_struct("Change", 6)?;
        out.serialize_field("label", &self.label)?;
        out.serialize_field("state", state)?;
        out.serialize_field("change", &self.change.relative())?;
        // What the one side has that the other has nothing of.
        out.serialize_field("time_ns", &time)?;
        out.serialize_field("interval", &self.interval)?;
        out.serialize_field("verdict", &self.verdict)?;
        out.end()
    }
}
