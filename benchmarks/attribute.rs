//! Columns to answers: `cargo bench --bench attribute`
//!
//! Throughput is in events. Everything runs on one thread unless its name says otherwise.

use std::hint::black_box;
use std::path::PathBuf;
use std::thread::available_parallelism;

use criterion::{BenchmarkId, Criterion, Throughput};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tracekit::Trace;
use tracekit::attribute::{
    AttributeOptions, Attribution, Request, attribute_paths, host_operations,
};
use tracekit::ingest::IngestOptions;
use tracekit::report::{self, AttributionView, By, attribution_document, attribution_rows};

#[expect(dead_code, reason = "layouts matter to reading only")]
mod inputs;

use inputs::{Layout, Order, Shape};

const BYTES: usize = 16 << 20;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2))
        .configure_from_args();
    nesting(&mut criterion);
    attribution(&mut criterion);
    ranks(&mut criterion);
    reports(&mut criterion);
    criterion.final_summary();
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads can be started")
}

fn attributed(paths: &[PathBuf]) -> Attribution {
    let request = Request {
        salvage: None,
        paths,
        ingest: IngestOptions::default(),
        options: &AttributeOptions::default(),
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    };
    attribute_paths(&request, &|_| {}).expect("traces")
}

/// Host operators of a trace in memory: sorted, nested, placed in phases. Shuffled events are what
/// sorting costs at most.
fn nesting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("host operators");
    let pool = pool(1);
    for (name, shape, order) in [
        ("small-ops", Shape::SmallOps, Order::Written),
        ("small-ops, shuffled", Shape::SmallOps, Order::Shuffled),
        ("long-args", Shape::LongArgs, Order::Written),
        ("python-stacks", Shape::PythonStacks, Order::Written),
    ] {
        let bytes = inputs::trace(shape, Layout::Native, order, BYTES);
        let trace = Trace::from_bytes(&bytes, &IngestOptions::default()).expect("a trace");
        let options = AttributeOptions::default();
        group.throughput(Throughput::Elements(trace.events.len() as u64));
        group.bench_function(name, |bencher| {
            pool.install(|| bencher.iter(|| host_operations(black_box(&trace), &options).len()));
        });
    }
}

/// From a file to the answer, and ingest alone: the difference is names, nesting, links, phases,
/// steps, tables and timelines.
fn attribution(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("file");
    let folder = tempfile::tempdir().expect("a folder");
    let pool = pool(1);
    for (name, shape, order) in [
        ("small-ops", Shape::SmallOps, Order::Written),
        ("small-ops, shuffled", Shape::SmallOps, Order::Shuffled),
        ("python-stacks", Shape::PythonStacks, Order::Written),
    ] {
        let bytes = inputs::trace(shape, Layout::Native, order, BYTES);
        let path = folder.path().join("rank0.json");
        std::fs::write(&path, &bytes).expect("room");
        let trace = Trace::from_bytes(&bytes, &IngestOptions::default()).expect("a trace");
        group.throughput(Throughput::Elements(trace.events.len() as u64));
        group.bench_function(BenchmarkId::new("columns alone", name), |bencher| {
            let options = IngestOptions::default();
            pool.install(|| {
                bencher.iter(|| Trace::open(&path, &options).expect("a trace").events.len());
            });
        });
        let paths = [path.clone()];
        group.bench_function(BenchmarkId::new("attributed", name), |bencher| {
            pool.install(|| bencher.iter(|| attributed(black_box(&paths)).inputs.len()));
        });
    }
}

/// Folders with more and more ranks, on all threads.
fn ranks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ranks");
    let bytes = inputs::trace(Shape::SmallOps, Layout::Native, Order::Written, BYTES / 4);
    let pool = pool(available_parallelism().map_or(1, usize::from));
    for ranks in [1_u64, 2, 8] {
        let folder = tempfile::tempdir().expect("a folder");
        for rank in 0..ranks {
            let path = folder.path().join(format!("rank{rank}.json"));
            std::fs::write(path, &bytes).expect("room");
        }
        let paths = [folder.path().to_owned()];
        group.throughput(Throughput::Bytes(ranks * bytes.len() as u64));
        group.bench_function(ranks.to_string(), |bencher| {
            pool.install(|| bencher.iter(|| attributed(black_box(&paths)).ranks.len()));
        });
    }
}

/// An answer with many steps to text in each format.
fn reports(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("report");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rank0.json");
    let bytes = inputs::trace(Shape::SmallOps, Layout::Native, Order::Written, BYTES);
    std::fs::write(&path, &bytes).expect("room");
    let attribution = attributed(&[path]);
    let view = AttributionView {
        by: By::Step,
        kernels_of_each_run: true,
        verbose: true,
    };
    let text = report::text::TextOptions {
        width: Some(100),
        styled: true,
    };
    group.bench_function("text by step", |bencher| {
        bencher.iter(|| {
            let document = attribution_document(black_box(&attribution), view);
            report::text::render(&document, text).len()
        });
    });
    group.bench_function("markdown by step", |bencher| {
        bencher.iter(|| {
            let document = attribution_document(black_box(&attribution), view);
            report::markdown::render(&document).len()
        });
    });
    group.bench_function("csv", |bencher| {
        bencher.iter(|| report::csv::render(&attribution_rows(black_box(&attribution))).len());
    });
    group.bench_function("json", |bencher| {
        bencher.iter(|| report::json::render(black_box(&attribution)).map(|json| json.len()));
    });
}
