//! Rules of inference: each on a trace where it must hold, where it must not, and where nothing tells.

mod counted;
#[cfg(feature = "frames")]
mod queries;

use std::path::PathBuf;

use tracekit::attribute::{AttributeOptions, Request};
use tracekit::infer::{Inferences, Level, Ratio, Thresholds, Verdict, explanations, infer_paths};
use tracekit::ingest::IngestOptions;

use crate::support::{corpus, package};

/// A trace in whole microseconds, four steps of 1000 us unless said otherwise.
struct Sketch {
    head: String,
    events: Vec<String>,
    correlation: u64,
}

const STEPS: i64 = 4;

impl Sketch {
    fn with_steps(lengths: &[u64]) -> Self {
        let mut sketch = Self {
            head: String::new(),
            events: Vec::new(),
            correlation: 0,
        };
        let mut at = 1000;
        for (number, length) in lengths.iter().enumerate() {
            let name = format!("ProfilerStep#{number}");
            sketch.host("user_annotation", &name, at, *length);
            at += length;
        }
        sketch
    }

    /// Four even steps, each filled by `fill`, which gets its start.
    fn new(fill: impl Fn(&mut Self, u64)) -> Self {
        let mut sketch = Self::with_steps(&[1000; 4]);
        for step in 1..=4 {
            fill(&mut sketch, step * 1000);
        }
        sketch
    }

    fn head(mut self, head: &str) -> Self {
        self.head = format!("{head},");
        self
    }

    fn host(&mut self, cat: &str, name: &str, ts: u64, dur: u64) {
        self.events.push(format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}"#
        ));
    }

    fn launch(&mut self, ts: u64, dur: u64) {
        self.correlation += 1;
        let correlation = self.correlation;
        self.events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{ts},"dur":{dur},"args":{{"correlation":{correlation}}}}}"#
        ));
    }

    /// Work of the last launch.
    fn device(&mut self, cat: &str, name: &str, stream: u64, ts: u64, dur: u64, args: &str) {
        let correlation = self.correlation;
        self.events.push(format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":0,"tid":{stream},"ts":{ts},"dur":{dur},"args":{{"device":0,"stream":{stream},"correlation":{correlation}{args}}}}}"#
        ));
    }

    /// A kernel that was launched long before it runs.
    fn kernel(&mut self, name: &str, ts: u64, dur: u64) {
        self.launch(ts - 200, 4);
        self.device("kernel", name, 7, ts, dur, "");
    }

    /// A kernel for which the device waits: it starts as soon as it is launched.
    fn late(&mut self, name: &str, ts: u64, dur: u64) {
        self.launch(ts - 5, 4);
        self.device("kernel", name, 7, ts, dur, "");
    }

    fn text(&self) -> String {
        format!(
            r#"{{{}"traceEvents":[{}]}}"#,
            self.head,
            self.events.join(",\n")
        )
    }
}

/// Device work whose launches are not in the file.
fn unlinked() -> Sketch {
    Sketch::new(|sketch, at| {
        sketch.correlation += 900;
        sketch.device("kernel", "gemm", 7, at + 500, 400, "");
    })
}

/// Devices that are always busy.
fn busy() -> Sketch {
    Sketch::new(|sketch, at| sketch.kernel("elementwise", at, 1000))
}

fn host_only() -> Sketch {
    Sketch::new(|sketch, at| sketch.host("cpu_op", "aten::mm", at, 900))
}

fn inferred(traces: &[Sketch], thresholds: &Thresholds) -> Inferences {
    let folder = tempfile::tempdir().unwrap();
    for (rank, trace) in traces.iter().enumerate() {
        let path = folder.path().join(format!("rank{rank}.pt.trace.json"));
        std::fs::write(path, trace.text()).unwrap();
    }
    of_paths(&[folder.path().to_owned()], thresholds)
}

fn request<'a>(paths: &'a [PathBuf], options: &'a AttributeOptions) -> Request<'a> {
    Request {
        paths,
        ingest: IngestOptions::default(),
        options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: None,
    }
}

fn of_paths(paths: &[PathBuf], thresholds: &Thresholds) -> Inferences {
    let options = AttributeOptions::default();
    let request = request(paths, &options);
    let inferences = infer_paths(&request, thresholds, &|_| {});
    let inferences = inferences.unwrap_or_else(|error| panic!("{error}"));
    #[cfg(feature = "frames")]
    queries::check(&request, &inferences);
    inferences
}

#[track_caller]
fn check(code: &str, expected: Verdict, traces: &[Sketch]) {
    let inferences = inferred(traces, &Thresholds::default());
    check_verdict(code, expected, &inferences);
}

#[track_caller]
fn check_verdict(code: &str, expected: Verdict, inferences: &Inferences) {
    let run = &inferences.runs[0];
    let inference = run
        .inferences
        .iter()
        .find(|inference| inference.code == code)
        .unwrap();
    assert_eq!(inference.verdict, expected, "{inference:#?}");
    let decided = [Verdict::Supported, Verdict::Refuted].contains(&expected);
    assert_eq!(inference.confidence.is_some(), decided, "{inference:#?}");
}

/// The effect in microseconds.
fn effect(code: &str, trace: Sketch) -> i64 {
    let inferences = inferred(&[trace], &Thresholds::default());
    let all = &inferences.runs[0].inferences;
    let inference = all.iter().find(|inference| inference.code == code).unwrap();
    inference.effect.unwrap().ns.0 / 1000
}

/// Traces, or a fixture.
enum Sample {
    Traces(Vec<Sketch>),
    Fixture(&'static str),
}

/// For each rule: where it must hold, where it must not, and where evidence is missing.
fn samples(code: &str) -> [Sample; 3] {
    let one = |trace: Sketch| Sample::Traces(vec![trace]);
    let two = |traces: [Sketch; 2]| Sample::Traces(traces.into());
    match code {
        "data_loading" => [one(hungry()), one(loading_hidden()), one(busy())],
        "host_bound" => [one(waiting()), one(busy()), one(unlinked())],
        "launch_bound" => [one(short_gaps()), one(busy()), one(unlinked())],
        "synchronisation" => [one(synchronising()), one(waiting()), one(unlinked())],
        "exposed_communication" => [
            one(communicating(600, 600, 300)),
            one(communicating(990, 100, 300)),
            one(busy().head(&rank(0, 8))),
        ],
        "stragglers" => [
            two([straggling(0, 400), straggling(1, 100)]),
            two([straggling(0, 100), straggling(1, 101)]),
            one(straggling(0, 100)),
        ],
        "rank_imbalance" => [
            two([computing(0, 2, 800), computing(1, 2, 400)]),
            two([computing(0, 2, 800), computing(1, 2, 790)]),
            one(computing(0, 2, 800)),
        ],
        "memory_copies" => [
            one(copying(PINNED, 300)),
            one(copying(PINNED, 10)),
            one(without_copies()),
        ],
        "pageable_transfers" => [
            one(copying(PAGEABLE, 50)),
            one(copying(PAGEABLE, 5)),
            one(copying("Memcpy HtoD (Host -> Device)", 50)),
        ],
        "allocator_growth" => [one(growing(512)), one(growing(0)), one(unlinked())],
        "recompute_overhead" => [
            Sample::Fixture("golden/checkpoint-reentrant/trace.json"),
            Sample::Fixture("golden/two-steps/trace.json"),
            one(busy()),
        ],
        "optimizer_share" => [
            one(stepping("vectorized_elementwise", 30)),
            one(stepping("multi_tensor_apply_kernel", 30)),
            one(unlinked()),
        ],
        "small_kernels" => [one(small(5, 100)), one(small(50, 20)), one(small(5, 4))],
        "low_occupancy" => [
            one(shaped(r#","blocks per SM":0.25"#)),
            one(shaped(r#","blocks per SM":4.5"#)),
            one(shaped("")),
        ],
        "no_tensor_cores" => [
            one(multiplying(PLAIN, A100)),
            one(multiplying(MARKED, A100)),
            one(multiplying(PLAIN, "Example GPU")),
        ],
        "warm_up_or_noise" => [
            one(Sketch::with_steps(&[3000, 1000, 1000, 1000])),
            one(Sketch::with_steps(&[1000, 1010, 990, 1000])),
            one(Sketch::with_steps(&[1000, 3000])),
        ],
        other => panic!("{other} has no samples"),
    }
}

#[test]
fn every_rule_holds_somewhere_fails_somewhere_and_lacks_evidence_somewhere() {
    use Verdict::{InsufficientEvidence, Refuted, Supported};
    for rule in explanations(None).unwrap() {
        let verdicts = [Supported, Refuted, InsufficientEvidence];
        for (expected, sample) in verdicts.into_iter().zip(samples(rule.code)) {
            let thresholds = Thresholds::default();
            let inferences = match sample {
                Sample::Traces(traces) => inferred(&traces, &thresholds),
                Sample::Fixture(path) => of_paths(&[package("fixtures").join(path)], &thresholds),
            };
            check_verdict(rule.code, expected, &inferences);
        }
    }
}

fn waiting() -> Sketch {
    Sketch::new(|sketch, at| sketch.late("elementwise", at + 500, 400))
}

#[test]
fn host_bound() {
    check("host_bound", Verdict::NotApplicable, &[host_only()]);
    // Most of the time is linked, but not the work after the gaps.
    let half = Sketch::new(|sketch, at| {
        sketch.kernel("elementwise", at, 700);
        let linked = sketch.correlation;
        sketch.correlation = 900 + at;
        sketch.device("kernel", "gemm", 7, at + 950, 50, "");
        sketch.correlation = linked;
    });
    check("host_bound", Verdict::InsufficientEvidence, &[half]);
    // Three gaps from 900 to 1499, when the call returns.
    assert_eq!(effect("host_bound", waiting()), 3 * 599);
}

fn short_gaps() -> Sketch {
    Sketch::new(|sketch, at| {
        for kernel in 0..20 {
            sketch.late("elementwise", at + 50 * kernel + 10, 3);
        }
    })
}

#[test]
fn launch_bound() {
    // Its gaps are long: something else keeps the host.
    check("launch_bound", Verdict::Refuted, &[waiting()]);
    check("launch_bound", Verdict::NotApplicable, &[host_only()]);
    // 79 gaps from the end of a kernel, 47 us before the next, to the end of its
    // launch.
    assert_eq!(effect("launch_bound", short_gaps()), 79 * 46);
}

fn loading(fill: fn(&mut Sketch, u64)) -> Sketch {
    let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    Sketch::new(move |sketch, at| {
        sketch.host("user_annotation", name, at, 400);
        fill(sketch, at);
    })
}

fn hungry() -> Sketch {
    loading(|sketch, at| sketch.late("elementwise", at + 500, 400))
}

fn loading_hidden() -> Sketch {
    loading(|sketch, at| sketch.kernel("elementwise", at, 1000))
}

#[test]
fn data_loading() {
    // Without devices the ranges themselves tell.
    check("data_loading", Verdict::Supported, &[loading(|_, _| {})]);
    // Under three of the four gaps: before the first kernel nothing is known to be idle.
    assert_eq!(effect("data_loading", hungry()), 3 * 400);
}

fn synchronising() -> Sketch {
    Sketch::new(|sketch, at| {
        sketch.late("elementwise", at + 500, 400);
        sketch.host("cuda_runtime", "cudaStreamSynchronize", at + 700, 205);
    })
}

#[test]
fn synchronisation() {
    // Three gaps of 595 us, before which the host had waited for 205.
    assert_eq!(effect("synchronisation", synchronising()), 3 * 205);
    // What the host does for long after it had waited for a moment is not the fault of the wait.
    let moment = Sketch::new(|sketch, at| {
        sketch.late("elementwise", at + 500, 400);
        sketch.host("cuda_runtime", "cudaStreamSynchronize", at + 898, 5);
    });
    check("synchronisation", Verdict::Refuted, &[moment]);
    // A copy to pageable memory waits, too.
    let copying = Sketch::new(|sketch, at| {
        sketch.kernel("elementwise", at + 500, 390);
        sketch.launch(at + 600, 310);
        let name = "Memcpy DtoH (Device -> Pageable)";
        sketch.device("gpu_memcpy", name, 7, at + 890, 10, "");
        let copy = sketch.events.len() - 2;
        sketch.events[copy] = sketch.events[copy].replace("cudaLaunchKernel", "cudaMemcpyAsync");
        sketch.late("elementwise", at + 1200, 50);
    });
    check("synchronisation", Verdict::Supported, &[copying]);
    // It returns while the device works: what the host has waited is missing all the same.
    let early = Sketch::new(|sketch, at| {
        sketch.late("elementwise", at + 500, 400);
        sketch.host("cuda_runtime", "cudaStreamSynchronize", at + 600, 100);
    });
    assert_eq!(effect("synchronisation", early), 3 * 100);
    check("synchronisation", Verdict::NotApplicable, &[host_only()]);
}

const ALL_REDUCE: &str =
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

/// Computes for `compute`, then communicates on another stream from `from` for `length`.
fn communicating(compute: u64, from: u64, length: u64) -> Sketch {
    Sketch::new(move |sketch, at| {
        sketch.kernel("elementwise", at, compute);
        sketch.launch(at - 100, 4);
        sketch.device("kernel", ALL_REDUCE, 20, at + from, length, "");
    })
}

fn rank(number: u64, of: u64) -> String {
    format!(r#""distributedInfo":{{"backend":"nccl","rank":{number},"world_size":{of}}}"#)
}

#[test]
fn exposed_communication() {
    let code = "exposed_communication";
    check(code, Verdict::NotApplicable, &[busy()]);
    assert_eq!(effect(code, communicating(600, 500, 300)), STEPS * 200);
}

/// One of two ranks, in collectives of this length that end at the same time on both.
fn straggling(number: u64, length: u64) -> Sketch {
    communicating(400, 900 - length, length).head(&rank(number, 2))
}

#[test]
fn stragglers() {
    let code = "stragglers";
    check(code, Verdict::NotApplicable, &[busy()]);
    let of_eight = busy().head(&rank(0, 8));
    check(code, Verdict::InsufficientEvidence, &[of_eight]);
    // Each is the last in half of the collectives, as by chance.
    let turns = |number: u64| {
        Sketch::new(move |sketch, at| {
            sketch.kernel("elementwise", at, 400);
            sketch.launch(at - 100, 4);
            let is_last = (at / 1000 + number).is_multiple_of(2);
            let length = if is_last { 100 } else { 400 };
            sketch.device("kernel", ALL_REDUCE, 20, at + 900 - length, length, "");
        })
        .head(&rank(number, 2))
    };
    check(code, Verdict::Refuted, &[turns(0), turns(1)]);
    let ranks = [straggling(0, 400), straggling(1, 100)];
    let inferences = inferred(&ranks, &Thresholds::default());
    let all = &inferences.runs[0].inferences;
    let inference = all.iter().find(|inference| inference.code == code).unwrap();
    assert!(
        inference.summary.contains("rank 1"),
        "{}",
        inference.summary
    );
    assert_eq!(inference.effect.unwrap().ns.0, STEPS * 300_000);
}

fn computing(number: u64, of: u64, length: u64) -> Sketch {
    Sketch::new(move |sketch, at| sketch.kernel("elementwise", at, length)).head(&rank(number, of))
}

#[test]
fn rank_imbalance() {
    let alone = computing(0, 1, 800);
    check("rank_imbalance", Verdict::NotApplicable, &[alone]);
}

fn copying(name: &'static str, length: u64) -> Sketch {
    Sketch::new(move |sketch, at| {
        sketch.launch(at - 100, 4);
        sketch.device("gpu_memcpy", name, 7, at, length, r#","bytes":4096"#);
        sketch.kernel("elementwise", at + length, 1000 - length);
    })
}

const PINNED: &str = "Memcpy HtoD (Pinned -> Device)";
const PAGEABLE: &str = "Memcpy HtoD (Pageable -> Device)";

/// The host copies, but the file has no copies of devices.
fn without_copies() -> Sketch {
    Sketch::new(|sketch, at| {
        sketch.kernel("elementwise", at, 1000);
        sketch.host("cuda_runtime", "cudaMemcpyAsync", at + 100, 10);
    })
}

#[test]
fn memory_copies() {
    check("memory_copies", Verdict::Refuted, &[busy()]);
    check("memory_copies", Verdict::NotApplicable, &[host_only()]);
    assert_eq!(effect("memory_copies", copying(PINNED, 300)), STEPS * 300);
}

#[test]
fn pageable_transfers() {
    let code = "pageable_transfers";
    let copy = |memory, length| [copying(memory, length)];
    check(
        code,
        Verdict::Refuted,
        &copy("Memcpy DtoH (Device -> Pinned)", 50),
    );
    check(code, Verdict::InsufficientEvidence, &[without_copies()]);
    let inside = copy("Memcpy DtoD (Device -> Device)", 50);
    check(code, Verdict::NotApplicable, &inside);
}

#[test]
fn allocator_growth() {
    let code = "allocator_growth";
    let allocating = Sketch::new(|sketch, at| {
        sketch.kernel("elementwise", at, 1000);
        sketch.host("cuda_runtime", "cudaMalloc", at + 100, 100);
    });
    check(code, Verdict::Supported, &[allocating]);
    check(code, Verdict::Refuted, &[busy()]);
    let early = Sketch::new(|sketch, at| {
        sketch.late("elementwise", at + 500, 400);
        if at == 1000 {
            sketch.host("cuda_runtime", "cudaFree", at + 10, 400);
        }
    });
    check(code, Verdict::Refuted, &[early]);
}

/// So much more is allocated than freed in each step.
fn growing(kept: u64) -> Sketch {
    Sketch::new(move |sketch, at| sketch.allocate(at, kept))
}

#[test]
fn recompute_overhead() {
    let code = "recompute_overhead";
    // Without device work the operators of the host tell, when there are any.
    let samples = package("fixtures/traces");
    let of_run = |run: &str| of_paths(&[samples.join(run)], &Thresholds::default());
    check_verdict(code, Verdict::Supported, &of_run("checkpoint"));
    check_verdict(code, Verdict::Refuted, &of_run("baseline"));
    check(code, Verdict::InsufficientEvidence, &[host_only()]);
    let empty = Sketch::new(|_, _| ());
    check(code, Verdict::NotApplicable, &[empty]);
}

fn stepping(kernel: &'static str, length: u64) -> Sketch {
    Sketch::new(move |sketch, at| {
        sketch.kernel("elementwise", at, 500);
        let name = "Optimizer.step#AdamW.step";
        sketch.host("user_annotation", name, at + 300, 200);
        for number in 0..10 {
            sketch.launch(at + 310 + number * 10, 4);
            let start = at + 500 + number * length;
            sketch.device("kernel", kernel, 7, start, length, "");
        }
    })
}

#[test]
fn optimizer_share() {
    let code = "optimizer_share";
    check(
        code,
        Verdict::Refuted,
        &[stepping("vectorized_elementwise", 3)],
    );
    check(code, Verdict::NotApplicable, &[busy()]);
    // A backward pass whose optimizer is not in the capture.
    let alone = Sketch::new(|sketch, at| {
        sketch.host("user_annotation", "backward", at, 900);
        sketch.launch(at + 100, 4);
        sketch.device("kernel", "elementwise", 7, at + 200, 700, "");
    });
    check(code, Verdict::InsufficientEvidence, &[alone]);
}

/// So many kernels in each step.
fn small(length: u64, count: u64) -> Sketch {
    Sketch::new(move |sketch, at| {
        for number in 0..count {
            sketch.kernel("elementwise", at + number * length, length);
        }
    })
}

#[test]
fn small_kernels() {
    let code = "small_kernels";
    check(code, Verdict::Refuted, &[small(5, 10)]);
    check(code, Verdict::NotApplicable, &[host_only()]);
}

fn shaped(args: &'static str) -> Sketch {
    Sketch::new(move |sketch, at| {
        sketch.launch(at - 100, 4);
        sketch.device("kernel", "gemv", 7, at, 800, args);
    })
}

#[test]
fn low_occupancy() {
    let code = "low_occupancy";
    check(code, Verdict::NotApplicable, &[host_only()]);
    let few = shaped(r#","blocks per SM":0.25"#);
    assert_eq!(effect(code, few), STEPS * 600);
}

const A100: &str = "NVIDIA A100-SXM4-80GB";
const PLAIN: &str = "ampere_sgemm_128x64_nn";
const MARKED: &str = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_nn";

fn multiplying(kernel: &'static str, device: &str) -> Sketch {
    Sketch::new(move |sketch, at| sketch.kernel(kernel, at, 800)).head(&format!(
        r#""deviceProperties":[{{"id":0,"name":"{device}"}}]"#
    ))
}

#[test]
fn no_tensor_cores() {
    let code = "no_tensor_cores";
    let marked = multiplying(MARKED, "Example GPU");
    check(code, Verdict::Refuted, &[marked]);
    let other = multiplying("elementwise", A100);
    check(code, Verdict::NotApplicable, &[other]);
}

#[test]
fn warm_up_or_noise() {
    let code = "warm_up_or_noise";
    let noisy = [Sketch::with_steps(&[1000, 1000, 2000, 1000, 400])];
    check(code, Verdict::Supported, &noisy);
    // Where devices work, their steps count: the host runs ahead, and may be as even or uneven as it likes.
    let queued = |hosts: [u64; 4], kernels: [u64; 4]| {
        let mut sketch = Sketch::with_steps(&hosts);
        let (mut host, mut free) = (1000, 0);
        for (length, kernel) in hosts.into_iter().zip(kernels) {
            sketch.launch(host + 2, 4);
            let start = free.max(host + 10);
            sketch.device("kernel", "elementwise", 7, start, kernel, "");
            (host, free) = (host + length, start + kernel);
        }
        sketch
    };
    let even = [1000; 4];
    check(
        code,
        Verdict::Supported,
        &[queued(even, [3000, 500, 500, 500])],
    );
    check(
        code,
        Verdict::Refuted,
        &[queued(even, [1000, 1010, 1000, 990])],
    );
    // What the device still had to do from before the capture does not make the first step a slow one.
    let mut behind = Sketch::with_steps(&even);
    behind.correlation = 1;
    behind.device("kernel", "elementwise", 7, 1001, 2000, "");
    behind.correlation = 10;
    for (step, start) in (0..4).map(|step| (1000 + step * 1000, 3001 + step * 1000)) {
        behind.launch(step + 2, 4);
        behind.device("kernel", "elementwise", 7, start, 1000, "");
    }
    check(code, Verdict::Refuted, &[behind]);
    let uneven = [200, 1800, 200, 1800];
    check(code, Verdict::Supported, &[Sketch::with_steps(&uneven)]);
    check(code, Verdict::Refuted, &[queued(uneven, [2000; 4])]);
}

#[test]
fn communication_that_is_not_there_has_no_ratio() {
    let inferences = inferred(&[busy()], &Thresholds::default());
    let ratios = inferences.runs[0].ratios;
    assert_eq!(ratios.communication_ratio, Ratio::NotApplicable);
    let json = serde_json::to_value(&inferences).unwrap();
    assert_eq!(json["schema_version"], "tracekit.inference/v1");
    assert_eq!(json["runs"][0]["communication_ratio"], "not_applicable");
    assert!(json["runs"][0]["compute_ratio"].as_f64().unwrap() > 0.9);
    let inferences = inferred(&[communicating(600, 500, 300)], &Thresholds::default());
    check_ratios(&inferences);
}

/// The ratios of each run add up to 1.
fn check_ratios(inferences: &Inferences) {
    for run in &inferences.runs {
        let number = |ratio| match ratio {
            Ratio::Of(ratio) => Some(ratio),
            Ratio::NotApplicable => None,
        };
        let ratios = run.ratios;
        let Some(compute) = number(ratios.compute_ratio) else {
            continue;
        };
        let others = [
            ratios.memory_ratio,
            ratios.communication_ratio,
            ratios.idle_ratio,
        ];
        let sum: f64 = compute + others.into_iter().filter_map(number).sum::<f64>();
        assert!((sum - 1.0).abs() < 1e-9, "{}: {ratios:?}", run.run);
    }
}

#[test]
fn what_a_capture_is_like_decides_how_sure_a_verdict_is() {
    let confidence = |trace: Sketch| {
        let inferences = inferred(&[trace], &Thresholds::default());
        let all = &inferences.runs[0].inferences;
        let inference = all.iter().find(|inference| inference.code == "host_bound");
        inference.unwrap().confidence.clone().unwrap()
    };
    let few = confidence(busy());
    assert_eq!(few.level, Level::Low, "{few:?}");
    assert!(few.reason.contains("4 pieces"), "{few:?}");
    let many = |steps: usize| {
        let mut sketch = Sketch::with_steps(&vec![1000; steps]);
        for number in 0..100 {
            sketch.kernel("elementwise", 1200 + number * 10, 10);
        }
        sketch
    };
    assert_eq!(confidence(many(4)).level, Level::High);
    let once = confidence(many(1));
    assert_eq!(once.level, Level::Medium);
    assert!(once.reason.contains("one whole step"), "{once:?}");
}

#[cfg(feature = "frames")]
#[test]
fn users_have_limits_and_rules_of_their_own() {
    let own = Thresholds::with(
        r#"
[host_bound]
late_share = 0.9
[[rule]]
name = "few_kernels"
sql = "SELECT COUNT(*) FROM device_work"
op = "<"
threshold = 10
message = "Fewer than ten kernels"
next_action = "Profile longer."
[[rule]]
name = "no_number"
sql = "SELECT MAX(occupancy) FROM device_work"
op = ">="
threshold = 1
message = "-"
next_action = "-"
"#,
    )
    .unwrap();
    let inferences = inferred(&[waiting()], &own);
    check_verdict("host_bound", Verdict::Refuted, &inferences);
    check_verdict("few_kernels", Verdict::Supported, &inferences);
    check_verdict("no_number", Verdict::InsufficientEvidence, &inferences);
}

#[test]
fn every_run_is_judged_by_its_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    for (name, trace) in [("base", busy()), ("slow", waiting())] {
        let run = folder.path().join(name);
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("rank0.pt.trace.json"), trace.text()).unwrap();
    }
    let inferences = of_paths(&[folder.path().to_owned()], &Thresholds::default());
    let verdicts: Vec<(String, Verdict)> = inferences
        .runs
        .iter()
        .map(|run| {
            let all = &run.inferences;
            let found = all.iter().find(|inference| inference.code == "host_bound");
            (run.run.clone(), found.unwrap().verdict)
        })
        .collect();
    let expected = [
        ("base".to_owned(), Verdict::Refuted),
        ("slow".to_owned(), Verdict::Supported),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn the_largest_effect_comes_first_and_numbers_can_be_asked_for_again() {
    let inferences = inferred(&[waiting()], &Thresholds::default());
    let all = &inferences.runs[0].inferences;
    assert_eq!(all.len(), explanations(None).unwrap().len());
    assert_eq!(all[0].verdict, Verdict::Supported);
    let effects: Vec<i64> = all
        .iter()
        .take_while(|inference| inference.verdict == Verdict::Supported)
        .map(|inference| inference.effect.map_or(0, |effect| effect.ns.0))
        .collect();
    assert!(
        effects.is_sorted_by(|one, other| one >= other),
        "{effects:?}"
    );
    for inference in all {
        assert!(
            inference
                .evidence
                .iter()
                .all(|evidence| evidence.query.starts_with("SELECT "))
        );
        assert!(!inference.summary.is_empty() && !inference.next_action.is_empty());
    }
}

#[test]
fn real_traces_are_judged_without_trouble() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let thresholds = Thresholds::default();
    for file in corpus::traces(&corpus) {
        let paths = [file.clone()];
        let options = AttributeOptions::default();
        if tracekit::attribute::attribute_paths(&request(&paths, &options), &|_| {}).is_err() {
            continue;
        }
        let inferences = of_paths(&paths, &thresholds);
        check_ratios(&inferences);
        for inference in &inferences.runs[0].inferences {
            let share = inference.effect.map_or(0.0, |effect| effect.share);
            assert!(
                (0.0..=1.0).contains(&share),
                "{}: {inference:#?}",
                file.display()
            );
        }
    }
}
