//! Events that belong together by an id in their text, of which a part of a trace has all or none.
//!
//! ```text
//! flow    s ──── t ──── f         category and id
//! async   b ─── n ─────── e       category and id (and scope); the innermost of its name is closed
//!         S ── T ── p ── F        category, id and name
//! context ( ──────────── )        category and id
//! ```
//! The flows that Kineto writes are in the columns of a trace; the ids of all others are only in the text,
//! which is looked through when there are any.

use foldhash::HashMap;

use super::document::{Edit, Fate};
use super::json::{Kind, Tokens, inner, says};
use crate::model::{ActivityType, EventId, Ph, Trace};

/// What the letters of linked events mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Family {
    Flow,
    Async,
    OldAsync,
    Context,
}

impl Family {
    fn of(ph: Ph) -> Option<Self> {
        match ph.0 {
            b's' | b't' | b'f' => Some(Self::Flow),
            b'b' | b'e' => Some(Self::Async),
            b'S' | b'T' | b'p' | b'F' => Some(Self::OldAsync),
            b'(' | b')' => Some(Self::Context),
            _ => None,
        }
    }
}

/// The place of an event between those that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    First,
    Between,
    Last,
}

impl Place {
    fn of(ph: Ph) -> Self {
        match ph.0 {
            b's' | b'b' | b'S' | b'(' => Self::First,
            b'f' | b'e' | b'F' | b')' => Self::Last,
            _ => Self::Between,
        }
    }
}

/// An event with an id.
#[derive(Debug, Clone)]
struct Member {
    event: EventId,
    name: Box<[u8]>,
}

/// Events that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) first: Option<EventId>,
    pub(super) between: Vec<EventId>,
    pub(super) last: Vec<EventId>,
    /// It takes time, as a range does, and is no arrow.
    pub(super) is_range: bool,
}

/// Collects the events that are linked by ids in their text.
pub(super) struct Links<'a> {
    trace: &'a Trace,
    groups: HashMap<(Family, Box<[u8]>), Vec<Member>>,
    number: usize,
}

impl<'a> Links<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            groups: HashMap::default(),
            number: 0,
        }
    }

    /// True when `trace` has such events.
    pub(super) fn are_in(trace: &Trace) -> bool {
        let mut ids = trace.events.ids();
        ids.any(|id| family(trace, id).is_some())
    }

    /// The chains that the events form.
    pub(super) fn chains(self) -> Vec<Chain> {
        let mut chains = Vec::new();
        // The order of chains does not matter: each event is in one.
        #[expect(clippy::iter_over_hash_type, reason = "each chain stands alone")]
        for ((family, _), mut members) in self.groups {
            let events = &self.trace.events;
            members.sort_by_key(|member| {
                let place = Place::of(events.ph(member.event));
                (events.ts(member.event), place, member.event)
            });
            if family == Family::Async || family == Family::Context {
                nested(self.trace, &members, &mut chains);
            } else {
                let is_range = family == Family::OldAsync;
                in_order(self.trace, &members, is_range, &mut chains);
            }
        }
        chains
    }
}

/// The family of an event whose id is not in the columns.
fn family(trace: &Trace, id: EventId) -> Option<Family> {
    let events = &trace.events;
    let family = Family::of(events.ph(id))?;
    let in_columns = matches!(
        events.activity(id),
        ActivityType::LaunchFlow | ActivityType::ForwardBackwardFlow
    );
    (family != Family::Flow || !in_columns).then_some(family)
}

impl Edit for Links<'_> {
    fn begin(&mut self) {
        self.groups.clear();
        self.number = 0;
    }

    fn event(&mut self, _: u64, text: &[u8], _: &mut Vec<u8>) -> Fate {
        let number = self.number;
        self.number += 1;
        let Some(event) = u32::try_from(number).ok().map(EventId) else {
            return Fate::Keep;
        };
        if number >= self.trace.events.len() {
            return Fate::Keep;
        }
        if let Some(family) = family(self.trace, event) {
            let (key, name) = identity(text, family);
            let members = self.groups.entry((family, key)).or_default();
            members.push(Member { event, name });
        }
        Fate::Keep
    }
}

/// What an event belongs together by, and its name.
fn identity(text: &[u8], family: Family) -> (Box<[u8]>, Box<[u8]>) {
    const KEYS: [&str; 6] = ["cat", "scope", "id", "id2", "pid", "name"];
    let mut values: [&[u8]; KEYS.len()] = [b""; KEYS.len()];
    let mut place = None;
    let mut opened = 0;
    for token in Tokens::new(text).filter(|token| token.depth == 1) {
        let value = match token.kind {
            Kind::Key => {
                place = KEYS.iter().position(|key| says(text, token, key));
                continue;
            }
            Kind::Open => {
                opened = token.start;
                continue;
            }
            Kind::Close => &text[opened..token.end],
            Kind::Text => inner(text, token),
            Kind::Plain => &text[token.start..token.end],
        };
        if let Some(place) = place {
            values[place] = value;
        }
    }
    let [cat, scope, id, id2, pid, name] = values;
    // A local id is that of a process.
    let is_local = id2.windows(7).any(|part| part == b"\"local\"");
    let pid = if is_local { pid } else { b"" };
    let name_of_key = if family == Family::OldAsync {
        name
    } else {
        b""
    };
    let key = [cat, scope, id, id2, pid, name_of_key].join(&0);
    (key.into(), name.into())
}

/// Chains one behind the other: an id is used again.
fn in_order(trace: &Trace, members: &[Member], is_range: bool, chains: &mut Vec<Chain>) {
    let mut chain = Chain {
        is_range,
        ..Chain::default()
    };
    for Member { event, .. } in members {
        match Place::of(trace.events.ph(*event)) {
            Place::First => {
                let next = Chain {
                    first: Some(*event),
                    is_range,
                    ..Chain::default()
                };
                chains.push(std::mem::replace(&mut chain, next));
            }
            Place::Between => chain.between.push(*event),
            Place::Last => chain.last.push(*event),
        }
    }
    chains.push(chain);
}

/// Chains inside of each other: an end closes the innermost that is open and has its name.
fn nested(trace: &Trace, members: &[Member], chains: &mut Vec<Chain>) {
    let chain = |first: Option<EventId>, last: Option<EventId>| Chain {
        first,
        last: last.into_iter().collect(),
        between: Vec::new(),
        is_range: true,
    };
    // By name, so that this takes linear time whatever the names are; an end without a name closes
    // the innermost of all.
    let mut open: Vec<Option<EventId>> = Vec::new();
    let mut all: Vec<usize> = Vec::new();
    let mut by_name: HashMap<&[u8], Vec<usize>> = HashMap::default();
    for member in members {
        if Place::of(trace.events.ph(member.event)) == Place::First {
            by_name.entry(&member.name).or_default().push(open.len());
            all.push(open.len());
            open.push(Some(member.event));
            continue;
        }
        let places = if member.name.is_empty() {
            Some(&mut all)
        } else {
            by_name.get_mut(&*member.name)
        };
        let first = places.and_then(|places| {
            while let Some(place) = places.pop() {
                if let Some(first) = open[place].take() {
                    return Some(first);
                }
            }
            None
        });
        chains.push(chain(first, Some(member.event)));
    }
    let left = open.into_iter().flatten();
    chains.extend(left.map(|first| chain(Some(first), None)));
}
