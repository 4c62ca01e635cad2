use std::fmt::Write as _;

use proptest::prelude::*;
use rayon::prelude::*;

use super::*;
use crate::ingest::inflate::tests::{gzip, skippable, zstd};
use crate::ingest::tests::{damage, damaged, describe, document};
use crate::ingest::{Source, discover};
use crate::model::Trace;

fn options(block_bytes: usize) -> IngestOptions {
    IngestOptions {
        block_bytes,
        ..IngestOptions::default()
    }
}

fn answer(bytes: &[u8], block: usize) -> String {
    describe(&Trace::from_bytes(bytes, &options(block)))
}

/// What becomes of `bytes` without a second try as a whole: `None` for irregular content.
fn only_in_blocks(bytes: &[u8], block: usize) -> Option<Result<Document>> {
    let inflater = Inflater::new(bytes, Compression::of(bytes).expect("compressed"), u64::MAX);
    in_blocks(inflater, &options(block)).transpose()
}

/// `content`, compressed in several ways.
fn compressed(content: &[u8]) -> Vec<Vec<u8>> {
    let (front, back) = content.split_at(content.len() / 3);
    vec![
        gzip(content),
        [gzip(front), gzip(back)].concat(),
        zstd(content),
        [zstd(front), skippable(b"x"), zstd(back)].concat(),
    ]
}

/// Reads `content` compressed in every way and demands the answer of plain content.
fn same_answer(content: &[u8], blocks: &[usize]) {
    let expected = answer(content, 0);
    for bytes in compressed(content) {
        for block in blocks {
            let answer = answer(&bytes, *block);
            assert!(
                answer == expected,
                "{block} of {}\n{answer}\ninstead of\n{expected}",
                String::from_utf8_lossy(content),
            );
        }
    }
}

/// Many events with all that moves when offsets do: names, quirks, findings.
fn events(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let comma = if number == 0 { "" } else { ",\n  " };
        let odd = match number % 50 {
            7 => r#""a": nan, "#,
            23 => r#""name": "\c", "dur": -1, "#,
            31 => r#""args": {"correlation": 3, "l": [{"x": "}, {"}]}, "#,
            _ => "",
        };
        let _ = write!(
            text,
            r#"{comma}{{"ph": "X", "cat": "cpu_op", {odd}"pid": {}, "tid": 2, "ts": {number}.25}}"#,
            number % 3,
        );
    }
    text
}

#[test]
fn regular_content_is_read_in_blocks() {
    let events = events(3000);
    for (head, tail) in [
        (
            "{\"schemaVersion\": 1, \"traceEvents\": [",
            "], \"traceName\": \"a\"}",
        ),
        (
            "\u{feff} {\"x\": NaN, \"x\": [{\"ph\": 1}], \"traceEvents\": [\n",
            ",]\n, \"y\": inf,}\n",
        ),
        ("{\"traceEvents\": null, \"traceEvents\": [", "]}"),
        ("[", "]"),
        (" [ ", ", ]\n"),
        ("[", ""),
        ("[", " , "),
    ] {
        let content = format!("{head}{events}{tail}");
        let expected = answer(content.as_bytes(), 0);
        for bytes in compressed(content.as_bytes()) {
            for threads in [1, 2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                pool.build().unwrap().install(|| {
                    for block in [2_000, 10_000, 50_000] {
                        let read = only_in_blocks(&bytes, block).expect("regular content");
                        let rows = read.expect("sound content").rows;
                        assert!(rows.events.len() == 3000, "{block} bytes");
                        assert!(content.len() > 2 * block, "several blocks");
                        assert!(answer(&bytes, block) == expected, "{head} … {tail}");
                    }
                });
            }
        }
    }
}

#[test]
fn irregular_content_is_read_as_a_whole() {
    let events = events(100);
    let long = "x".repeat(3000);
    for content in [
        format!("{{\"a\": \"{long}\", \"traceEvents\": [{events}]}}"),
        format!("{{\"traceEvents\": [{events}], \"a\": \"{long}\"}}"),
        format!("{{\"traceEvents\": [{events}, {{\"name\": \"{long}\"}}, {events}]}}"),
        format!("{{\"traceEvents\": [{events}], \"traceEvents\": [{events}]}}"),
        format!("{{\"traceEvents\": [], \"traceEvents\": [{events}]}}"),
        format!("{{\"traceEvents\": [{events}], \"traceEvents\": 1}}"),
        format!("{{\"traceEvents\": [{events}, {{\"ph\" 1}}, {events}]}}"),
        format!("{{\"traceEvents\": [{events}]}} x"),
        format!("{{\"traceEvents\": [{events}"),
        format!("{{\"a\": [{events}]}}"),
        " ".repeat(5000),
    ] {
        assert!(
            only_in_blocks(&gzip(content.as_bytes()), 1000).is_none(),
            "{content}"
        );
        same_answer(content.as_bytes(), &[1000, 1500]);
    }
}

#[test]
fn blocks_that_end_in_wrong_guesses_change_nothing() {
    let list = vec![r#"{"ph": "X", "ts": 1}"#; 200].join(", ");
    let event = format!(r#"{{"ph": "X", "ts": 1, "dur": 1, "args": {{"l": [{list}]}}}}"#);
    let content = format!("{{\"traceEvents\": [{event}, {event}, {list}, {event}]}}");
    assert!(only_in_blocks(&gzip(content.as_bytes()), 1000).is_none());
    same_answer(content.as_bytes(), &[64, 1000, 3000, 10_000]);
}

#[test]
fn the_first_bytes_of_long_content_decide() {
    let mut bytes = gzip(&vec![0; 8 << 20]);
    let error = only_in_blocks(&bytes, 1000)
        .expect("decided")
        .err()
        .expect("no trace");
    assert_eq!(
        error.reason(),
        "not a Chrome/Kineto trace: neither JSON, gzip nor zstd"
    );
    // Damage comes first, wherever it is.
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    let error = only_in_blocks(&bytes, 1000).expect("decided").err();
    assert_eq!(error.expect("damage").kind(), ErrorKind::Gzip);
    for front in [" \"", "7", "\u{feff}7", "x", "]"] {
        let content = format!("{front}{}", events(100));
        assert!(
            only_in_blocks(&zstd(content.as_bytes()), 1000).is_some(),
            "{front}"
        );
        same_answer(content.as_bytes(), &[1000]);
    }
    let utf16: Vec<u8> = events(100)
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    same_answer(&[b"\xff\xfe", &utf16[..]].concat(), &[1, 1000]);
}

#[test]
fn damage_of_the_compressed_data_comes_before_that_of_the_content() {
    let content = format!("{{\"traceEvents\": [{{\"ph\" 1}}, {}]}}", events(500));
    for bytes in compressed(content.as_bytes()) {
        let cut = &bytes[..bytes.len() - 3];
        let expected = answer(cut, usize::MAX);
        assert!(
            expected.contains("unexpected end of the compressed data"),
            "{expected}"
        );
        for block in [1000, 5000] {
            assert_eq!(answer(cut, block), expected);
        }
    }
}

#[test]
fn data_cut_anywhere_gives_one_error() {
    let content = format!("{{\"traceEvents\": [{}]}}", events(60));
    for bytes in compressed(content.as_bytes()) {
        for len in 4..bytes.len() {
            let cut = &bytes[..len];
            let expected = answer(cut, usize::MAX);
            for block in [200, 1000] {
                assert_eq!(answer(cut, block), expected, "cut at {len}");
            }
        }
    }
}

#[test]
fn many_files_are_read_at_once_however_few_threads_there_are() {
    let contents: Vec<String> = (0..24)
        .map(|number| format!("{{\"traceEvents\": [{}]}}", events(200 + 40 * number)))
        .collect();
    let files: Vec<(Vec<u8>, String)> = contents
        .iter()
        .flat_map(|content| {
            let expected = answer(content.as_bytes(), 0);
            compressed(content.as_bytes())
                .into_iter()
                .map(move |bytes| (bytes, expected.clone()))
        })
        .collect();
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            files.par_iter().for_each(|(bytes, expected)| {
                assert!(answer(bytes, 3000) == *expected);
            });
        });
    }
}

proptest! {
    #[test]
    fn any_block_size_gives_the_answer_of_whole_content(content in document()) {
        same_answer(content.as_bytes(), &[1, 150, 400, 1000]);
    }

    #[test]
    fn any_block_size_gives_the_answer_of_whole_content_on_damaged_text(
        content in document(),
        damage in damage(),
    ) {
        same_answer(&damaged(&content, &damage), &[1, 150, 400, 1000]);
    }
}

#[test]
fn the_corpus_is_read_in_blocks_as_a_whole() {
    let Some(corpus) = std::env::var_os("TRACEKIT_CORPUS") else {
        println!("TRACEKIT_CORPUS is not set: no corpus to read");
        return;
    };
    let mut regular = 0;
    for input in discover(&[corpus.into()]).expect("the corpus").inputs {
        let source = Source::open(&input.path, &IngestOptions::default()).expect("a file");
        let stored = source.bytes().to_vec();
        let (content, ways) = match Compression::of(&stored) {
            None => (stored.clone(), vec![zstd(&stored), gzip(&stored)]),
            Some(compression) => {
                let whole =
                    inflate::whole(Inflater::new(&stored, compression, u64::MAX), MAX_WHOLE);
                let Ok(content) = whole else {
                    continue;
                };
                let ways = vec![zstd(&content), stored];
                (content, ways)
            }
        };
        let expected = answer(&content, 0);
        for bytes in ways {
            for block in [1 << 10, 10_000, 100_000, 1 << 20] {
                let answer = answer(&bytes, block);
                assert!(answer == expected, "{} {block}", input.path.display());
            }
            regular += usize::from(only_in_blocks(&bytes, 100_000).is_some());
        }
    }
    println!("{regular} read in blocks");
}
