//! What a file says about itself: the profiler's own log, and the notes of `repair` and `slice`.

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, StepRange};
use tracekit::ingest::IngestOptions;
use tracekit::rewrite::{RepairOptions, SliceOptions, repair, slice};
use tracekit::{HealthCode, Trace};

use super::{Case, STEP, check, found, of_trace, trace, trace_with, with, words};
use crate::rewrite::redacted;
use crate::support::answer::{attribution, json};
use crate::support::{gzip, zstd};

const ALL: &str = "care for device time, host time, phases, recompute, step times, launch delays, \
                   comparison across ranks";

fn repaired(content: &[u8], salvage: bool, clip: bool) -> Vec<u8> {
    let mut options = RepairOptions::default();
    (options.salvage, options.clip) = (salvage, clip);
    let mut out = Vec::new();
    repair(content, &mut out, &options, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    out
}

fn sliced(content: &[u8], first: u64, last: u64) -> Vec<u8> {
    let mut options = SliceOptions::default();
    options.steps = Some(StepRange { first, last });
    let mut out = Vec::new();
    slice(content, &mut out, &options, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    out
}

/// A trace with two steps, of which one is cut out below.
fn two_steps() -> Vec<u8> {
    let lines = "
        note   1/1 0   100 ProfilerStep#1
        note   1/1 100 100 ProfilerStep#2
        note   1/1 101 90  forward
        op     1/1 110 80  aten::mm
        launch 1/1 115 5   cudaLaunchKernel corr=101
        kernel 0/7 120 60  gemm corr=101
    ";
    trace(lines)
}

/// The object `content` as a bare array of its events.
fn array_form(content: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(content).unwrap();
    let (_, events) = text.split_once("\"traceEvents\":").unwrap();
    events.strip_suffix('}').unwrap().as_bytes().to_vec()
}

/// A clean trace with an unescaped quote in the name of its last event but one.
fn unescaped_quote() -> Vec<u8> {
    let broken = r#"{"ph":"X","cat":"cpu_op","name":"a "b" c","ts":7,"dur":1}"#;
    let step = r#"{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":100}"#;
    with(&format!("{broken},{step}"))
}

pub(super) fn cases() -> Vec<Case> {
    let log = |level: &str, line: &str| {
        let head = format!(r#""{level}":["{level}:2024-04-11 13:30:02 9:9 a.cpp:5] {line}"],"#);
        trace_with(&head, STEP)
    };
    let host = |line: &str| {
        let head = format!(r#""WARNING":["{line}"],"#);
        trace_with(&head, "note 1/1 0 9 forward\nop 1/1 1 2 aten::mm")
    };
    let full = "Exceeded max GPU buffer count (33 >= 33) - terminating tracing";
    let failed = "CUPTI initialization failed - CUDA profiler activities will be missing";
    let flush = "function cuptiActivityFlushAll(0) failed with error CUPTI_ERROR_UNKNOWN (999)";
    let work = "care for device time, phases, recompute";
    let no_work = "not for device time, phases, recompute";
    vec![
        (
            log(
                "INFO",
                "Record counts: Out-of-range = 0, CUPTI stopped early? = 1",
            ),
            "profiler_stopped 1",
            work,
        ),
        (
            log(
                "INFO",
                "Record counts: Out-of-range = 0, CUPTI stopped early? = 0",
            ),
            "",
            "trustworthy",
        ),
        (log("WARNING", full), "profiler_stopped 1", work),
        (log("ERROR", flush), "profiler_errors 1", work),
        (host(full), "profiler_stopped 1, no_device_work 1", no_work),
        (host(failed), "profiler_errors 1, no_device_work 1", no_work),
        (repaired(&unescaped_quote(), true, false), "salvaged 1", ALL),
        (
            repaired(&two_steps()[..two_steps().len() - 2], false, false),
            "salvaged 1",
            ALL,
        ),
        (
            repaired(&with(r#"{"ph":"M",}"#), false, false),
            "repaired 1",
            "trustworthy",
        ),
        (
            repaired(&trace("kernel 0/7 70 20 gemm corr=100"), false, true),
            "repaired 1",
            "care for device time",
        ),
        (
            repaired(
                &array_form(&trace("kernel 0/7 70 20 gemm corr=100")),
                false,
                true,
            ),
            "repaired 1",
            "care for device time",
        ),
        (
            sliced(
                &trace(
                    "note 1/1 200 100 ProfilerStep#2\nnote 1/1 0 100 ProfilerStep#1\n\
                     kernel 0/7 70 20 gemm corr=100",
                ),
                1,
                1,
            ),
            "repaired 1, sliced 1",
            "care for device time",
        ),
        // A part that has everything is whole.
        (sliced(&two_steps(), 0, 9), "", "trustworthy"),
        (
            trace_with(
                r#""tracekit_repair":{"tool":"tracekit 1","clipped_events":1,"clipped_ns":9223372036854775807},"#,
                STEP,
            ),
            "repaired 1",
            "care for device time",
        ),
        (
            repaired(&trace_with(r#""traceEvents":[{},{}],"#, STEP), false, false),
            "replaced_events 2, repaired 1",
            ALL,
        ),
        (sliced(&two_steps(), 2, 2), "sliced 5", "trustworthy"),
        // Notes of others, and what only looks like one.
        (
            trace_with(
                r#""tracekit_repair":{"lost_bytes":7},"tracekit_slice":[1],"#,
                STEP,
            ),
            "",
            "trustworthy",
        ),
        (
            trace_with(
                r#""tracekit_repair_x":{"tool":"tracekit 1","lost_bytes":7},"tracekit_repair":{"tool":"other","lost_bytes":7},"#,
                STEP,
            ),
            "",
            "trustworthy",
        ),
        (
            trace_with(
                r#""tracekit_repair_2":{"tool":"tracekit 1","lost_bytes":99999999999999999999,"lost":[[1],[3,2],[4,5],7],"clipped_events":-4,"brackets_added":"1"},"#,
                STEP,
            ),
            "salvaged 1",
            ALL,
        ),
    ]
}

#[test]
fn the_log_of_the_profiler_and_notes_of_tracekit_are_told() {
    check(cases());
}

#[test]
fn a_message_of_the_profiler_is_shown_as_it_is() {
    let head =
        r#""WARNING":["WARNING:2024-04-11 13:30:02 9:9 a.cpp:5] Dropped 12 activity records"],"#;
    let file = of_trace(trace_with(head, STEP));
    let finding = &file.findings[0];
    assert_eq!(finding.code, "profiler_stopped");
    assert_eq!(
        finding.first_name.as_deref(),
        Some("Dropped 12 activity records")
    );
}

/// What the attribution of a file says about it.
fn input_of(content: &[u8]) -> Value {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, content).unwrap();
    let answer = attribution(&path, &AttributeOptions::default());
    json(&answer.unwrap_or_else(|error| panic!("{error}")))["inputs"][0].clone()
}

#[test]
fn what_was_salvaged_once_is_partial_for_ever() {
    for content in [unescaped_quote(), array_form(&unescaped_quote())] {
        let broken = content
            .windows(6)
            .position(|part| part == b"\"a \"b\"")
            .unwrap();
        let once = repaired(&content, true, false);
        let twice = repaired(&once, true, true);
        let elsewhere = [&once[..once.len() - 1], b",{\"ph\":\"M\",}]"].concat();
        let again = if once.starts_with(b"[") {
            repaired(&elsewhere, false, false)
        } else {
            sliced(&once, 1, 1)
        };
        let (_, hidden) = redacted(&once).unwrap();
        for file in [&once, &twice, &gzip(&once), &zstd(&once), &again, &hidden] {
            let input = input_of(file);
            assert_eq!(input["partial"], true);
            let lost = &input["lost"];
            let [from, to] = [0, 1].map(|end| lost["ranges"][0][end].as_u64().unwrap());
            assert!((from..to).contains(&(broken as u64)), "{lost}");
            assert_eq!(lost["ranges"].as_array().unwrap().len(), 1);
            assert_eq!(lost["bytes"], to - from);
            assert_eq!(lost["events_estimated"], 1);
            let file = of_trace(file.clone());
            assert_eq!(file.findings[0].code, "salvaged");
            let name = format!("{} bytes left out by a repair", to - from);
            assert_eq!(file.findings[0].first_name.as_deref(), Some(name.as_str()));
        }
    }
    let whole = input_of(&two_steps());
    assert_eq!(
        (&whole["partial"], whole.get("lost")),
        (&Value::Bool(false), None)
    );
}

#[test]
fn a_loss_behind_a_loss_is_added_up() {
    let once = repaired(&unescaped_quote(), true, false);
    let text = String::from_utf8(once).unwrap();
    let broken = text.replacen("aten::mm", "aten\"::mm", 1);
    let twice = repaired(broken.as_bytes(), true, false);
    assert!(String::from_utf8_lossy(&twice).contains("tracekit_repair_2"));
    let trace = Trace::from_bytes(&twice, &IngestOptions::default()).unwrap();
    let lost = trace.metadata.rewriting.lost.clone().unwrap();
    assert_eq!(lost.ranges.len(), 2);
    let bytes: u64 = lost.ranges.iter().map(|(from, to)| to - from).sum();
    assert_eq!((lost.bytes, lost.events_estimated), (bytes, Some(2)));
    assert_eq!(trace.health.get(HealthCode::Salvaged), 1);
}

#[test]
fn a_slice_is_a_part_in_either_form() {
    let whole = two_steps();
    for content in [whole.clone(), array_form(&whole)] {
        let part = sliced(&content, 2, 2);
        let trace = Trace::from_bytes(&part, &IngestOptions::default()).unwrap();
        assert_eq!(trace.metadata.rewriting.left_out, Some(5));
        let file = of_trace(part);
        assert_eq!(found(&file.findings), [("sliced", 5)]);
        assert_eq!(words(&file.verdict), "trustworthy");
    }
}
