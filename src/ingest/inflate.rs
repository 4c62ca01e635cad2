//! Gzip content, all members of it.

use std::io::Read;

use flate2::bufread::GzDecoder;

use super::source::is_gzip;
use crate::error::{Error, ErrorKind, Result};

/// Deflate cannot shrink anything further than this.
const MAX_RATIO: usize = 1032;

/// The decompressed content of `bytes`: of every member, one after the other. Zero padding behind
/// the last member is passed, as `gzip` does.
pub(super) fn inflate(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut content = Vec::with_capacity(expected_len(bytes));
    let mut rest = bytes;
    loop {
        let mut decoder = GzDecoder::new(rest);
        if let Err(error) = decoder.read_to_end(&mut content) {
            let at = bytes.len() - decoder.get_ref().len();
            return Err(damaged(&error).at(at as u64));
        }
        rest = decoder.into_inner();
        if rest.iter().all(|byte| *byte == 0) {
            return Ok(content);
        }
        if !is_gzip(rest) {
            let at = (bytes.len() - rest.len()) as u64;
            return Err(gzip("gzip: garbage behind the compressed data").at(at));
        }
    }
}

fn gzip(message: &str) -> Error {
    Error::new(ErrorKind::Gzip, message)
}

fn damaged(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => gzip("gzip: unexpected end of the compressed data"),
        _ => gzip("gzip: damaged data"),
    }
}

/// The length that the last member claims, if that is possible at all: no claim of a damaged or
/// hostile file may reserve more memory than its data could fill.
fn expected_len(bytes: &[u8]) -> usize {
    let claim = bytes
        .last_chunk::<4>()
        .map_or(0, |len| u32::from_le_bytes(*len) as usize);
    claim.min(bytes.len().saturating_mul(MAX_RATIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_claim_reserves_more_than_the_data_can_fill() {
        assert_eq!(expected_len(b"\x1f\x8b\xff\xff\xff\xff"), 6 * MAX_RATIO);
        assert_eq!(expected_len(b"\x1f\x8b\x10\0\0\0"), 16);
        assert_eq!(expected_len(b"\x1f"), 0);
    }

    #[test]
    fn a_cut_header_is_one_line() {
        for len in 2..10 {
            let header = &b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..len];
            let error = inflate(header).expect_err("no content");
            assert_eq!(error.kind(), ErrorKind::Gzip);
            assert!(
                error.to_string().starts_with("gzip: unexpected end"),
                "{error}"
            );
        }
    }
}
