//! What is wrong with files that programs have really written: each kind with what becomes of it
//! without `--salvage` (refused at its byte, or read and counted) and with it (what is kept).

use std::fmt::Write as _;

use serde_json::Value;
use tempfile::TempDir;
use tracekit::attribute::AttributeOptions;

use crate::doctor::{trace, trace_with, with};
use crate::support::answer::{attribution, json, salvaged};
use crate::support::gzip;

/// A kind of fault, a file that has it, and what is said about the file without and with `--salvage`.
#[derive(Clone)]
struct Fault {
    /// Which writer did it, and when.
    kind: &'static str,
    content: Vec<u8>,
    plain: &'static str,
    salvaged: &'static str,
}

/// What is said about a file: `5 events, code count, …` and what was skipped, or why it is refused.
fn outcome(answer: tracekit::Result<Value>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return error.reason(),
    };
    let input = &answer["inputs"][0];
    let mut line = format!("{} events", input["events"]);
    for entry in answer["health"].as_array().unwrap() {
        let code = entry["code"].as_str().unwrap();
        write!(line, ", {code} {}", entry["count"]).unwrap();
    }
    assert_eq!(input["partial"], input.get("lost").is_some());
    if let Some(lost) = input.get("lost") {
        let ranges: Vec<String> = lost["ranges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| format!("{}..{}", range[0], range[1]))
            .collect();
        write!(line, "; without {}", ranges.join(" ")).unwrap();
        if let Some(damage) = lost["damage"].as_str() {
            write!(line, " {damage}").unwrap();
        }
    }
    line
}

/// A whole trace with one more event, of this name as it stands in the file.
fn named(name: &[u8]) -> Vec<u8> {
    let content = String::from_utf8(with(r#"{"ph":"M","name":"@"},{"ph":"M"}"#)).unwrap();
    let (before, behind) = content.split_once('@').unwrap();
    [before.as_bytes(), name, behind.as_bytes()].concat()
}

/// A whole trace with one more event.
fn event(text: &str) -> Vec<u8> {
    with(&format!("{text},{{\"ph\":\"M\"}}"))
}

fn cut_at(text: &str) -> Vec<u8> {
    let content = String::from_utf8(trace("")).unwrap();
    let end = content.find(text).unwrap() + text.len();
    content.as_bytes()[..end].to_vec()
}

/// A fault that does no harm: the same with and without.
fn read(kind: &'static str, content: Vec<u8>, said: &'static str) -> Fault {
    Fault {
        kind,
        content,
        plain: said,
        salvaged: said,
    }
}

fn texts() -> Vec<Fault> {
    vec![
        read(
            "raw backslashes in names, as in paths of Windows (until 2023-04, legacy exporter until 2026-07)",
            named(br"C:\cuda\Users"),
            "6 events, invalid_escape 1",
        ),
        Fault {
            kind: "unescaped quotes in names (Python frames, until 2026-07)",
            content: named(br#"a "b" c"#),
            plain: "expected `,` or `}` at byte 453",
            salvaged: "5 events, salvaged 1; without 432..460",
        },
        read(
            "raw newlines in names (until 2024-03)",
            named(b"a\nb"),
            "6 events, control_characters 1",
        ),
        read(
            "other control characters in names (until 2025-01)",
            named(b"a\x01b"),
            "6 events, control_characters 1",
        ),
        read(
            "bytes that are not UTF-8 (until 2021-03, inductor 2024)",
            named(b"a\xff\xfeb"),
            "6 events, invalid_utf8 1",
        ),
        read(
            "names replaced by `unknown` (since 2025-01)",
            named(b"unknown"),
            "6 events",
        ),
    ]
}

fn tokens() -> Vec<Fault> {
    vec![
        read(
            "bare N/A, inf, nan and -nan (old device properties and occupancy)",
            trace_with(
                r#""deviceProperties":[{"id":0,"a":N/A,"b":inf}],"#,
                &format!("{}X 1/1 90 2 odd a=nan b=-nan", crate::doctor::STEP),
            ),
            "5 events, nonfinite_number 4",
        ),
        Fault {
            kind: "a key without its first quote (legacy exporter, 2020)",
            content: event(r#"{"ph":"M","name":"a",tid":7}"#),
            plain: "expected a key or `}` at byte 453",
            salvaged: "5 events, salvaged 1; without 432..461",
        },
        Fault {
            kind: "a missing comma between events (Kineto 2021)",
            content: event(r#"{"ph":"M"} {"ph":"M"}"#),
            plain: "expected `,` or `]` at byte 443",
            salvaged: "7 events, salvaged 1; without ",
        },
        Fault {
            kind: "a missing comma inside of an event (Kineto 2021)",
            content: event(r#"{"ph":"M" "name":"a"}"#),
            plain: "expected `,` or `}` at byte 442",
            salvaged: "5 events, salvaged 1; without 432..454",
        },
        read(
            "a comma too many behind the last member or event",
            event(r#"{"ph":"M",}"#),
            "6 events, trailing_comma 1",
        ),
        Fault {
            kind: "two commas between events",
            content: event(r#"{"ph":"M"},"#),
            plain: "expected a value at byte 443",
            salvaged: "6 events, salvaged 1; without 443..444",
        },
        Fault {
            kind: "empty args with a comma (Kineto 2021-04)",
            content: event(r#"{"ph":"M","args":{, }}"#),
            plain: "expected a key or `}` at byte 450",
            salvaged: "5 events, salvaged 1; without 432..455",
        },
        read(
            "a key twice in an object: the last one counts",
            event(r#"{"ph":"M","ph":"?","args":{"correlation":1},"args":{"correlation":2}}"#),
            "6 events, unknown_ph 1, duplicate_key 2",
        ),
        read(
            "a key twice in the document",
            trace_with(r#""schemaVersion":1,"#, crate::doctor::STEP),
            "4 events, duplicate_key 1",
        ),
        read(
            "the events twice in the document",
            trace_with(r#""traceEvents":[{"ph":"M"},{}],"#, crate::doctor::STEP),
            "4 events, replaced_events 2, duplicate_key 1",
        ),
    ]
}

fn ends() -> Vec<Fault> {
    let whole = trace("");
    let packed = gzip(&whole);
    let without = |end: &str| whole.strip_suffix(end.as_bytes()).unwrap().to_vec();
    vec![
        Fault {
            kind: "truncated inside of an event (killed, disk full)",
            content: cut_at("\"cat\":\"ker"),
            plain: "unexpected end of input at byte 352",
            salvaged: "3 events, salvaged 1, launches_without_work 1, no_device_work 1; without 332..352 its end is missing",
        },
        Fault {
            kind: "truncated between events",
            content: cut_at("}},"),
            plain: "unexpected end of input at byte 129",
            salvaged: "1 events, salvaged 1, no_device_work 1; without  its end is missing",
        },
        Fault {
            kind: "without the last two brackets",
            content: without("]}"),
            plain: "unexpected end of input at byte 431",
            salvaged: "4 events, salvaged 1; without  its end is missing",
        },
        Fault {
            kind: "without the last bracket",
            content: without("}"),
            plain: "unexpected end of input at byte 432",
            salvaged: "4 events, salvaged 1; without  its end is missing",
        },
        Fault {
            kind: "truncated before the events",
            content: cut_at("{\"schemaVersion\":1"),
            plain: "unexpected end of input at byte 18",
            salvaged: "not a Chrome/Kineto trace: no traceEvents array",
        },
        Fault {
            kind: "compressed and truncated",
            content: packed[..packed.len() - 30].to_vec(),
            plain: "gzip: unexpected end of the compressed data at byte 220",
            salvaged: "3 events, salvaged 1, launches_without_work 1, no_device_work 1; without 332..378 gzip: unexpected end of the compressed data at byte 220",
        },
        Fault {
            kind: "nothing at all",
            content: Vec::new(),
            plain: "not a Chrome/Kineto trace: empty file",
            salvaged: "not a Chrome/Kineto trace: empty file",
        },
    ]
}

fn values() -> Vec<Fault> {
    let window =
        r#"{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":999999999999999}"#;
    let far = "X 1/1 999999999999 2 Record Window End";
    let decreasing = "
        kernel 0/7 20 60 gemm corr=100
        launch 1/1 10 5  cudaLaunchKernel corr=100
        op     1/1 5  80 aten::mm
        note   1/1 0  100 forward
    ";
    vec![
        read(
            "integers above 2^53 and of 64 bits without a sign (addresses, flow ids of Ascend)",
            event(
                r#"{"ph":"s","cat":"ac2g","id":18446744073709551615,"ts":1},{"ph":"i","name":"[memory]","ts":1,"args":{"Addr":18446744073709551616,"Bytes":-9223372036854775808}}"#,
            ),
            "7 events",
        ),
        read(
            "times in strings (Ascend)",
            event(r#"{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":"7.125","dur":"1"}"#),
            "6 events",
        ),
        read("`Record Window End` days later (2021-22)", event(window), "6 events"),
        read(
            "an event days later",
            trace(far),
            "5 events, absurd_time 1",
        ),
        read("times that go down: nothing is sorted", trace_with("", decreasing), "4 events"),
        read(
            "a second file without events, of a schedule that is not repeated",
            trace_with("", "instant 0/0 3 - Iteration Start: PyTorch Profiler\nnote 1/1 1 2 ProfilerStep#3"),
            "2 events, empty_capture 1, no_device_work 1",
        ),
        read(
            "metadata only",
            br#"{"traceEvents":[{"ph":"M","name":"process_name","pid":0,"args":{"name":"python"}}]}"#.to_vec(),
            "1 events, empty_capture 1, no_device_work 1",
        ),
        read("host only", trace_with("", "note 1/1 0 9 forward\nop 1/1 1 2 aten::mm"), "2 events, no_device_work 1"),
        read(
            "device only",
            trace_with("", "kernel 0/7 3 4 gemm corr=5"),
            "1 events, unlinked_device_work 1, no_operators 1",
        ),
        read("large: more events than one block of compressed content holds", large(), "80004 events"),
    ]
}

/// About ten megabytes of events, compressed.
fn large() -> Vec<u8> {
    let mut lines = String::from(crate::doctor::STEP);
    for number in 0..80_000 {
        writeln!(lines, "kernel 0/7 {} 1 gemm corr=100", 100 + number).unwrap();
    }
    gzip(&trace_with("", &lines))
}

#[test]
fn every_fault_that_writers_made_has_its_outcome_with_and_without_salvage() {
    let mut wrong = Vec::new();
    for fault in [texts(), tokens(), ends(), values()].concat() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("trace.pt.trace.json");
        std::fs::write(&path, &fault.content).unwrap();
        let plain = attribution(&path, &AttributeOptions::default());
        for (flag, want, answer) in [
            ("without", fault.plain, plain),
            ("with", fault.salvaged, salvaged(&path)),
        ] {
            let got = outcome(answer.map(|answer| json(&answer)));
            if got != want {
                let content = String::from_utf8_lossy(&fault.content);
                let shown: String = content.chars().take(700).collect();
                wrong.push(format!(
                    "{}, {flag} --salvage:\nwant {want}\ngot  {got}\nin   {shown}\n",
                    fault.kind
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
