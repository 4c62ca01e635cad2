//! Laws: how a trace is stored, cut or read never changes an answer, and sums add up exactly.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use tempfile::TempDir;
use tracekit::attribute::AttributeOptions;
use tracekit::ingest::{IngestOptions, Reader};

use crate::support::answer::{
    answer, attribution, comparable, differences, json, read_as, stored, without,
};
use crate::support::builder::{Content, Layout, build, few, plans};
use crate::support::seeded::Seeded;
use crate::support::{content, corpus, files_under, gzip, laws, minify, package, zstd};

/// A trace in a folder of its own, and what the library says about it.
struct Bench {
    folder: TempDir,
    plain: PathBuf,
    want: Value,
}

impl Bench {
    fn new(trace: &Content) -> Self {
        Self::of_bytes(&trace.write(Layout::Native))
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let folder = TempDir::new().unwrap();
        let plain = stored(folder.path(), "plain", "rank0.json", bytes);
        let want = comparable(answer(&plain));
        Self {
            folder,
            plain,
            want,
        }
    }

    fn store(&self, variant: &str, file: &str, bytes: &[u8]) -> PathBuf {
        stored(self.folder.path(), variant, file, bytes)
    }

    fn same(&self, got: Value, what: &str) -> Result<(), TestCaseError> {
        let found = differences(&self.want, &comparable(got));
        prop_assert!(
            found.is_empty(),
            "{what} changes the answer:\n{}",
            found.join("\n")
        );
        Ok(())
    }
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn sums_add_up_at_every_level(plan in plans()) {
        let bench = Bench::new(&build(&plan));
        let found = laws::broken(&bench.want);
        prop_assert!(found.is_empty(), "broken laws:\n{}", found.join("\n"));
    }

    #[test]
    fn the_number_of_threads_changes_nothing(plan in plans()) {
        let bench = Bench::new(&build(&plan));
        for threads in [1, 2, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            bench.same(pool.install(|| answer(&bench.plain)), &format!("{threads} threads"))?;
        }
    }

    #[test]
    fn the_sizes_of_chunks_and_segments_change_nothing(
        plan in plans(),
        chunk_bytes in 1..5_000usize,
        segment_bytes in 1..20_000usize,
        block_bytes in 1..20_000usize,
    ) {
        let bench = Bench::new(&build(&plan));
        let text = build(&plan).write(Layout::Native);
        let stored = [
            ("plain", bench.plain.clone()),
            ("gzip", bench.store("gzip", "rank0.json.gz", &gzip(&text))),
            ("zstd", bench.store("zstd", "rank0.json.zst", &zstd(&text))),
        ];
        for reader in [Reader::Auto, Reader::Text] {
            for mmap in [true, false] {
                let options = IngestOptions {
                    mmap,
                    reader,
                    chunk_bytes,
                    segment_bytes,
                    block_bytes,
                    max_content: u64::MAX,
                };
                for (how, path) in &stored {
                    bench.same(read_as(path, options), &format!("{how} by {options:?}"))?;
                }
            }
        }
    }

    #[test]
    fn white_space_and_compression_change_nothing(plan in plans()) {
        let trace = build(&plan);
        let bench = Bench::new(&trace);
        for layout in [Layout::Minified, Layout::OneLine, Layout::Pretty] {
            let bytes = trace.write(layout);
            let path = bench.store(&format!("{layout:?}"), "rank0.json", &bytes);
            bench.same(answer(&path), &format!("{layout:?}"))?;
            let (front, back) = bytes.split_at(bytes.len() / 3);
            for (name, pack) in [("gz", gzip as fn(&[u8]) -> Vec<u8>), ("zst", zstd)] {
                let parts = [pack(front), pack(back)].concat();
                let path = bench.store(&format!("{layout:?}.{name}"), &format!("rank0.json.{name}"), &parts);
                bench.same(answer(&path), &format!("{layout:?} as {name} in two parts"))?;
            }
        }
    }

    #[test]
    fn the_order_of_events_changes_nothing(plan in plans(), seed in any::<u64>()) {
        let mut trace = build(&plan);
        let bench = Bench::new(&trace);
        Seeded::new(seed).shuffle(&mut trace.events);
        let path = bench.store("shuffled", "rank0.json", &trace.write(Layout::Native));
        bench.same(answer(&path), "another order")?;
    }

    #[test]
    fn repeated_metadata_changes_nothing(plan in plans()) {
        let mut trace = build(&plan);
        let mut bench = Bench::new(&trace);
        // The elements of the event array are counted whatever they are.
        bench.want = without(bench.want, "inputs", "events");
        let names: Vec<_> = trace.events.iter().filter(|event| event[0].1 == "\"M\"").cloned().collect();
        trace.events.extend(names);
        let path = bench.store("repeated", "rank0.json", &trace.write(Layout::Native));
        bench.same(without(answer(&path), "inputs", "events"), "names given twice")?;
    }

    #[test]
    fn the_timeline_is_the_one_a_slow_program_finds(plan in plans()) {
        let trace = build(&plan);
        let bench = Bench::new(&trace);
        let slow = slow::timelines(&trace);
        let devices: Vec<Value> = bench.want["ranks"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|rank| rank["devices"].as_array().unwrap().clone())
            .collect();
        let repaired = bench.want["health"]
            .as_array()
            .unwrap()
            .iter()
            .any(|finding| finding["code"] == "lane_overlap_repaired");
        prop_assume!(!repaired);
        prop_assert_eq!(devices.len(), slow.len());
        for (got, want) in devices.iter().zip(slow) {
            let line = &got["timeline"];
            for (key, ns) in want.columns() {
                prop_assert_eq!(line[key].as_i64(), Some(ns), "{} of device {}", key, &got["device"]);
            }
            prop_assert_eq!(got["totals"]["total"]["sum_ns"].as_i64(), Some(want.sum));
        }
    }
}

#[test]
fn random_traces_have_what_the_laws_are_about() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..120 {
        let plan = plans().new_tree(&mut runner).unwrap().current();
        let answer = Bench::new(&build(&plan)).want;
        let count = |place: &Value| place.as_i64().unwrap_or(0) > 0;
        let finding = |code: &str| {
            let mut findings = answer["health"].as_array().unwrap().iter();
            findings.any(|finding| finding["code"] == code)
        };
        let devices = answer["ranks"][0]["devices"].as_array().unwrap();
        for (what, there) in [
            ("forward", count(&answer["totals"]["forward"]["sum_ns"])),
            ("backward", count(&answer["totals"]["backward"]["sum_ns"])),
            ("recompute", count(&answer["totals"]["recompute"]["sum_ns"])),
            ("optimizer", count(&answer["totals"]["optimizer"]["sum_ns"])),
            ("other", count(&answer["totals"]["other"]["sum_ns"])),
            (
                "pre_window",
                count(&answer["totals"]["pre_window"]["sum_ns"]),
            ),
            ("unlinked", count(&answer["totals"]["unlinked"]["sum_ns"])),
            (
                "graphs",
                answer["totals"]["total"]["launches"]
                    != answer["coverage"]["linked_by"]["correlation"],
            ),
            ("overlaps", finding("lane_overlap")),
            ("repairs", finding("lane_overlap_repaired")),
            ("inferred phases", finding("phases_inferred")),
            ("work before its launch", finding("work_before_launch")),
            ("two devices", devices.len() == 2),
            ("no device", devices.is_empty()),
            (
                "steps",
                devices
                    .iter()
                    .any(|device| device["steps"].as_array().unwrap().len() > 1),
            ),
        ] {
            *seen.entry(what).or_default() += usize::from(there);
        }
    }
    println!("{seen:?}");
    let rare: Vec<_> = seen.iter().filter(|(_, times)| **times < 3).collect();
    assert!(
        rare.is_empty(),
        "the random traces hardly ever have {rare:?}"
    );
}

#[test]
fn real_traces_obey_the_laws_however_they_are_read() {
    for path in files_under(&package("fixtures/traces")) {
        let bytes = content(&path);
        let bench = Bench::of_bytes(&bytes);
        assert_eq!(
            laws::broken(&bench.want),
            Vec::<String>::new(),
            "{}",
            path.display()
        );
        let minified = bench.store("minified", "rank0.json", &minify(&bytes));
        let zipped = bench.store("zipped", "rank0.json.gz", &gzip(&bytes));
        let small = IngestOptions {
            chunk_bytes: 3_000,
            segment_bytes: 50_000,
            ..IngestOptions::default()
        };
        let text = IngestOptions {
            reader: Reader::Text,
            ..IngestOptions::default()
        };
        bench
            .same(read_as(&zipped, small), "gzip in small chunks")
            .unwrap();
        bench
            .same(read_as(&bench.plain, small), "small segments")
            .unwrap();
        bench
            .same(read_as(&bench.plain, text), "the text reader")
            .unwrap();
        bench.same(answer(&minified), "no white space").unwrap();
    }
}

#[test]
fn every_trace_of_the_corpus_obeys_the_laws() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut analysed = 0;
    let mut wrong = Vec::new();
    for path in corpus::traces(&corpus) {
        let Ok(attribution) = attribution(&path, &AttributeOptions::default()) else {
            continue;
        };
        analysed += 1;
        let found = laws::broken(&json(&attribution));
        wrong.extend(
            found
                .into_iter()
                .take(3)
                .map(|law| format!("{}: {law}", path.display())),
        );
    }
    println!("{analysed} traces of the corpus were analysed");
    assert!(
        analysed >= 200,
        "only {analysed} traces of the corpus were analysed"
    );
    assert!(wrong.is_empty(), "broken laws:\n{}", wrong.join("\n"));
}

/// The device timeline by brute force: every stretch between two neighbouring starts and ends.
mod slow {
    use std::collections::BTreeMap;

    use crate::support::builder::Content;
    use crate::support::reference::nanoseconds;

    #[derive(Default)]
    pub(super) struct Timeline {
        window: i64,
        compute: i64,
        communication: i64,
        overlap: i64,
        exposed: [i64; 3],
        idle: i64,
        pub(super) sum: i64,
    }

    impl Timeline {
        pub(super) fn columns(&self) -> [(&'static str, i64); 8] {
            [
                ("window_ns", self.window),
                ("compute_ns", self.compute),
                ("communication_ns", self.communication),
                ("overlap_ns", self.overlap),
                ("exposed_communication_ns", self.exposed[0]),
                ("exposed_memcpy_ns", self.exposed[1]),
                ("exposed_memset_ns", self.exposed[2]),
                ("idle_ns", self.idle),
            ]
        }
    }

    pub(super) fn timelines(trace: &Content) -> Vec<Timeline> {
        let mut devices: BTreeMap<i64, Vec<(i64, i64, usize)>> = BTreeMap::new();
        for event in &trace.events {
            let get = |key: &str| {
                event
                    .iter()
                    .find(|(name, _)| *name == key)
                    .map(|(_, value)| value.as_str())
            };
            let class = match get("cat") {
                Some("\"kernel\"") if get("name").unwrap().contains("nccl") => 1,
                Some("\"kernel\"") => 0,
                Some("\"gpu_memcpy\"") => 2,
                Some("\"gpu_memset\"") => 3,
                _ => continue,
            };
            let start = nanoseconds(get("ts").unwrap()).unwrap();
            let end = start + nanoseconds(get("dur").unwrap()).unwrap();
            devices
                .entry(get("pid").unwrap().parse().unwrap())
                .or_default()
                .push((start, end, class));
        }
        devices.into_values().map(|work| timeline(&work)).collect()
    }

    fn timeline(work: &[(i64, i64, usize)]) -> Timeline {
        let mut cuts: Vec<i64> = work
            .iter()
            .flat_map(|(start, end, _)| [*start, *end])
            .collect();
        cuts.sort_unstable();
        let mut line = Timeline {
            window: cuts[cuts.len() - 1] - cuts[0],
            sum: work.iter().map(|(start, end, _)| end - start).sum(),
            ..Timeline::default()
        };
        for pair in cuts.windows(2) {
            let mut active = [false; 4];
            for (_, _, class) in work
                .iter()
                .filter(|(start, end, _)| *start <= pair[0] && pair[1] <= *end)
            {
                active[*class] = true;
            }
            let length = pair[1] - pair[0];
            line.compute += if active[0] { length } else { 0 };
            line.communication += if active[1] { length } else { 0 };
            line.overlap += if active[0] && active[1] { length } else { 0 };
            match active {
                [true, ..] => {}
                [_, true, ..] => line.exposed[0] += length,
                [_, _, true, _] => line.exposed[1] += length,
                [_, _, _, true] => line.exposed[2] += length,
                _ => line.idle += length,
            }
        }
        line
    }
}
