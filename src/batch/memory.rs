//! How much memory inputs may take together.

use std::sync::{Condvar, Mutex, PoisonError};

/// What is left when the system does not tell how much there is.
const UNKNOWN: u64 = 4 << 30;

/// So many times its content an input takes while it is analysed: 1.3 to 2.2 times by measurement (columns,
/// device work, tables), and the content itself where it is not a file.
const PER_BYTE: u64 = 3;

/// What tracekit takes with nothing to do.
const BASE: u64 = 48 << 20;

/// Compressed traces are a twentieth of their content, or more.
const UNPACKED: u64 = 20;

/// Four fifths of the memory that is free; 4 GiB where the system does not tell.
pub fn default_memory_limit() -> u64 {
    let free = std::fs::read_to_string("/proc/meminfo").ok();
    let free = free.as_deref().and_then(|text| kib(text, "MemAvailable:"));
    free.map_or(UNKNOWN, |free| free / 5 * 4)
}

/// The most memory that this process has taken so far, in bytes, where the system tells.
pub fn peak_memory() -> Option<u64> {
    kib(
        &std::fs::read_to_string("/proc/self/status").ok()?,
        "VmHWM:",
    )
}

fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(number << 10)
}

/// How much content an input has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    /// Bytes of it, about or at most.
    pub(super) bytes: u64,
    /// The input says so itself; else it is a guess.
    pub(super) is_said: bool,
}

impl Content {
    /// The content of `stored` bytes; `claim` is how much compressed bytes say they have, `None` for those
    /// that are not compressed. Of several members, a claim is only about the last: it may be too little.
    pub(super) fn of(stored: u64, claim: Option<u64>) -> Self {
        match claim {
            None => Self {
                bytes: stored,
                is_said: true,
            },
            Some(claim) if claim >= stored => Self {
                bytes: claim,
                is_said: true,
            },
            Some(_) => Self {
                bytes: stored.saturating_mul(UNPACKED),
                is_said: false,
            },
        }
    }

    /// About how much memory it takes to analyse it.
    pub(super) fn need(self) -> u64 {
        self.bytes.saturating_mul(PER_BYTE)
    }
}

/// Memory that is given out and taken back.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    given: Mutex<u64>,
    back: Condvar,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit: limit.saturating_sub(BASE),
            given: Mutex::new(0),
            back: Condvar::new(),
        }
    }

    /// What one input may take at most.
    pub(super) fn most(&self) -> u64 {
        self.limit
    }

    /// The largest content that may be analysed, with nothing beside it.
    pub(super) fn largest(&self) -> u64 {
        self.limit / PER_BYTE
    }

    /// Waits until `need` can be given, which is not more than [`most`](Self::most).
    pub(super) fn take(&self, need: u64) -> Given<'_> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while *given > 0 && given.saturating_add(need) > self.limit {
            let waited = self.back.wait(given);
            given = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *given = given.saturating_add(need);
        Given { budget: self, need }
    }

    /// Waits until `held` can grow to `need`, which is not more than [`most`](Self::most).
    pub(super) fn grow(&self, held: &mut Given<'_>, need: u64) {
        let more = need.saturating_sub(held.need);
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while *given > held.need && given.saturating_add(more) > self.limit {
            let waited = self.back.wait(given);
            given = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *given = given.saturating_add(more);
        held.need += more;
    }
}

/// Memory that was given; taken back when dropped.
#[derive(Debug)]
pub(super) struct Given<'a> {
    budget: &'a Budget,
    need: u64,
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        let given = self.budget.given.lock();
        let mut given = given.unwrap_or_else(PoisonError::into_inner);
        *given = given.saturating_sub(self.need);
        self.budget.back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_never_is_more_than_the_limit() {
        let budget = Budget::new(BASE + 100);
        let most = Mutex::new((0_u64, 0_u64));
        std::thread::scope(|scope| {
            for number in 0..8_u64 {
                let (budget, most) = (&budget, &most);
                scope.spawn(move || {
                    for round in 0..50 {
                        let need = (number * 13 + round * 7) % 60 + 1;
                        // Only one of them may hold something while it waits: that is the one who hands out.
                        let given = if number == 0 {
                            let mut given = budget.take(need / 2);
                            budget.grow(&mut given, need);
                            given
                        } else {
                            budget.take(need)
                        };
                        let mut now = most.lock().unwrap();
                        now.0 += need;
                        now.1 = now.1.max(now.0);
                        drop(now);
                        std::thread::yield_now();
                        most.lock().unwrap().0 -= need;
                        drop(given);
                    }
                });
            }
        });
        let most = most.into_inner().unwrap();
        assert!(most.0 == 0 && most.1 <= 100 && most.1 > 60, "{most:?}");
    }

    #[test]
    fn memory_is_read_from_what_the_system_tells() {
        assert_eq!(kib("A: 1 kB\nVmHWM:\t  2 kB\n", "VmHWM:"), Some(2048));
        assert_eq!(kib("A: 1 kB\n", "VmHWM:"), None);
    }

    #[test]
    fn content_is_what_compressed_bytes_say_or_a_guess() {
        let of = |claim| {
            let content = Content::of(100, claim);
            (content.bytes, content.is_said)
        };
        assert_eq!(of(None), (100, true));
        assert_eq!(of(Some(5_000)), (5_000, true));
        // The last member of several, or none that says.
        assert_eq!(of(Some(7)), (2_000, false));
        assert_eq!(Content::of(100, None).need(), 300);
    }
}
