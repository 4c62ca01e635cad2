//! Where the inputs of a run lie: whether inputs that a run gets are of the run that it was.
//!
//! Names of runs are those below what was given, so two folders that are given one after the other may each have a
//! run of one name. Names alone do not tell that these are two.

use std::collections::{BTreeMap, BTreeSet};

use super::dataset::Dataset;
use super::input::{Found, Inputs};
use super::journal::Input;
use super::pattern::Pattern;
use super::recognise::recognise;
use super::record::Brief;
use super::run::Shard;
use crate::attribute::is_rank_folder;
use crate::error::{Error, ErrorKind};
use crate::ingest::archive::without_endings;

/// Inputs of a run from a folder that it had no inputs of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pooled {
    run: String,
    /// A folder that it had inputs of.
    had: String,
    gets: String,
}

impl Pooled {
    /// That, and what to do about it.
    fn message(&self) -> String {
        let Self { run, had, gets } = self;
        format!(
            "run '{run}' has inputs of {had}, and would get those of {gets}: to keep them apart, give both folders or \
             their parent in one command, or use another -o; to put them together, name the run with --pattern; to \
             keep only what is given now, use --prune"
        )
    }

    pub(super) fn refused(&self) -> Error {
        Error::new(ErrorKind::Usage, self.message())
    }

    pub(super) fn noted(&self) -> String {
        let Self { run, had, gets } = self;
        format!("run '{run}' had inputs of {had}, and has now those of {gets}, too")
    }
}

/// Which run every input is of.
pub(super) type Runs = BTreeMap<String, String>;

/// Where an input lies.
#[derive(Debug)]
struct Place {
    /// The folder of its run.
    folder: String,
    /// The folder that its names are below of, where that can be told.
    base: Option<String>,
}

impl Place {
    fn of(input: &Input) -> Self {
        // A member of an archive lies where it would when that was unpacked.
        let place = match input.id.split_once("!/") {
            Some((archive, member)) => format!("{}/{member}", without_endings(archive)),
            None => input.id.clone(),
        };
        let above = |path: &str| path.rsplit_once('/').map_or("", |(above, _)| above).len();
        let mut folder = &place[..above(&place)];
        while !folder.is_empty() && is_rank_folder(&folder[above(folder)..].replace('/', "")) {
            folder = &folder[..above(folder)];
        }
        let base = place.strip_suffix(input.below.as_str());
        Self {
            folder: folder.to_owned(),
            base: base.map(str::to_owned),
        }
    }

    /// True for places of one run, when that has one name.
    fn belongs_to(&self, other: &Self) -> bool {
        self.folder == other.folder || self.base.is_some() && self.base == other.base
    }
}

/// Which runs the inputs of `dataset` are of.
pub(super) fn runs(dataset: &Dataset) -> Runs {
    let members = dataset.members();
    members
        .map(|(run, member)| (member.input.id.clone(), run.to_owned()))
        .collect()
}

/// What `inputs` would put into runs of `dataset`, as far as names tell without looking into files.
pub(super) fn expected(
    dataset: &Dataset,
    inputs: &Inputs,
    pattern: Option<&Pattern>,
    shard: Option<Shard>,
) -> Vec<Pooled> {
    let before = runs(dataset);
    let found = inputs.found.iter();
    let given: BTreeSet<String> = found.map(Found::id).collect();
    let is_given = |id: &str| {
        let archives = id.match_indices("!/").map(|(end, _)| &id[..end]);
        given.contains(id) || archives.into_iter().any(|archive| given.contains(archive))
    };
    // What is given again may have another name now.
    let rest = dataset
        .members()
        .filter(|(_, member)| !is_given(&member.input.id));
    let rest = rest.map(|(run, member)| (run.to_owned(), member.input.clone(), false));
    let known: BTreeMap<&str, (&str, &Input)> = dataset
        .members()
        .map(|(run, member)| (member.input.id.as_str(), (run, &member.input)))
        .collect();
    let new = inputs.found.iter().filter_map(|found| {
        if found.form.is_some() || found.failure.is_some() {
            return None;
        }
        let input = Input::of(found);
        if shard.is_some_and(|shard| !shard.has(&input.id)) {
            return None;
        }
        if let Some((run, before)) = known.get(input.id.as_str())
            && before.below == input.below
            && before.root == input.root
        {
            return Some(((*run).to_owned(), input, false));
        }
        let (run, is_meant) = named(&input, pattern)?;
        Some((run, input, is_meant))
    });
    pooled(&before, rest.chain(new))
}

/// What was put into runs of a dataset, which were `before`.
pub(super) fn happened(before: &Runs, dataset: &Dataset) -> Vec<Pooled> {
    let members = dataset.members();
    let now = members.map(|(run, member)| {
        let is_meant = member.recognised.by == "pattern";
        (run.to_owned(), member.input.clone(), is_meant)
    });
    pooled(before, now)
}

/// The run of an input, and whether a pattern says so; `None` when that depends on its content.
fn named(input: &Input, pattern: Option<&Pattern>) -> Option<(String, bool)> {
    let of = |world_size| {
        let brief = Brief {
            world_size,
            ..Brief::default()
        };
        let found = recognise(input, &brief, pattern);
        (found.run, found.by == "pattern")
    };
    Some(of(None)).filter(|one| *one == of(Some(2)))
}

/// The first input of each run that comes from elsewhere than those that the run had: of inputs with their runs,
/// and whether those are meant to be put together.
fn pooled(before: &Runs, now: impl Iterator<Item = (String, Input, bool)>) -> Vec<Pooled> {
    let mut had: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    let mut gets: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for (run, input, is_meant) in now {
        let place = Place::of(&input);
        let places = if before.get(&input.id) == Some(&run) {
            had.entry(run).or_default()
        } else if is_meant {
            continue;
        } else {
            gets.entry(run).or_default()
        };
        // Runs have few places and many inputs.
        let is_there = |it: &Place| it.folder == place.folder && it.base == place.base;
        if !places.iter().any(is_there) {
            places.push(place);
        }
    }
    let mut found = Vec::new();
    for (run, gets) in gets {
        let Some(had) = had.get(&run) else { continue };
        let other = |gets: &&Place| !had.iter().any(|had| gets.belongs_to(had));
        if let Some(gets) = gets.iter().find(other) {
            found.push(Pooled {
                run,
                had: had[0].folder.clone(),
                gets: gets.folder.clone(),
            });
        }
    }
    found
}

/// True when `pattern` tells nothing about any of the inputs `ids` of `dataset`, and there are some.
pub(super) fn is_idle(pattern: &Pattern, dataset: &Dataset, ids: &[String]) -> bool {
    let ids: BTreeSet<&String> = ids.iter().collect();
    let mut given = dataset
        .members()
        .filter(|(_, member)| ids.contains(&member.input.id))
        .peekable();
    given.peek().is_some() && given.all(|(_, member)| pattern.fields(&member.input.below).is_none())
}
