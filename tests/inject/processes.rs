//! More processes than one, and processes that end in odd ways.

use crate::run::{Run, Trace, attribution, has_python, told, traces};

#[test]
fn a_killed_process_keeps_what_was_flushed() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2", "flushed", "kill:9"]);
    let done = run.done();
    assert_eq!(done.code, 137);
    done.assert_told("the process did not end in order");
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (12, 6)
    );
    let answer = attribution(&run.output());
    assert_eq!(answer["totals"]["total"]["sum_ns"], 2_000_000);
    assert!(answer["health"].to_string().contains("profiler_stopped"));
}

#[test]
fn underscore_exit_keeps_what_was_flushed() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2", "flushed", "_exit:3"]);
    let done = run.done();
    assert_eq!(done.code, 3);
    assert_eq!(done.only().count("kernel"), 12);
}

#[test]
fn a_forked_child_that_does_nothing_stays_silent() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:1", "forked-silent", "steps:1"]);
    let done = run.done();
    assert_eq!(done.code, 0);
    assert_eq!(done.only().count("kernel"), 12);
}

#[test]
fn a_forked_child_has_a_trace_of_its_own() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:1", "forked-ranges"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.traces.len(), 2);
    let parent = done
        .traces
        .iter()
        .find(|it| it.count("kernel") > 0)
        .unwrap();
    let child = done
        .traces
        .iter()
        .find(|it| it.count("kernel") == 0)
        .unwrap();
    assert_eq!(child.names("user_annotation"), ["in the child"]);
    assert_eq!(child.json["tracekit_collect"]["forked_from"], parent.pid());
    assert_eq!(parent.count("user_annotation"), 3);
}

#[test]
fn a_forked_child_may_be_the_one_that_starts_cuda() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["ranges", "forked-cuda"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let kernels: Vec<_> = done.traces.iter().map(|it| it.count("kernel")).collect();
    assert_eq!(kernels.iter().sum::<usize>(), 6, "{kernels:?}");
}

#[test]
fn exec_gives_a_second_trace_of_the_same_process() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:1", "exec"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let mut kernels: Vec<_> = done.traces.iter().map(|it| it.count("kernel")).collect();
    kernels.sort_unstable();
    assert_eq!(kernels, [6, 12]);
    assert_eq!(done.traces[0].pid(), done.traces[1].pid());
}

#[test]
fn a_daemon_is_told_of_and_its_spool_kept() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["daemon"]);
    let file = run.file("daemon");
    let run = run.set("FIXTURE_DAEMON", file.to_str().unwrap());
    let done = run.done();
    let pid = told(&file);
    assert_eq!(done.code, 0);
    done.assert_told(&format!("process {pid}: still runs"));
    assert_eq!(done.only().count("kernel"), 6);
    // The spool, and the counters that were sampled meanwhile.
    let spool = run.output().join("spool");
    assert_eq!(std::fs::read_dir(&spool).unwrap().count(), 2);
    let counters = |trace: &Trace| trace.json.to_string().matches("GPU power").count();
    let before = counters(done.only());
    assert!(before > 0);

    // Once it has ended, its trace is made again, in the place of the first.
    std::fs::remove_file(file).unwrap();
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["collect", "--convert"])
        .arg(run.output())
        .output()
        .unwrap();
    assert!(output.status.success());
    let again = traces(&run.output());
    assert_eq!((again.len(), again[0].count("kernel")), (1, 6));
    assert_eq!(counters(&again[0]), before);
    assert!(!spool.exists());
}

#[test]
fn two_ranks_at_once_have_their_own_traces_and_devices() {
    if !has_python() {
        return;
    }
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/fixture.py");
    let script = format!(
        "for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 CUDA_VISIBLE_DEVICES=$rank FAKE_CUDA_UUID=$rank python3 {fixture} steps:3 & done; wait"
    );
    let run = Run::of(&["sh", "-c", &script]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.traces.len(), 2);
    for (rank, trace) in done.traces.iter().enumerate() {
        // Process ids say nothing about the order of ranks.
        let of = trace.json["distributedInfo"]["rank"].as_u64().unwrap();
        assert!(
            trace.name().contains(&format!("_rank{of}.")),
            "{rank} {}",
            trace.name()
        );
        assert_eq!(trace.json["distributedInfo"]["world_size"], 2);
        assert_eq!(trace.count("kernel"), 18);
        // Each sees its device as number 0; NVML knows it under another number.
        let nvml = &trace.json["tracekit_collect"]["nvml"];
        assert_eq!(nvml.as_array().unwrap().len(), 1);
        assert_eq!(
            (&nvml[0]["index"], &nvml[0]["device"]),
            (&of.into(), &0.into())
        );
    }
    let answer = attribution(&run.output());
    let ranks = answer["ranks"].as_array().unwrap();
    let numbers: Vec<_> = ranks.iter().map(|rank| rank["rank"].as_i64()).collect();
    assert_eq!(numbers, [Some(0), Some(1)]);
    assert_eq!(answer["totals"]["total"]["sum_ns"], 2 * 3_000_000);
    assert_eq!(answer["inputs"][0]["world_size"], 2);
}

#[test]
fn counters_of_devices_that_nobody_is_known_to_use_are_in_one_trace() {
    if !has_python() {
        return;
    }
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/fixture.py");
    let script = format!("python3 {fixture} ranges & python3 {fixture} ranges; wait");
    let run = Run::of(&["sh", "-c", &script]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.traces.len(), 2);
    let with_counters = done
        .traces
        .iter()
        .filter(|trace| trace.json.to_string().contains("GPU power"));
    assert_eq!(with_counters.count(), 1);
    // No file of the folder is taken for a capture that lost everything.
    let health = attribution(&run.output())["health"].to_string();
    assert!(!health.contains("empty_capture"), "{health}");
}

#[test]
fn thirty_two_processes_at_once_lose_nothing() {
    if !has_python() {
        return;
    }
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/fixture.py");
    let script = format!(
        "for rank in $(seq 0 31); do RANK=$rank WORLD_SIZE=32 python3 {fixture} steps:5 & done; wait"
    );
    let run = Run::of(&["sh", "-c", &script]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(traces(&run.output()).len(), 32);
    let answer = attribution(&run.output());
    assert_eq!(answer["totals"]["total"]["sum_ns"], 32 * 5_000_000_i64);
    assert_eq!(answer["totals"]["forward"]["sum_ns"], 32 * 5 * 350_000_i64);
    assert_eq!(answer["ranks"].as_array().map(Vec::len), Some(32));
}
