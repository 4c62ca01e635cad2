use std::io::Write as _;

use super::*;

/// `text` as one member of gzip.
pub(in crate::ingest) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// `text` as one frame of zstd, with a checksum.
pub(in crate::ingest) fn zstd(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A frame that decoders skip.
pub(in crate::ingest) fn skippable(text: &[u8]) -> Vec<u8> {
    let len = u32::try_from(text.len()).unwrap();
    [&[0x53, 0x2a, 0x4d, 0x18], &len.to_le_bytes()[..], text].concat()
}

fn inflater(bytes: &[u8]) -> Inflater<'_> {
    Inflater::new(bytes, Compression::of(bytes).expect("compressed"), u64::MAX)
}

/// The content, with as many bytes read at once.
fn read_by(bytes: &[u8], step: usize) -> Result<Vec<u8>> {
    let mut inflater = inflater(bytes);
    let mut content = Vec::new();
    let mut buffer = vec![0; step];
    loop {
        match inflater.read(&mut buffer)? {
            0 => return Ok(content),
            read => content.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Demands one answer for all sizes of buffers.
fn read(bytes: &[u8]) -> std::result::Result<Vec<u8>, (ErrorKind, String)> {
    let plain = |error: Error| (error.kind(), error.reason());
    let content = whole(inflater(bytes), u64::MAX).map_err(plain);
    for step in [1, 7, 1000, 1 << 20] {
        assert_eq!(read_by(bytes, step).map_err(plain), content);
    }
    assert_eq!(
        inflater(bytes).drain().map_err(plain).err(),
        content.clone().err()
    );
    content
}

/// Some text that does not shrink to nothing.
fn text() -> Vec<u8> {
    let words = (0..400_u32).map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761)));
    words.collect::<String>().into_bytes()
}

#[test]
fn compression_is_known_by_the_first_bytes() {
    assert_eq!(Compression::of(&gzip(b"")), Some(Compression::Gzip));
    assert_eq!(Compression::of(&zstd(b"")), Some(Compression::Zstd));
    assert_eq!(Compression::of(&skippable(b"")), Some(Compression::Zstd));
    for other in [
        &b""[..],
        b"\x1f",
        b"\x28\xb5\x2f",
        b"P*M",
        b"{}",
        b"[]",
        b"PK\x03\x04",
    ] {
        assert_eq!(Compression::of(other), None);
    }
}

#[test]
fn all_members_and_frames_are_one_content() {
    let text = text();
    let (front, back) = text.split_at(1000);
    for bytes in [
        gzip(&text),
        [gzip(front), gzip(b""), gzip(back)].concat(),
        [gzip(front), gzip(back), vec![0; 1000]].concat(),
        zstd(&text),
        [zstd(front), zstd(b""), zstd(back)].concat(),
        [
            skippable(b"head"),
            zstd(front),
            skippable(b""),
            zstd(back),
            skippable(b"tail"),
        ]
        .concat(),
    ] {
        assert!(read(&bytes) == Ok(text.clone()));
    }
    for empty in [gzip(b""), zstd(b""), skippable(b"nothing")] {
        assert_eq!(read(&empty), Ok(Vec::new()));
    }
}

#[test]
fn data_cut_anywhere_is_refused_in_one_way() {
    for (bytes, shortest, kind) in [
        (gzip(&text()), 2, ErrorKind::Gzip),
        (zstd(&text()), 4, ErrorKind::Zstd),
    ] {
        for len in shortest..bytes.len() {
            let (found, reason) = read(&bytes[..len]).expect_err("no whole content");
            assert_eq!(found, kind);
            let rest = reason.split_once(": ").unwrap().1;
            assert!(
                rest.starts_with("unexpected end of the compressed data at byte "),
                "cut at {len}: {reason}"
            );
        }
    }
}

#[test]
fn damage_anywhere_is_refused_in_one_way_or_harmless() {
    let text = text();
    for bytes in [gzip(&text), zstd(&text)] {
        for at in 4..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            // A time in the header, bits behind the last code: nobody needs them.
            if let Ok(content) = read(&bytes) {
                assert!(content == text, "damage at {at} went unseen");
            }
        }
    }
}

#[test]
fn garbage_behind_is_refused() {
    let whole = gzip(b"text");
    for garbage in [&b"x"[..], b"\0\0x", b"\x1f", b"garbage"] {
        let (kind, reason) = read(&[&whole, garbage].concat()).expect_err("garbage");
        assert_eq!(kind, ErrorKind::Gzip);
        let at = whole.len();
        assert_eq!(
            reason,
            format!("gzip: garbage behind the compressed data at byte {at}")
        );
    }
    for garbage in [&b"x"[..], b"\0\0\0\0\0\0\0\0", b"garbage"] {
        let (kind, reason) = read(&[&zstd(b"text"), garbage].concat()).expect_err("garbage");
        assert_eq!(kind, ErrorKind::Zstd, "{reason}");
    }
}

#[test]
fn content_beyond_the_limit_is_refused() {
    for bytes in [gzip(&vec![b' '; 3 << 20]), zstd(&vec![b' '; 3 << 20])] {
        assert!(whole(inflater(&bytes), 3 << 20).is_ok());
        let error = whole(inflater(&bytes), 2 << 20).expect_err("too long");
        assert!(
            error.reason().contains("more than 2 MiB of content"),
            "{error}"
        );
    }
}

#[test]
fn no_claim_reserves_more_than_the_data_can_fill() {
    let claim = |bytes| Inflater::new(bytes, Compression::Gzip, u64::MAX).expected_len();
    assert_eq!(claim(b"\x1f\x8b\xff\xff\xff\xff"), 6 * MAX_RATIO);
    assert_eq!(claim(b"\x1f\x8b\x10\0\0\0"), 16);
    assert_eq!(claim(b"\x1f"), 0);
    // A frame header that claims 2^62 bytes.
    let hostile = b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x40\0\0";
    assert_eq!(inflater(hostile).expected_len(), 15 * MAX_RATIO);
}
