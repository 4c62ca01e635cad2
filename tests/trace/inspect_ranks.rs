//! `inspect ranks`: collectives matched over made-up ranks, and sets of real ranks.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tracekit::inspect::{Definition, InspectOptions, Topic};

use crate::support::corpus;
use crate::support::inspection::{frames, oracle, rows, sum};
use crate::support::seeded::Seeded;

/// One collective of a made-up rank: when it ends and how long its call lasts, in µs.
#[derive(Debug, Clone, Copy)]
struct Call {
    device: u32,
    end: i64,
    dur: i64,
    operation: &'static str,
    /// Name of the process group; none when empty.
    group: &'static str,
    sequence: Option<i64>,
}

const REDUCE: Call = Call {
    device: 0,
    end: 0,
    dur: 0,
    operation: "allreduce",
    group: "",
    sequence: None,
};

fn event(call: &Call) -> String {
    let Call {
        device,
        end,
        dur,
        operation,
        group,
        ..
    } = call;
    let name = match *operation {
        "allreduce" => "ncclDevKernel_AllReduce_Sum_f32",
        "allgather" => "ncclDevKernel_AllGather",
        _ => "ncclDevKernel_SendRecv",
    };
    let mut args = format!(r#""device": {device}, "stream": 7"#);
    if !group.is_empty() {
        let _ = write!(
            args,
            r#", "Collective name": "{operation}", "Process Group Name": "{group}", "Group size": 2,
            "In msg nelems": 1000, "Out msg nelems": 2000, "dtype": "Float""#
        );
    }
    if let Some(sequence) = call.sequence {
        let _ = write!(args, r#", "Seq": {sequence}"#);
    }
    let start = end - dur;
    format!(
        r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": {device}, "tid": 7, "ts": {start}, "dur": {dur}, "args": {{{args}}}}}"#
    )
}

/// A run with one file a rank.
struct Run(TempDir);

impl Run {
    /// Each rank with its number and its calls; the order of events is shuffled when `seed` is given.
    fn new(ranks: &[(i64, Vec<Call>)], seed: Option<u64>) -> Self {
        let folder = TempDir::new().unwrap();
        for (rank, calls) in ranks {
            let mut events: Vec<String> = calls.iter().map(event).collect();
            if let Some(seed) = seed {
                Seeded::new(seed).shuffle(&mut events);
            }
            let text = format!(
                r#"{{"distributedInfo": {{"rank": {rank}}}, "traceEvents": [{}]}}"#,
                events.join(",")
            );
            std::fs::create_dir_all(folder.path().join("run")).unwrap();
            std::fs::write(folder.path().join(format!("run/rank{rank}.json")), text).unwrap();
        }
        Self(folder)
    }

    fn frames(&self) -> Vec<Value> {
        frames(self.0.path(), Topic::Ranks, &all())
    }
}

fn all() -> InspectOptions {
    InspectOptions {
        top: 0,
        ..InspectOptions::default()
    }
}

fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

/// Calls that end at `ends`, shifted by the clock, with these durations.
fn calls(like: Call, ends: &[i64], clock: i64, durations: &[i64]) -> Vec<Call> {
    ends.iter()
        .zip(durations)
        .map(|(end, dur)| Call {
            end: end + clock,
            dur: *dur,
            ..like
        })
        .collect()
}

#[test]
fn the_rank_with_the_shortest_calls_holds_up_the_others() {
    let ends = [1000, 2100, 3300];
    let ranks = [
        (0, calls(REDUCE, &ends, 0, &[100, 20, 300])),
        (1, calls(REDUCE, &ends, 5_000_000, &[40, 50, 400])),
        (2, calls(REDUCE, &ends, -700, &[10, 80, 10])),
    ];
    let want = Run::new(&ranks, None).frames();
    let stragglers = rows(&want, "stragglers");
    assert_eq!(column(&stragglers, "rank"), [2, 0, 1]);
    assert_eq!(column(&stragglers, "collectives"), [3, 3, 3]);
    assert_eq!(
        column(&stragglers, "waiting_ns"),
        [60_000, 380_000, 450_000]
    );
    assert_eq!(column(&stragglers, "times_last"), [2, 1, 0]);
    assert_eq!(column(&stragglers, "held_up_ns"), [320_000, 30_000, 0]);
    let clocks = rows(&want, "clocks");
    assert_eq!(
        column(&clocks, "offset_ns"),
        [json!(0), json!(5_000_000_000_i64), json!(-700_000)]
    );
    assert_eq!(column(&clocks, "uncertainty_ns"), [0, 0, 0]);
    let matched = rows(&want, "matched_collectives");
    assert_eq!(column(&matched, "number"), [2, 0, 1]);
    assert_eq!(column(&matched, "transfer_ns"), [10_000, 10_000, 20_000]);
    assert_eq!(column(&matched, "waiting_ns"), [680_000, 120_000, 90_000]);
    assert_eq!(
        column(&matched, "arrival_skew_ns"),
        [390_000, 90_000, 60_000]
    );
    assert_eq!(column(&matched, "last_rank"), [2, 2, 0]);
    assert_eq!(column(&matched, "matched_by"), ["order", "order", "order"]);
    let waits = rows(&want, "waits");
    assert_eq!(column(&waits[..3], "arrival_ns"), [100_000, 0, 390_000]);
    for seed in [1, 2] {
        let got = Run::new(&ranks, Some(seed)).frames();
        assert_eq!(got, want);
    }
}

#[test]
fn sequence_numbers_match_captures_that_start_and_end_apart() {
    let like = Call {
        group: "3",
        ..REDUCE
    };
    let numbered = |from: i64, count: i64, clock: i64, dur: i64| -> Vec<Call> {
        (from..from + count)
            .map(|number| Call {
                // No order of ends would match these.
                end: number * 1000 + clock,
                dur: dur + number,
                sequence: Some(number),
                ..like
            })
            .collect()
    };
    let run = Run::new(
        &[(4, numbered(10, 8, 0, 50)), (5, numbered(13, 9, 77, 60))],
        None,
    );
    let found = run.frames();
    let stragglers = rows(&found, "stragglers");
    assert_eq!(column(&stragglers, "rank"), [4, 5]);
    assert_eq!(column(&stragglers, "calls"), [8, 9]);
    assert_eq!(column(&stragglers, "collectives"), [5, 5]);
    assert_eq!(column(&stragglers, "times_last"), [5, 0]);
    let operations = rows(&found, "matched_operations");
    assert_eq!(column(&operations, "matched_by"), ["sequence"]);
    assert_eq!(operations[0]["waiting_ns"], 50_000);
    assert_eq!(operations[0]["moved_bytes"], 5 * 4000);
    // 2 (n-1)/n is 1 for two ranks.
    let transfer = operations[0]["transfer_ns"].as_f64().unwrap();
    let bus = operations[0]["bus_gbps"].as_f64().unwrap();
    assert!((bus - 20_000.0 / transfer).abs() < 1e-12);
    assert_eq!(
        column(&rows(&found, "clocks"), "offset_ns"),
        [-38_500, 38_500]
    );
}

#[test]
fn groups_without_numbers_are_laid_beside_each_other() {
    let ends: Vec<i64> = (1..12).map(|number| number * number * 1000).collect();
    let durations: Vec<i64> = (1..12).map(|number| 10 + number).collect();
    let like = Call {
        group: "a",
        ..REDUCE
    };
    let other = Call {
        group: "b",
        operation: "allgather",
        ..REDUCE
    };
    // Rank 1 misses the first two of group a and the last of b, and has a clock of its own.
    let mut one = calls(like, &ends, 0, &durations);
    one.extend(calls(other, &ends, 300, &durations));
    let mut two = calls(like, &ends[2..], 900_000, &durations[2..]);
    two.extend(calls(other, &ends[..10], 900_300, &durations[..10]));
    let found = Run::new(&[(0, one), (1, two)], None).frames();
    let operations = rows(&found, "matched_operations");
    assert_eq!(sum(&operations, "collectives"), 9 + 10);
    assert_eq!(sum(&operations, "waiting_ns"), 0);
    assert_eq!(
        column(&operations, "matched_by"),
        ["group order", "group order"]
    );
    assert_eq!(
        column(&rows(&found, "clocks"), "offset_ns"),
        [-450_000_000, 450_000_000]
    );
    // Nobody came last where all calls are as long.
    assert_eq!(column(&rows(&found, "stragglers"), "times_last"), [0, 0]);
    assert!(
        rows(&found, "stragglers")
            .iter()
            .all(|row| row["place"].is_null())
    );
}

#[test]
fn groups_of_other_ranks_link_clocks() {
    let ends = [1000, 2100, 3300, 4600];
    let group = |name, clock, dur| {
        calls(
            Call {
                group: name,
                ..REDUCE
            },
            &ends,
            clock,
            &[dur; 4],
        )
    };
    let both = |a: Vec<Call>, b: Vec<Call>| [a, b].concat();
    let later = |calls: Vec<Call>| -> Vec<Call> {
        let moved = calls.into_iter().map(|call| Call {
            end: call.end + 500,
            ..call
        });
        moved.collect()
    };
    let ranks = [
        (0, group("ab", 0, 10)),
        (1, both(group("ab", 100, 20), later(group("bc", 100, 20)))),
        (2, later(group("bc", 300, 30))),
        (3, group("d", 9, 5)),
    ];
    let found = Run::new(&ranks, None).frames();
    let clocks = rows(&found, "clocks");
    assert_eq!(
        column(&clocks, "offset_ns"),
        [json!(-100_000), json!(0), json!(200_000), Value::Null]
    );
    assert_eq!(column(&clocks, "collectives"), [4, 8, 4, 0]);
    let stragglers = rows(&found, "stragglers");
    assert_eq!(column(&stragglers, "rank"), [0, 1, 2, 3]);
    assert_eq!(
        column(&stragglers, "place"),
        [json!(1), json!(2), json!(3), Value::Null]
    );
    assert!(stragglers[3]["waiting_ns"].is_null());
}

#[test]
fn devices_of_one_file_take_part_like_ranks() {
    let like = Call {
        group: "0",
        sequence: Some(1),
        ..REDUCE
    };
    let calls = vec![
        Call {
            end: 100,
            dur: 50,
            ..like
        },
        Call {
            device: 1,
            end: 100,
            dur: 20,
            ..like
        },
    ];
    let found = Run::new(&[(0, calls)], None).frames();
    let matched = rows(&found, "matched_collectives");
    assert_eq!(matched.len(), 1);
    assert_eq!(
        (&matched[0]["ranks"], &matched[0]["waiting_ns"]),
        (&json!(1), &json!(30_000))
    );
    assert_eq!(rows(&found, "clocks")[0]["collectives"], 0);
}

#[test]
fn what_does_not_end_together_is_not_matched() {
    let one = calls(REDUCE, &[1000, 2000, 3000, 4000], 0, &[10; 4]);
    let two = calls(REDUCE, &[1000, 2900, 3100, 9000], 0, &[20; 4]);
    let found = Run::new(&[(0, one), (1, two)], None).frames();
    assert!(rows(&found, "matched_collectives").is_empty());
    assert_eq!(
        column(&rows(&found, "stragglers"), "waiting_ns"),
        [Value::Null, Value::Null]
    );
    assert_eq!(column(&rows(&found, "stragglers"), "calls"), [4, 4]);
}

#[test]
fn sends_are_matched_between_two_ranks_only() {
    let send = |operation, dur, sequence| Call {
        operation,
        group: "pp",
        end: 100,
        dur,
        sequence: Some(sequence),
        ..REDUCE
    };
    let found = Run::new(
        &[
            (0, vec![send("send", 10, 4)]),
            (1, vec![send("recv", 90, 4)]),
        ],
        None,
    )
    .frames();
    let matched = rows(&found, "matched_collectives");
    assert_eq!(column(&matched, "waiting_ns"), [80_000]);
    // One number in one group, and yet not one collective.
    let found = Run::new(
        &[
            (0, vec![send("allgather", 10, 4)]),
            (1, vec![send("allreduce", 90, 4)]),
        ],
        None,
    )
    .frames();
    assert!(rows(&found, "matched_collectives").is_empty());
}

#[test]
fn the_rest_keeps_sums_exact() {
    let ends = [1000, 2100, 3300, 4600, 6000];
    let ranks = [
        (0, calls(REDUCE, &ends, 0, &[100, 20, 300, 5, 6])),
        (1, calls(REDUCE, &ends, 0, &[40, 50, 400, 8, 1])),
    ];
    let run = Run::new(&ranks, None);
    let few = InspectOptions {
        top: 2,
        ..InspectOptions::default()
    };
    let few = rows(
        &frames(run.0.path(), Topic::Ranks, &few),
        "matched_collectives",
    );
    let every = rows(&run.frames(), "matched_collectives");
    assert_eq!((few.len(), every.len()), (3, 5));
    assert_eq!(few[2]["operation"], "(others)");
    for column in ["collectives", "sum_ns", "waiting_ns", "transfer_ns"] {
        assert_eq!(sum(&few, column), sum(&every, column), "{column}");
    }
}

/// Sums that hold over any set of ranks.
fn check(frames: &[Value], path: &Path) {
    let stragglers = rows(frames, "stragglers");
    let operations = rows(frames, "matched_operations");
    let matched = rows(frames, "matched_collectives");
    for column in ["sum_ns", "waiting_ns"] {
        let want = sum(&stragglers, column);
        assert_eq!(sum(&operations, column), want, "{}", path.display());
        assert_eq!(sum(&matched, column), want, "{}", path.display());
    }
    assert_eq!(
        sum(&rows(frames, "waits"), "waiting_ns"),
        sum(&matched, "waiting_ns")
    );
    for row in rows(frames, "ranks") {
        let Some(window) = row["window_ns"].as_i64() else {
            continue;
        };
        let of = |columns: &[&str]| -> i64 {
            columns
                .iter()
                .map(|column| row[*column].as_i64().unwrap())
                .sum()
        };
        let classes = [
            "compute_ns",
            "exposed_communication_ns",
            "exposed_memory_ns",
            "idle_ns",
        ];
        assert_eq!(of(&classes), window);
        let phases = [
            "forward_ns",
            "backward_ns",
            "recompute_ns",
            "optimizer_ns",
            "other_ns",
            "pre_window_ns",
            "unlinked_ns",
            "idle_ns",
        ];
        assert_eq!(of(&phases), window);
    }
}

fn of_corpus(relative: &str) -> Option<(PathBuf, Vec<Value>)> {
    let path = corpus::folder()?.join(relative);
    let frames = frames(&path, Topic::Ranks, &all());
    check(&frames, &path);
    Some((path, frames))
}

#[test]
fn eight_ranks_wait_for_the_last() {
    let Some((_, found)) =
        of_corpus("public/facebookresearch+param/et_replay/tests/inputs/dlrm_kineto")
    else {
        return;
    };
    let stragglers = rows(&found, "stragglers");
    assert_eq!(column(&stragglers, "collectives"), [8; 8]);
    // Rank 7 has 10 µs where the others have 500 to 7600.
    assert_eq!(
        (&stragglers[0]["rank"], &stragglers[0]["times_last"]),
        (&json!(7), &json!(5))
    );
    let offsets = column(&rows(&found, "clocks"), "offset_ns");
    assert!(
        offsets
            .iter()
            .all(|offset| offset.as_i64().unwrap().abs() < 5_000),
        "{offsets:?}"
    );
}

#[test]
fn two_ranks_of_eight_are_compared_without_the_others() {
    let Some((_, found)) =
        of_corpus("public/astra-sim+astra-sim/my_test/inputs/workload/megatron-tp8")
    else {
        return;
    };
    let stragglers = rows(&found, "stragglers");
    assert_eq!(column(&stragglers, "rank"), [0, 1]);
    assert_eq!(column(&stragglers, "collectives"), [84, 84]);
    let matched = rows(&found, "matched_collectives");
    assert!(
        matched
            .iter()
            .all(|row| row["missing"] == 6 && row["ranks"] == 2)
    );
}

#[test]
fn ranks_that_share_nothing_have_no_straggler() {
    let Some((_, found)) =
        of_corpus("public/facebookresearch+HolisticTraceAnalysis/tests/data/trace_filter")
    else {
        return;
    };
    assert!(rows(&found, "matched_collectives").is_empty());
    assert!(
        rows(&found, "stragglers")
            .iter()
            .all(|row| row["place"].is_null())
    );
}

#[test]
fn hosts_are_matched_where_no_device_communicates() {
    for name in [
        "2.15.0/ddp_gloo",
        "2.15.0/ddp_gloo_ckpt_reentrant",
        "2.15.0/ddp_gloo_ckpt_nonreentrant",
    ] {
        let Some((_, found)) = of_corpus(&format!("torch-cpu/{name}")) else {
            return;
        };
        let stragglers = rows(&found, "stragglers");
        assert_eq!(column(&stragglers, "collectives"), [8, 8], "{name}");
        assert!(sum(&stragglers, "sum_ns") > 0, "{name}");
        assert!(
            column(&rows(&found, "ranks"), "window_ns")
                .iter()
                .all(Value::is_null)
        );
    }
}

#[test]
fn the_potential_straggler_is_that_of_hta_under_its_definition() {
    let Some((corpus, oracle)) = oracle("hta/trace_filter_2ranks__stragglers.json") else {
        return;
    };
    let path = corpus.join("public/facebookresearch+HolisticTraceAnalysis/tests/data/trace_filter");
    let options = InspectOptions {
        definition: Definition::Hta,
        ..InspectOptions::default()
    };
    let found = rows(
        &frames(&path, Topic::Ranks, &options),
        "potential_stragglers",
    );
    let mut found: Vec<(i64, i64)> = found
        .iter()
        .map(|row| {
            (
                -row["times_last"].as_i64().unwrap(),
                row["rank"].as_i64().unwrap(),
            )
        })
        .collect();
    found.sort_unstable();
    let want = oracle["value"].as_array().unwrap();
    assert_eq!(oracle["params"]["num_candidates"], 1);
    assert_eq!(json!([found[0].1]), json!(want));
}

#[test]
fn transfer_is_the_shortest_call_under_the_definition_of_the_plugin() {
    let ends = [1000, 2100, 3300];
    let mut zero = calls(REDUCE, &ends, 0, &[100, 20, 300]);
    // On another device at the same time, in a group.
    let other = Call {
        device: 1,
        group: "x",
        operation: "allgather",
        end: 990,
        dur: 30,
        sequence: Some(1),
    };
    zero.push(other);
    let mut one = calls(REDUCE, &ends, 0, &[40, 50, 400]);
    one.push(Call { dur: 60, ..other });
    let run = Run::new(&[(0, zero), (1, one)], None);
    let options = InspectOptions {
        definition: Definition::Tensorboard,
        ..InspectOptions::default()
    };
    let found = rows(&frames(run.0.path(), Topic::Ranks, &options), "transfer");
    // Rank 0: calls 900-1000, 2080-2100, 3000-3300; transfer 960-1000 and 960-990, 2080-2100, 3000-3300.
    // Rank 1: calls 930-1000 with both, 2050-2100, 2900-3300; transfer 960-1000, 2080-2100, 3000-3300.
    assert_eq!(column(&found, "calls"), [4, 4]);
    assert_eq!(column(&found, "communication_ns"), [420_000, 520_000]);
    assert_eq!(column(&found, "transfer_ns"), [360_000, 360_000]);
    assert_eq!(column(&found, "synchronizing_ns"), [60_000, 160_000]);
}
