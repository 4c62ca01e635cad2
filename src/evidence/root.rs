//! The root of a project, and artefacts under it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind as IoKind, Read as _};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::gate::{Json, artifact};

/// What marks the root of a project.
const MARKER: &str = "tools/project_runtime.py";
/// Where notebooks keep it.
const NOTEBOOK_ROOT: &str = "/content/llm-algo-leetcode";
/// Which variable names where to start.
pub const ROOT_VARIABLE: &str = "LLM_ALGO_PROJECT_ROOT";
/// Where results are, under the root.
pub const RESULTS: &str = "benchmarks/results";

/// The root of a project: all artefacts are named relative to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// This folder, as it is.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn at(path: &Path) -> Result<Self> {
        let path = std::fs::canonicalize(path).map_err(|error| Error::io(path, error))?;
        if !path.is_dir() {
            return Err(Error::new(ErrorKind::NotFound, "is no folder").in_file(&path));
        }
        Ok(Self { path })
    }

    /// The first folder from `start` upwards that holds the marker of a project, else the folder of
    /// notebooks.
    ///
    /// # Errors
    /// [`ErrorKind::State`] when there is none.
    pub fn discover(start: &Path) -> Result<Self> {
        let from = std::fs::canonicalize(start).unwrap_or_else(|_| start.to_owned());
        let notebook = Path::new(NOTEBOOK_ROOT);
        from.ancestors()
            .chain(std::iter::once(notebook))
            .find(|folder| folder.join(MARKER).exists())
            .map(|folder| Self {
                path: folder.to_owned(),
            })
            .ok_or_else(|| {
                let message = format!(
                    "no project: neither here nor above is there {MARKER}; name the root with --root"
                );
                Error::new(ErrorKind::State, message).in_file(start)
            })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `relative` names under the root.
    pub fn join(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// `path` relative to the root, with `/` between its parts.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is outside of the root.
    pub fn relative(&self, path: &Path) -> Result<String> {
        let outside = || {
            let message = format!("is outside of the project {}", self.path.display());
            Error::new(ErrorKind::Invalid, message).in_file(path)
        };
        let absolute = if path.is_absolute() {
            path.to_owned()
        } else {
            self.path.join(path)
        };
        let absolute = std::fs::canonicalize(&absolute).unwrap_or(absolute);
        let inside = absolute.strip_prefix(&self.path).map_err(|_| outside())?;
        let mut parts = Vec::new();
        for part in inside.components() {
            match part {
                Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
                Component::CurDir => {}
                _ => return Err(outside()),
            }
        }
        Ok(parts.join("/"))
    }

    /// `path` as an artefact: relative to the root, with the hash of its bytes.
    ///
    /// # Errors
    /// When it is outside of the root or cannot be read.
    pub fn artifact(&self, path: &Path) -> Result<Json> {
        let relative = self.relative(path)?;
        let sha256 = hash(&self.path.join(&relative))?;
        Ok(artifact(&relative, &sha256))
    }
}

/// The SHA-256 of the file at `path`, read in blocks of 1 MiB.
///
/// # Errors
/// When it is not there or cannot be read.
pub fn hash(path: &Path) -> Result<String> {
    let failed = |error: std::io::Error| match error.kind() {
        IoKind::NotFound => {
            Error::new(ErrorKind::NotFound, "no such file or directory").in_file(path)
        }
        _ => Error::io(path, error),
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => break,
            read => hasher.update(&block[..read]),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_from_below() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let deep = root.join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(Root::discover(&deep).unwrap_err().kind(), ErrorKind::State);
        std::fs::create_dir(root.join("tools")).unwrap();
        std::fs::write(root.join(MARKER), "").unwrap();
        assert_eq!(Root::discover(&deep).unwrap().path(), root);
    }

    #[test]
    fn artefacts_are_relative_and_inside() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path()).unwrap();
        let inside = folder.path().join("x.json");
        std::fs::write(&inside, "abc").unwrap();
        let found = root.artifact(&inside).unwrap();
        assert_eq!(
            found,
            artifact(
                "x.json",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            )
        );
        let outside = other.path().join("x.json");
        std::fs::write(&outside, "abc").unwrap();
        for path in [outside, PathBuf::from("../x.json")] {
            let error = root.artifact(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("is outside of the project"));
        }
        let error = root.artifact(Path::new("missing.json")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
