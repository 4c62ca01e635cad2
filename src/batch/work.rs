//! The work: one hands out inputs, the largest first, and as many as allowed analyse them.
//!
//! ```text
//! inputs ─ producer ──(memory)──→ worker ─ hash ─ known? ─ analyse ─→ journal
//!          walks archives     └─→ worker …
//! ```
//! The producer waits for memory before it hands out an input or reads a member of a compressed archive;
//! workers wait for nothing but the journal. So there is always somebody who goes on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::analyse::Analysis;
use super::input::{Found, Inputs};
use super::journal::{self, Content, Input, Journal, Line, Outcome};
use super::memory::{Budget, Given, need};
use super::record::Failure;
use super::run::{BatchEvent, BatchOptions};
use crate::attribute::hash;
use crate::error::{Error, Result};
use crate::ingest::archive::{
    Archive, Bounds, Entry, Member, is_compressed_name, is_xz, read_member,
};
use crate::ingest::{Source, claimed_content};

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Of all inputs that are there, also those of other shards.
    pub(super) ids: Vec<String>,
    pub(super) analysed: u64,
    pub(super) analysed_bytes: u64,
    pub(super) reused: u64,
    /// Members of archives that are no traces.
    pub(super) passed: u64,
    pub(super) interrupted: bool,
}

/// An input for a worker.
struct Job<'b> {
    input: Input,
    bytes: Bytes,
    _memory: Given<'b>,
}

/// Where the bytes of an input are.
enum Bytes {
    File(PathBuf),
    Member(Arc<Archive>, Member),
    Owned(Vec<u8>),
}

impl Bytes {
    fn with<T>(
        &self,
        analysis: &Analysis,
        with: impl FnOnce(&[u8]) -> T,
    ) -> std::result::Result<T, Failure> {
        match self {
            Self::File(path) => {
                let source = Source::open(path, &analysis.ingest);
                let source = source.map_err(|error| Failure::of(&error, true))?;
                Ok(with(source.bytes()))
            }
            Self::Member(archive, member) => {
                let bytes: Cow<'_, [u8]> = archive
                    .read(member)
                    .map_err(|error| Failure::of(&error, true))?;
                Ok(with(&bytes))
            }
            Self::Owned(bytes) => Ok(with(bytes)),
        }
    }
}

/// What all threads share.
struct Shared<'a> {
    analysis: &'a Analysis,
    key: &'a str,
    options: &'a BatchOptions<'a>,
    journal: Mutex<&'a mut Journal>,
    progress: &'a (dyn Fn(BatchEvent) + Sync),
    analysed: AtomicU64,
    analysed_bytes: AtomicU64,
    reused: AtomicU64,
    /// The dataset cannot be written.
    broken: Mutex<Option<Error>>,
}

/// Analyses what is new among `inputs`.
pub(super) fn work(
    inputs: &Inputs,
    analysis: &Analysis,
    key: &str,
    options: &BatchOptions<'_>,
    journal: &mut Journal,
    progress: &(dyn Fn(BatchEvent) + Sync),
) -> Result<Work> {
    progress(BatchEvent::Total {
        files: inputs.len(),
        bytes: inputs.bytes(),
    });
    let budget = Budget::new(options.memory_limit);
    let mut analysis = analysis.clone();
    analysis.ingest.max_content = analysis.ingest.max_content.min(budget.most());
    let shared = Shared {
        analysis: &analysis,
        key,
        options,
        journal: Mutex::new(journal),
        progress,
        analysed: AtomicU64::new(0),
        analysed_bytes: AtomicU64::new(0),
        reused: AtomicU64::new(0),
        broken: Mutex::new(None),
    };
    let jobs = options.jobs.max(1);
    let (sender, receiver) = sync_channel::<Job<'_>>(jobs);
    let receiver = Mutex::new(receiver);
    let mut producer = Producer {
        shared: &shared,
        budget: &budget,
        sender,
        work: Work::default(),
    };
    let done = std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| shared.serve(&receiver));
        }
        for found in &inputs.found {
            if producer.stopped() {
                break;
            }
            producer.hand_out(found);
            (shared.progress)(BatchEvent::Done { bytes: found.size });
        }
        // Workers end when nobody can send any more.
        let Producer { work, sender, .. } = producer;
        drop(sender);
        work
    });
    if let Some(error) = lock(&shared.broken).take() {
        return Err(error);
    }
    Ok(Work {
        analysed: shared.analysed.load(Ordering::Relaxed),
        analysed_bytes: shared.analysed_bytes.load(Ordering::Relaxed),
        reused: shared.reused.load(Ordering::Relaxed),
        interrupted: options.interrupted.load(Ordering::Relaxed),
        ..done
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    /// Takes inputs until there are no more.
    fn serve(&self, receiver: &Mutex<Receiver<Job<'_>>>) {
        loop {
            let next = lock(receiver).recv();
            let Ok(job) = next else { return };
            if self.stopped() {
                // The rest is taken and left, so that the producer does not wait.
                continue;
            }
            self.analyse(job);
        }
    }

    fn stopped(&self) -> bool {
        self.options.interrupted.load(Ordering::Relaxed) || lock(&self.broken).is_some()
    }

    fn analyse(&self, job: Job<'_>) {
        let Job {
            mut input, bytes, ..
        } = job;
        let done = bytes.with(self.analysis, |bytes| {
            let sha256 = hash(bytes);
            input.sha256 = Some(sha256.clone());
            if self.outcome(&sha256).is_some_and(|it| self.keeps(&it)) {
                self.reused.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            self.analysed.fetch_add(1, Ordering::Relaxed);
            let size = bytes.len() as u64;
            self.analysed_bytes.fetch_add(size, Ordering::Relaxed);
            let record = self.analysis.record(bytes)?;
            let brief = record.facts.brief.clone();
            let packed = journal::pack(&record).map_err(|error| Failure::of(&error, true))?;
            self.try_note(|journal| {
                let outcome = journal.keep(&packed, brief)?;
                journal.note(self.content(sha256, outcome))
            });
            Ok(())
        });
        let failure = match done {
            Ok(Ok(())) => None,
            Ok(Err(failure)) | Err(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            return self.failed(input, failure);
        }
        self.try_note(|journal| journal.note(Line::Input(input)));
    }

    fn content(&self, sha256: String, outcome: Outcome) -> Line {
        Line::Content(Content {
            sha256,
            options: self.key.to_owned(),
            outcome,
        })
    }

    /// Notes that an input failed: under its content, when that is why.
    fn failed(&self, mut input: Input, failure: Failure) {
        (self.progress)(BatchEvent::Failed {
            input: input.id.clone(),
            error: failure.error.clone(),
        });
        self.try_note(|journal| {
            if let Some(sha256) = input.sha256.clone().filter(|_| !failure.may_pass) {
                journal.note(self.content(sha256, Outcome::Failed(failure)))?;
            } else {
                input.sha256 = None;
                input.failure = Some(failure);
            }
            journal.note(Line::Input(input))
        });
    }

    fn try_note(&self, note: impl FnOnce(&mut Journal) -> Result<()>) {
        let mut journal = lock(&self.journal);
        if let Err(error) = note(&mut journal) {
            lock(&self.broken).get_or_insert(error);
        }
    }

    fn outcome(&self, sha256: &str) -> Option<Outcome> {
        let key = (self.key.to_owned(), sha256.to_owned());
        lock(&self.journal).state.contents.get(&key).cloned()
    }

    /// True for what need not be done again.
    fn keeps(&self, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Done { .. }) || !self.options.retry_failed
    }

    /// True for an input that is as it was when it was done.
    fn is_known(&self, input: &Input) -> bool {
        if self.options.rehash {
            return false;
        }
        let before = lock(&self.journal).state.inputs.get(&input.id).cloned();
        let Some(before) = before else { return false };
        if before.size != input.size || before.modified_ns != input.modified_ns {
            return false;
        }
        let same_place =
            before.below == input.below && before.root == input.root && before.named == input.named;
        let known = match (&before.sha256, &before.failure) {
            (Some(sha256), _) => self.outcome(sha256).is_some_and(|it| self.keeps(&it)),
            (None, Some(failure)) => !failure.may_pass && !self.options.retry_failed,
            (None, None) => false,
        };
        if known && !same_place {
            // It was given in another way: its names are others, its content is not.
            let input = Input {
                sha256: before.sha256,
                failure: before.failure,
                ..input.clone()
            };
            self.try_note(|journal| journal.note(Line::Input(input)));
        }
        known
    }
}

/// Hands out inputs.
struct Producer<'a, 'b> {
    shared: &'a Shared<'a>,
    budget: &'b Budget,
    sender: SyncSender<Job<'b>>,
    work: Work,
}

impl Producer<'_, '_> {
    fn stopped(&self) -> bool {
        self.shared.stopped()
    }

    fn hand_out(&mut self, found: &Found) {
        if let Some(form) = found.form {
            let id = id_of(&found.path);
            let archive = Source::open(&found.path, &self.shared.analysis.ingest)
                .map_err(|error| Error::new(error.kind(), error.reason()));
            let bounds = Bounds {
                member: self.budget.most(),
            };
            let archive = archive.and_then(|source| Archive::open(Arc::new(source), form, bounds));
            let done = archive.and_then(|archive| {
                if form.is_listed() {
                    self.listed(found, &archive)
                } else {
                    self.walked(found, &archive)
                }
            });
            match done {
                Ok(()) => self.sound(id),
                Err(error) => self.unsound(found, id, &error),
            }
            return;
        }
        let id = id_of(&found.path);
        let input = Input {
            id,
            below: found.below.clone(),
            root: found.root.clone(),
            named: found.named,
            size: found.size,
            modified_ns: found.modified_ns,
            sha256: None,
            failure: None,
        };
        if !self.takes(&input) {
            return;
        }
        let claim = claim_of(&found.path);
        let need = need(found.size, claim);
        self.send(input, need, || Ok(Bytes::File(found.path.clone())));
    }

    /// True for an input that is to be analysed.
    fn takes(&mut self, input: &Input) -> bool {
        self.work.ids.push(input.id.clone());
        let shard = self.shared.options.shard;
        if shard.is_some_and(|shard| !shard.has(&input.id)) {
            return false;
        }
        let known = self.shared.is_known(input);
        if known {
            self.shared.reused.fetch_add(1, Ordering::Relaxed);
        }
        !known
    }

    fn send(
        &self,
        input: Input,
        need: u64,
        bytes: impl FnOnce() -> std::result::Result<Bytes, Failure>,
    ) {
        if need > self.budget.most() {
            let limit = self.budget.most();
            return self.shared.failed(input, Failure::too_large(need, limit));
        }
        let memory = self.budget.take(need);
        match bytes() {
            Ok(bytes) => {
                let job = Job {
                    input,
                    bytes,
                    _memory: memory,
                };
                // Workers go only after the producer.
                let _ = self.sender.send(job);
            }
            Err(failure) => self.shared.failed(input, failure),
        }
    }

    /// An archive whose members can be read in any order.
    fn listed(&mut self, found: &Found, archive: &Archive) -> Result<()> {
        let mut names = Names::default();
        let mut members: Vec<(Input, Member)> = Vec::new();
        for entry in archive.list()? {
            match entry {
                Entry::Member(member) => {
                    let input = names.member(found, &member.name, member.size);
                    members.push((input, member));
                }
                other => self.other(found, &mut names, other),
            }
        }
        members.sort_by(|a, b| b.1.size.cmp(&a.1.size).then_with(|| a.0.id.cmp(&b.0.id)));
        let archive = Arc::new(archive.clone());
        for (input, member) in members {
            if self.stopped() {
                return Ok(());
            }
            if self.takes(&input) {
                let packed = is_compressed_name(&member.name);
                let need = need(member.size, packed.then_some(0));
                let archive = Arc::clone(&archive);
                self.send(input, need, || Ok(Bytes::Member(archive, member)));
            }
        }
        Ok(())
    }

    /// An archive that is one compressed stream.
    fn walked(&mut self, found: &Found, archive: &Archive) -> Result<()> {
        let path = id_of(&found.path);
        if let Some(ids) = self.all_known(found, &path) {
            let mine = |id: &&String| {
                let shard = self.shared.options.shard;
                shard.is_none_or(|shard| shard.has(id))
            };
            let count = ids.iter().filter(mine).count() as u64;
            self.shared.reused.fetch_add(count, Ordering::Relaxed);
            self.work.ids.extend(ids);
            return Ok(());
        }
        let mut names = Names::default();
        let first = self.work.ids.len();
        archive.walk(&mut |entry, reader| {
            if self.stopped() {
                return ControlFlow::Break(());
            }
            let member = match entry {
                Entry::Member(member) => member,
                other => {
                    self.other(found, &mut names, other);
                    return ControlFlow::Continue(());
                }
            };
            let input = names.member(found, &member.name, member.size);
            if self.takes(&input) {
                // Its content is here as a whole, beside what it is in.
                let packed = is_compressed_name(&member.name);
                let need = need(member.size, packed.then_some(0)) + member.size;
                self.send(input, need, || {
                    let bytes = read_member(reader, member.size);
                    let bytes = bytes.map_err(|error| Failure::of(&error, true))?;
                    Ok(Bytes::Owned(bytes))
                });
            }
            ControlFlow::Continue(())
        })?;
        if self.stopped() {
            return Ok(());
        }
        let line = Line::Archive(journal::Archive {
            path,
            size: found.size,
            modified_ns: found.modified_ns,
            members: self.work.ids[first..].to_vec(),
        });
        self.shared.try_note(|journal| journal.note(line));
        Ok(())
    }

    /// The members of an archive, when it is as it was and every one of them is done.
    fn all_known(&self, found: &Found, path: &str) -> Option<Vec<String>> {
        let known = lock(&self.shared.journal)
            .state
            .archives
            .get(path)
            .cloned()?;
        if (known.size, known.modified_ns) != (found.size, found.modified_ns) {
            return None;
        }
        let shard = self.shared.options.shard;
        let mine = |id: &&String| shard.is_none_or(|shard| shard.has(id));
        let all = known.members.iter().filter(mine).all(|id| {
            let input = lock(&self.shared.journal).state.inputs.get(id).cloned();
            input.is_some_and(|input| self.shared.is_known(&input))
        });
        all.then_some(known.members)
    }

    /// What is no member.
    fn other(&mut self, found: &Found, names: &mut Names, entry: Entry) {
        match entry {
            Entry::Refused { name, reason } => {
                let input = names.member(found, &name, 0);
                if self.takes(&input) {
                    let failure = Failure {
                        kind: "refused".to_owned(),
                        error: reason,
                        is_trace: true,
                        may_pass: false,
                    };
                    self.shared.failed(input, failure);
                }
            }
            Entry::Passed { .. } | Entry::Member(_) => self.work.passed += 1,
        }
    }

    /// An archive was read to its end: what was wrong with it before is no more.
    fn sound(&self, id: String) {
        self.shared.try_note(|journal| {
            if journal.state.inputs.contains_key(&id) {
                journal.note(Line::Forgotten { id })?;
            }
            Ok(())
        });
    }

    /// An archive is damaged, as a whole or from some place on.
    fn unsound(&mut self, found: &Found, id: String, error: &Error) {
        let input = Input {
            id,
            below: found.below.clone(),
            root: found.root.clone(),
            named: true,
            size: found.size,
            modified_ns: found.modified_ns,
            sha256: None,
            failure: None,
        };
        if self.takes(&input) {
            self.shared.failed(input, Failure::of(error, true));
        }
    }
}

/// How an input that is a file is called.
fn id_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Names of the members of one archive.
#[derive(Default)]
struct Names(BTreeMap<String, u32>);

impl Names {
    /// The input that is the member `name` of an archive. An archive may have two of one name.
    fn member(&mut self, found: &Found, name: &str, size: u64) -> Input {
        let count = self.0.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let again = if *count > 1 {
            format!("#{count}")
        } else {
            String::new()
        };
        let folder = crate::ingest::archive::without_endings(&found.below);
        // An archive that was given itself is like a folder that was given.
        let below = if found.named && !found.below.contains('/') {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        };
        Input {
            id: format!("{}!/{name}{again}", id_of(&found.path)),
            below,
            root: found.root.clone(),
            named: false,
            size,
            modified_ns: found.modified_ns,
            sha256: None,
            failure: None,
        }
    }
}

/// How much content the file at `path` says it has; `None` when it is not compressed.
fn claim_of(path: &Path) -> Option<u64> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = std::fs::File::open(path).ok()?;
    let mut head = Vec::new();
    (&mut file).take(32).read_to_end(&mut head).ok()?;
    if is_xz(&head) {
        return Some(0);
    }
    let mut tail = Vec::new();
    if file.seek(SeekFrom::End(-4)).is_ok() {
        file.read_to_end(&mut tail).ok()?;
    }
    claimed_content(&head, &tail)
}
