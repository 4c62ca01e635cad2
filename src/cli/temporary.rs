//! A file that is filled beside the one that it is to replace, and then takes its place in one step.
//!
//! On Linux the file has no name while it is filled (`O_TMPFILE`), so that whatever ends the process, a
//! signal that nothing can catch included, leaves nothing behind: the kernel removes what has no name. That
//! needs no handler of signals, which would get into the way of those of `collect` and `batch`, and only
//! rustix, which the width of the terminal brings along anyway. It gets a name when it is whole: that of the
//! result, or, where there is an old one, a hidden one that is at once renamed over it, for the kernel
//! cannot replace a name by a file without one.
//!
//! Where the system or the file system has no such files (NFS is one), the file has its hidden name from
//! the start. An error removes it; a signal leaves it there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file for the place of another one.
pub(super) struct Temporary {
    file: File,
    /// What it is called meanwhile; `None` when it has no name.
    name: Option<PathBuf>,
    /// The place that it is for.
    path: PathBuf,
}

impl Temporary {
    /// A new file for the place of `path`, on the same file system.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        if let Some(file) = nameless(path) {
            return Ok(Self {
                file,
                name: None,
                path: path.to_owned(),
            });
        }
        Self::named(path)
    }

    fn named(path: &Path) -> io::Result<Self> {
        let (name, file) = create_beside(path, |name| File::create_new(name))?;
        Ok(Self {
            file,
            name: Some(name),
            path: path.to_owned(),
        })
    }

    /// The file itself.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it the permissions of the file that it replaces, when there is one.
    pub(super) fn keep_permissions(&self) -> io::Result<()> {
        match fs::metadata(&self.path) {
            Ok(before) => self.file.set_permissions(before.permissions()),
            Err(_) => Ok(()),
        }
    }

    /// Puts it in its place.
    pub(super) fn put(mut self) -> io::Result<()> {
        if self.name.is_none() {
            match link(&self.file, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let (name, ()) = create_beside(&self.path, |name| link(&self.file, name))?;
                    self.name = Some(name);
                }
                linked => return linked,
            }
        }
        if let Some(name) = &self.name {
            fs::rename(name, &self.path)?;
        }
        // The name is that of the result now.
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Whoever drops it has a failure to tell that came first.
            let _ = fs::remove_file(name);
        }
    }
}

/// What `create` makes under a hidden name beside `path` that is free.
pub(super) fn create_beside<T>(
    path: &Path,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let name = path.with_file_name(format!(".tracekit-{process}-{number}.tmp"));
        match create(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                number += 1;
            }
            created => return Ok((name, created?)),
        }
    }
}

/// A file without a name in the folder of `path`; `None` where there are none, or none that could get one.
#[cfg(target_os = "linux")]
fn nameless(path: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let folder = path.parent()?;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    // Without /proc, no name can be given to it.
    descriptor(&file).exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// Gives a file without a name the name `path`, which must be free.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The path by which the kernel knows an open file.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_takes_its_place_with_a_name_and_without() {
        for create in [Temporary::new, Temporary::named] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            for text in ["first", "second"] {
                let mut temporary = create(&path).unwrap();
                temporary.file().write_all(text.as_bytes()).unwrap();
                temporary.keep_permissions().unwrap();
                let before = fs::read_to_string(&path).ok();
                assert_ne!(before.as_deref(), Some(text));
                temporary.put().unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!(entries(folder.path()), ["out"]);
            }
            drop(create(&path).unwrap());
            assert_eq!(entries(folder.path()), ["out"]);
            // What cannot be put leaves nothing behind, either.
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            assert!(create(&path).unwrap().put().is_err());
            assert_eq!(entries(folder.path()), ["out"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn it_gets_the_permissions_of_what_it_replaces_and_else_those_of_a_new_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        for create in [Temporary::new, Temporary::named] {
            let path = folder.path().join("out");
            let put = || {
                let temporary = create(&path).unwrap();
                temporary.keep_permissions().unwrap();
                temporary.put().unwrap();
            };
            put();
            assert_eq!(mode(&path), mode(&plain));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            put();
            assert_eq!(mode(&path), 0o640);
            fs::remove_file(&path).unwrap();
        }
    }
}
