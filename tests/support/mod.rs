//! What the tests share: paths, the corpus, comparisons, and an independent reader.

pub(crate) mod answer;
pub(crate) mod builder;
pub(crate) mod corpus;
pub(crate) mod drawing;
pub(crate) mod inspection;
pub(crate) mod laws;
pub(crate) mod page;
pub(crate) mod reference;
pub(crate) mod rich;
pub(crate) mod seeded;
pub(crate) mod snapshot;
pub(crate) mod training;

use std::path::{Path, PathBuf};

/// A path in the package.
pub(crate) fn package(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Every file under `folder`, in order of path.
pub(crate) fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The sub-folders of `folder`, in order of name.
pub(crate) fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

/// The content of `path`, decompressed when it is compressed.
pub(crate) fn content(path: &Path) -> Vec<u8> {
    whole_content(path).unwrap_or_else(|| panic!("{} is damaged", path.display()))
}

/// The content of `path`, decompressed when it is compressed; `None` when that is damaged.
pub(crate) fn whole_content(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match bytes.as_slice() {
        [0x1f, 0x8b, ..] => {
            let mut plain = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(bytes.as_slice());
            decoder.read_to_end(&mut plain).ok()?;
            Some(plain)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::decode_all(bytes.as_slice()).ok(),
        _ => Some(bytes),
    }
}

/// `bytes` as gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// `bytes` as zstd, with a checksum.
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// `json` without white space between its tokens; digits and escapes stay as they are.
pub(crate) fn minify(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        if in_string {
            out.push(*byte);
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if !byte.is_ascii_whitespace() {
            out.push(*byte);
            in_string = *byte == b'"';
        }
    }
    out
}
