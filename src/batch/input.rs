//! Inputs: files and archives, from folders, patterns and lists.
//!
//! What was typed must be there. What a list or a folder names and cannot be read is an input that failed, for
//! others go on without it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use regex::Regex;

use super::run::INSIDE;
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::archive::{Form, is_json_name, without_endings};
use crate::ingest::{Skipped, is_trace_name};

/// A file or an archive to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// From the root of the file system, so that the same file has the same name wherever a batch is started.
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
    /// Why it cannot be read, where that is known already.
    pub(super) failure: Option<String>,
}

impl Found {
    /// How it is called as an input.
    pub(super) fn id(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
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

    /// What is not read, with the reason.
    pub fn skipped(&self) -> impl Iterator<Item = (&Path, &str)> {
        let skipped = self.skipped.iter();
        skipped.map(|skipped| (skipped.path.as_path(), skipped.reason.as_str()))
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

/// Finds what to read under `paths`, folders, files, archives and patterns of them, and under what a list
/// named.
///
/// # Errors
/// When one of `paths` is not there, or can be no input.
pub fn find_inputs(paths: &[PathBuf], listed: &[PathBuf]) -> Result<Inputs> {
    let several = paths.len() != 1 || !listed.is_empty();
    let mut search = Search::default();
    for path in paths {
        let matched = glob(path)?;
        // How many match may change from one time to the next: names of runs must not.
        let whole = several || matched != [path.clone()];
        for path in matched {
            search.given(&path, whole)?;
        }
    }
    for line in listed {
        let matched = glob(line).and_then(|matched| {
            let mut given = matched.iter();
            given.try_for_each(|path| search.given(path, true))
        });
        if let Err(error) = matched {
            search.failed(line, shown(line), error.reason(), true);
        }
    }
    let mut inputs = search.inputs;
    // The largest first, so that none of them is alone at the end.
    inputs
        .found
        .sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
    Ok(inputs)
}

/// Inputs while they are looked for.
#[derive(Default)]
struct Search {
    inputs: Inputs,
    seen: BTreeSet<PathBuf>,
}

impl Search {
    /// Takes a path that was given; its inputs are named for the `whole` of it, or for what is below it.
    fn given(&mut self, path: &Path, whole: bool) -> Result<()> {
        let refused = |reason: &str| Err(Error::new(ErrorKind::Usage, reason).in_file(path));
        let metadata = fs::metadata(path).map_err(|error| Error::io(path, error))?;
        if metadata.is_dir() {
            if path.join(INSIDE).is_dir() {
                return refused("is a dataset of tracekit batch, not a folder of traces");
            }
            return self.folder(path, whole);
        }
        if !metadata.is_file() {
            return refused("is neither a file nor a folder");
        }
        let name = path.file_name().map_or_else(String::new, lossy);
        let below = if whole { shown(path) } else { name.clone() };
        self.add(path, below, &name, true, &metadata);
        Ok(())
    }

    fn add(&mut self, path: &Path, below: String, root: &str, named: bool, metadata: &Metadata) {
        let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !self.seen.insert(canonical) {
            return;
        }
        self.inputs.found.push(Found {
            path: absolute(path),
            below,
            root: named_for(root),
            form: Form::of(path),
            named,
            size: metadata.len(),
            modified_ns: modified(metadata),
            failure: None,
        });
    }

    /// What ought to be an input, and cannot be read.
    fn failed(&mut self, path: &Path, below: String, reason: String, named: bool) {
        self.inputs.found.push(Found {
            path: absolute(path),
            root: named_for(&below),
            below,
            form: None,
            named,
            size: 0,
            modified_ns: 0,
            failure: Some(reason),
        });
    }

    fn skip(&mut self, path: PathBuf, reason: &str) {
        self.inputs.skipped.push(Skipped {
            path,
            reason: reason.to_owned(),
            failed: false,
        });
    }

    fn folder(&mut self, root: &Path, whole: bool) -> Result<()> {
        let root_name = fs::canonicalize(root)
            .ok()
            .and_then(|path| path.file_name().map(lossy))
            .unwrap_or_else(|| shown(root));
        let mut open = list(root).map_err(|error| Error::io(root, error))?;
        while let Some(path) = open.pop() {
            let name = path.file_name().map(lossy).unwrap_or_default();
            let below = if whole {
                shown(&path)
            } else {
                shown(path.strip_prefix(root).unwrap_or(&path))
            };
            if name.starts_with('.') {
                self.skip(path, "hidden");
                continue;
            }
            // What is gone since the folder was listed is no failure.
            let Ok(linked) = fs::symlink_metadata(&path) else {
                self.skip(path, "cannot be looked at");
                continue;
            };
            if linked.is_dir() {
                if path.join(INSIDE).is_dir() {
                    // A dataset is none of its own inputs.
                    self.skip(path, "a dataset");
                    continue;
                }
                match list(&path) {
                    Ok(entries) => open.extend(entries),
                    Err(error) => {
                        let reason = format!("folder cannot be read: {error}").to_lowercase();
                        self.failed(&path, below, reason, true);
                    }
                }
                continue;
            }
            let is_input = Form::of(&path).is_some() || is_json_name(&name);
            match fs::metadata(&path) {
                Ok(metadata) if !metadata.is_file() => {
                    self.skip(path, "no file, or a link to a folder");
                }
                Ok(_) if name.as_bytes().ends_with(b".tmp") => {
                    self.skip(path, "unfinished temporary file");
                }
                _ if !is_input => self.skip(
                    path,
                    "not named *.json, or *.json.gz, .zst or .xz, and no archive",
                ),
                Ok(metadata) => self.add(&path, below, &root_name, false, &metadata),
                Err(error) => {
                    let reason = format!("cannot be read: {error}").to_lowercase();
                    self.failed(&path, below, reason, is_trace_name(&path));
                }
            }
        }
        Ok(())
    }
}

/// The path from the root of the file system. Links in it stay: other machines may have others.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What a run is called that has no name but that of a file or folder.
fn named_for(name: &str) -> String {
    match without_endings(name) {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
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

fn modified(metadata: &Metadata) -> i64 {
    let Ok(time) = metadata.modified() else {
        return 0;
    };
    let in_ns = |since: Duration| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => in_ns(since),
        // Clocks may be wrong.
        Err(before) => -in_ns(before.duration()),
    }
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
fn glob(pattern: &Path) -> Result<Vec<PathBuf>> {
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
        let found = find_inputs(&[folder.path().to_owned()], &[]).unwrap();
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
    fn what_a_list_names_and_is_not_there_is_an_input_that_failed() {
        let folder = tree(&["a/one.json", "b/two.json"]);
        let at = |name: &str| folder.path().join(name);
        let lines = [at("a/*.json"), at("gone.json"), at("none*.json"), at("b")];
        let found = find_inputs(&[], &lines).unwrap().found;
        let failed: Vec<bool> = found.iter().map(|found| found.failure.is_some()).collect();
        assert_eq!(failed.iter().filter(|failed| **failed).count(), 2);
        assert_eq!(found.len(), 4);
        // What is typed must be there.
        for line in &lines[1..3] {
            assert!(find_inputs(std::slice::from_ref(line), &[]).is_err());
        }
    }

    #[test]
    fn a_file_has_one_name_however_it_is_given() {
        let folder = tree(&["a/one.json"]);
        let ways = ["a", "./a", "a/../a/one.json", "a/*.json"];
        for way in ways {
            let found = find_inputs(&[folder.path().join(way)], &[]).unwrap().found;
            let path = found[0].path.to_string_lossy().replace("a/../", "");
            assert_eq!(Path::new(&path), folder.path().join("a/one.json"), "{way}");
            assert!(found[0].path.is_absolute());
        }
    }

    #[test]
    fn names_of_runs_do_not_depend_on_how_many_files_match() {
        let folder = tree(&["x/r1/rank0.json"]);
        let below = |pattern: &str| {
            let path = folder.path().join(pattern);
            find_inputs(&[path], &[]).unwrap().found[0].below.clone()
        };
        let one = below("x/r*");
        fs::create_dir(folder.path().join("x/r2")).unwrap();
        fs::write(folder.path().join("x/r2/rank0.json"), "longer").unwrap();
        assert!(one.ends_with("x/r1/rank0.json") && below("x/r*").ends_with("x/r2/rank0.json"));
        assert_eq!(below("x"), "r2/rank0.json");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = tree(&["a.json"]);
        let pipe = folder.path().join("pipe.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("nowhere", folder.path().join("link.pt.trace.json")).unwrap();
        let found = find_inputs(&[folder.path().to_owned()], &[]).unwrap();
        assert_eq!(found.skipped.len(), 1);
        let failed = found.found.iter().find(|found| found.failure.is_some());
        assert!(failed.unwrap().below.starts_with("link"), "{found:?}");
        let error = find_inputs(&[pipe], &[]).unwrap_err();
        assert!(error.reason().contains("neither"), "{error}");
    }

    #[test]
    fn files_that_grow_are_left_for_later() {
        let folder = tree(&["a.json", "b.json"]);
        let paths = [folder.path().to_owned()];
        let before = find_inputs(&paths, &[]).unwrap();
        fs::write(folder.path().join("b.json"), "longer").unwrap();
        fs::write(folder.path().join("new.json"), "x").unwrap();
        let now = find_inputs(&paths, &[]).unwrap().settled(&before);
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
