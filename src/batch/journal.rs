//! What is done, on disk: written once, behind what was there, so that it can be cut off at any byte.
//!
//! ```text
//! records    │ record │ record │ record │ …          compressed, never changed
//! journal    line, line, line, …                     each with a checksum; the last one may be torn
//! ```
//! An input counts as done with its line in the journal, which names the bytes of its record and their
//! checksum. Both are written through to the disk a few times a second and at the end (a `clean` line). After a
//! loss of power, lines may stand for records or tables that are not there: so when the journal does not end clean,
//! every record is checked when it is opened, and tables that were written since count as not written. A line
//! whose checksum is wrong says nothing, whichever it is; those behind it count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::input::Found;
use super::record::{Brief, Failure, Record};
use crate::error::{Error, ErrorKind, Result};

/// So often what was written is written through to the disk.
const SYNC: Duration = Duration::from_millis(250);

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line {
    /// A record was made of content.
    Content(Content),
    /// An input has content that a record was made of, or failed.
    Input(Input),
    /// A compressed archive was read to its end.
    Archive(Archive),
    /// The tables of a run were written.
    Written {
        run: String,
        /// Of what they were made; empty when they are being written.
        fingerprint: String,
        /// How long their files are together.
        #[serde(default)]
        bytes: u64,
    },
    /// The page was written.
    Page {
        /// Of what it was made.
        fingerprint: String,
    },
    /// An input is to be forgotten.
    Forgotten { id: String },
    /// The record of content is damaged.
    Lost { options: String, sha256: String },
    /// Everything before is on disk.
    Clean,
}

/// Where the record of content is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) sha256: String,
    /// Under which options.
    pub(super) options: String,
    pub(super) outcome: Outcome,
}

/// What became of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// There is a record.
    Done {
        offset: u64,
        len: u64,
        crc: u32,
        brief: Brief,
    },
    /// It could not be read.
    Failed(Failure),
}

/// An input and its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Input {
    pub(super) id: String,
    /// Where it is below the folder that was given, for the names in it.
    pub(super) below: String,
    /// What its run is called when its place has no name for it.
    pub(super) root: String,
    /// It was given by name, so that it should be a trace.
    pub(super) named: bool,
    pub(super) size: u64,
    pub(super) modified_ns: i64,
    /// `None` when the content could not even be read.
    pub(super) sha256: Option<String>,
    /// Why not.
    pub(super) failure: Option<Failure>,
}

impl Input {
    /// A file before anything of it is read.
    pub(super) fn of(found: &Found) -> Self {
        Self {
            id: found.id(),
            below: found.below.clone(),
            root: found.root.clone(),
            named: found.named,
            size: found.size,
            modified_ns: found.modified_ns,
            sha256: None,
            failure: None,
        }
    }
}

/// A compressed archive that was read to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Archive {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) modified_ns: i64,
    /// Its members, those of other shards included.
    pub(super) members: Vec<String>,
}

/// What a journal says.
#[derive(Debug, Default)]
pub(super) struct State {
    /// By options and SHA-256.
    pub(super) contents: BTreeMap<(String, String), Outcome>,
    pub(super) inputs: BTreeMap<String, Input>,
    pub(super) archives: BTreeMap<String, Archive>,
    /// By run: what its tables were made of, and how long their files are together.
    pub(super) written: BTreeMap<String, (String, u64)>,
    /// What the page was made of.
    pub(super) page: String,
    /// Runs whose tables were written since everything was on disk.
    unsure: BTreeSet<String>,
}

impl State {
    fn apply(&mut self, line: Line) {
        match line {
            Line::Content(content) => {
                self.contents
                    .insert((content.options, content.sha256), content.outcome);
            }
            Line::Input(input) => {
                self.inputs.insert(input.id.clone(), input);
            }
            Line::Archive(archive) => {
                self.archives.insert(archive.path.clone(), archive);
            }
            Line::Written {
                run,
                fingerprint,
                bytes,
            } => {
                self.unsure.insert(run.clone());
                if fingerprint.is_empty() {
                    self.written.remove(&run);
                } else {
                    self.written.insert(run, (fingerprint, bytes));
                }
            }
            Line::Page { fingerprint } => self.page = fingerprint,
            Line::Forgotten { id } => {
                self.inputs.remove(&id);
            }
            Line::Lost { options, sha256 } => {
                self.contents.remove(&(options, sha256));
            }
            Line::Clean => self.unsure.clear(),
        }
    }

    /// Forgets tables that may not be there as they were written: those since everything was on disk, or, when
    /// lines are lost, `all`.
    fn doubt(&mut self, all: bool) {
        if all {
            self.written.clear();
        }
        for run in std::mem::take(&mut self.unsure) {
            self.written.remove(&run);
        }
        self.page.clear();
    }

    /// Everything as lines.
    fn lines(&self) -> Vec<Line> {
        let contents = self.contents.iter().map(|((options, sha256), outcome)| {
            Line::Content(Content {
                sha256: sha256.clone(),
                options: options.clone(),
                outcome: outcome.clone(),
            })
        });
        let inputs = self.inputs.values().cloned().map(Line::Input);
        let archives = self.archives.values().cloned().map(Line::Archive);
        contents.chain(inputs).chain(archives).collect()
    }
}

/// The journal of a dataset, open for writing.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    lines: File,
    records: File,
    /// Length of the records.
    len: u64,
    synced: Instant,
    dirty: bool,
    pub(super) state: State,
}

impl Journal {
    /// Opens the journal in `folder`, which is made when it is not there. What was torn at its end is cut
    /// off; one with damage elsewhere is written anew.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        let file = |name: &str| {
            let path = folder.join(name);
            OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(&path)
                .map_err(|error| Error::io(path, error))
        };
        let (mut lines, records) = (file("journal")?, file("records")?);
        let failed = |error| Error::io(folder.join("journal"), error);
        let mut bytes = Vec::new();
        lines.read_to_end(&mut bytes).map_err(failed)?;
        let seen = read(&bytes);
        if seen.whole < bytes.len() {
            lines.set_len(seen.whole as u64).map_err(failed)?;
        }
        let len = records.metadata().map_err(failed)?.len();
        let mut journal = Self {
            folder: folder.to_owned(),
            lines,
            records,
            len,
            synced: Instant::now(),
            dirty: !seen.clean,
            state: seen.state,
        };
        if !seen.clean {
            journal.state.doubt(seen.damaged);
        }
        journal.drop_lost(!seen.clean);
        if seen.damaged {
            journal.renew()?;
        }
        Ok(journal)
    }

    /// Puts a journal that says the same in the place of the file.
    fn renew(&mut self) -> Result<()> {
        let path = self.folder.join("journal");
        let failed = |error| Error::io(&path, error);
        let temporary = self.folder.join("journal.tmp");
        let mut file = File::create(&temporary).map_err(failed)?;
        let text: String = self.state.lines().iter().map(spelled).collect();
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        fs::rename(&temporary, &path).map_err(failed)?;
        let file = OpenOptions::new().read(true).append(true).open(&path);
        self.lines = file.map_err(failed)?;
        self.dirty = true;
        Ok(())
    }

    /// What a journal says, without opening it for writing.
    pub(super) fn look(folder: &Path) -> Result<State> {
        let path = folder.join("journal");
        let bytes = fs::read(&path).map_err(|error| Error::io(path, error))?;
        Ok(read(&bytes).state)
    }

    /// Forgets records that are not there; when `all` must be checked, also those whose bytes are others.
    fn drop_lost(&mut self, all: bool) {
        let mut lost = Vec::new();
        for (key, outcome) in &self.state.contents {
            let Outcome::Done {
                offset, len, crc, ..
            } = outcome
            else {
                continue;
            };
            let inside = offset.checked_add(*len).is_some_and(|end| end <= self.len);
            if !inside || all && bytes_at(&self.records, *offset, *len, *crc).is_err() {
                lost.push(key.clone());
            }
        }
        for key in lost {
            self.state.contents.remove(&key);
        }
    }

    /// Notes that something is done.
    pub(super) fn note(&mut self, line: Line) -> Result<()> {
        let path = self.folder.join("journal");
        let written = self.lines.write_all(spelled(&line).as_bytes());
        written.map_err(|error| Error::io(path, error))?;
        self.dirty = true;
        self.state.apply(line);
        if self.synced.elapsed() >= SYNC {
            self.sync()?;
        }
        Ok(())
    }

    /// Keeps `packed`, a record as [`pack`] makes it, and gives its place.
    pub(super) fn keep(&mut self, packed: &[u8], brief: Brief) -> Result<Outcome> {
        let path = self.folder.join("records");
        // The end, whatever was torn there.
        let offset = self.records.seek(SeekFrom::End(0));
        let offset = offset.map_err(|error| Error::io(&path, error))?;
        let written = self.records.write_all(packed);
        written.map_err(|error| Error::io(path, error))?;
        self.len = offset + packed.len() as u64;
        Ok(Outcome::Done {
            offset,
            len: packed.len() as u64,
            crc: crc(packed),
            brief,
        })
    }

    /// Writes everything through to the disk: the records before the lines that name them.
    pub(super) fn sync(&mut self) -> Result<()> {
        let failed = |error| Error::io(&self.folder, error);
        self.records.sync_data().map_err(failed)?;
        self.lines.sync_data().map_err(failed)?;
        self.synced = Instant::now();
        Ok(())
    }

    /// Notes that nothing is open.
    pub(super) fn close(&mut self) -> Result<()> {
        if !self.dirty {
            return Ok(());
        }
        self.sync()?;
        self.note(Line::Clean)?;
        self.sync()?;
        self.dirty = false;
        Ok(())
    }

    /// True when the record of content is as it was kept.
    pub(super) fn is_sound(&self, options: &str, sha256: &str) -> bool {
        let key = (options.to_owned(), sha256.to_owned());
        match self.state.contents.get(&key) {
            Some(Outcome::Done {
                offset, len, crc, ..
            }) => bytes_at(&self.records, *offset, *len, *crc).is_ok(),
            _ => false,
        }
    }

    /// The record of content.
    pub(super) fn record(&self, options: &str, sha256: &str) -> Option<Record> {
        let key = (options.to_owned(), sha256.to_owned());
        let Outcome::Done {
            offset, len, crc, ..
        } = self.state.contents.get(&key)?
        else {
            return None;
        };
        unpack(&bytes_at(&self.records, *offset, *len, *crc).ok()?)
    }
}

/// The bytes of a record of another journal.
pub(super) fn kept_bytes(folder: &Path, outcome: &Outcome) -> Result<Vec<u8>> {
    let Outcome::Done {
        offset, len, crc, ..
    } = outcome
    else {
        return Ok(Vec::new());
    };
    let path = folder.join("records");
    let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
    bytes_at(&file, *offset, *len, *crc).map_err(|error| error.in_file(&path))
}

fn bytes_at(file: &File, offset: u64, len: u64, sum: u32) -> Result<Vec<u8>> {
    let lost = || Error::new(ErrorKind::Truncated, "a record is damaged");
    let len = usize::try_from(len).map_err(|_| lost())?;
    let mut bytes = vec![0; len];
    read_at(file, &mut bytes, offset).map_err(|_| lost())?;
    if crc(&bytes) == sum {
        Ok(bytes)
    } else {
        Err(lost())
    }
}

/// Reads at a place, whoever else reads the file.
#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Reads at a place, whoever else reads the file.
#[cfg(not(unix))]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut file = file;
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

/// What the lines of a journal say.
struct Seen {
    state: State,
    /// Where the last whole line ends.
    whole: usize,
    /// Everything is there, and the last line is `clean`.
    clean: bool,
    /// A whole line has a wrong checksum.
    damaged: bool,
}

fn read(bytes: &[u8]) -> Seen {
    let whole = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
    let mut state = State::default();
    let (mut clean, mut damaged) = (true, false);
    for line in bytes[..whole].split(|byte| *byte == b'\n') {
        match parsed(line) {
            _ if line.is_empty() => {}
            Parsed::Line(line) => {
                clean = line == Line::Clean;
                state.apply(line);
            }
            Parsed::Unknown => clean = false,
            Parsed::Damaged => damaged = true,
        }
    }
    let clean = clean && !damaged && whole == bytes.len();
    Seen {
        state,
        whole,
        clean,
        damaged,
    }
}

fn spelled(line: &Line) -> String {
    let json = serde_json::to_string(line).unwrap_or_default();
    format!("{:08x} {json}\n", crc(json.as_bytes()))
}

/// What one line is.
enum Parsed {
    Line(Line),
    /// Whole, but of another tracekit.
    Unknown,
    Damaged,
}

fn parsed(line: &[u8]) -> Parsed {
    let sum = line.get(..8).and_then(|sum| std::str::from_utf8(sum).ok());
    let sum = sum.and_then(|sum| u32::from_str_radix(sum, 16).ok());
    match (sum, line.get(9..)) {
        (Some(sum), Some(json)) if sum == crc(json) => {
            serde_json::from_slice(json).map_or(Parsed::Unknown, Parsed::Line)
        }
        _ => Parsed::Damaged,
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A record as it is kept.
pub(super) fn pack(record: &Record) -> Result<Vec<u8>> {
    let failed = |text: String| Error::new(ErrorKind::Io, text);
    let json = serde_json::to_vec(record).map_err(|error| failed(error.to_string()))?;
    zstd::bulk::compress(&json, 1).map_err(|error| failed(error.to_string()))
}

fn unpack(packed: &[u8]) -> Option<Record> {
    serde_json::from_slice(&zstd::decode_all(packed).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(sha256: &str, outcome: Outcome) -> Line {
        Line::Content(Content {
            sha256: sha256.to_owned(),
            options: "o".to_owned(),
            outcome,
        })
    }

    fn record(name: &str) -> Record {
        Record {
            facts: super::super::record::Facts {
                verdict: name.to_owned(),
                ..Default::default()
            },
            tables: BTreeMap::new(),
        }
    }

    fn filled(folder: &Path) {
        let mut journal = Journal::open(folder).unwrap();
        for name in ["a", "b", "c"] {
            let packed = pack(&record(name)).unwrap();
            let outcome = journal.keep(&packed, Brief::default()).unwrap();
            journal.note(content(name, outcome)).unwrap();
        }
        journal.close().unwrap();
    }

    #[test]
    fn a_journal_says_what_was_noted() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let journal = Journal::open(folder.path()).unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(journal.record("o", name), Some(record(name)));
        }
        assert_eq!(journal.record("other", "a"), None);
    }

    #[test]
    fn cut_off_anywhere_it_says_what_was_whole() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let path = folder.path().join("journal");
        let whole = fs::read(&path).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            let mut journal = Journal::open(folder.path()).unwrap();
            let count = journal.state.contents.len();
            let lines = memchr::memchr_iter(b'\n', &whole[..len]).count();
            assert_eq!(count, lines.min(3));
            seen.insert(count);
            // What comes next is read again.
            journal
                .note(content("next", Outcome::Failed(Failure::panic("x"))))
                .unwrap();
            drop(journal);
            let again = Journal::open(folder.path()).unwrap();
            assert_eq!(again.state.contents.len(), count + 1);
        }
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn a_line_that_is_damaged_says_nothing_and_those_behind_it_count() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let path = folder.path().join("journal");
        let mut journal = Journal::open(folder.path()).unwrap();
        journal
            .note(Line::Written {
                run: "r".to_owned(),
                fingerprint: "f".to_owned(),
                bytes: 7,
            })
            .unwrap();
        journal.close().unwrap();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[40] ^= 1;
        fs::write(&path, &flipped).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.state.contents.len(), 2);
        // What was lost may have been about it.
        assert!(journal.state.written.is_empty());
        drop(journal);
        // Written anew, there is no damage any more.
        assert!(!read(&fs::read(&path).unwrap()).damaged);
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.record("o", "c"), Some(record("c")));
        drop(journal);
        // A kind of line that only a later tracekit knows is passed, not cut off.
        let json = r#"{"kind":"later","x":1}"#;
        let later = format!("{:08x} {json}\n", crc(json.as_bytes()));
        let mut lines = later.clone().into_bytes();
        lines.extend_from_slice(&whole);
        fs::write(&path, &lines).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.state.contents.len(), 3);
        assert_eq!(journal.state.written.len(), 1);
        assert!(fs::read(&path).unwrap().starts_with(later.as_bytes()));
    }

    #[test]
    fn tables_count_as_written_once_they_are_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let written = |journal: &mut Journal, run: &str| {
            let line = Line::Written {
                run: run.to_owned(),
                fingerprint: "f".to_owned(),
                bytes: 7,
            };
            journal.note(line).unwrap();
        };
        let mut journal = Journal::open(folder.path()).unwrap();
        written(&mut journal, "first");
        journal.close().unwrap();
        written(&mut journal, "second");
        drop(journal);
        let journal = Journal::open(folder.path()).unwrap();
        let runs: Vec<&String> = journal.state.written.keys().collect();
        assert_eq!(runs, ["first"]);
    }

    #[test]
    fn records_that_were_lost_are_not_there() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let path = folder.path().join("records");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.state.contents.len(), 2);
        drop(journal);
        // Zeros where a record was: seen at once when the journal is not clean, else when it is read.
        let mut zeros = bytes.clone();
        zeros[..8].fill(0);
        fs::write(&path, &zeros).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.record("o", "a"), None);
        drop(journal);
        let lines = folder.path().join("journal");
        let text = fs::read(&lines).unwrap();
        fs::write(&lines, &text[..text.len() - 2]).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.state.contents.len(), 2);
    }
}
