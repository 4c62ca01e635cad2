//! Spools with a limit: stopping there, and keeping the newest.

use std::path::PathBuf;

use crate::run::{Done, Run, Trace, attribution, has_python, nanoseconds, tracekit};

fn spools(run: &Run) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.output().join("spool")).unwrap();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tkspool"))
        .collect();
    paths.sort();
    paths
}

fn bytes(run: &Run) -> u64 {
    let spools = spools(run);
    spools
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum()
}

/// The number in front of `what` in the messages.
fn told(done: &Done, what: &str) -> usize {
    let before = done.stderr.split(what).next().unwrap();
    assert!(
        before.len() < done.stderr.len(),
        "no {what}:\n{}",
        done.stderr
    );
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// What the trace says was removed.
fn removed(trace: &Trace, what: &str) -> usize {
    let value = &trace.json["tracekit_collect"]["removed"][what];
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn a_spool_stops_at_its_limit_and_says_what_is_missing() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["many:20000"]).option(&[
        "--max-spool",
        "1MB",
        "--buffer-size",
        "64KiB",
        "--keep-spool",
    ]);
    let done = run.done();
    assert_eq!(done.code, 0);
    done.assert_told("recording stopped: the spool has reached its limit of 1000000 bytes");
    let bytes = bytes(&run);
    assert!((900_000..1_070_000).contains(&bytes), "{bytes}");
    let trace = done.only();
    // A kernel and a call are 248 bytes.
    let kernels = trace.count("kernel");
    assert!((3_600..4_100).contains(&kernels), "{kernels}");
    // Recording stopped in CUPTI, too: what came until then is counted.
    assert!(told(&done, " activity records (") > 0);
    assert!(
        attribution(&run.output())["health"]
            .to_string()
            .contains("profiler_stopped")
    );
}

#[test]
fn a_ring_keeps_the_newest_and_says_what_it_removed() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["held:20000"]).option(&[
        "--max-spool",
        "1MB",
        "--ring",
        "--buffer-size",
        "64KiB",
        "--keep-spool",
    ]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let bytes = bytes(&run);
    assert!((700_000..1_000_000).contains(&bytes), "{bytes}");
    let trace = done.only();
    let kernels = trace.events("kernel");
    // The last ones are there, with their names, which were told in a file that is gone.
    assert!((2_500..4_100).contains(&kernels.len()), "{}", kernels.len());
    let last = &kernels[kernels.len() - 5..];
    assert!(
        last.iter()
            .all(|kernel| nanoseconds(&kernel["dur"]) == 7_000)
    );
    assert!(
        last[4]["name"]
            .as_str()
            .unwrap()
            .starts_with("sm90_xmma_gemm")
    );
    let first = kernels[0]["name"].as_str().unwrap();
    assert!(first.starts_with("void at::native::vectorized"), "{first}");
    // Nothing is missing between the first and the last, and all that is gone is counted.
    assert_eq!(kernels.len() + removed(trace, "device_records"), 20_005);
    assert_eq!(
        told(&done, " of the device) and"),
        removed(trace, "device_records")
    );
    done.assert_told("only the newest records were kept (--ring)");
    assert_eq!(removed(trace, "ranges"), 0);
    assert_eq!(trace.json["tracekit_collect"]["ended_in_order"], true);
    // What the first file said of the device is known.
    assert_eq!(
        trace.json["deviceProperties"][0]["name"],
        "NVIDIA H200 (fake)"
    );
    assert_eq!(trace.json["tracekit_collect"]["nvml"][0]["index"], 0);
    // The range that was open all the time has its real start, and all work with a launch is in it.
    assert_eq!(trace.names("user_annotation"), ["phase.backward", "last"]);
    let answer = attribution(&run.output());
    let totals = &answer["totals"];
    let launched = totals["backward"]["launches"].as_u64().unwrap();
    let calls = trace.count("cuda_runtime") as u64;
    assert!(calls.abs_diff(launched) < 10, "{launched} of {calls}");
    let health = answer["health"].to_string();
    let want = format!("Dropped {} activity records", removed(trace, "records"));
    assert!(
        health.contains("profiler_stopped") && health.contains(&want),
        "{health}"
    );
}

#[test]
fn a_ring_that_is_large_enough_removes_nothing() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:20"]).option(&["--max-spool", "64MB", "--ring"]);
    let done = run.done();
    let trace = done.only();
    assert_eq!(trace.count("kernel"), 120);
    assert!(trace.json["tracekit_collect"]["removed"].is_null());
    let diagnosis = tracekit(&["doctor", "--format", "json"], &run.output());
    assert_eq!(diagnosis["verdict"], "trustworthy", "{diagnosis}");
}

#[test]
fn a_killed_process_leaves_the_newest_of_its_ring() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["many:10000", "steps:3", "flushed", "kill:9"]).option(&[
        "--max-spool",
        "500KB",
        "--ring",
        "--buffer-size",
        "16KiB",
    ]);
    let done = run.done();
    assert_eq!(done.code, 137);
    let trace = done.only();
    assert_eq!(trace.json["tracekit_collect"]["ended_in_order"], false);
    // Three steps of six kernels are the end.
    let backward: Vec<_> = trace
        .events("kernel")
        .into_iter()
        .filter(|kernel| nanoseconds(&kernel["dur"]) == 200_000)
        .collect();
    assert_eq!(backward.len(), 3 * 4);
    assert_eq!(
        trace.count("kernel") + removed(trace, "device_records"),
        10_018
    );
    assert_eq!(trace.count("user_annotation"), 9);
}

#[test]
fn a_ring_of_ranges_alone_keeps_the_newest() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["threads:60"])
        .set("TRACEKIT_CUPTI", "/nowhere/libcupti.so")
        .option(&["--max-spool", "256KiB", "--ring"]);
    let done = run.done();
    let trace = done.only();
    let kept = trace.count("user_annotation");
    assert!((2_000..6_000).contains(&kept), "{kept}");
    assert_eq!(kept + removed(trace, "ranges"), 6_000);
}

#[test]
fn a_long_command_line_leaves_room_for_records() {
    if !has_python() {
        return;
    }
    let pad = format!("pad:{}", "x".repeat(100_000));
    let run = Run::new(&["many:4000", &pad])
        .option(&["--max-spool", "256KiB", "--ring", "--keep-spool"])
        .option(&["--buffer-size", "16KiB"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let bytes = bytes(&run);
    assert!((180_000..=256 << 10).contains(&bytes), "{bytes}");
    let kernels = done.only().count("kernel");
    assert!(kernels > 300, "{kernels}");
}

#[test]
fn a_full_disk_stops_recording_and_not_the_program() {
    if !has_python() {
        return;
    }
    // A limit on the size of files fails as a full disk does.
    let run = Run::new(&["file-limit:600000", "many:20000", "say", "exit:4"])
        .option(&["--buffer-size", "64KiB"]);
    let done = run.done();
    assert_eq!((done.code, done.stdout.as_str()), (4, "to stdout\n"));
    assert!(
        done.stderr
            .contains("recording stopped: the spool cannot be written any more (file too large"),
        "{}",
        done.stderr
    );
    let trace = done.traces.first().unwrap();
    assert!(trace.count("kernel") > 1_000, "{}", trace.count("kernel"));
    // The end is told: nothing has to be guessed.
    assert_eq!(trace.json["tracekit_collect"]["ended_in_order"], true);
    let notes = trace.json["tracekit_collect"]["notes"].to_string();
    assert!(
        notes.contains("came when no more could be written"),
        "{notes}"
    );
    assert!(!notes.contains("cannot be read"), "{notes}");
}
