//! The work: one hands out inputs, the largest first, and as many as allowed analyse them.
//!
//! ```text
//! inputs ─ producer ──(memory)──→ worker ─ hash ─ known? ─ analyse ─→ journal
//!          walks archives     └─→ worker …
//! ```
//! The producer waits for memory before it hands out an input or reads a member of a compressed archive;
//! workers wait for nothing but the journal. So there is always somebody who goes on. Compressed inputs that turn
//! out to hold more content than they were given memory for come again at the end, each alone.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::analyse::{Analysis, guarded};
use super::input::{Found, Inputs};
use super::journal::{self, Content, Input, Journal, Line, Outcome};
use super::memory::{Budget, Content as Held, Given};
use super::record::Failure;
use super::run::{BatchEvent, BatchOptions};
use crate::attribute::hash;
use crate::error::{Error, Result};
use crate::ingest::archive::{
    Archive, Bounds, Entry, Form, Member, is_compressed_name, is_xz, read_member,
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
    /// How much content it may have.
    content: u64,
    /// How many bytes of its file or archive it stands for.
    share: u64,
    /// It has had its first try.
    is_last_try: bool,
    memory: Option<Given<'b>>,
}

/// Where the bytes of an input are.
enum Bytes {
    File(PathBuf),
    Member(Arc<Archive>, Member),
    Owned(Vec<u8>),
}

impl Bytes {
    /// How many bytes are held in memory.
    fn owned(&self) -> u64 {
        match self {
            Self::File(_) => 0,
            Self::Member(archive, member) if archive.plain(member).is_some() => 0,
            Self::Member(_, member) => member.size,
            Self::Owned(bytes) => bytes.len() as u64,
        }
    }

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
struct Shared<'a, 'b> {
    analysis: &'a Analysis,
    key: &'a str,
    options: &'a BatchOptions<'a>,
    journal: Mutex<&'a mut Journal>,
    progress: &'a (dyn Fn(BatchEvent) + Sync),
    analysed: AtomicU64,
    analysed_bytes: AtomicU64,
    reused: AtomicU64,
    /// Inputs that hold more than they had memory for.
    again: Mutex<Vec<Job<'b>>>,
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
    let shared = Shared {
        analysis,
        key,
        options,
        journal: Mutex::new(journal),
        progress,
        analysed: AtomicU64::new(0),
        analysed_bytes: AtomicU64::new(0),
        reused: AtomicU64::new(0),
        again: Mutex::new(Vec::new()),
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
        }
        // Workers end when nobody can send any more.
        let Producer { work, sender, .. } = producer;
        drop(sender);
        work
    });
    let again = std::mem::take(&mut *lock(&shared.again));
    for mut job in again {
        if shared.stopped() {
            break;
        }
        job.content = budget.largest();
        shared.analyse(job);
    }
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

impl<'b> Shared<'_, 'b> {
    /// Takes inputs until there are no more.
    fn serve(&self, receiver: &Mutex<Receiver<Job<'b>>>) {
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

    fn progressed(&self, bytes: u64) {
        (self.progress)(BatchEvent::Done { bytes });
    }

    fn analyse(&self, mut job: Job<'b>) {
        let Job {
            input,
            bytes,
            content,
            share,
            ..
        } = &mut job;
        // Nothing that an input does to tracekit reaches others.
        let done = guarded(|| {
            bytes.with(self.analysis, |bytes| {
                let sha256 = hash(bytes);
                input.sha256 = Some(sha256.clone());
                if self.outcome(&sha256).is_some_and(|it| self.keeps(&it)) {
                    self.reused.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                self.analysed.fetch_add(1, Ordering::Relaxed);
                let size = bytes.len() as u64;
                self.analysed_bytes.fetch_add(size, Ordering::Relaxed);
                let record = self.analysis.record(bytes, *content)?;
                let brief = record.facts.brief.clone();
                let packed = journal::pack(&record).map_err(|error| Failure::of(&error, true))?;
                self.try_note(|journal| {
                    let outcome = journal.keep(&packed, brief)?;
                    journal.note(self.content(sha256, outcome))
                });
                Ok(())
            })
        });
        let share = *share;
        match done.and_then(|done| done) {
            Ok(()) => self.try_note(|journal| journal.note(Line::Input(job.input))),
            Err(failure) if failure.is_too_large() && !job.is_last_try => {
                return self.put_back(job, failure);
            }
            Err(failure) => self.failed(job.input, failure),
        }
        self.progressed(share);
    }

    /// Keeps an input for later, when it can have all memory; or lets it fail, where too many bytes would be
    /// kept for that.
    fn put_back(&self, mut job: Job<'b>, failure: Failure) {
        let copied = |job: &Job<'_>| match &job.bytes {
            Bytes::Owned(bytes) => bytes.len() as u64,
            _ => 0,
        };
        let mut again = lock(&self.again);
        let kept: u64 = again.iter().map(copied).sum();
        if kept + copied(&job) > self.options.memory_limit / 8 {
            drop(again);
            self.progressed(job.share);
            return self.failed(job.input, failure);
        }
        job.is_last_try = true;
        job.memory = None;
        again.push(job);
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
    shared: &'a Shared<'a, 'b>,
    budget: &'b Budget,
    sender: SyncSender<Job<'b>>,
    work: Work,
}

impl<'b> Producer<'_, 'b> {
    fn stopped(&self) -> bool {
        self.shared.stopped()
    }

    fn hand_out(&mut self, found: &Found) {
        let input = Input::of(found);
        if let Some(reason) = &found.failure {
            if self.takes(&input) {
                self.shared.failed(input, Failure::unreadable(reason));
            }
        } else if let Some(form) = found.form {
            self.archive(found, form, input);
        } else if self.takes(&input) {
            let held = Held::of(found.size, claim_of_file(&found.path));
            let bytes = Bytes::File(found.path.clone());
            self.send(input, bytes, found.size, held);
        } else {
            self.shared.progressed(found.size);
        }
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

    /// Hands out an input once there is memory for what it holds.
    fn send(&self, input: Input, bytes: Bytes, share: u64, held: Held) {
        let Some((need, content)) = self.room(held, bytes.owned()) else {
            return self.too_large(input, held, share);
        };
        let memory = self.budget.take(need);
        self.give(input, bytes, share, content, memory);
    }

    /// How much memory to take for what an input holds, beside `copied` bytes that are there already, and how
    /// much content that is for; `None` when it is more than there may be.
    fn room(&self, held: Held, copied: u64) -> Option<(u64, u64)> {
        let most = self.budget.most();
        let need = held.need().saturating_add(copied);
        if need <= most {
            Some((need, held.bytes))
        } else if held.is_said {
            None
        } else {
            // It was but a guess.
            Some((most, self.budget.largest()))
        }
    }

    fn too_large(&self, input: Input, held: Held, share: u64) {
        let failure = Failure::too_large(held.need(), self.budget.most());
        self.shared.failed(input, failure);
        self.shared.progressed(share);
    }

    fn give(&self, input: Input, bytes: Bytes, share: u64, content: u64, memory: Given<'b>) {
        let job = Job {
            input,
            bytes,
            content,
            share,
            is_last_try: content >= self.budget.largest(),
            memory: Some(memory),
        };
        // Workers go only after the producer.
        let _ = self.sender.send(job);
    }

    fn archive(&mut self, found: &Found, form: Form, input: Input) {
        let mut left = found.size;
        let read = guarded(|| {
            let source = Source::open(&found.path, &self.shared.analysis.ingest);
            let bounds = Bounds {
                member: self.budget.most(),
            };
            let archive = source
                .map_err(|error| Error::new(error.kind(), error.reason()))
                .and_then(|source| Archive::open(Arc::new(source), form, bounds));
            archive
                .and_then(|archive| {
                    if form.is_listed() {
                        self.listed(found, &archive, &mut left)
                    } else {
                        self.walked(found, &archive, &mut left)
                    }
                })
                .map_err(|error| Failure::of(&error, true))
        });
        match read {
            _ if self.stopped() => {}
            Ok(()) => self.sound(input.id),
            Err(failure) => self.unsound(
                Input {
                    named: true,
                    ..input
                },
                failure,
            ),
        }
        self.shared.progressed(left);
    }

    /// An archive whose members can be read in any order.
    fn listed(&mut self, found: &Found, archive: &Archive, left: &mut u64) -> Result<()> {
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
            let share = member.stored.min(*left);
            *left -= share;
            if !self.takes(&input) {
                self.shared.progressed(share);
                continue;
            }
            let claim = match archive.plain(&member) {
                Some(bytes) => claim_of(bytes, bytes),
                None => is_compressed_name(&member.name).then_some(0),
            };
            let held = Held::of(member.size, claim);
            let bytes = Bytes::Member(Arc::clone(&archive), member);
            self.send(input, bytes, share, held);
        }
        Ok(())
    }

    /// An archive that is one compressed stream.
    fn walked(&mut self, found: &Found, archive: &Archive, left: &mut u64) -> Result<()> {
        let path = found.id();
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
            let share = member.stored.min(*left);
            *left -= share;
            if self.takes(&input) {
                self.copied(input, &member, reader, share);
            } else {
                self.shared.progressed(share);
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

    /// Hands out a member of a compressed archive, which is copied from it.
    fn copied(&self, input: Input, member: &Member, reader: &mut dyn Read, share: u64) {
        let plain = Held::of(member.size, None);
        let is_packed = is_compressed_name(&member.name);
        let first = if is_packed {
            member.size.min(self.budget.most())
        } else {
            match self.room(plain, member.size) {
                Some((need, _)) => need,
                None => return self.too_large(input, plain, share),
            }
        };
        let mut memory = self.budget.take(first);
        let bytes = match read_member(reader, member.size) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.shared.failed(input, Failure::of(&error, true));
                return self.shared.progressed(share);
            }
        };
        let held = Held::of(member.size, claim_of(&bytes, &bytes));
        let Some((need, content)) = self.room(held, member.size) else {
            return self.too_large(input, held, share);
        };
        self.budget.grow(&mut memory, need);
        self.give(input, Bytes::Owned(bytes), share, content, memory);
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
                    self.shared.failed(input, Failure::refused(reason));
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
    fn unsound(&mut self, input: Input, failure: Failure) {
        if self.takes(&input) {
            self.shared.failed(input, failure);
        }
    }
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
            id: format!("{}!/{name}{again}", found.id()),
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
fn claim_of_file(path: &Path) -> Option<u64> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut head = Vec::new();
    (&mut file).take(32).read_to_end(&mut head).ok()?;
    let mut tail = Vec::new();
    if file.seek(SeekFrom::End(-4)).is_ok() {
        file.read_to_end(&mut tail).ok()?;
    }
    claim_of(&head, &tail)
}

/// The same of bytes that start with `head` and end with `tail`.
fn claim_of(head: &[u8], tail: &[u8]) -> Option<u64> {
    if is_xz(head) {
        return Some(0);
    }
    claimed_content(head, tail)
}
