//! Compressed content: gzip with all its members, zstd with all its frames.

use std::io::{ErrorKind as IoKind, Read};

use flate2::bufread::GzDecoder;

use crate::error::{Error, ErrorKind, Result};

/// Most content in bytes that is inflated into memory as a whole: what cannot be read in blocks has
/// to be, and a few megabytes can inflate to more than any machine has.
pub(super) const MAX_WHOLE: u64 = 4 << 30;

/// Deflate cannot shrink anything further than this. Zstandard can, but traces do not.
const MAX_RATIO: usize = 1032;

/// About how many bytes are inflated at a time: the checksum is taken over them again while they
/// are in the cache.
const STEP: usize = 256 << 10;

/// How content is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// How `bytes` are compressed, by how they start, whatever the name of their file.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or one to skip, which parallel compressors put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// How much content there is, by what stands at the start or the end.
    pub(super) fn claim(self, head: &[u8], tail: &[u8]) -> Option<u64> {
        match self {
            // Of the last member, at its end.
            Self::Gzip => tail
                .last_chunk::<4>()
                .map(|len| u64::from(u32::from_le_bytes(*len))),
            // Of the first frame, at its start.
            Self::Zstd => zstd::zstd_safe::get_frame_content_size(head).ok().flatten(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn error(self, message: &str) -> Error {
        let kind = match self {
            Self::Gzip => ErrorKind::Gzip,
            Self::Zstd => ErrorKind::Zstd,
        };
        Error::new(kind, format!("{}: {message}", self.name()))
    }
}

/// Compressed bytes that are inflated from front to back.
pub(super) struct Inflater<'a> {
    bytes: &'a [u8],
    stream: Stream<'a>,
    /// So much content may still come.
    left: u64,
}

enum Stream<'a> {
    Gzip(Box<GzDecoder<&'a [u8]>>),
    Zstd(Option<zstd::stream::read::Decoder<'static, &'a [u8]>>),
}

impl<'a> Inflater<'a> {
    /// The inflater of `bytes`, which are of this `compression` and may hold up to `limit` bytes of content.
    pub(super) fn new(bytes: &'a [u8], compression: Compression, limit: u64) -> Self {
        let stream = match compression {
            Compression::Gzip => Stream::Gzip(Box::new(GzDecoder::new(bytes))),
            Compression::Zstd => Stream::Zstd(zstd::stream::read::Decoder::with_buffer(bytes).ok()),
        };
        Self {
            bytes,
            stream,
            left: limit,
        }
    }

    /// How the bytes are compressed.
    pub(super) fn compression(&self) -> Compression {
        match self.stream {
            Stream::Gzip(_) => Compression::Gzip,
            Stream::Zstd(_) => Compression::Zstd,
        }
    }

    /// About how long the content is, if that is possible at all: no claim of a damaged or hostile
    /// file may reserve more memory than its data could fill.
    pub(super) fn expected_len(&self) -> usize {
        let claim = self.compression().claim(self.bytes, self.bytes);
        let possible = self.bytes.len().saturating_mul(MAX_RATIO);
        let possible = usize::try_from(self.left).map_or(possible, |left| possible.min(left));
        usize::try_from(claim.unwrap_or(0)).map_or(possible, |claim| claim.min(possible))
    }

    /// Inflates more content to the front of `buffer`, which is not empty: how many bytes, 0 only
    /// at the end of all content.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self
            .step(buffer)
            .map_err(|_| damage(self.bytes, self.compression()))?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let name = self.compression().name();
            let message = format!("{name}: more content than there may be (--memory-limit)");
            Error::new(ErrorKind::TooLarge, message)
        })?;
        Ok(read)
    }

    /// Inflates the rest only to see whether it is sound.
    pub(super) fn drain(mut self) -> Result<()> {
        let mut buffer = vec![0; STEP];
        while self.read(&mut buffer)? > 0 {}
        Ok(())
    }

    /// Like [`read`](Self::read), with an error whose place depends on the sizes of buffers.
    fn step(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let len = buffer.len().min(STEP);
        let buffer = &mut buffer[..len];
        let decoder = match &mut self.stream {
            Stream::Gzip(decoder) => decoder,
            Stream::Zstd(decoder) => {
                let decoder = decoder
                    .as_mut()
                    .ok_or_else(|| Compression::Zstd.error("no memory to decompress"))?;
                return decoder.read(buffer).map_err(|error| match error.kind() {
                    IoKind::UnexpectedEof => cut(Compression::Zstd).at(self.bytes.len() as u64),
                    _ => Compression::Zstd.error(&error.to_string().to_lowercase()),
                });
            }
        };
        loop {
            let read = decoder.read(buffer);
            let rest = *decoder.get_ref();
            let at = (self.bytes.len() - rest.len()) as u64;
            match read {
                Ok(0) => {}
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == IoKind::UnexpectedEof => {
                    return Err(cut(Compression::Gzip).at(at));
                }
                Err(_) => return Err(Compression::Gzip.error("damaged data").at(at)),
            }
            // Zero padding behind the last member is passed, as `gzip` does.
            if rest.iter().all(|byte| *byte == 0) {
                return Ok(0);
            }
            if Compression::of(rest) != Some(Compression::Gzip) {
                let message = "garbage behind the compressed data";
                return Err(Compression::Gzip.error(message).at(at));
            }
            **decoder = GzDecoder::new(rest);
        }
    }
}

fn cut(compression: Compression) -> Error {
    compression.error("unexpected end of the compressed data")
}

/// What is wrong with `bytes`, in the words and with the offset that every way to read them gives.
#[cold]
fn damage(bytes: &[u8], compression: Compression) -> Error {
    let mut inflater = Inflater::new(bytes, compression, u64::MAX);
    let mut buffer = vec![0; STEP];
    loop {
        match inflater.step(&mut buffer) {
            Ok(0) => return compression.error("damaged data"),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// All content of `inflater`, when it is not longer than `limit`.
pub(super) fn whole(mut inflater: Inflater<'_>, limit: u64) -> Result<Vec<u8>> {
    let expected = inflater.expected_len();
    let mut content =
        Vec::with_capacity(usize::try_from(limit).map_or(expected, |limit| expected.min(limit)));
    let mut buffer = vec![0; STEP];
    loop {
        let read = inflater.read(&mut buffer)?;
        if read == 0 {
            return Ok(content);
        }
        content.extend_from_slice(&buffer[..read]);
        if content.len() as u64 > limit {
            let message = format!(
                "more than {} MiB of content in a layout that is not read in blocks; decompress it first",
                limit >> 20
            );
            return Err(inflater.compression().error(&message));
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
