//! Files in which a training loop says what it measured, one strategy a file.
//!
//! The small script `fixtures/gate/measure.py` writes them; any program can. A file says in which role it was
//! measured, and is refused in any other.

use std::path::{Path, PathBuf};

use super::root::Root;
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{
    ADOPTION_METRICS, Json, PHASE_METRICS, PROFILER_METRICS, mismatching_fields, python_list,
};

/// Schema of a file of measurements.
pub const MEASUREMENT_SCHEMA: &str = "tracekit.measurement/v1";

/// What a file was measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredFor {
    /// Repeated runs without a profiler.
    Adoption,
    /// A run under the profiler.
    Profile,
    /// Memory at phase borders.
    Phase,
}

impl MeasuredFor {
    /// The spelling in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adoption => ADOPTION_METRICS,
            Self::Profile => PROFILER_METRICS,
            Self::Phase => PHASE_METRICS,
        }
    }
}

/// One strategy as it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The file, as an artefact.
    pub artifact: Json,
    /// Which strategy.
    pub strategy: String,
    /// How it was measured.
    pub config: Json,
    /// The runs, in order; at least one.
    pub runs: Vec<Json>,
    /// What was free before, when that was asked.
    pub safety: Json,
    path: PathBuf,
}

impl Measurement {
    /// Reads the file at `path`, which must lie under the root and be measured for `role`.
    ///
    /// # Errors
    /// When it is not there, no such file, of another role, or has no strategy or runs.
    pub fn read(root: &Root, path: &Path, role: MeasuredFor) -> Result<Self> {
        let place = if path.is_absolute() {
            path.to_owned()
        } else {
            root.path().join(path)
        };
        let record = Json::read_object(&place)?;
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message).in_file(path));
        let schema = record.at(&["schema_version"]);
        if schema.as_str() != Some(MEASUREMENT_SCHEMA) {
            let found = schema.to_line();
            return invalid(format!(
                "schema_version: {found} is not {MEASUREMENT_SCHEMA}"
            ));
        }
        let said = record.at(&["role"]);
        if said.as_str() != Some(role.as_str()) {
            let said = said.to_line();
            return invalid(format!("evidence_role: {said} is not {}", role.as_str()));
        }
        let Some(strategy) = record.at(&["strategy"]).as_name() else {
            return invalid("strategy: must be text".to_owned());
        };
        if is_unsafe(strategy) {
            return invalid(format!(
                "strategy: '{strategy}' cannot be part of a file name"
            ));
        }
        let runs = record.at(&["runs"]).items();
        if runs.is_empty() || !runs.iter().all(Json::is_object) {
            return invalid("runs: must be a list of objects".to_owned());
        }
        Ok(Self {
            artifact: root.artifact(&place)?,
            strategy: strategy.to_owned(),
            config: record.at(&["config"]).clone(),
            runs: runs.to_vec(),
            safety: record.at(&["safety"]).clone(),
            path: path.to_owned(),
        })
    }

    /// Fails when the configuration differs from `config` in one of `fields`.
    ///
    /// # Errors
    /// `measurement_identity` with the fields that differ.
    pub fn check_identity(&self, config: &Json, fields: &[&str]) -> Result<()> {
        let mismatches = mismatching_fields(&self.config, config, fields, false);
        if mismatches.is_empty() {
            return Ok(());
        }
        let message = format!("measurement_identity {}", python_list(&mismatches));
        Err(Error::new(ErrorKind::Invalid, message).in_file(&self.path))
    }
}

/// True for names that cannot be part of a path.
fn is_unsafe(name: &str) -> bool {
    name.starts_with('.') || name.contains(['/', '\\', '\0'])
}

/// Reads several files, each of another strategy.
///
/// # Errors
/// As [`Measurement::read`]; or when a strategy comes twice.
pub fn read_measurements(
    root: &Root,
    paths: &[PathBuf],
    role: MeasuredFor,
) -> Result<Vec<Measurement>> {
    let mut measurements: Vec<Measurement> = Vec::new();
    for path in paths {
        let measurement = Measurement::read(root, path, role)?;
        if measurements
            .iter()
            .any(|other| other.strategy == measurement.strategy)
        {
            let message = format!("strategy: '{}' comes twice", measurement.strategy);
            return Err(Error::new(ErrorKind::Invalid, message).in_file(path));
        }
        measurements.push(measurement);
    }
    Ok(measurements)
}
