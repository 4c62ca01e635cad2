//! The records in a folder of results.

use std::path::Path;

use super::legacy::{Form, identify};
use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, object};

/// A result of the folder.
pub(super) struct Found {
    /// Name of its file.
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) record: Json,
}

/// Every record in `folder`, not below it, by name; and the files that are none, with the reason.
///
/// # Errors
/// When the folder cannot be read or holds no record.
pub(super) fn records_in(folder: &Path) -> Result<(Vec<Found>, Vec<Json>)> {
    let failed = |error| Error::io(folder, error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    let mut found = Vec::new();
    let mut skipped = Vec::new();
    for path in paths {
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        if !is_json || !path.is_file() {
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        match Json::read_object(&path).and_then(|record| Ok((identify(&record)?.form, record))) {
            Ok((form, record)) => found.push(Found { name, form, record }),
            Err(error) => skipped.push(object! {"file" => name, "reason" => error.reason()}),
        }
    }
    if found.is_empty() {
        let message = "holds no result of the chain";
        return Err(Error::new(ErrorKind::NotFound, message).in_file(folder));
    }
    Ok((found, skipped))
}
