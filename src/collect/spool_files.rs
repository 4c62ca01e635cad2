//! The spools in a folder: each is one file, or with a ring several.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::decode::files_removed;
use crate::error::{Error, Result};
use crate::ingest::{IngestOptions, Source};

const ENDING: &str = "tkspool";

/// The files of one spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpoolFiles {
    /// What their names have in common: process and time.
    pub(super) stem: String,
    /// In the order in which they were written, with their numbers in a ring.
    files: Vec<(u64, PathBuf)>,
}

/// `12-345.tkspool` and `12-345.000007.tkspool` are of the spool `12-345`; the second is its file 7.
fn parts(path: &Path) -> Option<(String, u64)> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(ENDING)?.strip_suffix('.')?;
    let numbered = stem
        .rsplit_once('.')
        .and_then(|(stem, number)| Some((stem.to_owned(), number.parse().ok()?)));
    Some(numbered.unwrap_or_else(|| (stem.to_owned(), 0)))
}

/// The spools in `folder`, in order of name.
pub(super) fn list(folder: &Path) -> Result<Vec<SpoolFiles>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io(folder, error))?;
    let mut spools: BTreeMap<String, Vec<(u64, PathBuf)>> = BTreeMap::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if let Some((stem, number)) = parts(&path) {
            spools.entry(stem).or_default().push((number, path));
        }
    }
    let spools = spools.into_iter().map(|(stem, mut files)| {
        files.sort();
        SpoolFiles { stem, files }
    });
    Ok(spools.collect())
}

impl SpoolFiles {
    /// What is in the files, in order; those that the newest says are removed, and are not yet, are left out.
    pub(super) fn open(&self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        for (number, path) in &self.files {
            match Source::open(path, &IngestOptions::default()) {
                Ok(source) => sources.push((*number, source)),
                // The process goes on and has removed it since it was listed.
                Err(_) if self.files.len() > 1 && !path.exists() => {}
                Err(error) => return Err(error),
            }
        }
        let removed = sources
            .last()
            .map_or(0, |(_, newest)| files_removed(newest.bytes()));
        sources.retain(|(number, _)| *number >= removed);
        Ok(sources.into_iter().map(|(_, source)| source).collect())
    }

    /// Removes the files.
    pub(super) fn remove(&self) -> Result<()> {
        for (_, path) in &self.files {
            fs::remove_file(path).map_err(|error| Error::io(path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_ring_belong_together_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "7-1.000010.tkspool",
            "7-1.000009.tkspool",
            "8-2.tkspool",
            "notes.txt",
            ".tkspool",
        ] {
            fs::write(folder.path().join(name), "TKSPOOL2").unwrap();
        }
        let spools = list(folder.path()).unwrap();
        let found: Vec<_> = spools
            .iter()
            .map(|spool| {
                let numbers: Vec<u64> = spool.files.iter().map(|(number, _)| *number).collect();
                (spool.stem.as_str(), numbers)
            })
            .collect();
        assert_eq!(
            found,
            [("", vec![0]), ("7-1", vec![9, 10]), ("8-2", vec![0])]
        );
        assert_eq!(spools[1].open().unwrap().len(), 2);
        spools[1].remove().unwrap();
        assert_eq!(list(folder.path()).unwrap().len(), 2);
    }
}
