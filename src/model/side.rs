//! Tables of numbers that nearly always fit into fewer bits than they might need.

use std::fmt::Debug;

use super::{DeviceArgs, LaunchArgs, OpArgs, StrId};

/// A row in the fewest bits that real files need.
pub(crate) trait Narrow: Copy + Debug {
    /// The row as it is used.
    type Row: Copy + Debug;

    /// Stands where a row does not fit.
    const WIDE: Self;

    /// `None` for a row that does not fit.
    fn narrow(row: &Self::Row) -> Option<Self>;

    /// `None` for [`WIDE`](Self::WIDE).
    fn widen(self) -> Option<Self::Row>;
}

/// Rows, most of which fit into the space of `N`.
#[derive(Debug, Clone)]
pub(crate) struct SideTable<N: Narrow> {
    rows: Vec<N>,
    /// The rows that do not fit with their numbers, in order.
    wide: Vec<(u32, N::Row)>,
}

impl<N: Narrow> Default for SideTable<N> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            wide: Vec::new(),
        }
    }
}

impl<N: Narrow> SideTable<N> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Makes space for more, if there is as much.
    pub(crate) fn reserve(&mut self, additional: usize) {
        self.rows.try_reserve(additional).ok();
    }

    /// Adds `row` and gives its number. A table too long for its numbers is refused when the parts
    /// of a file are joined.
    #[inline]
    pub(crate) fn push(&mut self, row: N::Row) -> u32 {
        let number = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push(N::narrow(&row).unwrap_or_else(|| {
            self.wide.push((number, row));
            N::WIDE
        }));
        number
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<N::Row> {
        self.rows.get(number)?.widen().or_else(|| {
            let place = self
                .wide
                .binary_search_by_key(&number, |(number, _)| *number as usize);
            place.ok().map(|place| self.wide[place].1)
        })
    }

    /// Every row in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = N::Row> {
        let mut wide = self.wide.iter();
        self.rows
            .iter()
            .filter_map(move |row| row.widen().or_else(|| wide.next().map(|(_, row)| *row)))
    }

    /// Replaces rows, each given once with its number.
    pub(crate) fn replace(&mut self, mut rows: Vec<(u32, N::Row)>) {
        rows.sort_unstable_by_key(|(number, _)| *number);
        self.wide
            .retain(|(number, _)| rows.binary_search_by_key(number, |row| row.0).is_err());
        for (number, row) in rows {
            self.rows[number as usize] = N::narrow(&row).unwrap_or_else(|| {
                self.wide.push((number, row));
                N::WIDE
            });
        }
        self.wide.sort_unstable_by_key(|(number, _)| *number);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
        self.wide.retain(|(number, _)| (*number as usize) < len);
    }

    /// Moves over the rows that follow; `later` keeps its space.
    pub(crate) fn append(&mut self, later: &mut Self) {
        let before = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let wide = later.wide.drain(..);
        self.wide
            .extend(wide.map(|(number, row)| (before.saturating_add(number), row)));
        self.rows.append(&mut later.rows);
    }
}

impl SideTable<NarrowOp> {
    /// Every `Input Dims`.
    pub(crate) fn dims_mut(&mut self) -> impl Iterator<Item = &mut StrId> {
        let wide = self.wide.iter_mut().map(|(_, row)| &mut row.dims);
        self.rows.iter_mut().map(|row| &mut row.dims).chain(wide)
    }
}

/// 32 bits of an id, all of them set where it does not fit.
fn id(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|id| *id != u32::MAX)
}

/// A length in nanoseconds, up to 4.2 s.
impl Narrow for u32 {
    type Row = i64;
    const WIDE: Self = Self::MAX;

    #[inline]
    fn narrow(row: &i64) -> Option<Self> {
        Self::try_from(*row).ok().filter(|row| *row != Self::WIDE)
    }

    #[inline]
    fn widen(self) -> Option<i64> {
        (self != Self::WIDE).then_some(self.into())
    }
}

/// [`OpArgs`] in 20 of 32 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NarrowOp {
    external: u32,
    sequence: i32,
    fwd_thread: i32,
    index: u32,
    dims: StrId,
}

impl Narrow for NarrowOp {
    type Row = OpArgs;
    const WIDE: Self = Self {
        external: u32::MAX,
        sequence: 0,
        fwd_thread: 0,
        index: 0,
        dims: StrId::EMPTY,
    };

    #[inline]
    fn narrow(row: &OpArgs) -> Option<Self> {
        Some(Self {
            external: id(row.external)?,
            sequence: i32::try_from(row.sequence).ok()?,
            fwd_thread: row.fwd_thread,
            index: row.index,
            dims: row.dims,
        })
    }

    #[inline]
    fn widen(self) -> Option<OpArgs> {
        (self.external != u32::MAX).then_some(OpArgs {
            external: self.external.into(),
            sequence: self.sequence.into(),
            fwd_thread: self.fwd_thread,
            index: self.index,
            dims: self.dims,
        })
    }
}

/// [`LaunchArgs`] in half the space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NarrowLaunch {
    correlation: u32,
    external: u32,
}

impl Narrow for NarrowLaunch {
    type Row = LaunchArgs;
    const WIDE: Self = Self {
        correlation: u32::MAX,
        external: 0,
    };

    #[inline]
    fn narrow(row: &LaunchArgs) -> Option<Self> {
        Some(Self {
            correlation: id(row.correlation)?,
            external: id(row.external)?,
        })
    }

    #[inline]
    fn widen(self) -> Option<LaunchArgs> {
        (self.correlation != u32::MAX).then_some(LaunchArgs {
            correlation: self.correlation.into(),
            external: self.external.into(),
        })
    }
}

/// [`DeviceArgs`] in a third of the space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NarrowDevice {
    correlation: u32,
    external: u32,
    /// [`i32::MIN`] when absent; so is `stream`.
    device: i32,
    stream: i32,
}

impl Narrow for NarrowDevice {
    type Row = DeviceArgs;
    const WIDE: Self = Self {
        correlation: u32::MAX,
        external: 0,
        device: 0,
        stream: 0,
    };

    #[inline]
    fn narrow(row: &DeviceArgs) -> Option<Self> {
        let number = |value: Option<i64>| match value {
            None => Some(i32::MIN),
            Some(value) => i32::try_from(value).ok().filter(|it| *it != i32::MIN),
        };
        Some(Self {
            correlation: id(row.correlation)?,
            external: id(row.external)?,
            device: number(row.device)?,
            stream: number(row.stream)?,
        })
    }

    #[inline]
    fn widen(self) -> Option<DeviceArgs> {
        let number = |value: i32| (value != i32::MIN).then_some(value.into());
        (self.correlation != u32::MAX).then_some(DeviceArgs {
            correlation: self.correlation.into(),
            external: self.external.into(),
            device: number(self.device),
            stream: number(self.stream),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_whatever_their_size() {
        let rows = [
            (1, 2, Some(0), Some(7)),
            (u64::from(u32::MAX), 2, None, Some(7)),
            (1, u64::MAX, Some(-1), None),
            (u64::from(u32::MAX) - 1, 0, None, None),
            (1, 2, Some(i64::from(i32::MIN)), Some(i64::MAX)),
            (
                5,
                6,
                Some(i64::from(i32::MIN) + 1),
                Some(i64::from(i32::MAX)),
            ),
        ]
        .map(|(correlation, external, device, stream)| DeviceArgs {
            correlation,
            external,
            device,
            stream,
        });
        let mut table = SideTable::<NarrowDevice>::default();
        for part in rows.chunks(2) {
            let mut later = SideTable::default();
            for (number, row) in (0..).zip(part) {
                assert_eq!(later.push(*row), number);
            }
            table.append(&mut later);
        }
        assert!(table.iter().eq(rows));
        let got: Vec<_> = (0..table.len()).filter_map(|row| table.get(row)).collect();
        assert_eq!(got, rows);
        assert_eq!(table.get(rows.len()), None);
        assert_eq!(table.wide.len(), 3);
        table.truncate(2);
        assert_eq!((table.len(), table.wide.len()), (2, 1));
    }

    #[test]
    fn operators_and_launches_come_back_too() {
        let ops =
            [(3, -1), (u64::MAX, 5), (4, i64::MAX), (5, i64::MIN)].map(|(external, sequence)| {
                OpArgs {
                    external,
                    sequence,
                    fwd_thread: i32::MIN,
                    index: u32::MAX,
                    dims: StrId(3),
                }
            });
        let mut table = SideTable::<NarrowOp>::default();
        for op in ops {
            table.push(op);
        }
        assert!(table.iter().eq(ops));
        table.dims_mut().for_each(|dims| *dims = StrId(9));
        assert!(table.iter().all(|op| op.dims == StrId(9)));

        let launches =
            [(0, 0), (u64::from(u32::MAX), 1), (1, 1 << 32)].map(|(correlation, external)| {
                LaunchArgs {
                    correlation,
                    external,
                }
            });
        let mut table = SideTable::<NarrowLaunch>::default();
        for launch in launches {
            table.push(launch);
        }
        assert!(table.iter().eq(launches));
    }

    #[test]
    fn replaced_rows_may_fit_or_not() {
        let long = 1 << 40;
        let mut table = SideTable::<u32>::default();
        for row in [1, long, 3, -1, long] {
            table.push(row);
        }
        table.replace(vec![(3, 0), (0, long + 1), (1, 2), (2, -5)]);
        let rows: Vec<i64> = table.iter().collect();
        assert_eq!(rows, [long + 1, 2, -5, 0, long]);
        assert_eq!(table.wide.len(), 3);
    }
}
