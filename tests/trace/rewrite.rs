//! Traces written again: the result is JSON, says the same, and does not change when it is rewritten
//! once more.

use std::path::PathBuf;

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;
use tempfile::TempDir;
use tracekit::attribute::{AttributeOptions, StepRange};
use tracekit::ingest::IngestOptions;
use tracekit::rewrite::{
    RedactOptions, Redacted, RepairOptions, Repaired, SliceOptions, Sliced, redact, repair, slice,
};
use tracekit::{Error, ErrorKind, HealthCode, Trace};

use crate::support::answer::{attribution, differences, json, stored};
use crate::support::builder::{Layout, Plan, build, few, plans};
use crate::support::seeded::Seeded;
use crate::support::{content, files_under, gzip, package, zstd};

pub(crate) type Written<T> = Result<(T, Vec<u8>), Error>;

fn repaired_with(stored: &[u8], options: &RepairOptions) -> Written<Repaired> {
    let mut out = Vec::new();
    let done = repair(stored, &mut out, options, &|_, _| {})?;
    Ok((done, out))
}

fn repaired(stored: &[u8]) -> Written<Repaired> {
    repaired_with(stored, &RepairOptions::default())
}

fn clipped(stored: &[u8]) -> Written<Repaired> {
    let mut options = RepairOptions::default();
    options.clip = true;
    repaired_with(stored, &options)
}

pub(crate) fn salvaged(stored: &[u8]) -> Written<Repaired> {
    let mut options = RepairOptions::default();
    options.salvage = true;
    repaired_with(stored, &options)
}

fn sliced(stored: &[u8], options: &SliceOptions) -> Written<Sliced> {
    let mut out = Vec::new();
    let done = slice(stored, &mut out, options, &|_, _| {})?;
    Ok((done, out))
}

fn whole() -> SliceOptions {
    let mut options = SliceOptions::default();
    options.time = Some("..".parse().unwrap());
    options
}

fn steps(first: u64, last: u64) -> SliceOptions {
    let mut options = SliceOptions::default();
    options.steps = Some(StepRange { first, last });
    options
}

pub(crate) fn redacted(stored: &[u8]) -> Written<Redacted> {
    let mut out = Vec::new();
    let done = redact(stored, &mut out, &RedactOptions::default(), &|_, _| {})?;
    Ok((done, out))
}

pub(crate) fn assert_json(text: &[u8]) {
    let read = serde_json::from_slice::<IgnoredAny>(text);
    let read = read.map(drop).map_err(|error| error.to_string());
    assert_eq!(read, Ok(()), "{}", String::from_utf8_lossy(text));
}

/// What the attribution of a trace says, without what it says about the file.
fn numbers_of(stored_bytes: &[u8], options: &AttributeOptions) -> Value {
    let folder = TempDir::new().unwrap();
    let path = stored(folder.path(), "trace", "rank0.json", stored_bytes);
    let answer = attribution(&path, options).unwrap_or_else(|error| panic!("{error}"));
    let mut answer = json(&answer);
    for key in ["inputs", "health", "options"] {
        answer.as_object_mut().unwrap().remove(key);
    }
    answer
}

pub(crate) fn numbers(stored_bytes: &[u8]) -> Value {
    numbers_of(stored_bytes, &AttributeOptions::default())
}

pub(crate) fn same(what: &str, want: &Value, got: &Value) {
    let found = differences(want, got);
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// Every trace of the fixtures, by path.
fn fixtures() -> Vec<PathBuf> {
    let files = ["golden", "hostile", "traces"]
        .iter()
        .flat_map(|folder| files_under(&package("fixtures").join(folder)));
    let files: Vec<PathBuf> = files
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            [".json", ".gz", ".zst"]
                .iter()
                .any(|end| name.ends_with(end))
        })
        .collect();
    assert!(files.len() > 60, "the fixtures are gone");
    files
}

/// The fixtures that can be read.
pub(crate) fn readable() -> Vec<(PathBuf, Vec<u8>)> {
    fixtures()
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .filter(|(_, bytes)| Trace::from_bytes(bytes, &IngestOptions::default()).is_ok())
        .collect()
}

pub(crate) fn golden(case: &str) -> Vec<u8> {
    content(&package("fixtures/golden").join(case).join("trace.json"))
}

#[test]
fn a_repaired_trace_is_json_and_says_the_same() {
    for (path, bytes) in readable() {
        let name = path.display().to_string();
        let (done, out) = repaired(&bytes).expect(&name);
        assert_json(&out);
        same(&name, &numbers(&bytes), &numbers(&out));
        let trace = Trace::from_bytes(&out, &IngestOptions::default()).expect(&name);
        assert_eq!(trace.events.len() as u64, done.events, "{name}");
        for code in [
            HealthCode::TrailingComma,
            HealthCode::ControlCharacters,
            HealthCode::InvalidUtf8,
            HealthCode::InvalidEscape,
            HealthCode::NonFiniteNumber,
            HealthCode::DuplicateKey,
            HealthCode::ByteOrderMark,
            HealthCode::UnterminatedArray,
        ] {
            assert_eq!(trace.health.get(code), 0, "{name}: {}", code.as_str());
        }
        let (again, twice) = repaired(&out).expect(&name);
        assert!(again.is_unchanged() && twice == out, "{name} changes again");
        if done.is_unchanged() {
            assert_eq!(out, content(&path), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_in_the_same_words() {
    let mut closed = 0;
    for path in fixtures() {
        let bytes = std::fs::read(&path).unwrap();
        let Err(want) = Trace::from_bytes(&bytes, &IngestOptions::default()) else {
            continue;
        };
        match repaired(&bytes) {
            Err(got) => assert_eq!(
                (got.kind(), got.reason()),
                (want.kind(), want.reason()),
                "{}",
                path.display()
            ),
            // Only brackets are missing.
            Ok((done, out)) => {
                assert_eq!(want.kind(), ErrorKind::Truncated);
                assert!(done.brackets > 0 && done.lost.count == 0);
                assert_json(&out);
                closed += 1;
            }
        }
    }
    assert_eq!(closed, 2, "cut-after-event.json and cut-after-events.json");
}

#[test]
fn whatever_is_left_of_a_broken_file_is_a_trace() {
    for path in fixtures() {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        match salvaged(&bytes) {
            Err(error) => {
                let reason = error.reason();
                assert!(
                    reason.starts_with("not a Chrome/Kineto trace"),
                    "{name}: {error}"
                );
            }
            Ok((done, out)) => {
                assert_json(&out);
                let trace = Trace::from_bytes(&out, &IngestOptions::default()).expect(&name);
                let notes = u64::from(out.starts_with(b"[") && done.lost.count > 0);
                assert_eq!(trace.events.len() as u64, done.events + notes, "{name}");
                let (again, twice) = repaired(&out).expect(&name);
                assert!(again.is_unchanged() && twice == out, "{name} changes again");
            }
        }
    }
}

#[test]
fn clipping_is_that_of_the_attribution() {
    for (path, bytes) in readable() {
        let name = path.display().to_string();
        let (done, out) = clipped(&bytes).expect(&name);
        assert_json(&out);
        same(&name, &numbers(&bytes), &numbers(&out));
        let (again, twice) = clipped(&out).expect(&name);
        assert!(again.is_unchanged() && twice == out, "{name} changes again");
        let is_clipped = path.parent().unwrap().ends_with("lane-overlap-repaired");
        assert_eq!(done.clipped > 0, is_clipped, "{name}");
    }
    let (_, out) = clipped(&golden("lane-overlap-repaired")).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("\"tracekit raw dur\": "), "{text}");
}

#[test]
fn a_slice_of_everything_says_the_same() {
    for (path, bytes) in readable() {
        let name = path.display().to_string();
        let (done, out) = sliced(&bytes, &whole()).expect(&name);
        assert_json(&out);
        assert_eq!(done.events, done.of, "{name}");
        same(&name, &numbers(&bytes), &numbers(&out));
    }
}

/// The numbers of the steps that a file names.
fn step_numbers(bytes: &[u8]) -> Vec<u64> {
    let trace = Trace::from_bytes(bytes, &IngestOptions::default()).unwrap();
    let mut numbers: Vec<u64> = trace
        .events
        .ids()
        .filter_map(|id| trace.name(id).strip_prefix("ProfilerStep#")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Checks that slices of steps have the sums that the whole has for these steps.
fn steps_are_the_same(name: &str, bytes: &[u8]) -> usize {
    let all = step_numbers(bytes);
    let mut ranges: Vec<(u64, u64)> = all.iter().map(|step| (*step, *step)).collect();
    if let (Some(first), Some(last)) = (all.first(), all.last()) {
        ranges.push((*first, *last));
    }
    for &(first, last) in &ranges {
        let mut options = AttributeOptions::default();
        options.steps = Some(StepRange { first, last });
        let want = numbers_of(bytes, &options);
        let (_, out) = match sliced(bytes, &steps(first, last)) {
            Ok(done) => done,
            // `ProfilerStep#N` on a device row, or an excluded one.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Usage, "{name}: {error}");
                continue;
            }
        };
        assert_json(&out);
        // Overlaps that are few in the whole may be many in a part.
        if clipped(&out).unwrap().0.clipped > 0 {
            continue;
        }
        let got = numbers_of(&out, &options);
        let what = format!("{name}: steps {first} to {last}");
        // Forward operators of any step confirm a replay: those that are not in the part do not.
        let weak = |answer: &Value| answer["recompute"]["weak"]["ops"].as_u64().unwrap();
        if weak(&got) > weak(&want) {
            let all = |answer: &Value| answer["recompute"]["ops"].as_u64().unwrap() + weak(answer);
            assert_eq!(all(&got), all(&want), "{what}");
            continue;
        }
        same(&what, &want["totals"], &got["totals"]);
        same(&what, &want["recompute"], &got["recompute"]);
        let sums = |answer: &Value| -> Vec<Value> {
            let ranks = answer["ranks"].as_array().unwrap();
            let devices = ranks
                .iter()
                .flat_map(|rank| rank["devices"].as_array().unwrap());
            let steps = devices.flat_map(|device| device["steps"].as_array().unwrap());
            let steps = steps.filter(|step| step["totals"]["total"]["events"] != 0);
            steps
                .map(|step| serde_json::json!([step["name"], step["totals"]]))
                .collect()
        };
        same(&what, &sums(&want).into(), &sums(&got).into());
        let host = |answer: &Value| answer["runs"][0]["host_phases"].clone();
        let selfs = |phases: Value| -> Value {
            let phases = phases.as_object().unwrap().clone();
            let phases = phases
                .into_iter()
                .map(|(phase, row)| (phase, row["self_ns"].clone()));
            phases.collect::<serde_json::Map<_, _>>().into()
        };
        same(&what, &selfs(host(&want)), &selfs(host(&got)));
    }
    ranges.len()
}

#[test]
fn slices_of_steps_have_the_sums_of_these_steps() {
    let mut checked = 0;
    for (path, bytes) in readable() {
        checked += steps_are_the_same(&path.display().to_string(), &bytes);
    }
    assert!(checked > 20, "only {checked} slices");
}

/// The `aten::gelu` of the first step takes no time and starts with a backward node, so it counts as in it,
/// and the forward of that step lacks it.
#[test]
fn a_replay_that_another_step_confirms_is_weak_without_that_step() {
    let plan = Plan {
        seed: 8_325_650_808_242_794_961,
        steps: 2,
        layers: 1,
        annotated: false,
        marked_steps: true,
        autograd_thread: false,
        checkpointed: true,
        devices: 0,
        streams: 1,
        irregular: false,
        fraction: false,
        base_time: false,
    };
    let bytes = build(&plan).write(Layout::Native);
    let ops = |bytes: &[u8]| {
        let recompute = &numbers(bytes)["recompute"];
        (
            recompute["ops"].as_u64().unwrap(),
            recompute["weak"]["ops"].as_u64().unwrap(),
        )
    };
    let (whole, weak) = ops(&bytes);
    assert!(whole > 0);
    assert_eq!(weak, 0);
    let first = step_numbers(&bytes)[0];
    let (_, part) = sliced(&bytes, &steps(first, first)).unwrap();
    let (whole, weak) = ops(&part);
    assert_eq!(whole, 0);
    assert!(weak > 0);
    steps_are_the_same("two steps", &bytes);
}

#[test]
fn a_slice_has_the_flows_and_names_of_its_events() {
    let text = r#"{"schemaVersion":1,"traceEvents":[
        {"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}},
        {"ph":"X","cat":"python_function","name":"train","pid":1,"tid":1,"ts":0,"dur":1000},
        {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":10,"dur":90},
        {"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":1,"ts":100,"dur":100},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":20,"dur":5,"args":{"correlation":1}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":120,"dur":5,"args":{"correlation":2}},
        {"ph":"s","cat":"ac2g","name":"ac2g","id":1,"pid":1,"tid":1,"ts":20},
        {"ph":"f","cat":"ac2g","name":"ac2g","id":1,"pid":0,"tid":7,"ts":150,"bp":"e"},
        {"ph":"s","cat":"ac2g","name":"ac2g","id":2,"pid":1,"tid":1,"ts":120},
        {"ph":"f","cat":"ac2g","name":"ac2g","id":2,"pid":0,"tid":7,"ts":300,"bp":"e"},
        {"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":1,"ts":20},
        {"ph":"f","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":1,"ts":120,"bp":"e"},
        {"ph":"X","cat":"kernel","name":"one","pid":0,"tid":7,"ts":150,"dur":9,"args":{"device":0,"stream":7,"correlation":1}},
        {"ph":"X","cat":"kernel","name":"two","pid":0,"tid":7,"ts":300,"dur":9,"args":{"device":0,"stream":7,"correlation":2}},
        {"ph":"B","cat":"cpu_op","name":"b","pid":1,"tid":2,"ts":150},
        {"ph":"E","name":"b","pid":1,"tid":2,"ts":950},
        {"ph":"B","cat":"cpu_op","name":"b","pid":1,"tid":2,"ts":970},
        {"ph":"E","name":"b","pid":1,"tid":2,"ts":980},
        {"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":30},
        {"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":130}
    ],"traceName":"x"}"#;
    let kept = |options: &SliceOptions| -> Vec<String> {
        let (_, out) = sliced(text.as_bytes(), options).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["traceName"], "x");
        let events = document["traceEvents"].as_array().unwrap();
        let label = |event: &Value| {
            format!(
                "{} {} {}",
                event["ph"].as_str().unwrap(),
                event["name"].as_str().unwrap(),
                event["ts"]
            )
        };
        events.iter().map(label).collect()
    };
    let second = [
        "M process_name null",
        "X train 0",
        "X ProfilerStep#2 100",
        "X cudaLaunchKernel 120",
        "s ac2g 120",
        "f ac2g 300",
        "X two 300",
        "B b 150",
        "E b 950",
        "i [memory] 130",
    ];
    // There are no phase annotations, and no step behind this one.
    assert_eq!(kept(&steps(2, 2)), second);
    assert!(kept(&steps(1, 1)).contains(&"X ProfilerStep#2 100".to_owned()));
    let mut time = SliceOptions::default();
    time.time = Some("100us..200us".parse().unwrap());
    assert_eq!(kept(&time), second);
    let mut kernels = SliceOptions::default();
    kernels.categories = vec!["KERNEL".to_owned(), "cuda_runtime".to_owned()];
    assert_eq!(kept(&kernels).len(), 1 + 4 + 4 + 2);
    time.categories = vec!["kernel".to_owned()];
    assert_eq!(kept(&time), ["M process_name null", "X two 300"]);

    for (wrong, reason) in [
        (
            steps(7, 9),
            "no such step; the trace has ProfilerStep#1 to ProfilerStep#2",
        ),
        (
            {
                let mut options = SliceOptions::default();
                options.time = Some("2ms..3ms".parse().unwrap());
                options
            },
            "no event is in that part; the trace is 0.001000 s long",
        ),
        (
            {
                let mut options = SliceOptions::default();
                options.categories = vec!["kernels".to_owned()];
                options
            },
            "no event is of category 'kernels'",
        ),
    ] {
        let error = sliced(text.as_bytes(), &wrong).unwrap_err();
        assert_eq!(
            (error.kind(), error.reason().as_str()),
            (ErrorKind::Usage, reason)
        );
    }
}

#[test]
fn a_slice_has_both_ends_of_what_belongs_together_or_none() {
    let events = |lines: &str| -> String {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let events: Vec<String> = lines
            .map(|line| {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let [ph, name, ts, rest @ ..] = &fields[..] else {
                    panic!("{line}")
                };
                let rest = [&[""][..], rest].concat().join(",");
                format!(r#"{{"ph":"{ph}","name":"{name}","ts":{ts},"pid":1,"tid":1{rest}}}"#)
            })
            .collect();
        format!("[{}]", events.join(",\n"))
    };
    let kept = |text: &str, options: &SliceOptions| -> Vec<String> {
        let (_, out) = sliced(text.as_bytes(), options).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        let events = document.as_array().unwrap().iter();
        let label = |event: &Value| {
            format!(
                "{} {} {}",
                event["ph"].as_str().unwrap(),
                event["name"].as_str().unwrap(),
                event["ts"]
            )
        };
        let is_own = |label: &String| !label.contains("tracekit") && !label.contains("first");
        events.map(label).filter(is_own).collect()
    };
    let part = |time: &str| {
        let mut options = SliceOptions::default();
        options.time = Some(time.parse().unwrap());
        options
    };
    let text = events(
        r#"
        X first 0 "dur":1
        X inside 120 "dur":5
        s own 10 "cat":"own","id":5
        f own 120 "cat":"own","id":5
        s own 130 "cat":"own","id":5
        t own 140 "cat":"own","id":5
        f own 150 "cat":"own","id":5
        s own 160 "cat":"own","id":6
        f own 300 "cat":"own","id":6
        s own 170 "cat":"other","id":6
        f own 180 "cat":"other","id":"6"
        b early 20 "cat":"a","id":1
        b inner 30 "cat":"a","id":1
        e inner 40 "cat":"a","id":1
        n mark 125 "cat":"a","id":1
        e early 130 "cat":"a","id":1
        b late 190 "cat":"a","id2":{"local":"0x1"}
        e late 400 "cat":"a","id2":{"local":"0x1"}
        b gone 210 "cat":"a","id2":{"local":"0x1"}
        e gone 220 "cat":"a","id2":{"local":"0x1"}
        b past 50 "cat":"b","id":1
        e past 60 "cat":"b","id":1
        S old 50 "cat":"b","id":2
        S other 55 "cat":"b","id":2
        T old 110 "cat":"b","id":2
        F other 90 "cat":"b","id":2
        F old 115 "cat":"b","id":2
        p lost 120 "cat":"b","id":3
        F lost 125 "cat":"b","id":3
        e nothing 130 "cat":"c","id":3
        ( context 50 "id":9
        ) context 120 "id":9
        "#,
    );
    assert_eq!(
        kept(&text, &part("100us..200us")),
        [
            "X inside 120",
            "s own 130",
            "t own 140",
            "f own 150",
            "s own 170",
            "f own 180",
            "b early 20",
            "n mark 125",
            "e early 130",
            "b late 190",
            "e late 400",
            "S old 50",
            "T old 110",
            "F old 115",
            "( context 50",
            ") context 120",
        ]
    );
    // Everything is everything, halves included.
    assert_eq!(kept(&text, &part("..")).len(), text.lines().count() - 1);

    // The end of a range that is not in the part is not, either, whatever else ends there.
    let text = events(
        r#"
        X first 0 "dur":1
        B a 10
        B b 120
        E b 150
        E a 150
        B c 160
        B d 90
        E d 90
        E c 300
        B e 310
        E c 300
        "#,
    );
    let (_, out) = sliced(text.as_bytes(), &part("105us..200us")).unwrap();
    let trace = Trace::from_bytes(&out, &IngestOptions::default()).unwrap();
    assert_eq!(trace.health.get(HealthCode::UnmatchedEnd), 0);
    assert_eq!(trace.health.get(HealthCode::UnclosedBegin), 0);
    let text = events("X first 0 \"dur\":1\n B a 10\n B b 120\n E b 150\n E a 150");
    assert_eq!(
        kept(&text, &part("100us..200us")),
        ["B a 10", "B b 120", "E b 150", "E a 150"]
    );
    let text = events("X first 0 \"dur\":1\n B b 120\n E b 150\n B a 130\n E a 150");
    assert_eq!(kept(&text, &part("100us..125us")), ["B b 120", "E b 150"]);
}

#[test]
fn compressed_content_of_many_blocks_gives_the_same_bytes() {
    let mut text = b"\xef\xbb\xbf{\"note\":\"a\x01b\",\"x\":1,\"traceEvents\":[".to_vec();
    let padding = "z".repeat(500);
    for number in 0..4_000 {
        let odd = if number % 7 == 0 {
            r"C:\code\x"
        } else {
            "name"
        };
        let frame = format!("/home/alice/p{}/x.py({number}): f", number % 50);
        text.extend_from_slice(
            format!(
                "\n{{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"{frame}\", \"ts\": {number}.5, \
                 \"dur\": 1, \"pid\": 1, \"tid\": 1, \"args\": {{\"a\": \"{odd}\", \"b\": [NaN, 1,], \"c\": \"{padding}\"}}}},"
            )
            .as_bytes(),
        );
    }
    // A piece that is longer than a block.
    text.extend_from_slice(
        format!("{{\"ph\":\"i\",\"name\":\"{}\"}},", "y".repeat(2 << 20)).as_bytes(),
    );
    text.extend_from_slice(b"],\"x\":2}");
    assert!(text.len() > 4 << 20);
    let mut part = SliceOptions::default();
    part.time = Some("1ms..3ms".parse().unwrap());
    let cut = &text[..text.len() - 2_400_000];
    let broken = [&text[..1 << 20], b"\"", &text[1 << 20..]].concat();
    for packed in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let plain = repaired(&text).unwrap();
        assert_json(&plain.1);
        assert!(repaired(&packed(&text)).unwrap().1 == plain.1);
        assert!(clipped(&packed(&text)).unwrap().1 == clipped(&text).unwrap().1);
        assert!(redacted(&packed(&text)).unwrap().1 == redacted(&text).unwrap().1);
        assert!(sliced(&packed(&text), &part).unwrap().1 == sliced(&text, &part).unwrap().1);
        assert!(salvaged(&packed(cut)).unwrap().1 == salvaged(cut).unwrap().1);
        let (done, out) = salvaged(&broken).unwrap();
        assert_eq!(done.lost.count, 1);
        assert!(salvaged(&packed(&broken)).unwrap().1 == out);
    }
}

#[test]
fn progress_only_grows_and_ends_at_the_total() {
    let bytes = golden("two-steps");
    let told = std::cell::RefCell::new(Vec::new());
    let tell = |done, total| told.borrow_mut().push((done, total));
    repair(&bytes, &mut Vec::new(), &RepairOptions::default(), &tell).unwrap();
    let told = told.into_inner();
    assert!(
        told.is_sorted() && told.iter().all(|(done, total)| done <= total),
        "{told:?}"
    );
    assert_eq!(
        told.last(),
        Some(&(2 * bytes.len() as u64, 2 * bytes.len() as u64))
    );
}

#[test]
fn a_slice_notes_what_it_kept_and_clipped() {
    let mut options = SliceOptions::default();
    options.categories = vec!["kernel".to_owned()];
    for (name, clips) in [
        ("checkpoint-non-reentrant", false),
        ("lane-overlap-repaired", true),
    ] {
        let (done, out) = sliced(&golden(name), &options).unwrap();
        assert_eq!(done.clipped > 0, clips, "{name}");
        let text: Value = serde_json::from_slice(&out).unwrap();
        let note = &text["tracekit_slice"];
        assert_eq!(note["events"].as_u64(), Some(done.events), "{note}");
        assert_eq!(note["of"].as_u64(), Some(done.of), "{note}");
        let noted = clips.then_some(done.clipped);
        assert_eq!(note["clipped_events"].as_u64(), noted, "{note}");
    }
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn random_traces_say_the_same_however_they_are_rewritten(plan in plans()) {
        let bytes = build(&plan).write(Layout::Native);
        let want = numbers(&bytes);
        for out in [
            repaired(&bytes).unwrap().1,
            clipped(&bytes).unwrap().1,
            sliced(&bytes, &whole()).unwrap().1,
            redacted(&bytes).unwrap().1,
        ] {
            assert_json(&out);
            same("rewritten", &want, &numbers(&out));
        }
        steps_are_the_same("random", &bytes);
    }

    #[test]
    fn what_is_left_of_a_damaged_trace_is_a_trace(plan in plans(), seed in any::<u64>()) {
        let mut bytes = build(&plan).write(Layout::OneLine);
        let mut random = Seeded::new(seed);
        for _ in 0..=random.below(6) {
            let at = random.index(bytes.len());
            match random.below(4) {
                0 => bytes[at] = b"\"{}[],:\\x\x01\xff"[random.index(11)],
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"\"{}[],:\\"[random.index(8)]),
                _ => bytes.truncate(at.max(bytes.len() - bytes.len() / 8)),
            }
        }
        let plain = salvaged(&bytes);
        let packed = salvaged(&gzip(&bytes));
        match (plain, packed) {
            (Ok((done, out)), Ok((_, other))) => {
                assert_json(&out);
                prop_assert!(out == other, "compression changes what is left");
                let trace = Trace::from_bytes(&out, &IngestOptions::default());
                prop_assert!(trace.is_ok(), "{:?}", trace.err());
                let (again, twice) = repaired(&out).unwrap();
                prop_assert!(again.is_unchanged() && twice == out);
                if let Ok((strict, same)) = repaired(&bytes) {
                    prop_assert_eq!(strict.events, done.events);
                    prop_assert!(same == out, "salvage changes what can be read");
                }
            }
            (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
            (a, b) => prop_assert!(false, "{:?} {:?}", a.err(), b.err()),
        }
    }
}
