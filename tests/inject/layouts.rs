//! The record layouts and the walk, against NVIDIA's own headers and library where they can be had.
//!
//! `tests/inject/layouts.sh` fetches them and runs these tests; without them they say that they are
//! skipped.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tracekit_spool::{Frames, Record, RecordSizes, Records, Tag};

use crate::files::spool;
use crate::run::{Run, has_python};

#[expect(clippy::print_stderr, reason = "says why a test does nothing")]
fn wheel() -> Option<PathBuf> {
    let folder = std::env::var_os("TRACEKIT_CUPTI_WHEEL").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: TRACEKIT_CUPTI_WHEEL names no CUPTI; see tests/inject/layouts.sh");
    }
    folder.filter(|_| has_python())
}

fn ask(arguments: &[&std::ffi::OsStr]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/layouts.py");
    let output = Command::new("python3")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Where the fields stand of which a record is read, in the order of `fields`.
type Layout = (&'static str, &'static [(&'static str, u64)]);

const LAYOUTS: [Layout; 9] = [
    (
        "CUpti_ActivityKernel10",
        &[
            ("registersPerThread", 6),
            ("start", 16),
            ("end", 24),
            ("deviceId", 40),
            ("contextId", 44),
            ("streamId", 48),
            ("gridX", 52),
            ("gridZ", 60),
            ("blockX", 64),
            ("blockZ", 72),
            ("staticSharedMemory", 76),
            ("dynamicSharedMemory", 80),
            ("correlationId", 92),
            ("name", 104),
            ("graphNodeId", 144),
            ("graphId", 156),
        ],
    ),
    (
        "CUpti_ActivityMemcpy6",
        &[
            ("copyKind", 4),
            ("srcKind", 5),
            ("dstKind", 6),
            ("bytes", 8),
            ("start", 16),
            ("end", 24),
            ("deviceId", 32),
            ("contextId", 36),
            ("streamId", 40),
            ("correlationId", 44),
        ],
    ),
    (
        "CUpti_ActivityMemcpyPtoP4",
        &[
            ("bytes", 8),
            ("start", 16),
            ("end", 24),
            ("deviceId", 32),
            ("contextId", 36),
            ("streamId", 40),
            ("srcDeviceId", 44),
            ("srcContextId", 48),
            ("dstDeviceId", 52),
            ("dstContextId", 56),
            ("correlationId", 60),
        ],
    ),
    (
        "CUpti_ActivityMemset4",
        &[
            ("bytes", 8),
            ("start", 16),
            ("end", 24),
            ("deviceId", 32),
            ("contextId", 36),
            ("streamId", 40),
            ("correlationId", 44),
            ("memoryKind", 50),
        ],
    ),
    (
        "CUpti_ActivityAPI",
        &[
            ("cbid", 4),
            ("start", 8),
            ("end", 16),
            ("threadId", 28),
            ("correlationId", 32),
        ],
    ),
    (
        "CUpti_ActivitySynchronization2",
        &[
            ("type", 4),
            ("start", 8),
            ("end", 16),
            ("correlationId", 24),
            ("contextId", 28),
            ("streamId", 32),
            ("cudaEventId", 36),
        ],
    ),
    (
        "CUpti_ActivityOverhead3",
        &[("overheadKind", 4), ("start", 24), ("end", 32)],
    ),
    (
        "CUpti_ActivityDevice5",
        &[
            ("globalMemoryBandwidth", 8),
            ("globalMemorySize", 16),
            ("l2CacheSize", 28),
            ("numThreadsPerWarp", 32),
            ("coreClockRate", 36),
            ("numMultiprocessors", 44),
            ("maxWarpsPerMultiprocessor", 52),
            ("maxBlocksPerMultiprocessor", 56),
            ("maxSharedMemoryPerMultiprocessor", 60),
            ("maxRegistersPerMultiprocessor", 64),
            ("maxRegistersPerBlock", 68),
            ("maxSharedMemoryPerBlock", 72),
            ("maxThreadsPerBlock", 76),
            ("computeCapabilityMajor", 104),
            ("computeCapabilityMinor", 108),
            ("id", 112),
            ("uuid", 120),
            ("name", 136),
        ],
    ),
    (
        "CUpti_ActivityContext3",
        &[("contextId", 4), ("deviceId", 8)],
    ),
];

#[test]
fn offsets_are_those_of_the_headers() {
    let Some(folder) = wheel() else {
        return;
    };
    let headers = ask(&["headers".as_ref(), folder.as_os_str()]);
    let mut checked = 0;
    for (name, fields) in LAYOUTS {
        for (field, offset) in fields {
            assert_eq!(headers[name][field], *offset, "{name}.{field}");
            checked += 1;
        }
    }
    println!("{checked} offsets are those of NVIDIA's headers");
}

#[test]
fn the_real_library_walks_the_same_records() {
    let Some(folder) = wheel() else {
        return;
    };
    let bytes = spool(&["steps:20", "everything", "many:500"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let answer = ask(&["walk".as_ref(), folder.as_os_str(), file.path().as_os_str()]);
    let theirs = answer["buffers"].as_array().unwrap();

    let mut sizes = RecordSizes::default();
    let mut total = 0;
    let mut buffers = 0;
    for frame in Frames::new(&bytes).unwrap() {
        match frame.tag {
            Some(Tag::Sizes) => sizes = RecordSizes::of_frame(frame.data),
            Some(Tag::Buffer) => {
                let mut records = Records::new(frame.data, &sizes);
                let mut places = Vec::new();
                let mut at = 0;
                while let Some(record) = records.next() {
                    assert!(!matches!(record, Record::Other(_)), "{record:?}");
                    let kind = u32::from_le_bytes(*frame.data[at..].first_chunk().unwrap());
                    places.push((u64::from(kind), at as u64));
                    at = frame.data.len() - records.rest();
                }
                let walked: Vec<_> = theirs[buffers]["records"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap()))
                    .collect();
                assert_eq!(walked, places, "buffer {buffers}");
                // CUPTI_ERROR_MAX_LIMIT_REACHED: the end of the buffer.
                assert_eq!(theirs[buffers]["end"], 12);
                total += places.len();
                buffers += 1;
            }
            _ => {}
        }
    }
    assert_eq!(buffers, theirs.len());
    assert!(total > 1_000);
    println!(
        "CUPTI {} walked the same {total} records",
        answer["version"]
    );
}

#[test]
fn the_real_library_without_a_driver_stops_nothing_and_tells_its_sizes() {
    let Some(folder) = wheel() else {
        return;
    };
    // Where the wheel has it depends on its version.
    let script = "import glob, sys; print(sorted(glob.glob(sys.argv[1] + '/**/libcupti.so.1*', recursive=True))[0])";
    let found = Command::new("python3")
        .args(["-c", script])
        .arg(folder)
        .output()
        .unwrap();
    let library = String::from_utf8(found.stdout).unwrap();
    let run = Run::new(&["steps:2", "exit:3"])
        .set("TRACEKIT_CUPTI", library.trim())
        .option(&["--keep-spool"]);
    let done = run.done();
    assert_eq!(done.code, 3, "{}", done.stderr);
    done.assert_told("no device activity: CUPTI cannot be used here");
    assert_eq!(done.only().count("user_annotation"), 6);
    let real = sizes(&done_spool(&run));
    // The same version as the stand-in has.
    assert_eq!(real, sizes(&spool(&["steps:1"])));
    assert_eq!(real.get(10), Some(216));
}

fn done_spool(run: &Run) -> Vec<u8> {
    let mut files = std::fs::read_dir(run.output().join("spool")).unwrap();
    let spool = files.find_map(|file| {
        let path = file.unwrap().path();
        let is_spool = path.extension().is_some_and(|ending| ending == "tkspool");
        is_spool.then(|| std::fs::read(path).unwrap())
    });
    spool.unwrap()
}

fn sizes(spool: &[u8]) -> RecordSizes {
    let mut frames = Frames::new(spool).unwrap();
    let frame = frames.find(|frame| frame.tag == Some(Tag::Sizes)).unwrap();
    RecordSizes::of_frame(frame.data)
}
