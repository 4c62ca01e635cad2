//! The one error type of the library: what went wrong, in which file, at which byte.

use std::fmt;
use std::path::{Path, PathBuf};

/// Result of a library call.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure that stops the work on one input.
///
/// Displays as one line, `path: reason at byte N`, fit to follow `tracekit: `.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<std::io::Error>,
}

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading or writing failed.
    Io,
    /// The content is no Chrome/Kineto trace (wrong shape, other kind of file).
    NotATrace,
    /// The content looks like a trace but is not valid JSON.
    Json,
    /// The content ends too early.
    Truncated,
    /// The gzip stream is damaged.
    Gzip,
    /// The zstd stream is damaged.
    Zstd,
    /// The content takes more than it may.
    TooLarge,
    /// A query cannot be understood, or names what is not there.
    Query,
    /// Options contradict each other or the input (for example an expected run is missing).
    Usage,
    /// A record breaks a rule: a wrong value, identity, schema or hash.
    Invalid,
    /// A record lacks a field that has no default.
    MissingKey,
    /// An artefact or folder that a record names is not there.
    NotFound,
    /// A record is there already and is not overwritten.
    Exists,
    /// What must have been done before was not, or what is there contradicts it.
    State,
}

impl Error {
    /// A failure of `kind` with a lower-case, one-line `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            offset: None,
            source: None,
        }))
    }

    /// A failed read or write of `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let message = source.to_string().to_lowercase();
        Self(Box::new(Inner {
            kind: ErrorKind::Io,
            message,
            path: Some(path.into()),
            offset: None,
            source: Some(source),
        }))
    }

    /// The same failure, located at byte `offset` of the (decompressed) content.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The same failure in the file `path`; keeps a path that is already there.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// True when the content is a damaged trace, as far as one can tell.
    pub fn is_damage(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Json | ErrorKind::Truncated | ErrorKind::Gzip | ErrorKind::Zstd
        )
    }

    /// The file the failure is about.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Byte offset in the (decompressed) content.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The reason and the byte offset, without the path.
    pub fn reason(&self) -> String {
        match self.0.offset {
            Some(offset) => format!("{} at byte {offset}", self.0.message),
            None => self.0.message.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(&self.reason())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
