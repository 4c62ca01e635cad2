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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn mapped_and_read_files_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"{}", &[7; 10_000]] {
            let path = folder.path().join("file");
            std::fs::write(&path, content).unwrap();
            for mmap in [true, false] {
                let options = IngestOptions {
                    mmap,
                    ..IngestOptions::default()
                };
                let source = Source::open(&path, &options).expect("a file");
                assert_eq!(source.bytes(), content);
            }
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Source::open(Path::new("/no/such/file"), &IngestOptions::default())
            .expect_err("no file");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().starts_with("/no/such/file: "), "{error}");
    }

    #[test]
    fn folders_are_refused_and_devices_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let error = Source::open(folder.path(), &IngestOptions::default()).expect_err("a folder");
        assert_eq!(error.kind(), ErrorKind::Io);
        let device = Path::new("/dev/null");
        if device.exists() {
            let source = Source::open(device, &IngestOptions::default()).expect("a device");
            assert_eq!(source.bytes(), b"");
        }
    }
}
