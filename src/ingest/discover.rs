//! Paths on a command line to inputs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Where it is; `-` is standard input.
    pub path: PathBuf,
    /// The folder given by the user under which it was found; `None` for a file given itself.
    pub root: Option<PathBuf>,
}

/// A file or folder that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: String,
    /// True when it should have been read and could not be.
    pub failed: bool,
}

/// What paths lead to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// The files to read, in the order of the paths given; those of a folder by their bytes.
    pub inputs: Vec<Input>,
    /// What lies in the folders beside them.
    pub skipped: Vec<Skipped>,
}

/// Finds the inputs that `paths` name. A file is an input whatever its name; a folder is searched,
/// and gives those with the names of JSON files. A file that is reached twice is read once.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) when one of `paths` does not exist or cannot be looked at.
pub fn discover(paths: &[PathBuf]) -> Result<Discovered> {
    let mut search = Search::default();
    for path in paths {
        if path.as_os_str() == "-" {
            search.add(path.clone(), None, path.clone());
            continue;
        }
        let metadata = fs::metadata(path).map_err(|error| Error::io(path, error))?;
        if metadata.is_dir() {
            search.folder(path)?;
        } else {
            let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            search.add(path.clone(), None, canonical);
        }
    }
    Ok(search.found)
}

/// True for the names that PyTorch's own writers give to traces: a file with such a name that
/// cannot be read is a failure, not some other file.
pub fn is_trace_name(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(OsStr::as_encoded_bytes)
        .unwrap_or_default();
    without_compression(name).ends_with(b".trace.json")
}

/// A file name without the ending that says how the file is compressed.
fn without_compression(name: &[u8]) -> &[u8] {
    [b".gz".as_slice(), b".zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(*ending))
        .unwrap_or(name)
}

#[derive(Default)]
struct Search {
    found: Discovered,
    /// Canonical paths of the inputs so far.
    seen: HashSet<PathBuf>,
}

impl Search {
    fn add(&mut self, path: PathBuf, root: Option<&Path>, canonical: PathBuf) {
        if self.seen.insert(canonical) {
            self.found.inputs.push(Input {
                path,
                root: root.map(Path::to_owned),
            });
        }
    }

    fn skip(&mut self, path: PathBuf, reason: &str, failed: bool) {
        self.found.skipped.push(Skipped {
            path,
            reason: reason.to_owned(),
            failed,
        });
    }

    /// Searches the folder `root` without recursion: `open` holds what is still to be looked at,
    /// the next on top.
    fn folder(&mut self, root: &Path) -> Result<()> {
        let mut open = list(root).map_err(|error| Error::io(root, error))?;
        while let Some(path) = open.pop() {
            let name = path
                .file_name()
                .map(OsStr::as_encoded_bytes)
                .unwrap_or_default();
            if name.starts_with(b".") {
                self.skip(path, "hidden", false);
                continue;
            }
            let Ok(linked) = fs::symlink_metadata(&path) else {
                self.skip(path, "cannot be looked at", true);
                continue;
            };
            if linked.is_dir() {
                match list(&path) {
                    Ok(entries) => open.extend(entries),
                    Err(error) => {
                        self.skip(path, &format!("folder cannot be read: {error}"), true);
                    }
                }
                continue;
            }
            let reason = match fs::metadata(&path) {
                // Never followed: a link may lead back to a folder above it.
                Ok(metadata) if metadata.is_dir() => Some(("link to a folder", false)),
                Ok(metadata) if !metadata.is_file() => Some(("not a file", false)),
                Ok(_) if name.ends_with(b".tmp") => Some(("unfinished temporary file", false)),
                Ok(_) if !without_compression(name).ends_with(b".json") => {
                    Some(("not named *.json, *.json.gz or *.json.zst", false))
                }
                Ok(_) => None,
                Err(_) => Some(("link to nowhere", is_trace_name(&path))),
            };
            if let Some((reason, failed)) = reason {
                self.skip(path, reason, failed);
                continue;
            }
            let canonical = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            self.add(path, Some(root), canonical);
        }
        Ok(())
    }
}

/// The entries of a folder, the first by its bytes at the end.
fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_unstable_by(|a, b| {
        b.as_os_str()
            .as_encoded_bytes()
            .cmp(a.as_os_str().as_encoded_bytes())
    });
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "[]").unwrap();
        }
        folder
    }

    fn names(root: &Path, paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
        paths
            .map(|path| path.strip_prefix(root).unwrap().display().to_string())
            .collect()
    }

    #[test]
    fn a_folder_gives_its_json_files_in_order_and_says_what_it_skips() {
        let folder = tree(&[
            "b.json",
            "a/rank10.json.gz",
            "a/rank2.json",
            "a/rank3.json.zst",
            "c.json.tmp",
            "notes.txt",
            ".hidden/x.json",
            ".y.json",
        ]);
        let root = folder.path();
        let found = discover(&[root.to_owned()]).expect("a folder");
        let inputs = names(root, found.inputs.iter().map(|input| input.path.clone()));
        assert_eq!(
            inputs,
            [
                "a/rank10.json.gz",
                "a/rank2.json",
                "a/rank3.json.zst",
                "b.json"
            ]
        );
        assert!(
            found
                .inputs
                .iter()
                .all(|input| input.root.as_deref() == Some(root))
        );
        let skipped = names(
            root,
            found.skipped.iter().map(|skipped| skipped.path.clone()),
        );
        assert_eq!(skipped, [".hidden", ".y.json", "c.json.tmp", "notes.txt"]);
        assert!(found.skipped.iter().all(|skipped| !skipped.failed));
    }

    #[test]
    fn files_given_by_name_are_inputs_and_none_is_read_twice() {
        let folder = tree(&["x.log", "t.json"]);
        let [log, json] = ["x.log", "t.json"].map(|name| folder.path().join(name));
        let again = folder.path().join(".").join("t.json");
        let given = [
            log.clone(),
            json.clone(),
            again,
            folder.path().to_owned(),
            PathBuf::from("-"),
        ];
        let found = discover(&given).expect("files");
        let inputs: Vec<&Path> = found
            .inputs
            .iter()
            .map(|input| input.path.as_path())
            .collect();
        assert_eq!(inputs, [&log, &json, Path::new("-")]);
        assert_eq!(found.inputs[0].root, None);
    }

    #[test]
    fn a_path_to_nothing_is_an_error() {
        let error = discover(&["/no/such/path".into()]).expect_err("nothing");
        assert_eq!(error.kind(), crate::ErrorKind::Io);
        assert!(error.to_string().starts_with("/no/such/path: "), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_to_files_are_followed_and_links_to_folders_are_not() {
        use std::os::unix::fs::symlink;
        let folder = tree(&["real/t.json"]);
        let root = folder.path();
        symlink(root, root.join("real/loop")).unwrap();
        symlink(root.join("real/t.json"), root.join("link.json")).unwrap();
        symlink(root.join("gone"), root.join("gone.trace.json")).unwrap();
        let found = discover(&[root.to_owned()]).expect("a folder");
        let inputs = names(root, found.inputs.into_iter().map(|input| input.path));
        assert_eq!(inputs, ["link.json"]);
        let skipped: Vec<(String, bool)> = found
            .skipped
            .into_iter()
            .map(|skipped| (skipped.reason, skipped.failed))
            .collect();
        let expected = [("link to nowhere", true), ("link to a folder", false)];
        assert_eq!(
            skipped,
            expected.map(|(reason, failed)| (reason.to_owned(), failed))
        );
    }

    #[test]
    fn names_of_traces_are_known() {
        for name in [
            "w0.123.pt.trace.json",
            "a/b.trace.json.gz",
            "a.pt.trace.json.zst",
            ".pt.trace.json",
        ] {
            assert!(is_trace_name(Path::new(name)), "{name}");
        }
        for name in [
            "trace.json",
            "a.json",
            "a.pt.trace.json.xz",
            "a.trace.json.gz.zst",
            "a.trace.json.tmp",
            "",
        ] {
            assert!(!is_trace_name(Path::new(name)), "{name}");
        }
    }
}
