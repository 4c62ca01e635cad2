//! Levels of memory over time, in so few points that a page can hold them.

use super::view::View;
use crate::error::Result;
use crate::units::Ns;

/// How much memory of one device was in use, over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelCurve {
    /// The device as PyTorch calls it, such as `cuda:0`, with the process where there are several.
    pub device: String,
    /// When the first change was; everything about the device is counted from then on.
    pub start: Ns,
    /// Time on the clock of the trace and bytes allocated from then on. Of a part of the time with many
    /// changes, only the highest level and the last are kept. Empty where the trace has no totals.
    pub allocated: Vec<(Ns, i64)>,
    /// The same of what is held from the driver; empty where the trace does not say.
    pub reserved: Vec<(Ns, i64)>,
}

impl LevelCurve {
    /// What a device is called here that tables have by name and process.
    pub fn device_of(device: &str, process: Option<&str>) -> String {
        match process {
            Some(process) => format!("{device} (process {process})"),
            None => device.to_owned(),
        }
    }

    /// Leaves at most about `most` points a level.
    pub(super) fn thin(&mut self, most: usize) {
        for points in [&mut self.allocated, &mut self.reserved] {
            *points = thinned(points, most);
        }
    }
}

/// The levels that the trace has totals for, of at most about `most` points each.
///
/// # Errors
/// As [`View::arguments`].
pub(super) fn level_curves(view: &View<'_>, most: usize) -> Result<Vec<LevelCurve>> {
    let mut curves = Vec::new();
    for pool in view.pools()? {
        let Some(first) = pool.changes.first() else {
            continue;
        };
        let points = |of: fn(&super::allocation::Change) -> Option<i64>| {
            let all = pool.changes.iter();
            let known = all.filter_map(|change| Some((change.at, of(change)?)));
            thinned(&known.collect::<Vec<_>>(), most)
        };
        curves.push(LevelCurve {
            device: LevelCurve::device_of(&pool.name(), pool.process.as_deref()),
            start: first.at,
            allocated: points(|change| change.allocated),
            reserved: points(|change| change.reserved),
        });
    }
    Ok(curves)
}

/// Of each of `most / 2` parts of the time, the highest level and the last one.
fn thinned(points: &[(Ns, i64)], most: usize) -> Vec<(Ns, i64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    if points.len() <= most {
        return points.to_vec();
    }
    let parts = i128::try_from((most / 2).max(1)).unwrap_or(1);
    let whole = i128::from((last.0 - first.0).0).max(1);
    let part = |at: Ns| (i128::from((at - first.0).0) * parts / whole).min(parts - 1);
    let mut kept = Vec::with_capacity(most);
    for together in points.chunk_by(|a, b| part(a.0) == part(b.0)) {
        let highest = together
            .iter()
            .enumerate()
            .max_by_key(|(place, point)| (point.1, std::cmp::Reverse(*place)));
        let end = together.len() - 1;
        if let Some((place, point)) = highest {
            kept.push(*point);
            if place != end {
                kept.push(together[end]);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_and_the_end_stay() {
        let points: Vec<(Ns, i64)> = (0..1_000)
            .map(|at| (Ns(at), if at == 617 { 99 } else { at % 7 }))
            .collect();
        let kept = thinned(&points, 20);
        assert!(kept.len() <= 20, "{}", kept.len());
        assert!(kept.contains(&(Ns(617), 99)));
        assert_eq!(kept.last(), points.last());
        assert!(kept.is_sorted_by_key(|point| point.0));
        assert_eq!(thinned(&points[..20], 20), points[..20]);
        assert_eq!(thinned(&[], 20), []);
    }
}
