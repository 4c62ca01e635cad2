//! What each piece of device work means to the time line of its device.
//!
//! ```text
//! compute        ├─ gemm ─┤                    ├ gemm ┤
//! communication      ├─ all-reduce ─────┤
//! copy                             ├ copy ───┤
//! held           ├─ gemm ─┼ all-reduce ─┼copy┤ ├ gemm ┤
//! idle before                                 ├┤
//! ```
//! Each instant of the busy time is held by one piece: by class in the order compute, communication,
//! copy, fill; within a class by the one that started first. So what a class holds is the part of it
//! that nothing more useful hides, and all that is held adds up to the busy time.

use crate::attribute::{DeviceClass, Work, overlap, union};
use crate::units::{Ns, Span};

/// What one piece of work means to the time line of its device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Time that it holds.
    pub(super) held: Ns,
    /// When the device became idle before it; `None` where it did not, or nothing ran before.
    pub(super) idle_from: Option<Ns>,
}

/// One entry a piece of `work`, which must be in order of device and start.
pub(super) fn places(work: &[Work]) -> Vec<Place> {
    let mut places = vec![Place::default(); work.len()];
    let mut from = 0;
    for device in work.chunk_by(|one, other| one.device == other.device) {
        let places = &mut places[from..from + device.len()];
        from += device.len();
        hold(device, places);
        let mut busy_until: Option<Ns> = None;
        for (work, place) in device.iter().zip(places) {
            place.idle_from = busy_until.filter(|until| *until < work.span.start);
            busy_until = busy_until.max(Some(work.span.end));
        }
    }
    places
}

fn hold(device: &[Work], places: &mut [Place]) {
    let mut taken: Vec<Span> = Vec::new();
    for class in [
        DeviceClass::Compute,
        DeviceClass::Communication,
        DeviceClass::Memcpy,
        DeviceClass::Memset,
    ] {
        let mut until = Ns(i64::MIN);
        let mut next = 0;
        for (work, place) in device.iter().zip(places.iter_mut()) {
            if work.class != class || work.span.end <= until {
                continue;
            }
            let own = Span::new(work.span.start.max(until), work.span.end);
            until = own.end;
            while taken.get(next).is_some_and(|span| span.end <= own.start) {
                next += 1;
            }
            let others = taken[next..].iter().take_while(|span| span.start < own.end);
            let hidden: Ns = others.map(|span| overlap(*span, own)).sum();
            place.held = own.len() - hidden;
        }
        let of_class = device.iter().filter(|work| work.class == class);
        taken = union(taken.into_iter().chain(of_class.map(|work| work.span)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Bucket, Phase};
    use crate::model::EventId;

    #[test]
    fn each_instant_is_held_once_by_the_most_useful() {
        use DeviceClass::{Communication, Compute, Memcpy};
        let work = [
            (0, 10, Compute),
            (5, 25, Communication),
            (8, 12, Communication),
            (20, 30, Memcpy),
            (40, 50, Compute),
            (50, 50, Memcpy),
        ];
        let work = work.map(|(start, end, class)| {
            let span = Span::new(Ns(start), Ns(end));
            Work::for_test(EventId(0), span, class, Bucket::Phase(Phase::Other))
        });
        let found: Vec<(i64, Option<i64>)> = places(&work)
            .iter()
            .map(|place| (place.held.0, place.idle_from.map(|from| from.0)))
            .collect();
        let expected = [
            (10, None),
            (15, None),
            (0, None),
            (5, None),
            (10, Some(30)),
            (0, None),
        ];
        assert_eq!(found, expected);
    }
}
