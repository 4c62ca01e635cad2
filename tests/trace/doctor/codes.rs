//! Every finding: which input has it, and what `--salvage` makes of that input, whole and cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use tracekit::HealthCode;
use tracekit::attribute::AttributeOptions;

use super::{Case, captures, contents, diagnose, launches, notes, quirks, ranks, times};
use crate::support::answer::{attribution, json, salvaged};

/// Files by their names in one folder, and the findings that they have together.
type Folder = (Vec<(&'static str, Vec<u8>)>, &'static [&'static str]);

fn folders() -> Vec<Folder> {
    let mut cut = super::trace("");
    cut.truncate(300);
    let rank = |number, world, start, ahead| ranks::rank(number, world, start, ahead, false);
    vec![
        (
            vec![("a.pt.trace.json", super::trace("")), ("b.json", cut)],
            &["failed_input"],
        ),
        (
            vec![
                ("r0.json", rank(0, 4, 0, 0)),
                ("r1.json", rank(1, 4, 4_000, 7_000_000)),
                ("r2.json", rank(1, 4, 4_000, 7_000_000)),
            ],
            &[
                "start_skew",
                "clock_offset",
                "duplicate_rank",
                "missing_ranks",
            ],
        ),
        (
            vec![
                ("r0.json", ranks::devices(0, &(0..257).collect::<Vec<_>>())),
                ("r1.json", ranks::devices(1, &[0, 256])),
            ],
            &["collectives_not_compared"],
        ),
        (
            vec![
                ("r0.1700000000001.pt.trace.json", rank(0, 1, 0, 0)),
                ("r0.1700000000001.pt.trace.json.gz", {
                    crate::support::gzip(&rank(0, 1, 0, 0))
                }),
            ],
            &["duplicate_capture"],
        ),
    ]
}

/// The findings that are about several files: no single trace has them.
pub(crate) fn of_several_files() -> impl Iterator<Item = &'static str> {
    folders()
        .into_iter()
        .flat_map(|(_, codes)| codes.iter().copied())
}

fn all_cases() -> Vec<Case> {
    [
        contents(),
        launches(),
        times(),
        captures(),
        quirks(),
        notes::cases(),
    ]
    .concat()
}

/// A folder with these files.
fn stored(files: &[(&str, Vec<u8>)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// The findings of an attribution, with their counts.
fn health(answer: &Value) -> BTreeMap<String, u64> {
    let entries = answer["health"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            let code = entry["code"].as_str().unwrap().to_owned();
            (code, entry["count"].as_u64().unwrap())
        })
        .collect()
}

/// The attribution of `path` without and with `--salvage`.
fn answers(path: &Path) -> [tracekit::Result<Value>; 2] {
    let plain = attribution(path, &AttributeOptions::default());
    [plain, salvaged(path)].map(|answer| answer.map(|answer| json(&answer)))
}

#[test]
fn every_code_has_an_input_that_has_it_with_and_without_salvage() {
    let mut seen = BTreeSet::new();
    for (content, findings, _) in all_cases() {
        let folder = stored(&[("trace.json", content)]);
        let [plain, salvaged] = answers(&folder.path().join("trace.json"));
        let plain = plain.unwrap_or_else(|error| panic!("{findings}: {error}"));
        assert_eq!(salvaged.unwrap(), plain, "{findings}");
        seen.extend(health(&plain).into_keys());
    }
    for (files, codes) in folders() {
        let folder = stored(&files);
        let [plain, salvaged] = answers(folder.path()).map(Result::unwrap);
        // What is damaged without it is there, and said to be partial, with it.
        let damaged = codes.contains(&"failed_input");
        let mut want = health(&plain);
        want.remove("failed_input");
        let mut got = health(&salvaged);
        assert_eq!(got.remove("salvaged").is_some(), damaged, "{codes:?}");
        if damaged {
            // The part that was cut off had the work of the launch that is left.
            got.remove("launches_without_work");
            got.remove("no_device_work");
        }
        assert_eq!(got, want, "{codes:?}");
        let diagnosis = diagnose(folder.path()).unwrap();
        let of_runs = diagnosis.runs.iter().flat_map(|run| &run.findings);
        let of_files = diagnosis.files.iter().flat_map(|file| &file.findings);
        let told: BTreeSet<&str> = of_runs
            .chain(of_files)
            .map(|finding| finding.code)
            .collect();
        for code in codes {
            assert!(told.contains(code), "{code} in {told:?}");
            seen.insert((*code).to_owned());
        }
    }
    let all: BTreeSet<String> = HealthCode::ALL
        .iter()
        .map(|code| code.as_str().to_owned())
        .collect();
    let missing: Vec<&String> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "no input here has {missing:?}");
}

/// A trace that has lost its last bracket is refused; with `--salvage`, it has every finding of the
/// whole, and one more.
#[test]
fn every_finding_is_still_there_in_a_salvaged_trace() {
    let mut looked_at = 0;
    for (content, findings, _) in all_cases() {
        // The array form may end without its bracket, and a name may be no text.
        let Some(cut) = content.strip_suffix(b"]}") else {
            continue;
        };
        looked_at += 1;
        let folder = stored(&[("cut.json", cut.to_vec()), ("whole.json", content.clone())]);
        let [refused, salvaged] = answers(&folder.path().join("cut.json"));
        let refused = refused.expect_err(findings);
        assert_eq!(refused.offset(), Some(cut.len() as u64), "{findings}");
        let salvaged = salvaged.unwrap();
        assert_eq!(salvaged["inputs"][0]["partial"], true, "{findings}");
        let mut got = health(&salvaged);
        assert_eq!(got.insert("salvaged".to_owned(), 1), Some(1), "{findings}");
        let [whole, _] = answers(&folder.path().join("whole.json"));
        let mut want = health(&whole.unwrap());
        want.insert("salvaged".to_owned(), 1);
        assert_eq!(got, want, "{findings}");
    }
    assert!(looked_at > 60, "only {looked_at} traces");
}
