//! xz, alone or around a tar archive.

use std::io::Read;

use lzma_rust2::XzReader;

use super::{Bounds, damaged};
use crate::error::{Error, ErrorKind, Result};

/// The dictionary may take so much at most, in KiB; `xz -9` takes 64 MiB.
const DICTIONARY: u64 = 1 << 20;

/// True for the start of an xz file.
pub(crate) fn is_xz(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0])
}

/// A reader of the content of `bytes`, which takes about `limit` bytes of memory at most.
pub(super) fn reader(bytes: &[u8], limit: u64) -> XzReader<&[u8]> {
    let limit = u32::try_from((limit >> 10).min(DICTIONARY)).unwrap_or(u32::MAX);
    XzReader::new_mem_limit(bytes, true, limit)
}

/// The content of the xz file `bytes`, when it is not longer than `limit`.
///
/// # Errors
/// When it is, or is damaged.
pub(crate) fn unpacked(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let most = limit.min(Bounds::total(bytes.len()));
    let mut content = Vec::new();
    let mut reader = reader(bytes, limit).take(most.saturating_add(1));
    reader
        .read_to_end(&mut content)
        .map_err(|error| damaged(&error))?;
    if content.len() as u64 > most {
        let message = format!("xz: unpacks to more than {most} bytes; refused");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(content)
}
