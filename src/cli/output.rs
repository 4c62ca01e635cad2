//! Where results and messages go: standard output or a file, and standard error.

#[cfg(feature = "frames")]
use std::fs::File;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use super::args::Format;
use super::temporary::Temporary;
#[cfg(feature = "frames")]
use super::temporary::create_beside;
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::discover;
use crate::report::visible;

/// Narrower terminals get lines of this many columns all the same.
const NARROWEST: usize = 40;

/// Prints one line on standard error.
pub(super) fn say(message: &str) {
    let line = format!("tracekit: {}\n", visible(message));
    // Nobody is left to tell when this fails.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Where a result goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Standard output.
    Stdout,
    /// A file that is replaced as a whole, under its own name and as given.
    File { path: PathBuf, given: PathBuf },
    /// A pipe or device, written as it is.
    Stream(PathBuf),
}

impl Target {
    /// The target that `--output` names, known to be writable where that can be known.
    pub(super) fn new(output: Option<&Path>) -> Result<Self> {
        let Some(path) = output.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout);
        };
        let refused = |reason: &str| Err(Error::new(ErrorKind::Usage, reason).in_file(path));
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return refused("is a directory, not a file to write to");
            }
            Ok(found) if !found.is_file() => return Ok(Self::Stream(path.to_owned())),
            Ok(found) if found.permissions().readonly() => return refused("is read-only"),
            // A link stays a link: what it points to is replaced.
            Ok(_) => {
                let file = fs::canonicalize(path).map_err(|error| Error::io(path, error))?;
                return Self::probed(file, path);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(path, error));
            }
            Err(_) => {}
        }
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return refused("is a directory, not a file to write to");
        }
        Self::probed(path.to_owned(), path)
    }

    /// The same for a result in `format`: a page on a terminal is of no use to anybody.
    pub(super) fn of_format(output: Option<&Path>, format: Format) -> Result<Self> {
        let target = Self::new(output)?;
        if format == Format::Html && target == Self::Stdout && io::stdout().is_terminal() {
            let message = "a page is not for terminals: write it to a file with -o report.html";
            return Err(Error::new(ErrorKind::Usage, message));
        }
        Ok(target)
    }

    /// Finds out before any work whether the file can be written.
    fn probed(path: PathBuf, given: &Path) -> Result<Self> {
        let failed = |error| Error::io(given, error);
        drop(Temporary::new(&path).map_err(failed)?);
        Ok(Self::File {
            path,
            given: given.to_owned(),
        })
    }

    /// Fails when the target is one of the files that `paths` name or hold, whether it would be
    /// read or not: it would be lost.
    pub(super) fn check_inputs(&self, paths: &[PathBuf]) -> Result<()> {
        let Self::File { path, given } = self else {
            return Ok(());
        };
        if !path.exists() {
            return Ok(());
        }
        let found = discover(paths)?;
        let files = found.inputs.iter().map(|input| &input.path);
        let skipped = found.skipped.iter().map(|skipped| &skipped.path);
        if files.chain(skipped).any(|input| is_same_file(input, path)) {
            let message = "is an input and is not overwritten";
            return Err(Error::new(ErrorKind::Usage, message).in_file(given));
        }
        Ok(())
    }

    /// Writes a whole result. A reader that went away is no failure.
    pub(super) fn write(&self, result: &str) -> Result<()> {
        let (name, written) = match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                let written = stdout
                    .write_all(result.as_bytes())
                    .and_then(|()| stdout.flush());
                (Path::new("standard output"), written)
            }
            Self::Stream(path) => {
                let opened = OpenOptions::new().write(true).open(path);
                (
                    path.as_path(),
                    opened.and_then(|mut stream| stream.write_all(result.as_bytes())),
                )
            }
            Self::File { path, given } => (given.as_path(), replace(path, result)),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Error::io(name, error)),
            Ok(()) => Ok(()),
        }
    }

    /// Columns of the terminal that shows the result; `None` when none does.
    pub(super) fn width(&self) -> Option<usize> {
        if *self != Self::Stdout || !io::stdout().is_terminal() {
            return None;
        }
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0).max(NARROWEST))
    }

    /// True when the result may have bold type.
    pub(super) fn is_styled(&self) -> bool {
        let choice = anstream::AutoStream::choice(&io::stdout());
        *self == Self::Stdout && choice != anstream::ColorChoice::Never
    }
}

/// Puts `result` in the place of `path` in one step.
fn replace(path: &Path, result: &str) -> io::Result<()> {
    let mut temporary = Temporary::new(path)?;
    temporary.file().write_all(result.as_bytes())?;
    temporary.keep_permissions()?;
    temporary.put()
}

/// A new file beside `path`, on the same file system, that has a name from the start.
#[cfg(feature = "frames")]
pub(super) fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    create_beside(path, |name| File::create_new(name))
}

#[cfg(unix)]
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        for result in ["first", "second"] {
            Target::new(Some(&path)).unwrap().write(result).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), result);
        }
        assert_eq!(entries(folder.path()), ["out.txt"]);
    }

    #[test]
    fn targets_that_cannot_be_files_are_refused_before_any_work() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Target::new(Some(path)).unwrap_err().to_string();
        assert!(refused(folder.path()).ends_with("is a directory, not a file to write to"));
        assert!(refused(&folder.path().join("new/")).ends_with("not a file to write to"));
        assert!(refused(&folder.path().join("missing/out")).contains("no such file or directory"));
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn inputs_are_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        fs::write(&path, "{}").unwrap();
        let linked = folder.path().join("linked.json");
        fs::hard_link(&path, &linked).unwrap();
        let target = Target::new(Some(&linked)).unwrap();
        let error = target
            .check_inputs(std::slice::from_ref(&path))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("linked.json: is an input and is not overwritten")
        );
        target.check_inputs(&[PathBuf::from("-")]).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        let link = folder.path().join("link");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Target::new(Some(&link)).unwrap().write("new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");

        let null = Target::new(Some(Path::new("/dev/null"))).unwrap();
        assert_eq!(null, Target::Stream(PathBuf::from("/dev/null")));
        null.write("gone").unwrap();
    }

    #[test]
    fn standard_output_is_the_default() {
        assert_eq!(Target::new(None).unwrap(), Target::Stdout);
        assert_eq!(Target::new(Some(Path::new("-"))).unwrap(), Target::Stdout);
    }
}
