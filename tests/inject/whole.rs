//! Whole runs, with exact counts and times.

use crate::run::{Run, attribution, has_python, nanoseconds, tracekit};

/// What `step` of the fixture takes, in microseconds: forward, backward, optimizer.
const STEP: [i64; 3] = [350, 600, 50];

#[test]
fn a_training_loop_has_exact_counts_times_and_phases() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:7"]);
    let done = run.done();
    assert_eq!((done.code, done.stdout.as_str()), (0, ""));
    let trace = done.only();
    for (category, count) in [
        ("kernel", 7 * 6),
        ("gpu_memcpy", 7),
        ("gpu_memset", 7),
        ("cuda_runtime", 7 * 8),
        ("cuda_driver", 0),
        ("user_annotation", 7 * 3),
    ] {
        assert_eq!(trace.count(category), count, "{category}");
    }
    assert_eq!(trace.sum("kernel"), 7 * 940_000);
    assert_eq!(trace.sum("gpu_memcpy"), 7 * 50_000);
    assert_eq!(trace.sum("gpu_memset"), 7 * 10_000);
    done.assert_told("56 device events, 21 ranges");

    let answer = attribution(&run.output());
    let totals = &answer["totals"];
    for (phase, microseconds) in ["forward", "backward", "optimizer"].into_iter().zip(STEP) {
        assert_eq!(totals[phase]["sum_ns"], microseconds * 7_000, "{phase}");
    }
    assert_eq!(totals["total"]["sum_ns"], 7 * 1_000_000);
    assert_eq!(totals["total"]["launches"], 7 * 8);
    assert_eq!(totals["forward"]["memcpy_ns"], 7 * 50_000);
    assert_eq!(answer["coverage"]["linked_by"]["correlation"], 7 * 8);
    assert_eq!(answer["coverage"]["phases"], "annotated");
    assert_eq!(
        answer["health"].as_array().map(Vec::len),
        Some(0),
        "{}",
        answer["health"]
    );

    let diagnosis = tracekit(&["doctor", "--format", "json"], &run.output());
    assert_eq!(diagnosis["verdict"], "trustworthy", "{diagnosis}");
}

#[test]
fn everything_there_is_comes_out_as_kineto_has_it() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["everything"]);
    let done = run.done();
    let trace = done.only();
    // A hostile name, one of the driver API, four of a graph, one of a call in a call; the one without
    // times is left out.
    assert_eq!(trace.count("kernel"), 7);
    done.assert_told("1 device records have no times and are left out");
    let names = trace.names("kernel");
    assert!(
        names[0].starts_with("evil\"\\\u{1}\u{1b}[31m</script>"),
        "{names:?}"
    );
    assert!(!done.stderr.contains('\u{1b}'));
    let elementwise = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)";
    assert_eq!(names[2..6], [elementwise; 4]);
    let graph: Vec<_> = trace.events("kernel")[2..6]
        .iter()
        .map(|event| event["args"]["graph node id"].as_u64().unwrap())
        .collect();
    assert_eq!(graph, [1, 2, 3, 4]);
    let kernel = &trace.events("kernel")[0]["args"];
    assert_eq!(kernel["grid"].to_string(), "[1024,1,1]");
    assert_eq!(kernel["shared memory"], 1_088);
    assert_eq!(kernel["registers per thread"], 32);
    assert_eq!(kernel["blocks per SM"].to_string(), "7.757576");
    assert_eq!(
        trace.names("gpu_memcpy"),
        ["Memcpy PtoP (Device -> Device)"]
    );
    let peer = &trace.events("gpu_memcpy")[0]["args"];
    assert_eq!(
        (&peer["inDevice"], &peer["toDevice"]),
        (&0.into(), &1.into())
    );
    assert_eq!(trace.names("cuda_sync"), ["Context Sync"]);
    assert_eq!(trace.names("overhead"), ["Buffer Flush"]);
    assert_eq!(trace.sum("overhead"), 9_000);
    // One launch is one call: that of the driver inside one of the runtime is left out.
    assert_eq!(trace.names("cuda_driver"), ["cuLaunchKernel"]);
    assert_eq!(
        trace
            .names("cuda_runtime")
            .iter()
            .filter(|it| **it == "cudaLaunchKernel")
            .count(),
        3
    );
    // Calls that say nothing are muted.
    let calls = trace.names("cuda_runtime");
    let want = ["cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyPeerAsync"];
    assert_eq!(calls[..3], want);
    assert!(!calls.contains(&"cudaGetDevice"));
    // No work starts before its launch, and every launch has an arrow to it.
    let all = trace.json["traceEvents"].as_array().unwrap();
    let at = |ph: &str, id: &serde_json::Value| {
        let event = all
            .iter()
            .find(|event| event["ph"] == ph && event["id"] == *id);
        nanoseconds(&event.unwrap()["ts"])
    };
    let arrows: Vec<_> = all.iter().filter(|event| event["ph"] == "f").collect();
    assert_eq!(arrows.len(), 8);
    for arrow in arrows {
        assert!(at("s", &arrow["id"]) < nanoseconds(&arrow["ts"]));
    }
    let device = &trace.json["deviceProperties"][0];
    assert_eq!(device["name"], "NVIDIA H200 (fake)");
    assert_eq!(
        (&device["numSms"], &device["computeMajor"]),
        (&132.into(), &9.into())
    );
}

#[test]
fn all_ways_to_make_a_range_make_one() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["ranges"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let trace = done.only();
    let want = [
        "a",
        "b",
        "by attributes",
        "wide \u{e9}\u{4e16}",
        "registered",
        "started",
        "mark",
        "phase.recompute",
        "never closed",
    ];
    assert_eq!(trace.names("user_annotation"), want);
    assert_eq!(trace.names("cpu_op"), ["aten::mm"]);
    assert_eq!(
        trace.events("user_annotation")[4]["args"]["domain"],
        "library"
    );
    assert_eq!(trace.events("cpu_op")[0]["args"]["Sequence number"], 4);
    let last = trace.events("user_annotation")[8];
    assert_eq!(last["args"]["finished"], false);
    let all = trace.json["traceEvents"].as_array().unwrap();
    let named = all.iter().any(|event| {
        let name = event["args"]["name"].as_str();
        event["name"] == "thread_name" && name.is_some_and(|name| name.ends_with("(trainer)"))
    });
    assert!(named, "the thread has no name");
}

#[test]
fn many_small_buffers_lose_nothing() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["many:4000"]).set("FAKE_CUDA_BUFFER_LIMIT", "4096");
    let done = run.done();
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.sum("kernel")),
        (4_000, 4_000_000)
    );
    assert_eq!(trace.count("cuda_runtime"), 4_000);
}

#[test]
fn threads_keep_their_ranges_and_launches() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["threads:8"]).set("FAKE_CUDA_BUFFER_LIMIT", "8192");
    let done = run.done();
    let trace = done.only();
    assert_eq!(
        (trace.count("kernel"), trace.count("user_annotation")),
        (800, 800)
    );
    let inside = |call: &serde_json::Value| {
        let start = nanoseconds(&call["ts"]);
        trace.events("user_annotation").iter().any(|range| {
            let from = nanoseconds(&range["ts"]);
            range["tid"] == call["tid"]
                && (from..=from + nanoseconds(&range["dur"])).contains(&start)
        })
    };
    assert!(trace.events("cuda_runtime").into_iter().all(inside));
}

#[test]
fn a_driver_that_tears_down_first_is_read_before() {
    if !has_python() {
        return;
    }
    // The handler of the end is registered again after 20 and 100 ms: the last one runs first.
    let run = Run::new(&["steps:1", "sleep:0.6", "steps:1"]).set("FAKE_CUDA_LATE_TEARDOWN", "1");
    let done = run.done();
    assert_eq!(done.only().count("kernel"), 12);
}

#[test]
fn counters_are_told_by_phase_and_add_up() {
    if !has_python() {
        return;
    }
    // Kernels of some 50 ms each, so that there are samples in every phase.
    let run = Run::new(&["long"]);
    let done = run.done();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let answer = attribution(&run.output());
    let counters = &answer["ranks"][0]["devices"][0]["counters"];
    assert_eq!(counters["energy_from"], "energy");
    let microjoules = |part: &serde_json::Value| part["energy_uj"].as_i64().unwrap();
    let phases = counters["phases"].as_object().unwrap();
    let sum: i64 = phases.values().map(microjoules).sum();
    assert_eq!(sum, microjoules(&counters["total"]));
    for phase in ["forward", "backward", "optimizer"] {
        let part = &phases[phase];
        // The fake draws 300 W; its counter has millijoules, and samples are not taken at once.
        let power = part["power_mw"].as_i64().unwrap();
        assert!((285_000..315_000).contains(&power), "{phase}: {power} mW");
        assert_eq!(part["sm_clock_mhz"]["mean"], 1_980);
        assert_eq!(part["memory_used_max_bytes"], 12_i64 << 30);
        assert_eq!(part["throttled_ns"], 0);
        // Taken by the device itself between two samples.
        for (value, want) in [
            ("sm_utilization_percent", 75),
            ("tensor_utilization_percent", 51),
            ("memory_bandwidth_percent", 33),
            ("pcie_sent_mib_s", 120),
            ("pcie_received_mib_s", 80),
        ] {
            let range = &part[value];
            assert_eq!(
                (&range["min"], &range["max"]),
                (&want.into(), &want.into()),
                "{value}"
            );
        }
    }
    let text = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .arg("attribute")
        .arg(run.output())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("Device counters by phase"), "{text}");
}

#[test]
fn a_trace_without_counters_says_null() {
    if !has_python() {
        return;
    }
    let mut run = Run::new(&["steps:1"]);
    run.without_defaults();
    let run = run.option(&["--interval", "0"]);
    run.done();
    let answer = attribution(&run.output());
    assert!(answer["ranks"][0]["devices"][0]["counters"].is_null());
}
