//! Little-endian numbers at an offset, or nothing where the bytes end before them.

/// The 16-bit number at `offset`.
#[inline]
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

/// The 32-bit number at `offset`.
#[inline]
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The 64-bit number at `offset`.
#[inline]
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_the_bytes_do() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0, 3];
        assert_eq!(u16_at(&bytes, 0), Some(1));
        assert_eq!(u32_at(&bytes, 4), Some(2));
        assert_eq!(u64_at(&bytes, 0), Some(0x2_0000_0001));
        assert_eq!(u64_at(&bytes, 2), None);
        assert_eq!(u32_at(&bytes, usize::MAX), None);
        assert_eq!(u16_at(&bytes, 8), None);
    }
}
