//! Collectives: one that waits for another rank, and what they say about the clocks and the starts of
//! the captures of several ranks.
//!
//! ```text
//! rank 0  capture ├──────┤ all-reduce (waits) ├────┤ all-reduce ├──
//! rank 1                      capture ├──┤ all-reduce ┤  ┤ all-reduce ├──
//!                                                  ends together
//! ```
//! A collective ends on all of its ranks at once. So its calls are matched by the order of their ends
//! and their names, and only where the ends stay together, up to one offset between the two clocks, is
//! it taken for the same collective. Neither process groups nor clocks have to be known.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::class::DeviceClass;
use super::host::Host;
use super::work::Work;
use crate::health::{Health, HealthCode};
use crate::model::{StrId, Trace};
use crate::units::{Ns, Span};

/// How far the ends of one collective may be apart: real ones stay within 20 µs.
const TOGETHER: Ns = Ns(100_000);
/// So many collectives have to match before they say anything.
const ENOUGH: usize = 3;
/// With so many groups a line is compared, lest the time grows with their square; real devices are in a handful.
const MAX_GROUPS: usize = 256;
/// Clocks that differ less are one clock.
const SAME_CLOCK: Ns = Ns(1_000_000);
/// A collective is long when it lasts so many times as long as it could.
const MANY_TIMES: i64 = 10;
/// A collective without any to compare with is long when the next longest is so many times shorter.
const ALONE_TIMES: i64 = 3;

/// The communication of one trace.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    names: Vec<String>,
    calls: Vec<Call>,
    /// When the host was first seen, on the trace's own clock with its base time.
    capture_start: Option<Ns>,
    /// By device: from its first start to its last end.
    windows: Vec<(i64, Ns)>,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    device: i64,
    end: Ns,
    dur: Ns,
    name: u32,
    offset: u64,
}

impl Collectives {
    pub(crate) fn new(trace: &Trace, host: &Host, work: &[Work]) -> Self {
        let base = Ns(trace.metadata.base_time_ns.unwrap_or(0));
        let mut found = Self::default();
        let mut number_of = HashMap::<StrId, u32>::default();
        let mut spans: Vec<(i64, Span)> = Vec::new();
        for work in work {
            spans.push((work.device, work.span));
            if work.class != DeviceClass::Communication {
                continue;
            }
            let name = trace.events.name(work.event);
            let names = &mut found.names;
            let number = *number_of.entry(name).or_insert_with(|| {
                names.push(trace.strings.get(name).to_owned());
                u32::try_from(names.len() - 1).expect("fewer than 2^32 names")
            });
            found.calls.push(Call {
                device: work.device,
                end: base + work.span.end,
                dur: work.span.len(),
                name: number,
                offset: trace.events.offset(work.event),
            });
        }
        if found.calls.is_empty() {
            return found;
        }
        spans.sort_unstable_by_key(|(device, span)| (*device, span.start));
        found.windows = spans
            .chunk_by(|a, b| a.0 == b.0)
            .map(|spans| {
                let end = spans
                    .iter()
                    .map(|(_, span)| span.end)
                    .max()
                    .unwrap_or_default();
                (spans[0].0, end - spans[0].1.start)
            })
            .collect();
        let begins = host.threads.iter().flat_map(|thread| {
            let op = thread.ops.first().map(|op| op.span.start);
            let range = thread.annotations.first().map(|range| range.span.start);
            [op, range]
        });
        found.capture_start = begins.flatten().min().map(|start| base + start);
        let Self { names, calls, .. } = &mut found;
        calls.sort_unstable_by(|a, b| {
            (a.device, a.end, a.dur)
                .cmp(&(b.device, b.end, b.dur))
                .then_with(|| names[a.name as usize].cmp(&names[b.name as usize]))
                .then_with(|| a.offset.cmp(&b.offset))
        });
        found
    }

    fn window(&self, device: i64) -> Ns {
        let found = self
            .windows
            .binary_search_by_key(&device, |(number, _)| *number);
        found.map_or(Ns::ZERO, |place| self.windows[place].1)
    }
}

/// One file of a run.
pub(crate) struct Member<'a> {
    pub(crate) rank: Option<i64>,
    /// Which profiler window of its rank.
    pub(crate) window: usize,
    pub(crate) collectives: &'a Collectives,
}

/// What was found about each file of a run, in their order.
pub(crate) fn examine(members: &[Member<'_>]) -> Vec<Health> {
    let mut health: Vec<Health> = members.iter().map(|_| Health::default()).collect();
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (file, member) in members.iter().enumerate() {
        let calls = member
            .collectives
            .calls
            .chunk_by(|a, b| a.device == b.device);
        lines.extend(calls.map(|calls| Line {
            file,
            member,
            calls,
            window: member.collectives.window(calls[0].device),
        }));
    }
    for group in groups(&lines, &mut health) {
        match group.as_slice() {
            [alone] => alone.line.note_alone(&mut health),
            several => {
                note_waits(several, &mut health);
                note_starts(several, &mut health);
                note_clocks(several, &mut health);
            }
        }
    }
    health
}

/// The communication of one device of one file, in order of end.
#[derive(Clone, Copy)]
struct Line<'a> {
    file: usize,
    member: &'a Member<'a>,
    calls: &'a [Call],
    /// From the first start to the last end on the device.
    window: Ns,
}

/// A line that matches the first of its group.
struct Matched<'a> {
    line: Line<'a>,
    /// How far its clock is ahead of the first line's.
    ahead: Ns,
    /// Its calls, each with the number of the same call in the first line.
    calls: Vec<(usize, &'a Call)>,
}

impl<'a> Line<'a> {
    fn name(&self, call: &Call) -> &'a str {
        &self.member.collectives.names[call.name as usize]
    }

    /// This line as the first of a group.
    fn first(self) -> Matched<'a> {
        Matched {
            line: self,
            ahead: Ns::ZERO,
            calls: self.calls.iter().enumerate().collect(),
        }
    }

    /// This line beside the first one of a group, when both show the same collectives. One of them
    /// may show more, at one end.
    fn matched(self, first: &Line<'a>) -> Option<Matched<'a>> {
        let (own, theirs) = (self.calls.len(), first.calls.len());
        let both = own.min(theirs);
        let same_rank = self.member.rank.is_some() && self.member.rank == first.member.rank;
        if both < ENOUGH
            || self.file == first.file
            || self.member.window != first.member.window
            || same_rank
        {
            return None;
        }
        let last = (own - both, theirs - both);
        let mut found = self.aligned(first, (0, 0), both);
        if last != (0, 0) {
            let late = self.aligned(first, last, both);
            let matches =
                |found: &Option<Matched<'_>>| found.as_ref().map_or(0, |it| it.calls.len());
            if matches(&late) > matches(&found) {
                found = late;
            }
        }
        found
    }

    /// The match when the calls from `from` on are the same, if they are.
    fn aligned(self, first: &Line<'a>, from: (usize, usize), count: usize) -> Option<Matched<'a>> {
        let pairs = || {
            let numbered = first.calls.iter().enumerate().skip(from.1);
            self.calls[from.0..].iter().zip(numbered).take(count)
        };
        if pairs().any(|(own, (_, other))| self.name(own) != first.name(other)) {
            return None;
        }
        let mut aheads: Vec<Ns> = pairs()
            .map(|(own, (_, other))| own.end - other.end)
            .collect();
        let (_, ahead, _) = aheads.select_nth_unstable((count - 1) / 2);
        let ahead = *ahead;
        let calls: Vec<_> = pairs()
            .filter(|(own, (_, other))| {
                let apart = own.end - other.end - ahead;
                -TOGETHER.0 <= apart.0 && apart.0 <= TOGETHER.0
            })
            .map(|(own, (number, _))| (number, own))
            .collect();
        (calls.len() * 5 >= count * 4 && calls.len() >= ENOUGH).then_some(Matched {
            line: self,
            ahead,
            calls,
        })
    }

    /// Notes calls that stand out from the others of their name, where no other rank tells how long
    /// they take.
    fn note_alone(&self, health: &mut [Health]) {
        let mut by_name: Vec<&Call> = self.calls.iter().collect();
        by_name.sort_by_key(|call| (self.name(call), call.dur));
        for calls in by_name.chunk_by(|a, b| self.name(a) == self.name(b)) {
            let [.., second, longest] = calls else {
                continue;
            };
            let median = calls[(calls.len() - 1) / 2].dur;
            if calls.len() > ENOUGH
                && longest.dur.0 / MANY_TIMES >= median.0
                && longest.dur.0 / ALONE_TIMES >= second.dur.0
            {
                self.note_wait(longest, longest.dur - median, health);
            }
        }
    }

    /// Notes that `call` waited so long, when that is a good part of the window.
    fn note_wait(&self, call: &Call, wait: Ns, health: &mut [Health]) {
        if wait.0 > self.window.0 / 10 {
            let health = &mut health[self.file];
            health.count(HealthCode::OutlierCollective, call.offset, self.name(call));
            health.add_time(HealthCode::OutlierCollective, wait, Some(wait));
        }
    }
}

/// The lines in groups of those that show the same collectives. A line that may belong to a group with which it was not
/// compared is told.
fn groups<'a>(lines: &[Line<'a>], health: &mut [Health]) -> Vec<Vec<Matched<'a>>> {
    let mut groups: Vec<Vec<Matched<'a>>> = Vec::new();
    // By window: the numbers of those that a line of a later file may belong to.
    let mut open: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for of_file in lines.chunk_by(|a, b| a.file == b.file) {
        let open = open.entry(of_file[0].member.window).or_default();
        let before = open.len();
        let known = before.min(MAX_GROUPS);
        for line in of_file {
            let found = open[..known]
                .iter()
                .find_map(|number| Some((*number, line.matched(&groups[*number][0].line)?)));
            if let Some((number, matched)) = found {
                groups[number].push(matched);
                continue;
            }
            if line.calls.len() >= ENOUGH {
                open.push(groups.len());
                if before > known {
                    let first = &line.calls[0];
                    let code = HealthCode::CollectivesNotCompared;
                    health[line.file].count(code, first.offset, line.name(first));
                }
            }
            groups.push(vec![line.first()]);
        }
    }
    groups
}

/// Notes calls in which a rank waited for the last one to arrive.
fn note_waits(group: &[Matched<'_>], health: &mut [Health]) {
    for (matched, call, shortest) in waits(group) {
        if call.dur.0 / MANY_TIMES >= shortest.0 {
            matched.line.note_wait(call, call.dur - shortest, health);
        }
    }
}

/// Every call that another line has, too, with how long the shortest of them takes.
fn waits<'a, 'b>(
    group: &'b [Matched<'a>],
) -> impl Iterator<Item = (&'b Matched<'a>, &'a Call, Ns)> {
    let mut shortest: Vec<(Ns, u32)> = vec![(Ns(i64::MAX), 0); group[0].calls.len()];
    for (number, call) in group.iter().flat_map(|matched| &matched.calls) {
        let (dur, lines) = &mut shortest[*number];
        *dur = call.dur.min(*dur);
        *lines += 1;
    }
    group.iter().flat_map(move |matched| {
        let calls: Vec<_> = matched
            .calls
            .iter()
            .filter(|(number, _)| shortest[*number].1 > 1)
            .map(|(number, call)| (matched, *call, shortest[*number].0))
            .collect();
        calls
    })
}

/// Notes captures that start before the last one and wait for it in their first collective.
fn note_starts(group: &[Matched<'_>], health: &mut [Health]) {
    let start = |matched: &Matched<'_>| {
        let start = matched.line.member.collectives.capture_start?;
        Some(start - matched.ahead)
    };
    let Some(last) = group.iter().filter_map(start).max() else {
        return;
    };
    let of_last = group.iter().find(|matched| start(matched) == Some(last));
    let rank = of_last.and_then(|matched| matched.line.member.rank);
    let about = rank.map_or("another rank".to_owned(), |rank| format!("rank {rank}"));
    let mut seen: Vec<usize> = Vec::new();
    for (matched, call, shortest) in waits(group) {
        let file = matched.line.file;
        let Some(start) = start(matched).filter(|_| !seen.contains(&file)) else {
            continue;
        };
        seen.push(file);
        let wait = (call.dur - shortest).min(last - start);
        if wait.0 > matched.line.window.0 / 100 {
            let name = format!("waits for {about}");
            health[file].add(HealthCode::StartSkew, 1, Some(name));
            health[file].add_time(HealthCode::StartSkew, wait, Some(last - start));
        }
    }
}

/// Notes clocks that differ from the one in the middle.
fn note_clocks(group: &[Matched<'_>], health: &mut [Health]) {
    let mut aheads: Vec<Ns> = group.iter().map(|matched| matched.ahead).collect();
    aheads.sort_unstable();
    let middle = aheads[(aheads.len() - 1) / 2];
    for matched in group {
        let ahead = matched.ahead - middle;
        if ahead.0.saturating_abs() > SAME_CLOCK.0 {
            let word = if ahead > Ns::ZERO { "ahead" } else { "behind" };
            let health = &mut health[matched.line.file];
            health.add(HealthCode::ClockOffset, 1, Some(word.to_owned()));
            health.add_time(
                HealthCode::ClockOffset,
                Ns::ZERO,
                Some(Ns(ahead.0.saturating_abs())),
            );
        }
    }
}
