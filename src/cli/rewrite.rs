//! What the subcommands share that read one trace and write another.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::write::GzEncoder;

use super::args::When;
use super::output::{self, Target, say};
use super::progress::Progress;
use super::temporary::Temporary;
use crate::attribute::ProgressEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::{IngestOptions, Source};
use crate::rewrite;

/// Exit codes, for the help of each subcommand.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  2  wrong usage, or an input that cannot be read; nothing is written";

/// What to read and what to write.
#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// Trace file, or - for standard input
    #[arg(value_name = "IN")]
    pub(super) input: PathBuf,

    /// Write to OUT, which is replaced only by a whole result; compressed when it ends in .gz or
    /// .zst; - is standard output
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    output: PathBuf,

    /// No progress, no messages on standard error
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Progress bar, only ever on a terminal; auto hides it for small inputs
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    progress: When,

    /// Read the file instead of mapping it into memory
    ///
    /// For a file that another program may cut short meanwhile: what is gone of a mapped file ends this
    /// program without a word (SIGBUS). It takes as much memory as the file has bytes.
    #[arg(long, help_heading = "Input")]
    no_mmap: bool,
}

/// Refuses a folder where one trace is read.
pub(super) fn no_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        let message = "is a folder: give a trace file that is in it";
        return Err(Error::new(ErrorKind::Usage, message).in_file(path));
    }
    Ok(())
}

impl FileArgs {
    /// Reads the input, and writes what `work` makes of it, whole or not at all.
    pub(super) fn rewrite<T>(
        &self,
        work: impl FnOnce(&[u8], &mut dyn Write, rewrite::Progress<'_>) -> Result<T>,
    ) -> Result<T> {
        let target = Target::new(Some(&self.output))?;
        target.check_inputs(std::slice::from_ref(&self.input))?;
        let options = IngestOptions {
            mmap: !self.no_mmap,
            ..IngestOptions::default()
        };
        no_folder(&self.input)?;
        let source = Source::open(&self.input, &options)?;
        let bar = Progress::new(self.progress, self.quiet);
        let told = Cell::new(None);
        let progress = |done: u64, total: u64| {
            let before = told.get().unwrap_or_else(|| {
                bar.observe(ProgressEvent::Total {
                    files: 1,
                    bytes: total,
                });
                0
            });
            let done = done.max(before);
            bar.observe(ProgressEvent::FileDone {
                bytes: done - before,
            });
            told.set(Some(done));
        };
        self.fill(&target, |out| {
            work(source.bytes(), out, &progress).map_err(|error| error.in_file(&self.input))
        })
    }

    /// One line about the input on standard error, unless that is to be quiet.
    pub(super) fn say(&self, message: &str) {
        if !self.quiet {
            say(&format!("{}: {message}", self.input.display()));
        }
    }

    /// One line about everything on standard error, unless that is to be quiet.
    pub(super) fn tell(&self, message: &str) {
        if !self.quiet {
            say(message);
        }
    }

    /// True when `path` is the input or the output.
    pub(super) fn is_used(&self, path: &Path) -> bool {
        path == self.output
            || output::is_same_file(path, &self.input)
            || output::is_same_file(path, &self.output)
    }

    fn fill<T>(
        &self,
        target: &Target,
        work: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        let failed = |error| Error::io(&self.output, error);
        match target {
            Target::Stdout => self.pipe(io::stdout().lock(), work),
            Target::Stream(path) => {
                let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
                self.pipe(file, work)
            }
            Target::File { path, .. } => {
                let mut temporary = Temporary::new(path).map_err(failed)?;
                let (done, _) = self.compress(temporary.file(), work)?;
                temporary.keep_permissions().map_err(failed)?;
                temporary.put().map_err(failed)?;
                Ok(done)
            }
        }
    }

    /// Fills a pipe or device. A reader that went away ends the work without a failure, as long as
    /// there is a result to tell of.
    fn pipe<T>(
        &self,
        out: impl Write,
        work: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        let mut gone = Gone { out, is: false };
        let (done, _) = self.compress(&mut gone, work)?;
        Ok(done)
    }

    fn compress<W: Write, T>(
        &self,
        out: W,
        work: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<(T, W)> {
        const BUFFER: usize = 256 << 10;
        let failed = |error| Error::io(&self.output, error);
        let ends = |end: &str| {
            let name = self.output.as_os_str().as_encoded_bytes();
            name.len() > end.len()
                && name[name.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
        };
        let buffer = BufWriter::with_capacity(BUFFER, out);
        let (done, mut buffer) = if ends(".gz") {
            let mut encoder = GzEncoder::new(buffer, flate2::Compression::default());
            let done = work(&mut Unflushed(&mut encoder)).map_err(|error| self.named(error))?;
            (done, encoder.finish().map_err(failed)?)
        } else if ends(".zst") {
            let mut encoder = zstd::Encoder::new(buffer, 0).map_err(failed)?;
            let done = work(&mut Unflushed(&mut encoder)).map_err(|error| self.named(error))?;
            (done, encoder.finish().map_err(failed)?)
        } else {
            let mut buffer = buffer;
            let done = work(&mut buffer).map_err(|error| self.named(error))?;
            (done, buffer)
        };
        buffer.flush().map_err(failed)?;
        let out = buffer
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        Ok((done, out))
    }

    /// A failed write, told with the name of the output.
    fn named(&self, error: Error) -> Error {
        if error.path() == Some(Path::new(rewrite::OUTPUT)) {
            Error::new(error.kind(), error.reason()).in_file(&self.output)
        } else {
            error
        }
    }
}

/// An encoder that is asked to flush at the end of a document only: each flush costs it space.
struct Unflushed<'a, W>(&'a mut W);

impl<W: Write> Write for Unflushed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that may go away, after which everything written is dropped.
struct Gone<W> {
    out: W,
    is: bool,
}

impl<W: Write> Gone<W> {
    fn or<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for Gone<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.or(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.or(flushed, ())
    }
}

/// Puts `text` in the place of `path` in one step, readable for its owner only.
pub(super) fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut temporary = Temporary::new(path)?;
        private(temporary.file())?;
        temporary.file().write_all(text.as_bytes())?;
        temporary.put()
    };
    write().map_err(|error| Error::io(path, error))
}

#[cfg(unix)]
fn private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn private(_: &File) -> io::Result<()> {
    Ok(())
}
