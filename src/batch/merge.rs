//! Shards put together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::dataset::{self, Dataset};
use super::journal::{Content, Journal, Line, Outcome, kept_bytes};
use super::manifest::{self, Manifest, digest};
use super::pattern::Pattern;
use super::run::{BatchReport, INSIDE, key, lock};
use super::summary;
use crate::error::{Error, ErrorKind, Result};

/// What a merge came to.
#[derive(Debug, Clone)]
pub struct Merged {
    /// Numbers of the dataset.
    pub report: BatchReport,
    /// How many shards there were.
    pub shards: usize,
}

/// Puts the datasets `shards`, each made with another part of the same inputs, together at `out`. They have to
/// be all parts, made with the same options, without an input missing or twice.
///
/// # Errors
/// When they are not, or cannot be read or written.
pub fn merge(shards: &[PathBuf], out: &Path, pattern: Option<&Pattern>) -> Result<Merged> {
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
        for input in state.inputs.values().filter(|it| wanted.contains(&it.id)) {
            contents.extend(&input.sha256);
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
    let dataset = Dataset::of(&journal, pattern, &key);
    let written = dataset::write(out, &dataset, &mut journal)?;
    let given: Vec<String> = given.into_iter().collect();
    let manifest = Manifest::new(&dataset, first.options.clone(), None, &given, true);
    manifest::write(out, &manifest)?;
    summary::write(out, &dataset, written > 0)?;
    journal.close()?;
    let mut report = dataset.report();
    report.written = written;
    Ok(Merged {
        report,
        shards: shards.len(),
    })
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
        if manifest.options != first.options || manifest.tool != first.tool {
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
