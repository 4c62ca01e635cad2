//! What reading a file costs, from touching it to columns of events, one pass a line of JSON.
//!
//! `cargo run --release --example bounds -- WHAT FILE [-j THREADS] [-n PASSES]`
//!
//! | WHAT | each pass |
//! |---|---|
//! | `touch` | maps the file and reads one byte a page |
//! | `read` | maps the file and sums its words |
//! | `scan` | maps the file and counts quotes, backslashes, brackets, commas and colons |
//! | `inflate` | maps the file and inflates it, a block at a time, to nowhere |
//! | `columns` | maps the file and reads it to columns |
//! | `columns-simd-json` | the same without the shape reader |
//! | `columns-scalar` | the same with the scalar reader alone |
//!
//! Passes do not include what comes before the mapping or dropping what was read. `anonymous` is the
//! memory that a pass added and still holds at its end, without the file.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tracekit::Trace;
use tracekit::ingest::{IngestOptions, Reader, Source};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How much one task reads.
const PART: usize = 4 << 20;

/// One pass.
struct Pass {
    took: Duration,
    /// Bytes of content.
    bytes: u64,
    events: usize,
    anonymous_kb: u64,
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(what), Some(path)) = (words.next(), words.next()) else {
        return Err("usage: bounds WHAT FILE [-j THREADS] [-n PASSES]".into());
    };
    let (mut threads, mut passes) = (0, 1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or("an option wants a value")?.parse()?;
        match word.as_str() {
            "-j" => threads = value,
            "-n" => passes = value,
            other => return Err(format!("no option is called {other}").into()),
        }
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()?;
    // Threads start when they are first needed; here, before the clock runs.
    rayon::broadcast(|_| ());
    let mut output = io::stdout().lock();
    for _ in 0..passes {
        let pass = pass(&what, Path::new(&path))?;
        writeln!(
            output,
            "{{\"seconds\": {:.6}, \"bytes\": {}, \"events\": {}, \"anonymous\": {}}}",
            pass.took.as_secs_f64(),
            pass.bytes,
            pass.events,
            pass.anonymous_kb * 1024
        )?;
    }
    Ok(())
}

fn pass(what: &str, path: &Path) -> Result<Pass> {
    let mut options = IngestOptions::default();
    let over = |part: fn(&[u8]) -> u64| {
        mapped(path, &options, |bytes| {
            bytes.par_chunks(PART).map(part).sum::<u64>();
            bytes.len() as u64
        })
    };
    match what {
        "touch" => return over(touch),
        "read" => return over(sum),
        "scan" => return over(structure),
        "inflate" => return mapped(path, &options, inflate),
        "columns" => {}
        "columns-simd-json" => options.reader = Reader::Simd,
        "columns-scalar" => options.reader = Reader::Text,
        other => return Err(format!("nothing is called {other}").into()),
    }
    let before = anonymous_kb();
    let start = Instant::now();
    let source = Source::open(path, &options)?;
    let trace = Trace::from_bytes(source.bytes(), &options)?;
    let took = start.elapsed();
    drop(source);
    Ok(Pass {
        took,
        bytes: trace.bytes,
        events: trace.events.len(),
        anonymous_kb: anonymous_kb().saturating_sub(before),
    })
}

/// Times what `read` does with a fresh mapping; it gives the number of bytes of content.
fn mapped(path: &Path, options: &IngestOptions, read: impl FnOnce(&[u8]) -> u64) -> Result<Pass> {
    let start = Instant::now();
    let source = Source::open(path, options)?;
    let bytes = black_box(read(source.bytes()));
    Ok(Pass {
        took: start.elapsed(),
        bytes,
        events: 0,
        anonymous_kb: 0,
    })
}

fn touch(part: &[u8]) -> u64 {
    part.iter().step_by(4096).copied().map(u64::from).sum()
}

fn sum(part: &[u8]) -> u64 {
    let (words, rest) = part.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| {
        sum.wrapping_add(u64::from_le_bytes(*word))
    });
    rest.iter()
        .fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

/// How many bytes are structure of JSON: the least that a reader has to look for.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "branches would keep it from being vectorised"
)]
fn structure(part: &[u8]) -> u64 {
    let is_structure = |byte: u8| {
        // `[` and `{`, `]` and `}` differ in one bit.
        let bracket = (byte | 0x20 == b'{') | (byte | 0x20 == b'}');
        u8::from(bracket | (byte == b'"') | (byte == b'\\') | (byte == b',') | (byte == b':'))
    };
    let (blocks, rest) = part.as_chunks::<64>();
    let mut count = 0;
    // A lane counts to 255.
    for blocks in blocks.chunks(255) {
        let mut lanes = [0_u8; 64];
        for block in blocks {
            for (lane, byte) in lanes.iter_mut().zip(block) {
                *lane += is_structure(*byte);
            }
        }
        count += lanes.iter().copied().map(u64::from).sum::<u64>();
    }
    count
        + rest
            .iter()
            .map(|byte| u64::from(is_structure(*byte)))
            .sum::<u64>()
}

fn inflate(stored: &[u8]) -> u64 {
    let mut decoder = flate2::bufread::MultiGzDecoder::new(stored);
    let mut block = vec![0; 1 << 18];
    let mut bytes = 0;
    while let Ok(read @ 1..) = decoder.read(&mut block) {
        bytes += read as u64;
    }
    bytes
}

/// Memory of this process that is no file's, in kB; 0 where the system does not say.
fn anonymous_kb() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}
