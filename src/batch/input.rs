//! Inputs: files and archives, from folders, patterns and lists.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use regex::Regex;

use crate::error::{Error, ErrorKind, Result};
use crate::ingest::archive::{Form, is_json_name, without_endings};
use crate::ingest::{Skipped, is_trace_name};

/// A file or an archive to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Where it is below the folder that was given.
    pub(super) below: String,
    /// What a run is called that its place has no name for.
    pub(super) root: String,
    pub(super) form: Option<Form>,
    /// It was given by name.
    pub(super) named: bool,
    pub(super) size: u64,
    pub(super) modified_ns: i64,
}

/// What there is to read.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The largest first.
    pub(super) found: Vec<Found>,
    /// What lies beside it.
    pub(super) skipped: Vec<Skipped>,
}

impl Inputs {
    /// Number of files and archives.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Bytes of them as stored.
    pub fn bytes(&self) -> u64 {
        self.found.iter().map(|found| found.size).sum()
    }

    /// Keeps those that have not changed since `before`: the others are still being written.
    #[must_use]
    pub(crate) fn settled(mut self, before: &Self) -> Self {
        let sizes: BTreeMap<&Path, (u64, i64)> = before
            .found
            .iter()
            .map(|found| (found.path.as_path(), (found.size, found.modified_ns)))
            .collect();
        self.found.retain(|found| {
            sizes.get(found.path.as_path()) == Some(&(found.size, found.modified_ns))
        });
        self
    }
}

/// Finds what to read under `paths`: folders, files and archives.
///
/// # Errors
/// When one of `paths` is not there.
pub fn find_inputs(paths: &[PathBuf]) -> Result<Inputs> {
    let several = paths.len() > 1;
    let mut inputs = Inputs::default();
    let mut seen = BTreeSet::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(|error| Error::io(path, error))?;
        if metadata.is_dir() {
            folder(path, several, &mut inputs, &mut seen)?;
        } else {
            let name = path.file_name().map_or_else(String::new, lossy);
            let found = Found {
                below: if several { shown(path) } else { name.clone() },
                root: without_endings(&name).to_owned(),
                form: Form::of(path),
                named: true,
                size: metadata.len(),
                modified_ns: modified(&metadata),
                path: path.clone(),
            };
            add(found, &mut inputs, &mut seen);
        }
    }
    // The largest first, so that none of them is alone at the end.
    inputs
        .found
        .sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
    Ok(inputs)
}

fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// A path with `/` between folders, without what stands for nothing.
fn shown(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(lossy(name)),
            _ => None,
        })
        .collect();
    parts.join("/")
}

fn modified(metadata: &fs::Metadata) -> i64 {
    let since = metadata.modified().ok();
    let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

fn add(found: Found, inputs: &mut Inputs, seen: &mut BTreeSet<PathBuf>) {
    let canonical = fs::canonicalize(&found.path).unwrap_or_else(|_| found.path.clone());
    if seen.insert(canonical) {
        inputs.found.push(found);
    }
}

fn folder(
    root: &Path,
    several: bool,
    inputs: &mut Inputs,
    seen: &mut BTreeSet<PathBuf>,
) -> Result<()> {
    let root_name = fs::canonicalize(root)
        .ok()
        .and_then(|path| path.file_name().map(lossy))
        .unwrap_or_else(|| shown(root));
    let mut open = list(root).map_err(|error| Error::io(root, error))?;
    while let Some(path) = open.pop() {
        let name = path.file_name().map(lossy).unwrap_or_default();
        let mut skip = |reason: &str, failed: bool| {
            inputs.skipped.push(Skipped {
                path: path.clone(),
                reason: reason.to_owned(),
                failed,
            });
        };
        if name.starts_with('.') {
            skip("hidden", false);
            continue;
        }
        let Ok(linked) = fs::symlink_metadata(&path) else {
            skip("cannot be looked at", true);
            continue;
        };
        if linked.is_dir() {
            match list(&path) {
                // A dataset is none of its own inputs.
                Ok(_) if super::is_dataset(&path) => skip("a dataset", false),
                Ok(entries) => open.extend(entries),
                Err(error) => skip(&format!("folder cannot be read: {error}"), true),
            }
            continue;
        }
        let metadata = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => {
                skip("no file, or a link to a folder", false);
                continue;
            }
            Err(_) => {
                skip("link to nowhere", is_trace_name(&path));
                continue;
            }
        };
        let form = Form::of(&path);
        if name.as_bytes().ends_with(b".tmp") {
            skip("unfinished temporary file", false);
        } else if form.is_none() && !is_json_name(&name) {
            skip(
                "not named *.json, or *.json.gz, .zst or .xz, and no archive",
                false,
            );
        } else {
            let below = path.strip_prefix(root).unwrap_or(&path);
            let below = if several { shown(&path) } else { shown(below) };
            let found = Found {
                below,
                root: root_name.clone(),
                form,
                named: false,
                size: metadata.len(),
                modified_ns: modified(&metadata),
                path: path.clone(),
            };
            add(found, inputs, seen);
        }
    }
    Ok(())
}

/// The entries of a folder, the first by its bytes at the end.
fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_unstable_by(|a, b| b.cmp(a));
    Ok(entries)
}

/// The paths that match `pattern`, in order: `*` and `?` stand for letters of one name, `**` for any
/// folders. A path that is there stands for itself, whatever letters it has.
///
/// # Errors
/// When nothing matches.
pub fn glob(pattern: &Path) -> Result<Vec<PathBuf>> {
    let text = pattern.to_string_lossy();
    if !text.contains(['*', '?']) || pattern.exists() {
        return Ok(vec![pattern.to_owned()]);
    }
    let parts: Vec<&str> = text.split('/').collect();
    let fixed = parts
        .iter()
        .take_while(|part| !part.contains(['*', '?']))
        .count();
    let start = match parts[..fixed].join("/") {
        empty if empty.is_empty() && text.starts_with('/') => PathBuf::from("/"),
        start => PathBuf::from(start),
    };
    let mut paths = vec![start];
    for part in &parts[fixed..] {
        paths = matching(paths, part)?;
    }
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        return Err(Error::new(ErrorKind::Io, "nothing matches").in_file(pattern));
    }
    Ok(paths)
}

/// What is in `folders` by the name `part`.
fn matching(folders: Vec<PathBuf>, part: &str) -> Result<Vec<PathBuf>> {
    let entries = |folder: &Path| {
        let here = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let entries = fs::read_dir(here).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let mut found = Vec::new();
    if part == "**" {
        let mut open = folders;
        while let Some(folder) = open.pop() {
            for name in entries(&folder) {
                let path = folder.join(name);
                if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                    open.push(path);
                }
            }
            found.push(folder);
        }
        return Ok(found);
    }
    let mut regex = String::from("^");
    for letter in part.chars() {
        match letter {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            letter => regex.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    let regex = Regex::new(&regex)
        .map_err(|_| Error::new(ErrorKind::Usage, format!("'{part}' is no pattern")))?;
    for folder in folders {
        for name in entries(&folder) {
            let text = name.to_string_lossy();
            // As in a shell, a star stands for no hidden file.
            if regex.is_match(&text) && (part.starts_with('.') || !text.starts_with('.')) {
                found.push(folder.join(&name));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (number, file) in files.iter().enumerate() {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x".repeat(number)).unwrap();
        }
        folder
    }

    #[test]
    fn folders_give_traces_and_archives_the_largest_first() {
        let folder = tree(&[
            "a.json",
            "b/c.tar.gz",
            "b/d.json.xz",
            "notes.txt",
            "x.json.tmp",
        ]);
        let found = find_inputs(&[folder.path().to_owned()]).unwrap();
        let below: Vec<&str> = found
            .found
            .iter()
            .map(|found| found.below.as_str())
            .collect();
        assert_eq!(below, ["b/d.json.xz", "b/c.tar.gz", "a.json"]);
        assert_eq!(found.found[1].form, Some(Form::TarGzip));
        assert_eq!((found.len(), found.bytes(), found.skipped.len()), (3, 3, 2));
    }

    #[test]
    fn files_that_grow_are_left_for_later() {
        let folder = tree(&["a.json", "b.json"]);
        let paths = [folder.path().to_owned()];
        let before = find_inputs(&paths).unwrap();
        fs::write(folder.path().join("b.json"), "longer").unwrap();
        fs::write(folder.path().join("new.json"), "x").unwrap();
        let now = find_inputs(&paths).unwrap().settled(&before);
        let below: Vec<&str> = now.found.iter().map(|found| found.below.as_str()).collect();
        assert_eq!(below, ["a.json"]);
    }

    #[test]
    fn patterns_of_paths_match_as_in_a_shell() {
        let folder = tree(&["a/1.json", "a/22.json", "b/c/3.json", "b/.hidden.json"]);
        let matched = |pattern: &str| -> Vec<String> {
            let paths = glob(&folder.path().join(pattern)).unwrap();
            paths
                .iter()
                .map(|path| shown(path.strip_prefix(folder.path()).unwrap()))
                .collect()
        };
        assert_eq!(matched("a/?.json"), ["a/1.json"]);
        assert_eq!(matched("*/*.json"), ["a/1.json", "a/22.json"]);
        assert_eq!(
            matched("**/*.json"),
            ["a/1.json", "a/22.json", "b/c/3.json"]
        );
        assert_eq!(matched("nowhere.json"), ["nowhere.json"]);
        assert!(glob(&folder.path().join("z*")).is_err());
    }
}
