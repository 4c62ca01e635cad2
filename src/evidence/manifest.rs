//! Manifests: which artefacts a project builds on, by path and hash.

use std::path::{Path, PathBuf};

use super::root::{Root, hash};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, is_sha256, object};

/// Schema of the manifest of the closure.
pub const MANIFEST_SCHEMA: &str = "performance-evidence-manifest/v1";
/// What the closure is.
pub const CLOSURE_ID: &str = "PERF-PROFILING-CLOSURE";
/// Where the manifest of the closure is, under the root.
pub const CLOSURE_MANIFEST: &str =
    "benchmarks/results/74_evidence_manifest_rtx5070ti_profiling_closure_v5.json";
/// Where the manifest of the budget is, under the root.
pub const BUDGET_MANIFEST: &str =
    "benchmarks/results/75_input_manifest_rtx5070ti_memory_budget_v1.json";

/// The entries of a closure manifest, in the order in which they are checked.
pub(crate) const SOURCES: [&str; 4] = ["baseline", "strategy", "budget", "activation_memory_scope"];

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// An artefact that a manifest names and whose bytes have the hash that it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// As the manifest has it.
    pub artifact: Json,
}

/// Checks the entry `name` of a manifest.
///
/// # Errors
/// When it is no object with a path and a hash, names nothing under the root, or the bytes there have
/// another hash; the entry is named.
pub fn verify_entry(root: &Root, entry: &Json, name: &str) -> Result<Entry> {
    let path = entry.at(&["path"]).as_name();
    let sha256 = entry.at(&["sha256"]).as_name();
    let (Some(path), Some(sha256)) = (path, sha256) else {
        return Err(invalid(format!(
            "manifest_entry {name}: must have a path and a sha256"
        )));
    };
    if !is_sha256(sha256) {
        let message = format!("manifest_entry {name}: '{sha256}' is no SHA-256 in lower case");
        return Err(invalid(message));
    }
    let place = root.join(path);
    if !place.is_file() {
        let message = format!("manifest_entry {name}: there is no file {path}");
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    root.relative(Path::new(path))
        .map_err(|error| invalid(format!("manifest_entry {name}: {error}")))?;
    let found = hash(&place)?;
    if found != sha256 {
        let message = format!("manifest_entry {name}: {path} has sha256 {found}, not {sha256}");
        return Err(invalid(message));
    }
    Ok(Entry {
        path: place,
        artifact: object! {"path" => path, "sha256" => sha256},
    })
}

/// A closure manifest whose entries were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosureManifest {
    /// The manifest itself, as an artefact.
    pub artifact: Json,
    /// `baseline`, `strategy`, `budget`, `activation_memory_scope`.
    pub sources: [Entry; 4],
    /// The record of profiled runs; not there yet before that stage.
    pub profile: Option<Entry>,
    /// The record of memory by phase; not there yet before that stage.
    pub phase: Option<Entry>,
    /// What the manifest says about the folder of traces.
    pub trace_dir: Json,
}

/// How much of a closure manifest has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needed {
    /// The four sources: before profiling.
    Sources,
    /// Also the profile: before memory is measured by phase.
    Profile,
    /// Everything.
    All,
}

impl ClosureManifest {
    /// Reads the manifest at `path` and checks every entry, in order. An entry of a later stage that is
    /// not there at all is accepted as long as it is not `needed`.
    ///
    /// # Errors
    /// When it is not there, is none, or an entry does not hold.
    pub fn read(root: &Root, path: &Path, needed: Needed) -> Result<Self> {
        if !path.is_file() {
            let message = "there is no such manifest";
            return Err(Error::new(ErrorKind::NotFound, message).in_file(path));
        }
        let manifest = Json::read_object(path)?;
        for (key, wanted) in [
            ("schema_version", MANIFEST_SCHEMA),
            ("semantic_id", CLOSURE_ID),
        ] {
            let found = manifest.at(&[key]);
            if found.as_str() != Some(wanted) {
                let found = found.to_line();
                let message = format!("manifest_{key}: {found} is not {wanted}");
                return Err(invalid(message).in_file(path));
            }
        }
        let located = |error: Error| error.in_file(path);
        let verify = |keys: &[&str], name: &str| verify_entry(root, manifest.at(keys), name);
        let source = |name: &str| verify(&["source_artifacts", name], name).map_err(located);
        let [baseline, strategy, budget, activation] = SOURCES.map(source);
        let sources = [baseline?, strategy?, budget?, activation?];
        let later = |keys: &[&str], needed: bool| {
            if manifest.at(keys).is_null() && !needed {
                return Ok(None);
            }
            verify(keys, &keys.join(".")).map(Some).map_err(located)
        };
        Ok(Self {
            artifact: root.artifact(path)?,
            sources,
            profile: later(&["profile", "report"], needed >= Needed::Profile)?,
            phase: later(
                &["profile", "phase_memory", "report"],
                needed >= Needed::All,
            )?,
            trace_dir: manifest.at(&["profile", "trace_dir"]).clone(),
        })
    }
}

/// The artefacts of a new closure manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClosureArtifacts {
    /// Paths of `baseline`, `strategy`, `budget`, `activation_memory_scope`.
    pub sources: [Option<PathBuf>; 4],
    /// The record of profiled runs.
    pub profile: Option<PathBuf>,
    /// The folder of traces.
    pub trace_dir: Option<PathBuf>,
    /// The record of memory by phase.
    pub phase: Option<PathBuf>,
}

/// A closure manifest with the hashes of what is there now; what is not given is taken from `from`.
///
/// # Errors
/// When a source is given nowhere, is not there or outside of the root, or the folder of traces is none.
pub fn create_closure_manifest(
    root: &Root,
    artifacts: &ClosureArtifacts,
    from: Option<&Json>,
) -> Result<Json> {
    let before = from.unwrap_or(&Json::Null);
    let hashed = |path: Option<&PathBuf>, keys: &[&str]| match path {
        Some(path) => root.artifact(path),
        None => Ok(before.at(keys).clone()),
    };
    let mut sources = Json::object();
    for (name, path) in SOURCES.into_iter().zip(&artifacts.sources) {
        let found = hashed(path.as_ref(), &["source_artifacts", name])?;
        if found.is_null() {
            return Err(invalid(format!("manifest_entry {name}: no path is given")));
        }
        sources.set(name, found);
    }
    let mut manifest = object! {
        "schema_version" => MANIFEST_SCHEMA,
        "semantic_id" => CLOSURE_ID,
        "source_artifacts" => sources,
    };
    let mut profile = Json::object();
    let report = hashed(artifacts.profile.as_ref(), &["profile", "report"])?;
    if !report.is_null() {
        let trace_dir = match &artifacts.trace_dir {
            Some(folder) if !root.path().join(folder).is_dir() => {
                let message = "trace_dir: is no folder";
                return Err(Error::new(ErrorKind::NotFound, message).in_file(folder));
            }
            Some(folder) => root.relative(folder)?.into(),
            None => before.at(&["profile", "trace_dir"]).clone(),
        };
        check_trace_dir(&trace_dir)?;
        profile.set("report", report);
        profile.set("trace_dir", trace_dir);
        let phase = hashed(
            artifacts.phase.as_ref(),
            &["profile", "phase_memory", "report"],
        )?;
        if !phase.is_null() {
            profile.set("phase_memory", object! {"report" => phase});
        }
        manifest.set("profile", profile);
    } else if artifacts.phase.is_some() || artifacts.trace_dir.is_some() {
        let message = "manifest_entry profile.report: no path is given";
        return Err(invalid(message.to_owned()));
    }
    Ok(manifest)
}

/// Fails when the manifest names no folder of traces: an empty name would mean the root.
pub(crate) fn check_trace_dir(trace_dir: &Json) -> Result<&str> {
    trace_dir
        .as_name()
        .ok_or_else(|| invalid("trace_dir: must be the path of a folder, and is empty".to_owned()))
}

/// A manifest of the budget: the report of strategies, and the decision that was approved for it.
///
/// # Errors
/// When a file is not there, no record or outside of the root.
pub fn create_budget_manifest(root: &Root, strategy: &Path, approved: &Path) -> Result<Json> {
    let mut source = root.artifact(strategy)?;
    let record = Json::read_object(&root.path().join(strategy))?;
    for key in ["schema_version", "semantic_id"] {
        source.set(key, record.at(&[key]));
    }
    Ok(object! {"source" => source, "approved_result" => root.artifact(approved)?})
}
