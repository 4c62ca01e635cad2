//! The files of a ring: a spool that keeps what is newest.
//!
//! ```text
//! written   0 ── 1 ── 2 ── 3 ── 4 ── 5 …     each an eighth of the limit, and a spool by itself
//! there               2 ── 3 ── 4 ── 5       5 says what 0 and 1 held; only then they are removed
//! ```

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use tracekit_spool::Tag;

use crate::clock;
use crate::file::FrameFile;

/// A ring has about this many files: when one is removed, this part of what is kept goes at once.
const FILES: u64 = 8;

/// Room for what is written along with records: their names, clocks, notes.
const MARGIN: u64 = 1 << 12;

/// More bytes of notes than this are not told again in each file.
const MOST_KEPT: usize = 16 << 10;

/// What a part of a spool holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Files.
    pub(crate) files: u64,
    /// Bytes of them.
    pub(crate) bytes: u64,
    /// Activity records.
    pub(crate) records: u64,
    /// Those of kernels, copies and fills.
    pub(crate) device: u64,
    /// Ranges and marks.
    pub(crate) ranges: u64,
    /// When the last of it was written (`CLOCK_REALTIME`, ns).
    pub(crate) until: u64,
}

impl Counts {
    /// Adds what another part holds.
    pub(crate) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.records += other.records;
        self.device += other.device;
        self.ranges += other.ranges;
        self.until = self.until.max(other.until);
    }
}

/// The files of a spool that keeps the newest.
pub(crate) struct Ring {
    stem: PathBuf,
    most: u64,
    number: u32,
    /// What the current file holds.
    current: Counts,
    /// Files that are complete, the oldest first.
    complete: VecDeque<(PathBuf, Counts)>,
    /// Files to remove.
    leaving: Vec<PathBuf>,
    lost: Counts,
    /// Frames that every file begins with.
    kept: Vec<u8>,
}

impl Ring {
    pub(crate) fn new(stem: PathBuf, most: u64) -> Self {
        Self {
            stem,
            most,
            number: 0,
            current: Counts::default(),
            complete: VecDeque::new(),
            leaving: Vec::new(),
            lost: Counts::default(),
            kept: Vec::new(),
        }
    }

    /// The current file.
    pub(crate) fn path(&self) -> PathBuf {
        let ending = format!("{:06}.tkspool", self.number);
        self.stem.with_added_extension(ending)
    }

    /// Remembers a frame that every file has to have.
    pub(crate) fn keep(&mut self, tag: Tag, frame: &[&[u8]]) {
        let is_fact = matches!(tag, Tag::Header | Tag::Cupti | Tag::Sizes);
        if is_fact || (tag == Tag::Note && self.kept.len() < MOST_KEPT) {
            for part in frame {
                self.kept.extend_from_slice(part);
            }
        }
    }

    /// Counts what the current file holds.
    pub(crate) fn count(&mut self, counts: Counts) {
        self.current.add(counts);
    }

    /// What was removed, and what is leaving.
    pub(crate) fn lost(&self) -> Counts {
        self.lost
    }

    /// True when `bytes` have to go into another file than the current one of `length` bytes.
    pub(crate) fn is_full(&self, length: u64, bytes: u64) -> bool {
        let holds_records = self.current != Counts::default();
        holds_records && length + bytes + MARGIN > self.most / FILES
    }

    /// Ends `file` and begins the next one. The oldest files are leaving when there would be no room for
    /// the next else.
    pub(crate) fn turn(&mut self, file: &mut FrameFile) -> io::Result<FrameFile> {
        file.flush()?;
        let mut counts = std::mem::take(&mut self.current);
        counts.add(Counts {
            files: 1,
            bytes: file.bytes(),
            until: clock::realtime(),
            ..Counts::default()
        });
        self.complete.push_back((self.path(), counts));
        let mut there: u64 = self.complete.iter().map(|(_, counts)| counts.bytes).sum();
        while there + self.most / FILES > self.most {
            let Some((path, counts)) = self.complete.pop_front() else {
                break;
            };
            there -= counts.bytes;
            self.lost.add(counts);
            self.leaving.push(path);
        }
        self.number += 1;
        let mut next = FrameFile::create(&self.path())?;
        next.add(&[&self.kept])?;
        Ok(next)
    }

    /// Removes the files that are leaving.
    pub(crate) fn remove_oldest(&mut self) {
        for path in self.leaving.drain(..) {
            // One that stays is known to be older than what is kept, and not read.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_files_leave_when_there_is_no_room_for_another() {
        let folder = std::env::temp_dir().join(format!("tracekit-ring-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut ring = Ring::new(folder.join("7-1"), 800_000);
        let mut file = FrameFile::create(&ring.path()).unwrap();
        // An empty file is never full.
        assert!(!ring.is_full(0, 1 << 40));
        let frame = vec![0; 90_000];
        for _ in 0..20 {
            file.add(&[&frame]).unwrap();
            ring.count(Counts {
                records: 10,
                ..Counts::default()
            });
            assert!(!ring.is_full(file.bytes(), 1_000));
            assert!(ring.is_full(file.bytes(), 20_000));
            file = ring.turn(&mut file).unwrap();
            ring.remove_oldest();
        }
        let lost = ring.lost();
        // Seven complete files of some 90,000 bytes and the current one are there.
        assert_eq!((lost.files, lost.records), (13, 130));
        let mut names: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 8);
        assert_eq!(names[0], "7-1.000013.tkspool");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
