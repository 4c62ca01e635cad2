//! A file of whole frames, whatever happens to the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use tracekit_spool::{HEAD, MAGIC, padding, u32_at};

/// From so many bytes on frames are handed to the system.
const MANY: usize = 1 << 20;

/// What is left for a note when the disk is full.
const ROOM: u64 = 4 << 10;

/// A file that frames are added to. A frame that cannot be written as a whole is taken away again: the
/// space that it leaves is enough for a note about that.
pub(crate) struct FrameFile {
    file: File,
    /// Whole frames that are not in the file yet.
    pending: Vec<u8>,
    /// Length of the whole frames that are.
    written: u64,
}

impl FrameFile {
    /// Starts the new file `path`.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(path)?;
        Ok(Self {
            file,
            pending: MAGIC.to_vec(),
            written: 0,
        })
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Adds a frame that consists of `parts`.
    pub(crate) fn add(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.pending.len() + length > MANY {
            self.flush()?;
        }
        if length > MANY {
            return self.write(parts);
        }
        for part in parts {
            self.pending.extend_from_slice(part);
        }
        Ok(())
    }

    /// Hands everything to the system: from then on it survives the process.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let result = self.write(&[&pending]);
        pending.clear();
        self.pending = pending;
        result
    }

    /// Writes whole frames; those that fit when not all do.
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            if let Err(error) = self.file.write_all(part) {
                let length = self.file.metadata().map_or(0, |file| file.len());
                let came = length.saturating_sub(self.written + ROOM);
                let came = usize::try_from(came).unwrap_or(0);
                self.written += whole_frames(parts[0], came, self.written == 0) as u64;
                // What cannot be cut off is found to be damaged when it is read.
                let _ = self.file.set_len(self.written);
                return Err(error);
            }
        }
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.written += length as u64;
        Ok(())
    }
}

/// How many of the first `most` bytes of `frames` are whole frames.
fn whole_frames(frames: &[u8], most: usize, with_magic: bool) -> usize {
    let mut whole = 0;
    let mut next = if with_magic { MAGIC.len() } else { 0 };
    while next <= most.min(frames.len()) {
        whole = next;
        let Some(length) = u32_at(frames, whole + 4).and_then(|it| usize::try_from(it).ok()) else {
            break;
        };
        next = whole + HEAD + length + padding(length).len();
    }
    whole
}

#[cfg(test)]
mod tests {
    use tracekit_spool::{Tag, head};

    use super::*;

    #[test]
    fn of_frames_that_are_cut_the_whole_ones_are_kept() {
        let mut frames = MAGIC.to_vec();
        let mut ends = vec![0, MAGIC.len()];
        for length in [5, 0, 16, 1] {
            let payload = vec![7; length];
            frames.extend(head(Tag::Note, &[&payload]).unwrap());
            frames.extend(&payload);
            frames.extend(padding(length));
            ends.push(frames.len());
        }
        for most in 0..frames.len() + 9 {
            let want = ends.iter().rev().find(|end| **end <= most).unwrap();
            assert_eq!(whole_frames(&frames, most, true), *want, "{most}");
        }
        let first = ends[2] - MAGIC.len();
        let without = &frames[MAGIC.len()..];
        assert_eq!(whole_frames(without, first - 1, false), 0);
        assert_eq!(whole_frames(without, first, false), first);
        // A frame that is longer than what is there is not whole.
        assert_eq!(whole_frames(&without[..first - 4], first, false), 0);
    }

    #[test]
    fn frames_stand_one_after_the_other_whatever_their_size() {
        let folder = std::env::temp_dir().join(format!("tracekit-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("spool");
        let mut file = FrameFile::create(&path).unwrap();
        let long = vec![b'x'; MANY + 1];
        file.add(&[b"one", b"two"]).unwrap();
        file.add(&[&long]).unwrap();
        file.add(&[b"three"]).unwrap();
        let want = [&MAGIC[..], b"onetwo", &long, b"three"].concat();
        assert_eq!(file.bytes(), want.len() as u64);
        file.flush().unwrap();
        assert!(std::fs::read(&path).unwrap() == want);
        assert!(FrameFile::create(&path).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
