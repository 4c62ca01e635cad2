//! Which calls of different ranks are one collective.
//!
//! ```text
//! rank 0   ├── A ──┤ ├ B ┤  ├─ C ─┤
//! rank 1        ├A ┤ ├ B ┤     ├ C┤ ├ D ┤
//! ```
//! Calls are one collective when they have
//! 1. the same process group and the same sequence number in it, else
//! 2. the same process group and the same place in the order of ends, else
//! 3. the same place in the order of ends on a stream, or of starts on a host, where no group is known.
//!
//! Captures may start and end apart. So orders are laid beside each other with the shift at which the most
//! ends stay together up to one offset between two clocks, all operations being the same; where fewer than
//! four fifths do (on the host: half), they are not the same collectives. Sends and receives are matched in
//! groups of two ranks only: in others it is not known who takes part.

use std::collections::{BTreeMap, BTreeSet};

use super::collective::{Call, Communication, Kind};
use super::operation::{ends_together, is_point_to_point};
use crate::units::Ns;

/// How far ends may be apart on devices: real ones stay within 20 µs.
const TOGETHER: i128 = 100_000;
/// How far on hosts, where threads wait to be run.
const TOGETHER_ON_HOST: i128 = 1_000_000;
/// So many ends have to be compared before they say anything.
const ENOUGH: usize = 3;
/// With so many clusters a line is compared; real devices communicate on a handful of streams.
const MAX_CLUSTERS: usize = 256;

/// One file of a run.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) rank: Option<i64>,
    /// What to add to its times.
    pub(super) base: Ns,
    pub(super) found: &'a Communication,
}

impl Member<'_> {
    /// When `call` ended, on the clock of the file.
    pub(super) fn end(&self, call: &Call) -> i128 {
        i128::from(self.base.0) + i128::from(call.span.end.0)
    }

    /// When it started.
    pub(super) fn start(&self, call: &Call) -> i128 {
        i128::from(self.base.0) + i128::from(call.span.start.0)
    }
}

/// How a collective was matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    Sequence,
    GroupOrder,
    Order,
}

impl How {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Sequence => "sequence",
            Self::GroupOrder => "group order",
            Self::Order => "order",
        }
    }
}

/// One collective with its calls on at least two devices or hosts.
#[derive(Debug, Clone)]
pub(super) struct Matched<'a> {
    pub(super) how: How,
    /// Its sequence number, or its place in the order.
    pub(super) number: i64,
    /// What it is, as the first rank that knows says.
    pub(super) kind: &'a Kind,
    /// Number of the file and call, in order of file and device.
    pub(super) calls: Vec<(usize, &'a Call)>,
}

impl Matched<'_> {
    pub(super) fn shortest(&self) -> Ns {
        let durations = self.calls.iter().map(|(_, call)| call.span.len());
        durations.min().unwrap_or_default()
    }

    /// The file of the only call that is the shortest: its rank came last. By how much the next one is
    /// longer is how long the others waited for it alone.
    pub(super) fn last(&self) -> Option<(usize, Ns)> {
        let mut durations: Vec<(Ns, usize)> = self
            .calls
            .iter()
            .map(|(file, call)| (call.span.len(), *file))
            .collect();
        durations.sort_unstable();
        match durations.as_slice() {
            [(shortest, file), (next, _), ..] if shortest < next => {
                Some((*file, *next - *shortest))
            }
            _ => None,
        }
    }

    /// True when all of its calls end at once.
    pub(super) fn ends_together(&self) -> bool {
        self.kind.operation.as_deref().is_none_or(ends_together)
    }
}

/// Calls of one file that are in one order: those of a group, or of a stream.
struct Line<'a> {
    file: usize,
    device: Option<i64>,
    member: Member<'a>,
    calls: Vec<&'a Call>,
}

/// Name and ranks of a group, and whether the calls are between two ranks.
type Group<'a> = (&'a str, Option<&'a str>, bool);

/// Group, sequence number, and which of the calls with that number.
type Numbered<'a> = (Group<'a>, i64, u32);

/// The collectives that several of `members` show, in order of group and number.
pub(super) fn matched<'a>(members: &[Member<'a>]) -> Vec<Matched<'a>> {
    let mut sequenced: BTreeMap<Numbered<'a>, Vec<(usize, &'a Call)>> = BTreeMap::new();
    let mut grouped: BTreeMap<Group<'a>, Vec<Line<'a>>> = BTreeMap::new();
    let mut streams: Vec<Line<'a>> = Vec::new();
    for (file, member) in members.iter().enumerate() {
        let found = member.found;
        for calls in found.calls.chunk_by(|a, b| a.device == b.device) {
            let device = calls[0].device;
            let mut of_group: BTreeMap<Group<'a>, Vec<&'a Call>> = BTreeMap::new();
            let mut of_stream: BTreeMap<u32, Vec<&'a Call>> = BTreeMap::new();
            // One number may be that of several calls: of a coalesced collective.
            let mut seen: BTreeMap<(Group<'a>, i64), u32> = BTreeMap::new();
            for call in calls {
                let kind = found.kind(call);
                let point_to_point = kind.operation.as_deref().is_some_and(is_point_to_point);
                let Some(name) = kind.group.as_deref() else {
                    // Threads of the host are a pool: any may run any collective.
                    let lane = device.map_or(0, |_| call.lane);
                    of_stream.entry(lane).or_default().push(call);
                    continue;
                };
                if point_to_point && kind.size != Some(2) {
                    continue;
                }
                let group = (name, kind.members.as_deref(), point_to_point);
                let Some(sequence) = call.sequence else {
                    of_group.entry(group).or_default().push(call);
                    continue;
                };
                let occurrence = seen.entry((group, sequence)).or_default();
                let key = (group, sequence, *occurrence);
                *occurrence += 1;
                sequenced.entry(key).or_default().push((file, call));
            }
            let line = |calls| Line::new(file, device, *member, calls);
            for (group, calls) in of_group {
                grouped.entry(group).or_default().push(line(calls));
            }
            streams.extend(of_stream.into_values().map(line));
        }
    }
    let mut all = Vec::new();
    for ((_, number, _), calls) in sequenced {
        push(&mut all, members, How::Sequence, number, calls);
    }
    for lines in grouped.into_values() {
        for cluster in clusters(&lines, true) {
            cluster.push_to(&mut all, members, How::GroupOrder);
        }
    }
    for cluster in clusters(&streams, false) {
        cluster.push_to(&mut all, members, How::Order);
    }
    all
}

/// Adds a collective of `calls`, when they are on several devices and agree on what it is.
fn push<'a>(
    all: &mut Vec<Matched<'a>>,
    members: &[Member<'a>],
    how: How,
    number: i64,
    mut calls: Vec<(usize, &'a Call)>,
) {
    let kind = |(file, call): &(usize, &'a Call)| members[*file].found.kind(call);
    if let Some(first) = calls.first().copied() {
        let first = kind(&first);
        calls.retain(|call| are_one(first, kind(call)));
    }
    if calls.len() < 2 {
        return;
    }
    let named = calls.iter().find(|call| kind(call).operation.is_some());
    let kind = kind(named.unwrap_or(&calls[0]));
    all.push(Matched {
        how,
        number,
        kind,
        calls,
    });
}

/// True when two calls may be of one collective.
fn are_one(one: &Kind, other: &Kind) -> bool {
    let (Some(own), Some(theirs)) = (one.operation.as_deref(), other.operation.as_deref()) else {
        return true;
    };
    if own != theirs {
        // A kernel that only says that it sends and receives runs all-to-alls, too.
        let vague = |operation| matches!(operation, "sendrecv");
        let moves = |operation| is_point_to_point(operation) || operation == "alltoall";
        let pair = matches!((own, theirs), ("send", "recv") | ("recv", "send"));
        return pair || (vague(own) && moves(theirs)) || (vague(theirs) && moves(own));
    }
    // What every rank gives as much of.
    let even = matches!(own, "allreduce" | "broadcast" | "reduce");
    match (one.in_elements, other.in_elements) {
        (Some(own), Some(theirs)) if even => own == theirs,
        _ => true,
    }
}

impl<'a> Line<'a> {
    fn new(file: usize, device: Option<i64>, member: Member<'a>, mut calls: Vec<&'a Call>) -> Self {
        // On a host several threads run collectives at once: those start in one order, but end in any.
        let first = |call: &Call| device.map_or(call.span.start, |_| call.span.end);
        calls.sort_by_key(|call| (first(call), call.span.start, call.span.end, call.kind));
        Self {
            file,
            device,
            member,
            calls,
        }
    }

    fn end(&self, place: usize) -> i128 {
        self.member.end(self.calls[place])
    }

    fn kind(&self, place: usize) -> &'a Kind {
        self.member.found.kind(self.calls[place])
    }

    /// The shift that lays this line beside `first`: call `i` here is call `i + shift` there.
    fn shift(&self, first: &Self, has_group: bool) -> Option<i64> {
        let (own, theirs) = (len(&self.calls), len(&first.calls));
        // Same start, same end, and what is nearest in time when the clocks are one.
        let near = len(&first.calls[..first.place_near(self.end(0))]);
        let own_near = len(&self.calls[..self.place_near(first.end(0))]);
        let mut shifts = BTreeSet::from([0, theirs - own]);
        for around in -2..=2 {
            shifts.extend([near + around, around - own_near]);
        }
        let fit = |shift: i64| Some((self.fit(first, shift, has_group)?, -shift.abs(), shift));
        let best = shifts.into_iter().filter_map(fit).max()?;
        Some(best.2)
    }

    /// The place of the first call that ends at `end` or later, or the last one; about that on a host.
    fn place_near(&self, end: i128) -> usize {
        let place = self
            .calls
            .partition_point(|call| self.member.end(call) < end);
        place.min(self.calls.len() - 1)
    }

    /// How many ends are together at `shift`, and how many calls are compared; `None` when these are
    /// not the same collectives.
    fn fit(&self, first: &Self, shift: i64, has_group: bool) -> Option<(usize, usize)> {
        let from = usize::try_from((-shift).max(0)).ok()?;
        let other = usize::try_from(shift.max(0)).ok()?;
        let own = self.calls.len().checked_sub(from)?;
        let count = own.min(first.calls.len().checked_sub(other)?);
        let pairs = || (0..count).map(|place| (from + place, other + place));
        if count == 0 || pairs().any(|(a, b)| !are_one(self.kind(a), first.kind(b))) {
            return None;
        }
        let synchronising = |(place, _): &(usize, usize)| {
            let operation = self.kind(*place).operation.as_deref();
            operation.is_none_or(|name| ends_together(name) || name == "sendrecv")
        };
        let mut apart: Vec<i128> = pairs()
            .filter(synchronising)
            .map(|(a, b)| self.end(a) - first.end(b))
            .collect();
        if apart.len() < ENOUGH {
            return has_group.then_some((0, count));
        }
        apart.sort_unstable();
        let middle = apart[(apart.len() - 1) / 2];
        let on_host = self.device.is_none();
        let tolerance = if on_host { TOGETHER_ON_HOST } else { TOGETHER };
        let together = apart
            .iter()
            .filter(|apart| (**apart - middle).abs() <= tolerance)
            .count();
        let enough = if on_host {
            together * 2 >= apart.len()
        } else {
            together * 5 >= apart.len() * 4
        };
        (enough && together >= ENOUGH).then_some((together, count))
    }
}

fn len<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// Lines that show the same collectives, each with its shift against the first; all of other devices.
struct Cluster<'l, 'a> {
    lines: Vec<(&'l Line<'a>, i64)>,
    /// Files and devices of its lines.
    devices: BTreeSet<(usize, Option<i64>)>,
    /// Ranks of its lines, with the file of each.
    ranks: BTreeMap<i64, usize>,
}

impl<'l, 'a> Cluster<'l, 'a> {
    fn new(line: &'l Line<'a>) -> Self {
        let mut cluster = Self {
            lines: Vec::new(),
            devices: BTreeSet::new(),
            ranks: BTreeMap::new(),
        };
        cluster.push(line, 0);
        cluster
    }

    fn push(&mut self, line: &'l Line<'a>, shift: i64) {
        self.lines.push((line, shift));
        self.devices.insert((line.file, line.device));
        if let Some(rank) = line.member.rank {
            self.ranks.insert(rank, line.file);
        }
    }

    /// The shift of `line` against the first, when it may show the same collectives: it is of another
    /// device, and of no rank that another file here is of.
    fn shift(&self, line: &Line<'a>, has_group: bool) -> Option<i64> {
        let rank = line.member.rank.and_then(|rank| self.ranks.get(&rank));
        let is_known = self.devices.contains(&(line.file, line.device));
        if is_known || rank.is_some_and(|file| *file != line.file) {
            return None;
        }
        line.shift(self.lines[0].0, has_group)
    }

    fn push_to(&self, all: &mut Vec<Matched<'a>>, members: &[Member<'a>], how: How) {
        let mut by_place: BTreeMap<i64, Vec<(usize, &'a Call)>> = BTreeMap::new();
        let mut lines: Vec<&(&Line<'a>, i64)> = self.lines.iter().collect();
        lines.sort_by_key(|(line, _)| (line.file, line.device));
        for (line, shift) in lines {
            for (place, call) in (0i64..).zip(&line.calls) {
                let calls = by_place.entry(place + shift).or_default();
                calls.push((line.file, *call));
            }
        }
        let first = by_place.keys().next().copied().unwrap_or(0);
        for (place, calls) in by_place {
            push(all, members, how, place - first, calls);
        }
    }
}

/// The lines in clusters of those that show the same collectives; each starts with its longest line.
fn clusters<'l, 'a>(lines: &'l [Line<'a>], has_group: bool) -> Vec<Cluster<'l, 'a>> {
    // Without a group, so few ends are compared with nothing.
    let least = if has_group { 0 } else { ENOUGH };
    let mut order: Vec<&Line<'a>> = lines
        .iter()
        .filter(|line| line.calls.len() >= least)
        .collect();
    order.sort_by_key(|line| std::cmp::Reverse(line.calls.len()));
    let mut clusters: Vec<Cluster<'l, 'a>> = Vec::new();
    for line in order {
        let mut known = clusters.iter().take(MAX_CLUSTERS).enumerate();
        let found = known.find_map(|(number, cluster)| {
            let shift = cluster.shift(line, has_group)?;
            Some((number, shift))
        });
        match found {
            Some((number, shift)) => clusters[number].push(line, shift),
            None => clusters.push(Cluster::new(line)),
        }
    }
    clusters
}
