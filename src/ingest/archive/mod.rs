//! Members of archives, read where they are: nothing is ever unpacked to disk.
//!
//! ```text
//! .tar, .zip                 listed first, members read in any order
//! .tar.gz, .tar.zst, .tar.xz read once from front to back
//! ```
//! An archive may be made to do harm. Names that lead out of it (`../`, absolute ones), links that are called
//! like traces and archives in archives are refused; other links and folders are passed. A member is never longer
//! than [`Bounds::member`], all of a compressed archive never more than [`RATIO`] times its size, and
//! members of a zip that lie over one another are refused altogether.

mod name;
mod tar;
mod xz;
mod zip;

use std::borrow::Cow;
use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use ::zip::ZipArchive;

pub(crate) use name::{is_compressed_name, is_json_name, without_endings};
pub(crate) use xz::{is_xz, unpacked};

use super::Source;
use crate::error::{Error, ErrorKind, Result};

/// What is compressed further than this is no archive of traces. Text compresses to a twentieth, and
/// repeated ranks in one stream to less; a bomb, to a thousandth and below.
pub(crate) const RATIO: u64 = 500;

/// So much content is never too much for an archive, however small it is.
const SMALL: u64 = 64 << 20;

/// A form of archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Tar,
    TarGzip,
    TarZstd,
    TarXz,
    Zip,
}

impl Form {
    /// The form of the archive at `path`, by its name; `None` for what is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends: [(&str, Self); 9] = [
            (".tar", Self::Tar),
            (".tar.gz", Self::TarGzip),
            (".tgz", Self::TarGzip),
            (".tar.zst", Self::TarZstd),
            (".tzst", Self::TarZstd),
            (".tar.xz", Self::TarXz),
            (".txz", Self::TarXz),
            (".zip", Self::Zip),
            (".tar.zstd", Self::TarZstd),
        ];
        let found = ends.iter().find(|(end, _)| name.ends_with(end));
        found.map(|(_, form)| *form)
    }

    /// True when members can be read in any order.
    pub(crate) fn is_listed(self) -> bool {
        matches!(self, Self::Tar | Self::Zip)
    }
}

/// What may be read of an archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Most bytes of one member.
    pub(crate) member: u64,
}

impl Bounds {
    fn total(stored: usize) -> u64 {
        (stored as u64).saturating_mul(RATIO).max(SMALL)
    }
}

/// What an archive has at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file that may be a trace.
    Member(Member),
    /// Something that is not read, and ought to be by its name.
    Refused { name: String, reason: String },
    /// Something else.
    Passed { name: String, reason: &'static str },
}

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name, with `/` between folders.
    pub(crate) name: String,
    /// Bytes as the archive gives them, which may be compressed themselves.
    pub(crate) size: u64,
    /// Bytes that it takes in the archive, or, of a compressed one, that were read to come to it.
    pub(crate) stored: u64,
    /// Where it is.
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// These bytes of the archive.
    Bytes(Range<usize>),
    /// Entry of this number.
    Number(usize),
    /// Wherever the archive has been read to.
    Here,
}

/// The bytes of an archive, shared by those who read it.
#[derive(Debug, Clone)]
pub(crate) struct Shared(pub(crate) Arc<Source>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// An archive.
#[derive(Clone)]
pub(crate) struct Archive {
    bytes: Shared,
    form: Form,
    bounds: Bounds,
    zip: Option<ZipArchive<std::io::Cursor<Shared>>>,
}

impl Archive {
    /// Opens the archive of this `form` in `source`.
    ///
    /// # Errors
    /// When it is no zip archive and should be one.
    pub(crate) fn open(source: Arc<Source>, form: Form, bounds: Bounds) -> Result<Self> {
        let bytes = Shared(source);
        let zip = match form {
            Form::Zip => Some(zip::open(bytes.clone())?),
            _ => None,
        };
        Ok(Self {
            bytes,
            form,
            bounds,
            zip,
        })
    }

    /// What is in it, where that can be told without reading it all: see [`Form::is_listed`].
    ///
    /// # Errors
    /// When the archive is damaged at its start, or made to do harm.
    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        match &self.zip {
            Some(zip) => zip::list(zip, self.bytes.as_ref().len(), self.bounds),
            None => tar::list(self.bytes.as_ref(), self.bounds),
        }
    }

    /// The bytes of a listed member, where they lie in the archive as they are.
    pub(crate) fn plain(&self, member: &Member) -> Option<&[u8]> {
        match &member.place {
            Place::Bytes(range) => self.bytes.as_ref().get(range.clone()),
            _ => None,
        }
    }

    /// The bytes of a listed member.
    ///
    /// # Errors
    /// When they are damaged, or more than they are said to be.
    pub(crate) fn read(&self, member: &Member) -> Result<Cow<'_, [u8]>> {
        match (&member.place, &self.zip) {
            (Place::Bytes(_), _) => {
                let bytes = self.plain(member);
                bytes.map(Cow::Borrowed).ok_or_else(|| cut(self.form))
            }
            (Place::Number(number), Some(zip)) => {
                zip::read(zip, *number, member.size).map(Cow::Owned)
            }
            _ => Err(Error::new(ErrorKind::State, "no member that was listed")),
        }
    }

    /// Reads the archive from front to back and shows every entry to `each`, which may read its bytes
    /// and may end it.
    ///
    /// # Errors
    /// When the archive is damaged, or made to do harm; what came before was shown.
    pub(crate) fn walk(
        &self,
        each: &mut dyn FnMut(Entry, &mut dyn Read) -> ControlFlow<()>,
    ) -> Result<()> {
        tar::walk(self.bytes.as_ref(), self.form, self.bounds, each)
    }
}

/// All bytes that `from` gives, which must be `size`.
///
/// # Errors
/// When there are others.
pub(crate) fn read_member(from: &mut dyn Read, size: u64) -> Result<Vec<u8>> {
    // No claim reserves more than that.
    let reserved = usize::try_from(size.min(16 << 20)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(reserved);
    from.take(size.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| damaged(&error))?;
    if bytes.len() as u64 != size {
        let message = format!("{} bytes instead of {size} in the archive", bytes.len());
        return Err(Error::new(ErrorKind::Truncated, message));
    }
    Ok(bytes)
}

fn cut(form: Form) -> Error {
    let what = if form == Form::Zip { "zip" } else { "tar" };
    Error::new(
        ErrorKind::Truncated,
        format!("{what}: the archive ends too early"),
    )
}

/// What went wrong in an archive.
fn damaged(error: &std::io::Error) -> Error {
    let message = format!("archive: {}", one_line(&error.to_string()));
    let kind = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
        _ => ErrorKind::Invalid,
    };
    Error::new(kind, message)
}

fn one_line(text: &str) -> String {
    // Messages of others quote what is damaged: that part says nothing.
    let is_readable =
        |letter: &char| !letter.is_control() && *letter != char::REPLACEMENT_CHARACTER;
    let line: String = text.chars().take_while(is_readable).take(200).collect();
    let mut line = line.trim_end_matches([' ', ':']).to_owned();
    if let Some(first) = line.get_mut(0..1) {
        first.make_ascii_lowercase();
    }
    line
}

#[cfg(test)]
mod tests;
