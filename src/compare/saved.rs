//! The parts of an attribution that are compared, as the JSON schema `tracekit.attribution/v1` has them.
//!
//! Attributions made now go through the same JSON as saved ones, so that both say the same.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;

use crate::attribute::{Attribution, SCHEMA_VERSION};
use crate::error::{Error, ErrorKind, Result};

/// An attribution.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Saved {
    #[serde(default)]
    pub(super) options: BTreeMap<String, serde_json::Value>,
    pub(super) inputs: Vec<SavedInput>,
    #[serde(default)]
    pub(super) skipped: Vec<SavedSkipped>,
    #[serde(default)]
    pub(super) runs: Vec<SavedRun>,
    pub(super) ranks: Vec<SavedFile>,
    #[serde(default)]
    pub(super) health: Vec<SavedFinding>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedInput {
    pub(super) path: String,
    #[serde(default)]
    pub(super) partial: bool,
    #[serde(default)]
    pub(super) world_size: Option<i64>,
    #[serde(default)]
    pub(super) device_names: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedRun {
    pub(super) name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedSkipped {
    pub(super) path: String,
    pub(super) reason: String,
    pub(super) failed: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedFinding {
    pub(super) code: String,
    pub(super) severity: String,
    pub(super) count: u64,
}

/// One file of one rank.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedFile {
    #[serde(default)]
    pub(super) rank: Option<i64>,
    pub(super) run: usize,
    pub(super) input: usize,
    pub(super) window: usize,
    pub(super) devices: Vec<SavedDevice>,
    pub(super) host: SavedHost,
    pub(super) coverage: SavedCoverage,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedCoverage {
    pub(super) device_events: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedDevice {
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) totals: SavedTable,
    pub(super) timeline: SavedTimeline,
    pub(super) steps: Vec<SavedDeviceStep>,
}

/// Device time by bucket; `total` is one of the names.
pub(super) type SavedTable = BTreeMap<String, SavedCell>;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct SavedCell {
    pub(super) events: u64,
    pub(super) sum_ns: i64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedDeviceStep {
    pub(super) name: String,
    pub(super) totals: SavedTable,
    pub(super) timeline: SavedTimeline,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SavedTimeline {
    pub(super) window_ns: i64,
    pub(super) exposed_communication_ns: i64,
    pub(super) exposed_memcpy_ns: i64,
    pub(super) exposed_memset_ns: i64,
    pub(super) idle_ns: i64,
    pub(super) phases: BTreeMap<String, i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SavedHost {
    #[serde(default)]
    pub(super) phases: BTreeMap<String, SavedHostPhase>,
    pub(super) steps: Vec<SavedHostStep>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct SavedHostPhase {
    pub(super) self_ns: i64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SavedHostStep {
    pub(super) name: String,
    pub(super) wall_ns: i64,
    pub(super) partial: bool,
}

/// Which schema a JSON document has.
#[derive(Deserialize)]
struct Probe {
    schema_version: String,
}

/// Larger files are no saved attributions.
const LARGEST: u64 = 256 << 20;
/// So much of a file tells whether it is a trace.
const HEAD: u64 = 64 << 10;

impl Saved {
    /// What `attribution` says.
    ///
    /// # Errors
    /// Never, but for a fault in the schema.
    pub(super) fn of(attribution: &Attribution) -> Result<Self> {
        let fault = |error| Error::new(ErrorKind::Json, format!("no attribution: {error}"));
        let text = serde_json::to_vec(attribution).map_err(fault)?;
        serde_json::from_slice(&text).map_err(fault)
    }

    /// The attribution that `path` holds; `None` when it is something else, such as a trace.
    ///
    /// # Errors
    /// When it cannot be read, or is a result of tracekit that cannot be compared.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let Some(text) = candidate(path)? else {
            return Ok(None);
        };
        let Ok(probe) = serde_json::from_slice::<Probe>(&text) else {
            return Ok(None);
        };
        if probe.schema_version != SCHEMA_VERSION {
            let message = format!(
                "has the schema '{}': traces and {SCHEMA_VERSION} can be compared",
                probe.schema_version
            );
            return Err(Error::new(ErrorKind::Usage, message).in_file(path));
        }
        let saved: Self = serde_json::from_slice(&text).map_err(|error| {
            Error::new(ErrorKind::Json, format!("no {SCHEMA_VERSION}: {error}")).in_file(path)
        })?;
        let known = saved
            .ranks
            .iter()
            .all(|file| file.input < saved.inputs.len());
        if saved.ranks.is_empty() || !known {
            let message = format!("no {SCHEMA_VERSION}: it has no files");
            return Err(Error::new(ErrorKind::Json, message).in_file(path));
        }
        if let Some(fault) = saved.fault() {
            let message = format!("no sound {SCHEMA_VERSION}: {fault}");
            return Err(Error::new(ErrorKind::Json, message).in_file(path));
        }
        Ok(Some(saved))
    }

    /// What no attribution says, however strange its trace: somebody changed the file.
    fn fault(&self) -> Option<&'static str> {
        let is_time = |ns: i64| (0..=MOST_NS).contains(&ns);
        for file in &self.ranks {
            let steps = &file.host.steps;
            if !steps.iter().all(|step| is_time(step.wall_ns))
                || !file.host.phases.values().all(|row| is_time(row.self_ns))
            {
                return Some("a time of the host is negative or absurd");
            }
            for device in &file.devices {
                let steps = device.steps.iter();
                let parts = steps.map(|step| (&step.totals, &step.timeline));
                for (table, line) in parts.chain([(&device.totals, &device.timeline)]) {
                    let times = [
                        line.window_ns,
                        line.exposed_communication_ns,
                        line.exposed_memcpy_ns,
                        line.exposed_memset_ns,
                        line.idle_ns,
                    ];
                    let cells = table.values().map(|cell| cell.sum_ns);
                    let all = times.into_iter().chain(cells);
                    if !all.chain(line.phases.values().copied()).all(is_time) {
                        return Some("a time of a device is negative or absurd");
                    }
                    if !adds_up(table) {
                        return Some("the buckets of a device do not add up to its total");
                    }
                }
            }
        }
        None
    }
}

/// 73 years: half of what sums may reach, so that differences never overflow.
const MOST_NS: i64 = i64::MAX / 4;

/// True when the buckets of `table` are its total.
fn adds_up(table: &SavedTable) -> bool {
    let Some(total) = table.get("total") else {
        return true;
    };
    let parts = table.iter().filter(|(name, _)| *name != "total");
    let (events, ns) = parts.fold((0u128, 0i128), |(events, ns), (_, cell)| {
        (
            events + u128::from(cell.events),
            ns + i128::from(cell.sum_ns),
        )
    });
    events == u128::from(total.events) && ns == i128::from(total.sum_ns)
}

/// The content of `path`, when it may be a result of tracekit.
fn candidate(path: &Path) -> Result<Option<Vec<u8>>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let failed = |error| Error::io(path, error);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Ok(None);
    }
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut text = Vec::new();
    file.by_ref()
        .take(HEAD)
        .read_to_end(&mut text)
        .map_err(failed)?;
    let starts = text.trim_ascii_start().first() == Some(&b'{');
    if !starts || memchr::memmem::find(&text, b"\"traceEvents\"").is_some() {
        return Ok(None);
    }
    file.read_to_end(&mut text).map_err(failed)?;
    Ok(Some(text))
}
