//! Broken and odd files: every one is read with its findings counted or refused with its path and
//! byte offset; nothing panics.

use std::fmt::Write;
use std::path::Path;

use tracekit::attribute::AttributeOptions;
use tracekit::ingest::{IngestOptions, Reader};
use tracekit::{Error, ErrorKind, HealthCode, Trace};

use crate::support::answer::attribution;
use crate::support::seeded::Seeded;
use crate::support::snapshot::bless_or_compare;
use crate::support::{content, files_under, gzip, package, reference, zstd};

/// Every way to read a file.
fn ways() -> Vec<IngestOptions> {
    let mut ways = Vec::new();
    for reader in [Reader::Auto, Reader::Text] {
        for mmap in [true, false] {
            ways.push(IngestOptions {
                reader,
                mmap,
                ..IngestOptions::default()
            });
            ways.push(IngestOptions {
                reader,
                mmap,
                chunk_bytes: 40,
                segment_bytes: 100,
                block_bytes: 64,
                max_content: u64::MAX,
            });
        }
    }
    ways
}

/// One line about what became of a file.
fn outcome(result: &Result<Trace, Error>) -> String {
    match result {
        Ok(trace) => {
            let mut line = format!("{} events", trace.events.len());
            for code in HealthCode::ALL {
                let count = trace.health.get(*code);
                if count > 0 {
                    write!(line, ", {} {count}", code.as_str()).unwrap();
                }
            }
            line
        }
        Err(error) => format!("{:?}: {}", error.kind(), error.reason()),
    }
}

#[test]
fn every_hostile_file_has_its_known_outcome_however_it_is_read() {
    let mut lines = String::new();
    let files = files_under(&package("fixtures/hostile"));
    assert!(files.len() >= 40, "the hostile fixtures are gone");
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "outcomes.txt" {
            continue;
        }
        let mut outcomes: Vec<String> = Vec::new();
        for options in ways() {
            let result = Trace::open(&path, &options);
            if let Err(error) = &result {
                assert_eq!(error.path(), Some(path.as_path()), "{error}");
                let line = error.to_string();
                assert_eq!(line, format!("{}: {}", path.display(), error.reason()));
                assert!(!line.contains('\n'), "{line}");
            }
            outcomes.push(outcome(&result));
        }
        let first = outcomes[0].clone();
        for (outcome, options) in outcomes.iter().zip(ways()) {
            assert_eq!(*outcome, first, "{name} by {options:?}");
        }
        writeln!(lines, "{name}: {first}").unwrap();
    }
    bless_or_compare(&package("fixtures/hostile/outcomes.txt"), &lines);
}

/// Where the fault is, by eye.
#[test]
fn refusals_point_at_the_fault() {
    for (name, kind, fault) in [
        ("cut-in-name.json", ErrorKind::Truncated, "ker"),
        ("cut-after-colon.json", ErrorKind::Truncated, "\"ph\":"),
        ("cut-in-number.json", ErrorKind::Truncated, "12"),
        ("cut-in-literal.json", ErrorKind::Truncated, "tr"),
        ("cut-in-escape.json", ErrorKind::Truncated, "\\u00"),
        ("cut-after-event.json", ErrorKind::Truncated, "\"dur\":2}\n"),
        ("cut-after-events.json", ErrorKind::Truncated, "]\n"),
        ("cut-in-head.json", ErrorKind::Truncated, "\"id\": 0"),
        ("missing-comma.json", ErrorKind::Json, "\"dur\":9}\n"),
        ("missing-colon.json", ErrorKind::Json, "\"ts\" "),
        ("missing-value.json", ErrorKind::Json, "\"ts\":"),
        ("bare-key.json", ErrorKind::Json, "\n{"),
        ("single-quotes.json", ErrorKind::Json, "\n{"),
        ("quote-in-name.json", ErrorKind::Json, "the \""),
        ("bad-literal.json", ErrorKind::Json, "\"a\":"),
        ("wrong-bracket.json", ErrorKind::Json, "\"dur\":9"),
        ("after-the-end.json", ErrorKind::Json, "]}\n"),
        ("two-documents.json", ErrorKind::Json, "]\n"),
    ] {
        let path = package("fixtures/hostile").join(name);
        let text = String::from_utf8(content(&path)).unwrap();
        let end = match kind {
            ErrorKind::Truncated => text.rfind(fault).unwrap() + fault.len(),
            _ => text.find(fault).unwrap() + fault.len(),
        };
        let error = Trace::open(&path, &IngestOptions::default()).expect_err(name);
        assert_eq!(error.kind(), kind, "{error}");
        let offset = error
            .offset()
            .unwrap_or_else(|| panic!("no offset: {error}"));
        assert!(
            offset.abs_diff(end as u64) <= 8,
            "{error}: the fault is at {end}"
        );
    }
}

#[test]
fn a_missing_file_and_a_folder_are_refused_by_name() {
    for path in ["fixtures/none.json", "fixtures"] {
        let path = package(path);
        let error = Trace::open(&path, &IngestOptions::default()).expect_err("no file");
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}

/// Cuts `bytes` at `at` and checks that the loss is seen.
fn cut(bytes: &[u8], at: usize, options: &IngestOptions) {
    let piece = &bytes[..at];
    let whole = bytes.trim_ascii_end().len() <= at;
    match Trace::from_bytes(piece, options) {
        Ok(trace) => {
            let open_array = piece.trim_ascii_start().starts_with(b"[");
            assert!(
                whole || open_array,
                "a cut at {at} was not seen: {}",
                outcome(&Ok(trace))
            );
        }
        Err(error) => {
            assert!(!whole, "nothing is missing at {at}: {error}");
            let blank = piece.trim_ascii().is_empty();
            assert_eq!(error.kind(), ErrorKind::Truncated, "a cut at {at}: {error}");
            if let Some(offset) = error.offset() {
                assert!(offset <= at as u64, "a cut at {at}: {error}");
                assert!(offset + 64 >= at as u64, "a cut at {at}: {error}");
            }
            assert!(blank || error.offset().is_some(), "a cut at {at}: {error}");
        }
    }
}

#[test]
fn a_trace_cut_anywhere_is_refused_as_truncated() {
    for case in ["odd-events", "checkpoint-stack", "fallback-links"] {
        let bytes = content(&package("fixtures/golden").join(case).join("trace.json"));
        for at in 0..=bytes.len() {
            cut(&bytes, at, &IngestOptions::default());
        }
    }
}

#[test]
fn a_real_trace_cut_anywhere_is_refused_as_truncated() {
    let mut random = Seeded::new(11);
    for path in files_under(&package("fixtures/traces")) {
        let bytes = content(&path);
        for options in [
            IngestOptions::default(),
            IngestOptions {
                segment_bytes: 70_000,
                chunk_bytes: 5_000,
                ..IngestOptions::default()
            },
        ] {
            for _ in 0..12 {
                cut(&bytes, random.index(bytes.len()), &options);
            }
        }
    }
}

#[test]
fn compressed_content_cut_anywhere_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let plain = content(&package("fixtures/hostile/whole.json.gz"));
    for (pack, kind) in [
        (gzip as fn(&[u8]) -> Vec<u8>, ErrorKind::Gzip),
        (zstd, ErrorKind::Zstd),
    ] {
        let packed = pack(&plain);
        for at in 4..packed.len() {
            let path = folder.path().join("cut.json");
            std::fs::write(&path, &packed[..at]).unwrap();
            let error = Trace::open(&path, &IngestOptions::default()).expect_err("a cut file");
            assert_eq!(
                error.kind(),
                kind,
                "a cut at {at} of {}: {error}",
                packed.len()
            );
        }
    }
}

/// Parallel compressors put a frame that is to be skipped before the others.
#[test]
fn a_cut_trace_in_a_folder_is_a_loss_however_it_is_compressed() {
    let plain = content(&package("fixtures/hostile/whole.json.gz"));
    let skipped = [
        &[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4],
        &zstd(&plain)[..],
    ]
    .concat();
    for packed in [gzip(&plain), zstd(&plain), skipped] {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("a.pt.trace.json"), &plain).unwrap();
        let other = folder.path().join("b.json");
        std::fs::write(&other, &packed).unwrap();
        let whole = attribution(folder.path(), &AttributeOptions::default()).unwrap();
        assert_eq!((whole.inputs.len(), whole.skipped.len()), (2, 0));
        std::fs::write(&other, &packed[..packed.len() - 9]).unwrap();
        let partly = attribution(folder.path(), &AttributeOptions::default()).unwrap();
        let failed: Vec<bool> = partly.skipped.iter().map(|input| input.failed).collect();
        assert_eq!(
            (partly.inputs.len(), failed),
            (1, vec![true]),
            "{:?}",
            &packed[..4]
        );
    }
}

/// Reads damaged bytes; whatever strict JSON accepts must be accepted, with the same events.
fn damaged(bytes: &[u8], options: &IngestOptions) {
    let strict = reference::read(bytes);
    match (Trace::from_bytes(bytes, options), strict) {
        (Ok(trace), Ok(rows)) => {
            assert_eq!(trace.events.len(), rows.len());
            for (id, want) in trace.events.ids().zip(&rows) {
                assert_eq!(&reference::row_of(&trace, id), want);
            }
        }
        (Err(error), Ok(_)) => panic!("valid JSON was refused: {error}"),
        (Err(error), Err(_)) => {
            assert!(
                error.offset().is_some()
                    || error.kind() == ErrorKind::NotATrace
                    || error.to_string().starts_with("not a Chrome/Kineto trace: "),
                "{error}"
            );
        }
        (Ok(trace), Err(reason)) => {
            assert!(
                trace.health.worst().is_some(),
                "broken JSON was read in silence: {reason}"
            );
        }
    }
}

#[test]
fn a_trace_with_wrong_bytes_never_panics_and_never_hides_it() {
    let mut random = Seeded::new(5);
    let bytes = content(&package("fixtures/golden/odd-events/trace.json"));
    let telling: &[u8] = b"{}[],:\"\\ 0-.eEtfn\0\n\xff";
    for round in 0..4_000 {
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(2) {
            let place = random.index(bytes.len());
            bytes[place] = telling[random.index(telling.len())];
        }
        let options = if round % 2 == 0 {
            IngestOptions::default()
        } else {
            IngestOptions {
                chunk_bytes: 300,
                segment_bytes: 700,
                ..IngestOptions::default()
            }
        };
        damaged(&bytes, &options);
    }
}

#[test]
fn damaged_compressed_content_never_passes_in_silence() {
    let mut random = Seeded::new(7);
    let folder = tempfile::TempDir::new().unwrap();
    let plain = content(&package("fixtures/golden/rocm/trace.json"));
    let whole = Trace::from_bytes(&plain, &IngestOptions::default()).unwrap();
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let packed = pack(&plain);
        for _ in 0..300 {
            let mut bytes = packed.clone();
            let place = random.index(bytes.len());
            bytes[place] ^= 1 << random.below(8);
            let path = folder.path().join("damaged.json");
            std::fs::write(&path, &bytes).unwrap();
            match Trace::open(&path, &IngestOptions::default()) {
                Err(error) => assert_eq!(error.path(), Some(path.as_path())),
                // Bits of the header mean nothing here, such as the time of compression.
                Ok(trace) => assert_eq!(trace.events.len(), whole.events.len(), "byte {place}"),
            }
        }
    }
}

#[test]
fn attribution_of_every_hostile_file_ends_in_an_answer_or_a_line() {
    for path in files_under(&package("fixtures/hostile")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let refused = Trace::open(&path, &IngestOptions::default()).is_err();
        let answer = attribution(Path::new(&path), &AttributeOptions::default());
        assert_eq!(answer.is_err(), refused, "{name}");
    }
}

/// Many devices and many steps, each device at work in one of them: an answer with a row for every pair
/// would be a thousand times the file.
#[test]
fn an_answer_grows_with_the_events_and_not_with_devices_times_steps() {
    let rows = |count: usize| {
        let mut lines = String::new();
        for number in 0..count {
            let at = 10 * number;
            writeln!(lines, "note 1/1 {at} 10 ProfilerStep#{number}").unwrap();
            writeln!(
                lines,
                "launch 1/1 {at} 1 cudaLaunchKernel corr={}",
                number + 1
            )
            .unwrap();
            writeln!(
                lines,
                "kernel {number}/7 {} 1 gemm corr={}",
                at + 2,
                number + 1
            )
            .unwrap();
        }
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("trace.json");
        std::fs::write(&path, crate::doctor::trace_with("", &lines)).unwrap();
        let answer = crate::support::answer::answer(&path);
        let devices = answer["ranks"][0]["devices"].as_array().unwrap();
        assert_eq!(devices.len(), count);
        let steps = devices
            .iter()
            .map(|device| device["steps"].as_array().unwrap().len());
        steps.sum::<usize>()
    };
    assert_eq!(rows(90), 90 * 90);
    assert_eq!(rows(150), 150);
}
