//! What can be asked for.

use crate::run::{Run, has_python};

#[test]
fn only_the_kinds_asked_for_are_recorded() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["everything"]).option(&["--kinds", "kernel,runtime"]);
    let done = run.done();
    let trace = done.only();
    assert_eq!((trace.count("kernel"), trace.count("gpu_memcpy")), (7, 0));
    assert_eq!(
        (trace.count("cuda_driver"), trace.count("cuda_sync")),
        (0, 0)
    );
    assert!(trace.count("cuda_runtime") > 0);
}

#[test]
fn a_range_opens_and_shuts_recording() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["triggered"]).option(&["--range", "profiled"]);
    let done = run.done();
    let trace = done.only();
    assert_eq!((trace.count("kernel"), trace.sum("kernel")), (2, 20_000));
    // What was open around it is there, what came before or after is not.
    let names = trace.names("user_annotation");
    assert_eq!(names, ["run", "profiled", "inside", "profiled", "inside"]);
}

#[test]
fn a_delay_and_a_duration_cut_a_piece_out() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2"]).option(&["--delay", "60s"]);
    let done = run.done();
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (0, 0)
    );

    let run = Run::new(&["sleep:0.3", "steps:2"]).option(&["--duration", "1ms"]);
    let done = run.done();
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (0, 0)
    );

    let run = Run::new(&["steps:1", "sleep:0.5", "steps:2"]).option(&["--delay", "300ms"]);
    let done = run.done();
    let kernels = done.only().count("kernel");
    // The program may start late on a busy machine: then the first step is in it, too.
    assert!(kernels == 12 || kernels == 18, "{kernels}");
}

#[test]
fn variables_are_set_for_the_program() {
    let run = Run::of(&[
        "sh",
        "-c",
        "echo $COLOR $CUDA_INJECTION64_PATH; echo ${KINETO_USE_DAEMON-unset}",
    ])
    .set("KINETO_USE_DAEMON", "1")
    .option(&["--env", "COLOR=a=b"]);
    let done = run.done();
    let inject = crate::members::members().inject.display();
    assert_eq!(done.stdout, format!("a=b {inject}\nunset\n"));
    done.assert_told("KINETO_USE_DAEMON is unset for the command");
}

#[test]
fn nvml_is_not_asked_with_an_interval_of_zero() {
    if !has_python() {
        return;
    }
    let mut run = Run::new(&["steps:1"]);
    run.without_defaults();
    let done = run.option(&["--interval", "0"]).done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    done.assert_told("8 device events, 3 ranges, 0 samples");
}

#[test]
fn the_interval_says_how_often_nvml_is_asked() {
    let power = |interval: &str| {
        let run = Run::of(&["sleep", "0.5"]).option(&["--interval", interval]);
        let done = run.done();
        assert_eq!(done.code, 0, "{}", done.stderr);
        let text = done.only().json.to_string();
        text.matches("GPU power").count()
    };
    // Two devices, at the start and at the end.
    assert_eq!(power("10s"), 4);
    assert!(power("50ms") > 8);
}

#[test]
fn what_was_not_flushed_is_lost_with_a_killed_process() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2", "sleep:0.3", "kill:9"]).option(&["--flush-period", "30s"]);
    let done = run.done();
    assert_eq!(done.code, 137);
    done.assert_told("the process did not end in order");
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (0, 0)
    );
}

#[test]
fn buffers_have_the_size_that_was_asked_for() {
    if !has_python() {
        return;
    }
    let longest = |size: &str| {
        let spools = crate::files::spools(&["many:1000"], &["--buffer-size", size]);
        let frames = tracekit_spool::Frames::new(&spools[0]).unwrap();
        let buffers = frames.filter(|frame| frame.tag == Some(tracekit_spool::Tag::Buffer));
        buffers.map(|frame| frame.data.len()).max().unwrap()
    };
    // A launch is two records of 256 bytes.
    assert!((8_192 - 256..=8_192).contains(&longest("8KiB")));
    assert!((65_536 - 256..=65_536).contains(&longest("64KiB")));
}

#[test]
fn counters_can_be_sampled_alone() {
    let run = Run::of(&[]).option(&["--nvml-only", "--duration", "200ms"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let trace = done.only();
    assert!(trace.name().ends_with("_nvml.pt.trace.json.gz"));
    let events = trace.json["traceEvents"].as_array().unwrap();
    let power = |device: i64| {
        let of = events.iter().filter(move |event| event["pid"] == device);
        let power = of.filter(|event| event["name"] == "GPU power");
        power
            .map(|event| event["args"]["mW"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    assert!(power(0).len() > 1 && power(0).iter().all(|value| *value == 300_000));
    assert!(power(1).iter().all(|value| *value == 500_000));

    let run = Run::of(&[])
        .option(&["--nvml-only", "--duration", "50ms"])
        .set("TRACEKIT_NVML", "/nowhere/nvml.so");
    let done = run.done();
    assert_eq!((done.code, done.traces.len()), (2, 0));
    done.assert_told("no NVML");
}

#[test]
fn check_says_what_is_there() {
    let members = crate::members::members();
    let check = |cupti: &std::path::Path| {
        std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
            .args(["collect", "--check"])
            .env("TRACEKIT_INJECT", &members.inject)
            .env("TRACEKIT_CUPTI", cupti)
            .env("TRACEKIT_NVML", &members.fake_nvml)
            .output()
            .unwrap()
    };
    let output = check(&members.fake_cuda);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("cupti       yes  version 130001"), "{text}");
    assert!(
        text.contains("nvml        yes  driver 580.95.05; NVIDIA H200 (fake 0)"),
        "{text}"
    );
    let all = text
        .lines()
        .all(|line| line.split_whitespace().nth(1) == Some("yes"));
    assert_eq!(output.status.code(), Some(if all { 0 } else { 2 }));
    let output = check(std::path::Path::new("/nowhere/libcupti.so"));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("cupti       no   /nowhere")
    );
}

#[test]
fn free_memory_is_asked_of_the_first_device_that_is_visible() {
    let members = crate::members::members();
    // 150 GiB, of which the first device uses 12, the second 13, and the driver one more.
    for (visible, free) in [(None, 137.0), (Some("1"), 136.0), (Some("0,1"), 137.0)] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"));
        command
            .args([
                "evidence",
                "preflight",
                "--python",
                "no-such-python",
                "--strategy",
            ])
            .arg("fixtures/gate/results/76_real_gpu_memory.json")
            .args(["--format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("TRACEKIT_NVML", &members.fake_nvml)
            .env_remove("CUDA_VISIBLE_DEVICES");
        if let Some(visible) = visible {
            command.env("CUDA_VISIBLE_DEVICES", visible);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let admission = &told["memory_admission"];
        assert_eq!(
            admission["free_memory_mb_before_load"],
            free * 1024.0,
            "{visible:?}"
        );
        assert_eq!(admission["total_memory_mb"], 153_600.0);
        assert_eq!(admission["admitted"], true);
    }
}

#[test]
fn the_driver_is_asked_about_its_devices() {
    let folder = tempfile::tempdir().unwrap();
    let members = crate::members::members();
    std::os::unix::fs::symlink(&members.fake_cuda, folder.path().join("libcuda.so")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["collect", "--check"])
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let want = "driver      yes  CUDA 13.0; NVIDIA H200 (fake), 150 GB, 132 multiprocessors, compute capability 9.0";
    assert!(text.contains(want), "{text}");
}

#[test]
fn a_folder_with_traces_is_not_mixed_with_another_run() {
    let run = Run::of(&["sh", "-c", "echo ran"]);
    std::fs::create_dir(run.output()).unwrap();
    std::fs::write(run.output().join("a.pt.trace.json.gz"), "").unwrap();
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["collect", "-o"])
        .arg(run.output())
        .args(["--", "sh", "-c", "echo ran"])
        .output()
        .unwrap();
    assert_eq!(
        (done.status.code(), done.stdout.as_slice()),
        (Some(2), &b""[..])
    );
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(
        stderr.contains("holds traces or spools already"),
        "{stderr}"
    );
}

#[test]
fn wrong_usage_is_refused_before_anything_runs() {
    for arguments in [
        &["collect"][..],
        &["collect", "--check", "--", "true"],
        &["collect", "--delay", "5", "--", "true"],
        &["collect", "--kinds", "kernels", "--", "true"],
        &["collect", "--range", "a", "--delay", "1s", "--", "true"],
        &["collect", "--env", "x", "--", "true"],
        &["collect", "--ring", "--", "true"],
        &["collect", "--buffer-size", "1KiB", "--", "true"],
        &["collect", "--flush-period", "2min", "--", "true"],
        &["collect", "--max-spool", "100KiB", "--", "true"],
        &["collect", "--convert", "/nowhere"],
        &["collect", "--nvml-only", "--interval", "0"],
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
}
