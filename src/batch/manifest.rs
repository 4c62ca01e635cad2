//! `manifest.json`: what a dataset was made of. It has no time of day in it, so that the same inputs give the
//! same file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dataset::Dataset;
use super::pattern::Pattern;
use super::run::Shard;
use crate::attribute::hash;
use crate::error::{Error, ErrorKind, Result};

/// Name of the file.
pub const MANIFEST: &str = "manifest.json";

/// Name and version of its JSON schema.
pub const SCHEMA_VERSION: &str = "tracekit.batch/v1";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) schema_version: String,
    pub(super) tool: BTreeMap<String, String>,
    pub(super) options: BTreeMap<String, Value>,
    /// Where names tell run, strategy, repeat and rank.
    #[serde(default)]
    pub(super) pattern: Option<String>,
    /// Which part of the inputs it is; `None` for all.
    pub(super) shard: Option<Shard>,
    /// SHA-256 of the names of all inputs, those of other shards included, in order, each with a line end.
    pub(super) all_inputs_sha256: String,
    /// How many there are.
    pub(super) all_inputs: u64,
    /// The last batch was not interrupted.
    pub(super) complete: bool,
    pub(super) inputs: Vec<InputRecord>,
    /// Inputs that are no traces.
    pub(super) skipped: Vec<SkippedRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InputRecord {
    pub(super) input: String,
    pub(super) sha256: Option<String>,
    pub(super) bytes: u64,
    pub(super) run: String,
    pub(super) rank: Option<i64>,
    pub(super) status: String,
    pub(super) error: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SkippedRecord {
    pub(super) input: String,
    pub(super) reason: String,
}

impl Manifest {
    /// The manifest of `dataset`; `ids` are those of all inputs that are there.
    pub(super) fn new(
        dataset: &Dataset,
        options: BTreeMap<String, Value>,
        pattern: Option<&Pattern>,
        shard: Option<Shard>,
        ids: &[String],
        complete: bool,
    ) -> Self {
        let inputs = dataset.members().map(|(run, member)| InputRecord {
            input: member.input.id.clone(),
            sha256: member.input.sha256.clone(),
            bytes: member.input.size,
            run: run.to_owned(),
            rank: member.recognised.rank,
            status: match member.failure {
                Some(_) => "failed".to_owned(),
                None => "done".to_owned(),
            },
            error: member.failure.as_ref().map(|failure| failure.error.clone()),
        });
        let mut inputs: Vec<InputRecord> = inputs.collect();
        inputs.sort_by(|a, b| a.input.cmp(&b.input));
        let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        ids.sort_unstable();
        ids.dedup();
        let skipped = dataset.skipped.iter().map(|(input, reason)| SkippedRecord {
            input: input.clone(),
            reason: reason.clone(),
        });
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            tool: BTreeMap::from([
                ("name".to_owned(), "tracekit".to_owned()),
                ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ]),
            options,
            pattern: pattern.map(ToString::to_string),
            shard,
            all_inputs_sha256: digest(&ids),
            all_inputs: ids.len() as u64,
            complete,
            inputs,
            skipped: skipped.collect(),
        }
    }

    /// Names of runs.
    pub(super) fn runs(&self) -> BTreeSet<String> {
        self.inputs.iter().map(|input| input.run.clone()).collect()
    }

    pub(super) fn read(out: &Path) -> Result<Self> {
        let path = out.join(MANIFEST);
        let bytes = fs::read(&path).map_err(|error| Error::io(&path, error))?;
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("no manifest: {error}")).in_file(&path)
        })?;
        if manifest.schema_version != SCHEMA_VERSION {
            let message = format!(
                "has schema '{}', not {SCHEMA_VERSION}",
                manifest.schema_version
            );
            return Err(Error::new(ErrorKind::Invalid, message).in_file(&path));
        }
        Ok(manifest)
    }
}

/// SHA-256 of names in order.
pub(super) fn digest(ids: &[&str]) -> String {
    let mut text = String::new();
    for id in ids {
        text.push_str(id);
        text.push('\n');
    }
    hash(text.as_bytes())
}

pub(super) fn write(out: &Path, manifest: &Manifest) -> Result<()> {
    let mut text = serde_json::to_string_pretty(manifest)
        .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    text.push('\n');
    replace(&out.join(MANIFEST), &text)
}

/// Puts `text` in the place of `path` in one step.
pub(super) fn replace(path: &Path, text: &str) -> Result<()> {
    let failed = |error| Error::io(path, error);
    if fs::read(path).is_ok_and(|before| before == text.as_bytes()) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.tmp"));
    let written = || {
        let mut file = File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}
