//! Which run, strategy, repeat and rank an input is of, from its place, its name and its content.
//!
//! ```text
//! sweep/2024-05-01/offload/repeat2/rank3.17.pt.trace.json.gz
//!       └──────── run ───────────┘ └ rank 3
//!                  strategy repeat 2
//! logs/job17_rank0.json      run logs/job17, rank 0     (the name has a rank and something before it)
//! logs/job17.json            run logs/job17             (a name of its own, and one process)
//! logs/host_4711.1623143089861.pt.trace.json   run logs (a name that PyTorch made)
//! ```
//! Nothing here looks at other inputs, so that one more never changes the run of another.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::journal::Input;
use super::pattern::Pattern;
use super::record::Brief;
use super::table::encoded;
use crate::attribute::{is_rank_folder, rank_in_name, rank_of_path, window_of_path};
use crate::ingest::archive::without_endings;

static REPEAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:^|[^a-z])(?:repeat|rep|run|seed|trial|attempt)[-_]?([0-9]{1,6})(?:$|[^0-9])",
    )
    .expect("valid pattern")
});

/// Folders that say when, not what.
static WHEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T_-].*)?$").expect("valid pattern")
});

/// A day in a path.
static DAY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^0-9])(20[0-9]{2})-?(0[1-9]|1[0-2])-?(0[1-9]|[12][0-9]|3[01])(?:$|[^0-9])")
        .expect("valid pattern")
});

/// Names that say nothing about the run.
const GENERIC: [&str; 10] = [
    "", "trace", "traces", "profile", "profiler", "kineto", "pytorch", "torch", "worker", "output",
];

/// 2015 and 2100 in nanoseconds since the epoch: what is not between them is no date of a trace.
const PLAUSIBLE: std::ops::Range<i64> = 1_420_070_400_000_000_000..4_102_444_800_000_000_000;

/// What an input is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recognised {
    pub(super) run: String,
    pub(super) strategy: Option<String>,
    pub(super) repeat: Option<i64>,
    pub(super) rank: Option<i64>,
    /// `pattern`, `file name` or `folder`.
    pub(super) by: &'static str,
    /// `pattern`, `distributedInfo` or `name`.
    pub(super) rank_by: Option<&'static str>,
    /// When it was recorded, in nanoseconds since the epoch.
    pub(super) start_ns: Option<i64>,
    /// The day it was recorded, `YYYY-MM-DD` in UTC.
    pub(super) date: Option<String>,
}

/// What `input` is of; `brief` is what its content says.
pub(super) fn recognise(input: &Input, brief: &Brief, pattern: Option<&Pattern>) -> Recognised {
    let below = input.below.as_str();
    let path = Path::new(below);
    let fields = pattern.and_then(|pattern| pattern.fields(below));
    let (name, by) = named(input, brief);
    let in_name = rank_of_path(path);
    let (rank, rank_by) = match (fields.as_ref().and_then(|fields| fields.rank), brief.rank) {
        (Some(rank), _) => (Some(rank), Some("pattern")),
        (None, Some(rank)) => (Some(rank), Some("distributedInfo")),
        (None, None) => (in_name, in_name.map(|_| "name")),
    };
    let mut found = Recognised {
        strategy: strategy(&name),
        repeat: repeat(below),
        run: name,
        rank,
        by,
        rank_by,
        start_ns: brief.start_ns.or_else(|| written(path)),
        date: None,
    };
    if let Some(fields) = fields {
        let repeat = fields.repeat.map(|repeat| format!("repeat{repeat}"));
        let parts = [fields.run, fields.strategy.clone(), repeat];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            found.run = parts.join("/");
            found.by = "pattern";
        }
        found.strategy = fields.strategy.or(found.strategy);
        found.repeat = fields.repeat.or(found.repeat);
    }
    found.run = shortened(found.run);
    found.date = found.start_ns.map(day).or_else(|| day_of_path(below));
    found
}

/// The name of the run, and what told it.
fn named(input: &Input, brief: &Brief) -> (String, &'static str) {
    let (folders, file) = match input.below.rsplit_once('/') {
        Some((folders, file)) => (folders, file),
        None => ("", input.below.as_str()),
    };
    let mut parts: Vec<&str> = folders.split('/').filter(|part| !part.is_empty()).collect();
    let mut has_rank_folder = false;
    while parts.last().is_some_and(|last| is_rank_folder(last)) {
        parts.pop();
        has_rank_folder = true;
    }
    let stem = stem(file);
    let own = match rank_in_name(stem) {
        Some(place) => prefix(&stem[..place.start]),
        None if has_rank_folder || brief.world_size.is_some_and(|size| size > 1) => None,
        // PyTorch's own names have the time in them, and the folder is what the user named.
        None if window_of_path(Path::new(file)).1 > 0 => None,
        None => prefix(stem),
    };
    let by = if own.is_some() { "file name" } else { "folder" };
    parts.extend(own);
    if parts.is_empty() {
        return (input.root.clone(), by);
    }
    (parts.join("/"), by)
}

/// A file name without what says how it is written.
fn stem(file: &str) -> &str {
    let mut stem = without_endings(file);
    for end in [".json", ".trace", ".pt"] {
        stem = stem.strip_suffix(end).unwrap_or(stem);
    }
    stem
}

/// What of a name may be that of a run.
fn prefix(name: &str) -> Option<&str> {
    let name = name.trim_matches(|letter: char| !letter.is_alphanumeric());
    let generic = GENERIC.contains(&name.to_ascii_lowercase().as_str());
    (!generic).then_some(name)
}

/// The strategy that a run is named for: its last folder that is neither a repeat nor a date.
fn strategy(run: &str) -> Option<String> {
    let is_what = |part: &&str| {
        let only_repeat = REPEAT
            .find(part)
            .is_some_and(|found| found.len() == part.len());
        !only_repeat && !WHEN.is_match(part)
    };
    let part = run.rsplit('/').find(is_what)?;
    let without = match REPEAT.find(part) {
        Some(found) if found.end() == part.len() => &part[..found.start()],
        _ => part,
    };
    Some(without.to_owned()).filter(|name| !name.is_empty())
}

fn repeat(below: &str) -> Option<i64> {
    let mut parts = below.rsplit('/');
    parts.find_map(|part| REPEAT.captures(part)?[1].parse().ok())
}

/// The time in a name that PyTorch made, in milliseconds or nanoseconds.
fn written(path: &Path) -> Option<i64> {
    let (_, time) = window_of_path(path);
    let time = i64::try_from(time).ok()?;
    let in_ns = [1, 1_000, 1_000_000, 1_000_000_000].map(|unit| time.checked_mul(unit));
    in_ns
        .into_iter()
        .flatten()
        .find(|time| PLAUSIBLE.contains(time))
}

/// `time` when it can be one of a trace.
pub(super) fn plausible(time: i64) -> Option<i64> {
    Some(time).filter(|time| PLAUSIBLE.contains(time))
}

fn day_of_path(below: &str) -> Option<String> {
    let found = DAY.captures(below)?;
    Some(format!("{}-{}-{}", &found[1], &found[2], &found[3]))
}

/// The day in UTC of a time since the epoch. By H. Hinnant's days-from-civil algorithm, the other way
/// round.
fn day(time_ns: i64) -> String {
    let days = time_ns.div_euclid(86_400_000_000_000) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A name that fits into that of a folder, whatever is in it.
fn shortened(run: String) -> String {
    // Names of files have at most 255 bytes; `run=` and endings need some of them.
    const LONGEST: usize = 200;
    // Hive's word for no name.
    if run == "__HIVE_DEFAULT_PARTITION__" {
        return "unnamed".to_owned();
    }
    if encoded(&run).len() <= LONGEST {
        return run;
    }
    let hash = crate::attribute::hash(run.as_bytes());
    let mut start = String::new();
    for letter in run.chars() {
        start.push(letter);
        if encoded(&start).len() > LONGEST - 9 {
            start.pop();
            break;
        }
    }
    format!("{start}~{}", &hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(below: &str) -> Input {
        Input {
            id: below.to_owned(),
            below: below.to_owned(),
            root: "root".to_owned(),
            named: false,
            size: 1,
            modified_ns: 0,
            sha256: None,
            failure: None,
        }
    }

    fn found(below: &str, world_size: Option<i64>) -> Recognised {
        let brief = Brief {
            world_size,
            ..Brief::default()
        };
        recognise(&input(below), &brief, None)
    }

    #[test]
    fn runs_are_folders_or_names_with_something_before_the_rank() {
        for (below, world_size, run, rank) in [
            (
                "baseline/rank0.17.pt.trace.json.gz",
                None,
                "baseline",
                Some(0),
            ),
            ("a/offload/rank3/trace.json", None, "a/offload", Some(3)),
            ("logs/job17_rank0.json", None, "logs/job17", Some(0)),
            ("logs/job17.json", None, "logs/job17", None),
            ("logs/job17.json", Some(8), "logs", None),
            (
                "logs/host_4711.1623143089861.pt.trace.json",
                None,
                "logs",
                None,
            ),
            ("trace.json", None, "root", None),
            ("rank1.json", None, "root", Some(1)),
            ("x/worker0.1623143089861.pt.trace.json", None, "x", Some(0)),
        ] {
            let found = found(below, world_size);
            assert_eq!((found.run.as_str(), found.rank), (run, rank), "{below}");
        }
    }

    #[test]
    fn strategies_and_repeats_are_in_the_names_of_folders() {
        for (below, strategy, repeat) in [
            ("2024-05-01/offload/repeat2/rank0.json", "offload", Some(2)),
            ("ddp_seed7/rank0.json", "ddp", Some(7)),
            ("zero3/rank0.json", "zero3", None),
        ] {
            let found = found(below, None);
            assert_eq!(found.strategy.as_deref(), Some(strategy), "{below}");
            assert_eq!(found.repeat, repeat, "{below}");
        }
    }

    #[test]
    fn a_pattern_comes_before_names() {
        let pattern: Pattern = "{run}/{strategy}/rank{rank}".parse().unwrap();
        let brief = Brief {
            rank: Some(5),
            ..Brief::default()
        };
        let found = recognise(&input("j1/ddp/rank3.json"), &brief, Some(&pattern));
        assert_eq!(found.run, "j1/ddp");
        assert_eq!((found.rank, found.rank_by), (Some(3), Some("pattern")));
        let other = recognise(&input("ddp/worker3.json"), &brief, Some(&pattern));
        assert_eq!((other.run.as_str(), other.by), ("ddp", "folder"));
        assert_eq!(other.rank_by, Some("distributedInfo"));
    }

    #[test]
    fn days_are_those_of_utc() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400_000_000_000), "2000-02-29");
        assert_eq!(day(1_735_689_599_999_999_999), "2024-12-31");
        let of_name = found("x/worker0.1623143089861.pt.trace.json", None);
        assert_eq!(of_name.date.as_deref(), Some("2021-06-08"));
        let of_folder = found("20240229/trace.json", None);
        assert_eq!(of_folder.date.as_deref(), Some("2024-02-29"));
        assert_eq!(found("a/trace.json", None).date, None);
    }

    #[test]
    fn long_names_stay_apart() {
        for letter in ["x", "\u{1f980}", "/y"] {
            let long =
                |last: &str| found(&format!("{}{last}/rank0.json", letter.repeat(200)), None).run;
            assert_ne!(long("a"), long("b"));
            assert!(encoded(&long("a")).len() <= 200);
        }
        let usual = "llama-70b/2024-05-01_12-33-44/fsdp_full_shard_bf16_no_reentrant/repeat3";
        assert_eq!(found(&format!("{usual}/rank0.json"), None).run, usual);
    }
}
