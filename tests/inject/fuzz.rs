//! Damaged spools: whatever the bytes are, there is a trace or none, and no panic.

use crate::files::spools;
use crate::run::has_python;

/// A number in the environment: `TRACEKIT_FUZZ=1000000` for as many inputs, `TRACEKIT_FUZZ_SEED=7` for
/// others.
fn asked(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Numbers that are the same every time (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % limit
    }
}

/// Recomputes the checksums of whole frames, so that damage gets behind them.
fn seal(bytes: &mut [u8]) {
    use tracekit_spool::{HEAD, u32_at};
    let mut at = 8;
    while let Some(length) = u32_at(bytes, at + 4).map(|length| length as usize) {
        let end = at + HEAD + length;
        if end > bytes.len() {
            break;
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + 8]);
        crc.update(&bytes[at + HEAD..end]);
        bytes[at + 8..at + 12].copy_from_slice(&crc.finalize().to_le_bytes());
        at = end.next_multiple_of(8);
    }
}

/// Damages one of the files of a spool, or loses, doubles or swaps files.
fn damage(files: &mut Vec<Vec<u8>>, random: &mut Random) {
    let place = random.below(files.len());
    if files.len() > 1 && random.below(8) == 0 {
        match random.below(3) {
            0 => drop(files.remove(place)),
            1 => {
                let again = files[place].clone();
                files.insert(random.below(files.len()), again);
            }
            _ => files.swap(0, place),
        }
        return;
    }
    let bytes = &mut files[place];
    match random.below(4) {
        0 => bytes.truncate(random.below(bytes.len())),
        1 => {
            let piece = random.below(64) + 1;
            let from = random.below(bytes.len() - piece);
            bytes.drain(from..from + piece);
        }
        _ => {
            for _ in 0..=random.below(8) {
                let bit = random.below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    // Half of them with the right checksums.
    if random.below(2) == 0 && bytes.len() > 8 {
        seal(bytes);
    }
}

#[test]
fn damaged_spools_never_panic_and_traces_of_them_are_json() {
    if !has_python() {
        return;
    }
    let one = spools(&["steps:2", "everything", "ranges"], &[]);
    let ring = ["--max-spool", "256KiB", "--ring"];
    let several = spools(&["many:400", "threads:40", "ranges", "held:60"], &ring);
    assert!(one.len() == 1 && several.len() > 4, "{}", several.len());
    // Those of a ring are large: the last three are enough, the newest of which says what is gone.
    let several = several[several.len() - 3..].to_vec();
    let seed = asked("TRACEKIT_FUZZ_SEED", 0);
    let mut random = Random(0x7261_6365_6b69_7401 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (mut read, mut refused) = (0_u64, 0_u64);
    for number in 0..asked("TRACEKIT_FUZZ", 2_000) {
        let mut files = if number % 8 == 7 { &several } else { &one }.clone();
        damage(&mut files, &mut random);
        let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
        match tracekit::collect::convert_bytes(&files) {
            Some((trace, _)) => {
                read += 1;
                // Every trace is valid; reading each of a million takes too long.
                if number % 16 == 7 || number % 16 == 0 {
                    let parsed = serde_json::from_slice::<serde::de::IgnoredAny>(&trace);
                    assert!(parsed.is_ok(), "input {number}: {parsed:?}");
                }
            }
            None => refused += 1,
        }
    }
    println!("{read} spools were read, {refused} refused");
    assert!(read > refused);
}
