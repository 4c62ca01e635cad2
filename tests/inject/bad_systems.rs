//! Systems on which something is missing, refused or taken: the program runs, and one line says what
//! is not there.

use crate::run::{Run, has_python, nanoseconds};

#[test]
fn without_any_gpu_the_program_runs_and_has_its_own_status() {
    let run = Run::of(&["sh", "-c", "echo out; exit 7"]).set("TRACEKIT_NVML", "/nowhere/nvml.so");
    let done = run.done();
    assert_eq!((done.code, done.stdout.as_str()), (7, "out\n"));
    done.assert_told("no NVML, so no power, energy, clocks or memory: /nowhere/nvml.so");
    done.assert_told("no process started CUDA or used NVTX");
    assert_eq!(done.stderr.lines().count(), 2, "{}", done.stderr);
    assert!(!run.output().exists(), "an empty folder is left");
}

#[test]
fn without_cupti_there_are_still_ranges() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2", "exit:5"]).set("TRACEKIT_CUPTI", "/nowhere/libcupti.so");
    let done = run.done();
    assert_eq!(done.code, 5);
    done.assert_told("no CUPTI, so no device activity: /nowhere/libcupti.so");
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (0, 6)
    );
}

#[test]
fn a_cupti_without_its_functions_is_none() {
    if !has_python() {
        return;
    }
    let nvml = &crate::members::members().fake_nvml;
    let run = Run::new(&["steps:1"]).set("TRACEKIT_CUPTI", nvml.to_str().unwrap());
    let done = run.done();
    assert_eq!(done.code, 0);
    done.assert_told("libfake_nvml.so has no cuptiSubscribe");
}

#[test]
fn another_subscriber_is_left_alone() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2"]).set("FAKE_CUDA_SUBSCRIBED", "1");
    let done = run.done();
    assert_eq!(done.code, 0);
    done.assert_told(
        "no device activity: another tool has subscribed to CUPTI (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)",
    );
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (0, 6)
    );
}

#[test]
fn a_refused_kind_is_told_and_the_others_are_there() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["everything"]).set("FAKE_CUDA_REFUSED_KIND", "17");
    let done = run.done();
    done.assert_told("CUPTI refuses activity kind 17: CUPTI_ERROR_NOT_SUPPORTED");
    let trace = done.only();
    assert_eq!((trace.count("overhead"), trace.count("kernel")), (0, 7));
}

#[test]
fn stolen_callbacks_are_told() {
    if !has_python() {
        return;
    }
    // The first buffer is filled when the other tool comes, and goes to it.
    let run = Run::new(&["steps:1", "steal", "many:20"]);
    let done = run.done();
    assert_eq!(done.code, 0);
    done.assert_told("1 buffers never came back from CUPTI: another tool, such as torch.profiler");
    let answer = crate::run::attribution(&run.output());
    let codes = answer["health"].to_string();
    assert!(codes.contains("profiler_stopped"), "{codes}");
}

#[test]
fn dropped_records_are_told_here_and_in_the_trace() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:1"]).set("FAKE_CUDA_DROPPED", "12");
    let done = run.done();
    done.assert_told("12 records were dropped by CUPTI");
    let answer = crate::run::attribution(&run.output());
    assert!(
        answer["health"]
            .to_string()
            .contains("Dropped 12 activity records")
    );
}

#[test]
fn without_nvml_there_is_device_activity() {
    if !has_python() {
        return;
    }
    for (name, value, why) in [
        ("TRACEKIT_NVML", "/nowhere/nvml.so", "/nowhere/nvml.so"),
        ("FAKE_NVML_DENIED", "1", "permission"),
    ] {
        let run = Run::new(&["steps:1"]).set(name, value);
        let done = run.done();
        assert_eq!(done.code, 0);
        done.assert_told("no NVML, so no power, energy, clocks or memory: ");
        assert!(done.stderr.contains(why), "{}", done.stderr);
        assert_eq!(done.only().count("kernel"), 6);
    }
}

#[test]
fn what_a_device_does_not_have_is_told_once() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:1", "sleep:0.1"]).set("FAKE_NVML_NO_ENERGY", "1");
    let done = run.done();
    done.assert_told("GPU 0 has no energy: ");
    assert_eq!(done.stderr.matches("has no energy").count(), 2);
    assert!(done.only().json.to_string().contains("GPU power"));
}

#[test]
fn counters_that_older_devices_lack_are_left_out() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:1", "sleep:0.1"]).set("FAKE_NVML_NO_PCIE_RECEIVED", "1");
    let done = run.done();
    done.assert_told("GPU 0 has no PCIe received: ");
    assert!(!done.stderr.contains("GPU 1 has no PCIe received"));
    let names = done.only().json.to_string();
    assert!(names.contains("GPU PCIe sent") && !names.contains("GPU PCIe received\","));

    // Before Hopper there is nothing of the kind, which is no fault.
    let run = Run::new(&["steps:1", "sleep:0.1"]).set("FAKE_NVML_NO_GPM", "1");
    let done = run.done();
    assert!(!done.stderr.contains("has no"), "{}", done.stderr);
    let names = done.only().json.to_string();
    assert!(names.contains("GPU power") && !names.contains("GPU SM utilization"));
}

#[test]
fn an_unwritable_folder_stops_nothing() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args([
            "collect",
            "-o",
            "/dev/null/run",
            "--",
            "sh",
            "-c",
            "echo out; exit 3",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"out\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let want = "tracekit: nothing is recorded: /dev/null/run cannot be written: not a directory";
    assert!(stderr.starts_with(want), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn a_trace_that_cannot_be_written_changes_no_status_and_keeps_its_spool() {
    if !has_python() {
        return;
    }
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/fixture.py");
    let script =
        format!("python3 {fixture} steps:1 block & python3 {fixture} steps:2; wait; exit 6");
    let run = Run::of(&["sh", "-c", &script]);
    let done = run.done();
    assert_eq!(done.code, 6, "{}", done.stderr);
    done.assert_told("a trace is missing, and its spool is kept: ");
    assert_eq!(done.only().count("kernel"), 12);
    // Nothing is in the way any more.
    for entry in std::fs::read_dir(run.output()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "tmp") {
            std::fs::remove_dir(path).unwrap();
        }
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["collect", "--convert"])
        .arg(run.output())
        .output()
        .unwrap();
    assert!(output.status.success());
    let mut kernels: Vec<_> = crate::run::traces(&run.output())
        .iter()
        .map(|trace| trace.count("kernel"))
        .collect();
    kernels.sort_unstable();
    assert_eq!(kernels, [6, 12]);
}

#[test]
fn a_missing_library_stops_nothing() {
    let run = Run::of(&["sh", "-c", "exit 4"]).set("TRACEKIT_INJECT", "/nowhere/inject.so");
    let done = run.done();
    assert_eq!(done.code, 4);
    done.assert_told("no device activity and no ranges: /nowhere/inject.so: no such file");
}

#[test]
fn a_clock_of_cupti_that_is_off_is_set_right() {
    if !has_python() {
        return;
    }
    // Two seconds behind: without a shift the launches would be outside of their ranges.
    let run = Run::new(&["steps:2"]).set("FAKE_CUDA_CLOCK_OFFSET", "2000000000");
    let done = run.done();
    done.assert_told("CUPTI's clock is");
    let answer = crate::run::attribution(&run.output());
    let trace = done.only();
    let first = |category| nanoseconds(&trace.events(category)[0]["ts"]);
    let apart = first("cuda_runtime") - first("user_annotation");
    // The clocks are read one after the other, on a machine that may be busy.
    assert!(apart.abs() < 500_000_000, "{apart}");
    assert_eq!(answer["totals"]["total"]["sum_ns"], 2_000_000);
}
