//! Whether the digits of timestamps are what the profiler measured.
//!
//! Only timestamps that count from the epoch can be spoiled: those from a base time are small enough
//! for floats, and their writers have never dropped zeros.

use crate::health::{Health, HealthCode};
use crate::model::{EventFlags, EventId, Ph, Trace};

/// Nanoseconds from the epoch to the year 2001; what counts from a base time is smaller.
const EPOCH: i64 = 1_000_000_000_000_000_000;

/// The fractions, in nanoseconds, that a float can have at today's microseconds, exactly or in the
/// shortest digits that read the same.
const QUARTERS: [i64; 5] = [200, 250, 500, 750, 800];

/// So many fractions on quarters are no chance: one in 200 of all fractions is.
const ENOUGH_QUARTERS: u64 = 8;

/// So many fractions without a small one are no chance: one in ten of all fractions is below 100 ns.
const ENOUGH_LARGE: u64 = 300;

/// Counts timestamps that lost digits.
///
/// ```text
/// measured        …582.005   …582.050   …582.500   …582.512
/// without zeros   …582.5     …582.50    …582.500   …582.512     none below 100 ns
/// through floats  …582.0     …582.0     …582.5     …582.5       all on quarters
/// ```
pub(crate) fn check(trace: &Trace, health: &mut Health) {
    if trace.metadata.base_time_ns.is_some() {
        return;
    }
    let events = &trace.events;
    let mut fractional = 0_u64;
    let mut uneven = 0_u64;
    let (mut quarters, mut large) = (true, true);
    let mut first: Option<EventId> = None;
    for id in events.ids() {
        let flags = events.flags(id);
        let counts = events.ph(id) == Ph::COMPLETE && !flags.has(EventFlags::EXCLUDED);
        let Some(ts) = events.ts(id).filter(|_| counts) else {
            continue;
        };
        if ts.0 < EPOCH {
            return;
        }
        let fraction = ts.0 % 1000;
        if fraction == 0 {
            continue;
        }
        quarters &= QUARTERS.contains(&fraction);
        large &= fraction >= 100;
        if !quarters && !large {
            return;
        }
        fractional += 1;
        uneven += u64::from(fraction % 10 != 0);
        first.get_or_insert(id);
    }
    let code = if quarters && fractional >= ENOUGH_QUARTERS {
        HealthCode::RoundedTimestamps
    } else if large && fractional >= ENOUGH_LARGE && uneven * 2 >= fractional {
        // Clocks that tick in tens or hundreds of nanoseconds have no small fractions either.
        HealthCode::UnpaddedFractions
    } else {
        return;
    };
    // All of them are alike: a name would say nothing.
    if let Some(first) = first {
        health.count_many(code, fractional, events.offset(first), "");
    }
}
