//! Whole rooflines of small traces, with numbers computed by hand.

use super::super::testing::{cells, frames};
use super::super::{By, Frame, InspectOptions, Topic};
use super::DeviceTable;

const A100: &str = r#"[{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}]"#;

fn event(cat: &str, row: &str, ts: u64, dur: u64, name: &str, args: &str) -> String {
    let (pid, tid) = row.split_once('/').unwrap();
    format!(
        r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}, "ts": {ts}, "dur": {dur}, "args": {{{args}}}}}"#
    )
}

fn note(ts: u64, dur: u64, name: &str) -> String {
    event("user_annotation", "1/1", ts, dur, name, "")
}

/// An operator on the host; types and values as words between `|`.
fn op(ts: u64, dur: u64, name: &str, dims: &str, types: &str, values: &str) -> String {
    let list = |words: &str| {
        let words: Vec<String> = words.split('|').map(|word| format!("\"{word}\"")).collect();
        words.join(",")
    };
    let args = format!(
        r#""Input Dims": {dims}, "Input type": [{}], "Concrete Inputs": [{}]"#,
        list(types),
        list(values)
    );
    event("cpu_op", "1/1", ts, dur, name, &args)
}

/// A launch at `ts` and its device work.
fn launch(ts: u64, correlation: u64, cat: &str, start: u64, dur: u64, name: &str) -> [String; 2] {
    let id = format!(r#""correlation": {correlation}"#);
    let on_device = format!(r#"{id}, "device": 0, "stream": 7"#);
    [
        event("cuda_runtime", "1/1", ts, 1, "cudaLaunchKernel", &id),
        event(cat, "0/7", start, dur, name, &on_device),
    ]
}

fn trace(devices: &str, events: &[String]) -> String {
    let events = events.join(",\n");
    format!(r#"{{"deviceProperties": {devices}, "traceEvents": [{events}]}}"#)
}

fn look(devices: &str, events: &[String], options: &InspectOptions) -> Vec<Frame> {
    frames(&trace(devices, events), Topic::Roofline, options)
}

const BF16: &str = "c10::BFloat16|c10::BFloat16|c10::BFloat16";
const MM: &str = "[[1024,1024],[1024,1024]]";
/// 2·1024³
const MM_FLOPS: u64 = 2_147_483_648;

/// Two steps: a linear layer, a ReLU, a copy from the host, something unknown; then a product that is
/// recomputed and one that is not.
fn two_steps() -> Vec<String> {
    let mut events = vec![
        note(0, 1000, "ProfilerStep#0"),
        op(
            10,
            50,
            "aten::linear",
            "[[1024,1024],[1024,1024],[1024]]",
            BF16,
            "||",
        ),
        op(
            20,
            30,
            "aten::addmm",
            "[[1024],[1024,1024],[1024,1024],[],[]]",
            BF16,
            "|||1|1",
        ),
        op(70, 10, "aten::relu", "[[1024,1024]]", "c10::BFloat16", ""),
        op(
            90,
            10,
            "aten::copy_",
            "[[1000],[1000],[]]",
            "float|float|Scalar",
            "||False",
        ),
        op(110, 10, "my::fused", "[[1024,1024]]", "c10::BFloat16", ""),
        note(1000, 1000, "ProfilerStep#1"),
        note(1010, 90, "phase.recompute"),
        op(1020, 20, "aten::mm", MM, BF16, ""),
        op(1120, 20, "aten::mm", MM, BF16, ""),
    ];
    events.extend(launch(30, 1, "kernel", 100, 20, "bf16_gemm"));
    events.extend(launch(72, 2, "kernel", 120, 10, "relu"));
    events.extend(launch(
        92,
        3,
        "gpu_memcpy",
        130,
        5,
        "Memcpy HtoD (Pinned -> Device)",
    ));
    events.extend(launch(112, 4, "kernel", 135, 30, "fused"));
    events.extend(launch(1025, 5, "kernel", 1100, 20, "bf16_gemm"));
    events.extend(launch(1125, 6, "kernel", 1130, 20, "bf16_gemm"));
    events
}

#[test]
fn operators_are_held_against_the_roofline() {
    let found = look(A100, &two_steps(), &InspectOptions::default());
    let columns = [
        "operator",
        "family",
        "precision",
        "calls",
        "flops",
        "moved_bytes",
        "sum_ns",
        "busy_ns",
        "bound",
        "roofline_ns",
        "peak",
    ];
    assert_eq!(
        cells(&found, "roofline", &columns),
        [
            // 2·1024³ / 312e12 = 6.883 µs each, 3·2 MiB / 1555e9 = 4.046 µs.
            "aten::mm matmul bf16 2 4294967296 12582912 40000 40000 compute 13766 theoretical",
            "my::fused - - - - - 30000 30000 - - -",
            "aten::addmm matmul bf16 1 2147483648 6293504 20000 20000 compute 6883 theoretical",
            // 4 MiB / 1555e9 = 2.697 µs, 1024² / 19.5e12 = 0.054 µs.
            "aten::relu elementwise bf16 1 1048576 4194304 10000 10000 memory 2698 theoretical",
            // The bus bounds it, not the memory.
            "aten::copy_ copy fp32 1 0 8000 5000 5000 - - -",
        ]
    );
    let columns = [
        "achieved_tflops",
        "achieved_gbps",
        "intensity",
        "roofline_share",
    ];
    let rates = cells(&found, "roofline", &columns);
    // 2·2147483648 / 40 µs; 12582912 / 40 µs; 4294967296 / 12582912; 13766 / 40000.
    assert_eq!(rates[0], "107.3742 314.5728 341.3333 0.3442");
    assert_eq!(rates[1], "- - - -");
}

#[test]
fn utilisation_is_model_flops_over_the_time_of_the_step() {
    let found = look(A100, &two_steps(), &InspectOptions::default());
    let columns = [
        "step",
        "device",
        "step_ns",
        "model_flops",
        "recomputed_flops",
        "other_flops",
        "compute_ns",
        "modelled_ns",
    ];
    assert_eq!(
        cells(&found, "utilisation", &columns),
        [
            // From its range to the first work of the next step.
            format!("ProfilerStep#0 0 1100000 {MM_FLOPS} 0 1048576 60000 30000"),
            // To the end of its range.
            format!("ProfilerStep#1 0 900000 {MM_FLOPS} {MM_FLOPS} 0 40000 40000"),
            format!(
                "(all steps) 0 2000000 {} {MM_FLOPS} 1048576 100000 70000",
                2 * MM_FLOPS
            ),
        ]
    );
    let rates = cells(&found, "utilisation", &["mfu", "hfu", "coverage", "peak"]);
    // 6.88296 µs / 1100 µs; / 900 µs, and twice that; 13.766 / 2000 and 20.649 / 2000.
    assert_eq!(
        rates,
        [
            "0.0063 0.0063 0.5000 theoretical",
            "0.0076 0.0153 1.0000 theoretical",
            "0.0069 0.0103 0.7000 theoretical",
        ]
    );
}

#[test]
fn groups_split_rows_and_the_smallest_are_put_together() {
    let by = InspectOptions {
        by: vec![By::Phase, By::Step, By::Shape],
        top: 2,
        ..InspectOptions::default()
    };
    let found = look(A100, &two_steps(), &by);
    let columns = [
        "operator", "step", "phase", "shape", "calls", "flops", "sum_ns",
    ];
    assert_eq!(
        cells(&found, "roofline", &columns),
        [
            "my::fused ProfilerStep#0 forward - - - 30000",
            "aten::addmm ProfilerStep#0 forward [[1024],[1024,1024],[1024,1024],[],[]] 1 2147483648 20000",
            "(others) - - - 4 4296015872 55000",
        ]
    );
}

#[test]
fn without_a_known_device_there_are_rates_but_no_roofline() {
    for devices in ["[]", r#"[{"id": 0, "name": "NVIDIA H100"}]"#] {
        let found = look(devices, &two_steps(), &InspectOptions::default());
        let columns = [
            "achieved_tflops",
            "intensity",
            "bound",
            "roofline_ns",
            "roofline_share",
            "peak",
        ];
        assert_eq!(
            cells(&found, "roofline", &columns)[0],
            "107.3742 341.3333 - - - -"
        );
        let columns = ["model_flops", "mfu", "hfu", "peak", "peak_source"];
        assert_eq!(
            cells(&found, "utilisation", &columns)[0],
            format!("{MM_FLOPS} - - - -")
        );
    }
    let own = "[[device]]\nnames = ['H100']\nsource = 'ours'\nbandwidth_gbps = 3000\n\
        matrix = { bf16 = 600 }\ntheoretical = false\n";
    let options = InspectOptions {
        devices: Some(DeviceTable::from_toml(own).unwrap()),
        ..InspectOptions::default()
    };
    let devices = r#"[{"id": 0, "name": "NVIDIA H100"}]"#;
    let found = look(devices, &two_steps(), &options);
    let row = &cells(&found, "utilisation", &["mfu", "peak", "peak_source"])[0];
    assert_eq!(row, "0.0033 measured ours");
    // No rate of vector units is known: no roofline for ReLU.
    let rows = cells(&found, "roofline", &["operator", "roofline_ns"]);
    assert!(rows.contains(&"aten::relu -".to_owned()), "{rows:?}");
}

#[test]
fn on_the_host_alone_operators_count_once_without_time() {
    let events = [
        op(
            0,
            50,
            "aten::linear",
            "[[4,3],[5,3],[5]]",
            "float|float|float",
            "||",
        ),
        op(
            10,
            30,
            "aten::addmm",
            "[[5],[4,3],[3,5],[],[]]",
            "float|float|float",
            "|||1|1",
        ),
        op(
            20,
            5,
            "aten::copy_",
            "[[4,5],[5],[]]",
            "float|float|Scalar",
            "||False",
        ),
        op(60, 9, "aten::matmul", "[[4,3],[3,5]]", "float|float", ""),
        op(70, 9, "aten::zero_", "[[8]]", "float", ""),
        op(72, 5, "aten::fill_", "[[8],[]]", "float|Scalar", "|0"),
        op(
            80,
            9,
            "aten::mm",
            "[[9223372036854775807,3],[3,9223372036854775807]]",
            "float|float",
            "",
        ),
        op(
            90,
            9,
            "aten::conv2d",
            "[[1,1,8,8],[1,1,3,3],[],[],[],[],[]]",
            "float|float",
            "",
        ),
    ];
    let found = look("[]", &events, &InspectOptions::default());
    let columns = [
        "operator",
        "device",
        "calls",
        "flops",
        "moved_bytes",
        "sum_ns",
        "busy_ns",
    ];
    let mut rows = cells(&found, "roofline", &columns);
    rows.sort();
    assert_eq!(
        rows,
        [
            "aten::addmm - 1 120 208 - -",
            "aten::copy_ - 1 0 100 - -",
            "aten::fill_ - 1 0 32 - -",
            "aten::matmul - 1 120 188 - -",
        ]
    );
    let columns = ["step", "step_ns", "model_flops", "mfu", "coverage"];
    assert_eq!(
        cells(&found, "utilisation", &columns),
        ["(capture) - 240 - -"]
    );
}

#[test]
fn a_product_around_another_does_not_count_and_a_copy_inside_does() {
    let types = "float|float||ScalarList|ScalarList|ScalarList|Scalar|ScalarList|Scalar";
    let values = "|||[1, 1]|[0, 0]|[1, 1]|False|[0, 0]|1";
    let dims = "[[1,1,8,8],[1,1,3,3],[],[],[],[],[],[],[]]";
    let mut events = vec![
        op(0, 90, "aten::convolution", dims, types, values),
        op(
            10,
            10,
            "aten::copy_",
            "[[64],[64],[]]",
            "float|float|Scalar",
            "",
        ),
        op(30, 30, "aten::mm", "[[36,9],[9,1]]", "float|float", ""),
    ];
    events.extend(launch(12, 1, "kernel", 100, 5, "copy"));
    events.extend(launch(32, 2, "kernel", 110, 5, "ampere_sgemm_tf32_nn"));
    // Launched by the convolution itself, of which the product counts: it has no FLOPs of its own.
    events.extend(launch(70, 3, "kernel", 120, 5, "rest"));
    let found = look(A100, &events, &InspectOptions::default());
    let mut rows = cells(
        &found,
        "roofline",
        &["operator", "family", "precision", "flops", "sum_ns"],
    );
    rows.sort();
    assert_eq!(
        rows,
        [
            "aten::convolution - - - 5000",
            "aten::copy_ copy fp32 0 5000",
            "aten::mm matmul tf32 648 5000",
        ]
    );
    // Without steps the time is that of the capture: 100 to 125 µs.
    let row = cells(
        &found,
        "utilisation",
        &["step", "step_ns", "model_flops", "coverage"],
    );
    assert_eq!(row, ["(capture) 25000 648 0.6667"]);
}

#[test]
fn a_trace_without_shapes_has_no_flops_rather_than_none() {
    let mut events = vec![
        note(0, 100, "ProfilerStep#0"),
        event("cpu_op", "1/1", 10, 20, "aten::mm", ""),
    ];
    events.extend(launch(15, 1, "kernel", 40, 20, "gemm"));
    let found = look(A100, &events, &InspectOptions::default());
    let columns = ["operator", "calls", "flops", "sum_ns"];
    assert_eq!(cells(&found, "roofline", &columns), ["aten::mm - - 20000"]);
    let columns = ["model_flops", "mfu", "compute_ns", "coverage"];
    let rows = cells(&found, "utilisation", &columns);
    assert_eq!(rows, ["- - 20000 0.0000", "- - 20000 0.0000"]);
}
