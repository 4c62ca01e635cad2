//! Bytes to columns: `cargo bench --bench ingest`
//!
//! Everything runs on one thread unless its name says otherwise, over made-up traces in memory.

use std::hint::black_box;
use std::io::{Read, Write};
use std::thread::available_parallelism;

use criterion::{BatchSize, BenchmarkId, Criterion, SamplingMode, Throughput};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Deserialize;
use tracekit::Trace;
use tracekit::ingest::{IngestOptions, Reader};

mod inputs;

use inputs::{Layout, Order, Shape};

/// Larger than the caches, small enough for the slowest reader.
const BYTES: usize = 16 << 20;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2))
        .configure_from_args();
    readers(&mut criterion);
    layouts(&mut criterion);
    segments(&mut criterion);
    threads(&mut criterion);
    compressed(&mut criterion);
    others(&mut criterion);
    criterion.final_summary();
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads can be started")
}

fn with(reader: Reader) -> IngestOptions {
    IngestOptions {
        reader,
        ..IngestOptions::default()
    }
}

fn read(bytes: &[u8], options: &IngestOptions) -> usize {
    let trace = Trace::from_bytes(black_box(bytes), options).expect("a trace");
    trace.events.len()
}

fn written(shape: Shape, layout: Layout) -> Vec<u8> {
    inputs::trace(shape, layout, Order::Written, BYTES)
}

/// The readers on every shape: by shape, simd-json, scalar.
fn readers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.sampling_mode(SamplingMode::Flat);
    let pool = pool(1);
    for shape in Shape::ALL {
        let bytes = written(shape, Layout::Native);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        for (name, reader) in [
            ("shape", Reader::Auto),
            ("simd-json", Reader::Simd),
            ("scalar", Reader::Text),
        ] {
            let options = with(reader);
            group.bench_function(BenchmarkId::new(name, shape.name()), |bencher| {
                pool.install(|| bencher.iter(|| read(&bytes, &options)));
            });
        }
    }
}

/// The same events in every layout, by event: white space must not matter much.
fn layouts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("layout");
    let pool = pool(1);
    for layout in Layout::ALL {
        let bytes = written(Shape::SmallOps, layout);
        let options = IngestOptions::default();
        let events = pool.install(|| read(&bytes, &options));
        group.throughput(Throughput::Elements(events as u64));
        group.bench_function(layout.name(), |bencher| {
            pool.install(|| bencher.iter(|| read(&bytes, &options)));
        });
    }
}

/// What it costs to cut the events into segments, learn their shapes anew and join the parts.
fn segments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split");
    let pool = pool(1);
    let bytes = written(Shape::SmallOps, Layout::Native);
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    for (name, segment_bytes) in [("64 kB", 64 << 10), ("1 MB", 1 << 20), ("4 MB", 4 << 20)] {
        let options = IngestOptions {
            segment_bytes,
            ..IngestOptions::default()
        };
        group.bench_function(name, |bencher| {
            pool.install(|| bencher.iter(|| read(&bytes, &options)));
        });
    }
}

/// One thread and all.
fn threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("threads");
    let bytes = written(Shape::SmallOps, Layout::Native);
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let all = available_parallelism().map_or(1, usize::from);
    for threads in [1, all] {
        let pool = pool(threads);
        let options = IngestOptions::default();
        group.bench_function(threads.to_string(), |bencher| {
            pool.install(|| bencher.iter(|| read(&bytes, &options)));
        });
        if all == 1 {
            break;
        }
    }
}

/// Gzip: inflating alone, and inflating with reading. Throughput is of the content.
fn compressed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gzip");
    let content = written(Shape::SmallOps, Layout::Native);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&content).expect("memory takes it all");
    let stored = encoder.finish().expect("memory takes it all");
    group.throughput(Throughput::Bytes(content.len() as u64));
    group.bench_function("inflate alone", |bencher| {
        let mut block = vec![0; 1 << 18];
        bencher.iter(|| {
            let mut decoder = flate2::bufread::MultiGzDecoder::new(stored.as_slice());
            let mut len = 0;
            loop {
                match decoder.read(&mut block).expect("gzip") {
                    0 => return len,
                    read => len += read,
                }
            }
        });
    });
    let all = available_parallelism().map_or(1, usize::from);
    for (name, threads) in [("1 thread", 1), ("all threads", all)] {
        let pool = pool(threads);
        let options = IngestOptions::default();
        group.bench_function(name, |bencher| {
            pool.install(|| bencher.iter(|| read(&stored, &options)));
        });
    }
}

/// The fields that a reader of columns needs, for the typed rival.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<TypedEvent<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are only read from the text")]
struct TypedEvent<'a> {
    ph: Option<&'a str>,
    cat: Option<&'a str>,
    name: Option<&'a str>,
    ts: Option<f64>,
    dur: Option<f64>,
    #[serde(borrow)]
    args: Option<TypedArgs<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are only read from the text")]
struct TypedArgs<'a> {
    correlation: Option<u64>,
    #[serde(rename = "External id")]
    external: Option<u64>,
    #[serde(borrow, rename = "Input Dims")]
    dims: Option<&'a serde_json::value::RawValue>,
}

/// What general readers of JSON take for the same bytes.
fn others(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("others");
    let bytes = written(Shape::SmallOps, Layout::Native);
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let pool = pool(1);
    group.bench_function("tracekit", |bencher| {
        pool.install(|| bencher.iter(|| read(&bytes, &IngestOptions::default())));
    });
    group.bench_function("serde_json typed", |bencher| {
        bencher.iter(|| {
            let typed: Typed<'_> = serde_json::from_slice(black_box(&bytes)).expect("JSON");
            typed.events.len()
        });
    });
    group.bench_function("serde_json::Value", |bencher| {
        bencher.iter(|| {
            let value: serde_json::Value = serde_json::from_slice(black_box(&bytes)).expect("JSON");
            value["traceEvents"].as_array().map(Vec::len)
        });
    });
    group.bench_function("simd-json tape", |bencher| {
        bencher.iter_batched_ref(
            || bytes.clone(),
            |bytes| simd_json::to_tape(bytes).expect("JSON").0.len(),
            BatchSize::LargeInput,
        );
    });
}
