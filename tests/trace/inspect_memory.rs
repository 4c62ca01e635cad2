//! Memory of traces against a plain replay of their events, and its laws over random ones.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use tracekit::inspect::{By, InspectOptions, Topic};

use crate::support::builder::{Content, Plan, build, few, plans};
use crate::support::inspection::{frames, instabilities, int, rows};
use crate::support::seeded::Seeded;
use crate::support::{corpus, package, whole_content};

/// All names, each on its own.
fn everything() -> InspectOptions {
    InspectOptions {
        top: 0,
        by: vec![By::Phase, By::Step, By::Shape],
        ..InspectOptions::default()
    }
}

/// What a plain reader makes of one device.
#[derive(Debug, Default, PartialEq, Eq)]
struct Replay {
    peak: i64,
    peak_at: i64,
    reserved: Option<i64>,
    start: i64,
    end: i64,
    allocations: i64,
    frees: i64,
    allocated: i64,
    freed: i64,
    /// Bytes of the allocations alive at the peak.
    alive: i64,
}

/// Memory events by device type, device and process, in order of time.
type Events = BTreeMap<(i64, i64, String), Vec<Value>>;

fn ns(event: &Value) -> i64 {
    let ts = &event["ts"];
    #[expect(clippy::cast_possible_truncation, reason = "times of a test")]
    ts.as_i64().map_or_else(
        || (ts.as_f64().unwrap() * 1000.0).round() as i64,
        |us| us * 1000,
    )
}

/// The memory events of a trace; `None` when it is no plain JSON.
fn events(path: &Path) -> Option<Events> {
    let json: Value = serde_json::from_slice(&whole_content(path)?).ok()?;
    let mut all: Vec<Value> = json
        .get("traceEvents")
        .unwrap_or(&json)
        .as_array()?
        .iter()
        .filter(|event| event["name"] == "[memory]")
        .cloned()
        .collect();
    all.sort_by_key(|event| (ns(event), event["args"]["Ev Idx"].as_i64()));
    let mut events = Events::new();
    for event in all {
        let of = |key: &str| event["args"][key].as_i64();
        let device = (
            of("Device Type")?,
            of("Device Id")?,
            event["pid"].to_string(),
        );
        events.entry(device).or_default().push(event);
    }
    Some(events)
}

fn replay(events: &[Value]) -> Replay {
    let of = |event: &Value, key: &str| event["args"][key].as_i64();
    let recorded = of(&events[0], "Total Allocated").is_some();
    let start = of(&events[0], "Total Allocated")
        .map_or(0, |after| after - of(&events[0], "Bytes").unwrap());
    let mut replay = Replay {
        peak: start,
        peak_at: ns(&events[0]),
        start,
        ..Replay::default()
    };
    let mut level = start;
    let mut alive: HashMap<i64, i64> = HashMap::new();
    let known = |alive: &HashMap<i64, i64>| alive.values().sum::<i64>();
    for event in events {
        let bytes = of(event, "Bytes").unwrap();
        level = if recorded {
            of(event, "Total Allocated").unwrap()
        } else {
            level + bytes
        };
        let address = of(event, "Addr").unwrap_or(0);
        if bytes < 0 {
            replay.frees += 1;
            replay.freed -= bytes;
            alive.remove(&address);
        } else {
            replay.allocations += 1;
            replay.allocated += bytes;
            alive.insert(address, bytes);
        }
        if level > replay.peak {
            replay.peak = level;
            replay.peak_at = ns(event);
            replay.alive = known(&alive);
        }
        replay.reserved = replay.reserved.max(of(event, "Total Reserved"));
    }
    replay.end = level;
    replay
}

/// What differs between the frames of `path` and a plain replay; how many devices it has.
fn differences(path: &Path) -> Option<(Vec<String>, usize)> {
    let events = events(path)?;
    let frames = frames(path, Topic::Memory, &everything());
    let devices = rows(&frames, "memory");
    let mut wrong = Vec::new();
    if devices.len() != events.len() {
        wrong.push(format!("{} devices, not {}", devices.len(), events.len()));
        return Some((wrong, 0));
    }
    let several = events.len() > 1;
    for (row, ((kind, _, _), events)) in devices.iter().zip(&events) {
        let mut want = replay(events);
        let device = &row["device"];
        let of_device = |frame: &str| -> Vec<Value> {
            let same = |other: &&Value| &other["device"] == device;
            rows(&frames, frame)
                .into_iter()
                .filter(|row| same(&row))
                .collect()
        };
        let sum = |frame: &str, column: &str| -> i64 {
            of_device(frame).iter().map(|row| int(row, column)).sum()
        };
        let holders = of_device("at_peak");
        let made = |row: &&Value| row["allocations"].is_i64();
        let alive: i64 = holders
            .iter()
            .filter(made)
            .map(|row| int(row, "bytes"))
            .sum();
        if holders.is_empty() {
            want.alive = 0;
        } else if sum("at_peak", "bytes") != want.peak {
            wrong.push(format!("{device}: holders do not add up to {}", want.peak));
        }
        let got = Replay {
            peak: int(row, "peak_allocated_bytes"),
            peak_at: int(row, "peak_allocated_at_ns"),
            reserved: row["peak_reserved_bytes"].as_i64(),
            start: int(row, "start_bytes"),
            end: int(row, "end_bytes"),
            allocations: int(row, "allocations"),
            frees: int(row, "frees"),
            allocated: int(row, "allocated_bytes"),
            freed: int(row, "freed_bytes"),
            alive,
        };
        if *kind == 0 {
            want.reserved = None;
        }
        if got != want {
            wrong.push(format!("{device}: {got:?}, not {want:?}"));
        }
        for frame in ["operators", "memory_steps"] {
            for (column, want) in [
                ("allocations", want.allocations),
                ("frees", want.frees),
                ("allocated_bytes", want.allocated),
                ("freed_bytes", want.freed),
                ("net_bytes", want.allocated - want.freed),
            ] {
                let got = sum(frame, column);
                if got != want {
                    wrong.push(format!("{device}: {column} of {frame}: {got}, not {want}"));
                }
            }
        }
        if !several && row["process"] != Value::Null {
            wrong.push(format!("{device}: a process in {row}"));
        }
    }
    Some((wrong, events.len()))
}

#[test]
fn memory_of_a_run_of_ours_is_a_plain_replay() {
    let folder = package("fixtures/traces/offload");
    let path = &crate::support::files_under(&folder)[0];
    assert_eq!(differences(path), Some((Vec::new(), 1)));
    let frames = frames(path, Topic::Memory, &InspectOptions::default());
    let row = &rows(&frames, "memory")[0];
    assert_eq!(row["device"], "cpu");
    assert_eq!(row["levels"], "recorded");
    assert_eq!(int(row, "not_recorded_bytes"), 0);
    let steps = rows(&frames, "memory_steps");
    let named: Vec<&Value> = steps.iter().filter(|row| row["step"].is_string()).collect();
    assert_eq!(named.len(), 2);
    // One step after the other: nothing is allocated in between.
    assert_eq!(named[0]["end_bytes"], named[1]["start_bytes"]);
}

#[test]
fn memory_of_real_traces_is_a_plain_replay() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let mut devices = 0;
    let mut wrong = Vec::new();
    for path in corpus::traces(&corpus) {
        let Some(plain) = whole_content(&path) else {
            continue;
        };
        let has_memory = plain.windows(8).any(|word| word == b"[memory]");
        if !has_memory {
            continue;
        }
        let Some((found, count)) = differences(&path) else {
            continue;
        };
        devices += count;
        let name = path.display();
        wrong.extend(found.iter().map(|what| format!("{name}: {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(devices > 5, "only {devices} devices were seen");
}

/// `plan`'s trace with random allocations: addresses are used again, some frees are lost, and some are of
/// what was there before.
fn with_memory(plan: &Plan, changes: u64) -> Content {
    let mut content = build(plan);
    let mut random = Seeded::new(plan.seed ^ 0x5eed);
    let mut levels: HashMap<u64, i64> = HashMap::new();
    let mut held: HashMap<(u64, u64), i64> = HashMap::new();
    let mut now = 1000;
    for number in 0..changes {
        now += random.below(9);
        let device = random.below(3);
        let address = random.below(12) + 1;
        let level = levels.entry(device).or_insert(1 << 20);
        let size = i64::try_from(random.below(4096)).unwrap();
        let bytes = match held.remove(&(device, address)) {
            Some(bytes) if !random.one_in(10) => -bytes,
            _ if random.one_in(10) => -size,
            _ => {
                held.insert((device, address), size);
                size
            }
        };
        *level += bytes;
        if random.one_in(20) {
            *level += size;
        }
        let (kind, index) = if device == 0 {
            (0, -1)
        } else {
            (1, device.cast_signed() - 1)
        };
        let tid = if random.one_in(3) { 4177 } else { 4100 };
        let args = format!(
            "{{\"Device Type\": {kind}, \"Device Id\": {index}, \"Addr\": {address}, \"Bytes\": {bytes}, \
             \"Total Allocated\": {level}, \"Total Reserved\": {}, \"Ev Idx\": {number}}}",
            *level + 4096
        );
        content.events.push(vec![
            ("ph", "\"i\"".into()),
            ("cat", "\"cpu_instant_event\"".into()),
            ("name", "\"[memory]\"".into()),
            ("s", "\"t\"".into()),
            ("pid", "4100".into()),
            ("tid", tid.to_string()),
            ("ts", now.to_string()),
            ("args", args),
        ]);
    }
    content
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn memory_of_random_traces_is_a_plain_replay(plan in plans(), changes in 0..200u64) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("rank0.json");
        let content = with_memory(&plan, changes);
        std::fs::write(&path, content.write(crate::support::builder::Layout::Native)).unwrap();
        let (found, _) = differences(&path).unwrap();
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn memory_does_not_depend_on_how_a_trace_is_stored(plan in plans(), changes in 0..100u64) {
        let content = with_memory(&plan, changes);
        for options in [InspectOptions::default(), everything()] {
            let found = instabilities(&content, plan.seed, Topic::Memory, &options);
            prop_assert!(found.is_empty(), "{}", found.join("\n"));
        }
    }
}
