//! Tar archives, plain or as one compressed stream.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read};
use std::ops::ControlFlow;

use ::tar::{Archive, EntryType};

use super::name::{Named, link, named};
use super::xz;
use super::{Bounds, Entry, Form, Member, Place, cut, damaged};
use crate::error::{Error, ErrorKind, Result};

/// What is in the plain archive `bytes`.
pub(super) fn list(bytes: &[u8], bounds: Bounds) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut archive = Archive::new(Cursor::new(bytes));
    let found = archive
        .entries_with_seek()
        .map_err(|error| damaged(&error))?;
    for entry in found {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                // What is whole before the damage is read all the same.
                entries.push(broken(&damaged(&error)));
                return Ok(entries);
            }
        };
        let Some(mut shown) = shown(&entry, bounds) else {
            continue;
        };
        if let Entry::Member(member) = &mut shown {
            let start = usize::try_from(entry.raw_file_position()).unwrap_or(usize::MAX);
            let size = usize::try_from(member.size).unwrap_or(usize::MAX);
            let end = start.saturating_add(size);
            member.place = Place::Bytes(start..end);
            if end > bytes.len() {
                shown = Entry::Refused {
                    name: member.name.clone(),
                    reason: cut(Form::Tar).reason(),
                };
            }
        }
        entries.push(shown);
    }
    Ok(entries)
}

/// Reads an archive from front to back.
pub(super) fn walk(
    bytes: &[u8],
    form: Form,
    bounds: Bounds,
    each: &mut dyn FnMut(Entry, &mut dyn Read) -> ControlFlow<()>,
) -> Result<()> {
    let place = Cell::new(0);
    let stored = Counted {
        bytes,
        read: &place,
    };
    let content: Box<dyn Read + '_> = match form {
        Form::TarGzip => Box::new(flate2::bufread::MultiGzDecoder::new(stored)),
        Form::TarZstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(stored);
            Box::new(decoder.map_err(|error| damaged(&error))?)
        }
        Form::TarXz => Box::new(xz::reader(stored)),
        _ => Box::new(stored),
    };
    let bounded = Bounded {
        content,
        left: Bounds::total(bytes.len()),
    };
    let mut archive = Archive::new(bounded);
    for entry in archive.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        let Some(mut shown) = shown(&entry, bounds) else {
            continue;
        };
        if let Entry::Member(member) = &mut shown {
            member.stored = place.take();
        }
        if each(shown, &mut entry).is_break() {
            return Ok(());
        }
    }
    // What is behind the end of the archive may be damaged, too.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(|error| damaged(&error))?;
    Ok(())
}

/// What an entry is; `None` for those that say something about others.
fn shown<R: Read>(entry: &::tar::Entry<'_, R>, bounds: Bounds) -> Option<Entry> {
    let kind = entry.header().entry_type();
    if matches!(
        kind,
        EntryType::XGlobalHeader
            | EntryType::XHeader
            | EntryType::GNULongName
            | EntryType::GNULongLink
            | EntryType::Directory
    ) {
        return None;
    }
    let name = match named(&entry.path_bytes()) {
        Named::Clean(name) => name,
        Named::Not(entry) => return Some(entry),
    };
    Some(match kind {
        EntryType::Link | EntryType::Symlink => link(name),
        EntryType::Regular | EntryType::Continuous => member(name, entry.size(), bounds),
        // The holes of sparse files take no space in the archive, however large they are.
        EntryType::GNUSparse => Entry::Refused {
            name,
            reason: "is a sparse file; refused".to_owned(),
        },
        _ => Entry::Passed {
            name,
            reason: "not a file",
        },
    })
}

fn member(name: String, size: u64, bounds: Bounds) -> Entry {
    if size > bounds.member {
        return Entry::Refused {
            name,
            reason: super::zip::too_large(size, bounds),
        };
    }
    Entry::Member(Member {
        name,
        size,
        stored: size,
        place: Place::Here,
    })
}

/// The place at which an archive is damaged.
fn broken(error: &Error) -> Entry {
    Entry::Refused {
        name: String::new(),
        reason: error.reason(),
    }
}

/// Bytes as stored, and how many of them were read.
struct Counted<'a> {
    bytes: &'a [u8],
    read: &'a Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

impl BufRead for Counted<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.bytes)
    }

    fn consume(&mut self, read: usize) {
        self.bytes.consume(read);
        self.read.set(self.read.get() + read as u64);
    }
}

/// Content that must not be endless.
struct Bounded<R> {
    content: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let message = format!(
                "unpacks to more than {} times its size: a bomb; refused",
                super::RATIO
            );
            io::Error::other(Error::new(ErrorKind::Invalid, message))
        })?;
        Ok(read)
    }
}
