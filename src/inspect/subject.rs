//! What a trace can be broken down into.

use std::any::Any;
use std::collections::BTreeMap;

use super::frame::Frame;
use super::view::View;
use crate::attribute::{Attribution, RankResult};
use crate::error::Result;

/// One way to break traces down.
pub(crate) trait Subject: Sync {
    /// What is taken from one file.
    type Seen: Send;

    /// What one file says.
    ///
    /// # Errors
    /// When the content of the file is not what it was when it was read.
    fn look(&self, view: &View<'_>) -> Result<Self::Seen>;

    /// The tables over all files.
    fn tables(&self, files: Vec<Inspected<'_, Self::Seen>>) -> Vec<Frame>;
}

/// What some subject takes from one file.
pub(crate) type Seen = Box<dyn Any + Send>;

/// A [`Subject`] of any kind, so that several can look at a file while it is there.
pub(crate) trait AnySubject: Sync {
    /// As [`Subject::look`].
    fn look(&self, view: &View<'_>) -> Result<Seen>;

    /// As [`Subject::tables`]; `files` must be what this subject saw.
    fn tables(&self, files: Vec<Inspected<'_, Seen>>) -> Vec<Frame>;
}

impl<S: Subject<Seen: 'static>> AnySubject for S {
    fn look(&self, view: &View<'_>) -> Result<Seen> {
        Ok(Box::new(Subject::look(self, view)?))
    }

    fn tables(&self, files: Vec<Inspected<'_, Seen>>) -> Vec<Frame> {
        let own = files.into_iter().map(|file| Inspected {
            seen: *file
                .seen
                .downcast()
                .expect("a subject gets back what it saw"),
            run: file.run,
            run_number: file.run_number,
            rank: file.rank,
            window: file.window,
        });
        Subject::tables(self, own.collect())
    }
}

/// One file, with what was seen in it. Files come in order of run, rank and window.
pub(crate) struct Inspected<'a, T> {
    /// Its run's name.
    pub(crate) run: &'a str,
    /// Number of its run.
    pub(crate) run_number: usize,
    /// Its attribution.
    pub(crate) rank: &'a RankResult,
    /// Which profiler window of its rank it is, when its rank has several in the run.
    pub(crate) window: Option<usize>,
    pub(crate) seen: T,
}

impl<'a, T> Inspected<'a, T> {
    /// One entry a file of `attribution`.
    pub(crate) fn of(attribution: &'a Attribution, seen: Vec<T>) -> Vec<Self> {
        let ranks = &attribution.ranks;
        let mut windows: BTreeMap<(usize, Option<i64>), usize> = BTreeMap::new();
        for rank in ranks {
            *windows.entry((rank.run, rank.rank)).or_default() += 1;
        }
        let with = |rank: &'a RankResult, seen| {
            let several = windows[&(rank.run, rank.rank)] > 1;
            Self {
                run: &attribution.runs[rank.run].name,
                run_number: rank.run,
                rank,
                window: several.then_some(rank.window),
                seen,
            }
        };
        ranks
            .iter()
            .zip(seen)
            .map(|(rank, seen)| with(rank, seen))
            .collect()
    }
}

/// Puts the frames of all files together: those with one name become one, behind columns that say
/// which file a row is from.
pub(crate) fn stacked(files: Vec<Inspected<'_, Vec<Frame>>>) -> Vec<Frame> {
    let mut stacked: Vec<Frame> = Vec::new();
    for file in files {
        for frame in file.seen {
            let frame = frame.of_file(file.run, file.rank.rank, file.window);
            match stacked.iter_mut().find(|known| known.name == frame.name) {
                Some(known) => known.append(frame),
                None => stacked.push(frame),
            }
        }
    }
    stacked
}
