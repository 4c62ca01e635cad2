//! The library's reader against the plain one of `tests/support/reference.rs`, event by event and
//! column by column.

use std::path::{Path, PathBuf};

use tracekit::Trace;
use tracekit::ingest::{IngestOptions, Reader};

use crate::support::{corpus, files_under, package, reference, whole_content};

/// Compares one file; false when it is no trace in strict JSON and so has no second opinion.
fn agrees(path: &Path) -> bool {
    let Some(content) = whole_content(path) else {
        return false;
    };
    let Ok(want) = reference::read(&content) else {
        return false;
    };
    for reader in [Reader::Auto, Reader::Text] {
        let options = IngestOptions {
            reader,
            ..IngestOptions::default()
        };
        let trace = Trace::open(path, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            trace.events.len(),
            want.len(),
            "events of {}",
            path.display()
        );
        for (id, want) in trace.events.ids().zip(&want) {
            let got = reference::row_of(&trace, id);
            assert_eq!(
                &got,
                want,
                "event {} of {} by {reader:?}",
                id.index(),
                path.display()
            );
        }
    }
    true
}

fn fixtures() -> Vec<PathBuf> {
    files_under(&package("fixtures"))
        .into_iter()
        .filter(|path| {
            path.to_string_lossy().ends_with(".json")
                || path.to_string_lossy().ends_with(".json.gz")
        })
        .collect()
}

#[test]
fn both_readers_agree_on_every_fixture() {
    let compared = fixtures().iter().filter(|path| agrees(path)).count();
    assert!(compared >= 30, "only {compared} fixtures were compared");
}

#[test]
fn both_readers_agree_on_every_trace_of_the_corpus() {
    let Some(corpus) = corpus::folder() else {
        return;
    };
    let files = corpus::traces(&corpus);
    let compared = files.iter().filter(|path| agrees(path)).count();
    println!(
        "compared {compared} of {} files; the others are no traces in strict JSON",
        files.len()
    );
    assert!(
        compared >= 200,
        "only {compared} files of the corpus were compared"
    );
}

#[test]
fn the_plain_reader_knows_its_decimals() {
    for (text, want) in [
        ("0", Some(0)),
        ("-0.0", Some(0)),
        ("1712195495505582.988", Some(1_712_195_495_505_582_988)),
        ("0.0005", Some(0)),
        ("0.0015", Some(2)),
        ("0.00250001", Some(3)),
        ("-0.0015", Some(-2)),
        ("1.5e1", Some(15_000)),
        ("1E+2", Some(100_000)),
        ("15e-5", Some(0)),
        ("25e-4", Some(2)),
        ("\"3.5\"", Some(3_500)),
        ("4611686018427387.903", Some((1 << 62) - 1)),
        ("4611686018427387.904", None),
        ("1e400", None),
        ("0e400", Some(0)),
        ("null", None),
        ("\"x\"", None),
    ] {
        assert_eq!(reference::nanoseconds(text), want, "{text}");
    }
}
