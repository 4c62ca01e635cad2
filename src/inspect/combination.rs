//! Which classes of work run at once: every instant at which a device is busy, by all that is active.
//!
//! ```text
//! stream 7   ├─── gemm ───┤           ├ gemm ┤
//! stream 20        ├── all-reduce ──┤
//! copies                      ├copy┤
//! time       comp ┤comp+comm┤comm ┤cm┤c┤ comp ┤
//! ```
//! The rows of a device add up to the time that it is busy, exactly. Source: HTA's
//! `get_gpu_kernel_breakdown`, which puts the devices of a file together and knows three classes.

use std::collections::BTreeMap;

use super::frame::{Frame, Unit};
use super::view::View;
use crate::attribute::DeviceClass;
use crate::units::{Ns, Span};

/// Time by the set of what is active, bit `i` for kind `i`; without time at which nothing is. A piece of work
/// may be of several kinds.
pub(super) fn combinations(work: impl IntoIterator<Item = (Span, u32)>) -> BTreeMap<u32, Ns> {
    let work = work.into_iter().filter(|(span, _)| !span.is_empty());
    let mut moments: Vec<(Ns, bool, u32)> = work
        .flat_map(|(span, kinds)| [(span.start, true, kinds), (span.end, false, kinds)])
        .collect();
    moments.sort_unstable();
    let mut time: BTreeMap<u32, Ns> = BTreeMap::new();
    let mut open = [0_u32; 32];
    let mut active = 0_u32;
    let mut now = Ns::ZERO;
    for (at, starts, kinds) in moments {
        if active != 0 && at > now {
            *time.entry(active).or_default() += at - now;
        }
        now = at;
        for (bit, open) in open.iter_mut().enumerate() {
            if kinds & 1 << bit == 0 {
                continue;
            }
            // All that ends has started: nothing here is empty.
            *open = if starts { *open + 1 } else { *open - 1 };
            if *open > 0 {
                active |= 1 << bit;
            } else {
                active &= !(1 << bit);
            }
        }
    }
    time
}

/// The names of the kinds in `set`.
pub(super) fn named(set: u32, names: &[&str], between: &str) -> String {
    let inside = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| set & 1 << bit != 0);
    inside
        .map(|(_, name)| *name)
        .collect::<Vec<_>>()
        .join(between)
}

struct Row {
    device: i64,
    classes: String,
    time: Ns,
    busy: Ns,
}

/// Time of each device by what is active on it at once.
pub(super) fn classes(view: &View<'_>) -> Frame {
    let mut rows = Vec::new();
    for (device, work) in view.devices() {
        let time = combinations(work.iter().map(|work| (work.span, 1 << work.class as u32)));
        let busy = time.values().copied().sum();
        let mut of_device: Vec<Row> = time
            .into_iter()
            .map(|(set, time)| Row {
                device,
                classes: named(set, &DeviceClass::ALL.map(DeviceClass::as_str), " + "),
                time,
                busy,
            })
            .collect();
        of_device.sort_by(|a, b| (b.time, &a.classes).cmp(&(a.time, &b.classes)));
        rows.append(&mut of_device);
    }
    Frame::new(
        "kernel_classes",
        "Busy time of each device by what is active at once; adds up to the busy time.",
    )
    .id("device", &rows, |row| Some(row.device))
    .text("classes", &rows, |row| Some(row.classes.clone()))
    .ns("time_ns", &rows, |row| Some(row.time))
    .float("share", Unit::Ratio, &rows, |row| row.time.ratio(row.busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    #[test]
    fn every_busy_instant_is_in_one_combination() {
        // Kind 0 is active in 0..10 and 15..20, kind 1 in 5..17 (twice in 6..8), kind 2 never; both in 40..45.
        let work = [
            (span(0, 10), 0b01),
            (span(5, 17), 0b10),
            (span(6, 8), 0b10),
            (span(15, 20), 0b01),
            (span(3, 3), 0b100),
            (span(30, 31), 0b01),
            (span(40, 45), 0b11),
        ];
        let time = combinations(work);
        let want = [(0b01, 5 + 3 + 1), (0b10, 5), (0b11, 5 + 2 + 5)];
        assert_eq!(
            time.into_iter().collect::<Vec<_>>(),
            want.map(|(set, time)| (set, Ns(time)))
        );
        assert_eq!(named(0b101, &["a", "b", "c"], " + "), "a + c");
    }
}
