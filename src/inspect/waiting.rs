//! Who waits for whom in collectives.
//!
//! ```text
//! rank 0   ├────────── waits ─────────┼─ transfer ─┤
//! rank 1                 ├── waits ───┼─ transfer ─┤
//! rank 2                              ├─ transfer ─┤     came last, held the others up
//! ```
//! The transfer is the shortest duration over the ranks, as in the distributed view of PyTorch's TensorBoard
//! plugin; what a rank's call is longer is waiting. That needs no clocks. The rank with the shortest call
//! came last; how much longer the next one is, is how long it *held up* all others by itself. When each rank
//! arrived is told by clocks only, so the skew of arrivals uses their estimated offsets.

use std::collections::BTreeMap;

use super::clock::{Clock, narrow};
use super::collective::Call;
use super::frame::{Frame, Unit};
use super::matching::{Matched, Member};
use super::operation::bus_factor;
use crate::units::Ns;

/// What is known about the files of one run and window.
pub(super) struct Together<'a> {
    pub(super) run: &'a str,
    pub(super) window: Option<usize>,
    pub(super) members: Vec<Member<'a>>,
    pub(super) matched: Vec<Matched<'a>>,
    /// By member.
    pub(super) clocks: Vec<Option<Clock>>,
}

/// One collective, or the sum of many.
#[derive(Debug, Clone, Default)]
pub(super) struct Collective<'a> {
    pub(super) run: Option<&'a str>,
    pub(super) window: Option<usize>,
    pub(super) operation: Option<String>,
    pub(super) group: Option<&'a str>,
    pub(super) description: Option<&'a str>,
    pub(super) members: Option<&'a str>,
    pub(super) group_size: Option<u64>,
    pub(super) how: Option<&'static str>,
    pub(super) number: Option<i64>,
    pub(super) collectives: u64,
    pub(super) ranks: Option<u64>,
    pub(super) bytes: Option<i64>,
    pub(super) transfer: Ns,
    pub(super) waiting: Ns,
    /// Sum of the durations of all calls.
    pub(super) sum: Ns,
    pub(super) longest_wait: Ns,
    pub(super) skew: Option<Ns>,
    pub(super) last: Option<i64>,
    pub(super) bus_gbps: Option<f64>,
    /// Number of its run and window, and its place among the matched ones there.
    place: (usize, usize),
}

impl<'a> Together<'a> {
    /// One entry a matched collective; `number` is that of this run and window.
    pub(super) fn collectives(&self, number: usize) -> impl Iterator<Item = Collective<'a>> {
        let matched = self.matched.iter().enumerate();
        matched.map(move |(place, matched)| self.collective((number, place), matched))
    }

    fn collective(&self, place: (usize, usize), matched: &Matched<'a>) -> Collective<'a> {
        let kind = matched.kind;
        let transfer = matched.shortest();
        let durations = || matched.calls.iter().map(|(_, call)| call.span.len());
        let waits = || durations().map(|own| own - transfer);
        let bytes = kind.bytes();
        let bus = || {
            let factor = bus_factor(kind.operation.as_deref()?, kind.size)?;
            Some(bytes? as f64 * factor / transfer.0 as f64)
        };
        let mut ranks: Vec<usize> = matched.calls.iter().map(|(file, _)| *file).collect();
        ranks.dedup();
        Collective {
            run: Some(self.run),
            window: self.window,
            operation: kind.operation.clone().or_else(|| kind.kernel.clone()),
            group: kind.group.as_deref(),
            description: kind.description.as_deref(),
            members: kind.members.as_deref(),
            group_size: kind.size,
            how: Some(matched.how.as_str()),
            number: Some(matched.number),
            collectives: 1,
            ranks: Some(ranks.len() as u64),
            bytes,
            transfer,
            waiting: waits().sum(),
            sum: durations().sum(),
            longest_wait: waits().max().unwrap_or_default(),
            skew: self.skew(matched),
            last: matched.last().and_then(|(file, _)| self.members[file].rank),
            bus_gbps: bus().filter(|_| transfer > Ns::ZERO),
            place,
        }
    }

    /// When each call started, where all clocks are comparable.
    fn arrivals(&self, matched: &Matched<'_>) -> Option<Vec<i128>> {
        let clock = |file: usize| self.clocks[file];
        let component = clock(matched.calls[0].0)?.component;
        let arrival = |(file, call): &(usize, &Call)| {
            let clock = clock(*file).filter(|clock| clock.component == component)?;
            Some(self.members[*file].start(call) - i128::from(clock.offset.0))
        };
        matched.calls.iter().map(arrival).collect()
    }

    fn skew(&self, matched: &Matched<'_>) -> Option<Ns> {
        let arrivals = self.arrivals(matched)?;
        Some(narrow(arrivals.iter().max()? - arrivals.iter().min()?))
    }
}

/// Adds collectives up that are the same operation of the same group.
pub(super) fn operations<'a>(all: &[Collective<'a>]) -> Vec<Collective<'a>> {
    let mut sums: BTreeMap<_, Collective<'a>> = BTreeMap::new();
    for one in all {
        let key = (
            one.run,
            one.window,
            one.operation.clone(),
            (one.group, one.members, one.description),
        );
        let known = sums.entry(key);
        let known = known.or_insert_with(|| Collective {
            run: one.run,
            window: one.window,
            operation: one.operation.clone(),
            group: one.group,
            description: one.description,
            members: one.members,
            group_size: one.group_size,
            how: one.how,
            bytes: Some(0),
            ..Collective::default()
        });
        known.add(one);
    }
    let mut rows: Vec<Collective<'a>> = sums.into_values().collect();
    rows.sort_by_key(|row| (row.run, row.window, std::cmp::Reverse(row.waiting)));
    rows
}

impl Collective<'_> {
    fn add(&mut self, other: &Self) {
        self.collectives += other.collectives;
        self.bytes = self
            .bytes
            .zip(other.bytes)
            .and_then(|(a, b)| a.checked_add(b));
        self.transfer += other.transfer;
        self.waiting += other.waiting;
        self.sum += other.sum;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        if self.how != other.how {
            self.how = None;
        }
    }
}

/// The `top` collectives with the most waiting, the rest in one row.
pub(super) fn most_waiting(mut all: Vec<Collective<'_>>, top: usize) -> Vec<Collective<'_>> {
    all.sort_by_key(|row| std::cmp::Reverse(row.waiting));
    if top > 0 && all.len() > top {
        let same = |row: &Collective<'_>| (row.run, row.window) == (all[0].run, all[0].window);
        let (run, window) = (all[0].run, all[0].window);
        let of_one = all.iter().all(same);
        let mut others = Collective {
            operation: Some("(others)".to_owned()),
            run: run.filter(|_| of_one),
            window: window.filter(|_| of_one),
            ..Collective::default()
        };
        for row in all.drain(top..) {
            others.add(&row);
        }
        others.how = None;
        others.bytes = None;
        all.push(others);
    }
    all
}

fn id(number: Option<usize>) -> Option<i64> {
    number.map(|number| i64::try_from(number).unwrap_or(i64::MAX))
}

fn described(frame: Frame, rows: &[Collective<'_>]) -> Frame {
    frame
        .text("operation", rows, |row| row.operation.clone())
        .text("run", rows, |row| row.run.map(str::to_owned))
        .id("window", rows, |row| id(row.window))
        .text("group", rows, |row| row.group.map(str::to_owned))
        .text("description", rows, |row| {
            row.description.map(str::to_owned)
        })
        .text("members", rows, |row| row.members.map(str::to_owned))
        .count("group_size", rows, |row| row.group_size)
        .text("matched_by", rows, |row| row.how)
}

pub(super) fn operations_frame(rows: &[Collective<'_>]) -> Frame {
    let frame = Frame::new(
        "matched_operations",
        "Collectives that are known on several ranks, by operation and process group.",
    );
    described(frame, rows)
        .count("collectives", rows, |row| Some(row.collectives))
        .ns("sum_ns", rows, |row| Some(row.sum))
        .ns("waiting_ns", rows, |row| Some(row.waiting))
        .float("waiting_share", Unit::Ratio, rows, |row| {
            row.waiting.ratio(row.sum)
        })
        .ns("longest_wait_ns", rows, |row| Some(row.longest_wait))
        .ns("transfer_ns", rows, |row| Some(row.transfer))
        .bytes("moved_bytes", rows, |row| row.bytes)
        .float("bus_gbps", Unit::GbPerS, rows, |row| {
            let factor = bus_factor(row.operation.as_deref()?, row.group_size)?;
            Some(row.bytes? as f64 * factor / row.transfer.0 as f64)
        })
}

pub(super) fn collectives_frame(rows: &[Collective<'_>]) -> Frame {
    let frame = Frame::new(
        "matched_collectives",
        "Collectives that are known on several ranks, those with the most waiting first.",
    );
    let missing = |row: &Collective<'_>| row.group_size?.checked_sub(row.ranks?);
    described(frame, rows)
        .id("number", rows, |row| row.number)
        .count("collectives", rows, |row| Some(row.collectives))
        .count("ranks", rows, |row| row.ranks)
        .count("missing", rows, missing)
        .bytes("message_bytes", rows, |row| row.bytes)
        .ns("sum_ns", rows, |row| Some(row.sum))
        .ns("waiting_ns", rows, |row| Some(row.waiting))
        .ns("longest_wait_ns", rows, |row| Some(row.longest_wait))
        .ns("transfer_ns", rows, |row| Some(row.transfer))
        .float("bus_gbps", Unit::GbPerS, rows, |row| row.bus_gbps)
        .ns("arrival_skew_ns", rows, |row| row.skew)
        .id("last_rank", rows, |row| row.last)
}

/// One call of one of the collectives with the most waiting.
struct Wait<'a> {
    run: &'a str,
    window: Option<usize>,
    operation: Option<String>,
    group: Option<&'a str>,
    number: i64,
    rank: Option<i64>,
    device: Option<i64>,
    duration: Ns,
    waiting: Ns,
    /// After the first to arrive.
    arrival: Option<Ns>,
}

/// The calls of `rows`, which are collectives of `all`.
pub(super) fn waits_frame(all: &[Together<'_>], rows: &[Collective<'_>]) -> Frame {
    let mut waits = Vec::new();
    for row in rows.iter().filter(|row| row.number.is_some()) {
        let (number, place) = row.place;
        let together = &all[number];
        let matched = &together.matched[place];
        let arrivals = together.arrivals(matched);
        let first = arrivals.iter().flatten().min().copied();
        for (place, (file, call)) in matched.calls.iter().enumerate() {
            let arrival = arrivals.as_ref().map(|arrivals| arrivals[place]);
            waits.push(Wait {
                run: together.run,
                window: together.window,
                operation: row.operation.clone(),
                group: row.group,
                number: matched.number,
                rank: together.members[*file].rank,
                device: call.device,
                duration: call.span.len(),
                waiting: call.span.len() - row.transfer,
                arrival: arrival.zip(first).map(|(own, first)| narrow(own - first)),
            });
        }
    }
    Frame::new(
        "waits",
        "The calls of the collectives with the most waiting, rank by rank.",
    )
    .text("operation", &waits, |row| row.operation.clone())
    .text("run", &waits, |row| Some(row.run.to_owned()))
    .id("window", &waits, |row| id(row.window))
    .text("group", &waits, |row| row.group.map(str::to_owned))
    .id("number", &waits, |row| Some(row.number))
    .id("rank", &waits, |row| row.rank)
    .id("device", &waits, |row| row.device)
    .ns("duration_ns", &waits, |row| Some(row.duration))
    .ns("waiting_ns", &waits, |row| Some(row.waiting))
    .ns("arrival_ns", &waits, |row| row.arrival)
}

/// How one rank fares in the collectives that it shares.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Standing {
    /// All its calls, matched or not.
    pub(super) calls: u64,
    pub(super) collectives: u64,
    pub(super) sum: Ns,
    pub(super) waiting: Ns,
    /// What the ranks of its collectives wait on average.
    expected: f64,
    pub(super) times_last: u64,
    pub(super) held_up: Ns,
    /// 1 for the rank that waits least.
    pub(super) place: Option<u64>,
}

impl Standing {
    /// Own waiting over the average of the ranks of the same collectives: 1 as all, 0 never.
    pub(super) fn relative(&self) -> Option<f64> {
        (self.expected > 0.0).then(|| self.waiting.0 as f64 / self.expected)
    }
}

/// One entry a member.
pub(super) fn standings(together: &Together<'_>) -> Vec<Standing> {
    let members = together.members.iter();
    let mut standings: Vec<Standing> = members
        .map(|member| Standing {
            calls: member.found.calls.len() as u64,
            ..Standing::default()
        })
        .collect();
    for matched in &together.matched {
        let transfer = matched.shortest();
        let durations = matched.calls.iter().map(|(_, call)| call.span.len());
        let all: Ns = durations.map(|own| own - transfer).sum();
        let mean = all.0 as f64 / matched.calls.len() as f64;
        for (file, call) in &matched.calls {
            let standing = &mut standings[*file];
            standing.collectives += 1;
            standing.sum += call.span.len();
            standing.waiting += call.span.len() - transfer;
            standing.expected += mean;
        }
        if let Some((file, lead)) = matched.last() {
            standings[file].times_last += 1;
            standings[file].held_up += lead;
        }
    }
    let mut order: Vec<usize> = (0..standings.len())
        .filter(|file| standings[*file].relative().is_some())
        .collect();
    let share = |file: usize| standings[file].relative().unwrap_or(0.0);
    order.sort_by(|a, b| share(*a).total_cmp(&share(*b)));
    let places: Vec<(usize, u64)> = order.into_iter().zip(1..).collect();
    for (file, place) in places {
        standings[file].place = Some(place);
    }
    standings
}
