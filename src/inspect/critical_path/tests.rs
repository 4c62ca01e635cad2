use super::*;
use crate::inspect::testing::{cells, frames};
use crate::inspect::{InspectOptions, Topic};

/// A trace from lines of `CAT ROW START DURATION NAME [ARGS]`, times in µs; rows are `pid/tid`.
fn trace(lines: &str) -> String {
    let events: Vec<String> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let words: Vec<&str> = line.splitn(6, ' ').collect();
            let (pid, tid) = words[1].split_once('/').unwrap();
            format!(
                r#"{{"ph":"X","cat":"{}","name":"{}","pid":{pid},"tid":{tid},"ts":{},"dur":{},"args":{{{}}}}}"#,
                words[0],
                words[4].replace('_', " "),
                words[2],
                words[3],
                words.get(5).unwrap_or(&"")
            )
        })
        .collect();
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))
}

fn found(lines: &str, options: &InspectOptions) -> Vec<Frame> {
    frames(&trace(lines), Topic::CriticalPath, options)
}

/// Two operators on the host; the kernels of the first are waited for by the second.
///
/// ```text
/// µs        0    10   20   30   40   50   60   70   80   90
/// host      ├─────── a ────────┤  ├───────── b ────────────┤
///              L1   L2              ├───── sync ─────────┤
/// stream 7       ├─── k1 ──┤ ├──── k2 ──────────────┤
/// ```
const WAIT: &str = r#"
    user_annotation 1/1 0 100 ProfilerStep#3
    cpu_op 1/1 0 40 a
    cuda_runtime 1/1 5 2 cudaLaunchKernel "correlation":1
    cuda_runtime 1/1 15 2 cudaLaunchKernel "correlation":2
    cpu_op 1/1 45 50 b
    cuda_runtime 1/1 50 40 cudaStreamSynchronize "correlation":3
    kernel 0/7 10 20 k1 "correlation":1,"device":0,"stream":7
    kernel 0/7 34 48 k2 "correlation":2,"device":0,"stream":7
    cuda_sync 0/7 51 38 Stream_Sync "cuda_sync_kind":"Stream Sync","stream":7,"correlation":3,"device":0
"#;

#[test]
fn the_host_waits_for_kernels() {
    let frames = found(WAIT, &InspectOptions::default());
    // a 0–5, launch delay 5–10, k1 10–30, delay 30–34, k2 34–82, then b from the end of the call.
    let columns = ["range", "bound_by", "sum_ns", "edges"];
    assert_eq!(
        cells(&frames, "critical_path_summary", &columns),
        [
            "ProfilerStep#3 data_loading 0 0",
            "ProfilerStep#3 cpu_bound 10000 2",
            "ProfilerStep#3 gpu_compute_bound 68000 2",
            "ProfilerStep#3 gpu_communication_bound 0 0",
            "ProfilerStep#3 gpu_kernel_kernel_overhead 4000 1",
            "ProfilerStep#3 gpu_kernel_launch_overhead 5000 1",
        ]
    );
    let columns = ["name", "edge", "sum_ns", "edges"];
    assert_eq!(
        cells(&frames, "critical_path", &columns),
        [
            "k2 operator_kernel 48000 1",
            "k1 operator_kernel 20000 1",
            "a operator_kernel 5000 1",
            "b operator_kernel 5000 1",
            "k1 kernel_launch_delay 5000 1",
            "k2 kernel_kernel_delay 4000 1",
        ]
    );
    let columns = ["edge", "edges", "critical_edges", "critical_ns"];
    assert_eq!(
        cells(&frames, "edges", &columns),
        [
            "operator_kernel 10 4 78000",
            "dependency 1 0 0",
            "kernel_launch_delay 1 1 5000",
            "kernel_kernel_delay 1 1 4000",
            "sync_dependency 1 1 0",
        ]
    );
    let columns = [
        "wall_ns",
        "extent_ns",
        "length_ns",
        "nodes",
        "edges",
        "critical_edges",
        "edges_left_out",
        "has_sync_records",
    ];
    assert_eq!(
        cells(&frames, "critical_paths", &columns),
        ["100000 95000 87000 14 14 7 0 true"]
    );
}

#[test]
fn without_records_of_synchronisation_nothing_waits() {
    let lines: Vec<&str> = WAIT
        .lines()
        .filter(|line| !line.contains("cuda_sync "))
        .collect();
    let frames = found(&lines.join("\n"), &InspectOptions::default());
    let columns = ["length_ns", "has_sync_records"];
    // Up to the end of k2: a 5, launch 5, k1 20, delay 4, k2 48.
    assert_eq!(cells(&frames, "critical_paths", &columns), ["82000 false"]);
}

#[test]
fn one_launch_has_many_kernels() {
    // The kernels of a graph on two streams: each stream starts with the launch.
    let lines = r#"
        cpu_op 1/1 0 30 replay
        cuda_runtime 1/1 5 10 cudaGraphLaunch "correlation":1
        kernel 0/7 20 10 k1 "correlation":1,"device":0,"stream":7
        kernel 0/7 31 10 k2 "correlation":1,"device":0,"stream":7
        kernel 0/8 20 40 k3 "correlation":1,"device":0,"stream":8
        kernel 0/7 45 99 foreign "correlation":0,"device":0,"stream":7
    "#;
    let frames = found(lines, &InspectOptions::default());
    let columns = ["edge", "edges", "critical_edges"];
    assert_eq!(
        cells(&frames, "edges", &columns),
        [
            "operator_kernel 6 2",
            "dependency 0 0",
            "kernel_launch_delay 2 1",
            "kernel_kernel_delay 1 0",
            "sync_dependency 0 0",
        ]
    );
    let columns = ["range", "length_ns", "extent_ns"];
    assert_eq!(
        cells(&frames, "critical_paths", &columns),
        ["(whole trace) 60000 60000"]
    );
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    // k2 on stream 20 waits for k1, behind which the event was recorded.
    let lines = r#"
        cpu_op 1/1 0 40 a
        cuda_runtime 1/1 2 2 cudaLaunchKernel "correlation":1
        cuda_runtime 1/1 10 2 cudaEventRecord "correlation":2
        cuda_runtime 1/1 14 2 cudaStreamWaitEvent "correlation":3
        cuda_runtime 1/1 20 2 cudaLaunchKernel "correlation":4
        kernel 0/7 5 50 k1 "correlation":1,"device":0,"stream":7
        kernel 0/20 58 10 k2 "correlation":4,"device":0,"stream":20
        cuda_sync 0/20 15 1 Stream_Wait_Event "cuda_sync_kind":"Stream Wait Event","stream":20,"device":0,"correlation":3,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2
    "#;
    let frames = found(lines, &InspectOptions::default());
    let columns = ["name", "edge", "sum_ns"];
    // The 3 µs between the kernels are no edge's.
    assert_eq!(
        cells(&frames, "critical_path", &columns),
        [
            "k1 operator_kernel 50000",
            "k2 operator_kernel 10000",
            "k1 kernel_launch_delay 3000",
            "a operator_kernel 2000",
        ]
    );
    let columns = ["edge", "edges", "critical_edges"];
    assert_eq!(cells(&frames, "edges", &columns)[4], "sync_dependency 1 1");
}

#[test]
fn overlapping_kernels_count_no_instant_twice() {
    let lines = r#"
        cpu_op 1/1 0 20 a
        cuda_runtime 1/1 0 2 cudaLaunchKernel "correlation":1
        cuda_runtime 1/1 4 2 cudaLaunchKernel "correlation":2
        kernel 0/7 10 1000 k1 "correlation":1,"device":0,"stream":7
        kernel 0/7 1006 100 k2 "correlation":2,"device":0,"stream":7
    "#;
    let frames = found(lines, &InspectOptions::default());
    let columns = ["name", "edge", "sum_ns"];
    assert_eq!(
        cells(&frames, "critical_path", &columns),
        [
            "k1 operator_kernel 996000",
            "k2 operator_kernel 100000",
            "k1 kernel_launch_delay 10000",
            // From its start to that of its first call.
            "a operator_kernel 0",
        ]
    );
    let columns = ["length_ns", "extent_ns"];
    assert_eq!(
        cells(&frames, "critical_paths", &columns),
        ["1106000 1106000"]
    );
}

#[test]
fn data_loading_has_a_bound_of_its_own_and_phases_divide() {
    let lines = "
        user_annotation 1/1 0 90 ProfilerStep#1
        user_annotation 1/1 0 20 enumerate(DataLoader)#x
        cpu_op 1/1 5 10 aten::stack
        user_annotation 1/1 30 30 forward
        cpu_op 1/1 30 30 aten::mm
        cpu_op 1/1 70 10 aten::add_
    ";
    let by = InspectOptions {
        by: vec![By::Phase],
        ..InspectOptions::default()
    };
    let frames = found(lines, &by);
    let columns = ["bound_by", "phase", "sum_ns"];
    assert_eq!(
        cells(&frames, "critical_path_summary", &columns),
        [
            "data_loading other 20000",
            "cpu_bound forward 30000",
            "cpu_bound other 10000"
        ]
    );
}

#[test]
fn annotations_are_ranges_by_name_and_number() {
    let lines = "
        user_annotation 1/1 0 10 eval_a
        user_annotation 1/1 20 10 eval_b
        user_annotation 1/1 40 10 other
        cpu_op 1/1 2 3 x
        cpu_op 1/1 22 4 y
        cpu_op 1/1 42 5 z
    ";
    let mut options = InspectOptions {
        range: Some("eval".into()),
        ..InspectOptions::default()
    };
    let columns = ["range", "instance", "length_ns"];
    let of = |options: &InspectOptions| cells(&found(lines, options), "critical_paths", &columns);
    assert_eq!(of(&options), ["eval a 0 3000", "eval b 1 4000"]);
    options.instance = Some(1);
    assert_eq!(of(&options), ["eval b 1 4000"]);
    options.instance = Some(2);
    assert!(of(&options).is_empty());
}

#[test]
fn ranges_in_one_another_end() {
    let lines: Vec<String> = (0..400)
        .map(|number| {
            let (step, op) = (4000 - 2 * number, 1000 + 2 * number);
            format!(
                "user_annotation 1/1 {number} {step} ProfilerStep#{number}\ncpu_op 1/1 {op} 1 x"
            )
        })
        .collect();
    let lines = lines.join("\n");
    let frames = found(&lines, &InspectOptions::default());
    let rows = cells(&frames, "critical_paths", &["length_ns"]);
    assert_eq!(rows.len(), 400);
    assert_eq!(rows[0], "400000");
    assert_eq!(rows[399], "-");
}
