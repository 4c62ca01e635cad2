//! What a file is that is no trace, by how it starts.

use std::io::Read;

use super::inflate::Compression;

/// How much of a file is looked at.
const HEAD: u64 = 64 << 10;

/// What a file is instead of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Stable name, as in JSON.
    pub(crate) name: &'static str,
    /// In words, and what to do about it; empty when there is nothing to add to the reason.
    pub(crate) text: &'static str,
}

/// Kinds of JSON documents: all of the words are keys or values near the start.
const DOCUMENTS: &[(&[&[u8]], Kind)] = &[
    (
        &[b"\"nodes\"", b"\"schema\""],
        Kind {
            name: "execution_trace",
            text: "an execution trace, which has operators but no times; record with torch.profiler",
        },
    ),
    (
        &[b"speedscope"],
        Kind {
            name: "speedscope",
            text: "a speedscope profile",
        },
    ),
    (
        &[b"\"profiles\"", b"\"shared\""],
        Kind {
            name: "speedscope",
            text: "a speedscope profile",
        },
    ),
    (
        &[b"\"nodes\"", b"\"samples\"", b"\"timeDeltas\""],
        Kind {
            name: "cpu_profile",
            text: "a CPU profile of V8",
        },
    ),
    (
        &[b"\"segments\"", b"\"device_traces\""],
        Kind {
            name: "memory_snapshot",
            text: "a memory snapshot of PyTorch, which has allocations but no times of work",
        },
    ),
    (
        &[b"\"spans\"", b"\"traceId\""],
        Kind {
            name: "cloud_trace",
            text: "a trace of remote calls",
        },
    ),
];

/// Kinds of binary files, by their first bytes.
const BINARIES: &[(&[u8], Kind)] = &[
    (
        b"PK\x03\x04",
        Kind {
            name: "zip",
            text: "a zip archive; unpack it first",
        },
    ),
    (
        b"SQLite format 3\0",
        Kind {
            name: "sqlite",
            text: "an SQLite database, as Nsight Systems and rocpd write; export a Chrome trace from it",
        },
    ),
    (
        b"\x80\x04",
        Kind {
            name: "pickle",
            text: "a Python pickle",
        },
    ),
    (
        b"\x0a",
        Kind {
            name: "perfetto",
            text: "a binary trace of Perfetto; convert it to JSON first",
        },
    ),
    (
        b"\xfd7zXZ\0",
        Kind {
            name: "xz",
            text: "compressed with xz; unpack it first",
        },
    ),
];

/// The start of the content of a file, whose bytes as stored are `bytes`.
pub(crate) fn head_of(bytes: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    // What can be inflated of a damaged file is enough.
    let _ = match Compression::of(bytes) {
        Some(Compression::Gzip) => flate2::bufread::MultiGzDecoder::new(bytes)
            .take(HEAD)
            .read_to_end(&mut head),
        Some(Compression::Zstd) => zstd::stream::read::Decoder::with_buffer(bytes)
            .and_then(|decoder| decoder.take(HEAD).read_to_end(&mut head)),
        None => bytes.take(HEAD).read_to_end(&mut head),
    };
    head
}

/// What a file that starts with `head` is, when it is no trace but something known.
pub(crate) fn kind_of(head: &[u8]) -> Option<Kind> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = text.trim_ascii_start();
    if matches!(text.first(), Some(b'{' | b'[')) {
        let has = |word: &&[u8]| memchr::memmem::find(text, word).is_some();
        let known = DOCUMENTS
            .iter()
            .find(|(words, _)| words.iter().all(has))
            .map(|(_, kind)| *kind);
        return known.or(Some(Kind {
            name: "json",
            text: "",
        }));
    }
    // One of the starts is a line end, too.
    let binary = head.contains(&0) || !head.is_ascii();
    let known = BINARIES
        .iter()
        .find(|(magic, _)| binary && head.starts_with(magic));
    known.map(|(_, kind)| *kind)
}

/// True for a file, stored as `bytes`, that is or was meant to be a trace, or may have been one: of some damaged files
/// nothing can be inflated.
pub(crate) fn may_be_a_trace(bytes: &[u8]) -> bool {
    let head = head_of(bytes);
    is_like_a_trace(&head) || (head.is_empty() && Compression::of(bytes).is_some())
}

/// True for the start of a file that is or was meant to be a trace.
pub(crate) fn is_like_a_trace(head: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    has(b"\"traceEvents\"") || has(b"\"deviceProperties\"") || (has(b"\"ph\"") && has(b"\"ts\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_known_by_their_start() {
        let name = |head: &[u8]| kind_of(head).map(|kind| kind.name);
        for (head, wanted) in [
            (
                &br#"{"schema": "1.0.1", "pid": 1, "nodes": ["#[..],
                Some("execution_trace"),
            ),
            (
                br#"{"$schema":"https://www.speedscope.app/file-format-schema.json""#,
                Some("speedscope"),
            ),
            (
                br#"{"projectId":"p","traceId":"1","spans":[]}"#,
                Some("cloud_trace"),
            ),
            (b"\xef\xbb\xbf  {\"batch\": 2}", Some("json")),
            (b"PK\x03\x04\0rest", Some("zip")),
            (b"\x0a\x10\0\x01", Some("perfetto")),
            (b"\nnotes", None),
            (b"notes", None),
            (b"", None),
        ] {
            assert_eq!(name(head), wanted, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn the_start_of_a_damaged_gzip_file_is_seen() {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder
            .write_all(br#"{"traceEvents": [{"ph": "X", "ts": 1}"#)
            .unwrap();
        let bytes = encoder.finish().unwrap();
        let head = head_of(&bytes[..bytes.len() - 9]);
        assert!(is_like_a_trace(&head), "{}", String::from_utf8_lossy(&head));
        assert!(!is_like_a_trace(b"{\"ph\": 7.4}"));
    }
}
