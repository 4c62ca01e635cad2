//! Shards put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use super::dataset::{Dataset, Output};
use super::journal::{Content, Journal, Line, Outcome, kept_bytes};
use super::manifest::{self, Manifest, digest};
use super::page;
use super::pattern::Pattern;
use super::run::{BatchReport, INSIDE, key, lock};
use super::summary;
use super::table::is_dataset;
use crate::error::{Error, ErrorKind, Result};

/// What a merge came to.
#[derive(Debug, Clone)]
pub struct Merged {
    /// Numbers of the dataset.
    pub report: BatchReport,
    /// How many shards there were.
    pub shards: usize,
}

/// Puts the datasets `shards`, each made with another part of the same inputs, together at `out`, with a page for
/// every run when `reports`. They have to be all parts, made with the same options, without an input missing or
/// twice.
///
/// # Errors
/// When they are not, or cannot be read or written.
pub fn merge(shards: &[PathBuf], out: &Path, reports: bool) -> Result<Merged> {
    let mut held = Vec::new();
    for shard in shards {
        if is_same(shard, out) {
            let message = "cannot be a part and the whole";
            return Err(Error::new(ErrorKind::Usage, message).in_file(out));
        }
        held.push(hold(shard)?);
    }
    let manifests = shards.iter().map(|shard| Manifest::read(shard));
    let manifests: Vec<Manifest> = manifests.collect::<Result<_>>()?;
    let given = check(shards, &manifests)?;
    let _lock = lock(out)?;
    let mut journal = Journal::open(&out.join(INSIDE))?;
    let first = &manifests[0];
    let version = first.tool.get("version").map_or("", String::as_str);
    let key = key(version, &first.options);
    for (shard, manifest) in shards.iter().zip(&manifests) {
        let inside = shard.join(INSIDE);
        let state = Journal::look(&inside)?;
        let inputs = manifest.inputs.iter().map(|input| &input.input);
        let wanted: BTreeSet<&String> = inputs
            .chain(manifest.skipped.iter().map(|input| &input.input))
            .collect();
        let mut contents: BTreeSet<&String> = BTreeSet::new();
        let mut there = 0;
        for input in state.inputs.values().filter(|it| wanted.contains(&it.id)) {
            let content = input.sha256.as_ref();
            let has_record =
                |sha256: &String| state.contents.contains_key(&(key.clone(), sha256.clone()));
            there += usize::from(content.is_none_or(has_record));
            contents.extend(content);
        }
        if there < wanted.len() {
            let message = format!(
                "has lost {} of its {} inputs: run its batch again",
                wanted.len() - there,
                wanted.len()
            );
            return Err(Error::new(ErrorKind::Invalid, message).in_file(shard));
        }
        for ((options, sha256), outcome) in &state.contents {
            if *options != key || !contents.contains(sha256) {
                continue;
            }
            let known = (options.clone(), sha256.clone());
            if journal.state.contents.contains_key(&known) {
                continue;
            }
            let outcome = match outcome {
                Outcome::Done { brief, .. } => {
                    let bytes = kept_bytes(&inside, outcome)?;
                    journal.keep(&bytes, brief.clone())?
                }
                Outcome::Failed(_) => outcome.clone(),
            };
            journal.note(Line::Content(Content {
                sha256: sha256.clone(),
                options: options.clone(),
                outcome,
            }))?;
        }
        for input in state.inputs.values().filter(|it| wanted.contains(&it.id)) {
            if journal.state.inputs.get(&input.id) != Some(input) {
                journal.note(Line::Input(input.clone()))?;
            }
        }
    }
    let gone: Vec<String> = journal
        .state
        .inputs
        .keys()
        .filter(|id| !given.contains(*id))
        .cloned()
        .collect();
    for id in gone {
        journal.note(Line::Forgotten { id })?;
    }
    let pattern = first
        .pattern
        .as_deref()
        .map(Pattern::from_str)
        .transpose()?;
    let dataset = Dataset::of(&journal, pattern.as_ref(), &key);
    let has_pages = |folder: &PathBuf| page::are_there(folder);
    let output = Output {
        folder: out,
        reports: reports || page::are_there(out) || shards.iter().all(has_pages),
    };
    let written = output.write(&dataset, &mut journal)?;
    let given: Vec<String> = given.into_iter().collect();
    let options = first.options.clone();
    let manifest = Manifest::new(&dataset, options, pattern.as_ref(), None, &given, true);
    manifest::write(out, &manifest)?;
    summary::write(output, &dataset, &mut journal)?;
    journal.close()?;
    drop(held);
    let mut report = dataset.report();
    report.written = written;
    Ok(Merged {
        report,
        shards: shards.len(),
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    canonical(one).is_some_and(|one| Some(one) == canonical(other))
}

/// Keeps batches away from the dataset at `shard`, as long as the file is open.
fn hold(shard: &Path) -> Result<File> {
    if !is_dataset(shard) {
        let message = "is no dataset of tracekit batch";
        return Err(Error::new(ErrorKind::Usage, message).in_file(shard));
    }
    let path = shard.join(INSIDE).join("lock");
    let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "a batch writes to this part";
            Err(Error::new(ErrorKind::State, message).in_file(shard))
        }
        Err(TryLockError::Error(error)) => Err(Error::io(path, error)),
    }
}

/// Checks that `manifests` are those of all parts of the same inputs, and tells which these are.
fn check(shards: &[PathBuf], manifests: &[Manifest]) -> Result<BTreeSet<String>> {
    let wrong = |place: usize, message: String| -> Result<BTreeSet<String>> {
        Err(Error::new(ErrorKind::Invalid, message).in_file(&shards[place]))
    };
    let Some(first) = manifests.first() else {
        return Err(Error::new(ErrorKind::Usage, "there are no parts to merge"));
    };
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let mut count = 0;
    for (place, manifest) in manifests.iter().enumerate() {
        let Some(shard) = manifest.shard else {
            return wrong(place, "was not made with --shard".to_owned());
        };
        if !manifest.complete {
            return wrong(place, "was interrupted: run its batch again".to_owned());
        }
        if place > 0 && shard.count != count {
            let message = format!("is part {} of {}, not of {count}", shard.index, shard.count);
            return wrong(place, message);
        }
        count = shard.count;
        if let Some(other) = seen.insert(shard.index, place) {
            let message = format!("is part {} as {}", shard.index, shards[other].display());
            return wrong(place, message);
        }
        let options = |manifest: &Manifest| (manifest.options.clone(), manifest.pattern.clone());
        if options(manifest) != options(first) || manifest.tool != first.tool {
            return wrong(
                place,
                "was made with other options or another tracekit".to_owned(),
            );
        }
        if manifest.all_inputs_sha256 != first.all_inputs_sha256 {
            let message = format!(
                "was made from other inputs: {}, where {} had {}",
                manifest.all_inputs,
                shards[0].display(),
                first.all_inputs
            );
            return wrong(place, message);
        }
    }
    let missing: Vec<String> = (1..=count)
        .filter(|index| !seen.contains_key(index))
        .map(|index| index.to_string())
        .collect();
    if !missing.is_empty() {
        let message = format!("missing parts of {count}: {}", missing.join(", "));
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut given: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, manifest) in manifests.iter().enumerate() {
        let inputs = manifest.inputs.iter().map(|input| &input.input);
        for id in inputs.chain(manifest.skipped.iter().map(|input| &input.input)) {
            if let Some(other) = given.insert(id, place) {
                let message = format!("'{id}' is also in {}", shards[other].display());
                return wrong(place, message);
            }
        }
    }
    let ids: Vec<&str> = given.keys().copied().collect();
    if digest(&ids) != first.all_inputs_sha256 {
        let message = format!(
            "the parts have {} inputs together, and there were {}",
            ids.len(),
            first.all_inputs
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(ids.into_iter().map(str::to_owned).collect())
}
