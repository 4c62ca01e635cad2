use super::*;
use crate::inspect::frame::Entry;
use crate::inspect::testing::{cells, frames};
use crate::inspect::{InspectOptions, Topic};

/// A trace of one step: three operators on the main thread, `changes` of memory in them.
///
/// ```text
/// µs       0    10   20   30   40   50   60
/// step     ├────────────────────────────┤
/// gemm          ├────────┤
/// fill               ├───┤
/// free                        ├────┤
/// ```
fn trace(changes: &[&str]) -> String {
    let host = [
        r#""cat":"user_annotation","name":"ProfilerStep#4","ts":0,"dur":60"#,
        r#""cat":"user_annotation","name":"forward","ts":0,"dur":30"#,
        r#""cat":"cpu_op","name":"gemm","ts":10,"dur":20,"args":{"Input Dims":[[2,3]]}"#,
        r#""cat":"cpu_op","name":"fill","ts":20,"dur":10"#,
        r#""cat":"cpu_op","name":"free","ts":40,"dur":10"#,
    ]
    .map(|event| format!(r#"{{"ph":"X","pid":1,"tid":1,{event}}}"#));
    let changes = changes.iter().map(|change| {
        let (at, args) = change.split_once(' ').unwrap();
        format!(
            r#"{{"ph":"i","cat":"cpu_instant_event","name":"[memory]","s":"t","pid":1,"tid":1,
            "ts":{at},"args":{{{args}}}}}"#
        )
    });
    let events: Vec<String> = host.into_iter().chain(changes).collect();
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))
}

/// What a change of device 0 says: address, bytes, totals.
fn cuda(at: i64, address: i64, bytes: i64, allocated: i64, reserved: i64) -> String {
    format!(
        r#"{at} "Device Type":1,"Device Id":0,"Addr":{address},"Bytes":{bytes},
        "Total Allocated":{allocated},"Total Reserved":{reserved}"#
    )
}

fn broken_down(changes: &[String], options: &InspectOptions) -> Vec<Frame> {
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    frames(&trace(&changes), Topic::Memory, options)
}

fn example() -> Vec<String> {
    vec![
        // 1000 bytes are there before the capture.
        cuda(12, 7, 512, 1512, 2048),
        cuda(22, 8, 100, 1612, 2048),
        cuda(25, 9, 30, 1642, 4096),
        // Of what was there before.
        cuda(26, 5, -200, 1442, 4096),
        // 50 bytes more than the event tells.
        cuda(45, 9, -30, 1462, 4096),
        cuda(46, 7, -512, 950, 4096),
    ]
}

#[test]
fn peaks_and_sums_of_a_device() {
    let frames = broken_down(&example(), &InspectOptions::default());
    let columns = [
        "device",
        "levels",
        "peak_allocated_bytes",
        "peak_allocated_at_ns",
        "peak_allocated_step",
        "peak_allocated_phase",
        "peak_reserved_bytes",
        "peak_reserved_at_ns",
        "start_bytes",
        "end_bytes",
        "growth_bytes",
        "allocations",
        "frees",
        "allocated_bytes",
        "freed_bytes",
        "not_recorded_bytes",
    ];
    assert_eq!(
        cells(&frames, "memory", &columns),
        [
            "cuda:0 recorded 1642 25000 ProfilerStep#4 forward 4096 25000 1000 950 -50 3 3 642 742 50"
        ]
    );
}

#[test]
fn holders_add_up_to_the_peak() {
    let columns = ["operator", "phase", "bytes", "allocations"];
    let frames = broken_down(&example(), &InspectOptions::default());
    assert_eq!(
        cells(&frames, "at_peak", &columns),
        [
            "gemm forward 512 1",
            "fill forward 130 2",
            "(before the capture) - 1000 -"
        ]
    );
    let top = InspectOptions {
        top: 1,
        ..InspectOptions::default()
    };
    let frames = broken_down(&example(), &top);
    assert_eq!(
        cells(&frames, "at_peak", &columns),
        [
            "gemm forward 512 1",
            "(others) - 130 2",
            "(before the capture) - 1000 -"
        ]
    );
}

#[test]
fn what_no_event_tells_of_has_a_row_of_its_own() {
    let changes = [
        cuda(12, 7, 10, 10, 100),
        // Address 7 again, with no free in between; and 1000 that no event tells of.
        cuda(22, 7, 500, 1510, 2000),
    ];
    let frames = broken_down(&changes, &InspectOptions::default());
    let columns = ["operator", "bytes", "allocations"];
    assert_eq!(
        cells(&frames, "at_peak", &columns),
        ["fill 500 1", "(not recorded) 1010 -"]
    );
}

#[test]
fn operators_have_their_own_changes_only() {
    let by = InspectOptions {
        by: vec![By::Phase, By::Shape],
        ..InspectOptions::default()
    };
    let columns = [
        "operator",
        "allocations",
        "frees",
        "allocated_bytes",
        "freed_bytes",
        "net_bytes",
    ];
    let frames = broken_down(&example(), &InspectOptions::default());
    assert_eq!(
        cells(&frames, "operators", &columns),
        [
            "gemm 1 0 512 0 512",
            "fill 2 1 130 200 -70",
            "free 0 2 0 542 -542"
        ]
    );
    let frames = broken_down(&example(), &by);
    let columns = ["operator", "phase", "shape", "net_bytes"];
    assert_eq!(
        cells(&frames, "operators", &columns),
        [
            "gemm forward [[2,3]] 512",
            "fill forward - -70",
            "free other - -542"
        ]
    );
}

#[test]
fn steps_start_and_end_at_levels() {
    let mut changes = example();
    changes.push(cuda(70, 11, 50, 1000, 4096));
    let frames = broken_down(&changes, &InspectOptions::default());
    let columns = [
        "step",
        "peak_allocated_bytes",
        "start_bytes",
        "end_bytes",
        "growth_bytes",
        "net_bytes",
    ];
    assert_eq!(
        cells(&frames, "memory_steps", &columns),
        ["ProfilerStep#4 1642 1000 950 -50 -100", "- 1000 - - - 50"]
    );
    let by = InspectOptions {
        by: vec![By::Phase],
        ..InspectOptions::default()
    };
    let frames = broken_down(&changes, &by);
    let columns = ["step", "phase", "peak_allocated_bytes", "net_bytes"];
    assert_eq!(
        cells(&frames, "memory_steps", &columns),
        [
            "ProfilerStep#4 forward 1642 442",
            "ProfilerStep#4 other 1462 -542",
            "- other 1000 50"
        ]
    );
}

#[test]
fn traces_without_totals_are_replayed() {
    let cpu =
        |at: i64, bytes: i64| format!(r#"{at} "Device Type":0,"Device Id":-1,"Bytes":{bytes}"#);
    let changes = [cpu(12, 100), cpu(22, -160), cpu(25, 70)];
    let frames = broken_down(&changes, &InspectOptions::default());
    let columns = [
        "device",
        "levels",
        "peak_allocated_bytes",
        "peak_reserved_bytes",
        "start_bytes",
        "end_bytes",
        "not_recorded_bytes",
    ];
    assert_eq!(
        cells(&frames, "memory", &columns),
        ["cpu replayed 100 - 0 10 -"]
    );
    assert!(cells(&frames, "at_peak", &["bytes"]).is_empty());
}

#[test]
fn devices_are_apart_and_the_highest_level_may_be_the_first() {
    let host = r#"13 "Device Type":0,"Device Id":-1,"Addr":3,"Bytes":8,"Total Allocated":8,
        "Total Reserved":0"#;
    let other = r#"14 "Device Type":33,"Device Id":2,"Addr":3,"Bytes":-8,"Total Allocated":2,
        "Total Reserved":9"#;
    let changes = [host.to_owned(), cuda(12, 3, 4, 4, 5), other.to_owned()];
    let frames = broken_down(&changes, &InspectOptions::default());
    let columns = ["device", "peak_allocated_bytes", "peak_reserved_bytes"];
    assert_eq!(
        cells(&frames, "memory", &columns),
        ["cpu 8 -", "cuda:0 4 5", "device type 33:2 10 9"]
    );
    let holders = cells(&frames, "at_peak", &["device", "operator", "bytes"]);
    assert_eq!(
        holders,
        [
            "cpu gemm 8",
            "cuda:0 gemm 4",
            "device type 33:2 (before the capture) 10"
        ]
    );
}

#[test]
fn absurd_sizes_do_not_overflow() {
    let (max, min) = (i64::MAX, i64::MIN);
    let changes = [
        cuda(12, 7, max / 4, max, max),
        cuda(13, 8, max / 4, min, min),
        cuda(14, 7, min / 4, max, max),
        cuda(15, 9, min / 8, min, 0),
    ];
    let frames = broken_down(&changes, &InspectOptions::default());
    let at = frames.iter().find(|frame| frame.name == "memory").unwrap();
    let peak = &at.column("peak_allocated_bytes").unwrap().values;
    assert_eq!(peak.get(0), Entry::Int(max));
}
