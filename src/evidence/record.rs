//! Records on disk: written whole, once, and never over another.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::gate::Json;

/// What became of a record that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// It was written now.
    Written,
    /// An equal one was there.
    AlreadyComplete,
}

impl Saved {
    /// The spelling in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::AlreadyComplete => "already_complete",
        }
    }
}

/// Writes `record` to `path`, whole or not at all, and only when nothing is there. Folders are made.
///
/// The record is written to a file beside it, brought to the disk, and then linked to its name, which fails
/// when the name is taken: a process that is killed at any moment leaves the name free or the whole record.
///
/// # Errors
/// [`ErrorKind::Exists`] when something is there, [`ErrorKind::Io`] when it cannot be written.
pub fn save_json_record_once(path: &Path, record: &Json) -> Result<()> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path, ""),
        _ => Error::io(path, error),
    };
    if path.symlink_metadata().is_ok() {
        return Err(exists(path, ""));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    }
    let (temporary, mut file) = temporary(path).map_err(failed)?;
    let written = file
        .write_all(record.to_text().as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| place(&temporary, path));
    // Linked or not, the other name goes; the failure to tell is the first one.
    let _ = fs::remove_file(&temporary);
    written.map_err(failed)?;
    sync_folder(folder.unwrap_or(Path::new("."))).map_err(failed)
}

/// Gives the file `temporary` the name `path`, unless that is taken.
fn place(temporary: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, path) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
            ) =>
        {
            // A file system without links. Another process may take the name between the two lines.
            if path.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(temporary, path)
        }
        linked => linked,
    }
}

/// Brings the names in `folder` to the disk, where that can be done.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Writes `record` to `path` when nothing is there, and is content with an equal one; which tool wrote it
/// makes no difference.
///
/// # Errors
/// [`ErrorKind::Exists`] when something else is there, which stays as it is.
pub fn save_or_confirm(path: &Path, record: &Json) -> Result<Saved> {
    match save_json_record_once(path, record) {
        Ok(()) => Ok(Saved::Written),
        Err(error) if error.kind() == ErrorKind::Exists => {
            let found = Json::read_object(path)?;
            if is_same(&found, record) {
                Ok(Saved::AlreadyComplete)
            } else {
                Err(error)
            }
        }
        Err(error) => Err(error),
    }
}

/// Whether two records say the same, whichever version of the tool wrote them.
pub(crate) fn is_same(a: &Json, b: &Json) -> bool {
    let without_tool = |record: &Json| {
        let mut record = record.clone();
        record.remove("tool");
        record
    };
    without_tool(a) == without_tool(b)
}

/// Replaces what is at `path` by `record` in one step.
///
/// # Errors
/// When it cannot be written.
pub fn replace_json(path: &Path, record: &Json) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    }
    let failed = |error| Error::io(path, error);
    let (temporary, mut file) = temporary(path).map_err(failed)?;
    let written = file
        .write_all(record.to_text().as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed)
}

/// The refusal to write over something; `more` is what else can be done.
pub(super) fn exists(path: &Path, more: &str) -> Error {
    let message = format!("is there already and is not overwritten; use another label{more}");
    Error::new(ErrorKind::Exists, message).in_file(path)
}

/// A new file beside `path`, on the same file system.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let temporary = path.with_file_name(format!(".tracekit-{process}-{number}.tmp"));
        match File::create_new(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            created => return Ok((temporary, created?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::object;

    #[test]
    fn a_record_is_written_once_and_folders_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/record.json");
        let record = object! {"name" => "é", "value" => 1.0};
        save_json_record_once(&path, &record).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(
            bytes,
            "{\n  \"name\": \"é\",\n  \"value\": 1.0\n}\n".as_bytes()
        );
        let error = save_json_record_once(&path, &object! {"value" => 2.0}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert!(
            error.to_string().ends_with(
                "record.json: is there already and is not overwritten; use another label"
            )
        );
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1);
    }

    #[test]
    fn an_equal_record_is_complete_and_another_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        let record = object! {"a" => 1_i64, "b" => 2_i64, "tool" => "old"};
        assert_eq!(save_or_confirm(&path, &record).unwrap(), Saved::Written);
        let same = object! {"tool" => "new", "b" => 2.0, "a" => 1.0};
        assert_eq!(
            save_or_confirm(&path, &same).unwrap(),
            Saved::AlreadyComplete
        );
        let other = object! {"a" => 1_i64, "b" => 3_i64};
        assert_eq!(
            save_or_confirm(&path, &other).unwrap_err().kind(),
            ErrorKind::Exists
        );
        assert_eq!(Json::read_object(&path).unwrap(), record);
    }
}
