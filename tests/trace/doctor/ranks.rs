//! What the doctor finds across the ranks of a run, and its verdicts on a corpus.

use std::fmt::Write as _;

use tracekit::doctor::{Diagnosis, Judgement};

use super::{diagnose, found, of_files, trace_with, words};
use crate::support::{corpus, gzip};

/// The trace of `rank`, whose clock is `ahead` by so many µs and whose capture starts at `start`. Its
/// five all-reduces end together with those of the other ranks, unless it is `apart`.
pub(super) fn rank(rank: u64, world: u64, start: u64, ahead: u64, apart: bool) -> Vec<u8> {
    let at = |time: u64| time + ahead;
    let mut lines = format!(
        "note 1/1 {} 30000 forward\nop 1/1 {} 900 aten::mm\n",
        at(start),
        at(start) + 1
    );
    for number in 0..5 {
        let (arrival, end) = (start.max(500 * number), 5_000 + 5_000 * number);
        // The first waits for the last rank; each of the others takes 50 µs.
        let begin = if number == 0 { arrival + 900 } else { end - 50 };
        let end = if apart { end + 400 * (number % 2) } else { end };
        let corr = number + 1;
        let (at, dur) = (at(begin), end - begin);
        writeln!(
            lines,
            "launch 1/1 {} 2 cudaLaunchKernel corr={corr}",
            at - 10
        )
        .unwrap();
        writeln!(
            lines,
            "kernel 0/20 {at} {dur} ncclDevKernel_AllReduce corr={corr}"
        )
        .unwrap();
    }
    let head = format!(r#""distributedInfo":{{"rank":{rank},"world_size":{world}}},"#);
    trace_with(&head, &lines)
}

/// The trace of `rank` with devices that have three collectives each, those of device 0 named by the first of
/// `names`, and so on.
pub(super) fn devices(rank: u64, names: &[u64]) -> Vec<u8> {
    let mut lines = "note 1/1 0 1000 forward\n".to_owned();
    for (device, name) in names.iter().enumerate() {
        for number in 0..3 {
            let (corr, at) = (device * 3 + number + 1, 100 + 200 * number);
            writeln!(lines, "launch 1/1 {at} 1 cudaLaunchKernel corr={corr}").unwrap();
            writeln!(
                lines,
                "kernel {device}/20 {at} 50 ncclDevKernel_AllReduce_{name} corr={corr}"
            )
            .unwrap();
        }
    }
    let head = format!(r#""distributedInfo":{{"rank":{rank},"world_size":2}},"#);
    trace_with(&head, &lines)
}

#[test]
fn devices_that_are_not_compared_with_all_others_are_told() {
    let told = |others: &[u64]| {
        let many: Vec<u64> = (0..257).collect();
        let diagnosis = of_ranks(vec![devices(0, &many), devices(1, others)]);
        let found = found(&diagnosis.files[1].findings);
        let mut found = found.iter();
        found
            .find(|(code, _)| *code == "collectives_not_compared")
            .map(|(_, count)| *count)
    };
    // Those of the first 256 groups belong to them, the last and the unknown might to any.
    assert_eq!(told(&[0, 255]), None);
    assert_eq!(told(&[0, 256]), Some(1));
    assert_eq!(told(&[1000, 256]), Some(2));
}

fn of_ranks(ranks: Vec<Vec<u8>>) -> Diagnosis {
    let names: Vec<String> = (0..ranks.len())
        .map(|rank| format!("r{rank}.json"))
        .collect();
    let files: Vec<(&str, Vec<u8>)> = names.iter().map(String::as_str).zip(ranks).collect();
    of_files(&files)
}

/// ```text
/// rank 0  capture from 0     ├─ all-reduce 0 ───────────┤    ├┤  ├┤  ├┤  ├┤
/// rank 1  capture from 4000                  ├───────────┤    ├┤  ├┤  ├┤  ├┤
/// ```
#[test]
fn a_capture_that_starts_before_another_is_told_however_the_clocks_differ() {
    for ahead in [0, 700, 7_000_000] {
        let diagnosis = of_ranks(vec![
            rank(0, 2, 0, 0, false),
            rank(1, 2, 4_000, ahead, false),
        ]);
        let [early, late] = diagnosis.files.as_slice() else {
            panic!("two files")
        };
        let clock: &[(&str, u64)] = if ahead > 1_000 {
            &[("clock_offset", 1)]
        } else {
            &[]
        };
        assert_eq!(
            found(&early.findings),
            [("start_skew", 1), ("outlier_collective", 1)]
        );
        assert_eq!(found(&late.findings), clock, "{ahead}");
        let skew = &early.findings[0];
        assert_eq!(skew.time_ns.unwrap().0, 4_000_000, "{ahead}");
        assert_eq!(skew.first_name.as_deref(), Some("waits for rank 1"));
        assert_eq!(early.findings[1].time_ns.unwrap().0, 4_000_000);
        assert_eq!(
            words(&early.verdict),
            "not for comparison across ranks; care for device time"
        );
        if let [offset] = late.findings.as_slice() {
            assert_eq!(
                offset.worst_ns.unwrap().0,
                i64::try_from(ahead).unwrap() * 1_000
            );
        }
    }
}

#[test]
fn ranks_whose_collectives_do_not_end_together_are_not_compared() {
    let diagnosis = of_ranks(vec![rank(0, 2, 0, 0, false), rank(1, 2, 4_000, 0, true)]);
    // What stands out in one file alone is still told.
    assert_eq!(
        found(&diagnosis.files[0].findings),
        [("outlier_collective", 1)]
    );
    assert_eq!(found(&diagnosis.files[1].findings), []);
}

#[test]
fn ranks_of_two_jobs_are_compared_within_their_own() {
    // Two pairs that know nothing of each other, 0.3 ms apart in every other collective.
    let diagnosis = of_ranks(vec![
        rank(0, 4, 0, 0, false),
        rank(1, 4, 2_000, 0, false),
        rank(2, 4, 0, 0, true),
        rank(3, 4, 4_000, 0, true),
    ]);
    let skewed: Vec<(Option<i64>, &str)> = diagnosis
        .files
        .iter()
        .flat_map(|file| file.findings.iter().map(|finding| (file.rank, finding)))
        .filter(|(_, finding)| finding.code == "start_skew")
        .map(|(rank, finding)| (rank, finding.first_name.as_deref().unwrap()))
        .collect();
    assert_eq!(
        skewed,
        [(Some(0), "waits for rank 1"), (Some(2), "waits for rank 3")]
    );
}

#[test]
fn what_is_wrong_with_the_ranks_of_a_run_is_told_about_the_run() {
    let plain = |number: u64| rank(number, 4, 4_000, 0, false);
    let diagnosis = of_ranks(vec![plain(0), plain(1), plain(1)]);
    let run = &diagnosis.runs[0];
    assert_eq!(
        found(&run.findings),
        [("duplicate_rank", 2), ("missing_ranks", 2)]
    );
    assert_eq!(run.findings[1].share, Some(0.5));
    for file in &diagnosis.files {
        assert_eq!(words(&file.verdict), "not for comparison across ranks");
    }
    // A file of its own is what it is.
    let alone = of_ranks(vec![plain(0)]);
    assert_eq!(found(&alone.runs[0].findings), [("missing_ranks", 3)]);
    assert_eq!(words(&alone.files[0].verdict), "trustworthy");

    let copies = of_files(&[
        ("r0.1700000000001.pt.trace.json", plain(0)),
        ("r0.1700000000001.pt.trace.json.gz", gzip(&plain(0))),
    ]);
    assert_eq!(
        found(&copies.runs[0].findings),
        [("duplicate_capture", 2), ("missing_ranks", 3)]
    );
}

/// What our own runs are known to have: code that was compiled, a range that was never closed (which
/// old releases do not tell), and names that make the file no JSON.
fn expected(run: &corpus::Run) -> Judgement {
    let open = run.variant == "open_range" && !run.name.starts_with("2.1.");
    if !run.strict_json {
        Judgement::NotUsable
    } else if run.variant.starts_with("compile") || open {
        Judgement::UsableWithCare
    } else {
        Judgement::Trustworthy
    }
}

#[test]
fn our_own_runs_are_trustworthy_but_for_known_reasons() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut wrong = Vec::new();
    for run in corpus::runs(&corpus) {
        let diagnosis = diagnose(&run.path).unwrap_or_else(|error| panic!("{error}"));
        if diagnosis.verdict != expected(&run) {
            let verdict = words(&diagnosis.files[0].verdict);
            wrong.push(format!("{} ({}): {verdict}", run.name, run.variant));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
