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

/// Time by the set of what is active: bit `i` for kind `i`. Without time at which nothing is.
pub(super) fn combinations(work: impl Iterator<Item = (Span, u8)>) -> BTreeMap<u8, Ns> {
    let mut edges: Vec<(Ns, bool, u8)> = Vec::new();
    for (span, kind) in work.filter(|(span, _)| !span.is_empty()) {
        edges.push((span.start, true, kind));
        edges.push((span.end, false, kind));
    }
    edges.sort_unstable();
    let mut active = [0_u32; 8];
    let mut time: BTreeMap<u8, Ns> = BTreeMap::new();
    let mut now = Ns::ZERO;
    for (at, starts, kind) in edges {
        let set = (0..8)
            .filter(|bit| active[*bit] > 0)
            .fold(0, |set, bit| set | 1 << bit);
        if set != 0 && at > now {
            *time.entry(set).or_default() += at - now;
        }
        now = at;
        let count = &mut active[usize::from(kind & 7)];
        *count = if starts {
            count.saturating_add(1)
        } else {
            count.saturating_sub(1)
        };
    }
    time
}

/// The names of the kinds in `set`.
pub(super) fn named(set: u8, names: &[&str], between: &str) -> String {
    let inside = names
        .iter()
        .enumerate()
        .filter(|(bit, _)| set & 1 << bit != 0);
    inside
        .map(|(_, name)| *name)
        .collect::<Vec<_>>()
        .join(between)
}

const CLASSES: [&str; 4] = ["compute", "communication", "memcpy", "memset"];

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
        let spans = work.iter().map(|work| (work.span, place(work.class)));
        let time = combinations(spans);
        let busy = time.values().copied().sum();
        let mut of_device: Vec<Row> = time
            .into_iter()
            .map(|(set, time)| Row {
                device,
                classes: named(set, &CLASSES, " + "),
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

fn place(class: DeviceClass) -> u8 {
    match class {
        DeviceClass::Compute => 0,
        DeviceClass::Communication => 1,
        DeviceClass::Memcpy => 2,
        DeviceClass::Memset => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Ns(start), Ns(end))
    }

    #[test]
    fn every_busy_instant_is_in_one_combination() {
        // Kind 0 is active in 0..10 and 15..20, kind 1 in 5..17 (twice in 6..8), kind 2 never.
        let work = [
            (span(0, 10), 0),
            (span(5, 17), 1),
            (span(6, 8), 1),
            (span(15, 20), 0),
            (span(3, 3), 2),
            (span(30, 31), 0),
        ];
        let time = combinations(work.into_iter());
        let want = [(0b01, 5 + 3 + 1), (0b10, 5), (0b11, 5 + 2)];
        assert_eq!(
            time.into_iter().collect::<Vec<_>>(),
            want.map(|(set, time)| (set, Ns(time)))
        );
        assert_eq!(named(0b101, &["a", "b", "c"], " + "), "a + c");
    }
}
