//! The dataset: inputs that belong together as runs, and their tables.
//!
//! Every file is replaced as a whole, and every table of a run has one file, also when it has no row. The
//! tables of a run are made of the records of its inputs, in an order that follows from their names; the
//! journal notes of which, so that only what changed is written again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::journal::{Input, Journal, Line, Outcome};
use super::page::{self, RunPage};
use super::pattern::Pattern;
use super::recognise::{Recognised, recognise};
use super::record::{Brief, Facts, Failure, Record, Rows};
use super::rows;
use super::run::{BatchReport, RecognisedRun};
use super::schema::DATASET_TABLES;
use super::table::{self, TableFile};
use crate::attribute::hash;
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::is_trace_name;

/// An input with what became of it.
pub(super) struct Member {
    pub(super) input: Input,
    pub(super) recognised: Recognised,
    /// Why it failed, when it did.
    pub(super) failure: Option<Failure>,
}

/// A run: the inputs that belong together.
pub(super) struct Run {
    pub(super) members: Vec<Member>,
    pub(super) date: Option<String>,
    fingerprint: String,
}

/// Everything that is known.
pub(super) struct Dataset {
    pub(super) runs: BTreeMap<String, Run>,
    /// Inputs that are no traces, with the reason.
    pub(super) skipped: Vec<(String, String)>,
    key: String,
}

impl Dataset {
    /// What `journal` says under the options of `key`.
    pub(super) fn of(journal: &Journal, pattern: Option<&Pattern>, key: &str) -> Self {
        let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        let mut skipped = Vec::new();
        for input in journal.state.inputs.values() {
            let outcome = input.sha256.as_ref().map(|sha256| {
                let key = (key.to_owned(), sha256.clone());
                journal.state.contents.get(&key)
            });
            let (brief, failure) = match (outcome, &input.failure) {
                (Some(Some(Outcome::Done { brief, .. })), _) => (brief.clone(), None),
                (Some(Some(Outcome::Failed(failure))), _) | (None, Some(failure)) => {
                    (Brief::default(), Some(failure.clone()))
                }
                // Under these options nothing was done with it yet.
                _ => continue,
            };
            if let Some(failure) = &failure
                && !failure.is_trace
                && !input.named
                && !is_trace_name(Path::new(&input.below))
            {
                skipped.push((input.id.clone(), failure.error.clone()));
                continue;
            }
            let recognised = recognise(input, &brief, pattern);
            groups
                .entry(recognised.run.clone())
                .or_default()
                .push(Member {
                    input: input.clone(),
                    recognised,
                    failure,
                });
        }
        let runs = groups.into_iter().map(|(name, mut members)| {
            members.sort_by(|a, b| {
                let order = |member: &Member| {
                    let rank = member.recognised.rank;
                    (rank.is_none(), rank, member.recognised.start_ns)
                };
                order(a)
                    .cmp(&order(b))
                    .then_with(|| a.input.id.cmp(&b.input.id))
            });
            let dates = members.iter().filter_map(|it| it.recognised.date.clone());
            let date = dates.min();
            let fingerprint = fingerprint(key, &members);
            let run = Run {
                members,
                date,
                fingerprint,
            };
            (name, run)
        });
        Self {
            runs: runs.collect(),
            skipped,
            key: key.to_owned(),
        }
    }

    /// Of what everything is made.
    pub(super) fn fingerprint(&self) -> String {
        let runs = self.runs.iter();
        let runs: Vec<_> = runs.map(|(name, run)| (name, &run.fingerprint)).collect();
        hash(json!([runs, self.skipped]).to_string().as_bytes())[..32].to_owned()
    }

    /// All inputs, run by run.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Member)> {
        let runs = self.runs.iter();
        runs.flat_map(|(name, run)| run.members.iter().map(|member| (name.as_str(), member)))
    }

    /// How much there is of what.
    pub(super) fn report(&self) -> BatchReport {
        let mut report = BatchReport {
            runs: self.runs.len() as u64,
            skipped: self.skipped.len() as u64,
            ..BatchReport::default()
        };
        for (_, member) in self.members() {
            if member.failure.is_some() {
                report.failed += 1;
                continue;
            }
            report.done += 1;
            let count = |map: &mut BTreeMap<String, u64>, name: &str| {
                *map.entry(name.to_owned()).or_default() += 1;
            };
            count(&mut report.recognised_by, member.recognised.by);
            let by = member.recognised.rank_by.unwrap_or("nothing");
            count(&mut report.ranks_by, by);
        }
        let runs = self.runs.iter();
        report.recognised = runs.map(|(name, run)| recognised(name, run)).collect();
        report
    }
}

/// What was recognised of a run.
fn recognised(name: &str, run: &Run) -> RecognisedRun {
    let members = run.members.iter().map(|member| &member.recognised);
    let ranks: BTreeSet<i64> = members.clone().filter_map(|it| it.rank).collect();
    let first = members.clone().next();
    RecognisedRun {
        run: name.to_owned(),
        strategy: first.and_then(|it| it.strategy.clone()),
        repeat: first.and_then(|it| it.repeat),
        date: run.date.clone(),
        ranks: ranks.into_iter().collect(),
        inputs: run.members.len() as u64,
    }
}

/// Of what the tables of a run are made.
fn fingerprint(key: &str, members: &[Member]) -> String {
    let members: Vec<Value> = members
        .iter()
        .map(|member| {
            let Recognised {
                run,
                strategy,
                repeat,
                rank,
                by,
                rank_by,
                start_ns,
                date,
            } = &member.recognised;
            let failure = member.failure.as_ref();
            json!([
                member.input.id,
                member.input.sha256,
                member.input.size,
                failure.map(|failure| [&failure.kind, &failure.error]),
                [
                    json!(run),
                    json!(strategy),
                    json!(repeat),
                    json!(rank),
                    json!(by),
                    json!(rank_by),
                    json!(start_ns),
                    json!(date)
                ]
            ])
        })
        .collect();
    hash(json!([key, members]).to_string().as_bytes())[..32].to_owned()
}

/// So many runs are written at a time: most of it is waiting for the disk.
const WRITERS: usize = 8;

/// So many runs are written until it is noted that they are on disk.
const CHUNK: usize = 64;

/// How a dataset is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) folder: &'a Path,
    /// With a page for every run.
    pub(super) reports: bool,
}

impl Output<'_> {
    /// Runs that are not there as they are in `dataset`.
    fn changed<'d>(self, dataset: &'d Dataset, journal: &Journal) -> Vec<(&'d str, &'d Run)> {
        let runs = dataset.runs.iter().map(|(name, run)| (name.as_str(), run));
        let is_there = |(name, run): &(&str, &Run)| {
            let written = journal.state.written.get(*name);
            let date = run.date.as_deref();
            written.is_some_and(|(fingerprint, bytes)| {
                *fingerprint == run.fingerprint
                    && table::length(self.folder, name, date) == Some(*bytes)
                    && (!self.reports || page::place(self.folder, name).is_file())
            })
        };
        runs.filter(|run| !is_there(run)).collect()
    }

    /// The SHA-256 of contents that are to be written and whose records are damaged.
    pub(super) fn damaged(self, dataset: &Dataset, journal: &Journal) -> Vec<String> {
        let changed = self.changed(dataset, journal);
        let members = changed.iter().flat_map(|(_, run)| &run.members);
        let read = members.filter(|member| member.failure.is_none());
        let contents: BTreeSet<&String> = read
            .filter_map(|member| member.input.sha256.as_ref())
            .collect();
        let damaged = contents
            .into_par_iter()
            .filter(|sha256| !journal.is_sound(&dataset.key, sha256));
        damaged.cloned().collect()
    }

    /// Writes the tables of every run that is not as it was, and removes those of runs that are no more: how
    /// many were written.
    pub(super) fn write(self, dataset: &Dataset, journal: &mut Journal) -> Result<u64> {
        let changed = self.changed(dataset, journal);
        for (name, _) in &changed {
            journal.note(Line::Written {
                run: (*name).to_owned(),
                fingerprint: String::new(),
                bytes: 0,
            })?;
        }
        let runs = dataset.runs.iter();
        let wanted: Vec<(&str, Option<&str>)> = runs
            .map(|(name, run)| (name.as_str(), run.date.as_deref()))
            .collect();
        table::remove_others(self.folder, &wanted)?;
        page::remove_others(self.folder, &wanted)?;
        let writers = rayon::ThreadPoolBuilder::new().num_threads(WRITERS).build();
        let failed =
            |error| Error::new(ErrorKind::Io, format!("no threads to write with: {error}"));
        let writers = writers.map_err(failed)?;
        for some in changed.chunks(CHUNK) {
            let journal_then: &Journal = journal;
            let written: Vec<Result<u64>> = writers.install(|| {
                some.par_iter()
                    .map(|(name, run)| self.write_run(name, run, &dataset.key, journal_then))
                    .collect()
            });
            for (written, (name, run)) in written.into_iter().zip(some) {
                journal.note(Line::Written {
                    run: (*name).to_owned(),
                    bytes: written?,
                    fingerprint: run.fingerprint.clone(),
                })?;
            }
            // So that a batch that is killed again and again comes to its end.
            journal.close()?;
        }
        Ok(changed.len() as u64)
    }

    /// Writes the tables of one run: how long they are.
    fn write_run(self, name: &str, run: &Run, key: &str, journal: &Journal) -> Result<u64> {
        let date = run.date.as_deref();
        let mut files: BTreeMap<&str, TableFile> = DATASET_TABLES
            .iter()
            .map(|table| {
                let place = table::place(self.folder, table.name, name, date);
                (table.name, TableFile::new(table, place))
            })
            .collect();
        let mut add = |table: &str, rows: Rows| match files.get_mut(table) {
            Some(file) => file.add(rows),
            None => Ok(()),
        };
        let mut page = RunPage::new(name, date);
        let mut read: Vec<(&Member, Facts)> = Vec::new();
        let mut lost: Vec<(&Member, &Failure)> = Vec::new();
        for member in &run.members {
            if let Some(failure) = &member.failure {
                lost.push((member, failure));
                continue;
            }
            let sha256 = member.input.sha256.as_deref().unwrap_or_default();
            let Some(Record { facts, tables }) = journal.record(key, sha256) else {
                let error =
                    Error::new(ErrorKind::State, "a record is damaged: run the batch again");
                return Err(error.in_file(self.folder));
            };
            if self.reports {
                page.add(member, &facts, &tables);
            }
            for (table, own) in tables {
                let full = own.into_iter().map(|row| {
                    let mut full = vec![json!(member.input.id), json!(member.recognised.rank)];
                    full.extend(row);
                    full
                });
                add(&table, full.collect())?;
            }
            add("ranks", vec![rows::rank(member, &facts)])?;
            read.push((member, facts));
        }
        let mut of_run = Rows::new();
        if !read.is_empty() {
            of_run.push(rows::run(&read, lost.len()));
        }
        let failed = lost
            .iter()
            .map(|(member, failure)| rows::failed(member, failure));
        of_run.extend(failed);
        if self.reports {
            page.write(self.folder, &of_run)?;
        }
        add("runs", of_run)?;
        let lengths = files.into_values().map(TableFile::finish);
        lengths.sum()
    }
}
