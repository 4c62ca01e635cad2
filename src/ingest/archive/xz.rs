//! xz, alone or around a tar archive.

use std::io::Read;

use lzma_rust2::XzReader;

use super::{Bounds, RATIO, damaged};
use crate::error::{Error, ErrorKind, Result};

/// The dictionary may take so much at most, in KiB; `xz -9` takes 64 MiB.
const DICTIONARY: u32 = 96 << 10;

/// True for the start of an xz file.
pub(crate) fn is_xz(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0])
}

/// A reader of the content of `bytes`.
pub(super) fn reader<R: Read>(bytes: R) -> XzReader<R> {
    XzReader::new_mem_limit(bytes, true, DICTIONARY)
}

/// The content of the xz file `bytes`, when it is not longer than `limit`.
///
/// # Errors
/// When it is, or is damaged.
pub(crate) fn unpacked(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let bomb = Bounds::total(bytes.len());
    let most = limit.min(bomb);
    let mut content = Vec::new();
    let mut reader = reader(bytes).take(most.saturating_add(1));
    reader
        .read_to_end(&mut content)
        .map_err(|error| damaged(&error))?;
    if content.len() as u64 > bomb {
        let message = format!("xz: unpacks to more than {RATIO} times its size: a bomb; refused");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if content.len() as u64 > most {
        let message = "xz: more content than there may be (--memory-limit)";
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(content)
}
