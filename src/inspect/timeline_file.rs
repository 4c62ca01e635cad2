//! Memory timelines that PyTorch exports as `*.raw.json.gz`: memory of one device by what it holds.
//!
//! ```text
//! [[-1, 1, 4096, 0],          held before the capture: 4096 bytes of parameters
//!  [1700, 2, 512, 4],         created at 1700 ns: 512 bytes of activations
//!  [1900, 3, -512, 4],        changed at 1900 ns: no activations any more,
//!  [1900, 3, 512, 7],             but of no known category
//!  [2300, 4, -512, 7]]        destroyed
//! ```
//! An entry is `[time in ns, action, bytes, category]`, as `export_memory_timeline_raw` of
//! `torch/profiler/_memory_profiler.py` writes it; the file does not name the device. What happens within
//! one nanosecond happens at once: levels are those after it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::folder::{Inspection, SCHEMA_VERSION};
use super::frame::{Frame, Unit};
use super::memory::clamp;
use super::options::InspectOptions;
use super::topic::Topic;
use crate::attribute::{Coverage, InputRecord, Request, Tool};
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::{Source, plain_content};
use crate::units::Ns;

/// What memory holds, in the order of `_CATEGORY_TO_INDEX`.
const CATEGORIES: [&str; 8] = [
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
];

/// Bytes by category.
type Level = [i128; CATEGORIES.len()];

/// A highest level: its height, its time (`None` before the capture) and all of it.
type Highest<'a> = (i128, Option<Ns>, &'a Level);

/// Into so many stretches of equal length a timeline is cut.
const STRETCHES: i64 = 20;

/// Ends of names of JSON files.
const JSON: [&str; 3] = [".json", ".json.gz", ".json.zst"];

/// True for a file that is called as PyTorch calls raw memory timelines.
fn is_timeline(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    JSON.iter()
        .filter_map(|end| name.strip_suffix(end))
        .any(|stem| Path::new(stem).extension().is_some_and(|end| end == "raw"))
}

/// The raw memory timelines that `paths` are: themselves, or all JSON files of a folder; in order. `None`
/// when there are none.
///
/// # Errors
/// When there are others among them: their tables have other columns.
pub(super) fn timelines(paths: &[PathBuf]) -> Result<Option<Vec<PathBuf>>> {
    let (mut found, mut others) = (Vec::new(), 0);
    for path in paths {
        let files = if path.is_dir() {
            json_files(path)
        } else {
            vec![path.clone()]
        };
        let (of_path, rest): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| is_timeline(file));
        // A folder may have others below, and is not asked for its timelines.
        if path.is_dir() && !rest.is_empty() {
            others += 1;
            continue;
        }
        others += rest.len();
        found.extend(of_path);
    }
    match found.first() {
        None => Ok(None),
        Some(_) if others == 0 => Ok(Some(found)),
        Some(first) => {
            let message = "this is a memory timeline: its tables are others than those of traces, so give it without them";
            Err(Error::new(ErrorKind::Usage, message).in_file(first))
        }
    }
}

/// The JSON files in `folder` itself, in order of name.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_json = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && JSON.iter().any(|end| name.ends_with(end))
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_json).collect();
    files.sort();
    files
}

/// Breaks the memory timelines `paths` down.
///
/// # Errors
/// When one cannot be read or is no raw memory timeline, and when steps or groups are asked for.
pub(super) fn inspect_timelines(
    request: &Request<'_>,
    paths: &[PathBuf],
    options: &InspectOptions,
) -> Result<Inspection> {
    if request.options.steps.is_some() || !options.by.is_empty() {
        let message =
            "a memory timeline has no steps, phases or shapes: leave --steps and --by out";
        return Err(Error::new(ErrorKind::Usage, message).in_file(&paths[0]));
    }
    let read = |path: &PathBuf| -> Result<(InputRecord, Vec<Frame>)> {
        let source = Source::open(path, &request.ingest)?;
        let content = plain_content(source.bytes()).map_err(|error| error.in_file(path))?;
        let timeline = Timeline::parse(&content).map_err(|error| error.in_file(path))?;
        let record = InputRecord {
            path: path.display().to_string(),
            sha256: request
                .hash_inputs
                .then(|| crate::attribute::hash(source.bytes())),
            bytes: source.bytes().len() as u64,
            events: timeline.entries,
            rank: None,
            world_size: None,
            device_names: Vec::new(),
            compressed: matches!(content, std::borrow::Cow::Owned(_)),
            partial: false,
            lost: None,
        };
        Ok((record, timeline.frames(options)))
    };
    let files: Vec<(InputRecord, Vec<Frame>)> =
        paths.par_iter().map(read).collect::<Result<_>>()?;
    let mut frames: Vec<Frame> = Vec::new();
    let mut inputs = Vec::new();
    for (record, of_file) in files {
        for frame in of_file {
            let frame = frame.of_file(&record.path, None, None);
            match frames.iter_mut().find(|known| known.name == frame.name) {
                Some(known) => known.append(frame),
                None => frames.push(frame),
            }
        }
        inputs.push(record);
    }
    Ok(Inspection {
        schema_version: SCHEMA_VERSION,
        tool: Tool::this(),
        topic: Topic::Memory,
        options: BTreeMap::new(),
        inputs,
        skipped: Vec::new(),
        frames,
        remarks: Vec::new(),
        coverage: Coverage::default(),
        health: Vec::new(),
    })
}

/// Levels after every instant at which something changed.
#[derive(Debug, PartialEq, Eq)]
struct Timeline {
    entries: u64,
    /// What was there before the capture.
    before: Level,
    /// In order of time.
    levels: Vec<(Ns, Level)>,
    created: [u64; CATEGORIES.len()],
    destroyed: [u64; CATEGORIES.len()],
}

impl Timeline {
    fn parse(content: &[u8]) -> Result<Self> {
        let no = |message: String| Error::new(ErrorKind::NotATrace, message);
        let mut entries: Vec<(i64, u8, i64, u8)> =
            serde_json::from_slice(content).map_err(|error| {
                no(format!(
                    "no raw memory timeline, a list of [ns, action, bytes, category]: {error}"
                ))
            })?;
        let mut timeline = Self {
            entries: entries.len() as u64,
            before: Level::default(),
            levels: Vec::new(),
            created: [0; CATEGORIES.len()],
            destroyed: [0; CATEGORIES.len()],
        };
        entries.sort_unstable();
        let mut level = Level::default();
        for (number, (at, action, bytes, category)) in entries.iter().enumerate() {
            let place = usize::from(*category);
            if place >= CATEGORIES.len() || !(1..=4).contains(action) {
                let what = format!("[{at}, {action}, {bytes}, {category}]");
                return Err(no(format!(
                    "no raw memory timeline: {what} has an unknown action or category"
                )));
            }
            level[place] += i128::from(*bytes);
            match action {
                1 | 2 => timeline.created[place] += 1,
                4 => timeline.destroyed[place] += 1,
                _ => {}
            }
            let last_of_instant = entries
                .get(number + 1)
                .is_none_or(|next| next.0.max(-1) != (*at).max(-1));
            match last_of_instant {
                true if *at < 0 => timeline.before = level,
                true => timeline.levels.push((Ns(*at), level)),
                false => {}
            }
        }
        Ok(timeline)
    }

    /// The level before the capture (without a time) and those after each instant.
    fn all(&self) -> impl Iterator<Item = (Option<Ns>, &Level)> {
        let later = self.levels.iter().map(|(at, level)| (Some(*at), level));
        std::iter::once((None, &self.before)).chain(later)
    }

    fn frames(&self, options: &InspectOptions) -> Vec<Frame> {
        let highest = highest(self.all(), total);
        let end = self.levels.last().map_or(self.before, |last| last.1);
        let row = [()];
        let whole = Frame::new("memory", "The memory of the device of a timeline.")
            .bytes("peak_allocated_bytes", &row, |()| Some(clamp(highest.0)))
            .at("peak_allocated_at_ns", &row, |()| highest.1)
            .bytes("start_bytes", &row, |()| Some(clamp(total(&self.before))))
            .bytes("end_bytes", &row, |()| Some(clamp(total(&end))))
            .bytes("growth_bytes", &row, |()| {
                Some(clamp(total(&end) - total(&self.before)))
            })
            .count("allocations", &row, |()| Some(self.created.iter().sum()))
            .count("frees", &row, |()| Some(self.destroyed.iter().sum()));
        vec![
            whole,
            self.categories(highest.2, &end),
            self.over_time(options),
        ]
    }

    /// One row a category.
    fn categories(&self, at_peak: &Level, end: &Level) -> Frame {
        let rows: Vec<(usize, Highest<'_>)> = (0..CATEGORIES.len())
            .map(|place| (place, highest(self.all(), |level| level[place])))
            .collect();
        Frame::new(
            "categories",
            "What the memory holds: at_peak_bytes is at the peak of all, and adds up to it.",
        )
        .text("category", &rows, |row| Some(CATEGORIES[row.0]))
        .bytes("at_peak_bytes", &rows, |row| Some(clamp(at_peak[row.0])))
        .bytes("peak_bytes", &rows, |row| Some(clamp(row.1.0)))
        .at("peak_at_ns", &rows, |row| row.1.1)
        .bytes("start_bytes", &rows, |row| Some(clamp(self.before[row.0])))
        .bytes("end_bytes", &rows, |row| Some(clamp(end[row.0])))
        .count("allocations", &rows, |row| Some(self.created[row.0]))
        .count("frees", &rows, |row| Some(self.destroyed[row.0]))
    }

    /// One row a stretch of time: its highest level, by category.
    fn over_time(&self, options: &InspectOptions) -> Frame {
        let rows = self.stretches(options);
        let peak = highest(self.all(), total).0;
        let mut frame = Frame::new(
            "over_time",
            "The highest level within each of equal stretches of time, by category.",
        )
        .at("from_ns", &rows, |row| Some(row.0))
        .bytes("peak_allocated_bytes", &rows, |row| {
            Some(clamp(total(&row.1)))
        });
        for (place, name) in COLUMNS.iter().enumerate() {
            frame = frame.bytes(name, &rows, |row| Some(clamp(row.1[place])));
        }
        frame.float("share_of_peak", Unit::Ratio, &rows, |row| {
            (peak > 0).then(|| total(&row.1) as f64 / peak as f64)
        })
    }

    /// Starts of equal stretches of time with the highest level in each, as many as names are asked
    /// for.
    fn stretches(&self, options: &InspectOptions) -> Vec<(Ns, Level)> {
        let (Some(first), Some(last)) = (self.levels.first(), self.levels.last()) else {
            return Vec::new();
        };
        let wanted = i64::try_from(options.top).unwrap_or(STRETCHES);
        let count = if wanted == 0 { STRETCHES } else { wanted }.min(1000);
        let length = ((last.0 - first.0).0 / count + 1).max(1);
        let mut held = self.before;
        let mut place = 0;
        let mut rows = Vec::new();
        for number in 0..count {
            let from = first.0 + Ns(length.saturating_mul(number));
            if from > last.0 {
                break;
            }
            let mut most = (number > 0 || from > first.0).then_some(held);
            while let Some((at, level)) = self.levels.get(place)
                && *at < from + Ns(length)
            {
                if *at == from {
                    most = None;
                }
                held = *level;
                if most.is_none_or(|most| total(&held) > total(&most)) {
                    most = Some(held);
                }
                place += 1;
            }
            rows.push((from, most.unwrap_or(held)));
        }
        rows
    }
}

/// Columns of the categories.
const COLUMNS: [&str; CATEGORIES.len()] = [
    "parameter_bytes",
    "optimizer_state_bytes",
    "input_bytes",
    "temporary_bytes",
    "activation_bytes",
    "gradient_bytes",
    "autograd_detail_bytes",
    "unknown_bytes",
];

fn total(level: &Level) -> i128 {
    level.iter().sum()
}

/// The first highest of `levels` by `of`: its height, time and level. There is at least one level.
fn highest<'a>(
    mut levels: impl Iterator<Item = (Option<Ns>, &'a Level)>,
    of: impl Fn(&Level) -> i128,
) -> Highest<'a> {
    let (at, first) = levels.next().expect("the level before the capture");
    let start = (of(first), at, first);
    levels.fold(start, |most, (at, level)| {
        if of(level) > most.0 {
            (of(level), at, level)
        } else {
            most
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str =
        "[[-1, 1, 4096, 0], [1700, 2, 512, 4], [1900, 3, -512, 4], [1900, 3, 512, 7],
        [2000, 2, 100, 5], [2300, 4, -512, 7]]";

    fn levels(text: &str) -> Vec<(i64, i128)> {
        let timeline = Timeline::parse(text.as_bytes()).unwrap();
        timeline
            .levels
            .iter()
            .map(|(at, level)| (at.0, total(level)))
            .collect()
    }

    #[test]
    fn levels_are_those_after_each_instant() {
        let expected = [(1700, 4608), (1900, 4608), (2000, 4708), (2300, 4196)];
        assert_eq!(levels(EXAMPLE), expected);
        let timeline = Timeline::parse(EXAMPLE.as_bytes()).unwrap();
        let (bytes, at, level) = highest(timeline.all(), total);
        assert_eq!((bytes, at), (4708, Some(Ns(2000))));
        assert_eq!(*level, [4096, 0, 0, 0, 0, 100, 0, 512]);
        assert_eq!(timeline.created, [1, 0, 0, 0, 1, 1, 0, 0]);
        assert_eq!(timeline.destroyed, [0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn a_folder_of_timelines_is_told_from_one_of_traces() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, EXAMPLE).unwrap();
            path
        };
        let whole = [folder.path().to_owned()];
        assert_eq!(timelines(&whole).unwrap(), None);
        let files = vec![write("a.raw.json"), write("b.raw.json.gz")];
        assert_eq!(timelines(&whole).unwrap(), Some(files.clone()));
        assert_eq!(timelines(&files).unwrap(), Some(files.clone()));
        let trace = write("rank0.pt.trace.json");
        assert_eq!(timelines(&whole).unwrap(), None);
        let error = timelines(&[files[0].clone(), trace]).unwrap_err();
        assert!(error.to_string().contains("memory timeline"), "{error}");
    }

    #[test]
    fn the_order_of_entries_does_not_matter() {
        let mut entries: Vec<(i64, u8, i64, u8)> = serde_json::from_str(EXAMPLE).unwrap();
        entries.reverse();
        let reversed = serde_json::to_vec(&entries).unwrap();
        assert_eq!(
            Timeline::parse(&reversed).unwrap(),
            Timeline::parse(EXAMPLE.as_bytes()).unwrap()
        );
    }

    #[test]
    fn stretches_hold_the_highest_level_of_each_category() {
        let options = InspectOptions {
            top: 3,
            ..InspectOptions::default()
        };
        let timeline = Timeline::parse(EXAMPLE.as_bytes()).unwrap();
        let stretches: Vec<(i64, i128)> = timeline
            .stretches(&options)
            .iter()
            .map(|(from, level)| (from.0, total(level)))
            .collect();
        // 601 ns in three: from 1700, 1901 and 2102.
        assert_eq!(stretches, [(1700, 4608), (1901, 4708), (2102, 4708)]);
    }

    #[test]
    fn extreme_numbers_are_no_trouble() {
        let max = i64::MAX;
        let text = format!("[[0, 2, {max}, 1], [0, 2, {max}, 1], [{max}, 2, {max}, 1]]");
        let timeline = Timeline::parse(text.as_bytes()).unwrap();
        let frames = timeline.frames(&InspectOptions::default());
        assert_eq!(frames.len(), 3);
        assert!(Timeline::parse(b"[]").unwrap().levels.is_empty());
        Timeline::parse(b"[]")
            .unwrap()
            .frames(&InspectOptions::default());
    }

    #[test]
    fn other_files_are_refused() {
        for text in [
            "",
            "{}",
            "[1, 2]",
            "[[1, 2, 3]]",
            "[[1, 2, 3, 4, 5]]",
            "[[1, 5, 3, 4]]",
            "[[1, 2, 3, 8]]",
            "[[0, 1], [[0, 0, 0, 0, 0, 0, 0, 0, 0]]]",
            "[[1, 2, 3, 4]",
            "[[1.5, 2, 3, 4]]",
            r#"[{"ph": "X"}]"#,
        ] {
            let error = Timeline::parse(text.as_bytes()).unwrap_err();
            assert!(
                error.to_string().starts_with("no raw memory timeline"),
                "{error}"
            );
        }
    }
}
