//! What files, ranks and devices are called in a report.

use std::borrow::Cow;
use std::path::Path;

use super::super::name::shortened;
use crate::attribute::{Attribution, DeviceResult, RankResult, RunResult};

/// Columns of the name of a run in a sentence.
const LONGEST: usize = 80;

/// A run: without the folders that its path shares with those of all other runs.
pub(in super::super) fn run<'a>(runs: &[RunResult], run: &'a RunResult) -> Cow<'a, str> {
    shortened(apart(runs, run), LONGEST)
}

/// The part of the name of a run that tells it from all others.
fn apart<'a>(runs: &[RunResult], run: &'a RunResult) -> &'a str {
    let [first, others @ ..] = runs else {
        return &run.name;
    };
    if others.is_empty() {
        return &run.name;
    }
    // The folders that a path goes through, with the `/` behind the last.
    let folders = |path: &'_ [u8]| {
        path.iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |end| end + 1)
    };
    let first = first.name.as_bytes();
    let shared = others.iter().fold(folders(first), |shared, other| {
        let same = first[..shared].iter().zip(other.name.as_bytes());
        let same = same.take_while(|(a, b)| a == b).count();
        folders(&first[..same])
    });
    &run.name[shared..]
}

/// The rank of a file, else its name; with whatever tells it from others of its rank.
pub(in super::super) fn rank(attribution: &Attribution, file: &RankResult) -> String {
    let Some(rank) = file.rank else {
        return name(attribution, file);
    };
    let mut others = others(attribution, file).peekable();
    if others.peek().is_none() {
        format!("rank {rank}")
    } else if others.all(|other| other.window != file.window) {
        format!("rank {rank} window {}", file.window)
    } else {
        format!("rank {rank} ({})", name(attribution, file))
    }
}

/// The rank whose first window is `file`, with all its windows.
pub(in super::super) fn whole_rank(attribution: &Attribution, file: &RankResult) -> String {
    match file.rank {
        Some(rank) if others(attribution, file).all(|other| other.window > 0) => {
            format!("rank {rank}")
        }
        Some(rank) => format!("rank {rank} ({})", name(attribution, file)),
        None => name(attribution, file),
    }
}

/// The other files of the rank of `file`.
fn others<'a>(
    attribution: &'a Attribution,
    file: &'a RankResult,
) -> impl Iterator<Item = &'a RankResult> {
    attribution.runs[file.run]
        .ranks
        .iter()
        .map(|other| &attribution.ranks[*other])
        .filter(|other| other.rank == file.rank && other.input != file.input)
}

fn name(attribution: &Attribution, file: &RankResult) -> String {
    let path = Path::new(&attribution.inputs[file.input].path);
    let name = path.file_name().unwrap_or(path.as_os_str());
    shortened(&name.to_string_lossy(), LONGEST).into_owned()
}

/// A device of a file.
pub(in super::super) fn device(device: &DeviceResult) -> String {
    format!("device {}", device.device)
}

/// Numbers as ranges: `0-3, 7`.
pub(in super::super) fn ranges(sorted: &[i64]) -> String {
    let parts: Vec<String> = sorted
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .filter_map(|run| match run {
            [] => None,
            [only] => Some(only.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
        })
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn runs_are_called_by_where_their_paths_part() {
        let called = |names: &[&str]| -> Vec<String> {
            let mut runs: Vec<RunResult> = Vec::new();
            for name in names {
                let mut run = sample::one_rank().runs.remove(0);
                (*name).clone_into(&mut run.name);
                runs.push(run);
            }
            runs.iter()
                .map(|one| run(&runs, one).into_owned())
                .collect()
        };
        assert_eq!(called(&["/a/b/base", "/a/b/cand"]), ["base", "cand"]);
        assert_eq!(called(&["/a/b/x/1", "/a/b/y/1"]), ["x/1", "y/1"]);
        assert_eq!(called(&["/a/b", "/a/b/c"]), ["b", "b/c"]);
        assert_eq!(called(&["/a/bc/x", "/a/bd/x"]), ["bc/x", "bd/x"]);
        assert_eq!(called(&["/ä/x", "/ö/x"]), ["ä/x", "ö/x"]);
        assert_eq!(called(&["base", "cand"]), ["base", "cand"]);
        let long = "k".repeat(10_000);
        assert!(called(&[&long, "cand"])[0].chars().count() <= LONGEST);
        assert_eq!(called(&["/a/b/only"]), ["/a/b/only"]);
    }

    #[test]
    fn ranks_in_a_row_are_one_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3, 7, 9-10");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn files_of_one_rank_are_told_apart() {
        let mut attribution = sample::two_ranks();
        assert_eq!(rank(&attribution, &attribution.ranks[1]), "rank 1");
        assert_eq!(whole_rank(&attribution, &attribution.ranks[1]), "rank 1");
        attribution.ranks[1].rank = Some(0);
        assert_eq!(
            rank(&attribution, &attribution.ranks[1]),
            "rank 0 (rank-1.json)"
        );
        assert_eq!(
            whole_rank(&attribution, &attribution.ranks[1]),
            "rank 0 (rank-1.json)"
        );
        attribution.ranks[1].window = 1;
        assert_eq!(rank(&attribution, &attribution.ranks[1]), "rank 0 window 1");
        assert_eq!(whole_rank(&attribution, &attribution.ranks[0]), "rank 0");
        attribution.ranks[1].rank = None;
        assert_eq!(rank(&attribution, &attribution.ranks[1]), "rank-1.json");
    }
}
