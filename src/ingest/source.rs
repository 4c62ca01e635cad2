//! An opened input: the bytes of a file as stored.

use std::io::Read;
use std::path::Path;

use super::IngestOptions;
use super::mapped::Mapped;
use crate::error::{Error, Result};

/// An opened input. Keep it to hash or copy the bytes that were read; see
/// [`Trace::from_bytes`](crate::Trace::from_bytes).
#[derive(Debug)]
pub struct Source(Bytes);

#[derive(Debug)]
enum Bytes {
    Mapped(Mapped),
    Owned(Vec<u8>),
}

impl Source {
    /// Opens the file at `path`; `-` is standard input, which is read to its end.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when reading fails.
    pub fn open(path: &Path, options: &IngestOptions) -> Result<Self> {
        Self::read(path, options)
            .map(Self)
            .map_err(|error| Error::io(path, error))
    }

    fn read(path: &Path, options: &IngestOptions) -> std::io::Result<Bytes> {
        let mut bytes = Vec::new();
        if path.as_os_str() == "-" {
            std::io::stdin().lock().read_to_end(&mut bytes)?;
            return Ok(Bytes::Owned(bytes));
        }
        let mut file = std::fs::File::open(path)?;
        if options.mmap
            && let Some(mapped) = Mapped::new(&file)?
        {
            return Ok(Bytes::Mapped(mapped));
        }
        file.read_to_end(&mut bytes)?;
        Ok(Bytes::Owned(bytes))
    }

    /// The bytes as stored.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(mapped) => mapped.bytes(),
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// True for content that starts like a gzip member, whatever the name of its file.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}
