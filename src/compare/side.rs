//! One side of a comparison: files, put together to repeats.

use std::collections::BTreeMap;

use super::mixture::Mixture;
use super::observed::Observed;
use super::pace::Steps;
use super::saved::{Saved, SavedFile};

/// One side.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) saved: Saved,
    /// By file; `None` when the side is a saved attribution.
    pub(super) observed: Option<Vec<Observed>>,
    /// By file: the number of its repeat.
    pub(super) repeats: Vec<u32>,
    pub(super) steps: Steps,
    /// What its repeats differ in, when they are of different programs.
    pub(super) mixture: Option<Mixture>,
}

impl Side {
    pub(super) fn new(saved: Saved, observed: Option<Vec<Observed>>) -> Self {
        let repeats = repeats(&saved.ranks);
        let mut side = Self {
            steps: Steps::new(&saved.ranks, &repeats),
            saved,
            observed,
            repeats,
            mixture: None,
        };
        side.mixture = Mixture::of(&side);
        side
    }

    /// How many repeats there are.
    pub(super) fn repeat_count(&self) -> u64 {
        let last = self.repeats.iter().max().copied();
        last.map_or(0, |last| u64::from(last) + 1)
    }

    /// How many ranks a repeat has at most.
    pub(super) fn rank_count(&self) -> u64 {
        let files = self.saved.ranks.iter().zip(&self.repeats);
        let mut ranks: Vec<(u32, Option<i64>)> =
            files.map(|(file, repeat)| (*repeat, file.rank)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let most = ranks.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max();
        most.unwrap_or(0) as u64
    }

    /// True when some file has device work.
    pub(super) fn has_device_work(&self) -> bool {
        let mut files = self.saved.ranks.iter();
        files.any(|file| file.coverage.device_events > 0)
    }
}

/// By file: the number of its repeat. Files are in order of run, rank, worker and window.
fn repeats(files: &[SavedFile]) -> Vec<u32> {
    // By run and rank: how many repeats there are so far, and the last step of the last window.
    let mut known: BTreeMap<(usize, Option<i64>), (u32, Option<u64>)> = BTreeMap::new();
    let mut keys: Vec<(usize, u32)> = Vec::with_capacity(files.len());
    for file in files {
        let numbers = step_numbers(file);
        let (count, last) = known.entry((file.run, file.rank)).or_insert((0, None));
        let goes_on = match (*last, numbers) {
            (Some(last), Some((first, _))) => first > last,
            _ => true,
        };
        if file.window == 0 || *count == 0 || !goes_on {
            *count += 1;
            *last = None;
        }
        *last = numbers.map(|(_, last)| last).or(*last);
        keys.push((file.run, *count));
    }
    let mut order = keys.clone();
    order.sort_unstable();
    order.dedup();
    let number = |key| u32::try_from(order.binary_search(key).unwrap_or(0)).unwrap_or(0);
    keys.iter().map(number).collect()
}

/// The smallest and largest N of `ProfilerStep#N` in a file. Inferred steps say nothing: they are
/// numbered from 0 in every window.
fn step_numbers(file: &SavedFile) -> Option<(u64, u64)> {
    let numbers = || {
        let names = file.host.steps.iter();
        names.filter_map(|step| step.name.strip_prefix("ProfilerStep#")?.parse::<u64>().ok())
    };
    numbers().min().zip(numbers().max())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(run: usize, rank: Option<i64>, window: usize, steps: &[u64]) -> SavedFile {
        let steps: Vec<serde_json::Value> = steps
            .iter()
            .map(|number| {
                serde_json::json!({
                    "name": format!("ProfilerStep#{number}"), "wall_ns": 5, "partial": false
                })
            })
            .collect();
        serde_json::from_value(serde_json::json!({
            "rank": rank, "run": run, "input": 0, "window": window, "devices": [],
            "host": {"phases": {}, "steps": steps}, "coverage": {"device_events": 0},
        }))
        .unwrap()
    }

    #[test]
    fn ranks_of_one_capture_are_one_repeat() {
        let files = [file(0, Some(0), 0, &[1]), file(0, Some(1), 0, &[1])];
        assert_eq!(repeats(&files), [0, 0]);
    }

    #[test]
    fn another_run_or_worker_of_a_rank_is_another_repeat() {
        let files = [
            file(0, Some(0), 0, &[1]),
            file(0, Some(0), 0, &[1]),
            file(0, Some(1), 0, &[1]),
            file(1, Some(0), 0, &[1]),
        ];
        assert_eq!(repeats(&files), [0, 1, 0, 2]);
    }

    #[test]
    fn windows_whose_steps_start_anew_are_repeats() {
        let goes_on = [file(0, None, 0, &[1, 2]), file(0, None, 1, &[5, 6])];
        assert_eq!(repeats(&goes_on), [0, 0]);
        let anew = [file(0, None, 0, &[1, 2]), file(0, None, 1, &[1, 2])];
        assert_eq!(repeats(&anew), [0, 1]);
        let without = [file(0, None, 0, &[]), file(0, None, 1, &[])];
        assert_eq!(repeats(&without), [0, 0]);
    }
}
