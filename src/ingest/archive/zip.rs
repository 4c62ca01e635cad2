//! Zip archives.

use std::io::{Cursor, Read as _};

use ::zip::ZipArchive;
use ::zip::result::ZipError;

use super::name::{Named, link, named};
use super::{Bounds, Entry, Member, Place, RATIO, SMALL, Shared, one_line};
use crate::error::{Error, ErrorKind, Result};

type Zip = ZipArchive<Cursor<Shared>>;

pub(super) fn open(bytes: Shared) -> Result<Zip> {
    ZipArchive::new(Cursor::new(bytes)).map_err(|error| failed(&error))
}

pub(super) fn list(zip: &Zip, stored: usize, bounds: Bounds) -> Result<Vec<Entry>> {
    let mut zip = zip.clone();
    if zip
        .has_overlapping_files()
        .map_err(|error| failed(&error))?
    {
        let message = "zip: members lie over one another: a bomb; refused";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut entries = Vec::with_capacity(zip.len());
    let mut total = 0_u64;
    for number in 0..zip.len() {
        // Also of members that cannot be unpacked, such as those with a password.
        let file = zip.by_index_raw(number).map_err(|error| failed(&error))?;
        if file.is_dir() {
            continue;
        }
        let name = match named(file.name_raw()) {
            Named::Clean(name) => name,
            Named::Not(entry) => {
                entries.push(entry);
                continue;
            }
        };
        let (size, packed) = (file.size(), file.compressed_size());
        let refuse = |reason: String| Entry::Refused {
            name: name.clone(),
            reason,
        };
        entries.push(if file.is_symlink() {
            link(name)
        } else if file.encrypted() {
            refuse("needs a password".to_owned())
        } else if size > bounds.member {
            refuse(too_large(size, bounds))
        } else if size > packed.saturating_mul(RATIO).max(SMALL) {
            refuse(format!(
                "unpacks to more than {RATIO} times its size: a bomb; refused"
            ))
        } else {
            total = total.saturating_add(size);
            Entry::Member(Member {
                name,
                size,
                stored: packed,
                place: Place::Number(number),
            })
        });
    }
    if total > Bounds::total(stored) {
        let message = format!("zip: unpacks to more than {RATIO} times its size: a bomb; refused");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(entries)
}

pub(super) fn read(zip: &Zip, number: usize, size: u64) -> Result<Vec<u8>> {
    let mut zip = zip.clone();
    let mut file = zip.by_index(number).map_err(|error| failed(&error))?;
    super::read_member(&mut file.by_ref(), size)
}

/// Why a member of `size` bytes is not read.
pub(super) fn too_large(size: u64, bounds: Bounds) -> String {
    format!(
        "{} MiB, more than the {} MiB there may be (--memory-limit)",
        size >> 20,
        bounds.member >> 20
    )
}

fn failed(error: &ZipError) -> Error {
    let message = format!("zip: {}", one_line(&error.to_string()));
    Error::new(ErrorKind::Invalid, message)
}
