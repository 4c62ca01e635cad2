//! What a device did over time, in so few pieces that a page can hold them.
//!
//! ```text
//! holds    ├compute┤├ comm ┤├compu┤   ├comm┤           few stretches: one bin each
//! bins     ├ compute 9, comm 8 ┤├ compute 6, comm 6 ┤  many: all in one part of the window together
//! ```
//! Nothing is left out: the times of the bins add up to the timeline of the device, by class and by bucket.

use super::gap::Gaps;
use super::options::InspectOptions;
use super::view::View;
use crate::attribute::{Activity, Bucket, DeviceClass, DeviceWindows, Dissection, Stretch, Work};
use crate::units::{Ns, Span};

/// What one device did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLine {
    /// Index of the device.
    pub device: i64,
    /// From its first to its last work (or the selected steps), on the clock of the trace.
    pub window: Span,
    /// In order of time, without overlap; the device idled in between.
    pub bins: Vec<Bin>,
    /// True when bins hold several stretches of work each.
    pub merged: bool,
    /// Names and windows of its steps.
    pub steps: Vec<(String, Span)>,
}

/// A part of a [`DeviceLine`]. Its times are those in which a class or a bucket holds the device, so that they
/// add up to the busy time of the part, each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// On the clock of the trace.
    pub span: Span,
    /// Time by class, in the order of [`DeviceClass::ALL`].
    pub classes: [Ns; 4],
    /// Time by bucket, in the order of [`Bucket::ALL`].
    pub buckets: [Ns; 7],
}

impl Bin {
    fn new(span: Span) -> Self {
        Self {
            span,
            classes: [Ns::ZERO; 4],
            buckets: [Ns::ZERO; 7],
        }
    }

    fn merge(&mut self, later: &Self) {
        self.span.end = self.span.end.max(later.span.end);
        for (ours, theirs) in self.classes.iter_mut().zip(later.classes) {
            *ours += theirs;
        }
        for (ours, theirs) in self.buckets.iter_mut().zip(later.buckets) {
            *ours += theirs;
        }
    }

    fn add(&mut self, class: DeviceClass, bucket: Bucket, time: Ns) {
        self.classes[class as usize] += time;
        self.buckets[bucket.index()] += time;
    }
}

/// The lines of all devices of `view`, of at most `most` bins each.
pub(super) fn device_lines(view: &View<'_>, most: usize) -> Vec<DeviceLine> {
    let windows = view.dissection.device_windows();
    windows.iter().map(|it| line(view, it, most)).collect()
}

/// By device: when it idles between its first and its last work, and why.
pub(crate) fn idle_gaps(dissection: &Dissection<'_>) -> Vec<(i64, Vec<(Span, &'static str)>)> {
    let options = InspectOptions::default();
    let view = View::new(dissection, &[], &options);
    let windows = dissection.device_windows();
    windows
        .iter()
        .map(|windows| {
            let work: Vec<&Work> = windows.work.iter().collect();
            let gaps = Gaps::new(&view, &work, None);
            let gaps = gaps.within(windows.whole, false);
            let told = gaps.map(|gap| (gap.span, gap.cause.as_str()));
            (windows.device, told.collect())
        })
        .collect()
}

fn line(view: &View<'_>, windows: &DeviceWindows<'_>, most: usize) -> DeviceLine {
    let activity = Activity::new(windows.work);
    let inside: Vec<Stretch> = activity
        .stretches()
        .iter()
        .filter_map(|stretch| {
            let start = stretch.span.start.max(windows.whole.start);
            let end = stretch.span.end.min(windows.whole.end);
            let span = Span::new(start, end);
            (!span.is_empty()).then_some(Stretch { span, ..*stretch })
        })
        .collect();
    let merged = inside.len() > most;
    let steps = windows.steps.iter().filter_map(|(step, span)| {
        let name = view.step_name(*step)?;
        Some((name.to_owned(), *span))
    });
    DeviceLine {
        device: windows.device,
        window: windows.whole,
        bins: if merged {
            bins(&inside, windows.whole, most)
        } else {
            inside.iter().map(alone).collect()
        },
        merged,
        steps: steps.collect(),
    }
}

impl DeviceLine {
    /// Puts bins together until there are at most `most`.
    pub(super) fn thin(&mut self, most: usize) {
        if self.bins.len() <= most {
            return;
        }
        let whole = i128::from(self.window.len().0);
        let parts = i128::try_from(most.max(1)).unwrap_or(1);
        let border = |number: i128| {
            let ahead = whole * number / parts;
            self.window.start + Ns(i64::try_from(ahead).unwrap_or(i64::MAX))
        };
        let mut thinned: Vec<Bin> = Vec::with_capacity(most);
        for bin in &self.bins {
            // The part with the middle of the bin takes it whole, so that no time is shared out.
            let middle = i128::from((bin.span.start - self.window.start).0)
                + i128::from(bin.span.len().0) / 2;
            let number = (middle * parts / whole.max(1)).clamp(0, parts - 1);
            let part = Span::new(border(number), border(number + 1));
            match thinned.last_mut() {
                Some(last) if part.start < last.span.end => last.merge(bin),
                _ => {
                    let start = thinned.last().map_or(bin.span.start, |last| {
                        part.start.min(bin.span.start).max(last.span.end)
                    });
                    let mut first = *bin;
                    first.span = Span::new(start, part.end.max(bin.span.end));
                    thinned.push(first);
                }
            }
        }
        self.bins = thinned;
        self.merged = true;
    }
}

fn alone(stretch: &Stretch) -> Bin {
    let mut bin = Bin::new(stretch.span);
    bin.add(stretch.class, stretch.bucket, stretch.span.len());
    bin
}

/// `stretches` cut at `most` equal parts of `window`; parts without work have no bin.
fn bins(stretches: &[Stretch], window: Span, most: usize) -> Vec<Bin> {
    let whole = i128::from(window.len().0);
    let most = i128::try_from(most.max(1)).unwrap_or(1);
    // Borders are whole nanoseconds; the last one is the end of the window.
    let border = |number: i128| {
        let ahead = whole * number / most;
        window.start + Ns(i64::try_from(ahead).unwrap_or(i64::MAX))
    };
    let mut bins: Vec<Bin> = Vec::new();
    for stretch in stretches {
        let mut start = stretch.span.start;
        let ahead = i128::from((start - window.start).0);
        let mut number = (ahead * most / whole.max(1)).clamp(0, most - 1);
        while start < stretch.span.end {
            // A border before a start that was rounded down belongs to the part before.
            while number + 1 < most && border(number + 1) <= start {
                number += 1;
            }
            let span = Span::new(border(number), border(number + 1));
            let end = stretch.span.end.min(span.end);
            match bins.last_mut() {
                Some(last) if last.span == span => {
                    last.add(stretch.class, stretch.bucket, end - start);
                }
                _ => {
                    let mut bin = Bin::new(span);
                    bin.add(stretch.class, stretch.bucket, end - start);
                    bins.push(bin);
                }
            }
            start = end;
            number += 1;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Phase;

    #[test]
    fn bins_hold_all_time_and_do_not_overlap() {
        let stretch = |start, end, class, phase| Stretch {
            span: Span::new(Ns(start), Ns(end)),
            class,
            bucket: Bucket::Phase(phase),
        };
        let stretches = [
            stretch(100, 109, DeviceClass::Compute, Phase::Forward),
            stretch(109, 117, DeviceClass::Communication, Phase::Backward),
            stretch(118, 119, DeviceClass::Compute, Phase::Backward),
            stretch(131, 200, DeviceClass::Memcpy, Phase::Other),
        ];
        let window = Span::new(Ns(100), Ns(200));
        for most in 1..=101 {
            let bins = bins(&stretches, window, most);
            assert!(bins.len() <= most && bins.is_sorted_by(|a, b| a.span.end <= b.span.start));
            let of_class = |class: usize| bins.iter().map(|bin| bin.classes[class].0).sum::<i64>();
            assert_eq!([0, 1, 2, 3].map(of_class), [10, 8, 69, 0], "{most}");
            let of_bucket =
                |bucket: usize| bins.iter().map(|bin| bin.buckets[bucket].0).sum::<i64>();
            assert_eq!([0, 1, 4].map(of_bucket), [9, 9, 69], "{most}");
            for bin in &bins {
                let busy: Ns = bin.classes.iter().copied().sum();
                assert!(busy <= bin.span.len() && busy > Ns::ZERO, "{bin:?}");
                assert_eq!(busy, bin.buckets.iter().copied().sum());
            }
        }
    }
}
